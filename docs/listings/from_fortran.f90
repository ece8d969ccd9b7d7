program from_fortran
   use, intrinsic :: iso_c_binding
   use mpi
   implicit none

   interface
      integer(c_int) function fsdp_init_f(comm, config, ctx) bind(c)
         import :: c_int, c_ptr
         integer(c_int), value :: comm   ! with mpi_f08: comm%mpi_val
         type(c_ptr), value    :: config ! c_null_ptr: environment and defaults
         type(c_ptr)           :: ctx
      end function

      integer(c_int) function fsdp_allreduce(ctx, in, out, count, dtype, op) bind(c)
         import :: c_int, c_ptr, c_size_t
         type(c_ptr), value       :: ctx, in, out
         integer(c_size_t), value :: count
         integer(c_int), value    :: dtype, op
      end function

      integer(c_int) function fsdp_finalize(ctx) bind(c)
         import :: c_int, c_ptr
         type(c_ptr), value :: ctx
      end function
   end interface

   integer(c_int), parameter :: FSDP_OK = 0, FSDP_F64 = 0, FSDP_SUM = 0 ! of fsdp/status.h and fsdp/dtype.h
   real(c_double), target    :: mine, total
   type(c_ptr)               :: ctx
   integer                   :: error, rank

   call MPI_Init(error)
   call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
   if (fsdp_init_f(MPI_COMM_WORLD, c_null_ptr, ctx) /= FSDP_OK) call MPI_Abort(MPI_COMM_WORLD, 1, error)
   mine = rank + 1
   if (fsdp_allreduce(ctx, c_loc(mine), c_loc(total), 1_c_size_t, FSDP_F64, FSDP_SUM) /= FSDP_OK) &
      call MPI_Abort(MPI_COMM_WORLD, 1, error)
   if (rank == 0) print '(a, f4.1)', 'the sum is ', total
   error = fsdp_finalize(ctx)
   call MPI_Finalize(error)
end program
