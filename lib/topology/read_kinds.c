/*
 * Kinds of cores, as hwloc ranks them. Cores of one type whose clocks differ by little are of one kind, since a few of
 * them may go a step faster on any large processor.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/topology/mask.h"
#include "lib/topology/read_hwloc.h"

typedef struct kind {
    const char *type;           /* "IntelAtom"; "" if unknown */
    long        capacity, rate; /* 0 if unknown */
    fsdp_mask   threads;
} kind;

static const char *value_of(const struct hwloc_info_s *infos, unsigned n, const char *name)
{
    for (unsigned i = 0; i < n; i++) {
        if (strcmp(infos[i].name, name) == 0) {
            return infos[i].value;
        }
    }
    return "";
}

/* False where hwloc does not know which is faster. */
static bool read_kind(hwloc_topology_t hwloc, unsigned index, hwloc_bitmap_t set, kind *made)
{
    struct hwloc_info_s *infos;
    unsigned             n;
    int                  efficiency;

    if (hwloc_cpukinds_get_info(hwloc, index, set, &efficiency, &n, &infos, 0) != 0 || efficiency < 0) {
        return false;
    }
    *made = (kind){.type     = value_of(infos, n, "CoreType"),
                   .capacity = strtol(value_of(infos, n, "LinuxCapacity"), NULL, 10),
                   .rate     = strtol(value_of(infos, n, "FrequencyMaxMHz"), NULL, 10),
                   .threads  = fsdpi_hwloc_mask(set)};
    return true;
}

static bool is_tenth_more(long more, long less)
{
    return more > 0 && less > 0 && 10 * (more - less) > more;
}

static bool are_alike(const kind *fast, const kind *slow)
{
    const bool known = fast->type[0] != '\0' || fast->capacity > 0 || fast->rate > 0;

    return known && strcmp(fast->type, slow->type) == 0 && !is_tenth_more(fast->capacity, slow->capacity) &&
           !is_tenth_more(fast->rate, slow->rate);
}

static void add_kind(fsdp_topology *topology, const kind *from, fsdp_domain *cores)
{
    fsdp_node      *node = &topology->node;
    fsdp_core_kind *made = &topology->kinds[node->n_kinds];

    if (from->type[0] != '\0') {
        (void)snprintf(made->name, sizeof made->name, "%.31s", from->type);
    } else if (from->rate > 0) {
        (void)snprintf(made->name, sizeof made->name, "%ld MHz", from->rate);
    } else {
        (void)snprintf(made->name, sizeof made->name, "kind %zu", node->n_kinds);
    }
    for (size_t c = 0; c < node->n_cores; c++) {
        if (fsdpi_mask_meets(&cores[c].threads, &from->threads)) {
            cores[c].kind = (int)node->n_kinds;
            made->n_cores++;
        }
    }
    node->n_kinds += made->n_cores > 0;
}

void fsdpi_hwloc_read_kinds(fsdp_topology *topology, hwloc_topology_t hwloc, fsdp_domain *cores)
{
    const int      count = hwloc_cpukinds_get_nr(hwloc, 0);
    hwloc_bitmap_t set   = count > 1 ? hwloc_bitmap_alloc() : NULL;
    kind           last  = {.type = ""}, next;

    if (set == NULL) {
        return;
    }
    for (int k = count - 1; k >= 0 && read_kind(hwloc, (unsigned)k, set, &next);
         k--) { /* hwloc's last is the fastest */
        if (k == count - 1) {
            last = next;
        } else if (are_alike(&last, &next) || topology->node.n_kinds + 1 == FSDPI_MOST_KINDS) {
            fsdpi_mask_include(&last.threads, &next.threads);
        } else {
            add_kind(topology, &last, cores);
            last = next;
        }
    }
    if (topology->node.n_kinds > 0) {
        add_kind(topology, &last, cores);
    }
    hwloc_bitmap_free(set);
}
