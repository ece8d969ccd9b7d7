! Parts of the page on Fortran: mpirun -n 2 fortran_calls FOLDER
! begin callback
module own_step
   use, intrinsic :: iso_c_binding
   use fsdp
   implicit none
contains
   ! Sign descent on the elements that this rank holds of one tensor.
   integer(c_int) function sign_descent(state, update) bind(C)
      type(c_ptr), value :: state
      type(fsdp_update), intent(in) :: update
      real(c_float), pointer :: w(:), g(:)
      integer, pointer :: calls

      call c_f_pointer(state, calls)
      call c_f_pointer(update%master, w, [update%count])
      call c_f_pointer(update%gradient, g, [update%count])
      calls = calls + 1
      w = w - sign(real(update%lr, c_float), g)
      sign_descent = FSDP_OK
   end function
end module
! end callback

program fortran_calls
   use, intrinsic :: iso_c_binding
   use mpi
   use fsdp
   use own_step
   implicit none
   type(fsdp_context) :: ctx
   type(fsdp_model) :: model
   type(fsdp_unit) :: unit
   integer :: error, provided

   call MPI_Init_thread(MPI_THREAD_MULTIPLE, provided, error)
   call fsdp_init(MPI_COMM_WORLD, ctx)
   call collectives()
   call train()
   call save()
   call fsdp_model_destroy(model)
   call fsdp_finalize(ctx)
   call MPI_Finalize(error)

contains

   subroutine collectives()
      ! begin collectives
      real :: mine(2, 3), whole(2, 3, fsdp_size(ctx)), mean
      real, asynchronous :: field(1000)
      integer(c_int16_t) :: halves(6)
      type(fsdp_request) :: request

      mine = real(fsdp_rank(ctx))
      call fsdp_allgather(ctx, mine, whole)
      mean = sum(mine)
      call fsdp_allreduce(ctx, FSDP_IN_PLACE, mean, FSDP_AVG) ! a scalar, in its own place
      field = 1
      call fsdp_iallreduce(ctx, FSDP_IN_PLACE, field, FSDP_SUM, request)
      ! ... computing goes on ...
      call fsdp_wait(request)
      call fsdp_cast(ctx, halves, FSDP_BF16, mine, FSDP_F32)
      call fsdp_allreduce(ctx, FSDP_IN_PLACE, halves, FSDP_MAX, FSDP_BF16)
      ! end collectives

      if (fsdp_rank(ctx) == 0) print '(a, f3.1, a, f3.1)', 'mean ', mean, ', sum ', field(1)
   end subroutine

   subroutine train()
      type(fsdp_optimizer) :: optimizer
      integer, target :: calls
      real, pointer :: dw(:, :)
      ! begin arrays
      real, pointer :: w(:, :), flat(:)

      call fsdp_model_create(ctx, model, optimizer=FSDP_CUSTOM)
      call fsdp_unit_add(model, 'h.0', [fsdp_tensor_spec('h.0.weight', [3, 5], fill=FSDP_FILL_UNIFORM, b=1d0)], unit)
      call fsdp_model_commit(model)
      call fsdp_unit_begin_forward(unit)
      call fsdp_unit_param(unit, 1, w)    ! 3 x 5; w(2, 1) is behind w(1, 1), as in any array of Fortran
      call fsdp_unit_param(unit, 1, flat) ! the same memory in one dimension
      ! end arrays
      if (fsdp_rank(ctx) == 0) print '(a, 2i2)', 'shape', shape(w)
      call fsdp_unit_end_forward(unit)

      ! begin optimizer
      calls = 0
      call fsdp_optimizer_create(model, optimizer, lr=0.125d0, update=sign_descent, update_state=c_loc(calls))
      ! end optimizer
      call fsdp_unit_begin_backward(unit)
      call fsdp_unit_grad(unit, 1, dw)
      dw = 1
      call fsdp_unit_end_backward(unit)
      call fsdp_optimizer_step(optimizer)
      if (fsdp_rank(ctx) == 0) print '(a, i0)', 'calls ', calls
   end subroutine

   subroutine save()
      type(fsdp_checkpoint) :: checkpoint
      type(fsdp_checkpoint_state) :: state
      real(c_double), target :: u(4, 2)
      character(200) :: folder
      integer :: status
      integer(c_size_t) :: rank, ranks

      call get_command_argument(1, folder)
      rank = fsdp_rank(ctx)
      ranks = fsdp_size(ctx)
      u = real(rank, c_double)
      ! begin checkpoint
      call fsdp_checkpoint_open(model, folder, checkpoint)
      call fsdp_checkpoint_add(checkpoint, 'u', FSDP_F64, u, extents=[4_c_size_t, 2 * ranks], offset=[0_c_size_t, 2 * rank])
      state%step = 1
      call fsdp_set_text(state%text, 'anything in UTF-8')
      call fsdp_checkpoint_save(checkpoint, state)
      ! end checkpoint
      call fsdp_checkpoint_close(checkpoint)

      ! begin status
      call fsdp_checkpoint_load(model, trim(folder) // '/nothing', status=status)
      if (status /= FSDP_OK) then
         if (fsdp_rank(ctx) == 0) print '(4a)', fsdp_status_name(status), ': ', fsdp_last_error(ctx)
      end if
      ! end status
   end subroutine
end program
