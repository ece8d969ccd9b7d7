/**
 * @file
 * Finds MPI in this process, and loads the engine when MPI runs.
 */
#ifndef FSDPI_PRELOAD_LOAD_H
#define FSDPI_PRELOAD_LOAD_H

#include "tools/preload/entry/call.h"

/** The engine; NULL before MPI_Init() and after MPI_Finalize(), and where the drop-in stands aside. */
extern const fsdpi_engine_table *fsdpi_engine;

/**
 * The function that a call would reach without the drop-in. Ends the process with a message where there is none, since
 * whoever called it can neither go on nor be told.
 *
 * @param[in] name  PMPI_Bcast or, of Fortran, mpi_bcast_ and the like
 */
void *fsdpi_next(const char *name);

/** To be called when MPI_Init() has succeeded. */
void fsdpi_engine_load(void);

/** To be called before MPI_Finalize(). */
void fsdpi_engine_unload(void);

#endif
