! A network of three layers learns a sine wave, each layer a unit: mpirun -n 4 first_model
program first_model
   use mpi
   use fsdp
   implicit none
   integer, parameter   :: LAYERS = 3, SAMPLES = 64, STEPS = 1500, N(0:LAYERS) = [1, 32, 32, 1]
   real                 :: x(32, SAMPLES, 0:LAYERS), d(32, SAMPLES) ! what layers put out, and a gradient of it
   type(fsdp_context)   :: ctx
   type(fsdp_model)     :: model
   type(fsdp_unit)      :: layer(LAYERS)
   type(fsdp_optimizer) :: adamw
   real, pointer        :: w(:, :), b(:), dw(:, :), db(:)
   real                 :: loss
   character(3)         :: name
   integer              :: error, provided, i, s, step, first

   call MPI_Init_thread(MPI_THREAD_MULTIPLE, provided, error) ! so that communication overlaps with compute
   call fsdp_init(MPI_COMM_WORLD, ctx)
   call fsdp_model_create(ctx, model)
   do i = 1, LAYERS
      write (name, '(a, i0)') 'h.', i
      call fsdp_unit_add(model, name, [fsdp_tensor_spec(name // '.bias', [N(i)]), &
         fsdp_tensor_spec(name // '.weight', [N(i - 1), N(i)], fill=FSDP_FILL_NORMAL, b=N(i - 1)**(-0.5d0))], layer(i))
   end do
   call fsdp_model_commit(model)
   call fsdp_optimizer_create(model, adamw, lr=1d-3)
   do step = 1, STEPS
      first = (step * fsdp_size(ctx) + fsdp_rank(ctx)) * SAMPLES ! every rank draws samples of its own
      x(1, :, 0) = [(2 * real(fsdp_random_uniform(1_8, 0_8, int(first + s, 8))) - 1, s=1, SAMPLES)]
      do i = 1, LAYERS
         call fsdp_unit_begin_forward(layer(i)) ! the layer's parameters arrive from all ranks
         call fsdp_unit_param(layer(i), 1, b)
         call fsdp_unit_param(layer(i), 2, w)
         x(:N(i), :, i) = matmul(transpose(w), x(:N(i - 1), :, i - 1)) + spread(b, 2, SAMPLES)
         if (i < LAYERS) x(:N(i), :, i) = tanh(x(:N(i), :, i))
         call fsdp_unit_end_forward(layer(i)) ! and are released again
      end do
      loss = sum((x(1, :, LAYERS) - sin(3 * x(1, :, 0)))**2) / SAMPLES
      d(1, :) = 2 * (x(1, :, LAYERS) - sin(3 * x(1, :, 0))) / SAMPLES
      do i = LAYERS, 1, -1
         call fsdp_unit_begin_backward(layer(i))
         call fsdp_unit_param(layer(i), 2, w)
         call fsdp_unit_grad(layer(i), 1, db)
         call fsdp_unit_grad(layer(i), 2, dw)
         if (i < LAYERS) d(:N(i), :) = d(:N(i), :) * (1 - x(:N(i), :, i)**2)
         db = db + sum(d(:N(i), :), 2)
         dw = dw + matmul(x(:N(i - 1), :, i - 1), transpose(d(:N(i), :)))
         d(:N(i - 1), :) = matmul(w, d(:N(i), :))
         call fsdp_unit_end_backward(layer(i)) ! gradients are averaged over all ranks; each keeps its slice
      end do
      call fsdp_clip_grad_norm(model, 1d0)
      call fsdp_optimizer_step(adamw) ! each rank updates its slice of the parameters
      if (mod(step, 500) == 0) call fsdp_allreduce(ctx, FSDP_IN_PLACE, loss, FSDP_AVG)
      if (mod(step, 500) == 0 .and. fsdp_rank(ctx) == 0) print '(a, i4, a, f7.5)', 'step ', step, ' | loss ', loss
   end do
   call fsdp_model_destroy(model)
   call fsdp_finalize(ctx)
   call MPI_Finalize(error)
end program
