/**
 * @file
 * What becomes of a context that is still open when MPI ends: its operations are completed and its thread is stopped while
 * MPI still works, so that nothing calls MPI afterwards. It can then only be finalized.
 */
#ifndef FSDPI_MPI_END_H
#define FSDPI_MPI_END_H

#include "fsdp/context.h"

/** From now on MPI_Finalize() does that first. Local. */
fsdp_status fsdpi_mpi_end_expect(fsdp_context *ctx);

/** It need not any more: the context is closed. Local; does nothing where MPI has ended. */
void fsdpi_mpi_end_forget(fsdp_context *ctx);

#endif
