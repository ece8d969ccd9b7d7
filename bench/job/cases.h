/**
 * @file
 * What runs of collectives do alike: the collectives that are wanted, one by one, and all the sizes of each.
 */
#ifndef BENCH_CASES_H
#define BENCH_CASES_H

#include "bench/job/job.h"

/** What a kind of run does with its cases; `run` is its own. */
typedef struct bench_case_steps {
    int collectives;                                       /* those before this one take part */
    void (*head)(const bench_job *, bench_collective);     /* what stands above the sizes of a collective */
    fsdp_status (*measure)(void *run, const bench_case *); /* one size */
    void (*report)(void *run);                             /* what has been measured, as a row and as a record */
} bench_case_steps;

/** Of all the collectives that are wanted. */
size_t bench_cases_count(const bench_job *job, const bench_case_steps *steps);

/** Measures and reports all of them, below a bar that shows how far it is. Collective. */
fsdp_status bench_cases_run(bench_job *job, const bench_case_steps *steps, void *run);

#endif
