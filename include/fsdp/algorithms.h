/**
 * @file
 * How collectives are carried out, and how that is chosen: a table that can be printed, overridden and tuned.
 *
 * All algorithms give the same bits. Which of them can serve a call depends on where its buffers are and on the nodes:
 * - inline: the data rides on the synchronisation, through a slot of shared memory; across few nodes each leader sends each other
 *   one what it needs, across many they exchange all of it in ceil(log2 M) messages (Bruck et al., 1997). Any memory, as long
 *   as it fits into a slot. An alltoall is inline across few nodes only, as long as the inputs of all ranks of a node fit.
 * - staged: the same, block by block. Any memory and any size.
 * - direct: one node, symmetric buffers: each rank reads its peers' inputs where they lie.
 * - cma: one node, any memory: the same through process_vm_readv, where the system permits it.
 * - rails: several nodes: ranks with the same position on every node exchange pairwise, all at once, in chunks, with
 *   the reduction inside the node before it and the distribution inside the node after it. On nodes of several ranks it
 *   needs buffers that direct or cma could serve.
 * - ring: as rails, but each part travels around the nodes; for allgather.
 * - halves: up to 16 nodes, allreduce: each node is sent its part of the vector with the synchronisation, as inline would for a
 *   reduce_scatter; what was reduced there is then exchanged as one block. Any memory, as long as it fits into a slot.
 *
 * The table and a tuning file have the same form: one row per line, the first match counts, '#' begins a comment.
 *
 *     # fsdp-tuning 1
 *     allgather symmetric one 512 inline
 *     allgather symmetric one any direct
 *
 * Columns: collective; memory, `symmetric` (all buffers on all ranks are), `user`, `cached` or `any`; nodes, `one`, `many`, `any`
 * or, for one node of two ranks, `pair`; the most BYTES of the full vector, or `any`; algorithm. A row whose algorithm
 * cannot serve a call is passed over; after the last row comes `staged`, which serves everything. The setting
 * FSDP_ALGO_<COLLECTIVE> is looked at before the table, and passed over in the same way. Without a tuning file, the rows of a
 * context on several nodes follow from what its algorithms cost there, by the latency and the rate of the link that fsdp_init() has
 * measured. Where two nodes of one rank reduce the same input again within a millisecond, caches still hold it: rows for `cached`
 * or `symmetric` count then, and `cached` ones for nothing else. A row that ends in an algorithm which this version lacks is left
 * out, with a warning that names both.
 */
#ifndef FSDP_ALGORITHMS_H
#define FSDP_ALGORITHMS_H

#include <stdio.h>

#include "fsdp/context.h"
#include "fsdp/export.h"
#include "fsdp/status.h"

/** Values of fsdp_config::algo_allgather and the other algo_ fields. */
typedef enum fsdp_algorithm {
    FSDP_ALGO_AUTO   = 0, /**< as the table says */
    FSDP_ALGO_INLINE = 1,
    FSDP_ALGO_STAGED = 2,
    FSDP_ALGO_DIRECT = 3,
    FSDP_ALGO_CMA    = 4,
    FSDP_ALGO_RAILS  = 5,
    FSDP_ALGO_RING   = 6,
    FSDP_ALGO_HALVES = 7
} fsdp_algorithm;
#define FSDP_N_ALGORITHMS 8

/** Nodes: those of a context, or some that need not exist. */
typedef struct fsdp_cluster {
    int    nodes;          /**< 2 or more */
    int    ranks_per_node; /**< 1 or more */
    double latency_s;      /**< SECONDS that a short message takes from node to node; 0: see the function */
    double bytes_per_s;    /**< BYTES per second of a node's link; likewise */
} fsdp_cluster;

FSDP_EXTERN_C_BEGIN

/** "inline" and so on; "unknown" for a value that is none. Local. */
FSDP_API const char *fsdp_algorithm_text(fsdp_algorithm algorithm);

/**
 * Prints the table in effect as a tuning file, with the cost of each row in terms that its first lines explain. Local.
 *
 * @param[in] ctx  an open context; or NULL for the built-in table
 * @return FSDP_OK; FSDP_ERR_ARG if `file` is NULL.
 */
FSDP_API fsdp_status fsdp_algorithms_print(const fsdp_context *ctx, FILE *file);

/**
 * The nodes of a context, as fsdp_init() has found them: how many, the ranks on the largest, and what it has measured of the network
 * between them, each node sending and receiving at once. The same on all ranks. Local.
 *
 * @param[out] cluster  latency and rate are 0 on one node, and where FSDP_STAGING_BYTES leaves no room to measure them
 * @return FSDP_OK; FSDP_ERR_ARG if `ctx` or `cluster` is NULL.
 */
FSDP_API fsdp_status fsdp_cluster_of(const fsdp_context *ctx, fsdp_cluster *cluster);

/**
 * Prints the built-in table as it would be on other nodes, up to which sizes each algorithm would be chosen across these, and why:
 * what each of them would cost. Nothing is measured. Local.
 *
 * @param[in] ctx      an open context on several nodes, for what it has measured of its link; or NULL
 * @param[in] cluster  a latency or rate of 0 is that of `ctx`; without one, 5 microseconds and 1.2 GB per second
 * @return FSDP_OK; FSDP_ERR_ARG if `cluster` or `file` is NULL, or it has fewer nodes or ranks, or a negative or
 *         infinite rate or latency.
 */
FSDP_API fsdp_status fsdp_algorithms_print_for(const fsdp_context *ctx, const fsdp_cluster *cluster, FILE *file);

/** The algorithm of the operation that this rank completed last; "none" before the first. Local. */
FSDP_API const char *fsdp_last_algorithm(const fsdp_context *ctx);

/**
 * BYTES of last-level cache that the ranks of this node share: the sum over the caches of the cores that they may use. An
 * operation whose inputs and outputs, over all of them, are larger than that writes its results past the caches. Local.
 *
 * @return 0 if `ctx` is NULL.
 */
FSDP_API size_t fsdp_cache_bytes(const fsdp_context *ctx);

FSDP_EXTERN_C_END

#endif
