/* Links between GPUs, from what hwloc has recorded of rocm-smi and of NVIDIA's library. */
#include <stdlib.h>
#include <string.h>

#include "lib/topology/read_hwloc.h"

static int gpu_of_device(const fsdp_topology *topology, hwloc_obj_t device)
{
    hwloc_obj_t named = device;
    char        address[FSDP_ADDRESS_BYTES];

    while (device != NULL && device->type == HWLOC_OBJ_OS_DEVICE) {
        device = device->parent;
    }
    if (device == NULL || device->type != HWLOC_OBJ_PCI_DEVICE) {
        return -1;
    }
    fsdpi_hwloc_address(device, address);
    return fsdpi_node_gpu(&topology->node, address, named != device ? fsdpi_hwloc_part(device, named) : 0);
}

/* MB per second between devices. A link of more than is known is taken. */
static void take_links(fsdp_topology *topology, const struct hwloc_distances_s *matrix, fsdp_link_type type)
{
    for (unsigned i = 0; i < matrix->nbobjs; i++) {
        for (unsigned j = 0; j < matrix->nbobjs; j++) {
            const int from = gpu_of_device(topology, matrix->objs[i]), to = gpu_of_device(topology, matrix->objs[j]);
            const uint64_t rate = matrix->values[i * matrix->nbobjs + j];
            fsdp_link     *link = from >= 0 && to >= 0 && from != to
                                      ? &topology->links[(size_t)from * topology->node.n_gpus + (size_t)to]
                                      : NULL;

            if (link != NULL && rate > link->max_bandwidth) {
                link->type          = type;
                link->max_bandwidth = rate;
            }
        }
    }
}

/* GPUs behind NVSwitch are linked to ports of it, and not to each other. hwloc makes one switch of the ports, and links
   of what passes through it; those that are direct are lost in that, and taken before. */
static void read_bandwidths(fsdp_topology *topology, hwloc_topology_t hwloc, const char *name, fsdp_link_type type)
{
    struct hwloc_distances_s *found[1];
    unsigned                  n = 1;

    if (hwloc_distances_get_by_name(hwloc, name, &n, found, 0) != 0 || n == 0) {
        return;
    }
    take_links(topology, found[0], type);
    if (hwloc_distances_transform(hwloc, found[0], HWLOC_DISTANCES_TRANSFORM_MERGE_SWITCH_PORTS, NULL, 0) == 0 &&
        hwloc_distances_transform(hwloc, found[0], HWLOC_DISTANCES_TRANSFORM_TRANSITIVE_CLOSURE, NULL, 0) == 0) {
        take_links(topology, found[0], type);
    }
    hwloc_distances_release(hwloc, found[0]);
}

/* "rsmi1 rsmi2 ": the GPUs that one is linked to, by rocm-smi's numbers. */
static void read_peers(fsdp_topology *topology, size_t from)
{
    const size_t n    = topology->node.n_gpus;
    const char  *peer = topology->peers[from];

    while ((peer = strstr(peer, "rsmi")) != NULL) {
        peer += 4;
        const long smi = strtol(peer, NULL, 10);
        for (size_t to = 0; to < n; to++) {
            if (to != from && topology->gpus[to].smi == smi) {
                topology->links[from * n + to].type = FSDP_LINK_XGMI;
            }
        }
    }
}

void fsdpi_node_read_links(fsdp_topology *topology)
{
    hwloc_topology_t hwloc = topology->hwloc;

    if (hwloc == NULL) {
        return;
    }
    for (size_t g = 0; g < topology->node.n_gpus; g++) {
        read_peers(topology, g);
    }
    read_bandwidths(topology, hwloc, "NVLinkBandwidth", FSDP_LINK_NVLINK);
    read_bandwidths(topology, hwloc, "XGMIBandwidth", FSDP_LINK_XGMI);
    hwloc_topology_destroy(hwloc);
    topology->hwloc = NULL;
}
