/**
 * @file
 * What a rank has of its node: memory, and cores for the threads of its matrix products. Ranks that share cores and each
 * bring a thread per core spend their time waiting for each other.
 */
#ifndef EXAMPLE_NODE_H
#define EXAMPLE_NODE_H

#include <fsdp/fsdp.h>

/** The ranks on this rank's node, and the cores that these may use together. */
typedef struct example_node {
    int ranks, cores;
} example_node;

/** Collective over `comm`. */
example_node example_node_of(MPI_Comm comm);

/**
 * Sets the number of BLAS threads: `wanted`; or, if that is 0, cores / ranks, unless the environment has decided. Local.
 * @return what is in force; 0: not known, this BLAS takes it from its own environment variables only
 */
size_t example_threads_set(const example_node *node, size_t wanted);

/** BYTES of memory for each rank of a node; the smallest node counts, so that all ranks decide alike. Collective. */
fsdp_status example_memory_per_rank(fsdp_context *ctx, const example_node *node, size_t *bytes);

#endif
