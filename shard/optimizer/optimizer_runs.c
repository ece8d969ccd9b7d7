/*
 * What a step does to the elements that a rank holds: one kernel for each run of them that has one learning rate and one
 * weight decay. Padding is in no run and stays zero.
 */
#include "shard/optimizer/optimizer_runs.h"

#include <math.h>

#include "shard/optimizer/optimizer_groups.h"
#include "shard/state/slices.h"

/* Of the present step, not rounded yet; `decays`: whether the weight decay is for these elements. */
static fsdpi_update_f64 wide_of(const fsdp_optimizer *optimizer, size_t group, bool decays)
{
    const fsdp_optimizer_options *o = &optimizer->options;
    const double                  t = (double)(optimizer->steps + 1);

    return (fsdpi_update_f64){
        .lr           = fsdpi_group_lr(optimizer, group),
        .weight_decay = decays ? fsdpi_group_weight_decay(optimizer, group) : 0.0,
        .beta1        = o->beta1,
        .beta2        = o->beta2,
        .rest1        = 1.0 - o->beta1,
        .rest2        = 1.0 - o->beta2,
        .eps          = o->eps,
        .correction1  = 1.0 - pow(o->beta1, t),
        .correction2  = 1.0 - pow(o->beta2, t),
        .momentum     = o->kind == FSDP_SGD_MOMENTUM ? o->momentum : 0.0,
        .nesterov     = o->nesterov != 0,
        .first_step   = optimizer->steps == 0,
    };
}

static fsdpi_coefficients coefficients_of(const fsdp_optimizer *optimizer, size_t group, bool decays)
{
    const fsdpi_update_f64 c  = wide_of(optimizer, group, decays);
    const float            lr = (float)c.lr, decay = (float)c.weight_decay;

    return (fsdpi_coefficients){
        .adam = {.lr           = lr,
                 .beta1        = (float)c.beta1,
                 .beta2        = (float)c.beta2,
                 .rest1        = (float)c.rest1,
                 .rest2        = (float)c.rest2,
                 .eps          = (float)c.eps,
                 .weight_decay = decay,
                 .correction1  = (float)c.correction1,
                 .correction2  = (float)c.correction2},
        .lion = {.lr = lr, .beta1 = (float)c.beta1, .beta2 = (float)c.beta2, .weight_decay = decay},
        .sgd  = {.lr           = lr,
                 .momentum     = (float)c.momentum,
                 .weight_decay = decay,
                 .nesterov     = c.nesterov,
                 .first_step   = c.first_step},
        .wide = c,
    };
}

/* A run so far, and what it has in common. */
typedef struct run {
    size_t begin, end;
    size_t group;
    bool   decays;
} run;

static run run_of_interval(const fsdpi_flat *flat, const fsdpi_flat_state *state, int i, const fsdp_interval *interval)
{
    const size_t begin = fsdpi_held_slice_begin(flat, i) + interval->shard_begin;

    return (run){.begin  = begin,
                 .end    = begin + interval->count,
                 .group  = state->group[interval->tensor],
                 .decays = (flat->tensors[interval->tensor]->flags & FSDP_TENSOR_NO_WEIGHT_DECAY) == 0};
}

static bool continues(const run *last, const run *next)
{
    return last->end == next->begin && last->group == next->group && last->decays == next->decays;
}

/* What of a run lies between `begin` and `end`. */
static void update_part(const fsdp_optimizer *optimizer, const run *r, size_t begin, size_t end,
                        fsdpi_run_update *update, const void *what)
{
    const size_t first = r->begin > begin ? r->begin : begin, last = r->end < end ? r->end : end;

    if (first < last) {
        const fsdpi_coefficients c = coefficients_of(optimizer, r->group, r->decays);

        update(what, first, last - first, &c);
    }
}

void fsdpi_optimizer_runs(const fsdp_optimizer *optimizer, fsdpi_flat *flat, const fsdpi_flat_state *state,
                          size_t begin, size_t end, fsdpi_run_update *update, const void *what)
{
    const fsdpi_held held = fsdpi_held_slices(flat);
    run              last = {0};

    for (int i = 0; i < held.n; i++) {
        const size_t n = fsdpi_held_intervals(flat, i);

        for (size_t k = 0; k < n; k++) {
            const run next = run_of_interval(flat, state, i, &flat->intervals[k]);

            if (continues(&last, &next)) {
                last.end = next.end;
            } else {
                update_part(optimizer, &last, begin, end, update, what);
                last = next;
            }
        }
    }
    update_part(optimizer, &last, begin, end, update, what);
}
