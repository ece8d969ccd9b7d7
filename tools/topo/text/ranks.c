#include "tools/topo/text/ranks.h"

#include <string.h>

#include "tools/topo/base/rank_list.h"
#include "tools/topo/base/words.h"
#include "tools/topo/text/reasons.h"

#define MOST_COLUMN 48

static int widest_mask(const fsdp_place *places, size_t n)
{
    size_t most = strlen("threads");

    for (size_t i = 0; i < n; i++) {
        char threads[MOST_COLUMN];

        fsdp_mask_text(&places[i].threads, threads, sizeof threads);
        most = strlen(threads) > most ? strlen(threads) : most;
    }
    return (int)most;
}

static void print_place(FILE *file, const topo_report *report, const fsdp_place *place, int rank, int width)
{
    const fsdp_node *node = report->node;
    char             threads[MOST_COLUMN], device[16] = "-", names[256];

    fsdp_mask_text(&place->threads, threads, sizeof threads);
    if (place->device >= 0) {
        (void)snprintf(device, sizeof device, "%d", place->device);
    }
    (void)fprintf(file, "  %4d  %-22s  %6s  %-*s  %-9s  %-8s  ", rank, topo_gpu(node, place->gpu).text, device, width,
                  threads, topo_number(node->numas, place->numa).text,
                  place->nic >= 0 ? node->nics[place->nic].name : "none");
    topo_deviation_names(place->deviations, names, sizeof names);
    (void)fprintf(file, "%s\n", place->deviations ? names : "-");
}

static void print_table(FILE *file, const topo_report *report)
{
    const fsdp_place *places = topo_report_shown(report);
    const int         width  = widest_mask(places, report->n);

    (void)fprintf(file, "\n%s %s\n", topo_counted(report->n, "rank").text,
                  report->real ? "as bound by fsdp_init()" : "as planned");
    (void)fprintf(file, "  rank  %-22s  device  %-*s  NUMA node  network   problems\n", "GPU", width, "threads");
    for (size_t i = 0; i < report->n; i++) {
        print_place(file, report, &places[i], report->ranks[i].before.rank, width);
    }
}

/* "ranks 0-3,7": those with a deviation. */
static void print_ranks_with(FILE *file, const topo_report *report, unsigned bit)
{
    const fsdp_place *places = topo_report_shown(report);
    topo_rank_list    list   = {0};
    char              text[TOPO_RANK_LIST_BYTES];

    for (size_t i = 0; i < report->n; i++) {
        if (places[i].deviations & bit) {
            topo_rank_list_add(&list, report->ranks[i].before.rank);
        }
    }
    topo_rank_list_text(&list, text, sizeof text);
    (void)fprintf(file, "%s\n", text);
}

/* Each kind of deviation once. */
static void print_problems(FILE *file, const topo_report *report)
{
    const fsdp_place *places = topo_report_shown(report);
    unsigned          all    = 0;

    for (size_t i = 0; i < report->n; i++) {
        all |= places[i].deviations;
    }
    (void)fprintf(file, "\nproblems%s\n", all ? "" : ": none");
    for (unsigned bit = 1; all; bit <<= 1) {
        if (all & bit) {
            (void)fprintf(file, "  %s: %s: ", fsdp_deviation_name((fsdp_deviation)bit),
                          fsdp_deviation_text((fsdp_deviation)bit));
            print_ranks_with(file, report, bit);
            all &= ~bit;
        }
    }
}

static void print_plan_if_different(FILE *file, const topo_report *report)
{
    const int width = widest_mask(report->plan, report->n);
    int       any   = 0;

    for (size_t i = 0; i < report->n; i++) {
        if (topo_report_differs(report, i)) {
            if (!any++) {
                (void)fprintf(
                    file,
                    "\nthe plan where it differs; why it is not in force stands below, in what fsdp_init() says\n");
            }
            print_place(file, report, &report->plan[i], report->ranks[i].before.rank, width);
        }
    }
}

/* The launcher's masks can be what is in the way. */
static void print_freed_if_better(FILE *file, const topo_report *report)
{
    const int width = widest_mask(report->freed, report->n);

    if (topo_count_deviations(report->freed, report->n) >= topo_count_deviations(report->plan, report->n)) {
        return;
    }
    (void)fprintf(file,
                  "\nwith the cores of all of these ranks free to each (mpirun --bind-to none) the plan would be\n");
    for (size_t i = 0; i < report->n; i++) {
        print_place(file, report, &report->freed[i], report->ranks[i].before.rank, width);
    }
}

void topo_text_ranks(FILE *file, const topo_report *report, int all_reasons)
{
    print_table(file, report);
    print_problems(file, report);
    if (report->real) {
        print_plan_if_different(file, report);
        print_freed_if_better(file, report);
        topo_bindings_write(file, report, all_reasons);
    }
    topo_reasons_write(file, report, all_reasons);
}
