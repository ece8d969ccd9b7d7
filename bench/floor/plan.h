/**
 * @file
 * How the floor cuts its data into messages, and what is worth trying.
 */
#ifndef BENCH_PLAN_H
#define BENCH_PLAN_H

#include <stddef.h>

#include "bench/base/collective.h"

#define BENCH_PLAN_INLINE_BYTES ((size_t)8 << 10) /* of data behind a letter, at most */
#define BENCH_PLAN_WHOLE_BYTES  ((size_t)1 << 20) /* of data in one message, at most */
#define BENCH_PLAN_ROOM         ((size_t)8 << 20) /* BYTES that any plan receives at a time, at most */
#define BENCH_PLANS             7
#define BENCH_PLAN_TEXT_BYTES   24

typedef enum bench_form {
    BENCH_FORM_INLINE, /* one message, in which the data follows the letter */
    BENCH_FORM_WHOLE,  /* one message of data, and the letter beside it; an allreduce sends the whole vector */
    BENCH_FORM_CHUNKS  /* several messages of data; an allreduce sends half of the vector, then results */
} bench_form;

typedef struct bench_plan {
    bench_form form;
    size_t     chunk; /* BYTES of a message */
    size_t     depth; /* messages under way in each direction */
} bench_plan;

/** The plans that can serve a case of f32. @return how many, at least one */
size_t bench_plans(const bench_case *c, bench_plan plans[BENCH_PLANS]);

/** "inline", "whole", or chunk and depth as "48K x 4". */
void bench_plan_text(const bench_plan *plan, char text[BENCH_PLAN_TEXT_BYTES]);

#endif
