#include "tools/topo/svg/legend.h"

#include <math.h>
#include <string.h>

#include "tools/topo/base/words.h"
#include "tools/topo/svg/colours.h"

#define ROW       18
#define LEAST     480
#define LETTER    7.2 /* no line is wider than this per letter */
#define MOST_KIND 12  /* kinds of links that are told apart */

static void draw_sample(FILE *file, double y, const char *colour, double width, const char *dashes, const char *text)
{
    (void)fprintf(file, "<path d=\"M%d %.1fh32\" stroke=\"%s\" stroke-width=\"%.1f\"%s fill=\"none\"/>\n", 2 * SVG_GAP,
                  y - 4, colour, width, dashes);
    svg_text(file, 2 * SVG_GAP + 42, y, "", text);
}

/* Each kind of link once. */
static double draw_links(const svg_canvas *canvas, double y)
{
    const fsdp_node *node = canvas->report->node;
    topo_word        seen[MOST_KIND];
    size_t           n    = 0;
    double           best = 1;

    for (size_t i = 0; i < node->n_gpus * node->n_gpus; i++) {
        best = fmax(best, (double)node->links[i].max_bandwidth);
    }
    for (size_t i = 0; i < node->n_gpus * node->n_gpus && n < MOST_KIND; i++) {
        const fsdp_link *link = &node->links[i];
        const topo_word  text = topo_link(link);
        size_t           k    = 0;

        while (k < n && strcmp(seen[k].text, text.text) != 0) {
            k++;
        }
        if (k == n && link->type != FSDP_LINK_UNKNOWN) {
            draw_sample(canvas->file, y, svg_link_colour(link->type), 1 + 3 * (double)link->max_bandwidth / best, "",
                        text.text);
            seen[n++] = text;
            y += ROW;
        }
    }
    return y;
}

static unsigned all_deviations(const topo_report *report)
{
    const fsdp_place *places = topo_report_shown(report);
    unsigned          all    = 0;

    for (size_t i = 0; i < report->n; i++) {
        all |= places[i].deviations;
    }
    return all;
}

static double draw_marks(const svg_canvas *canvas, double y)
{
    const fsdp_place *places = topo_report_shown(canvas->report);
    const unsigned    all    = all_deviations(canvas->report);
    int               spare  = 0;

    for (size_t i = 0; i < canvas->report->n; i++) {
        spare |= places[i].spare >= 0;
    }
    if (all & (unsigned)(FSDP_REMOTE_GPU | FSDP_MASKED_GPU)) {
        draw_sample(canvas->file, y, "#c00000", 1.6, " stroke-dasharray=\"6 4\"",
                    "from a rank's cores to its GPU, which is far");
        y += ROW;
    }
    if (all & (unsigned)FSDP_OVERLAPPING_CORES) {
        draw_sample(canvas->file, y, "#c00000", 1.5, "", "around a hardware thread that several ranks run on");
        y += ROW;
    }
    if (spare) {
        draw_sample(canvas->file, y, "#222", 1, " stroke-dasharray=\"3 2\"",
                    "around a hardware thread that is left for a progress thread");
        y += ROW;
    }
    return y;
}

/* Kinds of cores, and memory that has no box. */
static double draw_kinds(const svg_canvas *canvas, double y)
{
    const fsdp_node *node = canvas->report->node;
    char             text[3 * TOPO_WORD_BYTES], threads[64];

    for (size_t k = 0; k < node->n_kinds; k++, y += ROW) {
        (void)snprintf(text, sizeof text, "around a core of the kind %s: %zu", node->kinds[k].name,
                       node->kinds[k].n_cores);
        draw_sample(canvas->file, y, svg_kind_colour((int)k), k > 0 ? 2.5 : 1, "", text);
    }
    for (size_t i = 0; i < node->n_memories; i++) {
        const fsdp_memory_node *m = &node->memories[i];

        if (m->numa < 0) {
            fsdp_mask_text(&m->threads, threads, sizeof threads);
            (void)snprintf(text, sizeof text, "NUMA node %d: %s, %s, next to threads %s", m->number, m->kind,
                           topo_bytes(m->bytes).text, threads);
            svg_text(canvas->file, 2 * SVG_GAP + 42, y, "", text);
            y += ROW;
        }
    }
    return y;
}

/* A line of the table of ranks. */
typedef struct row {
    char rank[24], gpu[TOPO_WORD_BYTES], threads[80], near[TOPO_WORD_BYTES + 64], wrong[256];
} row;

static row row_of(const topo_report *report, size_t i)
{
    const fsdp_place *place = &topo_report_shown(report)[i];
    const fsdp_node  *node  = report->node;
    char              threads[64];
    row               r;

    fsdp_mask_text(&place->threads, threads, sizeof threads);
    (void)snprintf(r.rank, sizeof r.rank, "rank %d", report->ranks[i].before.rank);
    (void)snprintf(r.gpu, sizeof r.gpu, "%s", place->gpu >= 0 ? topo_gpu(node, place->gpu).text : "no GPU");
    (void)snprintf(r.threads, sizeof r.threads, "threads %s", threads);
    (void)snprintf(r.near, sizeof r.near, "NUMA node %s%s%s", topo_number(node->numas, place->numa).text,
                   place->nic >= 0 ? ", " : "", place->nic >= 0 ? node->nics[place->nic].name : "");
    topo_deviation_names(place->deviations, r.wrong, sizeof r.wrong);
    return r;
}

/* Where columns begin; the last number is where the last one ends. */
#define COLUMNS 5
typedef struct columns {
    double x[COLUMNS + 1];
} columns;

static columns columns_of(const topo_report *report)
{
    size_t  most[COLUMNS] = {0};
    columns c             = {{2 * SVG_GAP + 42}};

    for (size_t i = 0; i < report->n; i++) {
        const row         r       = row_of(report, i);
        const char *const texts[] = {r.rank, r.gpu, r.threads, r.near, r.wrong};

        for (size_t k = 0; k < COLUMNS; k++) {
            most[k] = strlen(texts[k]) > most[k] ? strlen(texts[k]) : most[k];
        }
    }
    for (size_t k = 0; k < COLUMNS; k++) {
        c.x[k + 1] = c.x[k] + LETTER * (double)most[k] + 2 * SVG_GAP;
    }
    return c;
}

static void draw_rank(const svg_canvas *canvas, size_t i, const columns *c, double y)
{
    const row r = row_of(canvas->report, i);
    char      look[96];

    (void)snprintf(look, sizeof look, "rx=\"2\" fill=\"%s\" stroke=\"#555\"", svg_rank_colour(i).text);
    svg_rect(canvas->file, (svg_box){2 * SVG_GAP, y - 11, 32, 14}, look);
    svg_text(canvas->file, c->x[0], y, "class=\"bold\"", r.rank);
    svg_text(canvas->file, c->x[1], y, "", r.gpu);
    svg_text(canvas->file, c->x[2], y, "", r.threads);
    svg_text(canvas->file, c->x[3], y, "", r.near);
    svg_text(canvas->file, c->x[4], y, "class=\"wrong\"", r.wrong);
}

double svg_draw_legend(const svg_canvas *canvas, double y)
{
    const columns c = columns_of(canvas->report);

    y = draw_links(canvas, y + ROW);
    y = draw_marks(canvas, y);
    y = draw_kinds(canvas, y);
    for (size_t i = 0; i < canvas->report->n; i++) {
        draw_rank(canvas, i, &c, y);
        y += ROW;
    }
    return y;
}

double svg_legend_width(const svg_canvas *canvas)
{
    return fmax(LEAST, columns_of(canvas->report).x[COLUMNS]);
}
