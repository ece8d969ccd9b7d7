/**
 * @file
 * What a strategy means, and how it is called.
 */
#ifndef FSDPI_STRATEGY_H
#define FSDPI_STRATEGY_H

#include <stdbool.h>

#include "fsdp/model.h"

/** The strategy of a name that is `length` BYTES long. False, and nothing changed: there is none. */
bool fsdpi_strategy_find(const char *name, size_t length, fsdp_strategy *strategy);

static inline bool fsdpi_is_hybrid(fsdp_strategy strategy)
{
    return strategy == FSDP_HYBRID_SHARD || strategy == FSDP_HYBRID_SHARD_ZERO2;
}

/** Whether a gathered view has a place of its own, in which it stays. */
static inline bool fsdpi_keeps_views(fsdp_strategy strategy)
{
    return strategy == FSDP_SHARD_GRAD_OP || strategy == FSDP_SHARD_OPTIM || strategy == FSDP_HYBRID_SHARD_ZERO2;
}

/** Whether it lies in a slot during passes, which units take in turn. */
static inline bool fsdpi_takes_slot(fsdp_strategy strategy)
{
    return strategy != FSDP_NO_SHARD && !fsdpi_keeps_views(strategy);
}

#endif
