! Collectives on arrays, whose types and sizes say what C is told. One module for each type; `fsdp` makes them one.
module fsdp_reach
   use, intrinsic :: iso_c_binding
   use, intrinsic :: iso_fortran_env, only: error_unit
   implicit none
   private
   public :: at_root, end_of, entry, reach

contains

   ! The address that the library is given of an array: none, after a line on standard error, if it does not fit.
   type(c_ptr) function reach(array, what, fits)
      type(c_ptr), intent(in) :: array
      character(*), intent(in) :: what
      logical, intent(in) :: fits

      reach = array
      if (fits) return
      reach = c_null_ptr
      write (error_unit, '(a)') what // ': an array is not contiguous, or does not have the size that follows from the ' // &
                                'others and the number of ranks'
   end function

   ! Only the root of a reduction looks at its output.
   pure logical function at_root(rank, root, size, count)
      integer, intent(in) :: rank, root
      integer(c_size_t), intent(in) :: size, count

      at_root = rank /= root .or. size == count
   end function

   ! That of a rank; -1 if there is none.
   pure integer(c_size_t) function entry(counts, rank)
      integer(c_size_t), intent(in) :: counts(:)
      integer, intent(in) :: rank

      entry = -1
      if (rank >= 0 .and. rank < size(counts)) entry = counts(rank + 1)
   end function

   ! Of blocks, the end of the last one that is not empty.
   pure integer(c_size_t) function end_of(counts, displacements)
      integer(c_size_t), intent(in) :: counts(:), displacements(:)

      end_of = max(0_c_size_t, maxval(counts + displacements, mask=counts > 0))
   end function
end module

#define DTYPE_ARGUMENT

#define ELEMENT real(c_double)
#define DTYPE_DECLARATION integer(c_int), parameter :: dtype = FSDP_F64
module fsdp_collectives_of_f64
#include "collectives_of.inc"
end module
#undef ELEMENT
#undef DTYPE_DECLARATION

#define ELEMENT real(c_float)
#define DTYPE_DECLARATION integer(c_int), parameter :: dtype = FSDP_F32
module fsdp_collectives_of_f32
#include "collectives_of.inc"
end module
#undef ELEMENT
#undef DTYPE_DECLARATION

#define ELEMENT integer(c_int64_t)
#define DTYPE_DECLARATION integer(c_int), parameter :: dtype = FSDP_I64
module fsdp_collectives_of_i64
#include "collectives_of.inc"
end module
#undef ELEMENT
#undef DTYPE_DECLARATION

#define ELEMENT integer(c_int32_t)
#define DTYPE_DECLARATION integer(c_int), parameter :: dtype = FSDP_I32
module fsdp_collectives_of_i32
#include "collectives_of.inc"
end module
#undef ELEMENT
#undef DTYPE_DECLARATION

#define ELEMENT integer(c_int8_t)
#define DTYPE_DECLARATION integer(c_int), parameter :: dtype = FSDP_U8
module fsdp_collectives_of_u8
#include "collectives_of.inc"
end module
#undef ELEMENT
#undef DTYPE_ARGUMENT
#undef DTYPE_DECLARATION

! The bits of bf16 or f16, as `dtype` says.
#define ELEMENT integer(c_int16_t)
#define DTYPE_ARGUMENT , dtype
#define DTYPE_DECLARATION integer, intent(in) :: dtype
module fsdp_collectives_of_16_bits
#include "collectives_of.inc"
end module
