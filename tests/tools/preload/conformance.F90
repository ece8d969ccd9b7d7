! Blocking collectives of MPI as any Fortran program calls them: types, operations, roots, in place, communicators, counts of
! 0, lists with gaps. Knows nothing of libfsdp; what comes out is compared with what is computed here, by hand. Compiled three
! times: with USE_MPIFH for mpif.h, with USE_MPI for the module mpi, with USE_F08 for mpi_f08.
!
! Rank 0 prints a line `called NAME COUNT` for each collective.
#ifdef USE_F08
#define COMM_TYPE type(MPI_Comm)
#define TYPE_TYPE type(MPI_Datatype)
#define OP_TYPE type(MPI_Op)
#define REQUEST_TYPE type(MPI_Request)
#else
#define COMM_TYPE integer
#define TYPE_TYPE integer
#define OP_TYPE integer
#define REQUEST_TYPE integer
#endif
#ifdef USE_MPIFH
#define USES
#define INCLUDES include 'mpif.h'
#elif defined(USE_F08)
#define USES use mpi_f08
#define INCLUDES
#else
#define USES use mpi
#define INCLUDES
#endif

module counted
  implicit none
  integer, parameter :: ALLREDUCE = 1, REDUCE = 2, REDUCE_SCATTER = 3, REDUCE_SCATTER_BLOCK = 4, BCAST = 5, ALLGATHER = 6, &
                        ALLGATHERV = 7, ALLTOALL = 8, ALLTOALLV = 9, BARRIER = 10, IALLREDUCE = 11, IREDUCE = 12, &
                        IREDUCE_SCATTER = 13, IREDUCE_SCATTER_BLOCK = 14, IBCAST = 15, IALLGATHER = 16, IALLGATHERV = 17, &
                        IALLTOALL = 18, IALLTOALLV = 19, IBARRIER = 20, n_names = 20
  character(21), parameter :: names(n_names) = [character(21) :: 'allreduce', 'reduce', 'reduce_scatter', &
    'reduce_scatter_block', 'bcast', 'allgather', 'allgatherv', 'alltoall', 'alltoallv', 'barrier', 'iallreduce', 'ireduce', &
    'ireduce_scatter', 'ireduce_scatter_block', 'ibcast', 'iallgather', 'iallgatherv', 'ialltoall', 'ialltoallv', 'ibarrier']
  integer :: calls(n_names) = 0, wrong = 0
contains
  subroutine check(which, error, good, what)
    integer, intent(in) :: which, error
    logical, intent(in) :: good
    character(*), intent(in) :: what

    calls(which) = calls(which) + 1
    if (error /= 0 .or. .not. good) then
      wrong = wrong + 1
      write (0, *) trim(names(which)), ' ', what, ' is wrong, error ', error
    end if
  end subroutine
end module

! Reductions of real numbers, complex numbers and integers.
subroutine check_reductions(comm, rank, n)
  USES
  use counted
  implicit none
  INCLUDES
  COMM_TYPE, intent(in) :: comm
  integer, intent(in) :: rank, n
  integer, parameter :: most = 1001
  double precision :: d(most), sum_d(most)
  real :: r(most), sum_r(most)
  complex(kind(1d0)) :: z(most), sum_z(most)
  integer :: i(most), sum_i(most), root, e, k, counts(8), first, total
  logical :: l(3), any_l(3)
  complex :: c(most), sum_c(most)
  integer, parameter :: long = selected_int_kind(18)
  integer(long) :: h(most), sum_h(most)

  total = n * (n + 1) / 2
  d = [(dble(rank + 1) * k, k = 1, most)]
  call MPI_Allreduce(d, sum_d, most, MPI_DOUBLE_PRECISION, MPI_SUM, comm, e)
  call check(ALLREDUCE, e, all(sum_d == [(dble(total) * k, k = 1, most)]), 'of double precision')
  sum_d = d
  call MPI_Allreduce(MPI_IN_PLACE, sum_d, most, MPI_DOUBLE_PRECISION, MPI_SUM, comm, e)
  call check(ALLREDUCE, e, all(sum_d == [(dble(total) * k, k = 1, most)]), 'in place')
  r = real(d)
  call MPI_Allreduce(r, sum_r, most, MPI_REAL, MPI_MAX, comm, e)
  call check(ALLREDUCE, e, all(sum_r == [(real(n) * k, k = 1, most)]), 'of real')
  z = cmplx(d, -d, kind(1d0))
  call MPI_Allreduce(z, sum_z, most, MPI_DOUBLE_COMPLEX, MPI_SUM, comm, e)
  call check(ALLREDUCE, e, all(sum_z == cmplx(sum_d, -sum_d, kind(1d0))), 'of double complex')
  c = cmplx(r, -r)
  call MPI_Allreduce(c, sum_c, most, MPI_COMPLEX, MPI_SUM, comm, e)
  call check(ALLREDUCE, e, all(sum_c == cmplx(real(sum_d), -real(sum_d))), 'of complex')
  h = 2_long**40 + rank + 1
  call MPI_Allreduce(h, sum_h, most, MPI_INTEGER8, MPI_SUM, comm, e)
  call check(ALLREDUCE, e, all(sum_h == n * 2_long**40 + total), 'of long integers')
  i = rank + 1
  call MPI_Allreduce(i, sum_i, most, MPI_INTEGER, MPI_MIN, comm, e)
  call check(ALLREDUCE, e, all(sum_i == 1), 'of integer')
  call MPI_Allreduce(i, sum_i, 0, MPI_INTEGER, MPI_SUM, comm, e)
  call check(ALLREDUCE, e, all(sum_i == 1), 'of nothing')
  l = [rank == 0, .false., .true.]
  call MPI_Allreduce(l, any_l, 3, MPI_LOGICAL, MPI_LOR, comm, e)
  call check(ALLREDUCE, e, all(any_l .eqv. [.true., .false., .true.]), 'of logical')

  do root = 0, n - 1
    sum_i = -1
    call MPI_Reduce(i, sum_i, most, MPI_INTEGER, MPI_SUM, root, comm, e)
    call check(REDUCE, e, all(sum_i == merge(total, -1, rank == root)), 'of integer')
    if (root > 0) cycle ! MPICH 4.0 takes MPI_IN_PLACE for an address there
    sum_d = d
    if (rank == root) then
      call MPI_Reduce(MPI_IN_PLACE, sum_d, most, MPI_DOUBLE_PRECISION, MPI_SUM, root, comm, e)
      call check(REDUCE, e, all(sum_d == [(dble(total) * k, k = 1, most)]), 'in place')
    else
      call MPI_Reduce(d, sum_d, most, MPI_DOUBLE_PRECISION, MPI_SUM, root, comm, e)
      call check(REDUCE, e, all(sum_d == d), 'elsewhere')
    end if
  end do

  counts(1:n) = [(k, k = 1, n)]
  first = rank * (rank + 1) / 2
  call MPI_Reduce_scatter(d, sum_d, counts, MPI_DOUBLE_PRECISION, MPI_SUM, comm, e)
  call check(REDUCE_SCATTER, e, all(sum_d(1:rank + 1) == [(dble(total) * (first + k), k = 1, rank + 1)]), 'of double precision')
  sum_d = d
  call MPI_Reduce_scatter(MPI_IN_PLACE, sum_d, counts, MPI_DOUBLE_PRECISION, MPI_SUM, comm, e)
  call check(REDUCE_SCATTER, e, all(sum_d(1:rank + 1) == [(dble(total) * (first + k), k = 1, rank + 1)]), 'in place')
  call MPI_Reduce_scatter_block(d, sum_d, 5, MPI_DOUBLE_PRECISION, MPI_SUM, comm, e)
  call check(REDUCE_SCATTER_BLOCK, e, all(sum_d(1:5) == [(dble(total) * (5 * rank + k), k = 1, 5)]), 'of double precision')
  sum_d = d
  call MPI_Reduce_scatter_block(MPI_IN_PLACE, sum_d, 5, MPI_DOUBLE_PRECISION, MPI_SUM, comm, e)
  call check(REDUCE_SCATTER_BLOCK, e, all(sum_d(1:5) == [(dble(total) * (5 * rank + k), k = 1, 5)]), 'in place')
end subroutine

! Moves of integers, characters and logicals; and a buffer that begins at MPI_BOTTOM.
subroutine check_moves(comm, rank, n)
  USES
  use counted
  implicit none
  INCLUDES
  COMM_TYPE, intent(in) :: comm
  integer, intent(in) :: rank, n
  integer, parameter :: each = 501
  integer, allocatable :: mine(:), full(:), expected(:)
  integer :: counts(8), places(8), root, e, r, k, held(1), lengths(1)
  character(9) :: text
  logical :: flag
  integer(MPI_ADDRESS_KIND) :: address(1)
  TYPE_TYPE :: there, parts(1)

  allocate (mine(each * n), full(each * n), expected(each * n))
  do root = 0, n - 1
    mine(1:each) = merge(root, -1, rank == root)
    call MPI_Bcast(mine, each, MPI_INTEGER, root, comm, e)
    call check(BCAST, e, all(mine(1:each) == root), 'of integer')
    text = merge('from root', 'elsewhere', rank == root)
    call MPI_Bcast(text, 9, MPI_CHARACTER, root, comm, e)
    call check(BCAST, e, text == 'from root', 'of character')
    flag = rank == root
    call MPI_Bcast(flag, 1, MPI_LOGICAL, root, comm, e)
    call check(BCAST, e, flag, 'of logical')
  end do

  held(1) = merge(42, 0, rank == 0)
  call MPI_Get_address(held, address(1), e)
  lengths(1) = 1
  parts(1) = MPI_INTEGER
  call MPI_Type_create_struct(1, lengths, address, parts, there, e)
  call MPI_Type_commit(there, e)
  call MPI_Bcast(MPI_BOTTOM, 1, there, 0, comm, e)
  call MPI_Get_address(held, address(1), e) ! held has changed
  call check(BCAST, e, held(1) == 42, 'from the bottom')
  call MPI_Type_free(there, e)

  expected = [((r, k = 1, each), r = 0, n - 1)]
  mine(1:each) = rank
  full = -1
  call MPI_Allgather(mine, each, MPI_INTEGER, full, each, MPI_INTEGER, comm, e)
  call check(ALLGATHER, e, all(full == expected), 'of integer')
  full = -1
  full(rank * each + 1:(rank + 1) * each) = rank
  call MPI_Allgather(MPI_IN_PLACE, 0, MPI_INTEGER, full, each, MPI_INTEGER, comm, e)
  call check(ALLGATHER, e, all(full == expected), 'in place')

  counts(1:n) = [(each - r, r = 0, n - 1)]
  places(1:n) = [(each * r, r = 0, n - 1)]
  full = -1
  call MPI_Allgatherv(mine, each - rank, MPI_INTEGER, full, counts, places, MPI_INTEGER, comm, e)
  do r = 0, n - 1
    expected((r + 1) * each - r + 1:(r + 1) * each) = -1
  end do
  call check(ALLGATHERV, e, all(full == expected), 'with gaps')
  full = -1
  full(places(rank + 1) + 1:places(rank + 1) + counts(rank + 1)) = rank
  call MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_INTEGER, full, counts, places, MPI_INTEGER, comm, e)
  call check(ALLGATHERV, e, all(full == expected), 'in place')

  mine = [((1000 * rank + r, k = 1, each), r = 0, n - 1)]
  call MPI_Alltoall(mine, each, MPI_INTEGER, full, each, MPI_INTEGER, comm, e)
  expected = [((1000 * r + rank, k = 1, each), r = 0, n - 1)]
  call check(ALLTOALL, e, all(full == expected), 'of integer')
  full = mine
  call MPI_Alltoall(MPI_IN_PLACE, 0, MPI_INTEGER, full, each, MPI_INTEGER, comm, e)
  call check(ALLTOALL, e, all(full == expected), 'in place')
  counts(1:n) = each - 1
  full = -1
  call MPI_Alltoallv(mine, counts, places, MPI_INTEGER, full, counts, places, MPI_INTEGER, comm, e)
  expected(each:each * n:each) = -1
  call check(ALLTOALLV, e, all(full == expected), 'with gaps')
  full = mine
  full(each:each * n:each) = -1
  call MPI_Alltoallv(MPI_IN_PLACE, counts, places, MPI_INTEGER, full, counts, places, MPI_INTEGER, comm, e)
  call check(ALLTOALLV, e, all(full == expected), 'in place')
  call MPI_Barrier(comm, e)
  call check(BARRIER, e, .true., '')
end subroutine

! Calls that MPI keeps. One number for each rank.
subroutine check_nonblocking(comm, rank, n)
  USES
  use counted
  implicit none
  INCLUDES
  COMM_TYPE, intent(in) :: comm
  integer, intent(in) :: rank, n
  integer, asynchronous :: one, total, mine(8), full(8)
  integer :: counts(8), places(8), expected(8), k, e
  REQUEST_TYPE :: request

  one = 1
  counts = 1
  places = [(k, k = 0, 7)]
  expected = [(k, k = 1, 8)]
  mine = rank + 1
  call MPI_Iallreduce(one, total, 1, MPI_INTEGER, MPI_SUM, comm, request, e)
  call MPI_Wait(request, MPI_STATUS_IGNORE, e)
  call check(IALLREDUCE, e, total == n, '')
  total = -1
  call MPI_Ireduce(one, total, 1, MPI_INTEGER, MPI_SUM, 0, comm, request, e)
  call MPI_Wait(request, MPI_STATUS_IGNORE, e)
  call check(IREDUCE, e, total == merge(n, -1, rank == 0), '')
  call MPI_Ireduce_scatter(mine, total, counts, MPI_INTEGER, MPI_SUM, comm, request, e)
  call MPI_Wait(request, MPI_STATUS_IGNORE, e)
  call check(IREDUCE_SCATTER, e, total == n * (n + 1) / 2, '')
  total = -1
  call MPI_Ireduce_scatter_block(mine, total, 1, MPI_INTEGER, MPI_SUM, comm, request, e)
  call MPI_Wait(request, MPI_STATUS_IGNORE, e)
  call check(IREDUCE_SCATTER_BLOCK, e, total == n * (n + 1) / 2, '')
  total = rank
  call MPI_Ibcast(total, 1, MPI_INTEGER, n - 1, comm, request, e)
  call MPI_Wait(request, MPI_STATUS_IGNORE, e)
  call check(IBCAST, e, total == n - 1, '')
  full = -1
  call MPI_Iallgather(mine, 1, MPI_INTEGER, full, 1, MPI_INTEGER, comm, request, e)
  call MPI_Wait(request, MPI_STATUS_IGNORE, e)
  call check(IALLGATHER, e, all(full(1:n) == expected(1:n)), '')
  full = -1
  call MPI_Iallgatherv(mine, 1, MPI_INTEGER, full, counts, places, MPI_INTEGER, comm, request, e)
  call MPI_Wait(request, MPI_STATUS_IGNORE, e)
  call check(IALLGATHERV, e, all(full(1:n) == expected(1:n)), '')
  full = -1
  call MPI_Ialltoall(mine, 1, MPI_INTEGER, full, 1, MPI_INTEGER, comm, request, e)
  call MPI_Wait(request, MPI_STATUS_IGNORE, e)
  call check(IALLTOALL, e, all(full(1:n) == expected(1:n)), '')
  full = -1
  call MPI_Ialltoallv(mine, counts, places, MPI_INTEGER, full, counts, places, MPI_INTEGER, comm, request, e)
  call MPI_Wait(request, MPI_STATUS_IGNORE, e)
  call check(IALLTOALLV, e, all(full(1:n) == expected(1:n)), '')
  call MPI_Ibarrier(comm, request, e)
  call MPI_Wait(request, MPI_STATUS_IGNORE, e)
  call check(IBARRIER, e, .true., '')
end subroutine

#ifdef USE_F08
! All of them without the error code, which is optional there.
subroutine check_without_error(comm, rank, n)
  use mpi_f08
  use counted
  implicit none
  type(MPI_Comm), intent(in) :: comm
  integer, intent(in) :: rank, n
  integer :: mine(8), full(8), counts(8), places(8), expected(8), k, total

  counts = 1
  places = [(k, k = 0, 7)]
  expected = [(k, k = 1, 8)]
  mine = rank + 1
  call MPI_Allreduce(mine, total, 1, MPI_INTEGER, MPI_SUM, comm)
  call check(ALLREDUCE, 0, total == n * (n + 1) / 2, 'without an error code')
  total = -1
  call MPI_Reduce(mine, total, 1, MPI_INTEGER, MPI_SUM, n - 1, comm)
  call check(REDUCE, 0, total == merge(n * (n + 1) / 2, -1, rank == n - 1), 'without an error code')
  call MPI_Reduce_scatter(mine, total, counts, MPI_INTEGER, MPI_SUM, comm)
  call check(REDUCE_SCATTER, 0, total == n * (n + 1) / 2, 'without an error code')
  total = -1
  call MPI_Reduce_scatter_block(mine, total, 1, MPI_INTEGER, MPI_SUM, comm)
  call check(REDUCE_SCATTER_BLOCK, 0, total == n * (n + 1) / 2, 'without an error code')
  total = rank
  call MPI_Bcast(total, 1, MPI_INTEGER, n - 1, comm)
  call check(BCAST, 0, total == n - 1, 'without an error code')
  full = -1
  call MPI_Allgather(mine, 1, MPI_INTEGER, full, 1, MPI_INTEGER, comm)
  call check(ALLGATHER, 0, all(full(1:n) == expected(1:n)), 'without an error code')
  full = -1
  call MPI_Allgatherv(mine, 1, MPI_INTEGER, full, counts, places, MPI_INTEGER, comm)
  call check(ALLGATHERV, 0, all(full(1:n) == expected(1:n)), 'without an error code')
  full = -1
  call MPI_Alltoall(mine, 1, MPI_INTEGER, full, 1, MPI_INTEGER, comm)
  call check(ALLTOALL, 0, all(full(1:n) == expected(1:n)), 'without an error code')
  full = -1
  call MPI_Alltoallv(mine, counts, places, MPI_INTEGER, full, counts, places, MPI_INTEGER, comm)
  call check(ALLTOALLV, 0, all(full(1:n) == expected(1:n)), 'without an error code')
  call MPI_Barrier(comm)
  call check(BARRIER, 0, .true., 'without an error code')
end subroutine
#endif

subroutine check_all(comm)
  USES
  implicit none
  INCLUDES
  COMM_TYPE, intent(in) :: comm
  integer :: rank, n, e

  call MPI_Comm_rank(comm, rank, e)
  call MPI_Comm_size(comm, n, e)
  call check_reductions(comm, rank, n)
  call check_moves(comm, rank, n)
  call check_nonblocking(comm, rank, n)
#ifdef USE_F08
  call check_without_error(comm, rank, n)
#endif
end subroutine

program conformance
  USES
  use counted
  implicit none
  INCLUDES
  COMM_TYPE :: comm
  integer :: rank, n, e, k, total

  call MPI_Init(e)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, e)
  call MPI_Comm_size(MPI_COMM_WORLD, n, e)
  call check_all(MPI_COMM_WORLD)
  call check_all(MPI_COMM_SELF)
  call MPI_Comm_split(MPI_COMM_WORLD, mod(rank, 2), -rank, comm, e)
  call check_all(comm)
  call MPI_Comm_free(comm, e)
  calls(ALLREDUCE) = calls(ALLREDUCE) + 1
  call MPI_Allreduce(wrong, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, e)
  if (rank == 0) then
    do k = 1, size(calls)
      print '(a, a, 1x, i0)', 'called ', trim(names(k)), calls(k)
    end do
  end if
  call MPI_Finalize(e)
  if (total /= 0) stop 1
end program
