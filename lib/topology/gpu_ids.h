/**
 * @file
 * What GPUs are told by: PCI numbers, and a driver.
 */
#ifndef FSDPI_TOPOLOGY_GPU_IDS_H
#define FSDPI_TOPOLOGY_GPU_IDS_H

#include <stdbool.h>

/** Whether a PCI device computes: class, vendor and device number as PCI has them. */
bool fsdpi_is_compute_gpu(unsigned class_id, unsigned vendor, unsigned device);

/** Whether a driver of AMD's GPUs is loaded. */
bool fsdpi_has_gpu_driver(void);

#endif
