/**
 * @file
 * Dot products over shards: exact, so that neither who holds which elements nor the order of ranks shows in a bit.
 */
#ifndef FSDPI_SHARD_DOT_H
#define FSDPI_SHARD_DOT_H

#include <stddef.h>

#include "shard/state/model.h"

/**
 * Adds to `dot` what this rank has to contribute of a flat parameter: a[i] b[i] of all elements that it holds, or nothing where
 * another rank of its group holds the same ones and contributes them. Local; on a GPU it waits.
 * @param[in] a, b  in the model's master_dtype and as long as flat->master, where that is; they may be one
 */
void fsdpi_shard_dot_add(fsdpi_flat *flat, const void *a, const void *b, fsdpi_exact_dot *dot);

/**
 * Makes `n` of what ranks have contributed the sums over all elements, each counted once, on every rank: fsdpi_exact_dot_value() and
 * fsdpi_exact_dot_root() say what they are in f64. Collective: one reduction of 1096 bytes for each.
 * @param[in] status  not FSDP_OK: this rank has failed, which the others learn
 * @return FSDP_OK; `status`, on every rank; or what the reduction returned
 */
fsdp_status fsdpi_shard_dots_join(fsdp_model *model, const char *function, fsdp_status status, size_t n,
                                  fsdpi_exact_dot *dots);

#endif
