#include "bench/lanes/lanes_report.h"

#include <stdio.h>

#define GB 1e9
#define US 1e6

static double bandwidth(const bench_lanes_result *r, double seconds)
{
    return (double)r->what.bytes / seconds / GB;
}

/* Below 0 where there is none. */
static double microseconds(double seconds)
{
    return seconds < 0 ? -1 : seconds * US;
}

void bench_lanes_head(const bench_job *job)
{
    if (job->world->rank != 0) {
        return;
    }
    printf("#\n# an allreduce of one f32 while allgathers are under way, %s memory\n",
           job->options->memory == BENCH_MEMORY_USER ? "user" : "symmetric");
    printf("# %12s %6s | %9s %6s %10s %8s %8s | %10s %11s %6s | %7s\n", "gather(B)", "queued", "alone(us)", "sums",
           "median(us)", "p90(us)", "max(us)", "alone GB/s", "beside GB/s", "ratio", "#wrong");
    (void)fflush(stdout);
}

void bench_lanes_row(const bench_job *job, const bench_lanes_result *r)
{
    if (job->world->rank != 0) {
        return;
    }
    printf("  %12zu %6zu | %9.2f %6zu", r->what.bytes, r->queued, r->alone * US, r->sums);
    if (r->sums > 0) {
        printf(" %10.2f %8.2f %8.2f", r->median * US, r->p90 * US, r->most * US);
    } else {
        printf(" %10s %8s %8s", "-", "-", "-");
    }
    printf(" | %10.3f %11.3f %6.2f | %7zu\n", bandwidth(r, r->gather_alone), bandwidth(r, r->gather_beside),
           r->gather_alone / r->gather_beside, r->wrong);
    (void)fflush(stdout);
}

void bench_lanes_record(bench_job *job, const bench_lanes_result *r)
{
    const bench_field fields[] = {
        {"size_bytes", NULL, (double)r->what.bytes},
        {"queued", NULL, (double)r->queued},
        {"sum_alone_us", NULL, r->alone * US},
        {"sums", NULL, (double)r->sums},
        {"sum_beside_us", NULL, microseconds(r->median)},
        {"sum_beside_p90_us", NULL, microseconds(r->p90)},
        {"sum_beside_max_us", NULL, microseconds(r->most)},
        {"gather_alone_gb_s", NULL, bandwidth(r, r->gather_alone)},
        {"gather_beside_gb_s", NULL, bandwidth(r, r->gather_beside)},
        {"ratio", NULL, r->gather_alone / r->gather_beside},
        {"wrong", NULL, (double)r->wrong},
    };

    bench_records_row(&job->records, fields, sizeof fields / sizeof fields[0]);
}

void bench_lanes_foot(const bench_job *job)
{
    if (job->world->rank == 0) {
        printf("#\n# each sum as the rank saw it that came last; ratio: the gathers' bandwidth beside sums over that "
               "without\n");
    }
}
