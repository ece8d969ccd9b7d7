! The basin, divided over a grid of ranks: a rectangle of cells each, with layers of its neighbours' cells around it.
! The basin is periodic in both directions.
module sw_grid
   use mpi_f08
   implicit none
   private
   public :: grid, grid_open, grid_close, grid_exchange, dp, HALO

   integer, parameter :: dp = kind(1d0)
   integer, parameter :: HALO = 2 ! layers around a rank's cells

   type :: grid
      type(MPI_Comm) :: comm = MPI_COMM_NULL
      integer :: rank = 0, size = 1
      integer :: dims(2) = 0                          ! ranks from west to east, and from south to north
      integer :: west = 0, east = 0, south = 0, north = 0
      integer :: nx = 0, ny = 0                       ! cells of the basin
      integer :: west_of = 0, south_of = 0            ! cells before the first of this rank
      integer :: n = 0, m = 0                         ! cells of this rank
      type(MPI_Datatype) :: columns, rows             ! HALO layers of cells in each direction
   end type

contains

   ! False if a rank would have fewer cells than its neighbours need of it.
   logical function grid_open(g, nx, ny) result(good)
      type(grid), intent(out) :: g
      integer, intent(in) :: nx, ny
      integer :: coords(2)

      call MPI_Comm_size(MPI_COMM_WORLD, g%size)
      call MPI_Dims_create(g%size, 2, g%dims)
      if (nx >= ny) g%dims = [maxval(g%dims), minval(g%dims)]
      if (nx < ny) g%dims = [minval(g%dims), maxval(g%dims)]
      g%nx = nx
      g%ny = ny
      good = nx >= HALO * g%dims(1) .and. ny >= HALO * g%dims(2)
      if (.not. good) return
      call MPI_Cart_create(MPI_COMM_WORLD, 2, g%dims, [.true., .true.], .true., g%comm)
      call MPI_Comm_rank(g%comm, g%rank)
      call MPI_Cart_coords(g%comm, g%rank, 2, coords)
      call MPI_Cart_shift(g%comm, 0, 1, g%west, g%east)
      call MPI_Cart_shift(g%comm, 1, 1, g%south, g%north)
      g%west_of = first(nx, g%dims(1), coords(1))
      g%south_of = first(ny, g%dims(2), coords(2))
      g%n = first(nx, g%dims(1), coords(1) + 1) - g%west_of
      g%m = first(ny, g%dims(2), coords(2) + 1) - g%south_of
      call MPI_Type_vector(g%m, HALO, g%n + 2 * HALO, MPI_DOUBLE_PRECISION, g%columns)
      call MPI_Type_commit(g%columns)
      call MPI_Type_contiguous(HALO * (g%n + 2 * HALO), MPI_DOUBLE_PRECISION, g%rows)
      call MPI_Type_commit(g%rows)
   end function

   pure integer function first(cells, parts, i)
      integer, intent(in) :: cells, parts, i

      first = int(int(cells, kind(1_8)) * i / parts)
   end function

   subroutine grid_close(g)
      type(grid), intent(inout) :: g

      call MPI_Type_free(g%columns)
      call MPI_Type_free(g%rows)
      call MPI_Comm_free(g%comm)
   end subroutine

   ! Fills the layers around a field from the neighbours: first to the sides, then up and down with the corners.
   subroutine grid_exchange(g, f)
      type(grid), intent(in) :: g
      real(dp), intent(inout), contiguous :: f(1 - HALO:, 1 - HALO:)

      call MPI_Sendrecv(f(1, 1), 1, g%columns, g%west, 1, f(g%n + 1, 1), 1, g%columns, g%east, 1, &
                        g%comm, MPI_STATUS_IGNORE)
      call MPI_Sendrecv(f(g%n + 1 - HALO, 1), 1, g%columns, g%east, 2, f(1 - HALO, 1), 1, g%columns, g%west, 2, &
                        g%comm, MPI_STATUS_IGNORE)
      call MPI_Sendrecv(f(1 - HALO, 1), 1, g%rows, g%south, 3, f(1 - HALO, g%m + 1), 1, g%rows, g%north, 3, &
                        g%comm, MPI_STATUS_IGNORE)
      call MPI_Sendrecv(f(1 - HALO, g%m + 1 - HALO), 1, g%rows, g%north, 4, f(1 - HALO, 1 - HALO), 1, g%rows, g%south, &
                        4, g%comm, MPI_STATUS_IGNORE)
   end subroutine
end module
