/**
 * @file
 * Where a schedule does what: which rank has a stage, and at which of its places an action of a stage and a micro-batch stands.
 */
#ifndef FSDPI_PASSES_H
#define FSDPI_PASSES_H

#include <stdint.h>

#include "shard/pipeline/schedule.h"

typedef struct fsdpi_passes {
    const fsdpi_schedule *schedule;
    int                  *owner; /* of each stage: a rank; -1: none */
    uint32_t
        *places; /* 1 more than the place among the owner's actions, of each action that may be there once; 0: none */
} fsdpi_passes;

/** @return false with the first stage on two ranks, or action that is there twice, or that memory is short; nothing is held then */
bool fsdpi_passes_open(fsdpi_passes *passes, const fsdpi_schedule *schedule, fsdpi_flaw *flaw);
void fsdpi_passes_close(fsdpi_passes *passes);

/** 1 more than the place of an action; 0: it is nowhere. Of UNSHARD and RESHARD, which may be repeated, always 0. */
uint32_t fsdpi_action_place(const fsdpi_passes *passes, fsdpi_work work, int stage, int micro);

/** The action after which the gradient of a stage's input is there: B or I. 0: it is nowhere. */
uint32_t fsdpi_gradient_place(const fsdpi_passes *passes, int stage, int micro);

/** The rank before or behind a stage that `rank` has; -1: there is no such stage, or `rank` has that too. */
int fsdpi_before(const fsdpi_passes *passes, int stage);
int fsdpi_behind(const fsdpi_passes *passes, int stage);

#endif
