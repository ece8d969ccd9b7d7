/* Programs that know nothing of the double join their job as soon as MPI is there, through its profiling interface. */
#include <stddef.h>

#include <mpi.h>

#include "tests/doubles/hip/job.h"

static int join(int result)
{
    return result == MPI_SUCCESS && hip_double_join_job(NULL) != 0 ? MPI_ERR_OTHER : result;
}

int MPI_Init(int *argc, char ***argv)
{
    return join(PMPI_Init(argc, argv));
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    return join(PMPI_Init_thread(argc, argv, required, provided));
}
