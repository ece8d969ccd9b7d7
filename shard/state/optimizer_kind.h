/**
 * @file
 * Kinds of optimizers, and the types of their moments.
 */
#ifndef FSDPI_OPTIMIZER_KIND_H
#define FSDPI_OPTIMIZER_KIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fsdp/optimizer.h"

/** Moments that an optimizer holds per parameter. */
size_t fsdpi_optimizer_states(fsdp_optimizer_kind kind);

static inline bool fsdpi_is_optimizer_kind(fsdp_optimizer_kind kind)
{
    return (int)kind >= 0 && (int)kind < FSDP_N_OPTIMIZER_KINDS;
}

/**
 * As fsdpi_options_take(), over the defaults of the kind that is given.
 * @param[out] own  the options; their kind is to be checked
 */
fsdp_status fsdpi_optimizer_options_take(fsdp_context *ctx, const fsdp_optimizer_options *given,
                                         fsdp_optimizer_options *own);

/** BYTES of one moment; 0 for a type that moments cannot have. */
static inline size_t fsdpi_moment_bytes(fsdp_dtype moment_dtype)
{
    return moment_dtype == FSDP_F32 ? sizeof(float) : moment_dtype == FSDP_BF16 ? sizeof(uint16_t) : 0;
}

/** BYTES of all moments of `elements` parameters. */
static inline size_t fsdpi_states_bytes(fsdp_optimizer_kind kind, fsdp_dtype moment_dtype, size_t elements)
{
    return elements * fsdpi_optimizer_states(kind) * fsdpi_moment_bytes(moment_dtype);
}

#endif
