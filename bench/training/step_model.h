/**
 * @file
 * A model of equal units, and steps of it: forward over the units in order, backward in reverse, and the optimizer's step,
 * with compute in each pass of each unit.
 *
 * With plain SGD at a rate of 1 on small integers: what the parameters are after any number of steps is known without
 * communication. Steps that are timed have gradients of 0, and change nothing.
 */
#ifndef BENCH_STEP_MODEL_H
#define BENCH_STEP_MODEL_H

#include "bench/base/compute.h"
#include "bench/base/options.h"
#include "bench/base/world.h"

/** The backward pass of a unit computes so many times as long as its forward pass: gradients by input and by weights. */
enum { BENCH_STEP_BACKWARD = 2 };

typedef struct bench_step_model {
    const bench_options *options;
    bench_world          world; /* with a context of its own */
    fsdp_model          *model;
    fsdp_optimizer      *optimizer;
    fsdp_unit          **units;
    unsigned             pattern; /* of the last check: how often parameters have changed */
} bench_step_model;

/**
 * Opens a context with these settings, and the model in it, for an optimizer of this kind, at a rate of 1. Collective.
 * bench_step_model_close() follows in any case. Only with FSDP_SGD bench_step_check() knows what to expect.
 */
fsdp_status bench_step_model_open(bench_step_model *m, const bench_world *world, const bench_options *options,
                                  fsdp_optimizer_kind kind, fsdp_config *config);
fsdp_status bench_step_model_close(bench_step_model *m);

/** One step; `work` is the compute of a unit's forward pass, or NULL. Collective. */
fsdp_status bench_step_do(bench_step_model *m, const bench_work *work);

/** Whether results are exact: sums of all ranks' integers have to fit into bf16. */
int bench_step_can_check(const bench_step_model *m);

/**
 * A step with gradients, in which each gathered value is compared, and so each reduced gradient by what it has made of the
 * parameter. Collective. Adds to `wrong` the number of wrong elements over all ranks.
 */
fsdp_status bench_step_check(bench_step_model *m, size_t *wrong);

#endif
