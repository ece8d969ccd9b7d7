#include "bench/training/step_report.h"

#include <stdio.h>

#define US 1e6

static const char *compute_name(const bench_options *o)
{
    return o->overlap_compute == BENCH_COMPUTE_CPU ? "cpu" : "timed";
}

void bench_step_head(const bench_step_run *r)
{
    const bench_options *o = r->job->options;

    if (r->job->world->rank == 0) {
        printf("#\n# steps of %zu units of %zu parameters, %s, %s, %s compute%s\n", o->units, o->unit_params,
               fsdp_strategy_name(o->strategy), fsdp_dtype_name(o->dtype), compute_name(o),
               o->fixed_addresses ? ", fixed addresses" : "");
        printf("# %10s | prefetch: %10s %10s %10s %6s %6s | none: %10s %10s %10s %6s %6s | %7s\n", "compute(us)",
               "comm(us)", "step", "best", "ratio", "best", "comm(us)", "step", "best", "ratio", "best", "#wrong");
        (void)fflush(stdout);
    }
}

/* Medians and the least. */
typedef struct summary {
    double comm, step, best, ratio, best_ratio;
} summary;

static summary summarize(const bench_step_side *side, size_t n)
{
    summary s;

    s.comm       = bench_median(side->comm, n);
    s.step       = bench_median(side->step, n);
    s.best       = side->step[0];
    s.ratio      = bench_median(side->ratio, n);
    s.best_ratio = side->ratio[0];
    return s;
}

static void print_side(const char *before, const summary *s)
{
    printf(" | %s %10.0f %10.0f %10.0f %6.3f %6.3f", before, s->comm * US, s->step * US, s->best * US, s->ratio,
           s->best_ratio);
}

static void print_row(const bench_step_run *r, double seconds, const summary *ahead, const summary *behind)
{
    if (r->job->world->rank != 0) {
        return;
    }
    printf("  %11.0f", seconds * US);
    print_side("         ", ahead);
    print_side("     ", behind);
    if (r->checked) {
        printf(" | %7zu\n", r->wrong);
    } else {
        printf(" | %7s\n", "-");
    }
    printf("#\n# comm: the step with no compute in it; ratio: the step's time over the larger of compute and comm, and "
           "over\n"
           "# their sum where nothing is gathered ahead\n");
    (void)fflush(stdout);
}

void bench_step_row(const bench_step_run *r)
{
    const bench_options *o       = r->job->options;
    const double         seconds = bench_median(r->compute, o->repeat);
    const summary        ahead = summarize(&r->ahead, o->repeat), behind = summarize(&r->behind, o->repeat);
    const bench_field    fields[] = {
           {"units", NULL, (double)o->units},
           {"unit_parameters", NULL, (double)o->unit_params},
           {"strategy", fsdp_strategy_name(o->strategy), 0},
           {"type", fsdp_dtype_name(o->dtype), 0},
           {"ranks", NULL, r->job->world->size},
           {"compute", compute_name(o), 0},
           {"compute_us", NULL, seconds * US},
           {"comm_us", NULL, ahead.comm * US},
           {"step_us", NULL, ahead.step * US},
           {"step_best_us", NULL, ahead.best * US},
           {"step_over_max", NULL, ahead.ratio},
           {"step_over_max_best", NULL, ahead.best_ratio},
           {"none_comm_us", NULL, behind.comm * US},
           {"none_step_us", NULL, behind.step * US},
           {"none_step_best_us", NULL, behind.best * US},
           {"none_step_over_sum", NULL, behind.ratio},
           {"none_step_over_sum_best", NULL, behind.best_ratio},
           {"wrong", NULL, r->checked ? (double)r->wrong : -1},
    };

    print_row(r, seconds, &ahead, &behind);
    bench_records_row(&r->job->records, fields, sizeof fields / sizeof fields[0]);
}
