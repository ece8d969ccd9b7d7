/**
 * @file
 * From compute alone to all that a rank does: messages right where data is there or needed, parameters gathered before a stage's
 * first pass and given back after its last, gradients reduced once all micro-batches have theirs.
 */
#ifndef FSDPI_LOWER_H
#define FSDPI_LOWER_H

#include "shard/pipeline/passes.h"

/** @return false if memory is short; `lowered` is closed then */
bool fsdpi_lower(const fsdpi_passes *passes, fsdpi_schedule *lowered, fsdpi_flaw *flaw);

#endif
