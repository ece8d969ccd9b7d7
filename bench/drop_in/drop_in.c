#include "bench/drop_in/drop_in.h"

#include <stdio.h>
#include <stdlib.h>

#include "bench/compare/baseline.h"
#include "bench/drop_in/drop_in_report.h"
#include "bench/job/block.h"
#include "bench/twin/twin_channel.h"

/* The three jobs of a round. */
enum { PLAIN, PRELOADED, CONTROL, N_JOBS };

#define ALONE_ITERATIONS 1000000
#define MOST_WARM_UP     1000

/* One size: SECONDS of each job in each round. */
typedef struct timed_case {
    bench_case what;
    size_t     iterations; /* 0: not known yet */
    double    *seconds[N_JOBS];
} timed_case;

typedef struct drop_in_run {
    bench_job  *job;
    timed_case *cases;
    size_t      n;
    double     *values; /* of all cases, then of calls alone, then two rows to put in order */
    double     *alone[N_JOBS], *ratios, *controls;
} drop_in_run;

/* ---- the cases --------------------------------------------------------------------------------------------------------- */

/* Gives how many there are; fills `cases` unless it is NULL. */
static size_t list_cases(const bench_job *job, timed_case *cases)
{
    size_t n = 0, bytes;

    for (int collective = 0; collective < BENCH_N_COLLECTIVES; collective++) {
        bench_case c = {0};

        if (!bench_job_wants(job, (bench_collective)collective)) {
            continue;
        }
        while (bench_job_next_case(job, (bench_collective)collective, &c, &bytes)) {
            if (bench_baseline_can(&c)) {
                if (cases) {
                    cases[n] = (timed_case){.what = c};
                }
                n++;
            }
        }
    }
    return n;
}

static int make_room(drop_in_run *r)
{
    const size_t rounds = r->job->options->repeat;
    double      *next;

    r->n      = list_cases(r->job, NULL);
    r->cases  = calloc(r->n + 1, sizeof *r->cases);
    r->values = calloc((N_JOBS * (r->n + 1) + 2) * rounds, sizeof *r->values);
    if (!r->cases || !r->values) {
        return 0;
    }
    next = r->values;
    (void)list_cases(r->job, r->cases);
    for (int j = 0; j < N_JOBS; j++) {
        for (size_t i = 0; i < r->n; i++, next += rounds) {
            r->cases[i].seconds[j] = next;
        }
        r->alone[j] = next;
        next += rounds;
    }
    r->ratios   = next;
    r->controls = next + rounds;
    return 1;
}

/* ---- one job ------------------------------------------------------------------------------------------------------------ */

static double ask_time(const drop_in_run *r, const bench_twin *twin, const bench_case *c, size_t iterations)
{
    const bench_order order = {
        .kind = BENCH_ORDER_TIME, .what = *c, .iterations = iterations, .in_blocks = 1, .apart = r->job->options->osu};

    return bench_twin_ask(twin, r->job->world, &order);
}

/* As many as the first job needs: the others do the same. */
static size_t probe(const drop_in_run *r, const bench_twin *twin, const bench_case *c)
{
    size_t n       = 1;
    double seconds = ask_time(r, twin, c, n);

    while (seconds >= 0 && seconds * (double)n < BENCH_PROBE_SECONDS && !r->job->options->iterations) {
        n *= 4;
        seconds = ask_time(r, twin, c, n);
    }
    return bench_block_iterations(r->job->options, seconds);
}

/* Each part of the memory once, as far as that is soon done: its first transfer takes several times as long as those behind it. */
static size_t warm_up(const drop_in_run *r, const bench_case *c)
{
    const size_t parts = bench_job_takes_turns(r->job->options) ? r->job->buffers.bytes / (c->bytes + 1) + 1 : 1;
    const size_t least = parts < MOST_WARM_UP ? parts : MOST_WARM_UP;

    return r->job->options->warmup > least ? r->job->options->warmup : least;
}

static int time_case(const drop_in_run *r, const bench_twin *twin, timed_case *c, double *seconds)
{
    (void)ask_time(r, twin, &c->what, warm_up(r, &c->what));
    if (c->iterations == 0) {
        c->iterations = probe(r, twin, &c->what);
    }
    *seconds = ask_time(r, twin, &c->what, c->iterations);
    return *seconds > 0;
}

static int time_cases(const drop_in_run *r, const bench_twin *twin, int kind, size_t round)
{
    const bench_order alone = {.kind = BENCH_ORDER_ALONE, .iterations = ALONE_ITERATIONS};

    for (size_t i = 0; i < r->n; i++) {
        if (!time_case(r, twin, &r->cases[i], &r->cases[i].seconds[kind][round])) {
            return 0;
        }
    }
    r->alone[kind][round] = bench_twin_ask(twin, r->job->world, &alone);
    return r->alone[kind][round] > 0;
}

static fsdp_status explain(const drop_in_run *r, const bench_twin *twin, double answer)
{
    const bench_world *world = r->job->world;

    if (!twin->there) {
        return bench_fail(world, "the jobs cannot be started: %s; start this one with mpirun or mpiexec, on this host",
                          twin->why_not);
    }
    if (answer == BENCH_NOT_LOADED) {
        return bench_fail(world,
                          "--drop-in is '%.200s', which the ranks could not preload; give the path of "
                          "libfsdp_mpi.so, without blanks",
                          r->job->options->drop_in);
    }
    return answer < 0
               ? bench_fail(world, "no memory for two more buffers of %zu bytes per rank; use a smaller --end",
                            r->job->buffers.bytes)
               : bench_fail(world, "a job ended early; try it alone, with LD_PRELOAD=%.200s", r->job->options->drop_in);
}

static fsdp_status run_one(const drop_in_run *r, int kind, size_t round)
{
    const bench_options  *o       = r->job->options;
    const bench_twin_kind what    = {.preload = kind == PRELOADED ? o->drop_in : NULL};
    const bench_order     prepare = {.kind      = BENCH_ORDER_PREPARE,
                                     .memory    = BENCH_MEMORY_USER,
                                     .bytes     = r->job->buffers.bytes,
                                     .reuse     = o->reuse || o->osu,
                                     .preloaded = kind == PRELOADED};
    bench_twin            twin;
    double                answer = 0;
    int                   done   = 0;
    fsdp_status           status = FSDP_OK;

    bench_twin_start(&twin, r->job->world, o->program, &what);
    if (twin.there) {
        answer = bench_twin_ask(&twin, r->job->world, &prepare);
        done   = answer >= 0 && time_cases(r, &twin, kind, round);
    }
    if (!done) {
        status = explain(r, &twin, answer);
    }
    bench_twin_close(&twin, r->job->world);
    return status;
}

/* ---- all of them -------------------------------------------------------------------------------------------------------- */

/* In another order each time: what comes first may find a machine that is cooler. */
static fsdp_status run_round(drop_in_run *r, size_t round)
{
    for (size_t i = 0; i < N_JOBS; i++) {
        BENCH_TRY(run_one(r, (int)((round + i) % N_JOBS), round));
        bench_progress_bar_step(&r->job->bar);
    }
    return FSDP_OK;
}

static bench_drop_in_result conclude(const drop_in_run *r, const timed_case *c)
{
    const size_t         rounds = r->job->options->repeat;
    bench_drop_in_result result = {.what = c->what, .iterations = c->iterations};

    for (size_t i = 0; i < rounds; i++) {
        r->ratios[i]   = c->seconds[PLAIN][i] / c->seconds[PRELOADED][i];
        r->controls[i] = c->seconds[PLAIN][i] / c->seconds[CONTROL][i];
    }
    result.ratio         = bench_median(r->ratios, rounds);
    result.control       = bench_median(r->controls, rounds);
    result.least         = r->ratios[0];
    result.most          = r->ratios[rounds - 1];
    result.control_least = r->controls[0];
    result.control_most  = r->controls[rounds - 1];
    result.plain         = bench_median(c->seconds[PLAIN], rounds);
    result.preloaded     = bench_median(c->seconds[PRELOADED], rounds);
    return result;
}

static void report(const drop_in_run *r)
{
    const size_t              rounds = r->job->options->repeat;
    const bench_drop_in_alone alone = {bench_median(r->alone[PLAIN], rounds), bench_median(r->alone[PRELOADED], rounds),
                                       bench_median(r->alone[CONTROL], rounds)};

    for (size_t i = 0; i < r->n; i++) {
        const bench_drop_in_result result = conclude(r, &r->cases[i]);

        if (i == 0 || r->cases[i - 1].what.collective != result.what.collective) {
            bench_drop_in_head(r->job, result.what.collective);
        }
        bench_drop_in_row(r->job, &result);
        bench_drop_in_record(r->job, &result);
    }
    bench_drop_in_foot(r->job, &alone);
}

static fsdp_status run_all(drop_in_run *r)
{
    const bench_options *o = r->job->options;

    bench_progress_bar_open(&r->job->bar, r->job->world, o->progress, N_JOBS * o->repeat);
    for (size_t round = 0; round < o->repeat; round++) {
        BENCH_TRY(run_round(r, round));
    }
    bench_progress_bar_clear(&r->job->bar);
    report(r);
    return FSDP_OK;
}

fsdp_status bench_drop_in(bench_job *job)
{
    drop_in_run r      = {.job = job};
    fsdp_status status = bench_agree(job->world, make_room(&r), "no memory for the samples; use a smaller --repeat");

    if (status == FSDP_OK) {
        status = run_all(&r);
    }
    free(r.values);
    free(r.cases);
    return status;
}
