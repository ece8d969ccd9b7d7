/**
 * @file
 * Which MPI a process runs. Programs compiled with one MPI's headers can be linked with a library built with another's; the
 * handles of one mean nothing to the other.
 */
#ifndef FSDPI_MPI_LIBRARY_H
#define FSDPI_MPI_LIBRARY_H

#include "fsdp/status.h"

/** FSDP_ERR_UNSUPPORTED, recorded and printed, if this process is known to run another MPI than the library was built with. */
fsdp_status fsdpi_mpi_library_check(void);

#endif
