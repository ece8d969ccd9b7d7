/* What hwloc knows of a node, from this machine or from XML. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/error.h"
#include "lib/topology/mask.h"
#include "lib/topology/node.h"
#include "lib/topology/read_hwloc.h"

enum { PACKAGES, NUMAS, CACHES, CORES };

/* check_numbers() notices those that are left out. */
fsdp_mask fsdpi_hwloc_mask(hwloc_const_bitmap_t set)
{
    fsdp_mask mask = {{0}};

    for (int i = set != NULL ? hwloc_bitmap_first(set) : -1; i >= 0 && i < FSDPI_MASK_BITS;
         i     = hwloc_bitmap_next(set, i)) {
        fsdpi_mask_add(&mask, i);
    }
    return mask;
}

static fsdp_status check_numbers(hwloc_topology_t hwloc)
{
    const int last = hwloc_bitmap_last(hwloc_topology_get_topology_cpuset(hwloc));

    if (last >= FSDPI_MASK_BITS || last < 0) {
        return fsdpi_fail(NULL, FSDP_ERR_UNSUPPORTED,
                          "fsdp_topology_open: the machine's last hardware thread is number %d; 0 to %d are supported",
                          last, FSDPI_MASK_BITS - 1);
    }
    return FSDP_OK;
}

/*
 * hwloc may say what is wrong with a file on stderr, and its XML parser does. So what can be seen from outside is looked
 * at first: whether there is a topology in it, and of which version. Version 1 is converted by hwloc.
 */
static fsdp_status check_file(const char *file)
{
    static const char BEGIN[] = "<topology";
    char              head[8192];
    FILE             *stream = fopen(file, "re");
    unsigned          major  = 1;

    if (stream == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "fsdp_topology_open: %s: %s", file, strerror(errno));
    }
    const size_t n = fread(head, 1, sizeof head - 1, stream);
    (void)fclose(stream);
    head[n]           = '\0';
    const char *found = strstr(head, BEGIN);
    while (found != NULL && !isspace((unsigned char)found[sizeof BEGIN - 1]) && found[sizeof BEGIN - 1] != '>') {
        found = strstr(found + 1, BEGIN);
    }
    if (found == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG,
                          "fsdp_topology_open: %s holds no topology; write one with lstopo --of xml", file);
    }
    (void)sscanf(found, "<topology version=\"%u", &major);
    if (major > 2) {
        return fsdpi_fail(
            NULL, FSDP_ERR_ARG,
            "fsdp_topology_open: %s is version %u of hwloc's XML, and version 2 is read here; write it with "
            "lstopo --export-xml-flags v2 --of xml",
            file, major);
    }
    return FSDP_OK;
}

static bool is_complete(const char *file)
{
    char  tail[256];
    FILE *stream = fopen(file, "re");

    if (stream == NULL) {
        return false;
    }
    const bool   seeks = fseek(stream, -(long)(sizeof tail - 1), SEEK_END) == 0 || fseek(stream, 0, SEEK_SET) == 0;
    const size_t n     = seeks ? fread(tail, 1, sizeof tail - 1, stream) : 0;
    (void)fclose(stream);
    tail[n] = '\0';
    return strstr(tail, "</topology>") != NULL;
}

/*
 * Components that start a runtime, which must be told first which GPU to use, or print where there is no driver, are left
 * out: rocm-smi and HIP are asked here. A name that hwloc does not know is refused, and no matter.
 */
static int set_up(hwloc_topology_t hwloc, const char *file)
{
    static const char *const LEFT_OUT[] = {"opencl", "gl", "cuda", "levelzero", "rsmi"};

    for (size_t i = 0; i < sizeof LEFT_OUT / sizeof LEFT_OUT[0]; i++) {
        (void)hwloc_topology_set_components(hwloc, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, LEFT_OUT[i]);
    }
    (void)hwloc_topology_set_io_types_filter(hwloc, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
    if (file != NULL && hwloc_topology_set_xml(hwloc, file) != 0) {
        return -1;
    }
    return hwloc_topology_load(hwloc);
}

static fsdp_status load(const char *file, hwloc_topology_t *hwloc)
{
    if (file != NULL) {
        FSDP_TRY(check_file(file));
        if (!is_complete(file)) {
            return fsdpi_fail(NULL, FSDP_ERR_ARG, "fsdp_topology_open: %s is cut off: it has no </topology> at its end",
                              file);
        }
    }
    if (hwloc_topology_init(hwloc) != 0) {
        return fsdpi_fail(NULL, FSDP_ERR_MEMORY, "fsdp_topology_open: no memory for hwloc's topology");
    }
    if (set_up(*hwloc, file) != 0) {
        hwloc_topology_destroy(*hwloc);
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "fsdp_topology_open: hwloc cannot read %s",
                          file != NULL ? file : "this machine");
    }
    return FSDP_OK;
}

/* The last level of cache that several cores share. */
static hwloc_obj_type_t type_of_caches(hwloc_topology_t hwloc)
{
    return hwloc_get_nbobjs_by_type(hwloc, HWLOC_OBJ_L3CACHE) > 0 ? HWLOC_OBJ_L3CACHE : HWLOC_OBJ_L2CACHE;
}

/* Room for all objects of a type; NULL: none. */
static fsdp_domain *make_domains(fsdp_topology *topology, hwloc_topology_t hwloc, hwloc_obj_type_t type, int kind)
{
    const int    count = hwloc_get_nbobjs_by_type(hwloc, type);
    fsdp_domain *made  = calloc(count > 0 ? (size_t)count : 1, sizeof *made);

    if (made == NULL) {
        (void)fsdpi_fail(NULL, FSDP_ERR_MEMORY, "fsdp_topology_open: no memory for %d objects", count);
    }
    topology->domains[kind] = made;
    return made;
}

/* All objects of a type that have hardware threads. */
static fsdp_status read_domains(fsdp_topology *topology, hwloc_topology_t hwloc, hwloc_obj_type_t type, int kind,
                                size_t *n)
{
    fsdp_domain *made     = make_domains(topology, hwloc, type, kind);
    const bool   is_cache = hwloc_obj_type_is_dcache(type);

    if (made == NULL) {
        return FSDP_ERR_MEMORY;
    }
    *n = 0;
    for (hwloc_obj_t object = NULL; (object = hwloc_get_next_obj_by_type(hwloc, type, object)) != NULL;) {
        const fsdp_mask threads = fsdpi_hwloc_mask(object->cpuset);

        if (!fsdpi_mask_is_empty(&threads)) {
            made[(*n)++] = (fsdp_domain){
                .threads = threads,
                .bytes   = is_cache ? object->attr->cache.size : 0,
                .number  = object->os_index != HWLOC_UNKNOWN_INDEX ? (int)object->os_index : -1,
                .package = -1,
                .numa    = -1,
                .cache   = -1,
                .level   = is_cache ? (int)object->attr->cache.depth : 0,
            };
        }
    }
    return FSDP_OK;
}

/* Which packages, NUMA nodes and caches each one is in. */
static void relate(const fsdp_node *node, fsdp_domain *domains, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        domains[i].package = fsdpi_domain_of(node->packages, node->n_packages, &domains[i].threads);
        domains[i].numa    = fsdpi_domain_of(node->numas, node->n_numas, &domains[i].threads);
        domains[i].cache   = fsdpi_domain_of(node->caches, node->n_caches, &domains[i].threads);
    }
}

static fsdp_status read_all_domains(fsdp_topology *topology, hwloc_topology_t hwloc)
{
    fsdp_node             *node  = &topology->node;
    const hwloc_obj_type_t cores = hwloc_get_nbobjs_by_type(hwloc, HWLOC_OBJ_CORE) > 0 ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;

    FSDP_TRY(read_domains(topology, hwloc, HWLOC_OBJ_PACKAGE, PACKAGES, &node->n_packages));
    if (make_domains(topology, hwloc, HWLOC_OBJ_NUMANODE, NUMAS) == NULL) {
        return FSDP_ERR_MEMORY;
    }
    fsdpi_hwloc_read_memory(topology, hwloc, topology->domains[NUMAS]);
    FSDP_TRY(read_domains(topology, hwloc, type_of_caches(hwloc), CACHES, &node->n_caches));
    FSDP_TRY(read_domains(topology, hwloc, cores, CORES, &node->n_cores));
    node->packages = topology->domains[PACKAGES];
    node->numas    = topology->domains[NUMAS];
    node->caches   = topology->domains[CACHES];
    node->cores    = topology->domains[CORES];
    if (node->n_caches >= node->n_cores) { /* a cache of its own for each core divides nothing */
        node->n_caches = 0;
    }
    relate(node, topology->domains[PACKAGES], node->n_packages);
    relate(node, topology->domains[NUMAS], node->n_numas);
    relate(node, topology->domains[CACHES], node->n_caches);
    relate(node, topology->domains[CORES], node->n_cores);
    fsdpi_hwloc_read_kinds(topology, hwloc, topology->domains[CORES]);
    return FSDP_OK;
}

/* ---- all together ------------------------------------------------------------------------------------------------ */

static void read_name(fsdp_node *node, hwloc_topology_t hwloc, const char *file)
{
    char        here[sizeof node->name] = "";
    const char *recorded                = hwloc_obj_get_info_by_name(hwloc_get_root_obj(hwloc), "HostName");

    (void)gethostname(here, sizeof here - 1);
    fsdpi_node_copy_text(node->name, sizeof node->name, file == NULL ? here : recorded != NULL ? recorded : "");
    node->is_here = file == NULL || (recorded != NULL && strncmp(recorded, here, sizeof here - 1) == 0);
}

static fsdp_status read_objects(fsdp_topology *topology, hwloc_topology_t hwloc, const char *file)
{
    fsdp_node *node = &topology->node;

    FSDP_TRY(check_numbers(hwloc));
    read_name(node, hwloc, file);
    node->threads = fsdpi_hwloc_mask(hwloc_topology_get_allowed_cpuset(hwloc));
    FSDP_TRY(read_all_domains(topology, hwloc));
    fsdpi_hwloc_read_devices(topology, hwloc);
    return FSDP_OK;
}

fsdp_status fsdpi_node_read(fsdp_topology *topology, const char *file)
{
    fsdp_node       *node  = &topology->node;
    hwloc_topology_t hwloc = NULL;

    node->gpus     = topology->gpus;
    node->links    = topology->links;
    node->nics     = topology->nics;
    node->kinds    = topology->kinds;
    node->memories = topology->memories;
    FSDP_TRY(load(file, &hwloc));
    topology->hwloc          = hwloc;
    const fsdp_status status = read_objects(topology, hwloc, file);
    fsdpi_node_source(node, FSDP_SOURCE_HWLOC, true,
                      "%s, %zu package%s, %zu NUMA node%s, %zu core%s, %d hardware threads",
                      file != NULL ? "a recorded machine" : "this machine", node->n_packages,
                      node->n_packages == 1 ? "" : "s", node->n_numas, node->n_numas == 1 ? "" : "s", node->n_cores,
                      node->n_cores == 1 ? "" : "s", fsdp_mask_count(&node->threads));
    return status;
}
