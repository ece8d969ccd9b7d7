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
#include "lib/device/memory.h"
#include "shard/state/dynamic_blocks.h"

/** Moments that an optimizer holds per parameter; of FSDP_CUSTOM `n_states`. */
size_t fsdpi_optimizer_states(fsdp_optimizer_kind kind, size_t n_states);

/** How many an optimizer with these options has. */
static inline size_t fsdpi_states_of(const fsdp_optimizer_options *options)
{
    return fsdpi_optimizer_states(options->kind, options->n_states);
}

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

/**
 * What a budget assumes, and an optimizer asks for, in a model with `masters` of that type. FSDP_ERR_ARG or FSDP_ERR_UNSUPPORTED, for
 * an agreement to print, where it cannot be; the text begins with `of`, and names the `defaults` to start from.
 */
fsdp_status fsdpi_check_states(fsdp_context *ctx, const char *of, const char *defaults, fsdp_optimizer_kind kind,
                               size_t n_states, fsdp_dtype moment_dtype, fsdp_dtype masters);

/** Whether moment `k` may be below 0: FSDP_U8 has codes for either sign, or twice as many of one. */
static inline bool fsdpi_is_signed_moment(size_t k)
{
    return k == 0; /* the second is a mean of squares */
}

/** BYTES of one moment of `elements` parameters. */
static inline size_t fsdpi_moment_bytes(fsdp_dtype moment_dtype, size_t elements)
{
    return moment_dtype == FSDP_U8 ? fsdpi_alloc_size(fsdpi_dynamic_bytes(elements))
                                   : elements * fsdp_dtype_size(moment_dtype);
}

/** What a budget would have to assume of an optimizer with these options, whatever its granularity. */
static inline fsdp_model_group fsdpi_group_of_options(const fsdp_optimizer_options *options)
{
    return (fsdp_model_group){.size         = sizeof(fsdp_model_group),
                              .optimizer    = options->kind,
                              .moment_dtype = options->moment_dtype,
                              .n_states     = options->n_states};
}

/** BYTES of all moments of `elements` parameters. */
static inline size_t fsdpi_states_bytes(const fsdp_model_group *assumed, size_t elements)
{
    return fsdpi_optimizer_states(assumed->optimizer, assumed->n_states) *
           fsdpi_moment_bytes(assumed->moment_dtype, elements);
}

#endif
