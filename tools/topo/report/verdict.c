#include "tools/topo/report/verdict.h"

#include <stdio.h>
#include <string.h>

#include "tools/topo/base/words.h"

typedef struct counts {
    size_t   with_gpu, gpus, remote, unknown; /* ranks that have a GPU, their GPUs, GPUs far from their ranks */
    size_t   least, most;                     /* cores of a rank */
    size_t   elsewhere;                       /* than planned */
    unsigned deviations;                      /* of any rank */
} counts;

static int is_first_on_gpu(const fsdp_place *places, size_t rank)
{
    for (size_t i = 0; i < rank; i++) {
        if (places[i].gpu == places[rank].gpu) {
            return 0;
        }
    }
    return places[rank].gpu >= 0;
}

static counts count(const topo_report *report)
{
    const fsdp_place *places = topo_report_shown(report);
    counts            c      = {0};

    for (size_t i = 0; i < report->n; i++) {
        const size_t cores = topo_count_cores(report->node, &places[i].threads);

        c.with_gpu += places[i].gpu >= 0;
        c.gpus += (size_t)is_first_on_gpu(places, i);
        c.remote += (places[i].deviations & (unsigned)(FSDP_REMOTE_GPU | FSDP_MASKED_GPU)) != 0;
        c.unknown += (places[i].deviations & (unsigned)FSDP_UNKNOWN_LOCALITY) != 0;
        c.least = i == 0 || cores < c.least ? cores : c.least;
        c.most  = cores > c.most ? cores : c.most;
        c.elsewhere += (size_t)topo_report_differs(report, i);
        c.deviations |= places[i].deviations;
    }
    return c;
}

/* ", each with its own local GPU", ", on 3 GPUs, 1 remote", ", no GPU". */
static void say_gpus(const topo_report *report, const counts *c, topo_line *line)
{
    const char *each = report->n > 1 ? "each with its own" : "with its own";

    if (report->node->n_gpus == 0) {
        return;
    }
    if (c->gpus == report->n) {
        topo_line_add(line, ", %s %sGPU", each, c->remote + c->unknown > 0 ? "" : "local ");
    } else if (c->gpus > 0) {
        topo_line_add(line, ", on %s", topo_counted(c->gpus, "GPU").text);
    }
    if (c->remote > 0) {
        topo_line_add(line, ", %zu remote", c->remote);
    }
    if (c->unknown > 0) {
        topo_line_add(line, ", locality of %s unknown", c->unknown == c->gpus ? "the GPUs" : "some");
    }
    if (c->with_gpu < report->n) {
        topo_line_add(line, ", %zu without a GPU", report->n - c->with_gpu);
    }
}

void topo_verdict(const topo_report *report, char *text, size_t size)
{
    const counts c    = count(report);
    topo_line    line = {text, size, 0};
    char         names[256];

    text[0] = 0;
    topo_line_add(&line, "%s", topo_counted(report->n, "rank").text);
    say_gpus(report, &c, &line);
    topo_line_add(&line, ", ");
    if (report->node->n_gpus == 0) {
        topo_line_add(&line, report->n > 1 ? "each with " : "with ");
    }
    if (c.least < c.most) {
        topo_line_add(&line, "%zu to ", c.least);
    }
    topo_line_add(&line, "%s, ", topo_counted(c.most, "core").text);
    if (c.elsewhere > 0) {
        topo_line_add(&line, "%zu not as planned, ", c.elsewhere);
    }
    topo_deviation_names(c.deviations, names, sizeof names);
    topo_line_add(&line, "%s%s", c.deviations ? "problems: " : "no problems", names);
}
