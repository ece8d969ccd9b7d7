#include "bench/floor/plan.h"

#include <stdio.h>

static const struct {
    size_t kib, depth;
} cuts[] = {{16, 8}, {48, 4}, {256, 4}, {1024, 4}, {4096, 2}};

#define N_CUTS (sizeof cuts / sizeof cuts[0])

_Static_assert(N_CUTS + 2 == BENCH_PLANS, "inline, whole, and the cuts");

size_t bench_plans(const bench_case *c, bench_plan plans[BENCH_PLANS])
{
    const size_t element = fsdp_dtype_size(c->dtype), whole = c->count * element;
    const size_t piece = c->collective == BENCH_ALLREDUCE ? (c->count - c->count / 2) * element : whole;
    size_t       n     = 0;

    if (whole <= BENCH_PLAN_INLINE_BYTES) {
        plans[n++] = (bench_plan){BENCH_FORM_INLINE, whole, 1};
    }
    if (whole <= BENCH_PLAN_WHOLE_BYTES) {
        plans[n++] = (bench_plan){BENCH_FORM_WHOLE, whole, 1};
    }
    for (size_t i = 0; i < N_CUTS; i++) {
        if (cuts[i].kib << 10 < piece) {
            plans[n++] = (bench_plan){BENCH_FORM_CHUNKS, cuts[i].kib << 10, cuts[i].depth};
        }
    }
    return n;
}

void bench_plan_text(const bench_plan *plan, char text[BENCH_PLAN_TEXT_BYTES])
{
    if (plan->form == BENCH_FORM_CHUNKS) {
        (void)snprintf(text, BENCH_PLAN_TEXT_BYTES, "%zuK x %zu", plan->chunk >> 10, plan->depth);
    } else {
        (void)snprintf(text, BENCH_PLAN_TEXT_BYTES, "%s", plan->form == BENCH_FORM_INLINE ? "inline" : "whole");
    }
}
