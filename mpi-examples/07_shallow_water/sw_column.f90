! The expensive term: what the bottom takes from the flow. Each cell's column of water is divided into levels, and its
! steady profile is found by iteration: velocities from the viscosity of the turbulence, its energy from production,
! diffusion and dissipation (one equation, with a mixing length), the viscosity from that energy, until they agree.
module sw_column
   use sw_grid, only: dp
   implicit none
   private
   public :: column_stress

   integer, parameter :: LEVELS = 32, MOST_ITERATIONS = 200
   real(dp), parameter :: TOLERANCE = 1e-6_dp
   real(dp), parameter :: KAPPA = 0.4_dp         ! von Karman's constant
   real(dp), parameter :: ROUGHNESS = 0.003_dp   ! of the bottom, in m
   ! viscosity = C * length * sqrt(energy), dissipation = C**3 * energy**1.5 / length
   real(dp), parameter :: C = 0.55_dp
   real(dp), parameter :: VISCOSITY = 1e-5_dp    ! of still water, with what is left of waves, in m2/s
   real(dp), parameter :: SHARE = 0.5_dp         ! of the horizontal shear in the production
   real(dp), parameter :: LEAST_SPEED = 1e-3_dp  ! above the bottom, in m/s, so that there is friction at rest too
   real(dp), parameter :: LEAST_ENERGY = 1e-8_dp

   type :: profile
      real(dp) :: h, dz, u, v, wind_x, wind_y, shear2, drag
      real(dp) :: height(0:LEVELS), length(0:LEVELS)    ! between levels
      real(dp) :: energy(0:LEVELS), viscosity(0:LEVELS)
      real(dp) :: friction                              ! stress at the bottom over the velocity there
      real(dp) :: slope_x, slope_y                      ! the force that keeps the mean velocity up
   end type

contains

   ! Stress at the bottom over density, in m2/s2, of a column of depth `h` with the mean velocity (u, v), under the
   ! wind's stress and with the square of the horizontal shear.
   pure subroutine column_stress(h, u, v, shear2, wind_x, wind_y, stress_x, stress_y)
      real(dp), intent(in) :: h, u, v, shear2, wind_x, wind_y
      real(dp), intent(out) :: stress_x, stress_y
      type(profile) :: p
      real(dp) :: change
      integer :: i

      call start(p, h, u, v, shear2, wind_x, wind_y)
      do i = 1, MOST_ITERATIONS
         change = 0
         call find_velocity(p, change)
         call find_energy(p, change)
         if (change <= TOLERANCE) exit
      end do
      stress_x = p%slope_x * h + wind_x
      stress_y = p%slope_y * h + wind_y
   end subroutine

   pure subroutine start(p, h, u, v, shear2, wind_x, wind_y)
      type(profile), intent(out) :: p
      real(dp), intent(in) :: h, u, v, shear2, wind_x, wind_y
      real(dp) :: speed
      integer :: k

      p%h = h
      p%dz = h / LEVELS
      p%u = u
      p%v = v
      p%wind_x = wind_x
      p%wind_y = wind_y
      p%shear2 = SHARE * shear2
      p%drag = (KAPPA / log((0.5_dp * p%dz + ROUGHNESS) / ROUGHNESS))**2
      speed = sqrt(u * u + v * v)
      p%friction = p%drag * (speed + LEAST_SPEED)
      do k = 0, LEVELS
         p%height(k) = k * p%dz
         p%length(k) = KAPPA * (p%height(k) + ROUGHNESS) * sqrt(max(1 - p%height(k) / h, 0.05_dp))
         p%energy(k) = (0.0025_dp * speed * speed + sqrt(wind_x * wind_x + wind_y * wind_y)) / C**2 + LEAST_ENERGY
         p%viscosity(k) = VISCOSITY + C * p%length(k) * sqrt(p%energy(k))
      end do
   end subroutine

   ! The profile is a sum of two: of a force of 1 along the column, and of a stress of 1 at the surface. Stresses
   ! between levels are linear in height.
   pure subroutine find_velocity(p, change)
      type(profile), intent(inout) :: p
      real(dp), intent(inout) :: change
      real(dp) :: force, surface, mean_force, mean_surface, x, y, friction
      integer :: k

      force = p%h / p%friction
      surface = 1 / p%friction
      mean_force = force
      mean_surface = surface
      do k = 1, LEVELS - 1
         force = force + p%dz * (p%h - p%height(k)) / p%viscosity(k)
         surface = surface + p%dz / p%viscosity(k)
         mean_force = mean_force + force
         mean_surface = mean_surface + surface
      end do
      mean_force = mean_force / LEVELS
      mean_surface = mean_surface / LEVELS
      p%slope_x = (p%u - p%wind_x * mean_surface) / mean_force
      p%slope_y = (p%v - p%wind_y * mean_surface) / mean_force
      x = (p%slope_x * p%h + p%wind_x) / p%friction
      y = (p%slope_y * p%h + p%wind_y) / p%friction
      friction = p%drag * (sqrt(x * x + y * y) + LEAST_SPEED)
      change = max(change, abs(friction - p%friction) / p%friction)
      p%friction = 0.5_dp * (p%friction + friction)
   end subroutine

   ! One tridiagonal system: diffusion and dissipation are implicit. At the bottom and at the surface, production is
   ! dissipation.
   pure subroutine find_energy(p, change)
      type(profile), intent(inout) :: p
      real(dp), intent(inout) :: change
      real(dp) :: x, y, below, above, diagonal, right, upper(0:LEVELS), energy(0:LEVELS)
      integer :: k

      x = p%slope_x * p%h + p%wind_x
      y = p%slope_y * p%h + p%wind_y
      energy(0) = sqrt(x * x + y * y) / C**2 + LEAST_ENERGY
      energy(LEVELS) = sqrt(p%wind_x * p%wind_x + p%wind_y * p%wind_y) / C**2 + LEAST_ENERGY
      upper(0) = 0
      do k = 1, LEVELS - 1
         x = (p%slope_x * (p%h - p%height(k)) + p%wind_x) / p%viscosity(k)
         y = (p%slope_y * (p%h - p%height(k)) + p%wind_y) / p%viscosity(k)
         below = 0.5_dp * (p%viscosity(k - 1) + p%viscosity(k)) / (p%dz * p%dz)
         above = 0.5_dp * (p%viscosity(k) + p%viscosity(k + 1)) / (p%dz * p%dz)
         diagonal = below + above + C**3 * sqrt(p%energy(k)) / p%length(k)
         right = p%viscosity(k) * (x * x + y * y + p%shear2)
         diagonal = diagonal - below * upper(k - 1)
         upper(k) = above / diagonal
         energy(k) = (right + below * energy(k - 1)) / diagonal
      end do
      do k = LEVELS - 1, 1, -1
         energy(k) = max(energy(k) + upper(k) * energy(k + 1), LEAST_ENERGY)
      end do
      do k = 0, LEVELS
         change = max(change, abs(energy(k) - p%energy(k)) / (energy(k) + p%energy(k)))
         p%energy(k) = 0.5_dp * (p%energy(k) + energy(k))
         p%viscosity(k) = VISCOSITY + C * p%length(k) * sqrt(p%energy(k))
      end do
   end subroutine
end module
