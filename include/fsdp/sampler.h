/**
 * @file
 * Which samples each rank sees: the semantics of PyTorch's DistributedSampler.
 *
 * Each epoch has one permutation of 0 .. dataset - 1, from seed + epoch, the same on every rank; rank r takes its entries r,
 * r + size, r + 2 size and so on. So that every rank gets the same number, the permutation is either repeated from its
 * beginning, as often as needed, or cut (drop_last).
 *
 * The permutation is computed entry by entry (a Feistel network over the Philox generator, walked until it stays inside the
 * data set: Black and Rogaway, "Ciphers with arbitrary finite domains", 2002): a sampler holds no memory, and
 * position i of epoch e can be asked for at any time, which makes resuming exact. The entries are not PyTorch's own.
 */
#ifndef FSDP_SAMPLER_H
#define FSDP_SAMPLER_H

#include <stddef.h>
#include <stdint.h>

#include "fsdp/export.h"
#include "fsdp/status.h"

typedef struct fsdp_sampler {
    size_t   dataset;   /**< samples in all, at least 1 */
    int      rank;      /**< 0 to size - 1 */
    int      size;      /**< ranks */
    uint64_t seed;      /**< the same on all ranks */
    int      shuffle;   /**< 0: in order */
    int      drop_last; /**< 1: cut the end instead of continuing from the beginning; needs dataset >= size */
} fsdp_sampler;

FSDP_EXTERN_C_BEGIN

/**
 * Checks a sampler whose fields the caller has set. Local.
 * @return FSDP_OK; FSDP_ERR_ARG with fsdp_last_error(NULL) naming the field and its value.
 */
FSDP_API fsdp_status fsdp_sampler_check(const fsdp_sampler *sampler);

/** The number of samples that each rank gets per epoch. Local. `sampler` has passed fsdp_sampler_check(). */
FSDP_API size_t fsdp_sampler_length(const fsdp_sampler *sampler);

/**
 * Sample number `i` of this rank in `epoch`. Local. `sampler` has passed fsdp_sampler_check().
 * @param[in] i  0 to fsdp_sampler_length() - 1
 */
FSDP_API size_t fsdp_sampler_index(const fsdp_sampler *sampler, uint64_t epoch, size_t i);

FSDP_EXTERN_C_END

#endif
