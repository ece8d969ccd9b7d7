/**
 * @file
 * What the drop-in knows of a communicator, and the context that it gets once it has moved enough.
 *
 * Kept as an attribute, so that it goes with the communicator and does not come along when that is duplicated. A few are found
 * again by their handle alone.
 */
#ifndef FSDPI_PRELOAD_COMMUNICATORS_H
#define FSDPI_PRELOAD_COMMUNICATORS_H

#include <mpi.h>
#include <stdatomic.h>
#include <stddef.h>

#include "fsdp/context.h"
#include "tools/preload/engine/worth.h"
#include "tools/preload/entry/call.h"

/** Why a call goes to MPI, or that it does not: name, text. */
#define FSDPI_FATES(X)                                                                                                 \
    X(FSDPI_TAKEN, "taken")                                                                                            \
    X(FSDPI_COMPARED, "compared")                                                                                      \
    X(FSDPI_ALONE, "one rank")                                                                                         \
    X(FSDPI_INTER, "inter-communicator")                                                                               \
    X(FSDPI_UNKNOWN_COMM, "no communicator")                                                                           \
    X(FSDPI_TOO_NEW, "communicator has moved little")                                                                  \
    X(FSDPI_TOO_MANY, "too many contexts")                                                                             \
    X(FSDPI_NO_CONTEXT, "no context")                                                                                  \
    X(FSDPI_NOT_WORTH, "size")                                                                                         \
    X(FSDPI_TYPE, "type")                                                                                              \
    X(FSDPI_OP, "operation")                                                                                           \
    X(FSDPI_ARGUMENT, "argument")                                                                                      \
    X(FSDPI_SOME_RANK, "a rank cannot")                                                                                \
    X(FSDPI_NONBLOCKING, "not blocking")

#define FSDPI_FATE_ENUMERATOR(name, text) name,
typedef enum fsdpi_fate { FSDPI_FATES(FSDPI_FATE_ENUMERATOR) FSDPI_N_FATES } fsdpi_fate;
#undef FSDPI_FATE_ENUMERATOR

typedef struct fsdpi_communicator {
    _Atomic MPI_Comm handle; /**< MPI_COMM_NULL while nobody's */
    int              size, rank;
    fsdpi_fate       fate;  /**< FSDPI_TAKEN, FSDPI_TOO_NEW; or for good what stands in the way */
    uint64_t         moved; /**< BYTES of the calls that would have been taken */
    fsdp_context    *ctx;   /**< where `fate` is FSDPI_TAKEN */
    fsdpi_span       span;  /**< with a context */
    size_t          *lists; /**< with a context, room for four of them, of `size` entries */
    unsigned         pause[FSDPI_N_COVERED],
        pauses[FSDPI_N_COVERED];                       /**< calls to go without being asked; the last such number */
    unsigned                   turns[FSDPI_N_COVERED]; /**< calls compared */
    struct fsdpi_communicator *next;                   /**< of those that are nobody's */
} fsdpi_communicator;

/** MPI's code. Once. */
int fsdpi_communicators_open(void);

/** From now on no communicator's end touches its context: MPI_Finalize() is near. */
void fsdpi_communicators_close(void);

/** What is known of a communicator. Local. NULL: it is none. */
fsdpi_communicator *fsdpi_communicator_of(MPI_Comm comm);

/**
 * Counts what a call moves, and opens a context when that is enough. Collective over the communicator then; every rank decides
 * alike. Its fate is FSDPI_TAKEN afterwards if there is a context.
 *
 * @param[in] bytes  the same on all ranks
 */
void fsdpi_communicator_moves(fsdpi_communicator *of, uint64_t bytes);

#endif
