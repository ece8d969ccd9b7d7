#include "bench/floor/floor.h"

#include <stdio.h>
#include <stdlib.h>

#include "bench/compare/baseline.h"
#include "bench/floor/answers.h"
#include "bench/floor/floor_report.h"
#include "bench/floor/minimal.h"
#include "bench/job/block.h"
#include "bench/job/cases.h"
#include "bench/job/measure.h"

#define PROBE_SECONDS 0.002 /* a shorter one says too little */
#define CHOICE_ROUNDS 3     /* in which each plan is timed once */
#define CHOICE_SHARE  8     /* of a block's iterations: one of so many */

typedef struct floor_run {
    bench_job          *job;
    bench_pair          pair;
    bench_floor_result  result;
    bench_floor_summary summary;
    size_t              wrong;                      /* elements, over all sizes */
    double             *seconds[BENCH_FLOOR_SIDES]; /* per block */
} floor_run;

fsdp_status bench_floor_possible(const bench_world *world, const bench_options *options)
{
    const int nodes = fsdp_node_count(world->ctx);

    if (!options->floor || (world->size == 2 && nodes == 2)) {
        return FSDP_OK;
    }
    return bench_fail(
        world,
        "--floor takes two ranks on two nodes, and here %s %d on %d; start one rank on each of two hosts, "
        "or two on this one with FSDP_NODE_SIZE=1",
        world->size > 1 ? "are" : "is", world->size, nodes);
}

/* ---- one operation of a side ------------------------------------------------------------------------------------- */

static fsdp_status run_once(floor_run *r, bench_floor_side side, const bench_buffers *b)
{
    const bench_case *c = &r->result.what;

    if (side == BENCH_FLOOR_OURS) {
        return bench_run(c, r->job->world->ctx, b->in, b->out);
    }
    if (side == BENCH_FLOOR) {
        return bench_minimal_run(&r->pair, &r->result.plan, c, b->in, b->out);
    }
    bench_baseline_run(c, r->job->world->comm, b->in, b->out);
    return FSDP_OK;
}

static fsdp_status run_times(floor_run *r, bench_floor_side side, size_t iterations)
{
    for (size_t i = 0; i < iterations; i++) {
        const bench_buffers b = bench_next_buffers(r->job, &r->result.what);

        BENCH_TRY(run_once(r, side, &b));
    }
    return FSDP_OK;
}

/* SECONDS per iteration on the slower rank, after one that finds the caches as this side leaves them. */
static fsdp_status time_side(floor_run *r, bench_floor_side side, size_t iterations, double *seconds)
{
    const bench_world *world = r->job->world;
    double             begin;

    BENCH_TRY(run_times(r, side, 1));
    MPI_Barrier(world->comm);
    begin = bench_now();
    BENCH_TRY(run_times(r, side, iterations));
    *seconds = bench_max(world, bench_now() - begin) / (double)iterations;
    return FSDP_OK;
}

/* How many iterations a block of a side should have. */
static fsdp_status probe(floor_run *r, bench_floor_side side, size_t *iterations)
{
    const bench_options *o = r->job->options;
    double               seconds;
    size_t               n = 1;

    BENCH_TRY(run_times(r, side, o->warmup));
    BENCH_TRY(time_side(r, side, n, &seconds));
    while (seconds * (double)n < PROBE_SECONDS && !o->iterations) {
        n *= 4;
        BENCH_TRY(time_side(r, side, n, &seconds));
    }
    *iterations = bench_block_iterations(o, seconds);
    return FSDP_OK;
}

/* ---- one size ---------------------------------------------------------------------------------------------------- */

/* The plan whose best of a few rounds, in alternation, is least. */
static fsdp_status choose_plan(floor_run *r)
{
    bench_plan   plans[BENCH_PLANS];
    double       least[BENCH_PLANS] = {0}, seconds;
    const size_t n                  = bench_plans(&r->result.what, plans);
    size_t       iterations, fastest = 0;

    r->result.plan = plans[0];
    BENCH_TRY(probe(r, BENCH_FLOOR, &iterations));
    iterations = 1 + iterations / CHOICE_SHARE;
    for (int round = 0; round < CHOICE_ROUNDS; round++) {
        for (size_t p = 0; p < n; p++) {
            r->result.plan = plans[p];
            BENCH_TRY(time_side(r, BENCH_FLOOR, iterations, &seconds));
            least[p] = round == 0 || seconds < least[p] ? seconds : least[p];
        }
    }
    for (size_t p = 1; p < n; p++) {
        fastest = least[p] < least[fastest] ? p : fastest;
    }
    r->result.plan = plans[fastest];
    return FSDP_OK;
}

static fsdp_status check_side(floor_run *r, bench_floor_side side)
{
    const bench_world   *world   = r->job->world;
    const bench_buffers *b       = &r->job->buffers;
    const bench_case    *c       = &r->result.what;
    const unsigned       pattern = ++r->job->pattern;
    uint64_t             wrong;

    bench_answers_fill(c, world->rank, pattern, b->in, b->out);
    BENCH_TRY(run_once(r, side, b));
    wrong = bench_answers_wrong(c, world->rank, pattern, b->out);
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_UINT64_T, MPI_SUM, world->comm);
    r->result.wrong += wrong;
    return FSDP_OK;
}

static fsdp_status check(floor_run *r)
{
    if (r->job->options->no_check) {
        return FSDP_OK;
    }
    BENCH_TRY(check_side(r, BENCH_FLOOR));
    BENCH_TRY(check_side(r, BENCH_FLOOR_OURS));
    if (bench_baseline_can(&r->result.what)) {
        BENCH_TRY(check_side(r, BENCH_FLOOR_MPI));
    }
    r->result.checked = 1;
    return FSDP_OK;
}

/* Block by block, each time beginning with another side, so that none always follows the same one. */
static fsdp_status time_blocks(floor_run *r, int sides)
{
    const size_t n = r->job->options->repeat;

    for (size_t i = 0; i < n; i++) {
        for (int k = 0; k < sides; k++) {
            const bench_floor_side side = (bench_floor_side)((i + (size_t)k) % (size_t)sides);

            BENCH_TRY(time_side(r, side, r->result.iterations[side], &r->seconds[side][i]));
        }
    }
    return FSDP_OK;
}

static fsdp_status measure(floor_run *r)
{
    bench_floor_result *result = &r->result;
    const int           sides  = bench_baseline_can(&result->what) ? BENCH_FLOOR_SIDES : BENCH_FLOOR_MPI;

    BENCH_TRY(choose_plan(r));
    BENCH_TRY(check(r));
    for (int s = 0; s < sides && s < BENCH_FLOOR_AGAIN; s++) {
        BENCH_TRY(probe(r, (bench_floor_side)s, &result->iterations[s]));
    }
    result->iterations[BENCH_FLOOR_AGAIN] = result->iterations[BENCH_FLOOR_MPI];
    BENCH_TRY(time_blocks(r, sides));
    (void)snprintf(result->algorithm, sizeof result->algorithm, "%s", fsdp_last_algorithm(r->job->world->ctx));
    for (int s = 0; s < BENCH_FLOOR_SIDES; s++) {
        result->seconds[s] = s < sides ? bench_median(r->seconds[s], r->job->options->repeat) : -1;
        result->best[s]    = r->seconds[s][0];
    }
    return FSDP_OK;
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

static fsdp_status measure_case(void *run, const bench_case *c)
{
    floor_run *r = run;

    r->result = (bench_floor_result){.what = *c};
    BENCH_TRY(measure(r));
    r->wrong += r->result.wrong;
    bench_floor_summarize(&r->summary, &r->result);
    return FSDP_OK;
}

static void report(void *run)
{
    const floor_run *r = run;

    bench_floor_row(r->job, &r->result);
    bench_floor_record(r->job, &r->result);
}

static fsdp_status floor_all(floor_run *r)
{
    static const bench_case_steps steps = {BENCH_BROADCAST, bench_floor_head, measure_case, report};

    BENCH_TRY(bench_cases_run(r->job, &steps, r));
    bench_floor_foot(r->job, &r->summary);
    return FSDP_OK;
}

fsdp_status bench_floor(bench_job *job, size_t *wrong)
{
    const size_t n      = job->options->repeat;
    floor_run    r      = {.job = job};
    double      *values = calloc(BENCH_FLOOR_SIDES * n, sizeof *values);
    fsdp_status  status;

    status = bench_agree(job->world, values != NULL, "no memory for the samples; use a smaller --repeat");
    if (status == FSDP_OK) {
        for (size_t s = 0; s < BENCH_FLOOR_SIDES; s++) {
            r.seconds[s] = values + s * n;
        }
        status = bench_pair_open(&r.pair, job->world);
        status = status == FSDP_OK ? floor_all(&r) : status;
        *wrong += r.wrong;
        bench_pair_close(&r.pair);
    }
    if (status == FSDP_ERR_MISMATCH) {
        (void)bench_fail(job->world, "--floor: the letters of the two ranks differ; this is an error of fsdp-bench");
    }
    free(values);
    return status;
}
