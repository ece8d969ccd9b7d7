/**
 * @file
 * What can be told about GPUs and their memory. A build without HIP knows of none.
 */
#ifndef FSDPI_GPU_H
#define FSDPI_GPU_H

#include <stdbool.h>
#include <stddef.h>

/** Whether there is a GPU runtime to ask: this build is for one, and it is installed. */
bool fsdpi_gpu_has_runtime(void);

/** Why fsdpi_gpu_count() is 0. */
const char *fsdpi_gpu_missing(void);

/** How many GPUs this process may use. Prints nothing where there is none, or no driver. */
int fsdpi_gpu_count(void);

/** The PCI address of one of them, "0000:c1:00.0", cut after `size` BYTES. False where the runtime does not say. */
bool fsdpi_gpu_address(int device, char *address, size_t size);

/** The one that the calling thread uses now; -1: none. 0 where nobody has chosen. */
int fsdpi_gpu_selected(void);

/** Makes the calling thread use one. */
bool fsdpi_gpu_select(int device);

/** Whether an address lies in a GPU's memory. Only to be asked where there is a GPU. */
bool fsdpi_is_gpu_memory(const void *address);

#endif
