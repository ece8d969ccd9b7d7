/* Ranks in the order of their nodes. */
#include "fsdp/topology.h"
#include "lib/base/doing.h"
#include "lib/base/error.h"
#include "lib/base/settings.h"
#include "lib/base/yielding.h"
#include "lib/node/nodes.h"

static fsdp_status order(MPI_Comm comm, MPI_Comm *ordered)
{
    int         node, number, all = ordered != NULL;
    fsdp_config config;

    fsdpi_error_print(NULL, fsdpi_settings_resolve(NULL, &config)); /* what cannot be read holds its default */
    FSDPI_TRY_MPI(NULL, fsdpi_mpi_allreduce(&all, 1, MPI_INT, MPI_MIN, comm, config.timeout_s));
    if (!all) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG,
                          "fsdp_comm_order_by_node: the place for the communicator is NULL on at least one rank");
    }
    FSDP_TRY(fsdpi_nodes_locate(NULL, comm, config.shm_dir, config.timeout_s, &node, &number));
    FSDPI_TRY_MPI(NULL, MPI_Comm_split(comm, 0, number, ordered));
    return FSDP_OK;
}

fsdp_status fsdp_comm_order_by_node(MPI_Comm comm, MPI_Comm *ordered)
{
    int inter = 0;

    if (ordered != NULL) {
        *ordered = MPI_COMM_NULL;
    }
    if (comm == MPI_COMM_NULL || MPI_Comm_test_inter(comm, &inter) != MPI_SUCCESS || inter) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG,
                          "fsdp_comm_order_by_node: the communicator is null or an inter-communicator; pass an "
                          "intra-communicator that this process is a member of");
    }
    const char       *before = fsdpi_doing("fsdp_comm_order_by_node");
    const fsdp_status status = order(comm, ordered);
    (void)fsdpi_doing(before);
    return status;
}
