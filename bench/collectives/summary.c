#include "bench/collectives/summary.h"

#define GB    1e9
#define ALIKE 0.8 /* the least over the most: blocks of a few milliseconds differ this much on an idle machine */

bench_summary bench_summary_of(const bench_result *results, size_t n, double memory)
{
    bench_summary s = {.memory_least = memory, .memory_most = memory};

    for (size_t i = 0; i < n; i++) {
        const bench_result *r = &results[i];

        s.checked += r->checked;
        s.wrong += r->wrong;
        s.busbw += bench_busbw(&r->what, r->seconds) / (double)n;
        s.memory_least = r->memory_least < s.memory_least ? r->memory_least : s.memory_least;
        s.memory_most  = r->memory > s.memory_most ? r->memory : s.memory_most;
    }
    return s;
}

void bench_summary_print(const bench_summary *summary, FILE *file)
{
    if (summary->memory_least < ALIKE * summary->memory_most) {
        (void)fprintf(
            file,
            "#\n# warning: the memory gave %.2f to %.2f GB/s while this ran: something else uses the machine, "
            "and times\n"
            "# and bounds of one row differ from another's by as much; repeat this on an idle machine\n",
            summary->memory_least / GB, summary->memory_most / GB);
    }
    (void)fprintf(file, "#\n");
    if (summary->checked) {
        (void)fprintf(file, "# Out of bounds values : %zu %s\n", summary->wrong, summary->wrong ? "FAILED" : "OK");
    } else {
        (void)fprintf(file, "# Out of bounds values : not checked\n");
    }
    (void)fprintf(file, "# Avg bus bandwidth    : %g\n", summary->busbw);
}

void bench_summary_record(const bench_summary *summary, bench_records *records)
{
    const bench_field fields[] = {
        {"wrong", NULL, summary->checked ? (double)summary->wrong : -1},
        {"average_busbw_gb_s", NULL, summary->busbw},
        {"memory_bandwidth_least_gb_s", NULL, summary->memory_least / GB},
        {"memory_bandwidth_most_gb_s", NULL, summary->memory_most / GB},
    };

    bench_records_summary(records, fields, sizeof fields / sizeof fields[0]);
}
