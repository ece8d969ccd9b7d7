/** @file What the parts of fsdp-plan share. */
#ifndef PLAN_H
#define PLAN_H

#include <stddef.h>

#include "shard/pipeline/simulate.h"

/** How the program ends. */
enum {
    PLAN_GOOD    = 0,
    PLAN_REFUSED = 1, /* the schedule cannot be carried out */
    PLAN_USAGE   = 2,
    PLAN_FAILED  = 3, /* a file cannot be read or written, or memory is short */
};

typedef struct plan_options {
    int         kind;  /* an fsdpi_pipeline_kind, if `path` is NULL */
    const char *path;  /* of a schedule that is read */
    const char *write; /* where it is written; NULL: nowhere */
    size_t      ranks, stages_per_rank, micros, buffers, most_held;
    double      forward, backward_input, backward_weight, transfer;
    int         lowered; /* with messages, where it is written */
    int         quiet;   /* no grid */
} plan_options;

/** fsdp-plan pipeline. */
int plan_pipeline(const plan_options *options);

#endif
