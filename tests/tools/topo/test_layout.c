/* The drawing's boxes: everything is there once, inside what it belongs to, and nothing lies on anything else. */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/unit_test.h"

#include <fsdp/fsdp.h>

#include "tools/topo/svg/layout.h"

static const char *folder;

static int is_inside(svg_box a, svg_box b)
{
    return a.x >= b.x && a.y >= b.y && a.x + a.w <= b.x + b.w && a.y + a.h <= b.y + b.h;
}

static int is_apart(svg_box a, svg_box b)
{
    return a.x + a.w <= b.x || b.x + b.w <= a.x || a.y + a.h <= b.y || b.y + b.h <= a.y;
}

static void check_apart(const svg_box *boxes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        assert_true(boxes[i].w > 0 && boxes[i].h > 0);
        for (size_t k = 0; k < i; k++) {
            assert_true(is_apart(boxes[i], boxes[k]));
        }
    }
}

static size_t group_of(const svg_layout *l, int package, int numa)
{
    for (size_t i = 0; i < l->n_groups; i++) {
        if (l->groups[i].package == package && l->groups[i].numa == numa) {
            return i;
        }
    }
    fail_msg("no group of package %d and NUMA node %d", package, numa);
    return 0;
}

static void check_cores(const svg_layout *l)
{
    const fsdp_node *node = l->node;

    for (size_t i = 0; i < node->n_cores; i++) {
        size_t around = 0;

        for (size_t k = 0; k < l->n_clusters; k++) {
            around += is_inside(l->cores[i], l->clusters[k].box) && l->clusters[k].cache == node->cores[i].cache;
        }
        assert_int_equal(1, around);
        assert_true(is_inside(l->cores[i], l->groups[group_of(l, node->cores[i].package, node->cores[i].numa)].box));
    }
    check_apart(l->cores, node->n_cores);
}

static void check_devices(const svg_layout *l)
{
    const fsdp_node *node = l->node;
    svg_box         *all  = calloc(node->n_gpus + node->n_nics + l->n_clusters + 1, sizeof *all);
    size_t           n    = 0;

    assert_non_null(all);
    for (size_t i = 0; i < node->n_gpus; i++, n++) {
        all[n] = l->gpus[i];

        const svg_group *g = &l->groups[group_of(l, node->gpus[i].package, node->gpus[i].numa)];

        assert_true(is_inside(all[n], g->box));
        for (size_t k = 0; k < i; k++) { /* links can be drawn beneath */
            const svg_group *other = &l->groups[group_of(l, node->gpus[k].package, node->gpus[k].numa)];

            assert_true(other->row != g->row || fabs(all[n].y - all[k].y) < 0.1);
        }
    }
    for (size_t i = 0; i < node->n_nics; i++, n++) {
        all[n] = l->nics[i];
        assert_true(is_inside(all[n], l->groups[group_of(l, node->nics[i].package, node->nics[i].numa)].box));
    }
    for (size_t i = 0; i < l->n_clusters; i++, n++) {
        all[n] = l->clusters[i].box;
    }
    check_apart(all, n);
    free(all);
}

static void check_nesting(const svg_layout *l)
{
    const svg_box page = {0, 0, l->width, l->height};

    for (size_t p = 0; p < l->n_packages; p++) {
        assert_true(is_inside(l->packages[p].box, page));
        for (size_t q = 0; q < p; q++) {
            assert_true(is_apart(l->packages[p].box, l->packages[q].box));
        }
        for (size_t i = l->packages[p].first; i < l->packages[p].first + l->packages[p].n; i++) {
            assert_int_equal(l->packages[p].package, l->groups[i].package);
            assert_true(is_inside(l->groups[i].box, l->packages[p].box));
            assert_true(i == l->packages[p].first || is_apart(l->groups[i].box, l->groups[i - 1].box));
        }
    }
    for (size_t i = 0; i < l->node->n_numas; i++) {
        (void)group_of(l, l->node->numas[i].package, (int)i);
    }
    assert_true(l->links_bottom <= l->height);
    assert_true(l->n_groups == 0 || l->width <= SVG_MOST_W + 3 * SVG_GAP ||
                l->groups[l->n_groups - 1].row + 1 >= l->n_groups);
}

static void check_node(const fsdp_node *node)
{
    svg_layout layout;

    assert_true(svg_layout_make(node, &layout));
    check_cores(&layout);
    check_devices(&layout);
    check_nesting(&layout);
    svg_layout_release(&layout);
}

static void check_file(const char *path)
{
    fsdp_topology *topology;

    print_message("%s\n", path ? path : "this machine");
    assert_int_equal(FSDP_OK, fsdp_topology_open(path, &topology));
    check_node(fsdp_topology_node(topology));
    fsdp_topology_close(topology);
}

static void nothing_lies_on_anything_else(void **state)
{
    DIR           *files = opendir(folder);
    struct dirent *file;
    size_t         seen = 0;

    (void)state;
    assert_non_null(files);
    while ((file = readdir(files))) {
        const size_t length = strlen(file->d_name);
        char         path[4096];

        if (length > 4 && strcmp(file->d_name + length - 4, ".xml") == 0) {
            assert_true(snprintf(path, sizeof path, "%s/%s", folder, file->d_name) < (int)sizeof path);
            check_file(path);
            seen++;
        }
    }
    (void)closedir(files);
    assert_true(seen > 0);
    check_file(NULL);
}

/* Domains that are on nothing, a NUMA node without cores, devices without locality, a cache that spans two NUMA nodes. */
static void what_belongs_nowhere_has_a_place(void **state)
{
    fsdp_domain package = {.number = 0, .package = -1, .numa = -1, .cache = -1};
    fsdp_domain numas[] = {{.number = 0, .numa = -1, .cache = -1},
                           {.number = 2, .numa = -1, .cache = -1},
                           {.number = 3, .package = -1, .numa = -1, .cache = -1}};
    fsdp_domain cache   = {.number = -1, .numa = -1, .cache = -1};
    fsdp_domain cores[] = {
        {.number = 0, .numa = 0}, {.number = 1, .numa = 1}, {.number = 2, .package = -1, .numa = -1, .cache = -1}};
    fsdp_gpu gpus[] = {{.address = "0000:01:00.0", .package = -1, .numa = -1}, {.address = "0000:02:00.0", .numa = -1}};
    fsdp_link links[4] = {{0}};
    fsdp_nic  nic      = {.name = "eth0", .package = -1, .numa = 2};
    fsdp_node node     = {.n_packages = 1,
                          .packages   = &package,
                          .n_numas    = 3,
                          .numas      = numas,
                          .n_caches   = 1,
                          .caches     = &cache,
                          .n_cores    = 3,
                          .cores      = cores,
                          .n_gpus     = 2,
                          .gpus       = gpus,
                          .links      = links,
                          .n_nics     = 1,
                          .nics       = &nic};

    (void)state;
    check_node(&node);
    check_node(&(fsdp_node){.name = "nothing"});
}

/* Two packages of eight NUMA nodes with eight cores and a GPU each: three metres of paper in one row. */
static void a_wide_machine_is_drawn_in_rows(void **state)
{
    enum { PACKAGES = 2, NUMAS = 16, CORES = 128 };
    static fsdp_domain packages[PACKAGES], numas[NUMAS], cores[CORES];
    static fsdp_gpu    gpus[NUMAS];
    static fsdp_link   links[NUMAS * NUMAS];
    fsdp_node          node = {.n_packages = PACKAGES, .packages = packages, .n_numas = NUMAS, .numas = numas};
    svg_layout         layout;

    (void)state;
    for (int i = 0; i < CORES; i++) {
        packages[i % PACKAGES] = (fsdp_domain){.number = i % PACKAGES, .package = -1, .numa = -1, .cache = -1};
        numas[i % NUMAS]       = (fsdp_domain){.number = i % NUMAS, .package = i % NUMAS / 8, .numa = -1, .cache = -1};
        cores[i]               = (fsdp_domain){.number = i, .package = i / 64, .numa = i / 8, .cache = -1};
        gpus[i % NUMAS]        = (fsdp_gpu){.package = i % NUMAS / 8, .numa = i % NUMAS};
    }
    for (int i = 0; i < NUMAS * NUMAS; i++) {
        links[i].type = i / NUMAS == i % NUMAS ? FSDP_LINK_UNKNOWN : FSDP_LINK_XGMI;
    }
    node.n_cores = CORES;
    node.cores   = cores;
    node.n_gpus  = NUMAS;
    node.gpus    = gpus;
    node.links   = links;
    check_node(&node);
    assert_true(svg_layout_make(&node, &layout));
    assert_int_equal(0, layout.groups[0].row);
    assert_int_equal(1, layout.groups[NUMAS - 1].row);
    assert_int_equal(2, layout.n_packages);
    assert_true(layout.groups[NUMAS - 1].box.y > layout.gpus[0].y + SVG_GPU_H);
    svg_layout_release(&layout);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_lies_on_anything_else),
        cmocka_unit_test(what_belongs_nowhere_has_a_place),
        cmocka_unit_test(a_wide_machine_is_drawn_in_rows),
    };

    folder = argc > 1 ? argv[1] : ".";
    return cmocka_run_group_tests(tests, NULL, NULL);
}
