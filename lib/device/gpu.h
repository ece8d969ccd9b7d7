/**
 * @file
 * What can be told about GPUs and their memory. A build without HIP knows of none.
 */
#ifndef FSDPI_GPU_H
#define FSDPI_GPU_H

#include <stdbool.h>

/** How many GPUs this process may use. Prints nothing where there is none, or no driver. */
int fsdpi_gpu_count(void);

/** Whether an address lies in a GPU's memory. Only to be asked where there is a GPU. */
bool fsdpi_is_gpu_memory(const void *address);

#endif
