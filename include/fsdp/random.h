/**
 * @file
 * Counter-based random numbers: a pure function of (seed, stream, index), so that any rank can compute any element of any
 * tensor on its own, and no state has to be carried, saved or agreed on.
 *
 * The generator is Philox4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
 */
#ifndef FSDP_RANDOM_H
#define FSDP_RANDOM_H

#include <stdint.h>

#include "fsdp/export.h"

FSDP_EXTERN_C_BEGIN

/** A stream number for a name: the 64-bit FNV-1a hash of its bytes. Local; `name` must not be NULL. */
FSDP_API uint64_t fsdp_random_stream(const char *name);

/** 64 uniformly distributed bits: number `index` of stream `stream` under `seed`. Local. */
FSDP_API uint64_t fsdp_random_bits(uint64_t seed, uint64_t stream, uint64_t index);

/** Uniform in [0, 1), a multiple of 2^-53. Local. */
FSDP_API double fsdp_random_uniform(uint64_t seed, uint64_t stream, uint64_t index);

/** Normally distributed with mean 0 and variance 1 (Box and Muller, 1958). Local. */
FSDP_API double fsdp_random_normal(uint64_t seed, uint64_t stream, uint64_t index);

FSDP_EXTERN_C_END

#endif
