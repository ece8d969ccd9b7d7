/**
 * @file
 * rocm-smi's library, loaded while the program runs, where it is installed and there is a driver. A build needs nothing
 * of it. It counts devices its own way: they are found by PCI address.
 */
#ifndef FSDPI_TOPOLOGY_ROCM_SMI_H
#define FSDPI_TOPOLOGY_ROCM_SMI_H

#include <stdbool.h>
#include <stddef.h>

#include "fsdp/topology.h"

typedef struct fsdpi_smi fsdpi_smi;

/**
 * Loads and initialises it. Prints nothing: without a driver rsmi_init() would.
 * @param[out] why  FSDP_REASON_BYTES: what was found, or why there is nothing
 * @return NULL: not there
 */
fsdpi_smi *fsdpi_smi_open(char *why);
void       fsdpi_smi_close(fsdpi_smi *smi);

/** How many devices it knows. */
int fsdpi_smi_count(const fsdpi_smi *smi);

/** What it knows of one: address, bytes, hive. `numa` is the system's number of its NUMA node, -1: unknown. */
bool fsdpi_smi_device(const fsdpi_smi *smi, int device, fsdp_gpu *gpu, int *numa);

/** The link between two. False: nothing is known of it. */
bool fsdpi_smi_link(const fsdpi_smi *smi, int from, int to, fsdp_link *link);

/** What cannot be told is negative. */
void fsdpi_smi_health(const fsdpi_smi *smi, int device, fsdp_gpu_health *health);

#endif
