/* Rows and columns are devices: the GPUs, then the network cards. */
#include "tools/topo/text/matrix.h"

#include <string.h>

#include "tools/topo/base/words.h"

typedef struct place {
    int package, numa;
} place;

typedef struct cell {
    char text[32];
} cell;

static place place_of(const fsdp_node *node, size_t device)
{
    if (device < node->n_gpus) {
        return (place){node->gpus[device].package, node->gpus[device].numa};
    }
    return (place){node->nics[device - node->n_gpus].package, node->nics[device - node->n_gpus].numa};
}

static const struct {
    const char *word, *meaning;
} DISTANCES[] = {
    {"NODE", "within a NUMA node"},
    {"PKG", "between NUMA nodes of a package"},
    {"SYS", "between packages"},
    {"?", "not known"},
};
#define N_DISTANCES (sizeof DISTANCES / sizeof DISTANCES[0])

/* Index into DISTANCES. */
static size_t distance(const fsdp_node *node, size_t from, size_t to)
{
    const place a = place_of(node, from), b = place_of(node, to);

    if (a.numa >= 0 && a.numa == b.numa) {
        return 0;
    }
    if (a.package < 0 || b.package < 0) {
        return 3;
    }
    return a.package != b.package ? 2 : a.numa >= 0 && b.numa >= 0 ? 1 : 3;
}

/* A link that is more than the way over PCI Express; NULL: none is known. */
static const fsdp_link *link_of(const fsdp_node *node, size_t from, size_t to)
{
    const fsdp_link *link = from < node->n_gpus && to < node->n_gpus ? &node->links[from * node->n_gpus + to] : NULL;

    return link && (link->type == FSDP_LINK_XGMI || link->type == FSDP_LINK_NVLINK) ? link : NULL;
}

/* "XGMI200", "NV50": with GB per second, or else with hops, "XGMI:2". */
static cell name_link(const fsdp_link *link)
{
    const char *type = link->type == FSDP_LINK_XGMI ? "XGMI" : "NV";
    cell        c;

    if (link->max_bandwidth > 0) {
        (void)snprintf(c.text, sizeof c.text, "%s%.4g", type, (double)link->max_bandwidth / 1000);
    } else if (link->hops > 0) {
        (void)snprintf(c.text, sizeof c.text, "%s:%llu", type, (unsigned long long)link->hops);
    } else {
        (void)snprintf(c.text, sizeof c.text, "%s", type);
    }
    return c;
}

static cell cell_of(const fsdp_node *node, size_t from, size_t to)
{
    const fsdp_link *link = link_of(node, from, to);
    cell             c    = {"X"};

    if (link) {
        return name_link(link);
    }
    if (from != to) {
        (void)snprintf(c.text, sizeof c.text, "%s", DISTANCES[distance(node, from, to)].word);
    }
    return c;
}

/* "GPU0", "NIC3". */
static cell heading(const fsdp_node *node, size_t device)
{
    cell c;

    (void)snprintf(c.text, sizeof c.text, device < node->n_gpus ? "GPU%zu" : "NIC%zu",
                   device < node->n_gpus ? device : device - node->n_gpus);
    return c;
}

/* Nothing is to stand behind the last column. */
static int width_of(const fsdp_node *node, size_t column)
{
    const size_t n    = node->n_gpus + node->n_nics;
    size_t       most = column + 1 < n ? strlen(heading(node, column).text) : 0;

    for (size_t row = 0; row < n && column + 1 < n; row++) {
        const size_t length = strlen(cell_of(node, row, column).text);

        most = length > most ? length : most;
    }
    return (int)most;
}

static void write_row(FILE *file, const fsdp_node *node, size_t row)
{
    char name[TOPO_WORD_BYTES];

    if (row < node->n_gpus) {
        (void)snprintf(name, sizeof name, "%s", topo_gpu(node, (int)row).text);
    } else {
        (void)snprintf(name, sizeof name, "%s %s", heading(node, row).text, node->nics[row - node->n_gpus].name);
    }
    (void)fprintf(file, "  %-22.60s", name);
    for (size_t column = 0; column < node->n_gpus + node->n_nics; column++) {
        (void)fprintf(file, "  %-*s", width_of(node, column), cell_of(node, row, column).text);
    }
    (void)fputc('\n', file);
}

/* Whether a pair before this one has the same link. */
static int has_been(const fsdp_node *node, size_t pair)
{
    const fsdp_link *link = link_of(node, pair / node->n_gpus, pair % node->n_gpus);

    for (size_t i = 0; i < pair; i++) {
        const fsdp_link *other = link_of(node, i / node->n_gpus, i % node->n_gpus);

        if (other && strcmp(topo_link(other).text, topo_link(link).text) == 0) {
            return 1;
        }
    }
    return 0;
}

static void write_links(FILE *file, const fsdp_node *node)
{
    for (size_t i = 0; i < node->n_gpus * node->n_gpus; i++) {
        const fsdp_link *link = link_of(node, i / node->n_gpus, i % node->n_gpus);

        if (link && !has_been(node, i)) {
            (void)fprintf(file, "  %-8s  %s\n", name_link(link).text, topo_link(link).text);
        }
    }
}

static void write_distances(FILE *file, const fsdp_node *node)
{
    const size_t n                 = node->n_gpus + node->n_nics;
    int          seen[N_DISTANCES] = {0};

    for (size_t i = 0; i < n * n; i++) {
        if (i / n != i % n && !link_of(node, i / n, i % n)) {
            seen[distance(node, i / n, i % n)] = 1;
        }
    }
    for (size_t d = 0; d < N_DISTANCES; d++) {
        if (seen[d]) {
            (void)fprintf(file, "  %-8s  %s\n", DISTANCES[d].word, DISTANCES[d].meaning);
        }
    }
}

void topo_matrix_write(FILE *file, const fsdp_node *node)
{
    const size_t n = node->n_gpus + node->n_nics;

    if (node->n_gpus == 0 || n < 2) {
        return;
    }
    (void)fprintf(file, "\nGPUs and network cards, from row to column\n  %-22s", "");
    for (size_t column = 0; column < n; column++) {
        (void)fprintf(file, "  %-*s", width_of(node, column), heading(node, column).text);
    }
    (void)fputc('\n', file);
    for (size_t row = 0; row < n; row++) {
        write_row(file, node, row);
    }
    write_links(file, node);
    write_distances(file, node);
}
