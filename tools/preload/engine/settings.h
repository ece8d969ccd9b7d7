/**
 * @file
 * The drop-in's own settings, FSDP_MPI_*: read by rank 0 of MPI_COMM_WORLD, the same on all ranks from then on.
 */
#ifndef FSDPI_PRELOAD_SETTINGS_H
#define FSDPI_PRELOAD_SETTINGS_H

#include "tools/preload/engine/worth.h"

/** One struct for all: variable, default, what it accepts, help. */
#define FSDPI_PRELOAD_SETTINGS(X)                                                                                      \
    X("FSDP_MPI", "on", "on|off", "off: all calls go to MPI")                                                          \
    X("FSDP_MPI_REPORT", "", "a file, or - for stderr", "what was called and what became of it")                       \
    X("FSDP_MPI_COMPARE", "0", "0|1", "every other call goes to MPI, and both are timed")                              \
    X("FSDP_MPI_CONTEXTS", "16", "0 to 1000000", "communicators that may have a context at the same time")             \
    X("FSDP_MPI_AFTER", "8M", "bytes", "what a communicator moves before it gets a context")                           \
    X("FSDP_MPI_TABLE", "", "a file, or all", "which calls are taken")

typedef struct fsdpi_preload_settings {
    bool        reports, compares;
    int         contexts;
    uint64_t    after; /**< BYTES */
    fsdpi_worth worth;
} fsdpi_preload_settings;

/** Of all ranks; set by fsdpi_preload_settings_read() on rank 0, and by whoever hands them round on the others. */
extern fsdpi_preload_settings fsdpi_preload;

/** Reads the environment. A value that makes no sense is named on stderr, and the default taken. Local. */
void fsdpi_preload_settings_read(void);

#endif
