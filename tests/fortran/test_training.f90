! A model of two units trained with AdamW gives the losses and the parameters of its twin in C, bit for bit; views are
! arrays of two dimensions; a checkpoint brings it back; and what goes wrong is in the status, with a text.
program test_training
   use, intrinsic :: iso_c_binding
   use mpi
   use fsdp
   use checks
   implicit none

   interface
      integer(c_int) function twin_train(comm, steps, losses, hash) bind(C)
         import :: c_float, c_int, c_int64_t
         integer(c_int), value           :: comm, steps
         real(c_float), intent(out)      :: losses(*)
         integer(c_int64_t), intent(out) :: hash
      end function
   end interface

   integer, parameter :: INPUTS = 3, HIDDEN = 5, SAMPLES = 8, STEPS = 30
   real(c_float) :: x(INPUTS, SAMPLES), h(HIDDEN, SAMPLES), y(SAMPLES), dy(SAMPLES), dh(HIDDEN, SAMPLES)
   real(c_float) :: losses(STEPS), twin_losses(STEPS)
   integer(c_int64_t) :: hash, twin_hash
   type(fsdp_context) :: ctx
   type(fsdp_model) :: model
   type(fsdp_unit) :: first, second
   type(fsdp_optimizer) :: optimizer
   integer :: error, provided, s

   call MPI_Init_thread(MPI_THREAD_MULTIPLE, provided, error)
   call fsdp_init(MPI_COMM_WORLD, ctx)
   call create(model, first, second, optimizer)
   do s = 1, STEPS
      call draw(s - 1)
      call step(losses(s))
   end do
   call fsdp_model_hash(model, hash)
   call check_status(int(twin_train(MPI_COMM_WORLD, STEPS, twin_losses, twin_hash)), FSDP_OK, 'the twin')
   call check(all(transfer(losses, [0_c_int32_t]) == transfer(twin_losses, [0_c_int32_t])), &
              'losses have the bits of the twin''s')
   call check(hash == twin_hash, 'so have parameters')
   call check(losses(STEPS) < losses(1), 'it has learned')

   call look_at_views()
   call look_at_shards()
   call save_and_load()
   call move_a_tensor()
   call make_mistakes()
   call fsdp_model_destroy(model)
   call fsdp_finalize(ctx)
   call MPI_Finalize(error)

contains

   subroutine create(model, first, second, optimizer)
      type(fsdp_model), intent(out) :: model
      type(fsdp_unit), intent(out) :: first, second
      type(fsdp_optimizer), intent(out) :: optimizer

      call fsdp_model_create(ctx, model)
      call fsdp_unit_add(model, 'first', [ &
         fsdp_tensor_spec('first.weight', [INPUTS, HIDDEN], fill=FSDP_FILL_NORMAL, b=0.5_c_double), &
         fsdp_tensor_spec('first.bias', [HIDDEN])], first)
      call fsdp_unit_add(model, 'second', [ &
         fsdp_tensor_spec('second.weight', [HIDDEN, 1], fill=FSDP_FILL_NORMAL, b=0.5_c_double)], second)
      call fsdp_model_commit(model)
      call fsdp_optimizer_create(model, optimizer, lr=0.02_c_double)
   end subroutine

   subroutine draw(step)
      integer, intent(in) :: step
      integer(c_int64_t) :: index
      integer :: i, s

      do s = 1, SAMPLES
         do i = 1, INPUTS
            index = (int(step, c_int64_t) * fsdp_size(ctx) + fsdp_rank(ctx)) * SAMPLES * INPUTS + (s - 1) * INPUTS + i - 1
            x(i, s) = 2.0 * real(fsdp_random_uniform(1_c_int64_t, 0_c_int64_t, index), c_float) - 1.0
         end do
      end do
   end subroutine

   subroutine step(loss)
      real(c_float), intent(out) :: loss
      real(c_float), pointer :: w(:, :), b(:), dw(:, :), db(:)

      call fsdp_unit_begin_forward(first)
      call fsdp_unit_param(first, 1, w)
      call fsdp_unit_param(first, 2, b)
      call first_forward(w, b)
      call fsdp_unit_end_forward(first)
      call fsdp_unit_begin_forward(second)
      call fsdp_unit_param(second, 1, w)
      call second_forward(w)
      call fsdp_unit_end_forward(second)
      loss = compare()
      call fsdp_unit_begin_backward(second)
      call fsdp_unit_param(second, 1, w)
      call fsdp_unit_grad(second, 1, dw)
      call second_backward(w, dw)
      call fsdp_unit_end_backward(second)
      call fsdp_unit_begin_backward(first)
      call fsdp_unit_grad(first, 1, dw)
      call fsdp_unit_grad(first, 2, db)
      call first_backward(dw, db)
      call fsdp_unit_end_backward(first)
      call fsdp_clip_grad_norm(model, 1.0_c_double)
      call fsdp_optimizer_step(optimizer)
   end subroutine

   subroutine first_forward(w, b)
      real(c_float), intent(in) :: w(:, :), b(:)
      real(c_float) :: sum
      integer :: i, o, s

      do s = 1, SAMPLES
         do o = 1, HIDDEN
            sum = b(o)
            do i = 1, INPUTS
               sum = sum + w(i, o) * x(i, s)
            end do
            h(o, s) = merge(sum, 0.1_c_float * sum, sum > 0)
         end do
      end do
   end subroutine

   subroutine first_backward(dw, db)
      real(c_float), intent(inout) :: dw(:, :), db(:)
      real(c_float) :: d
      integer :: i, o, s

      do s = 1, SAMPLES
         do o = 1, HIDDEN
            d = merge(dh(o, s), 0.1_c_float * dh(o, s), h(o, s) > 0)
            db(o) = db(o) + d
            do i = 1, INPUTS
               dw(i, o) = dw(i, o) + d * x(i, s)
            end do
         end do
      end do
   end subroutine

   subroutine second_forward(w)
      real(c_float), intent(in) :: w(:, :)
      integer :: i, s

      do s = 1, SAMPLES
         y(s) = 0
         do i = 1, HIDDEN
            y(s) = y(s) + w(i, 1) * h(i, s)
         end do
      end do
   end subroutine

   subroutine second_backward(w, dw)
      real(c_float), intent(in) :: w(:, :)
      real(c_float), intent(inout) :: dw(:, :)
      integer :: i, s

      do s = 1, SAMPLES
         do i = 1, HIDDEN
            dw(i, 1) = dw(i, 1) + dy(s) * h(i, s)
            dh(i, s) = dy(s) * w(i, 1)
         end do
      end do
   end subroutine

   real(c_float) function compare() result(loss)
      real(c_float) :: error
      integer :: s

      loss = 0
      do s = 1, SAMPLES
         error = y(s) - (x(1, s) * x(2, s) + x(3, s))
         dy(s) = 2.0 * error / SAMPLES
         loss = loss + error * error / SAMPLES
      end do
   end function

   ! The first extent of Fortran is that of neighbours in memory; so the file has the shape [HIDDEN, INPUTS].
   subroutine look_at_views()
      real(c_float), pointer :: w(:, :), flat(:)
      type(fsdp_unit) :: found

      call fsdp_unit_begin_forward(first)
      call fsdp_unit_param(first, 1, w)
      call fsdp_unit_param(first, 1, flat)
      call check(all(shape(w) == [INPUTS, HIDDEN]) .and. size(flat) == INPUTS * HIDDEN, 'the shapes of views')
      call check(w(2, 1) == flat(2) .and. w(1, 2) == flat(INPUTS + 1), 'the order of elements')
      found = fsdp_model_unit(model, 'first')
      call check(fsdp_unit_name(found) == 'first', 'the name of a unit')
      call check(fsdp_unit_tensor(found, 'bias') == 2 .and. fsdp_unit_tensor(found, 'nose') == FSDP_NO_TENSOR, &
                 'names of tensors')
      call fsdp_unit_param(found, fsdp_unit_tensor(found, 'first.bias'), flat)
      call check(size(flat) == HIDDEN, 'a unit that was looked up knows its tensors')
      call fsdp_unit_end_forward(first)
   end subroutine

   subroutine look_at_shards()
      real(c_float), pointer :: master(:), gradient(:), moment(:)
      integer(c_size_t) :: begin
      real(c_float) :: held

      call fsdp_unit_shard(first, 1, master, gradient, begin)
      call fsdp_optimizer_state(optimizer, first, 1, 2, moment)
      call check(size(master) == size(moment) .and. .not. associated(gradient), 'what a rank holds')
      held = real(size(master))
      call fsdp_allreduce(ctx, FSDP_IN_PLACE, held, FSDP_SUM)
      call check(held == INPUTS * HIDDEN, 'ranks together hold all')
      call check(all(moment >= 0), 'second moments')
   end subroutine

   subroutine save_and_load()
      type(fsdp_checkpoint) :: checkpoint
      type(fsdp_checkpoint_state) :: state, loaded
      type(fsdp_model) :: critic
      type(fsdp_unit) :: critics(2)
      type(fsdp_optimizer) :: its_optimizer
      character(:), allocatable :: path
      character(500) :: folder
      real(c_double), target :: field(4, 3)
      integer(c_int64_t) :: before, after
      real(c_float) :: loss
      integer :: length

      call get_environment_variable('TMPDIR', folder, length)
      call check(length > 0, 'TMPDIR names a folder')
      field = 4.25
      call fsdp_checkpoint_open(model, trim(folder) // '/run', checkpoint, optimizer)
      call fsdp_checkpoint_add(checkpoint, 'field', FSDP_F64, field)
      call create(critic, critics(1), critics(2), its_optimizer)
      call fsdp_checkpoint_add_model(checkpoint, 'critic', critic, its_optimizer)
      state%step = STEPS
      call fsdp_set_text(state%text, 'as it was')
      call fsdp_model_hash(model, before)
      call fsdp_checkpoint_save(checkpoint, state)
      call step(loss)
      field = 0
      call fsdp_model_hash(model, after)
      call check(before /= after, 'a step changes parameters')
      call fsdp_checkpoint_latest(ctx, trim(folder) // '/run', path)
      call fsdp_checkpoint_restore(checkpoint, path, loaded)
      call fsdp_model_hash(model, after)
      call check(before == after .and. all(field == 4.25_c_double), 'parameters and arrays are back')
      call check(loaded%step == STEPS .and. loaded%ranks == fsdp_size(ctx), 'numbers of the state')
      call check(fsdp_string(loaded%text) == 'as it was', 'text of the state')
      call check(fsdp_optimizer_steps(optimizer) == STEPS, 'steps of the optimizer')
      call fsdp_checkpoint_close(checkpoint)
      call step(loss)
      call fsdp_checkpoint_load(model, path, optimizer=optimizer)
      call fsdp_model_hash(model, after)
      call check(before == after, 'loaded without the folder being open')
      call fsdp_checkpoint_load(model, path, name='critic')
      call fsdp_model_hash(model, after)
      call fsdp_model_hash(critic, before)
      call check(before == after, 'the model that has a name, loaded into another one')
      call fsdp_model_destroy(critic)
   end subroutine

   subroutine move_a_tensor()
      real(c_float) :: w(INPUTS, HIDDEN)

      call fsdp_tensor_export_to_all(model, 'first.weight', w)
      w(2, 4) = 8.5
      call fsdp_tensor_import(model, 'first.weight', 0, w)
      w = 0
      call fsdp_tensor_export(model, 'first.weight', fsdp_size(ctx) - 1, w)
      if (fsdp_rank(ctx) == fsdp_size(ctx) - 1) call check(w(2, 4) == 8.5, 'a tensor there and back')
   end subroutine

   subroutine make_mistakes()
      real(c_float), pointer :: w(:, :), cube(:, :, :)
      real(c_double), pointer :: wide(:)
      type(fsdp_unit) :: unit
      integer :: status, dtype

      call fsdp_model_commit(model, status)
      call check_status(status, FSDP_ERR_STATE, 'committed twice')
      call check(index(fsdp_last_error(ctx), 'fsdp_model_commit') > 0, 'the text: ' // fsdp_last_error(ctx))
      call check(fsdp_status_name(status) == 'FSDP_ERR_STATE', 'the name of a status')
      call fsdp_unit_param(first, 1, w, status)
      call check_status(status, FSDP_ERR_STATE, 'no pass is open')
      call check(.not. associated(w), 'then there is no view')
      call fsdp_unit_begin_forward(first)
      call fsdp_unit_param(first, 3, w, status)
      call check_status(status, FSDP_ERR_ARG, 'a third tensor')
      call fsdp_unit_param(first, 1, cube, status)
      call check_status(status, FSDP_ERR_ARG, 'three dimensions')
      call check(index(fsdp_last_error(ctx), 'first.weight has 2 dimensions') > 0, 'says so: ' // fsdp_last_error(ctx))
      call fsdp_unit_param(first, 1, wide, status)
      call check_status(status, FSDP_ERR_ARG, 'f32 seen as f64')
      call fsdp_unit_end_forward(first)
      unit = fsdp_model_unit(model, 'third')
      call check(fsdp_is_null(unit), 'no such unit')
      call fsdp_dtype_parse('f31', dtype, status)
      call check_status(status, FSDP_ERR_ARG, 'no such type')
      call check(index(fsdp_last_error(), 'f31') > 0, 'the text: ' // fsdp_last_error())
   end subroutine
end program
