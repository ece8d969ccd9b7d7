! Where nobody takes the status, a failure ends the job.
program fails
   use mpi
   use fsdp
   implicit none
   type(fsdp_context) :: ctx
   type(fsdp_model) :: model
   integer :: error

   call MPI_Init(error)
   call fsdp_init(MPI_COMM_WORLD, ctx)
   call fsdp_model_create(ctx, model)
   call fsdp_model_commit(model)
   print '(a)', 'not reached'
   call MPI_Finalize(error)
end program
