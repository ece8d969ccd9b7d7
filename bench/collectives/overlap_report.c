#include "bench/collectives/overlap_report.h"

#include <stdio.h>

#define US 1e6

double bench_clamp(double share)
{
    return share < 0 ? 0 : share > 1 ? 1 : share;
}

void bench_overlap_head(const bench_job *job, bench_collective collective)
{
    const char *kind = job->options->overlap_compute == BENCH_COMPUTE_CPU ? "cpu" : "timed";

    if (job->world->rank == 0) {
        printf("#\n# overlap of %s, %s compute\n", bench_collective_name(collective), kind);
        printf("# %12s %5s %5s | %10s %10s %10s %7s | MPI %10s %10s %10s %7s | %7s %7s %8s\n", "size(B)", "type",
               "redop", "comm(us)", "compute", "total", "hidden", "comm(us)", "compute", "total", "hidden", "ceiling",
               "reached", "progress");
        (void)fflush(stdout);
    }
}

/* The medians of a side: comm, compute, total, hidden. Below 0 where it was not measured. */
static void medians(const bench_overlap_run *r, bench_side s, double *m)
{
    const size_t       n = r->job->options->repeat;
    const bench_trial *t = &r->trials[s];

    m[0] = m[1] = m[2] = m[3] = -1;
    if (r->iterations[s]) {
        m[0] = bench_median(t->comm, n);
        m[1] = bench_median(t->compute, n);
        m[2] = bench_median(t->total, n);
        m[3] = bench_median(t->hidden, n);
    }
}

static void print_side(const double *m)
{
    if (m[0] < 0) {
        printf("%10s %10s %10s %7s", "-", "-", "-", "-");
    } else {
        printf("%10.2f %10.2f %10.2f %6.1f%%", m[0] * US, m[1] * US, m[2] * US, 100 * m[3]);
    }
}

static void print_row(const bench_overlap_run *r, const double *ours, const double *mpi, double ceiling,
                      double progress)
{
    if (r->job->world->rank != 0) {
        return;
    }
    printf("  %12zu %5s %5s | ", r->what.bytes, fsdp_dtype_name(r->what.dtype), bench_case_op(&r->what));
    print_side(ours);
    printf(" |     ");
    print_side(mpi);
    if (ceiling > 0) {
        printf(" | %6.1f%% %6.1f%%", 100 * ceiling, 100 * bench_clamp(ours[3] / ceiling));
    } else {
        printf(" | %7s %7s", ceiling < 0 ? "-" : "0.0%", "-");
    }
    printf(" %7.1f%%\n", 100 * progress);
    (void)fflush(stdout);
}

void bench_overlap_row(const bench_overlap_run *r)
{
    const size_t n        = r->job->options->repeat;
    const int    cpu      = r->job->options->overlap_compute == BENCH_COMPUTE_CPU;
    const double ceiling  = cpu ? bench_median(r->usage.ceiling, n) : -1;
    const double progress = bench_median(r->usage.progress, n);
    double       ours[4], mpi[4];

    medians(r, BENCH_OURS, ours);
    medians(r, BENCH_MPI, mpi);
    print_row(r, ours, mpi, ceiling, progress);

    const bench_field fields[] = {
        {"collective", bench_collective_name(r->what.collective), 0},
        {"size_bytes", NULL, (double)r->what.bytes},
        {"type", fsdp_dtype_name(r->what.dtype), 0},
        {"redop", bench_case_op(&r->what), 0},
        {"compute", cpu ? "cpu" : "timed", 0},
        {"comm_us", NULL, ours[0] * US},
        {"compute_us", NULL, ours[1] * US},
        {"total_us", NULL, ours[2] * US},
        {"hidden", NULL, ours[3]},
        {"mpi_comm_us", NULL, mpi[0] * US},
        {"mpi_compute_us", NULL, mpi[1] * US},
        {"mpi_total_us", NULL, mpi[2] * US},
        {"mpi_hidden", NULL, mpi[3]},
        {"ceiling", NULL, ceiling},
        {"ceiling_reached", NULL, ceiling > 0 ? bench_clamp(ours[3] / ceiling) : -1},
        {"progress_thread_cpu", NULL, progress},
        {"iterations", NULL, (double)r->iterations[BENCH_OURS]},
        {"mpi_iterations", NULL, r->iterations[BENCH_MPI] ? (double)r->iterations[BENCH_MPI] : -1},
    };
    bench_records_row(&r->job->records, fields, sizeof fields / sizeof fields[0]);
}

void bench_overlap_foot(const bench_overlap_run *r)
{
    if (r->job->world->rank == 0) {
        printf(
            "#\n# hidden: 1 - (total - compute) / comm; ceiling: the part of %d cores that communication alone leaves\n"
            "# free, the kernel's work for it counted too: no overlap goes beyond it with compute on the same cores;\n"
            "# progress: CPU time of rank 0's progress thread / time\n",
            r->cores);
    }
}
