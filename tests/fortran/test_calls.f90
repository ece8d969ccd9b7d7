! The calls beside collectives and training: callbacks, options, plans, and pure functions.
program test_calls
   use, intrinsic :: iso_c_binding
   use mpi
   use fsdp
   use checks
   use callbacks
   implicit none
   type(fsdp_context) :: ctx
   type(fsdp_config) :: config
   type(counter), target :: lines
   integer :: error, provided

   call MPI_Init_thread(MPI_THREAD_MULTIPLE, provided, error)
   call fsdp_config_init(config)
   call check(config%verify == FSDP_UNSET .and. config%size == c_sizeof(config), 'settings are unset')
   config%verify = FSDP_VERIFY_FULL
   config%log = c_funloc(count_line)
   config%log_state = c_loc(lines)
   call fsdp_init(MPI_COMM_WORLD, ctx, config)
   call own_optimizer()
   call lbfgs()
   call many_units()
   call batch_norm()
   call half_precision()
   call rows_and_bytes()
   call schedules_and_samplers()
   call nodes()
   call meshes()
   call strategies_of_axes()
   call divided_layers()
   call texts()
   call fsdp_finalize(ctx)
   call MPI_Finalize(error)

contains

   ! Words that are looked up, the sum over the ranks, and a loss of equal logits.
   subroutine divided_layers()
      integer(c_size_t), parameter :: vocabulary = 7
      type(fsdp_tp_activations) :: a
      type(fsdp_request) :: request
      integer(c_int32_t) :: words(2)
      integer(c_size_t) :: begin, count, i
      real(c_float), allocatable, target :: table(:, :), d_table(:, :), logits(:, :)
      real(c_float), target :: x(3, 2), y(3, 2)
      real(c_double) :: losses(2)
      integer :: code

      call fsdp_tp_part(ctx, vocabulary, begin, count)
      allocate (table(3, count), d_table(3, count), logits(count, 2))
      do i = 1, count
         table(:, i) = real(begin + i - 1, c_float)
      end do
      a = fsdp_tp_activations(rows=2, width=3, dtype=FSDP_F32, outside=FSDP_TP_ALL_ROWS)
      words = [5, 0]
      call fsdp_tp_embed(ctx, a, words, vocabulary, c_loc(table), c_loc(x))
      call fsdp_tp_iend(ctx, a, c_loc(x), c_loc(y), request)
      call fsdp_wait(request)
      call check(all(y(:, 1) == 5) .and. all(y(:, 2) == 0), 'rows of words')
      call fsdp_tp_end(ctx, a, c_loc(x), c_loc(y))
      call check(all(y(:, 1) == 5), 'the same, blocking')
      call fsdp_tp_begin(ctx, a, c_loc(y), c_loc(x))
      call fsdp_tp_ibegin(ctx, a, c_loc(y), c_loc(x), request)
      call check(fsdp_is_null(request), 'nothing is exchanged')
      call fsdp_wait(request)
      d_table = 0
      call fsdp_tp_embed_backward(ctx, a, words, vocabulary, c_loc(x), c_loc(d_table))
      if (5 >= begin .and. 5 < begin + count) call check(all(d_table(:, 6 - begin) == 5), 'the gradient of a word')

      logits = 0
      call fsdp_tp_cross_entropy(ctx, vocabulary, FSDP_F32, [3_c_int32_t, FSDP_TP_NO_TARGET], 1.0_c_double, c_loc(logits), losses)
      call check(abs(losses(1) - log(7.0_c_double)) < 1e-6 .and. losses(2) == 0, 'losses')
      call fsdp_tp_embed(ctx, a, [7_c_int32_t, 0_c_int32_t], vocabulary, c_loc(table), c_loc(x), status=code)
      call check(code == FSDP_ERR_ARG, 'a word that is not there')
   end subroutine

   ! All ranks in a row, and the other way round.
   subroutine meshes()
      type(fsdp_mesh) :: mesh
      type(fsdp_context) :: dp, one
      integer :: code, i, ranks

      ranks = fsdp_size(ctx)
      call fsdp_mesh_create(ctx, [character(4) :: 'dp', 'tp'], [0, 1], mesh)
      call check(fsdp_mesh_size(mesh, 'dp') == ranks .and. fsdp_mesh_size(mesh, 'tp') == 1, 'sizes of axes')
      call fsdp_mesh_context(mesh, 'dp', dp)
      call fsdp_mesh_context(mesh, 'tp', one)
      call check(fsdp_size(dp) == ranks .and. fsdp_size(one) == 1, 'contexts of axes')
      call check(fsdp_mesh_rank(mesh, [fsdp_mesh_position(mesh, 'dp'), 0]) == fsdp_rank(ctx), 'the rank at a place')
      call fsdp_mesh_print(mesh, '/dev/null')
      call fsdp_mesh_context(mesh, 'pp', one, status=code)
      call check(code == FSDP_ERR_ARG .and. fsdp_is_null(one), 'an axis that is not there')
      call fsdp_mesh_destroy(mesh)
      call check(fsdp_is_null(mesh), 'a mesh that is gone')

      call fsdp_mesh_create(ctx, ['dp'], [ranks], mesh, order=[(ranks - i, i = 1, ranks)])
      call fsdp_mesh_context(mesh, 'dp', dp)
      call check(fsdp_rank(dp) == ranks - 1 - fsdp_rank(ctx), 'an order of the program''s own')
      call fsdp_mesh_destroy(mesh)
      call fsdp_mesh_create(ctx, ['dp'], [1, 2], mesh, status=code)
      call check(code == FSDP_ERR_ARG .and. fsdp_is_null(mesh), 'more sizes than names')
   end subroutine

   ! What is divided over one axis and copied along another.
   subroutine strategies_of_axes()
      type(fsdp_mesh) :: mesh
      type(fsdp_context) :: data
      type(fsdp_model) :: model
      integer :: code, group, strategy

      call fsdp_mesh_create(ctx, [character(4) :: 'node', 'gpu'], [0, 1], mesh)
      call fsdp_mesh_context(mesh, 'node+gpu', data)
      call fsdp_model_create(data, model, mesh=mesh, axis_strategies='node=SHARD_GRAD_OP')
      call fsdp_model_strategy(model, strategy, group)
      call check(strategy == FSDP_SHARD_GRAD_OP .and. group == fsdp_size(ctx), 'what the strategies of axes come to')
      call fsdp_model_destroy(model)
      call fsdp_model_create(data, model, mesh=mesh, axis_strategies='host=FULL_SHARD', status=code)
      call check(code == FSDP_ERR_ARG .and. fsdp_is_null(model), 'a strategy of an axis that is not there')
      call fsdp_mesh_destroy(mesh)
   end subroutine

   ! A unit of one tensor of 2 x 3, filled by a function, and updated by another one; a hook doubles the gradient.
   subroutine own_optimizer()
      type(fsdp_model) :: model
      type(fsdp_unit) :: unit
      type(fsdp_optimizer) :: optimizer
      type(fsdp_hook) :: hook
      type(counter), target :: counted
      real(c_float), pointer :: w(:, :), g(:, :)
      real(c_float) :: now(2, 3)
      real(c_double) :: norm
      type(fsdp_budget) :: budget
      integer :: calls

      call fsdp_model_create(ctx, model, strategy=FSDP_NO_SHARD, optimizer=FSDP_CUSTOM, seed=3_c_int64_t)
      call fsdp_unit_add(model, 'u', [fsdp_tensor_spec('u.w', [2, 3], fill_values=fill_with_index)], unit)
      call fsdp_model_commit(model)
      call fsdp_model_budget(model, budget, optimizer=FSDP_CUSTOM)
      call check(budget%parameters == 6, 'a budget')
      call fsdp_optimizer_create(model, optimizer, update=descend, update_state=c_loc(counted), lr=0.5_c_double)
      call fsdp_hook_custom(ctx, hook, after=double_it)
      call fsdp_model_set_hook(model, hook)

      call fsdp_unit_begin_backward(unit)
      call fsdp_unit_param(unit, 1, w)
      call check(w(1, 1) == 0 .and. w(2, 1) == 1 .and. w(1, 2) == 2 .and. w(2, 3) == 5, 'filled in the order of memory')
      call fsdp_unit_grad(unit, 1, g)
      g = 3
      call fsdp_unit_end_backward(unit)
      call fsdp_grad_norm(model, norm)
      call check(abs(norm - sqrt(6 * 6.0_c_double**2)) < 1e-6, 'the norm of gradients')
      call fsdp_optimizer_step(optimizer)
      call fsdp_tensor_export_to_all(model, 'u.w', now)
      call check(now(2, 3) == 5 - 0.5 * 6, 'updated by the program''s function')
      calls = counted%calls
      call fsdp_allreduce(ctx, FSDP_IN_PLACE, calls, FSDP_SUM)
      call check(calls >= 1, 'which has been called')
      call fsdp_model_destroy(model)
      call fsdp_hook_destroy(hook)
   end subroutine

   ! The least of (w - 2)^2, from w = 5.
   subroutine lbfgs()
      type(fsdp_model) :: model
      type(fsdp_lbfgs) :: optimizer
      type(fsdp_lbfgs_options) :: options
      type(fsdp_lbfgs_result) :: result
      type(fsdp_unit), target :: unit
      real(c_float) :: w(1)

      call fsdp_model_create(ctx, model, optimizer=FSDP_SGD)
      call fsdp_unit_add(model, 'v', [fsdp_tensor_spec('v.w', [1], a=5.0_c_double)], unit)
      call fsdp_model_commit(model)
      call fsdp_lbfgs_options_init(options)
      call check(options%history == 10, 'options of L-BFGS')
      call fsdp_lbfgs_create(model, optimizer, options)
      call fsdp_lbfgs_step(optimizer, parabola, c_loc(unit), result)
      call fsdp_tensor_export_to_all(model, 'v.w', w)
      call check(abs(w(1) - 2) < 1e-5 .and. result%loss < 1e-9, 'the minimum')
      call fsdp_model_destroy(model)
   end subroutine

   integer(c_int) function parabola(state, loss) bind(C) result(status)
      type(c_ptr), value :: state
      real(c_double), intent(out) :: loss
      type(fsdp_unit), pointer :: unit
      real(c_float), pointer :: w(:), g(:)

      call c_f_pointer(state, unit)
      call fsdp_unit_begin_backward(unit)
      call fsdp_unit_param(unit, 1, w)
      call fsdp_unit_grad(unit, 1, g)
      loss = (w(1) - 2.0_c_double)**2
      g = 2 * (w - 2)
      call fsdp_unit_end_backward(unit, status)
   end function

   ! Units by a pattern of names, in bf16, with a scalar, an ignored tensor and a loss scaler.
   subroutine many_units()
      type(fsdp_tensor_spec) :: tensors(4)
      type(fsdp_model) :: model
      type(fsdp_unit) :: units(4)
      type(fsdp_optimizer) :: optimizer
      integer(c_size_t) :: first(4)
      integer(c_int16_t), pointer :: halves(:, :), scalar
      real(c_float), pointer :: g(:, :), running(:)
      real(c_float) :: wide(2, 2)
      integer :: n, status

      tensors(1) = fsdp_tensor_spec('h.0.w', [2, 2], a=1.5_c_double)
      tensors(2) = fsdp_tensor_spec('h.0.running', [3], flags=FSDP_TENSOR_IGNORED)
      tensors(3) = fsdp_tensor_spec('h.1.w', [2, 2], tied_to='h.0.w')
      tensors(4) = fsdp_tensor_spec('h.1.scale', a=-2.0_c_double)
      call fsdp_group_by_name(tensors, 'h.*.', first, n)
      call check(n == 2 .and. first(1) == 0 .and. first(2) == 2, 'groups by name')
      call fsdp_model_create(ctx, model, param_dtype=FSDP_BF16, unused=FSDP_UNUSED_KEEP)
      call fsdp_units_add_grouped(model, tensors, first, units(:n))
      call fsdp_model_commit(model)
      call fsdp_optimizer_create(model, optimizer, kind=FSDP_SGD, lr=1.0_c_double)
      call fsdp_optimizer_add_group(optimizer, '*.scale', lr_scale=0.5_c_double)
      call fsdp_unit_buffer(units(1), 2, running)
      running = [1, 2, 3]
      call fsdp_unit_begin_backward(units(2))
      call fsdp_unit_param(units(2), 1, halves)
      call fsdp_cast(ctx, wide, FSDP_F32, halves, FSDP_BF16)
      call check(all(wide == 1.5), 'a tied tensor in bf16')
      nullify (scalar)
      call fsdp_unit_param(units(2), 2, scalar)
      call check(scalar == int(z'c000', c_int) - 65536, 'a scalar in bf16')
      call fsdp_unit_grad(units(2), 1, halves, status)
      call check_status(status, FSDP_ERR_ARG, 'gradients are f32')
      call fsdp_unit_grad(units(2), 1, g)
      g = 1
      call fsdp_unit_end_backward(units(2))
      call fsdp_optimizer_step(optimizer)
      call fsdp_tensor_export_to_all(model, 'h.0.w', wide)
      call check(all(wide == 0.5), 'a step')
      call fsdp_unit_buffer(units(1), 2, running)
      call check(all(running == [1, 2, 3]), 'an ignored tensor')
      call fsdp_model_destroy(model)
   end subroutine

   ! Over the samples of all ranks, whose values are 1 and -1.
   subroutine batch_norm()
      real(c_float) :: x(1, 1, 2), y(1, 1, 2), dx(1, 1, 2), weight(1) = 1, bias(1) = 3, d_weight(1) = 0, d_bias(1) = 0
      real(c_float) :: running_mean(1) = 0, running_variance(1) = 1
      real(c_double) :: mean(1), scale(1), count

      x(1, 1, :) = [1, -1]
      call fsdp_batch_norm_forward(ctx, x, weight, bias, y, mean, scale, count)
      call check(count == 2 * fsdp_size(ctx) .and. mean(1) == 0 .and. abs(y(1, 1, 1) - 4) < 1e-4, 'batch normalisation')
      call fsdp_batch_norm_forward(ctx, x + 5, weight, bias, y, mean, scale, count, running_mean, running_variance)
      call check(mean(1) == 5 .and. abs(running_mean(1) - 0.5) < 1e-6, 'running statistics')
      call fsdp_batch_norm_backward(ctx, x + 5, weight, x, dx, d_weight, d_bias, mean, scale, count)
      call check(abs(d_weight(1) - 2) < 1e-4 .and. abs(d_bias(1)) < 1e-6, 'gradients of batch normalisation')
      call fsdp_batch_norm_evaluate(ctx, x, weight, bias, [0.0], [1.0], y)
      call check(abs(y(1, 1, 2) - 2) < 1e-4, 'batch normalisation of a trained model')
   end subroutine

   ! A loss scaler: an infinite gradient makes all ranks skip the step.
   subroutine half_precision()
      type(fsdp_model) :: model
      type(fsdp_unit) :: unit
      type(fsdp_optimizer) :: optimizer
      type(fsdp_loss_scaler) :: scaler
      type(fsdp_loss_scaler_options) :: options
      type(fsdp_loss_scaler_state) :: state
      integer(c_int16_t), pointer :: g(:)
      logical :: stepped, finite

      call fsdp_model_create(ctx, model, param_dtype=FSDP_F16, reduce_dtype=FSDP_F16)
      call fsdp_unit_add(model, 'p', [fsdp_tensor_spec('p.w', [4])], unit)
      call fsdp_model_commit(model)
      call fsdp_optimizer_create(model, optimizer)
      call fsdp_loss_scaler_options_init(options)
      options%initial_scale = 8
      call fsdp_loss_scaler_create(model, scaler, options)
      call fsdp_unit_begin_backward(unit)
      call fsdp_unit_grad(unit, 1, g)
      call fsdp_cast(ctx, g, FSDP_F16, spread(merge(huge(1.0), 1.0, fsdp_rank(ctx) == 0), 1, 4), FSDP_F32)
      call fsdp_unit_end_backward(unit)
      call fsdp_loss_scaler_unscale(scaler, finite)
      call fsdp_loss_scaler_step(scaler, optimizer, stepped)
      call fsdp_loss_scaler_get_state(scaler, state)
      call check(.not. (finite .or. stepped) .and. state%skipped_steps == 1, 'a step is skipped')
      call check(fsdp_loss_scaler_scale(scaler) == 4, 'and the scale halved')
      call fsdp_model_destroy(model)
   end subroutine

   ! Each rank has two rows, saved in the order of their numbers, and bytes of rank 0.
   subroutine rows_and_bytes()
      type(fsdp_checkpoint) :: checkpoint
      type(fsdp_checkpoint_state) :: state
      integer(c_int64_t), target :: ids(2)
      integer(c_int64_t), pointer :: mine(:)
      real(c_double), target :: positions(3, 2)
      real(c_double), pointer :: found(:, :)
      type(c_ptr), target :: columns(1)
      character(kind=c_char), target :: bytes(8)
      integer(c_size_t), target :: n_bytes
      character(500) :: folder
      integer :: n

      call get_environment_variable('TMPDIR', folder)
      n = fsdp_size(ctx)
      ids = [2 * n - fsdp_rank(ctx), n - fsdp_rank(ctx)] ! 1 to 2 n, backwards
      positions = spread(real(ids, c_double), 1, 3)
      columns = c_loc(positions)
      n_bytes = 3
      call fsdp_set_text(bytes, 'abc')
      call fsdp_checkpoint_open_folder(ctx, trim(folder) // '/rows', checkpoint)
      call fsdp_checkpoint_add_rows(checkpoint, 'particles', ['position'], [FSDP_F64], [3])
      call fsdp_checkpoint_add_bytes(checkpoint, 'note', bytes, n_bytes)
      call fsdp_checkpoint_set_rows(checkpoint, 'particles', ids, columns)
      call fsdp_checkpoint_save(checkpoint, state)
      call fsdp_set_text(bytes, '')
      call fsdp_checkpoint_restore(checkpoint, trim(folder) // '/rows')
      call fsdp_checkpoint_get_rows(checkpoint, 'particles', mine, columns)
      call check(size(mine) == 2 .and. mine(1) == 2 * fsdp_rank(ctx) + 1, 'an equal share of all rows, in order')
      call c_f_pointer(columns(1), found, [3, 2])
      call check(all(found(3, :) == mine), 'with their columns')
      call check(n_bytes == 3 .and. fsdp_string(bytes) == 'abc', 'bytes')
      call fsdp_checkpoint_close(checkpoint)
   end subroutine

   subroutine schedules_and_samplers()
      type(fsdp_lr_schedule) :: schedule = fsdp_lr_schedule(kind=FSDP_LR_LINEAR, peak=1, final=0, total=10)
      type(fsdp_sampler) :: sampler
      type(fsdp_layout) :: layout
      integer(c_int) :: owners(3)
      integer :: status

      call fsdp_lr_schedule_check(schedule)
      call check(fsdp_lr_at(schedule, 5) == 0.5_c_double .and. fsdp_lr_at(schedule, 0_c_size_t) == 1, 'learning rates')
      schedule%peak = -1
      call fsdp_lr_schedule_check(schedule, status)
      call check_status(status, FSDP_ERR_ARG, 'a negative rate')
      sampler = fsdp_sampler(dataset=10, rank=fsdp_rank(ctx), size=fsdp_size(ctx))
      call fsdp_sampler_check(sampler)
      call check(fsdp_sampler_index(sampler, 0_c_int64_t, 0_c_size_t) == fsdp_rank(ctx), 'samples in order')
      call fsdp_layout_init([10_c_size_t], 2, 1_c_size_t, FSDP_GRANULARITY_FLAT, layout)
      call check(layout%elements == 10 .and. layout%size == 2, 'a layout')
      call fsdp_deal_tensors([1.0_c_double, 5.0_c_double, 1.0_c_double], 2, owners)
      call check(owners(2) /= owners(1) .and. owners(1) == owners(3), 'tensors are dealt')
   end subroutine

   subroutine nodes()
      type(fsdp_topology) :: topology
      type(fsdp_node), pointer :: node
      type(fsdp_domain), pointer :: cores(:)
      type(fsdp_local_rank) :: ranks(1)
      type(fsdp_place) :: places(1)
      type(fsdp_mask) :: mask

      call fsdp_topology_open(topology)
      node => fsdp_topology_node(topology)
      call c_f_pointer(node%cores, cores, [node%n_cores])
      call check(node%n_cores >= 1 .and. fsdp_mask_count(cores(1)%threads) >= 1, 'the cores of this machine')
      call fsdp_local_rank_look(ranks(1))
      call fsdp_plan(node, ranks, places)
      call check(fsdp_mask_count(places(1)%threads) >= 1, 'a plan')
      call fsdp_topology_close(topology)
      call fsdp_mask_read('0-2,5', mask)
      call check(fsdp_mask_text(mask) == '0-2,5' .and. fsdp_mask_has(mask, 5) .and. .not. fsdp_mask_has(mask, 4), &
                 'a mask')
   end subroutine

   ! Also those that C prints to a FILE, and lines of the log that the program takes.
   subroutine texts()
      character(500) :: folder, line
      character(12) :: name
      integer :: file, status, length

      call get_environment_variable('TMPDIR', folder, length)
      write (name, '(a, i0)') '/settings.', fsdp_rank(ctx)
      call fsdp_settings_print(ctx, trim(folder) // name)
      open (newunit=file, file=trim(folder) // name, status='old', action='read')
      read (file, '(a)') line
      close (file)
      call check(index(line, 'FSDP_LOG') > 0, 'a table of settings')
      call check(fsdp_dtype_name(FSDP_BF16) == 'bf16' .and. fsdp_redop_name(FSDP_AVG) == 'avg', &
                 'names of types and reductions')
      call check(fsdp_dtype_size(FSDP_F64) == 8, 'sizes of types')
      call check(fsdp_version() /= '' .and. fsdp_memory_name(FSDP_MEMORY_STAGING) == 'staging buffers', 'names')
      call check(fsdp_random_stream('a') /= fsdp_random_stream('b'), 'streams of random numbers')
      call fsdp_stop_watch()
      call fsdp_stop_agree(ctx, status)
      call check(status == 0 .and. fsdp_stop_signal() == 0, 'no signal')
      call fsdp_stop_unwatch()
      call fsdp_allreduce(ctx, c_null_ptr, c_null_ptr, 1_c_size_t, FSDP_F32, FSDP_SUM, status)
      call check_status(status, FSDP_ERR_ARG, 'no addresses')
      if (fsdp_rank(ctx) == 0) call check(lines%calls == 1, 'the program takes the log')
      call fsdp_agree(ctx, merge(FSDP_ERR_IO, FSDP_OK, fsdp_rank(ctx) == 0), 'no disk', status)
      call check(status == FSDP_ERR_IO .and. index(fsdp_last_error(ctx), 'no disk') > 0, 'an agreement')
   end subroutine
end program
