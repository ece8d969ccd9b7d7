/**
 * @file
 * Which ranks share memory: the nodes of a context, as found or as FSDP_NODE_SIZE divides them.
 *
 * Nodes are numbered in the order of their lowest ranks, and the ranks on a node in rank order: the order of every
 * reduction. The rank at position 0 is the node's leader; ranks with one position on all nodes form a rail.
 */
#ifndef FSDPI_NODES_H
#define FSDPI_NODES_H

#include <mpi.h>
#include <stddef.h>

#include "fsdp/status.h"

typedef struct fsdpi_nodes {
    int  count;       /* M */
    int  mine;        /* this rank's node */
    int  size;        /* L: ranks on it */
    int  position;    /* of this rank among them */
    int  largest;     /* ranks on the largest node */
    int  smallest;    /* and on the smallest */
    int  apart;       /* on the lowest rank of a host: how many others of it share no memory with this one */
    int *node_of;     /* of each rank */
    int *position_of; /* of each rank, on its node */
    int *first;       /* of each node, and one behind the last: where its ranks begin in `members` */
    int *members;     /* all ranks, node by node */
} fsdpi_nodes;

/** BYTES of the arrays for `size` ranks. */
size_t fsdpi_nodes_bytes(int size);

/**
 * Finds the nodes of a communicator: ranks of one host for which `shm_dir` is the same folder. Collective.
 * @param[in] shm_dir  FSDP_SHM_DIR
 * @param[in] divided  FSDP_NODE_SIZE; 0: as found
 * @param[in] memory   fsdpi_nodes_bytes() for the arrays, which the caller releases behind their last use
 */
fsdp_status fsdpi_nodes_find(MPI_Comm comm, const char *shm_dir, int divided, int timeout_s, void *memory,
                             fsdpi_nodes *nodes);

/**
 * Which node this rank is on, as found, and its number where the ranks come node by node. Collective.
 * @return FSDP_OK; FSDP_ERR_MEMORY on all ranks; FSDP_ERR_MPI, FSDP_ERR_TIMEOUT; the detail is that of the calling thread
 */
fsdp_status fsdpi_nodes_locate(MPI_Comm comm, const char *shm_dir, int timeout_s, int *node, int *number);

/** The rank at a position of a node. */
static inline int fsdpi_rank_at(const fsdpi_nodes *nodes, int node, int position)
{
    return nodes->members[nodes->first[node] + position];
}

/** How many ranks a node has. */
static inline int fsdpi_node_size(const fsdpi_nodes *nodes, int node)
{
    return nodes->first[node + 1] - nodes->first[node];
}

#endif
