/* Reading a node: hwloc first, then what rocm-smi, HIP and the control group add. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/device/gpu.h"
#include "lib/topology/cpu_quota.h"
#include "lib/topology/mask.h"
#include "lib/topology/node.h"

/* The part of a partitioned GPU that this is: how many with its address came before it. */
static int ordinal_of(const fsdp_visible_gpu *seen, int n, const char *address)
{
    int ordinal = 0;

    for (int i = 0; i < n; i++) {
        ordinal += strcmp(seen[i].address, address) == 0;
    }
    return ordinal;
}

static void place_on_numa(const fsdp_node *node, fsdp_gpu *gpu, int number)
{
    for (size_t i = 0; i < node->n_numas && gpu->numa < 0; i++) {
        if (node->numas[i].number == number) {
            gpu->numa    = (int)i;
            gpu->package = node->numas[i].package;
            gpu->threads = node->numas[i].threads;
        }
    }
}

static void add_smi_device(fsdp_topology *topology, int device, fsdp_visible_gpu *seen)
{
    fsdp_gpu told = {.ordinal = 0};
    int      numa;

    if (!fsdpi_smi_device(topology->smi, device, &told, &numa)) {
        return;
    }
    told.ordinal = ordinal_of(seen, device, told.address);
    memcpy(seen[device].address, told.address, sizeof told.address);
    int at = fsdpi_node_gpu(&topology->node, told.address, told.ordinal);
    at     = at >= 0 ? at : fsdpi_node_add_gpu(topology, told.address, told.ordinal);
    if (at < 0) {
        return;
    }
    fsdp_gpu *gpu = &topology->gpus[at];
    gpu->smi      = device;
    gpu->vendor   = gpu->vendor != 0 ? gpu->vendor : 0x1002;
    gpu->bytes    = told.bytes > 0 ? told.bytes : gpu->bytes;
    gpu->hive     = told.hive > 0 ? told.hive : gpu->hive;
    place_on_numa(&topology->node, gpu, numa);
}

static void read_smi(fsdp_topology *topology)
{
    fsdp_visible_gpu seen[FSDP_MOST_GPUS] = {{{0}, 0}};
    char             why[FSDP_REASON_BYTES];

    if (!topology->node.is_here) {
        fsdpi_node_source(&topology->node, FSDP_SOURCE_SMI, false, "not asked: the machine is a recorded one");
        return;
    }
    topology->smi = fsdpi_smi_open(why);
    fsdpi_node_source(&topology->node, FSDP_SOURCE_SMI, topology->smi != NULL, "%s", why);
    if (topology->smi == NULL) {
        return;
    }
    for (size_t g = 0; g < topology->node.n_gpus; g++) {
        topology->gpus[g].smi = -1; /* hwloc's numbers may be another library's */
    }
    for (int d = 0; d < fsdpi_smi_count(topology->smi); d++) {
        add_smi_device(topology, d, seen);
    }
}

static void read_smi_links(fsdp_topology *topology)
{
    const fsdp_node *node = &topology->node;

    for (size_t from = 0; topology->smi != NULL && from < node->n_gpus; from++) {
        for (size_t to = 0; to < node->n_gpus; to++) {
            fsdp_link link = {.type = FSDP_LINK_UNKNOWN};

            if (from != to && node->gpus[from].smi >= 0 && node->gpus[to].smi >= 0 &&
                fsdpi_smi_link(topology->smi, node->gpus[from].smi, node->gpus[to].smi, &link)) {
                topology->links[from * node->n_gpus + to] = link;
            }
        }
    }
}

static void read_hip(fsdp_topology *topology)
{
    fsdp_node      *node = &topology->node;
    fsdp_local_rank mine;

    if (!node->is_here) {
        fsdpi_node_source(node, FSDP_SOURCE_HIP, false, "not asked: the machine is a recorded one");
        return;
    }
    if (!fsdpi_gpu_has_runtime()) {
        fsdpi_node_source(node, FSDP_SOURCE_HIP, false, "%s", fsdpi_gpu_missing());
        return;
    }
    (void)fsdp_local_rank_look(&mine);
    for (int d = 0; d < mine.n_visible; d++) {
        if (fsdpi_node_gpu(node, mine.visible[d].address, mine.visible[d].ordinal) < 0) {
            (void)fsdpi_node_add_gpu(topology, mine.visible[d].address, mine.visible[d].ordinal);
        }
    }
    if (mine.n_visible < 0) {
        fsdpi_node_source(node, FSDP_SOURCE_HIP, false, "no device, and no driver (/sys/class/kfd)");
    } else {
        fsdpi_node_source(node, FSDP_SOURCE_HIP, mine.n_visible > 0, "%d device%s that this process may use",
                          mine.n_visible, mine.n_visible == 1 ? "" : "s");
    }
}

static void read_control_group(fsdp_node *node)
{
    if (!node->is_here) {
        fsdpi_node_source(node, FSDP_SOURCE_CGROUP, false, "not asked: the machine is a recorded one");
        return;
    }
    node->cpu_quota = fsdpi_cpu_quota("");
    if (node->cpu_quota > 0.0) {
        fsdpi_node_source(node, FSDP_SOURCE_CGROUP, true, "limits time to that of %.2f cores", node->cpu_quota);
    } else {
        fsdpi_node_source(node, FSDP_SOURCE_CGROUP, true, "no limit on the time of cores");
    }
}

/* "64.0 GiB of main memory; beside it, and not planned onto: NUMA nodes 2-3 (HBM), 4 (NVM)" */
static void tell_memory(fsdp_node *node)
{
    char     text[FSDP_REASON_BYTES] = "";
    uint64_t bytes                   = 0;

    for (size_t i = 0; i < node->n_numas; i++) {
        bytes += node->numas[i].bytes;
    }
    for (size_t i = 0; i < node->n_memories; i++) {
        const size_t used = strlen(text);
        fsdp_mask    same = {{0}};
        char         numbers[32];
        bool         seen = false;

        for (size_t j = 0; j < node->n_memories; j++) {
            const bool is_same = strcmp(node->memories[j].kind, node->memories[i].kind) == 0;

            seen = seen || (is_same && j < i);
            if (is_same && node->memories[j].number >= 0 && node->memories[j].number < FSDPI_MASK_BITS) {
                fsdpi_mask_add(&same, node->memories[j].number);
            }
        }
        fsdp_mask_text(&same, numbers, sizeof numbers);
        if (!seen) {
            (void)snprintf(text + used, sizeof text - used, "%s%s (%s)",
                           used > 0 ? ", " : "; not planned onto: NUMA nodes ", numbers, node->memories[i].kind);
        }
    }
    fsdpi_node_source(node, FSDP_SOURCE_MEMORY, bytes > 0, "%.1f GiB of main memory%s", (double)bytes / 0x1p30, text);
}

static void tell_devices(fsdp_node *node)
{
    size_t unknown = 0, fabric = 0;

    for (size_t g = 0; g < node->n_gpus; g++) {
        unknown += node->gpus[g].numa < 0;
    }
    for (size_t i = 0; i < node->n_nics; i++) {
        fabric += node->nics[i].fabric != 0;
    }
    if (unknown > 0) {
        fsdpi_node_source(node, FSDP_SOURCE_GPUS, true, "%zu that compute, the locality of %zu unknown", node->n_gpus,
                          unknown);
    } else if (node->n_gpus > 0) {
        fsdpi_node_source(node, FSDP_SOURCE_GPUS, true, "%zu that compute%s", node->n_gpus,
                          node->gpus[0].vendor == 0x10de ? ", of NVIDIA" : "");
    } else {
        fsdpi_node_source(node, FSDP_SOURCE_GPUS, false, "none that computes");
    }
    fsdpi_node_source(node, FSDP_SOURCE_NETWORK, node->n_nics > 0,
                      node->n_nics > 0 ? "%zu card%s, %zu of a fabric" : "no card to be seen", node->n_nics,
                      node->n_nics == 1 ? "" : "s", fabric);
}

fsdp_status fsdp_topology_open(const char *file, fsdp_topology **topology)
{
    const char *recorded = getenv("FSDP_TOPOLOGY");

    if (topology == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "fsdp_topology_open: the place for the topology is NULL");
    }
    *topology           = NULL;
    fsdp_topology *made = calloc(1, sizeof *made);
    if (made == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_MEMORY, "fsdp_topology_open: no memory for a topology");
    }
    file                     = file == NULL && recorded != NULL && recorded[0] != '\0' ? recorded : file;
    const fsdp_status status = fsdpi_node_read(made, file);
    if (status != FSDP_OK) {
        fsdp_topology_close(made);
        return status;
    }
    read_smi(made);
    read_hip(made);
    fsdpi_node_read_links(made);
    read_smi_links(made);
    read_control_group(&made->node);
    tell_memory(&made->node);
    tell_devices(&made->node);
    *topology = made;
    return FSDP_OK;
}

void fsdp_topology_close(fsdp_topology *topology)
{
    if (topology == NULL) {
        return;
    }
    fsdpi_node_read_links(topology); /* closes hwloc, if that has not been done */
    fsdpi_smi_close(topology->smi);
    for (size_t i = 0; i < sizeof topology->domains / sizeof topology->domains[0]; i++) {
        free(topology->domains[i]);
    }
    free(topology);
}

const fsdp_node *fsdp_topology_node(const fsdp_topology *topology)
{
    return topology != NULL ? &topology->node : NULL;
}

fsdp_status fsdp_gpu_health_read(const fsdp_topology *topology, size_t gpu, fsdp_gpu_health *health)
{
    if (topology == NULL || health == NULL || gpu >= topology->node.n_gpus) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "fsdp_gpu_health_read: an argument is NULL, or there is no GPU %zu", gpu);
    }
    *health = (fsdp_gpu_health){-1.0, -1.0, -1.0, -1.0, -1.0, -1.0};
    if (topology->smi != NULL && topology->gpus[gpu].smi >= 0) {
        fsdpi_smi_health(topology->smi, topology->gpus[gpu].smi, health);
    }
    return FSDP_OK;
}
