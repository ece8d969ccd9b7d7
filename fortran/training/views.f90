! Views: gathered parameters, gradients, ignored tensors, and what a rank holds of each; fsdp/model.h and fsdp/shard.h.
! Here as addresses, as C has them; views_of.inc makes arrays of them. Tensors and states count from 1.
module fsdp_views
   use, intrinsic :: iso_c_binding
   use fsdp_constants
   use fsdp_structs
   use fsdp_base
   use fsdp_models
   use fsdp_optimizers
   implicit none
   private

   public :: fsdp_optimizer_state, fsdp_unit_buffer, fsdp_unit_grad, fsdp_unit_param, fsdp_unit_shard
   public :: buffer_view, finish_view, grad_view, param_view, shard_view, state_view

   ! What an array is to be made of. Without memory, `code` says what the library returned.
   type, public :: view
      type(c_ptr)       :: memory = c_null_ptr
      integer(c_int)    :: code = FSDP_OK
      integer(c_int)    :: dtype = FSDP_F32
      integer           :: i = 0 ! which tensor of the unit
      integer           :: n_dims = 0
      integer(c_size_t) :: shape(FSDP_MAX_DIMS) = 0
      integer(c_size_t) :: count = 1
   end type

   interface fsdp_unit_param
      module procedure param_address
   end interface
   interface fsdp_unit_grad
      module procedure grad_address
   end interface
   interface fsdp_unit_buffer
      module procedure buffer_address
   end interface
   interface fsdp_unit_shard
      module procedure shard_struct
   end interface
   interface fsdp_optimizer_state
      module procedure state_address
   end interface

   interface
      type(c_ptr) function c_unit_param(unit, i) bind(C, name="fsdp_unit_param")
         import :: c_ptr, c_size_t
         type(c_ptr), value       :: unit
         integer(c_size_t), value :: i
      end function

      type(c_ptr) function c_unit_grad(unit, i) bind(C, name="fsdp_unit_grad")
         import :: c_ptr, c_size_t
         type(c_ptr), value       :: unit
         integer(c_size_t), value :: i
      end function

      type(c_ptr) function c_unit_buffer(unit, i) bind(C, name="fsdp_unit_buffer")
         import :: c_ptr, c_size_t
         type(c_ptr), value       :: unit
         integer(c_size_t), value :: i
      end function

      integer(c_int) function c_unit_shard(unit, i, shard) bind(C, name="fsdp_unit_shard")
         import :: c_int, c_ptr, c_size_t, fsdp_shard
         type(c_ptr), value            :: unit
         integer(c_size_t), value      :: i
         type(fsdp_shard), intent(out) :: shard
      end function

      type(c_ptr) function c_optimizer_state(optimizer, unit, i, k) bind(C, name="fsdp_optimizer_state")
         import :: c_ptr, c_size_t
         type(c_ptr), value       :: optimizer, unit
         integer(c_size_t), value :: i, k
      end function
   end interface

contains

   ! ---- what the library says

   ! C only says NULL: there is no such tensor, or this is not the time for it.
   function view_of(unit, i, memory) result(found)
      type(fsdp_unit), intent(in) :: unit
      integer, intent(in) :: i
      type(c_ptr), intent(in) :: memory
      type(view) :: found
      type(described_tensor), pointer :: tensor

      found%memory = memory
      found%i = i
      tensor => find_tensor(unit, i)
      if (associated(tensor)) then
         found%n_dims = tensor%n_dims
         found%shape = tensor%shape
         found%count = product(tensor%shape(:tensor%n_dims))
         found%dtype = tensor%param_dtype
      end if
      if (.not. c_associated(memory)) found%code = merge(FSDP_ERR_STATE, FSDP_ERR_ARG, associated(tensor))
   end function

   function param_view(unit, i) result(found)
      type(fsdp_unit), intent(in) :: unit
      integer, intent(in) :: i
      type(view) :: found

      found = view_of(unit, i, c_unit_param(address(unit), int(i - 1, c_size_t)))
   end function

   function grad_view(unit, i) result(found)
      type(fsdp_unit), intent(in) :: unit
      integer, intent(in) :: i
      type(view) :: found
      type(described_tensor), pointer :: tensor

      found = view_of(unit, i, c_unit_grad(address(unit), int(i - 1, c_size_t)))
      tensor => find_tensor(unit, i)
      if (associated(tensor)) found%dtype = tensor%grad_dtype
   end function

   function buffer_view(unit, i) result(found)
      type(fsdp_unit), intent(in) :: unit
      integer, intent(in) :: i
      type(view) :: found

      found = view_of(unit, i, c_unit_buffer(address(unit), int(i - 1, c_size_t)))
   end function

   ! Of what this rank holds: one dimension. `memory` is the masters'.
   function shard_view(unit, i, shard) result(found)
      type(fsdp_unit), intent(in) :: unit
      integer, intent(in) :: i
      type(fsdp_shard), intent(inout) :: shard
      type(view) :: found

      found%code = c_unit_shard(address(unit), int(i - 1, c_size_t), shard)
      found%i = i
      found%memory = shard%master
      found%n_dims = 1
      found%shape(1) = shard%count
      found%count = shard%count
      found%dtype = shard%dtype
   end function

   function state_view(optimizer, unit, i, k) result(found)
      type(fsdp_optimizer), intent(in) :: optimizer
      type(fsdp_unit), intent(in) :: unit
      integer, intent(in) :: i, k
      type(view) :: found
      type(fsdp_shard) :: shard

      found = shard_view(unit, i, shard)
      if (found%code /= FSDP_OK) return
      found%memory = c_optimizer_state(address(optimizer), address(unit), int(i - 1, c_size_t), int(k - 1, c_size_t))
      found%dtype = moment_dtype_of(optimizer)
      if (.not. c_associated(found%memory)) found%code = FSDP_ERR_ARG
   end function

   ! ---- as addresses

   subroutine param_address(unit, i, memory, status)
      type(fsdp_unit), intent(in) :: unit
      integer, intent(in) :: i
      type(c_ptr), intent(out) :: memory
      integer, intent(out), optional :: status

      call hand_out(param_view(unit, i), 'fsdp_unit_param', unit, memory, status)
   end subroutine

   subroutine grad_address(unit, i, memory, status)
      type(fsdp_unit), intent(in) :: unit
      integer, intent(in) :: i
      type(c_ptr), intent(out) :: memory
      integer, intent(out), optional :: status

      call hand_out(grad_view(unit, i), 'fsdp_unit_grad', unit, memory, status)
   end subroutine

   subroutine buffer_address(unit, i, memory, status)
      type(fsdp_unit), intent(in) :: unit
      integer, intent(in) :: i
      type(c_ptr), intent(out) :: memory
      integer, intent(out), optional :: status

      call hand_out(buffer_view(unit, i), 'fsdp_unit_buffer', unit, memory, status)
   end subroutine

   subroutine state_address(optimizer, unit, i, k, memory, status)
      type(fsdp_optimizer), intent(in) :: optimizer
      type(fsdp_unit), intent(in) :: unit
      integer, intent(in) :: i, k
      type(c_ptr), intent(out) :: memory
      integer, intent(out), optional :: status

      call hand_out(state_view(optimizer, unit, i, k), 'fsdp_optimizer_state', unit, memory, status)
   end subroutine

   subroutine hand_out(found, what, unit, memory, status)
      type(view), intent(in) :: found
      character(*), intent(in) :: what
      type(fsdp_unit), intent(in) :: unit
      type(c_ptr), intent(out) :: memory
      integer, intent(out), optional :: status

      memory = found%memory
      call finish(found%code, what, unit, status)
   end subroutine

   ! The struct: addresses, and `begin` and `count`.
   subroutine shard_struct(unit, i, shard, status)
      type(fsdp_unit), intent(in) :: unit
      integer, intent(in) :: i
      type(fsdp_shard), intent(inout) :: shard
      integer, intent(out), optional :: status

      call finish(c_unit_shard(address(unit), int(i - 1, c_size_t), shard), 'fsdp_unit_shard', unit, status)
   end subroutine

   ! ---- as arrays

   ! The end of a call that has asked for a pointer with elements of this type and so many dimensions. `good` says
   ! whether the pointer is to be set: to what was found, in as many dimensions as it has, or in one.
   subroutine finish_view(found, what, unit, dtypes, n_dims, good, status)
      type(view), intent(in) :: found
      character(*), intent(in) :: what
      type(fsdp_unit), intent(in) :: unit
      integer(c_int), intent(in) :: dtypes(:)
      integer, intent(in) :: n_dims
      logical, intent(out) :: good
      integer, intent(out), optional :: status

      good = .false.
      if (found%code /= FSDP_OK) then
         call finish(found%code, what, unit, status)
      else if (.not. any(dtypes == found%dtype)) then
         call refuse(name_of(unit, found%i) // ' needs a pointer to ' // fortran_type(found%dtype), what, unit, status)
      else if (n_dims /= found%n_dims .and. n_dims /= 1) then
         call refuse(name_of(unit, found%i) // ' has ' // digit(found%n_dims) // ' dimensions, and the pointer ' // &
                     digit(n_dims), what, unit, status)
      else
         good = .true.
         call finish(FSDP_OK, what, unit, status)
      end if
   end subroutine

   function name_of(unit, i) result(text)
      type(fsdp_unit), intent(in) :: unit
      integer, intent(in) :: i
      character(:), allocatable :: text
      type(described_tensor), pointer :: tensor

      tensor => find_tensor(unit, i)
      if (associated(tensor)) then
         text = tensor%name
      else
         text = 'a tensor of ' // fsdp_unit_name(unit)
      end if
   end function

   function fortran_type(dtype) result(text)
      integer(c_int), intent(in) :: dtype
      character(:), allocatable :: text

      select case (dtype)
      case (FSDP_F64)
         text = 'real(c_double)'
      case (FSDP_F32)
         text = 'real(c_float)'
      case (FSDP_BF16, FSDP_F16)
         text = 'integer(c_int16_t), the bits of bf16 or f16'
      case default
         text = 'another type'
      end select
   end function

   pure character function digit(n)
      integer, intent(in) :: n

      digit = achar(iachar('0') + mod(n, 10))
   end function
end module
