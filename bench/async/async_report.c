#include "bench/async/async_report.h"

#include <stdio.h>

#define GB         1e9
#define US         1e6
#define NS         1e9
#define GOOD_ALONE 0.90

static int beside_compute(const bench_job *job)
{
    return job->options->overlap_compute == BENCH_COMPUTE_CPU;
}

static double bandwidth(const bench_async_result *r, double seconds)
{
    return (double)r->what.bytes / seconds / GB;
}

static double nanoseconds_per_byte(const bench_async_result *r)
{
    return r->cpu * NS / (double)r->what.bytes;
}

/* Of the times one after the other; below 0 where it was not measured. */
static double total_over_sum(const bench_async_result *r)
{
    return r->total < 0 ? -1 : r->total / (r->compute + r->blocking);
}

void bench_async_head(const bench_job *job, bench_collective collective)
{
    if (job->world->rank != 0) {
        return;
    }
    printf("#\n# %s by the progress thread alone%s\n", bench_collective_name(collective),
           beside_compute(job) ? ", and beside cpu compute on all ranks" : "");
    printf("# %12s %5s %5s | %12s %8s | %10s %8s %6s | %9s %6s |", "size(B)", "type", "redop", "blocking(us)", "GB/s",
           "alone(us)", "GB/s", "ratio", "CPU(ns/B)", "core");
    if (beside_compute(job)) {
        printf(" %11s %10s %9s |", "compute(us)", "total(us)", "total/sum");
    }
    printf(" %7s  %s\n", "#wrong", "algorithm");
    (void)fflush(stdout);
}

void bench_async_row(const bench_job *job, const bench_async_result *r)
{
    if (job->world->rank != 0) {
        return;
    }
    printf("  %12zu %5s %5s | %12.2f %8.3f | %10.2f %8.3f %6.2f | %9.3f %5.0f%% |", r->what.bytes,
           fsdp_dtype_name(r->what.dtype), bench_case_op(&r->what), r->blocking * US, bandwidth(r, r->blocking),
           r->alone * US, bandwidth(r, r->alone), r->blocking / r->alone, nanoseconds_per_byte(r), 100 * r->share);
    if (beside_compute(job)) {
        printf(" %11.2f %10.2f %9.2f |", r->compute * US, r->total * US, total_over_sum(r));
    }
    if (r->checked) {
        printf(" %7zu  %s\n", r->wrong, r->algorithm);
    } else {
        printf(" %7s  %s\n", "-", r->algorithm);
    }
    (void)fflush(stdout);
}

void bench_async_record(bench_job *job, const bench_async_result *r)
{
    const bench_case *c        = &r->what;
    const int         beside   = r->total >= 0;
    const bench_field fields[] = {
        {"collective", bench_collective_name(c->collective), 0},
        {"size_bytes", NULL, (double)c->bytes},
        {"type", fsdp_dtype_name(c->dtype), 0},
        {"redop", bench_case_op(c), 0},
        {"blocking_us", NULL, r->blocking * US},
        {"blocking_gb_s", NULL, bandwidth(r, r->blocking)},
        {"alone_us", NULL, r->alone * US},
        {"alone_gb_s", NULL, bandwidth(r, r->alone)},
        {"ratio", NULL, r->blocking / r->alone},
        {"thread_cpu_us", NULL, r->cpu * US},
        {"thread_cpu_ns_per_byte", NULL, nanoseconds_per_byte(r)},
        {"thread_core_share", NULL, r->share},
        {"compute", beside ? "cpu" : "none", 0},
        {"compute_us", NULL, beside ? r->compute * US : -1},
        {"total_us", NULL, beside ? r->total * US : -1},
        {"total_over_sum", NULL, total_over_sum(r)},
        {"iterations", NULL, (double)r->iterations},
        {"wrong", NULL, r->checked ? (double)r->wrong : -1},
        {"algorithm", r->algorithm, 0},
    };

    bench_records_row(&job->records, fields, sizeof fields / sizeof fields[0]);
}

void bench_async_foot(const bench_job *job)
{
    if (job->world->rank != 0) {
        return;
    }
    printf("#\n# good: ratio %.2f or more%s; of the medians of %zu blocks each\n", GOOD_ALONE,
           beside_compute(job) ? ", total/sum below 1.00" : "", job->options->repeat);
    printf("# blocking: the caller carries it out; alone: the caller issues four and sleeps until all are done;\n"
           "# GB/s: bytes of the full vector over the time; ratio: thread alone / blocking, of the bandwidths\n"
           "# CPU: of the progress thread, while it is alone: nanoseconds for each byte, and the share of a core\n");
    if (beside_compute(job)) {
        printf("# total: issue, compute, wait; sum: compute + blocking, one after the other. Compute and the thread "
               "share\n"
               "# the cores: 0.50 would be a communication that takes no CPU time\n");
    }
}
