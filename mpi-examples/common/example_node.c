#include "example_node.h"

#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#ifdef EXAMPLE_HAVE_OPENBLAS
#include <cblas.h>
#endif

#include "example_error.h"

/* A launcher may have bound each rank to cores of its own: what they may use together is the union of their masks. */
static int count_cores(MPI_Comm node)
{
    enum { MOST_CORES = 8192 };                         /* that a Linux can be built for */
    cpu_set_t mask[MOST_CORES / CPU_SETSIZE] = {{{0}}}; /* each is of 1024 */
    int       failed;

    failed = sched_getaffinity(0, sizeof mask, mask) != 0;
    MPI_Allreduce(MPI_IN_PLACE, mask, (int)sizeof mask, MPI_BYTE, MPI_BOR, node);
    MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, node);
    return failed ? (int)sysconf(_SC_NPROCESSORS_ONLN) : CPU_COUNT_S(sizeof mask, mask);
}

example_node example_node_of(MPI_Comm comm)
{
    example_node result;
    MPI_Comm     node;

    MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_size(node, &result.ranks);
    result.cores = count_cores(node);
    MPI_Comm_free(&node);
    return result;
}

#ifdef EXAMPLE_HAVE_OPENBLAS
size_t example_threads_set(const example_node *node, size_t wanted)
{
    const int fair = node->cores > node->ranks ? node->cores / node->ranks : 1;

    if (wanted) {
        openblas_set_num_threads((int)wanted);
    } else if (!getenv("OPENBLAS_NUM_THREADS") && !getenv("OMP_NUM_THREADS")) {
        openblas_set_num_threads(fair);
    }
    return (size_t)openblas_get_num_threads();
}
#else
size_t example_threads_set(const example_node *node, size_t wanted)
{
    (void)node;
    (void)wanted;
    return 0;
}
#endif

fsdp_status example_memory_per_rank(fsdp_context *ctx, const example_node *node, size_t *bytes)
{
    int64_t mine = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE) / node->ranks;

    EXAMPLE_TRY(fsdp_allreduce(ctx, FSDP_IN_PLACE, &mine, 1, FSDP_I64, FSDP_MIN));
    *bytes = (size_t)mine;
    return FSDP_OK;
}
