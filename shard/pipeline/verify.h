/**
 * @file
 * Proves that a lowered schedule can be carried out, whatever its source: every pass is there once and behind what it needs, every
 * receive has its send and every send its receive, parameters are gathered where they are used. That it does not stop for ever
 * with the buffers there are is found by carrying it out: simulate.h.
 */
#ifndef FSDPI_VERIFY_H
#define FSDPI_VERIFY_H

#include "shard/pipeline/passes.h"

/** Of compute alone: each stage runs each micro-batch forward once, and backward once, in one piece or two. */
bool fsdpi_verify_passes(const fsdpi_passes *passes, fsdpi_flaw *flaw);

/** Of a lowered schedule, all but that and deadlocks. */
bool fsdpi_verify_order(const fsdpi_passes *passes, fsdpi_flaw *flaw);

#endif
