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
#include <stdbool.h>
#include <stddef.h>

#include "fsdp/status.h"
#include "lib/node/host_names.h"
#include "lib/node/roster.h"

typedef struct fsdpi_nodes {
    int              count;    /* M */
    int              mine;     /* this rank's node */
    int              size;     /* L: ranks on it */
    int              position; /* of this rank among them */
    int              before;   /* ranks on the nodes of lower numbers */
    int              largest;  /* ranks on the largest node */
    int              smallest; /* and on the smallest */
    int              apart;    /* on the lowest rank of a host: how many others of it share no memory with this one */
    bool             several_hosts;
    void            *memory; /* of the two below; what is in there is the same on all ranks */
    fsdpi_roster     roster;
    fsdpi_host_names hosts;
} fsdpi_nodes;

/**
 * Ranks of a host that are one node, at most: what is kept of each peer on a node is in lists of bounded length, whose BYTES a
 * budget knows without knowing the nodes. The ranks of a larger host are several nodes, as with FSDP_NODE_SIZE.
 */
enum { FSDPI_MOST_ON_NODE = 1024 };

/** The length of such a list in a context of `size` ranks. */
static inline int fsdpi_positions(int size)
{
    return size < FSDPI_MOST_ON_NODE ? size : FSDPI_MOST_ON_NODE;
}

/** How many ranks of a host at a time are a node, with FSDP_NODE_SIZE=node_size. */
static inline int fsdpi_nodes_divisor(int node_size)
{
    return node_size > 0 ? fsdpi_positions(node_size) : FSDPI_MOST_ON_NODE;
}

/** BYTES of `memory` for `size` ranks, however they are placed, and of what dividing them needs for a while. */
size_t fsdpi_nodes_bytes(int size);
size_t fsdpi_nodes_scratch_bytes(int size);

/**
 * Divides ranks into nodes, as all ranks do from the same hosts. Local; its time grows as `size`.
 * @param[in]     divided  ranks of a host that are a node, in rank order; 0: all of them
 * @param[in,out] scratch  fsdpi_nodes_scratch_bytes(); begins with a number for the host of each rank, a uint64_t
 * @param[out]    memory   fsdpi_nodes_bytes()
 */
void fsdpi_nodes_divide(int size, int rank, int divided, void *scratch, void *memory, fsdpi_nodes *nodes);

/** Copies what of the memory is in use, to as much of it; and says where the memory is. */
void fsdpi_nodes_copy(const fsdpi_nodes *nodes, int size, void *to);
void fsdpi_nodes_move(fsdpi_nodes *nodes, int size, void *memory);

/**
 * Finds the nodes of a communicator: ranks of one host for which `shm_dir` is the same folder. Collective.
 * @param[in] ctx      whose error a failure is; NULL: that of the calling thread
 * @param[in] shm_dir  FSDP_SHM_DIR
 * @param[in] divided  FSDP_NODE_SIZE; 0: as found
 * @param[in] memory   fsdpi_nodes_bytes(), which the caller releases behind their last use; or NULL, an error on all ranks
 * @return FSDP_OK; FSDP_ERR_MEMORY on all ranks; FSDP_ERR_MPI, FSDP_ERR_TIMEOUT
 */
fsdp_status fsdpi_nodes_find(fsdp_context *ctx, MPI_Comm comm, const char *shm_dir, int divided, int timeout_s,
                             void *memory, fsdpi_nodes *nodes);

/**
 * Which node this rank is on, as found, and its number where the ranks come node by node. Otherwise as fsdpi_nodes_find().
 */
fsdp_status fsdpi_nodes_locate(fsdp_context *ctx, MPI_Comm comm, const char *shm_dir, int timeout_s, int *node,
                               int *number);

/** The node of a rank, and its position there: in a few steps for each doubling of the nodes, if the placement is not even. */
static inline int fsdpi_node_of(const fsdpi_nodes *nodes, int rank)
{
    return fsdpi_roster_seated(&nodes->roster, rank).node;
}

static inline int fsdpi_position_of(const fsdpi_nodes *nodes, int rank)
{
    return fsdpi_roster_seated(&nodes->roster, rank).position;
}

static inline bool fsdpi_is_on_node(const fsdpi_nodes *nodes, int rank)
{
    return nodes->count == 1 || fsdpi_node_of(nodes, rank) == nodes->mine;
}

/** The rank at a position of a node. */
static inline int fsdpi_rank_at(const fsdpi_nodes *nodes, int node, int position)
{
    return fsdpi_roster_rank(&nodes->roster, node, position);
}

/**
 * The node that comes so many places before or behind this one, in a circle: from 1 to one less than there are nodes. Without a
 * division, which would show in the shortest operations.
 */
static inline int fsdpi_node_before(const fsdpi_nodes *nodes, int places)
{
    return nodes->mine - places + (nodes->mine < places ? nodes->count : 0);
}

static inline int fsdpi_node_behind(const fsdpi_nodes *nodes, int places)
{
    return fsdpi_node_before(nodes, nodes->count - places);
}

/** How many ranks a node has. */
static inline int fsdpi_node_size(const fsdpi_nodes *nodes, int node)
{
    return fsdpi_roster_size(&nodes->roster, node);
}

#endif
