/* Packages, NUMA nodes, caches and cores: a core is a column of hardware threads, each in the colour of its rank. */
#include "tools/topo/svg/cores.h"

#include <string.h>

#include "tools/topo/base/words.h"
#include "tools/topo/svg/colours.h"

#define MOST_SHARERS 4 /* of a hardware thread that are drawn side by side */

static void draw_packages(const svg_canvas *canvas)
{
    for (size_t i = 0; i < canvas->layout->n_packages; i++) {
        const svg_package *p = &canvas->layout->packages[i];
        char               name[TOPO_WORD_BYTES + 16];

        svg_rect(canvas->file, p->box, "rx=\"6\" fill=\"#f4f4f0\" stroke=\"#8a8a80\"");
        if (p->package >= 0) {
            (void)snprintf(name, sizeof name, "package %s",
                           topo_number(canvas->report->node->packages, p->package).text);
        } else {
            (void)snprintf(name, sizeof name, "on no package, or unknown where");
        }
        svg_text(canvas->file, p->box.x + 10, p->box.y + 15, "class=\"bold\"", name);
    }
}

/* "64 GiB, HBM 16 GiB": its own, and what is beside it. */
static void draw_memory(const svg_canvas *canvas, const svg_group *group)
{
    const fsdp_node *node = canvas->report->node;
    char             text[256];
    topo_line        line = {text, sizeof text, 0};

    text[0] = 0;
    if (node->numas[group->numa].bytes > 0) {
        topo_line_add(&line, "%s", topo_bytes(node->numas[group->numa].bytes).text);
    }
    for (size_t i = 0; i < node->n_memories; i++) {
        if (node->memories[i].numa == group->numa) {
            topo_line_add(&line, "%s%s %s", line.used ? ", " : "", node->memories[i].kind,
                          topo_bytes(node->memories[i].bytes).text);
        }
    }
    svg_text(canvas->file, group->box.x + 8, group->box.y + 29, "class=\"small\"", text);
}

static void draw_groups(const svg_canvas *canvas)
{
    const fsdp_node *node = canvas->report->node;

    for (size_t i = 0; i < canvas->layout->n_groups; i++) {
        const svg_group *g = &canvas->layout->groups[i];
        char             name[TOPO_WORD_BYTES + 16];

        svg_rect(canvas->file, g->box, "rx=\"4\" fill=\"#e3ebf2\" stroke=\"#8fa3b5\"");
        if (g->numa >= 0) {
            (void)snprintf(name, sizeof name, "NUMA node %s", topo_number(node->numas, g->numa).text);
            draw_memory(canvas, g);
        } else {
            (void)snprintf(name, sizeof name, "NUMA unknown");
        }
        svg_text(canvas->file, g->box.x + 8, g->box.y + 16, "class=\"bold\"", name);
    }
}

static void draw_clusters(const svg_canvas *canvas)
{
    const fsdp_node *node = canvas->report->node;

    for (size_t i = 0; i < canvas->layout->n_clusters; i++) {
        const svg_cluster *c = &canvas->layout->clusters[i];
        char               name[2 * TOPO_WORD_BYTES + 8];

        svg_rect(canvas->file, c->box, "rx=\"3\" fill=\"#ffffff\" stroke=\"#b0bac4\"");
        if (c->cache < 0) {
            (void)snprintf(name, sizeof name, "cores");
        } else {
            (void)snprintf(name, sizeof name, "%s", topo_cache(node, c->cache).text);
        }
        if (c->cache >= 0 && node->caches[c->cache].bytes > 0 && c->box.w > 100) {
            (void)snprintf(name, sizeof name, "%s, %s", topo_cache(node, c->cache).text,
                           topo_bytes(node->caches[c->cache].bytes).text);
        }
        svg_text(canvas->file, c->box.x + 6, c->box.y + 13, "", name);
    }
}

/* The ranks that run on a hardware thread. @return how many; `who` holds the first of them */
static size_t ranks_on(const topo_report *report, int thread, size_t *who)
{
    const fsdp_place *places = topo_report_shown(report);
    size_t            n      = 0;

    for (size_t i = 0; i < report->n; i++) {
        if (fsdp_mask_has(&places[i].threads, thread)) {
            if (n < MOST_SHARERS) {
                who[n] = i;
            }
            n++;
        }
    }
    return n;
}

static int is_spare(const topo_report *report, int thread)
{
    const fsdp_place *places = topo_report_shown(report);

    for (size_t i = 0; i < report->n; i++) {
        if (places[i].spare == thread) {
            return 1;
        }
    }
    return 0;
}

static void draw_thread(const svg_canvas *canvas, svg_box box, int thread)
{
    size_t       who[MOST_SHARERS];
    const size_t n = ranks_on(canvas->report, thread, who), drawn = n < MOST_SHARERS ? n : MOST_SHARERS;
    char         text[16], look[96];

    for (size_t i = 0; i < drawn; i++) {
        const double  part = box.w / (double)drawn;
        const svg_box cut  = {box.x + (double)i * part, box.y, part, box.h};

        (void)snprintf(look, sizeof look, "fill=\"%s\"", svg_rank_colour(who[i]).text);
        svg_rect(canvas->file, cut, look);
    }
    svg_rect(canvas->file, box,
             n > 1                              ? "fill=\"none\" stroke=\"#c00000\" stroke-width=\"1.5\""
             : is_spare(canvas->report, thread) ? "fill=\"none\" stroke=\"#222\" stroke-dasharray=\"3 2\""
                                                : "fill=\"none\" stroke=\"#888\" stroke-width=\"0.6\"");
    (void)snprintf(text, sizeof text, "%d", thread);
    svg_text(canvas->file, box.x + box.w / 2, box.y + box.h - 4, "class=\"pu\"", text);
}

static void draw_core(const svg_canvas *canvas, size_t core)
{
    const fsdp_mask *threads = &canvas->report->node->cores[core].threads;
    const svg_box    box     = canvas->layout->cores[core];
    const int        kind    = canvas->report->node->cores[core].kind;
    int              seen    = 0;
    char             look[96];

    for (int t = 0; t < FSDP_MASK_WORDS * 64; t++) {
        if (fsdp_mask_has(threads, t)) {
            draw_thread(canvas, (svg_box){box.x, box.y + seen * SVG_STRIP_H, box.w, SVG_STRIP_H}, t);
            seen++;
        }
    }
    (void)snprintf(look, sizeof look, "fill=\"none\" stroke=\"%s\" stroke-width=\"%s\"", svg_kind_colour(kind),
                   kind > 0 ? "2.5" : "1");
    svg_rect(canvas->file, box, look);
}

void svg_draw_cores(const svg_canvas *canvas)
{
    draw_packages(canvas);
    draw_groups(canvas);
    draw_clusters(canvas);
    for (size_t i = 0; i < canvas->report->node->n_cores; i++) {
        draw_core(canvas, i);
    }
}
