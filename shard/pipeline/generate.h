/**
 * @file
 * Schedules of compute that are known by name. Stage s is on rank s mod p. p ranks, v stages on each, m micro-batches:
 *
 * - gpipe: all forward passes, then all backward ones (Huang et al. 2019). Bubble (p-1)/(m+p-1), m micro-batches held.
 * - 1f1b: a backward pass after each forward one, once there is one to be done (Narayanan et al. 2019). The same bubble, p held.
 * - interleaved: 1f1b over v > 1 stages on each rank, in groups of p micro-batches (Narayanan et al. 2021). Bubble (p-1)/(mv+p-1).
 * - zb-h1: 1f1b with backward passes in two, the gradients of parameters where a rank would wait (Qi et al. 2023). As many held as
 *   1f1b; where F, I and W take the same time, bubble (p-1)/(3m+p-1).
 *
 * Bubbles are shares of a step where transfers cost nothing, and m >= p.
 */
#ifndef FSDPI_GENERATE_H
#define FSDPI_GENERATE_H

#include "shard/pipeline/schedule.h"

typedef enum fsdpi_pipeline_kind {
    FSDPI_GPIPE,
    FSDPI_1F1B,
    FSDPI_INTERLEAVED,
    FSDPI_ZB_H1,
    FSDPI_N_PIPELINE_KINDS
} fsdpi_pipeline_kind;

const char *fsdpi_pipeline_kind_text(fsdpi_pipeline_kind kind);

/** @return false with what is wrong: with the numbers, or that memory is short; `schedule` is closed then */
bool fsdpi_generate(fsdpi_schedule *schedule, fsdpi_pipeline_kind kind, int ranks, int stages_per_rank, int micros,
                    fsdpi_flaw *flaw);

/** The share of a step that a rank waits for others, by the formula above; negative where there is none: m < p. */
double fsdpi_bubble(fsdpi_pipeline_kind kind, int ranks, int stages_per_rank, int micros);

#endif
