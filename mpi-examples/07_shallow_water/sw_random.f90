! Random numbers that are functions of what they are for, so that they are the same on any number of ranks.
module sw_random
   use, intrinsic :: iso_fortran_env, only: int64
   implicit none
   private
   public :: random_of

   integer(int64), parameter :: MASK = int(z'FFFFFFFF', int64)

contains

   ! From 0 up to 1. Keys are not negative.
   pure double precision function random_of(keys)
      integer(int64), intent(in) :: keys(:)
      integer(int64) :: x
      integer :: i

      x = 0
      do i = 1, size(keys)
         x = scrambled(iand(x * 31 + keys(i) + 1, MASK))
      end do
      random_of = real(x, kind(1d0)) / 4294967296d0
   end function

   ! Of 32 bits; the multiplier is small enough for products of 63.
   pure integer(int64) function scrambled(x)
      integer(int64), intent(in) :: x

      scrambled = iand(ieor(x, ishft(x, -16)) * int(z'45D9F3B', int64), MASK)
      scrambled = iand(ieor(scrambled, ishft(scrambled, -16)) * int(z'45D9F3B', int64), MASK)
      scrambled = ieor(scrambled, ishft(scrambled, -16))
   end function
end module
