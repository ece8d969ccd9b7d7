/**
 * @file
 * The names of the hosts of a context's nodes, where it has several: for errors about ranks of another host.
 *
 * 24 BYTES for each node, which are not counted as the context's memory: a budget does not know on how many hosts a part of the
 * context will be.
 */
#ifndef FSDPI_HOSTS_H
#define FSDPI_HOSTS_H

#include "lib/base/core.h"
#include "lib/node/nodes.h"

enum { FSDPI_HOST_BYTES = 24 };

/**
 * Sets nodes->hosts, which the caller releases with free(); NULL on one host. Collective.
 * @return FSDP_OK; FSDP_ERR_MEMORY on all ranks; FSDP_ERR_MPI, FSDP_ERR_TIMEOUT
 */
fsdp_status fsdpi_hosts_find(const fsdpi_core *core, fsdpi_nodes *nodes);

/** The name of the host of a rank, or its end where it is long; "" where all ranks are on one host. */
const char *fsdpi_host_of(const fsdpi_nodes *nodes, int rank);

#endif
