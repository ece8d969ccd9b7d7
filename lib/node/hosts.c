#include "lib/node/hosts.h"

#include <stdbool.h>
#include <stddef.h>
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
    memset(name, 0, FSDPI_HOST_BYTES);
    memcpy(name, whole + begin, length - begin);
}

/* Each leader gives its own; nobody else gives anything. MPI's code. */
static int collect(const fsdpi_core *core, fsdpi_nodes *nodes, const char *name)
{
    const size_t bytes = (size_t)nodes->count * (size_t)nodes->hosts.bytes;

    memset(nodes->hosts.table, 0, bytes);
    if (nodes->position == 0) {
        fsdpi_host_names_put(&nodes->hosts, nodes->mine, name);
    }
    return fsdpi_mpi_allreduce(nodes->hosts.table, (int)bytes, MPI_BYTE, MPI_BOR, core->comm, core->config.timeout_s);
}

fsdp_status fsdpi_hosts_find(const fsdpi_core *core, fsdpi_nodes *nodes)
{
    void *table = nodes->hosts.table;
    char  name[FSDPI_HOST_BYTES];

    if (!nodes->several_hosts) {
        return FSDP_OK;
    }
    own_name(name);
    fsdpi_host_traits traits = fsdpi_host_traits_of(name);
    FSDPI_TRY_MPI(core->ctx, fsdpi_mpi_allreduce(&traits, (int)sizeof traits, MPI_BYTE, MPI_BOR, core->comm,
                                                 core->config.timeout_s));
    fsdpi_host_names_begin(&nodes->hosts, name, &traits, nodes->count, core->size);
    fsdpi_host_names_move(&nodes->hosts, table);
    if (nodes->hosts.known) {
        FSDPI_TRY_MPI(core->ctx, collect(core, nodes, name));
    }
    return FSDP_OK;
}

void fsdpi_host_of(const fsdpi_nodes *nodes, int rank, char name[FSDPI_HOST_BYTES])
{
    fsdpi_host_names_get(&nodes->hosts, fsdpi_node_of(nodes, rank), name);
}
