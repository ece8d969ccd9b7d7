#include "tools/topo/svg/layout.h"

#include <math.h>
#include <stdlib.h>

#define TOP         34  /* the line with the node's name */
#define LEAST_GROUP 132 /* its title fits */

double svg_arc_depth(double x1, double x2)
{
    return fmin(18 + 0.22 * fabs(x1 - x2), 190);
}

/* What is unknown comes last. */
static unsigned key(int index)
{
    return (unsigned)index;
}

static int compare_groups(const void *a, const void *b)
{
    const svg_group *x = a, *y = b;

    if (x->package != y->package) {
        return key(x->package) < key(y->package) ? -1 : 1;
    }
    return (key(x->numa) > key(y->numa)) - (key(x->numa) < key(y->numa));
}

static void add_group(svg_layout *l, int package, int numa)
{
    for (size_t i = 0; i < l->n_groups; i++) {
        if (l->groups[i].package == package && l->groups[i].numa == numa) {
            return;
        }
    }
    l->groups[l->n_groups++] = (svg_group){.package = package, .numa = numa};
}

static int has_group(const svg_layout *l, int package)
{
    for (size_t i = 0; i < l->n_groups; i++) {
        if (l->groups[i].package == package) {
            return 1;
        }
    }
    return 0;
}

/* Every pair of package and NUMA node that something is on. */
static void find_groups(svg_layout *l)
{
    const fsdp_node *node = l->node;

    for (size_t i = 0; i < node->n_cores; i++) {
        add_group(l, node->cores[i].package, node->cores[i].numa);
    }
    for (size_t i = 0; i < node->n_numas; i++) {
        add_group(l, node->numas[i].package, (int)i);
    }
    for (size_t i = 0; i < node->n_gpus; i++) {
        add_group(l, node->gpus[i].package, node->gpus[i].numa);
    }
    for (size_t i = 0; i < node->n_nics; i++) {
        add_group(l, node->nics[i].package, node->nics[i].numa);
    }
    for (size_t i = 0; i < node->n_packages; i++) {
        if (!has_group(l, (int)i)) {
            add_group(l, (int)i, -1);
        }
    }
    qsort(l->groups, l->n_groups, sizeof *l->groups, compare_groups);
}

static void count_devices(svg_layout *l, svg_group *g)
{
    for (size_t i = 0; i < l->node->n_gpus; i++) {
        g->gpus += l->node->gpus[i].package == g->package && l->node->gpus[i].numa == g->numa;
    }
    for (size_t i = 0; i < l->node->n_nics; i++) {
        g->nics += l->node->nics[i].package == g->package && l->node->nics[i].numa == g->numa;
    }
}

/* Cores of the group in order; a new cluster where the cache is another one. */
static void find_clusters(svg_layout *l, svg_group *g, size_t *next)
{
    g->first = l->n_clusters;
    for (size_t i = 0; i < l->node->n_cores; i++) {
        const fsdp_domain *core = &l->node->cores[i];

        if (core->package != g->package || core->numa != g->numa) {
            continue;
        }
        if (g->n == 0 || l->clusters[l->n_clusters - 1].cache != core->cache) {
            l->clusters[l->n_clusters++] = (svg_cluster){.cache = core->cache, .first = *next};
            g->n++;
        }
        l->order[(*next)++] = i;
        l->clusters[l->n_clusters - 1].n++;
    }
}

static size_t columns_of(size_t cores)
{
    const size_t wide = (size_t)ceil(sqrt(1.5 * (double)cores)), most = wide < cores ? wide : cores;

    return most > 0 ? most : 1;
}

static void size_cluster(const svg_layout *l, svg_cluster *c)
{
    const size_t columns = columns_of(c->n), rows = (c->n + columns - 1) / columns;

    c->box.w = fmax((double)columns * (SVG_CELL_W + 4) + SVG_GAP, 78);
    c->box.h = SVG_TITLE + (double)rows * (l->strips * SVG_STRIP_H + 4) + 4;
}

static void place_cores(const svg_layout *l, const svg_cluster *c)
{
    const size_t columns = columns_of(c->n);
    const double cell_h  = l->strips * SVG_STRIP_H;

    for (size_t i = 0; i < c->n; i++) {
        const size_t row = i / columns, column = i % columns;

        l->cores[l->order[c->first + i]] =
            (svg_box){c->box.x + 6 + (double)column * (SVG_CELL_W + 4),
                      c->box.y + SVG_TITLE + (double)row * (cell_h + 4), SVG_CELL_W, cell_h};
    }
}

/* Clusters in rows from (x, y) on. @return the bottom of the last; `right` becomes theirs */
static double place_clusters(const svg_layout *l, const svg_group *g, double x, double y, double *right)
{
    const size_t columns = (size_t)ceil(sqrt((double)g->n));
    double       row_x = x, row_h = 0;

    *right = x;
    for (size_t i = 0; i < g->n; i++) {
        svg_cluster *c = &l->clusters[g->first + i];

        size_cluster(l, c);
        if (i > 0 && i % columns == 0) {
            y += row_h + SVG_GAP;
            row_x = x;
            row_h = 0;
        }
        c->box.x = row_x;
        c->box.y = y;
        place_cores(l, c);
        row_x += c->box.w + SVG_GAP;
        row_h  = fmax(row_h, c->box.h);
        *right = fmax(*right, row_x);
    }
    return y + row_h + SVG_GAP;
}

static void place_nics(const svg_layout *l, svg_group *g, double y)
{
    const size_t columns = (size_t)fmax(1, floor((g->box.w - SVG_GAP) / (SVG_DEVICE_W + SVG_GAP)));
    size_t       seen    = 0, rows;

    for (size_t i = 0; i < l->node->n_nics; i++) {
        if (l->node->nics[i].package == g->package && l->node->nics[i].numa == g->numa) {
            const size_t row = seen / columns, column = seen % columns;

            l->nics[i] = (svg_box){g->box.x + SVG_GAP + (double)column * (SVG_DEVICE_W + SVG_GAP),
                                   y + (double)row * (SVG_NIC_H + 4), SVG_DEVICE_W, SVG_NIC_H};
            seen++;
        }
    }
    rows      = (seen + columns - 1) / columns;
    g->bottom = y + (double)rows * (SVG_NIC_H + 4);
}

static void place_group(const svg_layout *l, svg_group *g, double x, double y)
{
    double       right;
    const double bottom = place_clusters(l, g, x + SVG_GAP, y + 2 * SVG_TITLE, &right);

    g->box   = (svg_box){.x = x, .y = y};
    g->box.w = fmax(fmax(right - x, LEAST_GROUP), (double)g->gpus * (SVG_DEVICE_W + SVG_GAP) + SVG_GAP);
    place_nics(l, g, bottom);
}

/* As wide as a package is whose groups are in one row. */
static double width_of_package(const svg_layout *l, size_t first)
{
    double width = SVG_GAP;

    for (size_t i = first; i < l->n_groups && l->groups[i].package == l->groups[first].package; i++) {
        width += l->groups[i].box.w + SVG_GAP;
    }
    return width;
}

/* A new row where the next group is too wide for this one, or the next package is; their widths are known. */
static void divide_into_rows(svg_layout *l)
{
    size_t row = 0;
    double x   = SVG_GAP;

    for (size_t i = 0; i < l->n_groups; i++) {
        const int    begins = i == 0 || l->groups[i].package != l->groups[i - 1].package;
        const double width  = begins ? width_of_package(l, i) : l->groups[i].box.w + SVG_GAP;

        if (i > 0 && x + width > SVG_MOST_W) {
            row++;
            x = SVG_GAP;
        }
        if (begins || row != l->groups[i - 1].row) {
            l->packages[l->n_packages++] = (svg_package){.package = l->groups[i].package, .row = row, .first = i};
            x += i > 0 && row == l->groups[i - 1].row ? 3 * SVG_GAP : SVG_GAP;
        }
        l->packages[l->n_packages - 1].n++;
        l->groups[i].row = row;
        x += l->groups[i].box.w + SVG_GAP;
    }
}

/* From left to right; heights are known only when all of the row are placed. @return their bottom */
static double place_groups(svg_layout *l, size_t row, double y)
{
    double x = SVG_GAP, bottom = y;

    for (size_t p = 0; p < l->n_packages; p++) {
        svg_package *package = &l->packages[p];

        if (package->row != row) {
            continue;
        }
        package->box = (svg_box){.x = x, .y = y};
        x += SVG_GAP;
        for (size_t i = 0; i < package->n; i++) {
            svg_group *g = &l->groups[package->first + i];

            place_group(l, g, x, y + SVG_TITLE + 4);
            x += g->box.w + SVG_GAP;
            bottom = fmax(bottom, g->bottom);
        }
        package->box.w = x - package->box.x;
        x += 2 * SVG_GAP;
    }
    l->width = fmax(l->width, x);
    return bottom;
}

/* @return how many there are in the row */
static size_t place_gpus(const svg_layout *l, size_t row, double y)
{
    size_t n = 0;

    for (size_t i = 0; i < l->n_groups; i++) {
        svg_group *g    = &l->groups[i];
        size_t     seen = 0;

        for (size_t k = 0; k < l->node->n_gpus && g->row == row; k++) {
            if (l->node->gpus[k].package == g->package && l->node->gpus[k].numa == g->numa) {
                l->gpus[k] = (svg_box){g->box.x + SVG_GAP + (double)seen++ * (SVG_DEVICE_W + SVG_GAP), y, SVG_DEVICE_W,
                                       SVG_GPU_H};
                n++;
            }
        }
    }
    return n;
}

/* Of the links of GPUs at this height. */
static double deepest_arc(const svg_layout *l, double y)
{
    const size_t n       = l->node->n_gpus;
    double       deepest = 0;

    for (size_t i = 0; i < n * n; i++) {
        const svg_box a = l->gpus[i / n], b = l->gpus[i % n];

        if (l->node->links[i].type != FSDP_LINK_UNKNOWN && fmin(fabs(a.y - y), fabs(b.y - y)) < 1) {
            deepest = fmax(deepest, svg_arc_depth(a.x, b.x));
        }
    }
    return deepest;
}

/* @return the bottom of the row's boxes */
static double place_row(svg_layout *l, size_t row, double y)
{
    double bottom = place_groups(l, row, y);

    bottom += place_gpus(l, row, bottom + 4) > 0 ? SVG_GPU_H + 4 + SVG_GAP : 4;
    for (size_t i = 0; i < l->n_groups; i++) {
        if (l->groups[i].row == row) {
            l->groups[i].box.h = bottom - l->groups[i].box.y;
        }
    }
    for (size_t i = 0; i < l->n_packages; i++) {
        if (l->packages[i].row == row) {
            l->packages[i].box.h = bottom + SVG_GAP - l->packages[i].box.y;
        }
    }
    return bottom;
}

static void place_all(svg_layout *l)
{
    const size_t rows = l->n_groups > 0 ? l->groups[l->n_groups - 1].row + 1 : 0;
    double       y    = TOP;

    for (size_t row = 0; row < rows; row++) {
        const double bottom = place_row(l, row, y);

        y = fmax(bottom + SVG_GAP, bottom + 0.75 * deepest_arc(l, bottom - SVG_GPU_H - SVG_GAP)) + SVG_GAP;
    }
    l->links_bottom = y - SVG_GAP;
    l->height       = y;
}

static int allocate(svg_layout *l)
{
    const fsdp_node *node   = l->node;
    const size_t     groups = node->n_cores + node->n_numas + node->n_gpus + node->n_nics + node->n_packages;

    l->order    = calloc(node->n_cores + 1, sizeof *l->order);
    l->cores    = calloc(node->n_cores + 1, sizeof *l->cores);
    l->gpus     = calloc(node->n_gpus + 1, sizeof *l->gpus);
    l->nics     = calloc(node->n_nics + 1, sizeof *l->nics);
    l->clusters = calloc(node->n_cores + 1, sizeof *l->clusters);
    l->groups   = calloc(groups + 1, sizeof *l->groups);
    l->packages = calloc(groups + 1, sizeof *l->packages);
    return l->order && l->cores && l->gpus && l->nics && l->clusters && l->groups && l->packages;
}

int svg_layout_make(const fsdp_node *node, svg_layout *layout)
{
    size_t next = 0;

    *layout = (svg_layout){.node = node, .strips = 1};
    if (!allocate(layout)) {
        return 0;
    }
    for (size_t i = 0; i < node->n_cores; i++) {
        const int threads = fsdp_mask_count(&node->cores[i].threads);

        layout->strips = threads > layout->strips ? threads : layout->strips;
    }
    find_groups(layout);
    for (size_t i = 0; i < layout->n_groups; i++) {
        count_devices(layout, &layout->groups[i]);
        find_clusters(layout, &layout->groups[i], &next);
    }
    for (size_t i = 0; i < layout->n_groups; i++) {
        place_group(layout, &layout->groups[i], 0, 0);
    }
    divide_into_rows(layout);
    place_all(layout);
    return 1;
}

void svg_layout_release(svg_layout *l)
{
    free(l->order);
    free(l->cores);
    free(l->gpus);
    free(l->nics);
    free(l->clusters);
    free(l->groups);
    free(l->packages);
    *l = (svg_layout){0};
}
