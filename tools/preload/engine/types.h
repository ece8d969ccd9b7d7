/**
 * @file
 * What the types and operations of MPI are to the library.
 */
#ifndef FSDPI_PRELOAD_TYPES_H
#define FSDPI_PRELOAD_TYPES_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "fsdp/dtype.h"

/** How a type is moved. */
typedef struct fsdpi_moved {
    uint64_t size;       /**< BYTES of one element's data */
    bool     contiguous; /**< so many bytes without gaps, in their order: moved as bytes */
} fsdpi_moved;

/** What an element is reduced as. */
typedef struct fsdpi_reduced {
    fsdp_dtype dtype;
    fsdp_redop op;
    uint64_t   parts; /**< 2 for complex numbers, else 1 */
    uint64_t   size;  /**< BYTES */
} fsdpi_reduced;

typedef enum fsdpi_reducible { FSDPI_REDUCIBLE, FSDPI_NOT_THIS_TYPE, FSDPI_NOT_THIS_OP } fsdpi_reducible;

/** Prepares the tables below. MPI's code. Once, before anything else here. */
int fsdpi_types_open(void);

/** Local. A null type is of size 0. */
fsdpi_moved fsdpi_type_moved(MPI_Datatype type);

/** Local, and the same on all ranks: a named type that the library has, and an operation that is MPI's own. */
fsdpi_reducible fsdpi_type_reduced(MPI_Datatype type, MPI_Op op, fsdpi_reduced *reduced);

#endif
