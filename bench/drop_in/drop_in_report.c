#include "bench/drop_in/drop_in_report.h"

#include <stdio.h>

#define NS 1e9
#define US 1e6

void bench_drop_in_head(const bench_job *job, bench_collective collective)
{
    const bench_options *o = job->options;
    const bench_case     c = bench_job_case(job, collective, o->begin);

    if (job->world->rank != 0) {
        return;
    }
    printf("#\n# %s, memory of malloc(), %s%s\n", bench_collective_name(collective),
           c.in_place ? "in place" : "out of place", o->osu ? ", one call at a time as OSU's benchmarks have it" : "");
    printf("# %12s %12s %5s %5s | %10s %10s | %6s %6s %6s | %7s %6s %6s | %8s | %10s\n", "size(B)", "count", "type",
           "redop", "plain(us)", "drop-in", "ratio", "least", "most", "control", "least", "most", "over it",
           "bound(us)");
    (void)fflush(stdout);
}

void bench_drop_in_row(const bench_job *job, const bench_drop_in_result *r)
{
    const bench_case *c = &r->what;

    if (job->world->rank != 0) {
        return;
    }
    printf("  %12zu %12zu %5s %5s | %10.2f %10.2f | %6.3f %6.3f %6.3f | %7.3f %6.3f %6.3f | %8.3f | %10.2f\n", c->bytes,
           c->count, fsdp_dtype_name(c->dtype), bench_case_op(c), r->plain * US, r->preloaded * US, r->ratio, r->least,
           r->most, r->control, r->control_least, r->control_most, r->ratio / r->control,
           bench_bound(c, &job->limits) * US);
    (void)fflush(stdout);
}

void bench_drop_in_record(bench_job *job, const bench_drop_in_result *r)
{
    const bench_field fields[] = {
        {"collective", bench_collective_name(r->what.collective), 0},
        {"size_bytes", NULL, (double)r->what.bytes},
        {"count", NULL, (double)r->what.count},
        {"dtype", fsdp_dtype_name(r->what.dtype), 0},
        {"op", bench_case_op(&r->what), 0},
        {"iterations", NULL, (double)r->iterations},
        {"plain_us", NULL, r->plain * US},
        {"drop_in_us", NULL, r->preloaded * US},
        {"ratio", NULL, r->ratio},
        {"ratio_least", NULL, r->least},
        {"ratio_most", NULL, r->most},
        {"control", NULL, r->control},
        {"control_least", NULL, r->control_least},
        {"control_most", NULL, r->control_most},
        {"bound_us", NULL, bench_bound(&r->what, &job->limits) * US},
    };

    bench_records_row(&job->records, fields, sizeof fields / sizeof fields[0]);
}

void bench_drop_in_foot(bench_job *job, const bench_drop_in_alone *alone)
{
    const bench_field fields[] = {
        {"alone_plain_ns", NULL, alone->plain * NS},
        {"alone_drop_in_ns", NULL, alone->preloaded * NS},
        {"alone_control_ns", NULL, alone->control * NS},
    };

    bench_records_summary(&job->records, fields, sizeof fields / sizeof fields[0]);
    if (job->world->rank != 0) {
        return;
    }
    printf(
        "#\n# a call that is not taken, MPI_Allreduce() of 8 bytes on MPI_COMM_SELF: plain %.0f ns, drop-in %.0f ns, "
        "control %.0f ns\n",
        alone->plain * NS, alone->preloaded * NS, alone->control * NS);
    printf(
        "# ratio: plain MPI's time over the drop-in's; control: over that of another plain job; over it: the one over "
        "the other\n"
        "# medians of %zu rounds of three jobs at thread level single, by the slowest rank%s\n",
        job->options->repeat, job->options->osu ? "; each call by itself: the mean of all ranks" : "");
}
