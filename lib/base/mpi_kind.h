/**
 * @file
 * Which MPI a text of MPI_Get_library_version() is about. Needs no MPI: what does not know yet which one runs asks this.
 */
#ifndef FSDPI_MPI_KIND_H
#define FSDPI_MPI_KIND_H

/** "Open MPI", "MPICH" (and what is derived from them), or NULL: unknown. */
const char *fsdpi_mpi_kind(const char *library_version);

#endif
