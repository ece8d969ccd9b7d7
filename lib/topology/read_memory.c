/*
 * Which NUMA nodes are main memory. Others stand beside these, for the same cores: HBM, a GPU's, NVM, CXL. Nothing is planned
 * onto them, since they are small, or slow, or another's; a program that wants them asks for them.
 */
#include <stdio.h>
#include <string.h>

#include "lib/topology/mask.h"
#include "lib/topology/read_hwloc.h"

/* hwloc's names, of NUMA nodes and of the devices that these are made of, in the order in which they are main memory where
   there is nothing better. */
static const struct {
    const char *subtype, *kind;
} KINDS[] = {{"DRAM", ""},        {"HBM", "HBM"},     {"MCDRAM", "HBM"}, {"SPM", "HBM"},
             {"CXL-DRAM", "CXL"}, {"CXL-HBM", "CXL"}, {"CXL", "CXL"},    {"GPUMemory", "GPU memory"},
             {"CXL-NVM", "NVM"},  {"NVM", "NVM"},     {"NVM-CXL", "NVM"}};
enum { N_KINDS = sizeof KINDS / sizeof KINDS[0] };

static int find_kind(const char *subtype)
{
    for (int k = 0; k < N_KINDS; k++) {
        if (strcmp(KINDS[k].subtype, subtype) == 0) {
            return k;
        }
    }
    return -1;
}

/* Index into KINDS; 0 of what nothing is known of. */
static int kind_of(hwloc_obj_t numa)
{
    const int named = find_kind(numa->subtype != NULL ? numa->subtype : fsdpi_hwloc_info(numa, "MemoryTier", ""));
    const int made  = find_kind(fsdpi_hwloc_info(numa, "DAXType", ""));

    if (named > 0 || (named == 0 && made < 0)) {
        return named;
    }
    if (made > 0) {
        return made;
    }
    return fsdpi_hwloc_info(numa, "CXLDevice", NULL) != NULL ? find_kind("CXL") : 0;
}

/* Main memory comes first, then what is next to fewer cores, then what the system counts first. */
static bool comes_before(hwloc_obj_t a, hwloc_obj_t b)
{
    const int kinds[]  = {kind_of(a), kind_of(b)},
              counts[] = {hwloc_bitmap_weight(a->cpuset), hwloc_bitmap_weight(b->cpuset)};

    if (kinds[0] != kinds[1]) {
        return kinds[0] < kinds[1];
    }
    return counts[0] != counts[1] ? counts[0] < counts[1] : a->os_index < b->os_index;
}

/* Whether all cores that it is next to are next to others that come before it. */
static bool is_beside_others(hwloc_topology_t hwloc, hwloc_obj_t numa)
{
    const fsdp_mask threads = fsdpi_hwloc_mask(numa->cpuset);
    fsdp_mask       covered = {{0}};

    for (hwloc_obj_t other = NULL; (other = hwloc_get_next_obj_by_type(hwloc, HWLOC_OBJ_NUMANODE, other)) != NULL;) {
        if (other != numa && comes_before(other, numa)) {
            const fsdp_mask theirs = fsdpi_hwloc_mask(other->cpuset);
            fsdpi_mask_include(&covered, &theirs);
        }
    }
    return fsdpi_mask_within(&threads, &covered);
}

static void add_memory(fsdp_topology *topology, hwloc_obj_t numa)
{
    fsdp_memory_node *made = &topology->memories[topology->node.n_memories];
    const char       *kind = KINDS[kind_of(numa)].kind;

    if (topology->node.n_memories == FSDPI_MOST_MEMORIES) {
        return;
    }
    topology->node.n_memories++;
    *made = (fsdp_memory_node){.number  = (int)numa->os_index,
                               .bytes   = numa->attr->numanode.local_memory,
                               .threads = fsdpi_hwloc_mask(numa->cpuset),
                               .numa    = -1};
    (void)snprintf(made->kind, sizeof made->kind, "%s", kind[0] != '\0' ? kind : "no cores");
}

void fsdpi_hwloc_read_memory(fsdp_topology *topology, hwloc_topology_t hwloc, fsdp_domain *numas)
{
    fsdp_node *node = &topology->node;

    node->n_numas = node->n_memories = 0;
    for (hwloc_obj_t numa = NULL; (numa = hwloc_get_next_obj_by_type(hwloc, HWLOC_OBJ_NUMANODE, numa)) != NULL;) {
        if (is_beside_others(hwloc, numa)) {
            add_memory(topology, numa);
            continue;
        }
        numas[node->n_numas++] = (fsdp_domain){.threads = fsdpi_hwloc_mask(numa->cpuset),
                                               .bytes   = numa->attr->numanode.local_memory,
                                               .number  = (int)numa->os_index,
                                               .package = -1,
                                               .numa    = -1,
                                               .cache   = -1};
    }
    for (size_t i = 0; i < node->n_memories; i++) {
        topology->memories[i].numa = fsdpi_domain_of(numas, node->n_numas, &topology->memories[i].threads);
    }
}
