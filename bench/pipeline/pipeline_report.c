#include "bench/pipeline/pipeline_report.h"

#include <stdio.h>

#define MS 1e3
#define US 1e6

void bench_pipeline_head(const bench_job *job, double action, size_t bytes, double transfer)
{
    if (job->world->rank != 0) {
        return;
    }
    printf("#\n# pipeline steps: F, I and W take %.3f ms each (%s), messages of %zu bytes %.2f us\n", action * MS,
           job->options->overlap_compute == BENCH_COMPUTE_CPU ? "cpu" : "timed", bytes, transfer * US);
    printf("# %-12s %5s %6s %6s | %11s %13s %12s %6s | %8s %8s\n", "schedule", "ranks", "stages", "micros",
           "formula(ms)", "simulated(ms)", "measured(ms)", "ratio", "bubble%", "waits%");
    (void)fflush(stdout);
}

void bench_pipeline_row(bench_job *job, const bench_pipeline_result *r)
{
    const double      ratio = r->measured / r->simulated, bubble = 100 * (1 - r->busy / r->measured);
    const bench_field fields[] = {{"schedule", r->schedule, 0},
                                  {"ranks", NULL, r->ranks},
                                  {"stages", NULL, r->stages},
                                  {"micros", NULL, r->micros},
                                  {"formula_ms", NULL, r->formula < 0 ? -1 : r->formula * MS},
                                  {"simulated_ms", NULL, r->simulated * MS},
                                  {"measured_ms", NULL, r->measured * MS},
                                  {"ratio", NULL, ratio},
                                  {"bubble_percent", NULL, bubble < 0 ? 0 : bubble},
                                  {"waiting_percent", NULL, 100 * r->waiting}};

    bench_records_row(&job->records, fields, sizeof fields / sizeof fields[0]);
    if (job->world->rank != 0) {
        return;
    }
    printf("  %-12s %5d %6d %6d | ", r->schedule, r->ranks, r->stages, r->micros);
    if (r->formula < 0) {
        printf("%11s", "-");
    } else {
        printf("%11.3f", r->formula * MS);
    }
    printf(" %13.3f %12.3f %6.3f | %8.2f %8.2f\n", r->simulated * MS, r->measured * MS, ratio, bubble,
           100 * r->waiting);
    (void)fflush(stdout);
}
