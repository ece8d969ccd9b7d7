#include "bench/floor/floor_report.h"

#include <stdio.h>

#include "bench/job/header.h"

#define US         1e6
#define GOOD_FLOOR 0.90
#define GOOD_MPI   1.00

static const char *memory_name(const bench_job *job)
{
    return job->options->memory == BENCH_MEMORY_USER ? "user" : "symmetric";
}

/* Of the medians; below 0 where one was not measured. */
static double ratio(const bench_floor_result *r, bench_floor_side numerator, bench_floor_side denominator)
{
    return r->seconds[numerator] < 0 || r->seconds[denominator] <= 0 ? -1
                                                                     : r->seconds[numerator] / r->seconds[denominator];
}

void bench_floor_head(const bench_job *job, bench_collective collective)
{
    if (job->world->rank != 0) {
        return;
    }
    printf("#\n# %s against the floor, %s memory, two ranks on two nodes\n", bench_collective_name(collective),
           memory_name(job));
    printf("# %12s %12s %5s %5s | %10s %9s | %10s %10s | %10s %10s %8s %7s | %7s  %s\n", "size(B)", "count", "type",
           "redop", "floor(us)", "messages", "ours(us)", "floor/ours", "MPI(us)", "again(us)", "MPI/ours", "MPI/MPI",
           "#wrong", "algorithm");
    (void)fflush(stdout);
}

static void print_number(int width, double value)
{
    if (value < 0) {
        printf(" %*s", width, "-");
    } else {
        printf(" %*.2f", width, value);
    }
}

void bench_floor_row(const bench_job *job, const bench_floor_result *r)
{
    const bench_case *c = &r->what;
    char              plan[BENCH_PLAN_TEXT_BYTES];

    if (job->world->rank != 0) {
        return;
    }
    bench_plan_text(&r->plan, plan);
    printf("  %12zu %12zu %5s %5s | %10.2f %9s | %10.2f %10.2f |", c->bytes, c->count, fsdp_dtype_name(c->dtype),
           bench_case_op(c), r->seconds[BENCH_FLOOR] * US, plan, r->seconds[BENCH_FLOOR_OURS] * US,
           ratio(r, BENCH_FLOOR, BENCH_FLOOR_OURS));
    print_number(10, r->seconds[BENCH_FLOOR_MPI] * US);
    print_number(10, r->seconds[BENCH_FLOOR_AGAIN] * US);
    print_number(8, ratio(r, BENCH_FLOOR_MPI, BENCH_FLOOR_OURS));
    print_number(7, ratio(r, BENCH_FLOOR_AGAIN, BENCH_FLOOR_MPI));
    if (r->checked) {
        printf(" | %7zu  %s\n", r->wrong, r->algorithm);
    } else {
        printf(" | %7s  %s\n", "-", r->algorithm);
    }
    (void)fflush(stdout);
}

static double best_us(const bench_floor_result *r, bench_floor_side side)
{
    return r->seconds[side] < 0 ? -1 : r->best[side] * US;
}

void bench_floor_record(bench_job *job, const bench_floor_result *r)
{
    const bench_case *c = &r->what;
    char              plan[BENCH_PLAN_TEXT_BYTES];

    bench_plan_text(&r->plan, plan);

    const bench_field fields[] = {
        {"collective", bench_collective_name(c->collective), 0},
        {"memory", memory_name(job), 0},
        {"size_bytes", NULL, (double)c->bytes},
        {"count", NULL, (double)c->count},
        {"type", fsdp_dtype_name(c->dtype), 0},
        {"redop", bench_case_op(c), 0},
        {"floor_us", NULL, r->seconds[BENCH_FLOOR] * US},
        {"floor_best_us", NULL, best_us(r, BENCH_FLOOR)},
        {"floor_messages", plan, 0},
        {"floor_chunk_bytes", NULL, (double)r->plan.chunk},
        {"floor_depth", NULL, (double)r->plan.depth},
        {"time_us", NULL, r->seconds[BENCH_FLOOR_OURS] * US},
        {"time_best_us", NULL, best_us(r, BENCH_FLOOR_OURS)},
        {"floor_ratio", NULL, ratio(r, BENCH_FLOOR, BENCH_FLOOR_OURS)},
        {"mpi_time_us", NULL, r->seconds[BENCH_FLOOR_MPI] * US},
        {"mpi_time_best_us", NULL, best_us(r, BENCH_FLOOR_MPI)},
        {"mpi_again_us", NULL, r->seconds[BENCH_FLOOR_AGAIN] * US},
        {"mpi_again_best_us", NULL, best_us(r, BENCH_FLOOR_AGAIN)},
        {"ratio", NULL, ratio(r, BENCH_FLOOR_MPI, BENCH_FLOOR_OURS)},
        {"mpi_mpi_ratio", NULL, ratio(r, BENCH_FLOOR_AGAIN, BENCH_FLOOR_MPI)},
        {"iterations", NULL, (double)r->iterations[BENCH_FLOOR_OURS]},
        {"wrong", NULL, r->checked ? (double)r->wrong : -1},
        {"algorithm", r->algorithm, 0},
    };
    bench_records_row(&job->records, fields, sizeof fields / sizeof fields[0]);
}

static void take_least(bench_floor_least *least, double value, const bench_case *c)
{
    if (value > 0 && (least->ratio <= 0 || value < least->ratio)) {
        *least = (bench_floor_least){value, *c};
    }
}

void bench_floor_summarize(bench_floor_summary *summary, const bench_floor_result *r)
{
    const double twice = ratio(r, BENCH_FLOOR_AGAIN, BENCH_FLOOR_MPI);
    const double apart = twice > 0 && twice < 1 ? 1 / twice : twice;

    take_least(&summary->floor, ratio(r, BENCH_FLOOR, BENCH_FLOOR_OURS), &r->what);
    take_least(&summary->mpi, ratio(r, BENCH_FLOOR_MPI, BENCH_FLOOR_OURS), &r->what);
    summary->apart = apart > summary->apart ? apart : summary->apart;
}

static void print_least(const char *what, const bench_floor_least *least)
{
    if (least->ratio > 0) {
        printf("# least %-10s  %.2f, %s of %zu bytes\n", what, least->ratio,
               bench_collective_name(least->what.collective), least->what.bytes);
    }
}

void bench_floor_foot(const bench_job *job, const bench_floor_summary *summary)
{
    if (job->world->rank != 0) {
        return;
    }
    printf("#\n");
    print_least("floor/ours", &summary->floor);
    print_least("MPI/ours", &summary->mpi);
    if (summary->apart > 0) {
        printf("# MPI/MPI           up to a factor of %.2f apart; in its row, a difference of that size is noise\n",
               summary->apart);
    }
    printf("# good: floor/ours %.2f or more, MPI/ours %.2f or more; both are of the medians of %zu blocks each\n"
           "# floor: the least that MPI_Isend() and MPI_Irecv() need for the same result, with a letter of 64 bytes\n"
           "# by which the ranks agree and one reduction in rank order; above 1, ours is faster than that\n"
           "# messages: inline: data behind the letter; whole: beside it; else BYTES of a chunk x chunks under way;\n"
           "# what was fastest at that size\n"
           "# MPI: this process's, at thread level %s, twice; #wrong: of ours, the floor's and MPI's, bit by bit\n",
           GOOD_FLOOR, GOOD_MPI, job->options->repeat, bench_level_name(job->world->level));
}
