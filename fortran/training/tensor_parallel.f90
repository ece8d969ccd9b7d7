! Layers divided over ranks, fsdp/tensor_parallel.h. Activations are given by their addresses (c_loc) and by what they are: in
! Fortran's order a row is the first dimension, as x(width, rows). Words count from 0, as in C and in files of tokens.
module fsdp_tensor_parallel
   use, intrinsic :: iso_c_binding
   use fsdp_constants
   use fsdp_structs
   use fsdp_base
   use fsdp_collectives, only: fsdp_request
   implicit none
   private

   public :: fsdp_tp_begin, fsdp_tp_cross_entropy, fsdp_tp_embed, fsdp_tp_embed_backward, fsdp_tp_end, fsdp_tp_ibegin
   public :: fsdp_tp_iend, fsdp_tp_part

   interface
      integer(c_int) function c_tp_part(tp, n, begin, count) bind(C, name="fsdp_tp_part")
         import :: c_int, c_ptr, c_size_t
         type(c_ptr), value             :: tp
         integer(c_size_t), value       :: n
         integer(c_size_t), intent(out) :: begin, count
      end function

      integer(c_int) function c_tp_begin(tp, activations, in, out) bind(C, name="fsdp_tp_begin")
         import :: c_int, c_ptr, fsdp_tp_activations
         type(c_ptr), value                    :: tp, in, out
         type(fsdp_tp_activations), intent(in) :: activations
      end function

      integer(c_int) function c_tp_ibegin(tp, activations, in, out, request) bind(C, name="fsdp_tp_ibegin")
         import :: c_int, c_ptr, fsdp_tp_activations
         type(c_ptr), value                    :: tp, in, out
         type(fsdp_tp_activations), intent(in) :: activations
         type(c_ptr), intent(out)              :: request
      end function

      integer(c_int) function c_tp_end(tp, activations, partial, out) bind(C, name="fsdp_tp_end")
         import :: c_int, c_ptr, fsdp_tp_activations
         type(c_ptr), value                    :: tp, partial, out
         type(fsdp_tp_activations), intent(in) :: activations
      end function

      integer(c_int) function c_tp_iend(tp, activations, partial, out, request) bind(C, name="fsdp_tp_iend")
         import :: c_int, c_ptr, fsdp_tp_activations
         type(c_ptr), value                    :: tp, partial, out
         type(fsdp_tp_activations), intent(in) :: activations
         type(c_ptr), intent(out)              :: request
      end function

      integer(c_int) function c_tp_embed(tp, activations, words, vocabulary, table, out) bind(C, name="fsdp_tp_embed")
         import :: c_int, c_int32_t, c_ptr, c_size_t, fsdp_tp_activations
         type(c_ptr), value                    :: tp, table, out
         type(fsdp_tp_activations), intent(in) :: activations
         integer(c_int32_t), intent(in)        :: words(*)
         integer(c_size_t), value              :: vocabulary
      end function

      integer(c_int) function c_tp_embed_backward(tp, activations, words, vocabulary, d_out, d_table&
            ) bind(C, name="fsdp_tp_embed_backward")
         import :: c_int, c_int32_t, c_ptr, c_size_t, fsdp_tp_activations
         type(c_ptr), value                    :: tp, d_out, d_table
         type(fsdp_tp_activations), intent(in) :: activations
         integer(c_int32_t), intent(in)        :: words(*)
         integer(c_size_t), value              :: vocabulary
      end function

      integer(c_int) function c_tp_cross_entropy(tp, rows, vocabulary, dtype, targets, scale, logits, losses&
            ) bind(C, name="fsdp_tp_cross_entropy")
         import :: c_double, c_int, c_int32_t, c_ptr, c_size_t
         type(c_ptr), value             :: tp, logits
         integer(c_size_t), value       :: rows, vocabulary
         integer(c_int), value          :: dtype
         integer(c_int32_t), intent(in) :: targets(*)
         real(c_double), value          :: scale
         real(c_double), intent(out)    :: losses(*)
      end function
   end interface

contains

   ! `begin` counts from 0.
   subroutine fsdp_tp_part(tp, n, begin, count, status)
      type(fsdp_context), intent(in) :: tp
      integer(c_size_t), intent(in) :: n
      integer(c_size_t), intent(out) :: begin, count
      integer, intent(out), optional :: status

      begin = 0
      count = 0
      call finish(c_tp_part(address(tp), n, begin, count), 'fsdp_tp_part', tp, status)
   end subroutine

   subroutine fsdp_tp_begin(tp, activations, in, out, status)
      type(fsdp_context), intent(in) :: tp
      type(fsdp_tp_activations), intent(in) :: activations
      type(c_ptr), intent(in) :: in, out
      integer, intent(out), optional :: status

      call finish(c_tp_begin(address(tp), activations, in, out), 'fsdp_tp_begin', tp, status)
   end subroutine

   ! The request is null where nothing is exchanged; fsdp_wait() takes it all the same.
   subroutine fsdp_tp_ibegin(tp, activations, in, out, request, status)
      type(fsdp_context), intent(in) :: tp
      type(fsdp_tp_activations), intent(in) :: activations
      type(c_ptr), intent(in) :: in, out
      type(fsdp_request), intent(out) :: request
      integer, intent(out), optional :: status
      type(c_ptr) :: issued
      integer(c_int) :: code

      issued = c_null_ptr
      code = c_tp_ibegin(address(tp), activations, in, out, issued)
      call set_handle(request, issued, tp)
      call finish(code, 'fsdp_tp_ibegin', tp, status)
   end subroutine

   subroutine fsdp_tp_end(tp, activations, partial, out, status)
      type(fsdp_context), intent(in) :: tp
      type(fsdp_tp_activations), intent(in) :: activations
      type(c_ptr), intent(in) :: partial, out
      integer, intent(out), optional :: status

      call finish(c_tp_end(address(tp), activations, partial, out), 'fsdp_tp_end', tp, status)
   end subroutine

   subroutine fsdp_tp_iend(tp, activations, partial, out, request, status)
      type(fsdp_context), intent(in) :: tp
      type(fsdp_tp_activations), intent(in) :: activations
      type(c_ptr), intent(in) :: partial, out
      type(fsdp_request), intent(out) :: request
      integer, intent(out), optional :: status
      type(c_ptr) :: issued
      integer(c_int) :: code

      issued = c_null_ptr
      code = c_tp_iend(address(tp), activations, partial, out, issued)
      call set_handle(request, issued, tp)
      call finish(code, 'fsdp_tp_iend', tp, status)
   end subroutine

   subroutine fsdp_tp_embed(tp, activations, words, vocabulary, table, out, status)
      type(fsdp_context), intent(in) :: tp
      type(fsdp_tp_activations), intent(in) :: activations
      integer(c_int32_t), intent(in) :: words(*)
      integer(c_size_t), intent(in) :: vocabulary
      type(c_ptr), intent(in) :: table, out
      integer, intent(out), optional :: status

      call finish(c_tp_embed(address(tp), activations, words, vocabulary, table, out), 'fsdp_tp_embed', tp, status)
   end subroutine

   subroutine fsdp_tp_embed_backward(tp, activations, words, vocabulary, d_out, d_table, status)
      type(fsdp_context), intent(in) :: tp
      type(fsdp_tp_activations), intent(in) :: activations
      integer(c_int32_t), intent(in) :: words(*)
      integer(c_size_t), intent(in) :: vocabulary
      type(c_ptr), intent(in) :: d_out, d_table
      integer, intent(out), optional :: status

      call finish(c_tp_embed_backward(address(tp), activations, words, vocabulary, d_out, d_table), &
                  'fsdp_tp_embed_backward', tp, status)
   end subroutine

   ! One target and one loss for each row.
   subroutine fsdp_tp_cross_entropy(tp, vocabulary, dtype, targets, scale, logits, losses, status)
      type(fsdp_context), intent(in) :: tp
      integer(c_size_t), intent(in) :: vocabulary
      integer, intent(in) :: dtype
      integer(c_int32_t), intent(in) :: targets(:)
      real(c_double), intent(in) :: scale
      type(c_ptr), intent(in) :: logits
      real(c_double), intent(out) :: losses(size(targets))
      integer, intent(out), optional :: status

      losses = 0
      call finish(c_tp_cross_entropy(address(tp), size(targets, kind=c_size_t), vocabulary, dtype, targets, scale, &
                                     logits, losses), 'fsdp_tp_cross_entropy', tp, status)
   end subroutine
end module
