/**
 * @file
 * The arguments of a call in C's handles, and the call itself as MPI would have it.
 */
#ifndef FSDPI_PRELOAD_ARGUMENTS_H
#define FSDPI_PRELOAD_ARGUMENTS_H

#include <mpi.h>

#include "tools/preload/entry/call.h"

typedef struct fsdpi_arguments {
    const fsdpi_call *call; /**< counts, lists and the root are there */
    const void       *in;
    void             *out;
    MPI_Datatype      in_type, out_type;
    MPI_Op            op;
    MPI_Comm          comm;
} fsdpi_arguments;

/** Looks up what Fortran's marks are in this process. Once. */
void fsdpi_arguments_open(void);

/** Handles and marks of C, whatever language the call comes from. Local. */
void fsdpi_arguments_of(const fsdpi_call *call, fsdpi_arguments *arguments);

/** An entry of a list of counts or displacements. */
static inline int64_t fsdpi_entry(const fsdpi_call *call, const void *list, int i)
{
    return call->wide ? ((const int64_t *)list)[i] : ((const int *)list)[i];
}

/** Calls MPI. MPI's code. */
int fsdpi_pass(const fsdpi_arguments *arguments);

#endif
