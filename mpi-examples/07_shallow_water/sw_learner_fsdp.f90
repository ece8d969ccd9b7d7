! The surrogate's training with the module `fsdp`: each layer a unit, of which a rank holds a slice.
module sw_learner
   use, intrinsic :: iso_c_binding
   use mpi_f08, only: MPI_Comm
   use fsdp
   use sw_network
   implicit none
   private
   public :: learner, learner_open, learner_close, learner_train, learner_predict, learner_bytes, learner_hash

   character(*), parameter, public :: PROGRAM_NAME = '07_shallow_water'
   logical, parameter, public :: WITH_FSDP = .true.

   ! What the initial weights of a layer are computed from.
   type, bind(C) :: origin
      integer(c_int) :: seed, layer, neurons_below
   end type

   type :: learner
      type(fsdp_context) :: ctx
      type(fsdp_model) :: model
      type(fsdp_optimizer) :: optimizer
      type(fsdp_unit), allocatable :: units(:)
      type(origin), pointer :: origins(:) => null()
   end type

contains

   ! `comm` is the simulation's. False, and the library has said why: the model does not fit into memory, for one.
   logical function learner_open(l, comm, net, seed, strategy) result(good)
      type(learner), intent(inout) :: l
      type(MPI_Comm), intent(in) :: comm
      integer, intent(in) :: seed
      type(network), intent(in) :: net
      character(*), intent(in) :: strategy
      character(20) :: name
      integer :: i, how, status

      call fsdp_init(comm, l%ctx, status=status)
      good = status == FSDP_OK
      if (.not. good) return
      call fsdp_strategy_parse(in_capitals(strategy), how, status)
      if (status == FSDP_OK) call fsdp_model_create(l%ctx, l%model, strategy=how, status=status)
      good = status == FSDP_OK
      if (.not. good) return
      allocate (l%units(net%layers), l%origins(net%layers))
      do i = 1, net%layers
         write (name, '(a, i0)') 'layer.', i
         l%origins(i) = origin(seed, i, net%neurons(i - 1))
         call fsdp_unit_add(l%model, name, [ &
            fsdp_tensor_spec(trim(name) // '.weight', [net%neurons(i - 1), net%neurons(i)], fill_values=fill, &
                             fill_state=c_loc(l%origins(i))), &
            fsdp_tensor_spec(trim(name) // '.bias', [net%neurons(i)])], l%units(i))
      end do
      call fsdp_model_commit(l%model, status)
      if (status == FSDP_OK) call fsdp_optimizer_create(l%model, l%optimizer, weight_decay=0d0, status=status)
      good = status == FSDP_OK
   end function

   pure function in_capitals(text) result(capitals)
      character(*), intent(in) :: text
      character(len(text)) :: capitals
      integer :: i

      do i = 1, len(text)
         capitals(i:i) = merge(achar(iachar(text(i:i)) - 32), text(i:i), text(i:i) >= 'a' .and. text(i:i) <= 'z')
      end do
   end function

   ! Called from C, for any part of the weights of a layer.
   integer(c_int) function fill(state, tensor, first, count, values, dtype) bind(C)
      type(c_ptr), value :: state, tensor, values
      integer(c_size_t), value :: first, count
      integer(c_int), value :: dtype
      type(origin), pointer :: from
      real(c_float), pointer :: w(:)
      integer(c_size_t) :: i

      fill = FSDP_ERR_ARG
      if (dtype /= FSDP_F32 .or. .not. c_associated(tensor)) return
      call c_f_pointer(state, from)
      call c_f_pointer(values, w, [count])
      do i = 1, count
         w(i) = initial_weight(from%seed, from%layer, from%neurons_below, int(first + i - 1, c_int64_t))
      end do
      fill = FSDP_OK
   end function

   subroutine learner_close(l)
      type(learner), intent(inout) :: l

      if (.not. fsdp_is_null(l%model)) call fsdp_model_destroy(l%model)
      if (.not. fsdp_is_null(l%ctx)) call fsdp_finalize(l%ctx)
      if (associated(l%origins)) deallocate (l%origins)
   end subroutine

   ! begin step
   ! One step on this rank's `n` of the `batch` cells of all ranks; n may be 0. `loss` is this rank's part of the mean.
   subroutine learner_train(l, net, y, n, batch, lr, loss)
      type(learner), intent(inout) :: l
      type(network), intent(inout) :: net
      real, intent(in) :: y(:, :)
      integer, intent(in) :: n, batch
      real(c_double), intent(in) :: lr
      real(c_double), intent(out) :: loss
      real, pointer, contiguous :: w(:, :), dw(:, :), db(:)
      integer :: i

      call forward(l, net, n)
      loss = network_loss(net, y, n) / batch
      do i = net%layers, 1, -1
         call fsdp_unit_begin_backward(l%units(i))
         call fsdp_unit_param(l%units(i), 1, w)
         call fsdp_unit_grad(l%units(i), 1, dw)
         call fsdp_unit_grad(l%units(i), 2, db)
         call network_backward(net, i, w, dw, db, n)
         call fsdp_unit_end_backward(l%units(i)) ! the reduction begins, and the next layer is computed meanwhile
      end do
      call fsdp_model_set_gradient_divisor(l%model, real(batch, c_double)) ! ranks have unequal parts of the batch
      call fsdp_optimizer_set_lr(l%optimizer, lr)
      call fsdp_optimizer_step(l%optimizer)
   end subroutine

   subroutine forward(l, net, n)
      type(learner), intent(inout) :: l
      type(network), intent(inout) :: net
      integer, intent(in) :: n
      real, pointer, contiguous :: w(:, :), b(:)
      integer :: i

      do i = 1, net%layers
         call fsdp_unit_begin_forward(l%units(i))
         call fsdp_unit_param(l%units(i), 1, w)
         call fsdp_unit_param(l%units(i), 2, b)
         call network_forward(net, i, w, b, n)
         call fsdp_unit_end_forward(l%units(i))
      end do
   end subroutine
   ! end step

   ! The outputs for `n` cells whose inputs are in `net`. All ranks call it.
   subroutine learner_predict(l, net, n)
      type(learner), intent(inout) :: l
      type(network), intent(inout) :: net
      integer, intent(in) :: n

      call forward(l, net, n)
   end subroutine

   ! What this rank holds of the model: parameters, gradients, moments, and views, whose memory the ranks of a node
   ! share.
   subroutine learner_bytes(l, state, views)
      type(learner), intent(in) :: l
      integer(c_int64_t), intent(out) :: state, views
      type(fsdp_memory) :: memory

      call fsdp_memory_usage(l%ctx, memory)
      associate (held => memory%current)
         state = int(held(1 + FSDP_MEMORY_PARAMETERS) + held(1 + FSDP_MEMORY_GRADIENTS) + &
                     held(1 + FSDP_MEMORY_OPTIMIZER), c_int64_t)
         views = int(held(1 + FSDP_MEMORY_GATHERED) + held(1 + FSDP_MEMORY_GRADIENT_VIEWS), c_int64_t)
      end associate
   end subroutine

   ! The same on all ranks.
   integer(c_int64_t) function learner_hash(l) result(hash)
      type(learner), intent(in) :: l

      call fsdp_model_hash(l%model, hash)
   end function
end module
