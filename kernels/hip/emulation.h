/**
 * @file
 * What the kernels need where an ordinary C++ compiler compiles them, which is for a double of the runtime in tests: it
 * runs them, thread after thread, and shows them the device's memory.
 */
#ifndef FSDPI_KERNELS_HIP_EMULATION_H
#define FSDPI_KERNELS_HIP_EMULATION_H

#include <stddef.h>

#include "fsdp/export.h"

FSDP_EXTERN_C_BEGIN

/**
 * Puts a kernel into a stream: `run` is called once, with a copy of the kernel's arguments, and the number of threads to go through.
 * @param[in] work  threads that have something to do
 * @return as hipLaunchKernel()
 */
int fsdpi_emulate_launch(const void *arguments, size_t bytes, void (*run)(const void *arguments, size_t n_threads),
                         size_t work, void *stream);

/** Where a kernel finds BYTES of device memory, which it is about to read or to write. Only called from `run`. */
void *fsdpi_emulate_access(const void *address, size_t bytes, int writes);

FSDP_EXTERN_C_END

#endif
