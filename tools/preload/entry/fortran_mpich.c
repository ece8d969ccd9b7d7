/* MPICH's Fortran enters through C's names, but for what has no buffers in mpi_f08: that calls PMPI_Barrier() and the like. */
#include "tools/preload/entry/fortran.h"

TAKEN(mpi_barrier_f08_, "mpi_barrier_f08_", fsdpi_take_barrier, (int *comm, int *error), (comm, error))
COUNTED(mpi_ibarrier_f08_, "mpi_ibarrier_f08_", FSDPI_IBARRIER, ADDRESSES_3)
COUNTED(mpi_barrier_init_f08_, "mpi_barrier_init_f08_", FSDPI_PERSISTENT, ADDRESSES_4)

BEGINS(mpi_init_f08_, "mpi_init_f08_", ADDRESSES_1)
BEGINS(mpi_init_thread_f08_, "mpi_init_thread_f08_", ADDRESSES_3)
ENDS(mpi_finalize_f08_, "mpi_finalize_f08_", ADDRESSES_1)
