! The surrogate: a perceptron, layer by layer, on weights and gradients that somebody else holds. A layer's weights are
! an array of inputs x outputs; values are arrays of neurons x cells.
module sw_network
#ifdef SW_HAVE_OPENBLAS
   use, intrinsic :: iso_c_binding, only: c_int
#endif
   use, intrinsic :: iso_fortran_env, only: int64
   use sw_random
   use sw_samples, only: INPUTS, OUTPUTS
   implicit none
   private
   public :: network, network_open, network_forward, network_loss, network_backward, initial_weight

   type :: values
      real, allocatable :: of(:, :)
   end type

   type :: network
      integer :: layers = 0                 ! of weights: one more than hidden ones
      integer, allocatable :: neurons(:)    ! from 0, the inputs, to `layers`, the outputs
      type(values), allocatable :: x(:)     ! the same for what each layer puts out
      real, allocatable :: d(:, :), next(:, :) ! gradients of it, and of what lies below
   end type

   interface
      subroutine sgemm(transa, transb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
         character, intent(in) :: transa, transb
         integer, intent(in) :: m, n, k, lda, ldb, ldc
         real, intent(in) :: alpha, beta, a(lda, *), b(ldb, *)
         real, intent(inout) :: c(ldc, *)
      end subroutine
#ifdef SW_HAVE_OPENBLAS

      subroutine openblas_set_num_threads(n) bind(C)
         import :: c_int
         integer(c_int), value :: n
      end subroutine
#endif
   end interface

contains

   ! With room for the values of `room` cells; gradients, too, where it `learns`. False if there is no memory for it.
   logical function network_open(net, hidden, width, room, learns) result(good)
      type(network), intent(out) :: net
      integer, intent(in) :: hidden, width, room
      logical, intent(in) :: learns
      integer :: l, status

#ifdef SW_HAVE_OPENBLAS
      call openblas_set_num_threads(1_c_int) ! the ranks are on all cores already
#endif
      net%layers = hidden + 1
      allocate (net%neurons(0:net%layers), net%x(0:net%layers))
      net%neurons = width
      net%neurons(0) = INPUTS
      net%neurons(net%layers) = OUTPUTS
      status = 0
      do l = 0, net%layers
         if (status == 0) allocate (net%x(l)%of(net%neurons(l), room), stat=status)
      end do
      if (status == 0 .and. learns) allocate (net%d(maxval(net%neurons), room), net%next(maxval(net%neurons), room), &
                                              stat=status)
      good = status == 0
   end function

   ! Weight `i` of a layer's, from 0. Layers pass on what is about as large as what they get.
   pure real function initial_weight(seed, layer, neurons_below, i)
      integer, intent(in) :: seed, layer, neurons_below
      integer(int64), intent(in) :: i

      initial_weight = real((2 * random_of([int(seed, int64), int(layer, int64), i]) - 1) * sqrt(3d0 / neurons_below))
   end function

   ! Layer `l` of the first `n` cells. Hidden layers end with max(x, 0).
   subroutine network_forward(net, l, w, b, n)
      type(network), intent(inout) :: net
      integer, intent(in) :: l, n
      real, intent(in), contiguous :: w(:, :)
      real, intent(in) :: b(:)
      integer :: s

      if (n == 0) return
      associate (below => net%neurons(l - 1), above => net%neurons(l), y => net%x(l)%of)
         do s = 1, n
            y(:, s) = b
         end do
         call sgemm('T', 'N', above, n, below, 1.0, w, below, net%x(l - 1)%of, below, 1.0, y, above)
         if (l < net%layers) y(:, :n) = max(y(:, :n), 0.0)
      end associate
   end subroutine

   ! The sum over `n` cells of half the squared error of each output, and its gradient.
   real(kind(1d0)) function network_loss(net, y, n) result(loss)
      type(network), intent(inout) :: net
      real, intent(in) :: y(:, :)
      integer, intent(in) :: n
      integer :: s

      loss = 0
      do s = 1, n
         net%d(:OUTPUTS, s) = net%x(net%layers)%of(:, s) - y(:, s)
         loss = loss + 0.5d0 * sum(real(net%d(:OUTPUTS, s), kind(1d0))**2)
      end do
   end function

   ! Adds to the gradients of layer `l`, and goes down to the next.
   subroutine network_backward(net, l, w, dw, db, n)
      type(network), intent(inout) :: net
      integer, intent(in) :: l, n
      real, intent(in), contiguous :: w(:, :)
      real, intent(inout), contiguous :: dw(:, :)
      real, intent(inout) :: db(:)
      integer :: s

      if (n == 0) return
      associate (below => net%neurons(l - 1), above => net%neurons(l), most => size(net%d, 1))
         do s = 1, n
            if (l < net%layers) where (.not. net%x(l)%of(:, s) > 0) net%d(:above, s) = 0
            db = db + net%d(:above, s)
         end do
         call sgemm('N', 'T', below, above, n, 1.0, net%x(l - 1)%of, below, net%d, most, 1.0, dw, below)
         if (l == 1) return
         call sgemm('N', 'N', below, n, above, 1.0, w, below, net%d, most, 0.0, net%next, most)
         net%d(:below, :n) = net%next(:below, :n)
      end associate
   end subroutine
end module
