#include "lib/node/hosts.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/error.h"
#include "lib/base/yielding.h"

/* Without its domain; of a long name the end, where the numbers are. */
static void own_name(char name[FSDPI_HOST_BYTES])
{
    char whole[256] = "";

    (void)gethostname(whole, sizeof whole - 1);
    const size_t length = strcspn(whole, ".");
    const size_t begin  = length > FSDPI_HOST_BYTES - 1 ? length - (FSDPI_HOST_BYTES - 1) : 0;
    memcpy(name, whole + begin, length - begin);
}

static char *slot_of(char *names, int node)
{
    return names + (size_t)node * FSDPI_HOST_BYTES;
}

/* Each leader gives its own; nobody else gives anything. MPI's code. */
static int collect(const fsdpi_core *core, const fsdpi_nodes *nodes, char *names)
{
    if (nodes->position == 0) {
        own_name(slot_of(names, nodes->mine));
    }
    return fsdpi_mpi_allreduce(names, nodes->count * FSDPI_HOST_BYTES, MPI_BYTE, MPI_BOR, core->comm,
                               core->config.timeout_s);
}

fsdp_status fsdpi_hosts_find(const fsdpi_core *core, fsdpi_nodes *nodes)
{
    nodes->hosts = NULL;
    if (!nodes->several_hosts) {
        return FSDP_OK;
    }
    char *all  = calloc((size_t)nodes->count, FSDPI_HOST_BYTES);
    int   have = all != NULL;
    int   code = fsdpi_mpi_allreduce(&have, 1, MPI_INT, MPI_MIN, core->comm, core->config.timeout_s);
    if (code == MPI_SUCCESS && have && all != NULL) {
        code = collect(core, nodes, all);
    }
    if (code == MPI_SUCCESS && have) {
        nodes->hosts = all;
        return FSDP_OK;
    }
    free(all);
    FSDPI_TRY_MPI(core->ctx, code);
    return fsdpi_fail_together(core->ctx, FSDP_ERR_MEMORY, "no memory for the names of %d nodes on at least one rank",
                               nodes->count);
}

const char *fsdpi_host_of(const fsdpi_nodes *nodes, int rank)
{
    return nodes->hosts != NULL ? nodes->hosts + (size_t)nodes->node_of[rank] * FSDPI_HOST_BYTES : "";
}
