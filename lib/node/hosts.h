/**
 * @file
 * Finding the names of the hosts of a context's nodes, where it has several: for errors about ranks of another host.
 */
#ifndef FSDPI_HOSTS_H
#define FSDPI_HOSTS_H

#include "lib/base/core.h"
#include "lib/node/nodes.h"

/** Sets nodes->hosts, in the memory of `nodes`. Collective. @return FSDP_OK; FSDP_ERR_MPI, FSDP_ERR_TIMEOUT */
fsdp_status fsdpi_hosts_find(const fsdpi_core *core, fsdpi_nodes *nodes);

/** The name of the host of a rank; "" where all ranks are on one host, or it is not known. */
void fsdpi_host_of(const fsdpi_nodes *nodes, int rank, char name[FSDPI_HOST_BYTES]);

#endif
