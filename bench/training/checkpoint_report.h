/**
 * @file
 * What saving and loading has been measured to take, and how it is printed and recorded.
 */
#ifndef BENCH_CHECKPOINT_REPORT_H
#define BENCH_CHECKPOINT_REPORT_H

#include "bench/job/job.h"

/** What is timed in each repetition, in SECONDS on the slowest rank. */
typedef enum bench_saving {
    BENCH_SAVE,
    BENCH_DD_WRITE,
    BENCH_LOAD,
    BENCH_DD_READ,     /* these two are below 0 where dd has failed */
    BENCH_STEP_ALONE,  /* a step, with none being saved */
    BENCH_STEP_COPIES, /* the one that takes a copy to save it behind the following ones */
    BENCH_STEP_BEHIND, /* one of those */
    BENCH_COPY,        /* of as much memory, by memcpy() */
    BENCH_BEHIND,      /* from the copy until the checkpoint is on the disk */
    BENCH_CACHE,       /* fsdp_checkpoint_cache() */
    BENCH_CACHE_COPY,  /* as BENCH_COPY, just before */
    BENCH_PLAIN,       /* a step, with no state on its way to a partner; the mean of BENCH_CACHE_STEPS */
    BENCH_FOLLOWED,    /* one of as many behind fsdp_checkpoint_cache() */
    BENCH_N_SAVINGS
} bench_saving;

enum { BENCH_CACHE_STEPS = 10 }; /* from one state that is cached to the next */

typedef struct bench_checkpoint_run {
    bench_job *job;
    size_t     unit_params, bytes; /* the latter of a checkpoint's tensors */
    int        drops;              /* whether the kernel's caches are dropped */
    double    *seconds[BENCH_N_SAVINGS];
    size_t     wrong;
    int        cached;       /* whether states could be cached */
    char       why_not[512]; /* else: what was wrong */
} bench_checkpoint_run;

/** Only rank 0 prints. */
void bench_checkpoint_head(const bench_checkpoint_run *r);
void bench_checkpoint_rows(const bench_checkpoint_run *r);

#endif
