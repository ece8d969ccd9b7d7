! The surrogate once it has learned: on time steps that it has not seen, and in place of the term.
module sw_trials
   use mpi_f08
   use sw_grid
   use sw_flow
   use sw_samples
   use sw_network
   use sw_learner
   implicit none
   private
   public :: trial_unseen, trial_in_place

contains

   ! Goes on with the term for so many steps, and compares what the surrogate would have said of all cells.
   subroutine trial_unseen(f, g, l, net, steps)
      type(flow), intent(inout) :: f
      type(grid), intent(in) :: g
      type(learner), intent(inout) :: l
      type(network), intent(inout) :: net ! with room for all cells
      integer, intent(in) :: steps
      real(dp), allocatable :: x(:, :), y(:, :)
      real(dp) :: sums(2), seconds(2), started
      integer :: k

      sums = 0
      seconds = 0
      do k = 1, steps
         call flow_prepare(f, g)
         started = MPI_Wtime()
         call surrogate(f, g, l, net)
         seconds(2) = seconds(2) + MPI_Wtime() - started
         x = f%stress_x(1:g%n, 1:g%m)
         y = f%stress_y(1:g%n, 1:g%m)
         started = MPI_Wtime()
         call flow_term(f, g)
         seconds(1) = seconds(1) + MPI_Wtime() - started
         sums(1) = sums(1) + sum((x - f%stress_x(1:g%n, 1:g%m))**2 + (y - f%stress_y(1:g%n, 1:g%m))**2)
         sums(2) = sums(2) + sum(f%stress_x(1:g%n, 1:g%m)**2 + f%stress_y(1:g%n, 1:g%m)**2)
         call flow_advance(f, g)
      end do
      call sum_up(g, sums)
      call sum_up(g, seconds)
      seconds = seconds / (real(steps, dp) * g%nx * g%ny) * 1e6_dp
      if (g%rank == 0) print '(a, f7.4, a, i0, a, f8.2, a, f8.2)', 'surrogate   error ', sqrt(sums(1) / sums(2)), &
         ' of the term, RMS over ', steps, ' unseen steps; us per cell: term', seconds(1), ', surrogate', seconds(2)
   end subroutine

   ! Goes on in two basins, from the same fields: in one, the surrogate takes the place of the term.
   subroutine trial_in_place(f, g, l, net, steps)
      type(flow), intent(inout) :: f
      type(grid), intent(in) :: g
      type(learner), intent(inout) :: l
      type(network), intent(inout) :: net
      integer, intent(in) :: steps
      type(flow) :: other
      real(dp) :: before(2), with_term(2), with_surrogate(2), sums(4)
      integer :: k

      other = f
      before = flow_sums(f, g)
      do k = 1, steps
         call flow_prepare(f, g)
         call flow_term(f, g)
         call flow_advance(f, g)
         call flow_prepare(other, g)
         call surrogate(other, g, l, net)
         call flow_advance(other, g)
      end do
      with_term = flow_sums(f, g)
      with_surrogate = flow_sums(other, g)
      associate (n => g%n, m => g%m)
         sums(1) = sum((other%h(1:n, 1:m) - f%h(1:n, 1:m))**2)
         sums(2) = sum((f%h(1:n, 1:m) - f%bottom(1:n, 1:m))**2)
         sums(3) = sum((other%u(1:n, 1:m) - f%u(1:n, 1:m))**2 + (other%v(1:n, 1:m) - f%v(1:n, 1:m))**2)
         sums(4) = sum(f%u(1:n, 1:m)**2 + f%v(1:n, 1:m)**2)
      end associate
      call sum_up(g, before)
      call sum_up(g, with_term)
      call sum_up(g, with_surrogate)
      call sum_up(g, sums)
      if (g%rank /= 0) return
      print '(a, i0, 2(a, f7.4), a)', 'in place    after ', steps, ' steps the surface differs by', &
         sqrt(sums(1) / sums(2)), ' of its RMS height, the velocity by', sqrt(sums(3) / sums(4)), ' of its RMS'
      print '(2(a, es8.1))', 'in place    change of the volume: with the surrogate ', &
         with_surrogate(1) / before(1) - 1, ', with the term ', with_term(1) / before(1) - 1
      print '(2(a, f7.4))', 'in place    energy over what it was: with the surrogate', with_surrogate(2) / before(2), &
         ', with the term', with_term(2) / before(2)
   end subroutine

   subroutine surrogate(f, g, l, net)
      type(flow), intent(inout) :: f
      type(grid), intent(in) :: g
      type(learner), intent(inout) :: l
      type(network), intent(inout) :: net

      call samples_all(f, g, net%x(0)%of)
      call learner_predict(l, net, g%n * g%m)
      call samples_use(net%x(net%layers)%of, f, g)
   end subroutine

   subroutine sum_up(g, values)
      type(grid), intent(in) :: g
      real(dp), intent(inout) :: values(:)
      real(dp) :: mine(size(values))

      mine = values
      call MPI_Allreduce(mine, values, size(values), MPI_DOUBLE_PRECISION, MPI_SUM, g%comm)
   end subroutine
end module
