/**
 * @file
 * The parts of reading what hwloc knows: memory, kinds of cores, devices, links between GPUs.
 */
#ifndef FSDPI_TOPOLOGY_READ_HWLOC_H
#define FSDPI_TOPOLOGY_READ_HWLOC_H

#include <hwloc.h>

#include "lib/topology/node.h"

/** Hardware threads; those that the format of a mask cannot name are left out. */
fsdp_mask fsdpi_hwloc_mask(hwloc_const_bitmap_t set);

/** The value of that name, else `otherwise`. */
const char *fsdpi_hwloc_info(hwloc_obj_t object, const char *name, const char *otherwise);

void fsdpi_hwloc_address(hwloc_obj_t device, char *address);

/** N of "rsmiN"; -1: another device. */
int fsdpi_hwloc_smi_number(hwloc_obj_t device);

/** The part of a partitioned GPU that a device is: rocm-smi shows each as a device of its own, all with one PCI address. */
int fsdpi_hwloc_part(hwloc_obj_t pci, hwloc_obj_t device);

/**
 * The NUMA nodes that ranks can be on, one for each hardware thread; what other memory there is goes into the topology.
 * @param[out] numas  of the number of the machine's
 */
void fsdpi_hwloc_read_memory(fsdp_topology *topology, hwloc_topology_t hwloc, fsdp_domain *numas);

/** Says of each core of which kind it is. */
void fsdpi_hwloc_read_kinds(fsdp_topology *topology, hwloc_topology_t hwloc, fsdp_domain *cores);

/** Adds GPUs that compute, and network cards. */
void fsdpi_hwloc_read_devices(fsdp_topology *topology, hwloc_topology_t hwloc);

#endif
