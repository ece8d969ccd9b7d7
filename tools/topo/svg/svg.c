#include "tools/topo/svg/svg.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/topo/base/words.h"
#include "tools/topo/svg/cores.h"
#include "tools/topo/svg/devices.h"
#include "tools/topo/svg/legend.h"

#define BETWEEN 30   /* the drawings of two nodes */
#define LETTER  10.5 /* of the title: no line is wider than this per letter */

/* @return where it ends */
static double draw_title(const svg_canvas *canvas)
{
    const topo_report *r = canvas->report;
    char               line[4 * TOPO_WORD_BYTES];

    (void)snprintf(line, sizeof line, "%s: %s, %s, %s%s", r->host[0] ? r->host : "a recorded machine",
                   topo_counted(r->node->n_cores, "core").text, topo_counted(r->node->n_gpus, "GPU").text,
                   topo_counted(r->n, "rank").text,
                   r->n == 0 ? ""
                   : r->real ? " as bound"
                             : " as planned");
    svg_text(canvas->file, SVG_GAP, 22, "class=\"title\"", line);
    return SVG_GAP + LETTER * (double)strlen(line);
}

static void draw_node(svg_canvas *canvas, double *width, double *height)
{
    *width = draw_title(canvas);
    svg_draw_cores(canvas);
    svg_draw_devices(canvas);
    *height = svg_draw_legend(canvas, canvas->layout->height);
    *width  = fmax(fmax(*width, canvas->layout->width), svg_legend_width(canvas));
}

/* Its size is known when it has been drawn, and stands before it. Without memory nothing is written. */
void topo_svg_write(FILE *file, const topo_report *report, size_t index)
{
    svg_layout layout;
    char      *body  = NULL;
    size_t     bytes = 0;
    double     width = 0, height = 0;
    svg_canvas canvas = {open_memstream(&body, &bytes), report, &layout};

    (void)index;
    if (canvas.file && svg_layout_make(report->node, &layout)) {
        draw_node(&canvas, &width, &height);
    }
    if (canvas.file) {
        svg_layout_release(&layout);
        if (fclose(canvas.file) == 0 && bytes > 0) {
            (void)fprintf(file, "%.0f %.0f\n%s", width, height, body);
        }
    }
    free(body);
}

static const char style[] =
    "<style>text{font-family:'DejaVu Sans',Verdana,Arial,sans-serif;font-size:11px;fill:#222}"
    ".title{font-size:15px;font-weight:bold}.bold{font-weight:bold}.small{font-size:9px}"
    ".pu{font-size:9px;text-anchor:middle}.middle{text-anchor:middle}.wrong{fill:#c00000;font-weight:bold}</style>\n";

void topo_svg_document(FILE *file, const topo_texts *nodes)
{
    double width = 1, height = 1, y = 0;

    for (size_t i = 0; i < nodes->n; i++) {
        double w = 0, h = 0;

        (void)sscanf(nodes->text[i], "%lf %lf", &w, &h);
        width = fmax(width, w);
        height += h + BETWEEN;
    }
    height -= BETWEEN - 1;
    (void)fprintf(
        file,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" "
        "height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\">\n%s<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n",
        width, height, width, height, style);
    for (size_t i = 0; i < nodes->n; i++) {
        const char *body = strchr(nodes->text[i], '\n');
        double      w = 0, h = 0;

        (void)sscanf(nodes->text[i], "%lf %lf", &w, &h);
        (void)fprintf(file, "<g transform=\"translate(0 %.0f)\">\n%s</g>\n", y, body ? body + 1 : "");
        y += h + BETWEEN;
    }
    (void)fputs("</svg>\n", file);
}
