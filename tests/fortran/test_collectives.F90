! Every collective on arrays, blocking and not, in several types and ranks of arrays, on a communicator of either kind.
program test_collectives
   use, intrinsic :: iso_c_binding
   use mpi
   use fsdp
   use checks
   implicit none
   type(fsdp_context) :: ctx
   integer :: error, provided

   call MPI_Init_thread(MPI_THREAD_MULTIPLE, provided, error)
   call fsdp_init(MPI_COMM_WORLD, ctx)
   call all_collectives(ctx)
   call fsdp_finalize(ctx)
   call check(fsdp_is_null(ctx), 'a context that is closed is null')
#ifdef FSDP_FORTRAN_MPI_F08
   call of_mpi_f08()
#endif
   call MPI_Finalize(error)

contains

#ifdef FSDP_FORTRAN_MPI_F08
   subroutine of_mpi_f08()
      use mpi_f08, only: MPI_Comm, MPI_COMM_NULL, MPI_Comm_free, MPI_COMM_WORLD, operator(/=)
      type(MPI_Comm) :: ordered
      type(fsdp_context) :: second

      call fsdp_comm_order_by_node(MPI_COMM_WORLD, ordered)
      call check(ordered /= MPI_COMM_NULL, 'a communicator is made')
      call fsdp_init(ordered, second)
      call all_collectives(second)
      call fsdp_finalize(second)
      call MPI_Comm_free(ordered)
   end subroutine
#endif

   subroutine all_collectives(ctx)
      type(fsdp_context), intent(in) :: ctx

      call gathers(ctx)
      call reductions(ctx)
      call exchanges(ctx)
      call several_at_once(ctx)
      call several_with_counts(ctx)
      call half_precision(ctx)
      call wrong_sizes(ctx)
      call symmetric(ctx)
      call fsdp_barrier(ctx)
   end subroutine

   subroutine gathers(ctx)
      type(fsdp_context), intent(in) :: ctx
      real(c_float) :: mine(2, 3), whole(2, 3, fsdp_size(ctx))
      integer(c_int) :: numbers(2 * fsdp_size(ctx))
      integer(c_size_t) :: counts(fsdp_size(ctx))
      integer(c_int64_t), allocatable :: part(:), parts(:)
      real(c_double) :: value
      integer :: me, r

      me = fsdp_rank(ctx)
      mine = real(me, c_float)
      mine(2, 3) = 100.0 + real(me)
      call fsdp_allgather(ctx, mine, whole)
      do r = 1, fsdp_size(ctx)
         call check(whole(1, 1, r) == r - 1 .and. whole(2, 3, r) == 99 + r, 'allgather')
      end do

      numbers = -1
      numbers(2 * me + 1:2 * me + 2) = [me, 10 * me]
      call fsdp_allgather(ctx, FSDP_IN_PLACE, numbers)
      call check(all([(numbers(2 * r) == 10 * (r - 1), r=1, fsdp_size(ctx))]), 'allgather in place')

      counts = [(int(r, c_size_t), r=1, fsdp_size(ctx))]
      allocate (part(me + 1), parts(sum(counts)))
      part = me
      call fsdp_allgatherv(ctx, part, parts, counts)
      call check(parts(1) == 0 .and. parts(size(parts)) == fsdp_size(ctx) - 1, 'allgatherv')

      value = merge(7.5_c_double, 0.0_c_double, me == 0)
      call fsdp_broadcast(ctx, value, 0)
      call check(value == 7.5_c_double, 'broadcast of a scalar')
   end subroutine

   subroutine reductions(ctx)
      type(fsdp_context), intent(in) :: ctx
      real(c_double) :: full(2, 0:fsdp_size(ctx) - 1), shard(2), number
      real(c_float) :: in(3), out(3)
      integer(c_size_t) :: counts(fsdp_size(ctx))
      integer(c_int) :: least
      integer :: me, n, r

      me = fsdp_rank(ctx)
      n = fsdp_size(ctx)
      full = spread([(real(r, c_double), r=0, n - 1)], 1, 2)
      call fsdp_reduce_scatter(ctx, full, shard, FSDP_SUM)
      call check(all(shard == n * me), 'reduce_scatter')
      counts = 2
      shard = 0
      call fsdp_reduce_scatterv(ctx, full, shard, counts, FSDP_AVG)
      call check(all(shard == me), 'reduce_scatterv')
      in = [1.0, 2.0, real(me)]
      call fsdp_allreduce(ctx, in, out, FSDP_SUM)
      call check(all(out == [real(n), 2.0 * n, n * (n - 1) / 2.0]), 'allreduce')
      number = me
      call fsdp_allreduce(ctx, FSDP_IN_PLACE, number, FSDP_MAX)
      call check(number == n - 1, 'allreduce of a scalar in place')
      least = me + 5
      call fsdp_allreduce(ctx, FSDP_IN_PLACE, least, FSDP_MIN)
      call check(least == 5, 'allreduce of an integer')
      out = -1
      call fsdp_reduce(ctx, in, out, FSDP_PROD, n - 1)
      call check((me == n - 1 .and. out(2) == 2.0**n) .or. (me < n - 1 .and. out(2) == -1), 'reduce')
   end subroutine

   subroutine exchanges(ctx)
      type(fsdp_context), intent(in) :: ctx
      integer(c_int8_t) :: in(2, fsdp_size(ctx)), out(2, fsdp_size(ctx))
      integer(c_size_t) :: counts(fsdp_size(ctx)), displacements(fsdp_size(ctx))
      real(c_float) :: blocks(3, fsdp_size(ctx)), got(3, fsdp_size(ctx))
      integer :: me, r

      me = fsdp_rank(ctx)
      do r = 1, fsdp_size(ctx)
         in(:, r) = int(10 * me + r - 1, c_int8_t)
      end do
      call fsdp_alltoall(ctx, in, out)
      do r = 1, fsdp_size(ctx)
         call check(all(out(:, r) == 10 * (r - 1) + me), 'alltoall')
      end do
      blocks = real(me)
      got = -1
      counts = 2
      displacements = [(int(3 * (r - 1), c_size_t), r=1, fsdp_size(ctx))]
      call fsdp_alltoallv(ctx, blocks, counts, displacements, got, counts, displacements)
      do r = 1, fsdp_size(ctx)
         call check(all(got(:2, r) == r - 1) .and. got(3, r) == -1, 'alltoallv')
      end do
   end subroutine

   subroutine several_at_once(ctx)
      type(fsdp_context), intent(in) :: ctx
      integer, parameter :: n = 1000
      real(c_float), asynchronous :: mine(n), whole(n, 0:fsdp_size(ctx) - 1), sum(n)
      real(c_float), asynchronous :: full(n, 0:fsdp_size(ctx) - 1), shard(n)
      integer(c_int64_t), asynchronous :: number, in(fsdp_size(ctx)), out(fsdp_size(ctx))
      type(fsdp_request) :: requests(5), last
      logical :: done
      integer :: r

      mine = real(fsdp_rank(ctx))
      sum = 1
      full = 2
      number = fsdp_rank(ctx)
      in = fsdp_rank(ctx)
      call fsdp_iallgather(ctx, mine, whole, requests(1))
      call fsdp_iallreduce(ctx, FSDP_IN_PLACE, sum, FSDP_SUM, requests(2))
      call fsdp_ireduce_scatter(ctx, full, shard, FSDP_SUM, requests(3))
      call fsdp_ibroadcast(ctx, number, fsdp_size(ctx) - 1, requests(4))
      call fsdp_ialltoall(ctx, in, out, requests(5))
      call fsdp_ibarrier(ctx, last)
      call fsdp_wait(requests(2))
      call check(all_are(sum, real(fsdp_size(ctx))) .and. fsdp_is_null(requests(2)), 'iallreduce')
      call fsdp_wait_all(requests)
      do r = 0, fsdp_size(ctx) - 1
         call check(all_are(whole(:, r), real(r)), 'iallgather')
      end do
      call check(all_are(shard, 2.0 * fsdp_size(ctx)), 'ireduce_scatter')
      call check(number == fsdp_size(ctx) - 1, 'ibroadcast')
      call check(out(fsdp_size(ctx)) == fsdp_size(ctx) - 1, 'ialltoall')
      done = .false.
      do while (.not. done)
         call fsdp_test(last, done)
      end do
      call check(fsdp_is_null(last), 'a request that is done is null')
   end subroutine

   subroutine several_with_counts(ctx)
      type(fsdp_context), intent(in) :: ctx
      integer(c_size_t), asynchronous :: counts(fsdp_size(ctx)), displacements(fsdp_size(ctx)), pairs(2 * fsdp_size(ctx))
      integer(c_int32_t), asynchronous :: mine(3), whole(3, fsdp_size(ctx)), got(3, fsdp_size(ctx)), sum(3)
      type(fsdp_request) :: requests(4)
      integer :: status, r

      counts = 3
      displacements = [(int(3 * (r - 1), c_size_t), r=1, fsdp_size(ctx))]
      mine = fsdp_rank(ctx)
      call fsdp_iallgatherv(ctx, mine, whole, counts, requests(1))
      call fsdp_wait(requests(1))
      call check(whole(3, fsdp_size(ctx)) == fsdp_size(ctx) - 1, 'iallgatherv')
      call fsdp_ireduce_scatterv(ctx, whole, mine, counts, FSDP_SUM, requests(2))
      call fsdp_ialltoallv(ctx, whole, counts, displacements, got, counts, displacements, requests(3))
      call fsdp_wait_all(requests(2:3))
      call check(all(mine == fsdp_size(ctx) * fsdp_rank(ctx)), 'ireduce_scatterv')
      call check(all(got == fsdp_rank(ctx)), 'ialltoallv')
      call fsdp_ireduce(ctx, mine, sum, FSDP_MAX, 0, requests(4))
      call fsdp_wait(requests(4))
      if (fsdp_rank(ctx) == 0) call check(all(sum == fsdp_size(ctx) * (fsdp_size(ctx) - 1)), 'ireduce')
      pairs = 3
      call fsdp_iallgatherv(ctx, mine, whole, pairs(::2), requests(1), status)
      call check(status == FSDP_ERR_ARG .or. fsdp_size(ctx) == 1, 'counts that are not contiguous')
      call fsdp_wait(requests(1))
   end subroutine

   pure logical function all_are(array, value)
      real(c_float), intent(in) :: array(:), value

      all_are = all(array == value)
   end function

   subroutine half_precision(ctx)
      type(fsdp_context), intent(in) :: ctx
      real(c_float) :: numbers(4) = [1.0, -2.0, 0.5, 96.0], wide(4)
      integer(c_int16_t) :: halves(4), sums(4)

      call fsdp_cast(ctx, halves, FSDP_BF16, numbers, FSDP_F32)
      call check(halves(1) == int(z'3f80', c_int16_t), 'the bits of 1 in bf16')
      call fsdp_allreduce(ctx, halves, sums, FSDP_SUM, FSDP_BF16)
      call fsdp_cast(ctx, wide, FSDP_F32, sums, FSDP_BF16)
      call check(all(wide == fsdp_size(ctx) * numbers), 'allreduce of bf16')
   end subroutine

   ! The same on every rank, whichever it is that has them wrong.
   subroutine wrong_sizes(ctx)
      type(fsdp_context), intent(in) :: ctx
      real(c_float) :: mine(3), whole(3 * fsdp_size(ctx)), strided(6)
      integer :: status, wanted

      mine = 1
      wanted = merge(2, 3, fsdp_rank(ctx) == 0)
      call fsdp_allgather(ctx, mine(:wanted), whole, status)
      call check_status(status, FSDP_ERR_ARG, 'a shard that is too short on rank 0')
      call check(index(fsdp_last_error(ctx), 'rank 0') > 0, 'names rank 0: ' // fsdp_last_error(ctx))
      strided = 1
      call fsdp_allreduce(ctx, FSDP_IN_PLACE, strided(::2), FSDP_SUM, status)
      call check_status(status, FSDP_ERR_ARG, 'an array that is not contiguous')
      call fsdp_allgather(ctx, mine, whole, status)
      call check_status(status, FSDP_OK, 'the context is still good')
   end subroutine

   subroutine symmetric(ctx)
      type(fsdp_context), intent(in) :: ctx
      real(c_double), pointer :: mine(:), peer(:), matrix(:, :)
      integer :: next

      call fsdp_buffer_alloc(ctx, FSDP_BUFFER_PER_RANK, 6_c_size_t, mine)
      matrix(1:2, 1:3) => mine
      matrix = fsdp_rank(ctx)
      call fsdp_barrier(ctx)
      next = mod(fsdp_rank(ctx) + 1, fsdp_size(ctx))
      call fsdp_buffer_peer(ctx, mine, next, peer)
      call check(size(peer) == 6 .and. peer(6) == next, 'the memory of a peer')
      call fsdp_barrier(ctx)
      call fsdp_allreduce(ctx, FSDP_IN_PLACE, matrix, FSDP_SUM)
      call check(matrix(2, 3) == fsdp_size(ctx) * (fsdp_size(ctx) - 1) / 2, 'allreduce of a symmetric buffer')
      call fsdp_buffer_free(ctx, mine)
      call check(.not. associated(mine), 'what is freed is null')
   end subroutine
end program
