#include "bench/collectives/table.h"

#include <stdio.h>

#include "bench/job/header.h"

#define GB           1e9
#define US           1e6
#define BEYOND_CACHE ((size_t)16 << 20) /* BYTES of S from which traffic is memory's and not a cache's */
#define CELL_BYTES   24

double bench_table_bound(const bench_job *job, const bench_result *r)
{
    bench_limits limits = job->limits;

    limits.memory = r->memory;
    return bench_bound(&r->what, &limits);
}

/* Memory traffic of a node in BYTES per second; below 0 where it does not go to memory. */
static double traffic_rate(const bench_job *job, const bench_result *r)
{
    if (r->what.bytes < BEYOND_CACHE) {
        return -1;
    }
    return bench_traffic(&r->what, &job->limits) * job->limits.node_size / r->seconds;
}

/* How many times the bound: below 0 where either is not known. */
static double times_bound(double seconds, double bound)
{
    return bound > 0 && seconds > 0 ? seconds / bound : -1;
}

/* "-" for what is not known. */
static const char *cell(char *text, const char *format, double value)
{
    if (value < 0) {
        return "-";
    }
    /* the formats are this file's own */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    (void)snprintf(text, CELL_BYTES, format, value);
#pragma GCC diagnostic pop
    return text;
}

void bench_table_head(const bench_job *job, bench_collective collective)
{
    const bench_case c = bench_job_case(job, collective, job->options->begin);
    char             here[CELL_BYTES], other[CELL_BYTES];

    if (job->world->rank != 0) {
        return;
    }
    (void)snprintf(here, sizeof here, "%s(us)", bench_level_here(job));
    (void)snprintf(other, sizeof other, "%s(us)", bench_level_other(job));
    printf("#\n# %s, %s %smemory, %s%s\n", bench_collective_name(collective),
           job->options->memory == BENCH_MEMORY_USER ? "user" : "symmetric", job->gpu ? "device " : "",
           c.in_place ? "in place" : "out of place", c.shared ? ", one result per node (MPI: one per rank)" : "");
    printf("# %12s %12s %5s %5s | %10s %8s %8s %7s | MPI %12s %6s | MPI %12s %6s | %10s %6s %6s %6s %6s %7s  %s\n",
           "size(B)", "count", "type", "redop", "time(us)", "algbw", "busbw", "#wrong", here, "ratio", other, "ratio",
           "bound(us)", "best", "median", "MPI's:", "median", "memory", "algorithm");
    (void)fflush(stdout);
}

void bench_table_row(const bench_job *job, const bench_result *r)
{
    const bench_case *c     = &r->what;
    const double      bound = bench_table_bound(job, r), rate = traffic_rate(job, r);
    char              wrong[CELL_BYTES], here[CELL_BYTES], other[CELL_BYTES], share[CELL_BYTES], best[CELL_BYTES],
        median[CELL_BYTES], mpi_best[CELL_BYTES], mpi_median[CELL_BYTES], ratio_here[CELL_BYTES],
        ratio_other[CELL_BYTES];

    if (job->world->rank != 0) {
        return;
    }
    printf("  %12zu %12zu %5s %5s | %10.2f %8.3f %8.3f %7s | %16s %6s | %16s %6s | %10.2f %6s %6s %6s %6s %7s  %s\n",
           c->bytes, c->count, fsdp_dtype_name(c->dtype), bench_case_op(c), r->seconds * US, bench_algbw(c, r->seconds),
           bench_busbw(c, r->seconds), cell(wrong, "%.0f", r->checked ? (double)r->wrong : -1),
           cell(here, "%.2f", r->here.seconds * US), cell(ratio_here, "%.2f", r->here.seconds < 0 ? -1 : r->here.ratio),
           cell(other, "%.2f", r->other.seconds * US),
           cell(ratio_other, "%.2f", r->other.seconds < 0 ? -1 : r->other.ratio), bound * US,
           cell(best, "%.2f", times_bound(r->best, bound)), cell(median, "%.2f", times_bound(r->seconds, bound)),
           cell(mpi_best, "%.2f", times_bound(r->here.seconds < 0 ? -1 : r->here.best, bound)),
           cell(mpi_median, "%.2f", times_bound(r->here.seconds, bound)),
           cell(share, "%.0f%%", rate < 0 ? -1 : 100 * rate / r->memory), r->algorithm);
    (void)fflush(stdout);
}

static const char *memory_text(const bench_job *job)
{
    return job->gpu                ? "what copies of that size inside the GPUs move"
           : job->bandwidth.arrays ? "the node's bandwidth, the most of what is measured beside the blocks"
                                   : "the node's bandwidth";
}

void bench_table_foot(const bench_job *job)
{
    if (job->world->rank != 0) {
        return;
    }
    printf("#\n# algbw, busbw in GB/s as nccl-tests defines them; ratio: MPI's time / ours, of the medians (--repeat "
           "%zu)\n"
           "# best, median: our times over the bound, and then MPI's\n"
           "# bound: the least memory traffic of all ranks over %s%s; data in caches, or several pages at once, can "
           "beat it\n"
           "# memory: that traffic per second, as a share of the bandwidth, from 16 MiB on\n",
           job->options->repeat, memory_text(job),
           job->limits.nodes > 1 ? ", or the bytes of a node over its link if that takes longer" : "");
}

void bench_table_record(bench_job *job, const bench_result *r)
{
    const bench_case *c     = &r->what;
    const double      bound = bench_table_bound(job, r), rate = traffic_rate(job, r);
    const int         here = r->here.seconds >= 0, other = r->other.seconds >= 0;
    const bench_field fields[] = {
        {"collective", bench_collective_name(c->collective), 0},
        {"in_place", NULL, c->in_place},
        {"result", c->shared ? "shared" : "private", 0},
        {"size_bytes", NULL, (double)c->bytes},
        {"count", NULL, (double)c->count},
        {"type", fsdp_dtype_name(c->dtype), 0},
        {"redop", bench_case_op(c), 0},
        {"time_us", NULL, r->seconds * US},
        {"time_best_us", NULL, r->best * US},
        {"time_worst_us", NULL, r->worst * US},
        {"algbw_gb_s", NULL, bench_algbw(c, r->seconds)},
        {"busbw_gb_s", NULL, bench_busbw(c, r->seconds)},
        {"wrong", NULL, r->checked ? (double)r->wrong : -1},
        {"iterations", NULL, (double)r->iterations},
        {"mpi_thread_level", bench_level_here(job), 0},
        {"mpi_time_us", NULL, r->here.seconds * US},
        {"mpi_time_best_us", NULL, r->here.seconds < 0 ? -1 : r->here.best * US},
        {"mpi_time_worst_us", NULL, r->here.seconds < 0 ? -1 : r->here.worst * US},
        {"ratio", NULL, here ? r->here.ratio : -1},
        {"ratio_min", NULL, here ? r->here.ratio_least : -1},
        {"ratio_max", NULL, here ? r->here.ratio_most : -1},
        {"twin_thread_level", bench_level_other(job), 0},
        {"twin_time_us", NULL, r->other.seconds * US},
        {"twin_ratio", NULL, other ? r->other.ratio : -1},
        {"twin_ratio_min", NULL, other ? r->other.ratio_least : -1},
        {"twin_ratio_max", NULL, other ? r->other.ratio_most : -1},
        {"bound_us", NULL, bound * US},
        {"time_over_bound", NULL, bound > 0 ? r->seconds / bound : -1},
        {"memory_bandwidth_gb_s", NULL, r->memory / GB},
        {"memory_bandwidth_least_gb_s", NULL, r->memory_least / GB},
        {"memory_traffic_gb_s", NULL, rate < 0 ? -1 : rate / GB},
        {"memory_traffic_share", NULL, rate < 0 ? -1 : rate / r->memory},
        {"algorithm", r->algorithm, 0},
    };

    bench_records_row(&job->records, fields, sizeof fields / sizeof fields[0]);
}
