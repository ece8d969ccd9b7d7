#include "tools/topo/report/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/topo/base/world.h"

fsdp_status topo_report_open(const char *file, topo_report *report)
{
    TOPO_TRY(fsdp_topology_open(file, &report->topology));
    report->node = fsdp_topology_node(report->topology);
    (void)snprintf(report->host, sizeof report->host, "%s", report->node->name);
    if (!report->host[0] && report->node->is_here) {
        (void)gethostname(report->host, sizeof report->host - 1);
    }
    return FSDP_OK;
}

fsdp_status topo_report_allocate(topo_report *report, size_t n, int runs)
{
    report->n     = n;
    report->ranks = calloc(n, sizeof *report->ranks);
    report->plan  = calloc(n, sizeof *report->plan);
    report->real  = runs ? calloc(n, sizeof *report->real) : NULL;
    report->freed = runs ? calloc(n, sizeof *report->freed) : NULL;
    if (!report->ranks || !report->plan || (runs && (!report->real || !report->freed))) {
        (void)fprintf(stderr, "fsdp-topo: no memory for %zu ranks; ask for fewer\n", n);
        return FSDP_ERR_MEMORY;
    }
    return FSDP_OK;
}

fsdp_status topo_report_place(const topo_report *report, int after, const fsdp_mask *threads,
                              fsdp_status (*planner)(const fsdp_node *, const fsdp_local_rank *, size_t, fsdp_place *),
                              fsdp_place *places)
{
    fsdp_local_rank *ranks = calloc(report->n, sizeof *ranks);
    fsdp_status      status;

    if (!ranks) {
        (void)fprintf(stderr, "fsdp-topo: no memory for %zu ranks; ask for fewer\n", report->n);
        return FSDP_ERR_MEMORY;
    }
    for (size_t i = 0; i < report->n; i++) {
        ranks[i] = after ? report->ranks[i].after : report->ranks[i].before;
        if (threads) {
            ranks[i].threads = *threads;
        }
    }
    status = planner(report->node, ranks, report->n, places);
    free(ranks);
    return status;
}

fsdp_mask topo_report_threads(const topo_report *report)
{
    fsdp_mask all = {{0}};

    for (size_t i = 0; i < report->n; i++) {
        for (size_t w = 0; w < FSDP_MASK_WORDS; w++) {
            all.word[w] |= report->ranks[i].before.threads.word[w];
        }
    }
    return all;
}

void topo_report_release(topo_report *report)
{
    fsdp_topology_close(report->topology);
    free(report->ranks);
    free(report->plan);
    free(report->real);
    free(report->freed);
    free(report->load);
    *report = (topo_report){0};
}

int topo_report_differs(const topo_report *report, size_t rank)
{
    const fsdp_place *real, *plan;

    if (!report->real) {
        return 0;
    }
    real = &report->real[rank];
    plan = &report->plan[rank];
    return memcmp(&real->threads, &plan->threads, sizeof real->threads) != 0 ||
           (report->ranks[rank].after.n_visible >= 0 && real->gpu != plan->gpu);
}

size_t topo_count_cores(const fsdp_node *node, const fsdp_mask *threads)
{
    size_t n = 0;

    for (size_t c = 0; c < node->n_cores; c++) {
        for (size_t w = 0; w < FSDP_MASK_WORDS; w++) {
            if (node->cores[c].threads.word[w] & threads->word[w]) {
                n++;
                break;
            }
        }
    }
    return n;
}

size_t topo_count_deviations(const fsdp_place *places, size_t n)
{
    size_t count = 0;

    for (size_t i = 0; i < n; i++) {
        for (unsigned left = places[i].deviations; left; left &= left - 1) {
            count++;
        }
    }
    return count;
}
