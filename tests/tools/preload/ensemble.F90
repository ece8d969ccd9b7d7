! An ensemble of simulations, as weather centres run them, that knows nothing of libfsdp: each rank carries one member of a
! chaotic model (Lorenz, 1996) forward, and after each step all of them need the ensemble's mean, which they are drawn towards,
! and each its own slice of the variance. Two long reductions per step, and little else to wait for.
program ensemble
  use mpi_f08
  implicit none
  integer, parameter :: dp = kind(1d0), n = 1000000, steps = 10
  real(dp), parameter :: forcing = 8, dt = 0.005_dp, nudge = 0.1_dp
  real(dp), allocatable :: x(:), mean(:), square(:), slice(:)
  real(dp) :: spread, energy
  integer :: rank, members, step, k, each

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, members)
  each = n / members
  allocate (x(n), mean(n), square(each * members), slice(each))
  x = [(forcing + sin(real(k * (rank + 2), dp)), k = 1, n)]

  do step = 1, steps
    x = x + dt * (cshift(x, -1) * (cshift(x, 1) - cshift(x, -2)) - x + forcing)
    call MPI_Allreduce(x, mean, n, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD)
    mean = mean / members
    square = (x(1:each * members) - mean(1:each * members))**2
    call MPI_Reduce_scatter_block(square, slice, each, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD)
    spread = sum(slice) / (each * members)
    call MPI_Allreduce(MPI_IN_PLACE, spread, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD)
    x = x + nudge * (mean - x)
  end do

  energy = sum(mean**2) / n
  if (rank == 0) then
    print '(a, f0.9, a, f0.9)', 'energy ', energy, ', spread ', sqrt(spread)
    print '(a, i0)', 'called allreduce ', 2 * steps, 'called reduce_scatter_block ', steps
  end if
  call MPI_Finalize()
end program
