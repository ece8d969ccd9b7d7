/* GPUs, network cards, the links of GPUs, and lines to GPUs that are far. */
#include "tools/topo/svg/devices.h"

#include <math.h>
#include <string.h>

#include "tools/topo/base/rank_list.h"
#include "tools/topo/base/words.h"
#include "tools/topo/svg/colours.h"

#define MOST_SWATCHES 5  /* of ranks on one GPU */
#define MOST_LETTERS  15 /* with a NUL, in the width of a device */
#define MOST_SMALL    21 /* likewise, small ones */

static double best_bandwidth(const fsdp_node *node)
{
    double best = 1;

    for (size_t i = 0; i < node->n_gpus * node->n_gpus; i++) {
        best = fmax(best, (double)node->links[i].max_bandwidth);
    }
    return best;
}

static void draw_link(const svg_canvas *canvas, size_t from, size_t to, double best)
{
    const fsdp_node *node = canvas->report->node;
    const fsdp_link *link = &node->links[from * node->n_gpus + to];
    const svg_box    a = canvas->layout->gpus[from], b = canvas->layout->gpus[to];
    const double     x1 = a.x + a.w / 2, x2 = b.x + b.w / 2, y1 = a.y + a.h, y2 = b.y + b.h;
    const double     depth = svg_arc_depth(x1, x2);

    (void)fprintf(canvas->file,
                  "<path d=\"M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f\" fill=\"none\" stroke=\"%s\" "
                  "stroke-width=\"%.1f\" opacity=\"0.75\"><title>GPU %zu - GPU %zu: %s</title></path>\n",
                  x1, y1, x1, y1 + depth, x2, y2 + depth, x2, y2, svg_link_colour(link->type),
                  1 + 3 * (double)link->max_bandwidth / best, from, to, topo_link(link).text);
}

static void draw_links(const svg_canvas *canvas)
{
    const fsdp_node *node = canvas->report->node;
    const double     best = best_bandwidth(node);

    for (size_t from = 0; from < node->n_gpus; from++) {
        for (size_t to = from + 1; to < node->n_gpus; to++) {
            if (node->links[from * node->n_gpus + to].type != FSDP_LINK_UNKNOWN) {
                draw_link(canvas, from, to, best);
            }
        }
    }
}

static size_t count_owners(const topo_report *report, size_t gpu)
{
    const fsdp_place *places = topo_report_shown(report);
    size_t            n      = 0;

    for (size_t i = 0; i < report->n; i++) {
        n += places[i].gpu == (int)gpu;
    }
    return n;
}

/* "rank 3", "ranks 14-27", on the colours of the first of them. */
static void draw_owners(const svg_canvas *canvas, size_t gpu, svg_box box)
{
    const topo_report *report = canvas->report;
    const fsdp_place  *places = topo_report_shown(report);
    const size_t       n = count_owners(report, gpu), drawn = n < MOST_SWATCHES ? n : MOST_SWATCHES;
    topo_rank_list     list               = {0};
    char               text[MOST_LETTERS] = "idle", look[64];

    for (size_t i = 0; i < report->n; i++) {
        if (places[i].gpu != (int)gpu) {
            continue;
        }
        if (list.n < drawn) {
            const double part = (box.w - 2) / (double)drawn;

            (void)snprintf(look, sizeof look, "fill=\"%s\"", svg_rank_colour(i).text);
            svg_rect(canvas->file, (svg_box){box.x + 1 + (double)list.n * part, box.y + box.h - 20, part, 19}, look);
        }
        topo_rank_list_add(&list, report->ranks[i].before.rank);
    }
    if (n > 0) {
        topo_rank_list_text(&list, text, sizeof text);
    }
    if (report->n > 0) {
        svg_text(canvas->file, box.x + box.w / 2, box.y + box.h - 7,
                 n > 0 ? "class=\"middle bold\"" : "class=\"middle\" opacity=\"0.6\"", text);
    }
}

/* As much of it as fits into the box in small letters. */
static void draw_model(const svg_canvas *canvas, const fsdp_gpu *gpu, svg_box box)
{
    char text[MOST_SMALL];

    (void)snprintf(text, sizeof text, "%.*s", MOST_SMALL - 1, gpu->name);
    if (strlen(gpu->name) >= sizeof text) {
        (void)snprintf(text + sizeof text - sizeof "...", sizeof "...", "...");
    }
    svg_text(canvas->file, box.x + box.w / 2, box.y + 42, "class=\"middle small\"", text);
}

static void draw_gpu(const svg_canvas *canvas, size_t gpu)
{
    const fsdp_gpu *g   = &canvas->report->node->gpus[gpu];
    const svg_box   box = canvas->layout->gpus[gpu];
    char            name[64], address[32];

    (void)snprintf(name, sizeof name, "GPU %zu, %s", gpu, topo_vendor(g));
    (void)snprintf(address, sizeof address, g->ordinal > 0 ? "%s/%d" : "%s", g->address, g->ordinal);
    svg_rect(canvas->file, box,
             count_owners(canvas->report, gpu) > 1
                 ? "rx=\"3\" fill=\"#fdf6e3\" stroke=\"#c00000\" stroke-width=\"2.5\""
                 : "rx=\"3\" fill=\"#fdf6e3\" stroke=\"#a07d2c\" stroke-width=\"1.2\"");
    draw_owners(canvas, gpu, box);
    svg_text(canvas->file, box.x + box.w / 2, box.y + 15, "class=\"middle bold\"", name);
    svg_text(canvas->file, box.x + box.w / 2, box.y + 30, "class=\"middle\"", address);
    draw_model(canvas, g, box);
    if (g->bytes > 0) {
        svg_text(canvas->file, box.x + box.w / 2, box.y + 53, "class=\"middle small\"", topo_bytes(g->bytes).text);
    }
}

static void draw_nic(const svg_canvas *canvas, size_t nic)
{
    const fsdp_nic *n   = &canvas->report->node->nics[nic];
    const svg_box   box = canvas->layout->nics[nic];

    svg_rect(canvas->file, box,
             n->fabric ? "rx=\"8\" fill=\"#dff0e0\" stroke=\"#4d8a55\" stroke-width=\"1.5\""
                       : "rx=\"8\" fill=\"#eef3ee\" stroke=\"#8aa58d\"");
    svg_text(canvas->file, box.x + box.w / 2, box.y + 14, "class=\"middle\"", n->name[0] ? n->name : n->address);
}

/* The first core that a rank has a hardware thread of; n_cores: none. */
static size_t first_core(const fsdp_node *node, const fsdp_place *place)
{
    size_t core;

    for (core = 0; core < node->n_cores; core++) {
        for (size_t w = 0; w < FSDP_MASK_WORDS; w++) {
            if (node->cores[core].threads.word[w] & place->threads.word[w]) {
                return core;
            }
        }
    }
    return core;
}

static void draw_far(const svg_canvas *canvas, const fsdp_place *place)
{
    const size_t core = first_core(canvas->report->node, place);

    if (place->gpu >= 0 && core < canvas->report->node->n_cores) {
        const svg_box a = canvas->layout->cores[core], b = canvas->layout->gpus[place->gpu];

        (void)fprintf(canvas->file,
                      "<path d=\"M%.1f %.1fL%.1f %.1f\" stroke=\"#c00000\" stroke-width=\"1.6\" "
                      "stroke-dasharray=\"6 4\" fill=\"none\"/>\n",
                      a.x + a.w / 2, a.y + a.h, b.x + b.w / 2, b.y);
    }
}

void svg_draw_devices(const svg_canvas *canvas)
{
    const fsdp_node  *node   = canvas->report->node;
    const fsdp_place *places = topo_report_shown(canvas->report);

    draw_links(canvas);
    for (size_t i = 0; i < canvas->report->n; i++) {
        if (places[i].deviations & (unsigned)(FSDP_REMOTE_GPU | FSDP_MASKED_GPU)) {
            draw_far(canvas, &places[i]);
        }
    }
    for (size_t i = 0; i < node->n_nics; i++) {
        draw_nic(canvas, i);
    }
    for (size_t i = 0; i < node->n_gpus; i++) {
        draw_gpu(canvas, i);
    }
}
