program consumer
   use mpi
   use fsdp
   implicit none
   type(fsdp_context) :: ctx
   double precision :: sum
   integer :: error

   call MPI_Init(error)
   call fsdp_init(MPI_COMM_WORLD, ctx)
   sum = 1
   call fsdp_allreduce(ctx, FSDP_IN_PLACE, sum, FSDP_SUM)
   print '(3a, i0, a, i0)', 'libfsdp ', fsdp_version(), ': rank ', fsdp_rank(ctx), ' has the sum ', nint(sum)
   call fsdp_finalize(ctx)
   call MPI_Finalize(error)
end program
