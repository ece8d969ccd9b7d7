! The same training as projects have it that use MPI alone: every rank holds the whole model, and behind the backward
! pass each tensor's gradient is summed by a call of MPI_Allreduce.
module sw_learner
   use, intrinsic :: iso_fortran_env, only: int64
   use mpi_f08
   use sw_options, only: say_what_is_wrong
   use sw_network
   implicit none
   private
   public :: learner, learner_open, learner_close, learner_train, learner_predict, learner_bytes, learner_hash

   character(*), parameter, public :: PROGRAM_NAME = '07_shallow_water_plain'
   logical, parameter, public :: WITH_FSDP = .false.
   real, parameter :: BETA1 = 0.9, BETA2 = 0.999, EPS = 1e-8

   type :: layer
      real, allocatable :: w(:, :), b(:), dw(:, :), db(:)       ! parameters and gradients
      real, allocatable :: mw(:, :), mb(:), vw(:, :), vb(:)     ! and their first and second moments
   end type

   type :: learner
      type(layer), allocatable :: layers(:)
      type(MPI_Comm) :: comm = MPI_COMM_NULL
      integer :: steps = 0
   end type

contains

   ! False on all ranks if one of them has no memory for it; said then.
   logical function learner_open(l, comm, net, seed, strategy) result(good)
      type(learner), intent(inout) :: l
      type(MPI_Comm), intent(in) :: comm
      integer, intent(in) :: seed
      type(network), intent(in) :: net
      character(*), intent(in) :: strategy
      integer :: i, k, o

      l%comm = comm
      call allocate_layers(l, net, good)
      good = good .and. strategy == '' ! nothing is divided, and no option says so
      if (.not. good) return
      do i = 1, net%layers
         associate (a => l%layers(i), below => net%neurons(i - 1), above => net%neurons(i))
            do o = 1, above
               do k = 1, below
                  a%w(k, o) = initial_weight(seed, i, below, int(o - 1, int64) * below + k - 1)
               end do
            end do
            a%b = 0
            a%mw = 0
            a%mb = 0
            a%vw = 0
            a%vb = 0
         end associate
      end do
   end function

   subroutine allocate_layers(l, net, good)
      type(learner), intent(inout) :: l
      type(network), intent(in) :: net
      logical, intent(out) :: good
      integer :: i, status, most

      allocate (l%layers(net%layers))
      status = 0
      do i = 1, net%layers
         associate (a => l%layers(i), below => net%neurons(i - 1), above => net%neurons(i))
            if (status == 0) allocate (a%w(below, above), a%dw(below, above), a%mw(below, above), a%vw(below, above), &
                                       a%b(above), a%db(above), a%mb(above), a%vb(above), stat=status)
         end associate
      end do
      call MPI_Allreduce(abs(status), most, 1, MPI_INTEGER, MPI_MAX, l%comm)
      good = most == 0
      if (.not. good) call say_what_is_wrong('no memory for the whole surrogate on a rank; give a smaller --width')
   end subroutine

   subroutine learner_close(l)
      type(learner), intent(inout) :: l

      if (allocated(l%layers)) deallocate (l%layers)
   end subroutine

   subroutine learner_train(l, net, y, n, batch, lr, loss)
      type(learner), intent(inout) :: l
      type(network), intent(inout) :: net
      real, intent(in) :: y(:, :)
      integer, intent(in) :: n, batch
      double precision, intent(in) :: lr
      double precision, intent(out) :: loss
      integer :: i

      call learner_predict(l, net, n)
      loss = network_loss(net, y, n) / batch
      do i = net%layers, 1, -1
         l%layers(i)%dw = 0
         l%layers(i)%db = 0
         call network_backward(net, i, l%layers(i)%w, l%layers(i)%dw, l%layers(i)%db, n)
      end do
      l%steps = l%steps + 1
      do i = 1, net%layers
         associate (a => l%layers(i))
            call MPI_Allreduce(MPI_IN_PLACE, a%dw, size(a%dw), MPI_REAL, MPI_SUM, l%comm)
            call MPI_Allreduce(MPI_IN_PLACE, a%db, size(a%db), MPI_REAL, MPI_SUM, l%comm)
            call adam(a%w, a%dw, a%mw, a%vw, size(a%w), batch, real(lr), l%steps)
            call adam(a%b, a%db, a%mb, a%vb, size(a%b), batch, real(lr), l%steps)
         end associate
      end do
   end subroutine

   subroutine adam(w, g, m, v, count, batch, lr, steps)
      integer, intent(in) :: count, batch, steps
      real, intent(inout) :: w(count), m(count), v(count)
      real, intent(in) :: g(count), lr
      real :: correction1, correction2, d
      integer :: i

      correction1 = real(1 - real(BETA1, kind(1d0))**steps)
      correction2 = real(1 - real(BETA2, kind(1d0))**steps)
      do i = 1, count
         d = g(i) / batch
         m(i) = BETA1 * m(i) + (1 - BETA1) * d
         v(i) = BETA2 * v(i) + (1 - BETA2) * d * d
         w(i) = w(i) - lr * (m(i) / correction1) / (sqrt(v(i) / correction2) + EPS)
      end do
   end subroutine

   subroutine learner_predict(l, net, n)
      type(learner), intent(inout) :: l
      type(network), intent(inout) :: net
      integer, intent(in) :: n
      integer :: i

      do i = 1, net%layers
         call network_forward(net, i, l%layers(i)%w, l%layers(i)%b, n)
      end do
   end subroutine

   subroutine learner_bytes(l, state, views)
      type(learner), intent(in) :: l
      integer(int64), intent(out) :: state, views
      integer :: i

      state = 0
      views = 0
      do i = 1, size(l%layers)
         state = state + 4 * 4 * (size(l%layers(i)%w) + size(l%layers(i)%b))
      end do
   end subroutine

   integer(int64) function learner_hash(l) result(hash)
      type(learner), intent(in) :: l
      integer :: i, k

      hash = 0
      do i = 1, size(l%layers)
         associate (w => l%layers(i)%w)
            do k = 1, size(w)
               hash = ieor(ishftc(hash, 7), int(transfer(w(mod(k - 1, size(w, 1)) + 1, (k - 1) / size(w, 1) + 1), 1), &
                                                int64))
            end do
         end associate
      end do
   end function
end module
