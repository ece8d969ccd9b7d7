#include "bench/collectives/shards.h"

#include <stdio.h>
#include <stdlib.h>

#include "bench/job/measure.h"

#define US     1e6
#define ENOUGH 0.8 /* of the best bandwidth */

typedef struct shard_row {
    bench_result gather, reduce;
} shard_row;

/* With one rank busbw is 0 by definition. */
static double bandwidth(const bench_result *r)
{
    return r->what.ranks > 1 ? bench_busbw(&r->what, r->seconds) : bench_algbw(&r->what, r->seconds);
}

static size_t shard_bytes(const bench_case *c)
{
    return c->count * fsdp_dtype_size(c->dtype);
}

static void print_head(const bench_job *job)
{
    if (job->world->rank == 0) {
        printf("#\n# a unit of so many parameters on %d ranks, in %s\n", job->world->size,
               fsdp_dtype_name(job->options->dtype));
        printf("# %14s %14s %12s | %11s %11s %7s | %11s %11s %7s\n", "parameters", "unit(B)", "shard(B)", "gather(us)",
               "busbw(GB/s)", "#wrong", "reduce(us)", "busbw(GB/s)", "#wrong");
        (void)fflush(stdout);
    }
}

static void print_result(const bench_result *r)
{
    printf(" | %11.2f %11.3f ", r->seconds * US, bandwidth(r));
    if (r->checked) {
        printf("%7zu", r->wrong);
    } else {
        printf("%7s", "-");
    }
}

static void report(bench_job *job, const shard_row *row)
{
    const bench_case *c          = &row->gather.what;
    const size_t      parameters = c->count * (size_t)c->ranks;
    const bench_field fields[]   = {
          {"parameters", NULL, (double)parameters},
          {"type", fsdp_dtype_name(c->dtype), 0},
          {"ranks", NULL, c->ranks},
          {"unit_bytes", NULL, (double)c->bytes},
          {"shard_bytes", NULL, (double)shard_bytes(c)},
          {"gather_us", NULL, row->gather.seconds * US},
          {"gather_busbw_gb_s", NULL, bandwidth(&row->gather)},
          {"reduce_us", NULL, row->reduce.seconds * US},
          {"reduce_busbw_gb_s", NULL, bandwidth(&row->reduce)},
          {"wrong", NULL, row->gather.checked ? (double)(row->gather.wrong + row->reduce.wrong) : -1},
    };

    bench_records_row(&job->records, fields, sizeof fields / sizeof fields[0]);
    if (job->world->rank == 0) {
        printf("  %14zu %14zu %12zu", parameters, c->bytes, shard_bytes(c));
        print_result(&row->gather);
        print_result(&row->reduce);
        printf("\n");
        (void)fflush(stdout);
    }
}

static const bench_result *gather_of(const shard_row *row)
{
    return &row->gather;
}

static const bench_result *reduce_of(const shard_row *row)
{
    return &row->reduce;
}

static void print_smallest(const char *what, const shard_row *rows, size_t n,
                           const bench_result *(*result_of)(const shard_row *))
{
    const bench_result *r;
    double              peak = 0;
    size_t              i    = 0;

    for (size_t k = 0; k < n; k++) {
        peak = bandwidth(result_of(&rows[k])) > peak ? bandwidth(result_of(&rows[k])) : peak;
    }
    while (i + 1 < n && bandwidth(result_of(&rows[i])) < ENOUGH * peak) {
        i++;
    }
    r = result_of(&rows[i]);
    printf("# smallest shard at %.0f%% of the best busbw to %s: %zu bytes (%zu parameters), %.3f of %.3f GB/s\n",
           100 * ENOUGH, what, shard_bytes(&r->what), r->what.count, bandwidth(r), peak);
}

static void conclude(const bench_job *job, const shard_row *rows, size_t n)
{
    if (job->world->rank == 0) {
        printf("#\n");
        print_smallest("gather", rows, n, gather_of);
        print_smallest("reduce", rows, n, reduce_of);
    }
}

static fsdp_status measure_rows(bench_job *job, shard_row *rows, size_t n, size_t *wrong)
{
    bench_case gather = {0}, reduce;
    size_t     bytes;

    print_head(job);
    for (size_t i = 0; i < n && bench_job_next_case(job, BENCH_ALLGATHER, &gather, &bytes); i++) {
        reduce = bench_job_case(job, BENCH_REDUCE_SCATTER, bytes);
        BENCH_TRY(bench_measure_ours(job, &gather, &rows[i].gather));
        BENCH_TRY(bench_measure_ours(job, &reduce, &rows[i].reduce));
        *wrong += rows[i].gather.wrong + rows[i].reduce.wrong;
        bench_progress_bar_clear(&job->bar);
        report(job, &rows[i]);
        bench_progress_bar_step(&job->bar);
    }
    bench_progress_bar_clear(&job->bar);
    conclude(job, rows, n);
    return FSDP_OK;
}

fsdp_status bench_shards(bench_job *job, size_t *wrong)
{
    const size_t n    = bench_job_count_cases(job, BENCH_ALLGATHER);
    shard_row   *rows = calloc(n, sizeof *rows);
    fsdp_status  status;

    status = bench_agree(job->world, rows != NULL, "no memory for the results; use a larger --factor");
    if (status == FSDP_OK) {
        bench_progress_bar_open(&job->bar, job->world, job->options->progress, n);
        status = measure_rows(job, rows, n, wrong);
    }
    free(rows);
    return status;
}
