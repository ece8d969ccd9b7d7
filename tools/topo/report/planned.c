#include "tools/topo/report/planned.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void remove_threads(fsdp_mask *mask, const fsdp_mask *without)
{
    for (size_t w = 0; w < FSDP_MASK_WORDS; w++) {
        mask->word[w] &= ~without->word[w];
    }
}

static fsdp_mask first_cores_removed(const fsdp_node *node)
{
    fsdp_mask left     = node->threads;
    int       previous = -1;

    for (size_t c = 0; c < node->n_cores; c++) {
        if (node->cores[c].cache >= 0 && node->cores[c].cache != previous) {
            remove_threads(&left, &node->cores[c].threads);
        }
        previous = node->cores[c].cache;
    }
    return left;
}

/* Reads "1-7/9-15" into one mask per rank. */
static fsdp_status read_masks(const topo_world *world, const char *text, topo_report *report)
{
    size_t n = 0;

    for (const char *part = text; part; part = strchr(part, '/'), n++) {
        char one[1024];

        part += *part == '/';
        (void)snprintf(one, sizeof one, "%.*s", (int)strcspn(part, "/"), part);
        if (n < report->n && fsdp_mask_read(one, &report->ranks[n].before.threads) != FSDP_OK) {
            return topo_fail(world, "--masks has '%.60s'; give lists of hardware threads, as 0-7,64-71, with / between",
                             one);
        }
    }
    if (n != 1 && n != report->n) {
        return topo_fail(world, "--masks has %zu lists and --ranks is %zu; give one list, or one per rank", n,
                         report->n);
    }
    for (size_t i = n; i < report->n; i++) {
        report->ranks[i].before.threads = report->ranks[0].before.threads;
    }
    return FSDP_OK;
}

/* Takes the hardware threads of --reserve out of `left`. */
static fsdp_status remove_reserved(const topo_world *world, const fsdp_node *node, const char *text, fsdp_mask *left)
{
    fsdp_mask reserved, strangers;
    char      names[64];

    if (fsdp_mask_read(text, &reserved) != FSDP_OK || fsdp_mask_count(&reserved) == 0) {
        return topo_fail(world, "--reserve is '%.60s'; give a list of hardware threads, as 0,64", text);
    }
    strangers = reserved;
    remove_threads(&strangers, &node->threads);
    if (fsdp_mask_count(&strangers) > 0) {
        fsdp_mask_text(&strangers, names, sizeof names);
        return topo_fail(world, "--reserve has %s, and this machine has no such hardware thread; leave it out", names);
    }
    remove_threads(left, &reserved);
    return FSDP_OK;
}

static fsdp_status fill_ranks(const topo_world *world, const topo_options *options, topo_report *report)
{
    const fsdp_node *node    = report->node;
    fsdp_mask        threads = options->reserve_first_core ? first_cores_removed(node) : node->threads;

    TOPO_TRY(options->reserve ? remove_reserved(world, node, options->reserve, &threads) : FSDP_OK);
    if (fsdp_mask_count(&threads) == 0) {
        return topo_fail(world, "--reserve%s leaves no core of this machine; reserve fewer",
                         options->reserve_first_core ? "-first-core" : "");
    }
    for (size_t i = 0; i < report->n; i++) {
        report->ranks[i].before.rank      = (int)i;
        report->ranks[i].before.n_visible = -1;
        report->ranks[i].before.device    = -1;
        report->ranks[i].before.threads   = threads;
    }
    return options->masks ? read_masks(world, options->masks, report) : FSDP_OK;
}

static size_t ranks_by_default(const fsdp_node *node)
{
    return node->n_gpus > 0 ? node->n_gpus : node->n_numas > 0 ? node->n_numas : 1;
}

fsdp_status topo_report_plan(const topo_world *world, const topo_options *options, topo_report *report)
{
    size_t n = options->ranks;

    *report = (topo_report){0};
    TOPO_TRY(topo_report_open(options->input, report));
    if (n == 0 && options->launch) {
        n = ranks_by_default(report->node);
    }
    if (n == 0) {
        return FSDP_OK;
    }
    TOPO_TRY(topo_report_allocate(report, n, 0));
    TOPO_TRY(fill_ranks(world, options, report));
    return topo_report_place(report, 0, NULL, fsdp_plan, report->plan);
}
