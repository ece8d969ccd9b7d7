! Passes of units, and what is done with gradients between the last pass and the step: fsdp/model.h, fsdp/gradients.h.
module fsdp_passes
   use, intrinsic :: iso_c_binding
   use fsdp_constants
   use fsdp_structs
   use fsdp_base
   use fsdp_models
   implicit none
   private

   public :: fsdp_clip_grad_norm, fsdp_clip_grad_norm_inf, fsdp_clip_grad_value, fsdp_clip_grad_with_norm
   public :: fsdp_grad_norm, fsdp_grad_norm_per_tensor, fsdp_model_hash, fsdp_model_keep_gathered, fsdp_model_replay
   public :: fsdp_model_set_gradient_divisor, fsdp_model_set_sync, fsdp_model_shards_changed
   public :: fsdp_model_sum_gradient_divisor, fsdp_model_zero_grad, fsdp_scale_grad, fsdp_unit_begin_backward
   public :: fsdp_unit_begin_forward, fsdp_unit_end_backward, fsdp_unit_end_forward

   interface fsdp_grad_norm
      module procedure grad_norm, grad_norm_of_models
   end interface

   interface
      integer(c_int) function c_unit_begin_forward(unit) bind(C, name="fsdp_unit_begin_forward")
         import :: c_int, c_ptr
         type(c_ptr), value :: unit
      end function

      integer(c_int) function c_unit_end_forward(unit) bind(C, name="fsdp_unit_end_forward")
         import :: c_int, c_ptr
         type(c_ptr), value :: unit
      end function

      integer(c_int) function c_unit_begin_backward(unit) bind(C, name="fsdp_unit_begin_backward")
         import :: c_int, c_ptr
         type(c_ptr), value :: unit
      end function

      integer(c_int) function c_unit_end_backward(unit) bind(C, name="fsdp_unit_end_backward")
         import :: c_int, c_ptr
         type(c_ptr), value :: unit
      end function

      integer(c_int) function c_model_set_sync(model, sync) bind(C, name="fsdp_model_set_sync")
         import :: c_int, c_ptr
         type(c_ptr), value    :: model
         integer(c_int), value :: sync
      end function

      integer(c_int) function c_model_keep_gathered(model, on) bind(C, name="fsdp_model_keep_gathered")
         import :: c_int, c_ptr
         type(c_ptr), value    :: model
         integer(c_int), value :: on
      end function

      integer(c_int) function c_model_replay(model) bind(C, name="fsdp_model_replay")
         import :: c_int, c_ptr
         type(c_ptr), value :: model
      end function

      integer(c_int) function c_model_zero_grad(model) bind(C, name="fsdp_model_zero_grad")
         import :: c_int, c_ptr
         type(c_ptr), value :: model
      end function

      integer(c_int) function c_clip_grad_norm(model, max_norm, norm) bind(C, name="fsdp_clip_grad_norm")
         import :: c_double, c_int, c_ptr
         type(c_ptr), value          :: model
         real(c_double), value       :: max_norm
         real(c_double), intent(out) :: norm
      end function

      integer(c_int) function c_clip_grad_norm_inf(model, max_norm, norm) bind(C, name="fsdp_clip_grad_norm_inf")
         import :: c_double, c_int, c_ptr
         type(c_ptr), value          :: model
         real(c_double), value       :: max_norm
         real(c_double), intent(out) :: norm
      end function

      integer(c_int) function c_clip_grad_value(model, limit) bind(C, name="fsdp_clip_grad_value")
         import :: c_double, c_int, c_ptr
         type(c_ptr), value    :: model
         real(c_double), value :: limit
      end function

      integer(c_int) function c_model_hash(model, hash) bind(C, name="fsdp_model_hash")
         import :: c_int, c_int64_t, c_ptr
         type(c_ptr), value              :: model
         integer(c_int64_t), intent(out) :: hash
      end function

      integer(c_int) function c_model_set_gradient_divisor(model, divisor&
            ) bind(C, name="fsdp_model_set_gradient_divisor")
         import :: c_double, c_int, c_ptr
         type(c_ptr), value    :: model
         real(c_double), value :: divisor
      end function

      integer(c_int) function c_model_sum_gradient_divisor(model, share, sum&
            ) bind(C, name="fsdp_model_sum_gradient_divisor")
         import :: c_double, c_int, c_ptr
         type(c_ptr), value          :: model
         real(c_double), value       :: share
         real(c_double), intent(out) :: sum
      end function

      integer(c_int) function c_grad_norm(models, n_models, norm) bind(C, name="fsdp_grad_norm")
         import :: c_double, c_int, c_ptr, c_size_t
         type(c_ptr), intent(in)     :: models(*)
         integer(c_size_t), value    :: n_models
         real(c_double), intent(out) :: norm
      end function

      integer(c_int) function c_clip_grad_with_norm(model, max_norm, norm) bind(C, name="fsdp_clip_grad_with_norm")
         import :: c_double, c_int, c_ptr
         type(c_ptr), value    :: model
         real(c_double), value :: max_norm, norm
      end function

      integer(c_int) function c_scale_grad(model, factor) bind(C, name="fsdp_scale_grad")
         import :: c_double, c_int, c_ptr
         type(c_ptr), value    :: model
         real(c_double), value :: factor
      end function

      integer(c_int) function c_grad_norm_per_tensor(model, norms, room, n) bind(C, name="fsdp_grad_norm_per_tensor")
         import :: c_int, c_ptr, c_size_t, fsdp_tensor_norm
         type(c_ptr), value                    :: model
         type(fsdp_tensor_norm), intent(inout) :: norms(*)
         integer(c_size_t), value              :: room
         integer(c_size_t), intent(out)        :: n
      end function

      integer(c_int) function c_model_shards_changed(model) bind(C, name="fsdp_model_shards_changed")
         import :: c_int, c_ptr
         type(c_ptr), value :: model
      end function
   end interface

contains

   ! ---- passes

   subroutine fsdp_unit_begin_forward(unit, status)
      type(fsdp_unit), intent(in) :: unit
      integer, intent(out), optional :: status

      call finish(c_unit_begin_forward(address(unit)), 'fsdp_unit_begin_forward', unit, status)
   end subroutine

   subroutine fsdp_unit_end_forward(unit, status)
      type(fsdp_unit), intent(in) :: unit
      integer, intent(out), optional :: status

      call finish(c_unit_end_forward(address(unit)), 'fsdp_unit_end_forward', unit, status)
   end subroutine

   subroutine fsdp_unit_begin_backward(unit, status)
      type(fsdp_unit), intent(in) :: unit
      integer, intent(out), optional :: status

      call finish(c_unit_begin_backward(address(unit)), 'fsdp_unit_begin_backward', unit, status)
   end subroutine

   subroutine fsdp_unit_end_backward(unit, status)
      type(fsdp_unit), intent(in) :: unit
      integer, intent(out), optional :: status

      call finish(c_unit_end_backward(address(unit)), 'fsdp_unit_end_backward', unit, status)
   end subroutine

   ! `sync` is FSDP_SYNC_NONE, FSDP_SYNC_ALL or FSDP_SYNC_GROUP.
   subroutine fsdp_model_set_sync(model, sync, status)
      type(fsdp_model), intent(in) :: model
      integer, intent(in) :: sync
      integer, intent(out), optional :: status

      call finish(c_model_set_sync(address(model), sync), 'fsdp_model_set_sync', model, status)
   end subroutine

   subroutine fsdp_model_keep_gathered(model, on, status)
      type(fsdp_model), intent(in) :: model
      logical, intent(in) :: on
      integer, intent(out), optional :: status

      call finish(c_model_keep_gathered(address(model), flag(on)), 'fsdp_model_keep_gathered', model, status)
   end subroutine

   subroutine fsdp_model_replay(model, status)
      type(fsdp_model), intent(in) :: model
      integer, intent(out), optional :: status

      call finish(c_model_replay(address(model)), 'fsdp_model_replay', model, status)
   end subroutine

   subroutine fsdp_model_zero_grad(model, status)
      type(fsdp_model), intent(in) :: model
      integer, intent(out), optional :: status

      call finish(c_model_zero_grad(address(model)), 'fsdp_model_zero_grad', model, status)
   end subroutine

   subroutine fsdp_model_shards_changed(model, status)
      type(fsdp_model), intent(in) :: model
      integer, intent(out), optional :: status

      call finish(c_model_shards_changed(address(model)), 'fsdp_model_shards_changed', model, status)
   end subroutine

   subroutine fsdp_model_hash(model, hash, status)
      type(fsdp_model), intent(in) :: model
      integer(c_int64_t), intent(out) :: hash
      integer, intent(out), optional :: status

      hash = 0
      call finish(c_model_hash(address(model), hash), 'fsdp_model_hash', model, status)
   end subroutine

   ! ---- gradients

   subroutine fsdp_clip_grad_norm(model, max_norm, norm, status)
      type(fsdp_model), intent(in) :: model
      real(c_double), intent(in) :: max_norm
      real(c_double), intent(out), optional :: norm
      integer, intent(out), optional :: status
      real(c_double) :: found
      integer(c_int) :: code

      found = 0
      code = c_clip_grad_norm(address(model), max_norm, found)
      if (present(norm)) norm = found
      call finish(code, 'fsdp_clip_grad_norm', model, status)
   end subroutine

   subroutine fsdp_clip_grad_norm_inf(model, max_norm, norm, status)
      type(fsdp_model), intent(in) :: model
      real(c_double), intent(in) :: max_norm
      real(c_double), intent(out), optional :: norm
      integer, intent(out), optional :: status
      real(c_double) :: found
      integer(c_int) :: code

      found = 0
      code = c_clip_grad_norm_inf(address(model), max_norm, found)
      if (present(norm)) norm = found
      call finish(code, 'fsdp_clip_grad_norm_inf', model, status)
   end subroutine

   subroutine fsdp_clip_grad_value(model, limit, status)
      type(fsdp_model), intent(in) :: model
      real(c_double), intent(in) :: limit
      integer, intent(out), optional :: status

      call finish(c_clip_grad_value(address(model), limit), 'fsdp_clip_grad_value', model, status)
   end subroutine

   subroutine fsdp_clip_grad_with_norm(model, max_norm, norm, status)
      type(fsdp_model), intent(in) :: model
      real(c_double), intent(in) :: max_norm, norm
      integer, intent(out), optional :: status

      call finish(c_clip_grad_with_norm(address(model), max_norm, norm), 'fsdp_clip_grad_with_norm', model, status)
   end subroutine

   subroutine fsdp_scale_grad(model, factor, status)
      type(fsdp_model), intent(in) :: model
      real(c_double), intent(in) :: factor
      integer, intent(out), optional :: status

      call finish(c_scale_grad(address(model), factor), 'fsdp_scale_grad', model, status)
   end subroutine

   subroutine grad_norm(model, norm, status)
      type(fsdp_model), intent(in) :: model
      real(c_double), intent(out) :: norm
      integer, intent(out), optional :: status

      call grad_norm_of_models([model], norm, status)
   end subroutine

   subroutine grad_norm_of_models(models, norm, status)
      type(fsdp_model), intent(in) :: models(:)
      real(c_double), intent(out) :: norm
      integer, intent(out), optional :: status
      type(c_ptr) :: all(size(models))
      integer :: i

      norm = 0
      do i = 1, size(models)
         all(i) = address(models(i))
      end do
      if (size(models) == 0) then
         call refuse('there is no model', 'fsdp_grad_norm', status=status)
      else
         call finish(c_grad_norm(all, size(models, kind=c_size_t), norm), 'fsdp_grad_norm', models(1), status)
      end if
   end subroutine

   ! Fills in the first elements of `norms`; `n` is the number of tensors, which may be larger.
   subroutine fsdp_grad_norm_per_tensor(model, norms, n, status)
      type(fsdp_model), intent(in) :: model
      type(fsdp_tensor_norm), intent(out) :: norms(:)
      integer, intent(out), optional :: n
      integer, intent(out), optional :: status
      integer(c_size_t) :: found
      integer(c_int) :: code

      found = 0
      code = c_grad_norm_per_tensor(address(model), norms, size(norms, kind=c_size_t), found)
      if (present(n)) n = int(found)
      call finish(code, 'fsdp_grad_norm_per_tensor', model, status)
   end subroutine

   subroutine fsdp_model_set_gradient_divisor(model, divisor, status)
      type(fsdp_model), intent(in) :: model
      real(c_double), intent(in) :: divisor
      integer, intent(out), optional :: status

      call finish(c_model_set_gradient_divisor(address(model), divisor), 'fsdp_model_set_gradient_divisor', model, &
                  status)
   end subroutine

   subroutine fsdp_model_sum_gradient_divisor(model, share, sum, status)
      type(fsdp_model), intent(in) :: model
      real(c_double), intent(in) :: share
      real(c_double), intent(out), optional :: sum
      integer, intent(out), optional :: status
      real(c_double) :: found
      integer(c_int) :: code

      found = 0
      code = c_model_sum_gradient_divisor(address(model), share, found)
      if (present(sum)) sum = found
      call finish(code, 'fsdp_model_sum_gradient_divisor', model, status)
   end subroutine
end module
