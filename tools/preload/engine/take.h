/**
 * @file
 * Calls of MPI as calls of the library.
 */
#ifndef FSDPI_PRELOAD_TAKE_H
#define FSDPI_PRELOAD_TAKE_H

#include "fsdp/status.h"
#include "tools/preload/engine/arguments.h"
#include "tools/preload/engine/communicators.h"
#include "tools/preload/engine/types.h"

/** What a call moves, as every rank sees it. */
typedef struct fsdpi_volume {
    uint64_t      bytes;   /**< see worth.h */
    uint64_t      each;    /**< BYTES of a rank's part: allgather, alltoall */
    fsdpi_reduced reduced; /**< of reductions */
} fsdpi_volume;

/** Whether a collective forms sums and the like. */
bool fsdpi_is_reduction(fsdpi_collective which);

/**
 * Finds out what a call moves, and whether the library can do it, as far as all ranks decide that alike. Local.
 *
 * @return FSDPI_TAKEN: it can, unless some rank's own arguments keep it from it; or why not.
 */
fsdpi_fate fsdpi_measure(const fsdpi_arguments *arguments, const fsdpi_communicator *of, fsdpi_volume *volume);

/**
 * Calls the library. Collective. A rank whose own arguments are not for the library calls it too, with some that it refuses.
 *
 * @return FSDP_OK; FSDP_ERR_ARG, FSDP_ERR_MISMATCH, FSDP_ERR_UNSUPPORTED, FSDP_ERR_MEMORY: on all ranks, and nothing has been
 *         moved; others: outputs are undefined.
 */
fsdp_status fsdpi_preload_take(const fsdpi_arguments *arguments, const fsdpi_communicator *of,
                               const fsdpi_volume *volume);

#endif
