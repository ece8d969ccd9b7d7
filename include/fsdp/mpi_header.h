/**
 * @file
 * <mpi.h>. A program has to be compiled with the MPI that the library was built with: where these headers come from a build or
 * from an installed library, any other MPI is an error of the compiler's. fsdp_init() looks once more, when the program runs.
 */
#ifndef FSDP_MPI_HEADER_H
#define FSDP_MPI_HEADER_H

#include <mpi.h>

#if defined(__has_include)
#if __has_include(<fsdp/built_with_mpi.h>)
#include <fsdp/built_with_mpi.h>
#endif
#endif

#endif
