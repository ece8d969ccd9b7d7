! What the surrogate sees of the flow: the depth and the velocity of a cell and its eight neighbours, and the stress
! that the term finds there, in numbers of about 1.
module sw_samples
   use, intrinsic :: iso_fortran_env, only: int64
   use sw_grid
   use sw_flow
   use sw_random
   implicit none
   private
   public :: samples_draw, samples_all, samples_use, INPUTS, OUTPUTS

   integer, parameter :: INPUTS = 27, OUTPUTS = 2
   real(dp), parameter :: DEPTH_SCALE = 4, SPEED_SCALE = 0.5_dp, STRESS_SCALE = 2e-4_dp

contains

   ! Those of `batch` cells, drawn from the whole basin, that are this rank's: `n` of them, maybe none.
   subroutine samples_draw(f, g, seed, step, update, batch, x, y, n)
      type(flow), intent(in) :: f
      type(grid), intent(in) :: g
      integer, intent(in) :: seed, step, update, batch
      real, intent(inout) :: x(:, :), y(:, :)
      integer, intent(out) :: n
      integer :: i, j, s
      integer(int64) :: cell

      n = 0
      do s = 1, batch
         cell = int(random_of(int([seed, 0, step, update, s], int64)) * g%nx * g%ny, int64)
         i = int(mod(cell, int(g%nx, int64))) - g%west_of + 1
         j = int(cell / g%nx) - g%south_of + 1
         if (i >= 1 .and. i <= g%n .and. j >= 1 .and. j <= g%m) then
            n = n + 1
            call look(f, i, j, x(:, n))
            y(:, n) = real([f%stress_x(i, j), f%stress_y(i, j)] / STRESS_SCALE)
         end if
      end do
   end subroutine

   ! The inputs of all cells of this rank.
   subroutine samples_all(f, g, x)
      type(flow), intent(in) :: f
      type(grid), intent(in) :: g
      real, intent(inout) :: x(:, :)
      integer :: i, j

      do j = 1, g%m
         do i = 1, g%n
            call look(f, i, j, x(:, (j - 1) * g%n + i))
         end do
      end do
   end subroutine

   ! Takes the stress of all cells of this rank from the surrogate's outputs.
   subroutine samples_use(y, f, g)
      real, intent(in) :: y(:, :)
      type(flow), intent(inout) :: f
      type(grid), intent(in) :: g
      integer :: j

      do j = 1, g%m
         f%stress_x(1:g%n, j) = y(1, (j - 1) * g%n + 1:j * g%n) * STRESS_SCALE
         f%stress_y(1:g%n, j) = y(2, (j - 1) * g%n + 1:j * g%n) * STRESS_SCALE
      end do
   end subroutine

   subroutine look(f, i, j, x)
      type(flow), intent(in) :: f
      integer, intent(in) :: i, j
      real, intent(out) :: x(INPUTS)

      x(1:9) = real(reshape((f%h(i - 1:i + 1, j - 1:j + 1) - DEPTH) / DEPTH_SCALE, [9]))
      x(10:18) = real(reshape(f%x(i - 1:i + 1, j - 1:j + 1) / SPEED_SCALE, [9]))
      x(19:27) = real(reshape(f%y(i - 1:i + 1, j - 1:j + 1) / SPEED_SCALE, [9]))
   end subroutine
end module
