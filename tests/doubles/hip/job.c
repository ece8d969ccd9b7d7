#include "tests/doubles/hip/job.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/doubles/hip/double.h"

int hip_double_join_job(void **state)
{
    int  first = (int)getpid();
    char name[40];

    (void)state;
    if (MPI_Bcast(&first, 1, MPI_INT, 0, MPI_COMM_WORLD) != MPI_SUCCESS) {
        return -1;
    }
    (void)snprintf(name, sizeof name, "fsdp-hip-double-%d", first);
    if (setenv("HIP_DOUBLE_JOB", name, 1) != 0) {
        return -1;
    }
    double_order_join();
    (void)MPI_Barrier(MPI_COMM_WORLD);
    if (first == (int)getpid()) {
        (void)shm_unlink(name); /* all have it: nothing is left behind, whatever becomes of them */
    }
    return 0;
}
