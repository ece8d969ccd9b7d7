/**
 * @file
 * How many threads the matrix products of a rank use. Ranks that share cores and each bring a thread per core spend their
 * time waiting for each other.
 */
#ifndef GPT_THREADS_H
#define GPT_THREADS_H

#include <fsdp/fsdp.h>

/** The ranks on this rank's node, and the cores that these may use together. Collective over `comm`. */
typedef struct gpt_node {
    int ranks, cores;
} gpt_node;

gpt_node gpt_node_of(MPI_Comm comm);

/**
 * Sets the number of BLAS threads: `wanted`; or, if that is 0, cores / ranks, unless the environment has decided. Local.
 * @return what is in force; 0: not known, this BLAS takes it from its own environment variables only
 */
size_t gpt_threads_set(const gpt_node *node, size_t wanted);

#endif
