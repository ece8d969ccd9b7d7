#include "bench/training/checkpoint_report.h"

#include <stdio.h>

#define GB 1e9
#define MS 1e3

void bench_checkpoint_head(const bench_checkpoint_run *r)
{
    const bench_options *o = r->job->options;

    if (r->job->world->rank != 0) {
        return;
    }
    printf("#\n# checkpoints of %.3f GB in %s: %zu units of %zu parameters and AdamW's moments, %s\n",
           (double)r->bytes / GB, o->checkpoint, o->units, r->unit_params,
           fsdp_strategy_name((fsdp_strategy)o->strategy));
    if (o->compute_us > 0) {
        printf("# compute    %zu us of each unit's forward pass, %s; twice as long of its backward pass\n",
               o->compute_us, o->overlap_compute == BENCH_COMPUTE_CPU ? "cpu" : "timed");
    }
    printf("# caches     %s before each read\n",
           r->drops ? "dropped"
                    : "files in them forgotten, as far as the kernel does so without root's right to drop all,");
    printf("# dd         one per rank, as many bytes in all, bs=4M, conv=fsync to write\n");
    printf("# %4s %12s %12s | %7s %7s %7s | %7s\n", "", "ours(GB/s)", "dd(GB/s)", "ours/dd", "least", "most", "#wrong");
    (void)fflush(stdout);
}

/* Ours over dd's throughput: of the medians, and the least and most over the repetitions. */
typedef struct comparison {
    double ours, dd, ratio, least, most; /* SECONDS, then ratios; `dd` and ratios below 0 where dd has failed */
} comparison;

/* Before medians put values in order. */
static comparison compare(const bench_checkpoint_run *r, bench_saving ours, bench_saving dd)
{
    const size_t n = r->job->options->repeat;
    comparison   c = {.ratio = -1, .least = -1, .most = -1};

    for (size_t i = 0; i < n; i++) {
        const double ratio = r->seconds[dd][i] / r->seconds[ours][i];

        c.least = i == 0 || ratio < c.least ? ratio : c.least;
        c.most  = ratio > c.most ? ratio : c.most;
    }
    c.ours = bench_median(r->seconds[ours], n);
    c.dd   = bench_median(r->seconds[dd], n);
    if (r->seconds[dd][0] < 0) {
        return (comparison){.ours = c.ours, .dd = -1, .ratio = -1, .least = -1, .most = -1};
    }
    c.ratio = c.dd / c.ours;
    return c;
}

static void print_row(const bench_checkpoint_run *r, const char *name, const comparison *c, int checked)
{
    const double gb = (double)r->bytes / GB;

    if (c->dd < 0) {
        printf("  %4s %12.3f %12s | %7s %7s %7s |", name, gb / c->ours, "dd failed", "-", "-", "-");
    } else {
        printf("  %4s %12.3f %12.3f | %7.3f %7.3f %7.3f |", name, gb / c->ours, gb / c->dd, c->ratio, c->least,
               c->most);
    }
    if (checked) {
        printf(" %7zu\n", r->wrong);
    } else {
        printf(" %7s\n", "-");
    }
}

static void print_steps(const double *m)
{
    printf("#\n# behind steps, in ms\n");
    printf("# %10s %12s %10s %12s | %12s %14s\n", "step", "with a copy", "longer by", "memcpy alone", "while saving",
           "saved behind");
    printf("  %10.1f %12.1f %10.1f %12.1f | %12.1f %14.1f\n", m[BENCH_STEP_ALONE] * MS, m[BENCH_STEP_COPIES] * MS,
           (m[BENCH_STEP_COPIES] - m[BENCH_STEP_ALONE]) * MS, m[BENCH_COPY] * MS, m[BENCH_STEP_BEHIND] * MS,
           m[BENCH_BEHIND] * MS);
}

/* What caching holds a step up for, and what the steps behind it are slower by: per step, where every so many cache. */
static void print_levels(const bench_checkpoint_run *r, const double *m)
{
    const double slower = m[BENCH_FOLLOWED] - m[BENCH_PLAIN];

    if (!r->cached) {
        printf("#\n# levels     not measured: %s\n", r->why_not);
        return;
    }
    printf("#\n# levels, in ms: a state is cached every %d steps, and then copied to the next node, if there are "
           "several\n",
           BENCH_CACHE_STEPS);
    printf("# %8s %12s %12s | %10s %12s %10s | %14s\n", "cache", "memcpy alone", "cache/memcpy", "step", "while copied",
           "slower by", "cost per step");
    printf("  %8.1f %12.1f %12.2f | %10.1f %12.1f %9.1f%% | %14.2f\n", m[BENCH_CACHE] * MS, m[BENCH_CACHE_COPY] * MS,
           m[BENCH_CACHE] / m[BENCH_CACHE_COPY], m[BENCH_PLAIN] * MS, m[BENCH_FOLLOWED] * MS,
           100 * slower / m[BENCH_PLAIN], (m[BENCH_CACHE] / BENCH_CACHE_STEPS + slower) * MS);
}

static void print_rows(const bench_checkpoint_run *r, const comparison *save, const comparison *load, const double *m)
{
    const int checked = !r->job->options->no_check;

    print_row(r, "save", save, 0);
    print_row(r, "load", load, checked);
    print_steps(m);
    print_levels(r, m);
    printf("#\n# medians of each; memcpy alone: of as many bytes, by all ranks at once\n");
    (void)fflush(stdout);
}

static double gb_s(const bench_checkpoint_run *r, double seconds)
{
    return seconds > 0 ? (double)r->bytes / GB / seconds : -1;
}

void bench_checkpoint_rows(const bench_checkpoint_run *r)
{
    const bench_options *o    = r->job->options;
    const comparison     save = compare(r, BENCH_SAVE, BENCH_DD_WRITE), load = compare(r, BENCH_LOAD, BENCH_DD_READ);
    double               m[BENCH_N_SAVINGS];

    for (int s = 0; s < BENCH_N_SAVINGS; s++) {
        m[s] = bench_median(r->seconds[s], o->repeat);
    }
    if (r->job->world->rank == 0) {
        print_rows(r, &save, &load, m);
    }
    const bench_field fields[] = {
        {"bytes", NULL, (double)r->bytes},
        {"units", NULL, (double)o->units},
        {"strategy", fsdp_strategy_name((fsdp_strategy)o->strategy), 0},
        {"ranks", NULL, r->job->world->size},
        {"caches_dropped", NULL, r->drops},
        {"compute_us", NULL, (double)o->compute_us},
        {"save_gb_s", NULL, gb_s(r, save.ours)},
        {"dd_write_gb_s", NULL, gb_s(r, save.dd)},
        {"save_over_dd", NULL, save.ratio},
        {"load_gb_s", NULL, gb_s(r, load.ours)},
        {"dd_read_gb_s", NULL, gb_s(r, load.dd)},
        {"load_over_dd", NULL, load.ratio},
        {"step_ms", NULL, m[BENCH_STEP_ALONE] * MS},
        {"step_with_copy_ms", NULL, m[BENCH_STEP_COPIES] * MS},
        {"memcpy_ms", NULL, m[BENCH_COPY] * MS},
        {"step_while_saving_ms", NULL, m[BENCH_STEP_BEHIND] * MS},
        {"saved_behind_ms", NULL, m[BENCH_BEHIND] * MS},
        {"cache_ms", NULL, r->cached ? m[BENCH_CACHE] * MS : -1},
        {"cache_memcpy_ms", NULL, r->cached ? m[BENCH_CACHE_COPY] * MS : -1},
        {"cached_every", NULL, BENCH_CACHE_STEPS},
        {"step_plain_ms", NULL, r->cached ? m[BENCH_PLAIN] * MS : -1},
        {"step_while_copied_ms", NULL, r->cached ? m[BENCH_FOLLOWED] * MS : -1},
        {"wrong", NULL, o->no_check ? -1 : (double)r->wrong},
    };
    bench_records_row(&r->job->records, fields, sizeof fields / sizeof fields[0]);
}
