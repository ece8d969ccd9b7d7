/**
 * @file
 * Which MPI a process runs. Programs compiled with one MPI's headers can be linked with a library built with another's; the
 * handles of one mean nothing to the other.
 */
#ifndef FSDPI_MPI_LIBRARY_H
#define FSDPI_MPI_LIBRARY_H

#include "fsdp/status.h"

/**
 * The kind of MPI that a text of MPI_Get_library_version() is about: "Open MPI", "MPICH" (and what is derived from them); or
 * NULL: unknown.
 */
const char *fsdpi_mpi_kind(const char *library_version);

/** FSDP_ERR_UNSUPPORTED, recorded and printed, if this process is known to run another MPI than the library was built with. */
fsdp_status fsdpi_mpi_library_check(void);

#endif
