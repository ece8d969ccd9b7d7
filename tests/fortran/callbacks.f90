! What test_calls.f90 hands to the library.
module callbacks
   use, intrinsic :: iso_c_binding
   use fsdp
   implicit none
   public

   type :: counter
      integer :: calls = 0
   end type

contains

   ! Every element is its index in the tensor.
   integer(c_int) function fill_with_index(state, tensor, first, count, values, dtype) bind(C) result(status)
      type(c_ptr), value :: state, tensor, values
      integer(c_size_t), value :: first, count
      integer(c_int), value :: dtype
      real(c_float), pointer :: array(:)
      integer(c_size_t) :: i

      status = FSDP_ERR_ARG
      if (c_associated(state) .or. dtype /= FSDP_F32 .or. fsdp_string(tensor) /= 'u.w') return
      call c_f_pointer(values, array, [count])
      do i = 1, count
         array(i) = real(first + i - 1)
      end do
      status = FSDP_OK
   end function

   ! w = w - rate g, counted.
   integer(c_int) function descend(state, update) bind(C) result(status)
      type(c_ptr), value :: state
      type(fsdp_update), intent(in) :: update
      type(counter), pointer :: counted
      real(c_float), pointer :: w(:), g(:)

      call c_f_pointer(state, counted)
      call c_f_pointer(update%master, w, [update%count])
      call c_f_pointer(update%gradient, g, [update%count])
      counted%calls = counted%calls + 1
      w = w - real(update%lr, c_float) * g
      status = FSDP_OK
   end function

   ! Doubles the mean of gradients.
   integer(c_int) function double_it(state, gradient) bind(C) result(status)
      type(c_ptr), value :: state
      type(fsdp_gradient), intent(in) :: gradient
      real(c_float), pointer :: values(:)

      call c_f_pointer(gradient%values, values, [gradient%count])
      values = 2 * values
      status = merge(FSDP_OK, FSDP_ERR_STATE, .not. c_associated(state))
   end function

   subroutine count_line(state, level, rank, text) bind(C)
      type(c_ptr), value :: state
      integer(c_int), value :: level, rank
      type(c_ptr), value :: text
      type(counter), pointer :: counted

      call c_f_pointer(state, counted)
      if (level /= FSDP_LOG_ERROR .or. rank /= 0) return
      if (index(fsdp_string(text), 'allreduce') > 0) counted%calls = counted%calls + 1
   end subroutine
end module
