! Shallow water on a rotating plane, on a staggered grid: depths in the middle of cells, velocities on their western and
! southern faces. One step forward for depths, then one for velocities with the new surface.
module sw_flow
   use mpi_f08
   use sw_grid
   use sw_column
   implicit none
   private
   public :: flow, flow_open, flow_prepare, flow_term, flow_advance, flow_sums, flow_hash

   real(dp), parameter, public :: DEPTH = 20            ! of water at rest in the mean, in m
   real(dp), parameter :: DX = 1000                     ! size of a cell, in m
   real(dp), parameter :: DT = 20                       ! time step, in s
   real(dp), parameter :: GRAVITY = 9.81_dp, CORIOLIS = 1e-4_dp
   real(dp), parameter :: VISCOSITY = 50                ! from side to side, in m2/s
   real(dp), parameter :: WIND_X = 1.5e-4_dp, WIND_Y = 5e-5_dp ! its stress over density, in m2/s2
   real(dp), parameter :: TWO_PI = 6.283185307179586_dp

   type :: flow
      real(dp), allocatable :: bottom(:, :)               ! depth of water at rest
      real(dp), allocatable :: h(:, :), u(:, :), v(:, :)  ! depth, and velocities on the western and southern faces
      real(dp), allocatable :: x(:, :), y(:, :)           ! velocities in the middle
      real(dp), allocatable :: stress_x(:, :), stress_y(:, :) ! at the bottom, in the middle
      real(dp), allocatable, private :: new_h(:, :), new_u(:, :), new_v(:, :)
   end type

contains

   ! False if there is no memory for it.
   logical function flow_open(f, g) result(good)
      type(flow), intent(out) :: f
      type(grid), intent(in) :: g
      real(dp) :: x, y
      integer :: i, j, status

      associate (w => 1 - HALO, e => g%n + HALO, s => 1 - HALO, n => g%m + HALO)
         allocate (f%bottom(w:e, s:n), f%h(w:e, s:n), f%u(w:e, s:n), f%v(w:e, s:n), f%x(w:e, s:n), f%y(w:e, s:n), &
                   f%stress_x(w:e, s:n), f%stress_y(w:e, s:n), f%new_h(w:e, s:n), f%new_u(w:e, s:n), &
                   f%new_v(w:e, s:n), stat=status)
      end associate
      good = status == 0
      if (.not. good) return
      do j = 1 - HALO, g%m + HALO
         y = (modulo(g%south_of + j - 1, g%ny) + 0.5_dp) / g%ny
         do i = 1 - HALO, g%n + HALO
            x = (modulo(g%west_of + i - 1, g%nx) + 0.5_dp) / g%nx
            f%bottom(i, j) = DEPTH + 4 * sin(TWO_PI * x) * cos(TWO_PI * y)
            f%h(i, j) = f%bottom(i, j) + hill(x, y, 0.3_dp, 0.35_dp) - 0.7_dp * hill(x, y, 0.7_dp, 0.6_dp)
            f%u(i, j) = 0.3_dp * sin(TWO_PI * y)
            f%v(i, j) = 0.2_dp * sin(TWO_PI * x)
         end do
      end do
   end function

   pure real(dp) function hill(x, y, at_x, at_y)
      real(dp), intent(in) :: x, y, at_x, at_y

      hill = exp(-((x - at_x)**2 + (y - at_y)**2) / 0.01_dp)
   end function

   ! What the term and its surrogate are computed from: fields of the neighbours, and velocities in the middle of cells.
   subroutine flow_prepare(f, g)
      type(flow), intent(inout) :: f
      type(grid), intent(in) :: g
      integer :: i, j

      call grid_exchange(g, f%h)
      call grid_exchange(g, f%u)
      call grid_exchange(g, f%v)
      do j = 0, g%m + 1
         do i = 0, g%n + 1
            f%x(i, j) = 0.5_dp * (f%u(i, j) + f%u(i + 1, j))
            f%y(i, j) = 0.5_dp * (f%v(i, j) + f%v(i, j + 1))
         end do
      end do
   end subroutine

   ! The term itself, cell by cell.
   subroutine flow_term(f, g)
      type(flow), intent(inout) :: f
      type(grid), intent(in) :: g
      real(dp) :: stretch, shear
      integer :: i, j

      do j = 1, g%m
         do i = 1, g%n
            stretch = (f%x(i + 1, j) - f%x(i - 1, j) - f%y(i, j + 1) + f%y(i, j - 1)) / (2 * DX)
            shear = (f%x(i, j + 1) - f%x(i, j - 1) + f%y(i + 1, j) - f%y(i - 1, j)) / (2 * DX)
            call column_stress(f%h(i, j), f%x(i, j), f%y(i, j), stretch * stretch + shear * shear, WIND_X, WIND_Y, &
                               f%stress_x(i, j), f%stress_y(i, j))
         end do
      end do
   end subroutine

   ! One time step, with the stress that the term or its surrogate has left.
   subroutine flow_advance(f, g)
      type(flow), intent(inout) :: f
      type(grid), intent(in) :: g

      call grid_exchange(g, f%stress_x)
      call grid_exchange(g, f%stress_y)
      call advance_depth(f, g)
      call advance_u(f, g)
      call advance_v(f, g)
      f%h(1:g%n, 1:g%m) = f%new_h(1:g%n, 1:g%m)
      f%u(1:g%n, 1:g%m) = f%new_u(1:g%n, 1:g%m)
      f%v(1:g%n, 1:g%m) = f%new_v(1:g%n, 1:g%m)
   end subroutine

   subroutine advance_depth(f, g)
      type(flow), intent(inout) :: f
      type(grid), intent(in) :: g
      integer :: i, j

      associate (h => f%h, u => f%u, v => f%v)
         do j = 0, g%m + 1
            do i = 0, g%n + 1
               f%new_h(i, j) = h(i, j) - 0.5_dp * DT / DX * ( &
                               u(i + 1, j) * (h(i, j) + h(i + 1, j)) - u(i, j) * (h(i - 1, j) + h(i, j)) + &
                               v(i, j + 1) * (h(i, j) + h(i, j + 1)) - v(i, j) * (h(i, j - 1) + h(i, j)))
            end do
         end do
      end associate
   end subroutine

   ! Pressure and kinetic energy per mass.
   pure real(dp) function head(f, i, j)
      type(flow), intent(in) :: f
      integer, intent(in) :: i, j

      head = GRAVITY * (f%new_h(i, j) - f%bottom(i, j)) + 0.5_dp * (f%x(i, j) * f%x(i, j) + f%y(i, j) * f%y(i, j))
   end function

   ! At the south-western corner of a cell.
   pure real(dp) function vorticity(f, i, j)
      type(flow), intent(in) :: f
      integer, intent(in) :: i, j

      vorticity = (f%v(i, j) - f%v(i - 1, j) - f%u(i, j) + f%u(i, j - 1)) / DX
   end function

   subroutine advance_u(f, g)
      type(flow), intent(inout) :: f
      type(grid), intent(in) :: g
      real(dp) :: turning, across, spreading, friction
      integer :: i, j

      associate (h => f%h, u => f%u, v => f%v)
         do j = 1, g%m
            do i = 1, g%n
               turning = CORIOLIS + 0.5_dp * (vorticity(f, i, j) + vorticity(f, i, j + 1))
               across = 0.25_dp * (v(i - 1, j) + v(i, j) + v(i - 1, j + 1) + v(i, j + 1))
               spreading = VISCOSITY / (DX * DX) * (u(i - 1, j) + u(i + 1, j) + u(i, j - 1) + u(i, j + 1) - 4 * u(i, j))
               friction = (2 * WIND_X - f%stress_x(i - 1, j) - f%stress_x(i, j)) / (h(i - 1, j) + h(i, j))
               f%new_u(i, j) = u(i, j) + DT * (turning * across - (head(f, i, j) - head(f, i - 1, j)) / DX + &
                                               spreading + friction)
            end do
         end do
      end associate
   end subroutine

   subroutine advance_v(f, g)
      type(flow), intent(inout) :: f
      type(grid), intent(in) :: g
      real(dp) :: turning, across, spreading, friction
      integer :: i, j

      associate (h => f%h, u => f%u, v => f%v)
         do j = 1, g%m
            do i = 1, g%n
               turning = CORIOLIS + 0.5_dp * (vorticity(f, i, j) + vorticity(f, i + 1, j))
               across = 0.25_dp * (u(i, j - 1) + u(i, j) + u(i + 1, j - 1) + u(i + 1, j))
               spreading = VISCOSITY / (DX * DX) * (v(i - 1, j) + v(i + 1, j) + v(i, j - 1) + v(i, j + 1) - 4 * v(i, j))
               friction = (2 * WIND_Y - f%stress_y(i, j - 1) - f%stress_y(i, j)) / (h(i, j - 1) + h(i, j))
               f%new_v(i, j) = v(i, j) + DT * (-turning * across - (head(f, i, j) - head(f, i, j - 1)) / DX + &
                                               spreading + friction)
            end do
         end do
      end associate
   end subroutine

   ! ---- what is looked at

   ! This rank's part of the volume, in m3, and of the energy over density, in m5/s2, above water at rest.
   pure function flow_sums(f, g) result(sums)
      type(flow), intent(in) :: f
      type(grid), intent(in) :: g
      real(dp) :: sums(2), surface
      integer :: i, j

      sums = 0
      do j = 1, g%m
         do i = 1, g%n
            surface = f%h(i, j) - f%bottom(i, j)
            sums(1) = sums(1) + f%h(i, j)
            sums(2) = sums(2) + 0.5_dp * (f%h(i, j) * (f%u(i, j)**2 + f%v(i, j)**2) + GRAVITY * surface**2)
         end do
      end do
      sums = sums * DX * DX
   end function

   ! The same for any division of the basin: the bits of all fields, each turned by its place.
   pure integer(8) function flow_hash(f, g) result(hash)
      type(flow), intent(in) :: f
      type(grid), intent(in) :: g
      integer :: i, j, place

      hash = 0
      do j = 1, g%m
         do i = 1, g%n
            place = mod(3 * (g%west_of + i) + 19 * mod(g%south_of + j, 64), 64)
            hash = ieor(hash, ishftc(transfer(f%h(i, j), hash), mod(place, 64)))
            hash = ieor(hash, ishftc(transfer(f%u(i, j), hash), mod(place + 1, 64)))
            hash = ieor(hash, ishftc(transfer(f%v(i, j), hash), mod(place + 2, 64)))
         end do
      end do
   end function
end module
