/*
 * What a step does to the elements that a rank holds: one kernel for each run of them that has one learning rate and one
 * weight decay. Padding is in no run and stays zero.
 */
#include "shard/optimizer/optimizer_runs.h"

#include <math.h>

#include "shard/optimizer/optimizer_groups.h"
#include "shard/state/slices.h"

/* Of the present step; `decays`: whether the weight decay is for these elements. */
static fsdpi_coefficients coefficients_of(const fsdp_optimizer *optimizer, size_t group, bool decays)
{
    const fsdp_optimizer_options *o     = &optimizer->options;
    const double                  t     = (double)(optimizer->steps + 1);
    const float                   lr    = (float)fsdpi_group_lr(optimizer, group);
    const float                   decay = decays ? (float)fsdpi_group_weight_decay(optimizer, group) : 0.0F;

    return (fsdpi_coefficients){
        .adam = {.lr           = lr,
                 .beta1        = (float)o->beta1,
                 .beta2        = (float)o->beta2,
                 .rest1        = (float)(1.0 - o->beta1),
                 .rest2        = (float)(1.0 - o->beta2),
                 .eps          = (float)o->eps,
                 .weight_decay = decay,
                 .correction1  = (float)(1.0 - pow(o->beta1, t)),
                 .correction2  = (float)(1.0 - pow(o->beta2, t))},
        .lion = {.lr = lr, .beta1 = (float)o->beta1, .beta2 = (float)o->beta2, .weight_decay = decay},
        .sgd  = {.lr           = lr,
                 .momentum     = o->kind == FSDP_SGD_MOMENTUM ? (float)o->momentum : 0.0F,
                 .weight_decay = decay,
                 .nesterov     = o->nesterov != 0,
                 .first_step   = optimizer->steps == 0},
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
