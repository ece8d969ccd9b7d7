/**
 * @file
 * What MPI is given, on the double of the HIP runtime: stands between the library and MPI.
 *
 * A message of device memory ends the program, unless FSDP_GPU_AWARE_MPI is `on`. Then it is sent and received as by an MPI
 * that takes such memory: through copies by the runtime, for which all work on that memory must have been seen to be done.
 */
#ifndef FSDP_TESTS_DEVICE_MPI_H
#define FSDP_TESTS_DEVICE_MPI_H

#include <stddef.h>

/** Messages from and to device memory until now. */
size_t device_mpi_messages(void);

/** What MPI says of itself from now on: the value of `mpi_memory_alloc_kinds`, or NULL; and the version of the library, or NULL
 *  for its own. */
void device_mpi_says(const char *kinds, const char *version);

#endif
