/**
 * @file
 * How failures are recorded, and the two wrappers that calls go through: FSDP_TRY for ours, FSDPI_TRY_MPI for MPI's. What records one
 * is cold: compilers keep the ways to it apart from those that operations take.
 */
#ifndef FSDPI_ERROR_H
#define FSDPI_ERROR_H

#include <stdarg.h>
#include <stdbool.h>

#include "fsdp/status.h"

/** Returns from the calling function where `call` does not return FSDP_OK. */
#define FSDP_TRY(call)                                                                                                 \
    do {                                                                                                               \
        const fsdp_status fsdpi_status_ = (call);                                                                      \
        if (fsdpi_status_ != FSDP_OK) {                                                                                \
            return fsdpi_status_;                                                                                      \
        }                                                                                                              \
    } while (0)

/** Returns FSDP_ERR_MPI from the calling function, with MPI's own words recorded, where `call` fails. */
#define FSDPI_TRY_MPI(ctx, call)                                                                                       \
    do {                                                                                                               \
        const int fsdpi_code_ = (call);                                                                                \
        if (fsdpi_code_ != MPI_SUCCESS) {                                                                              \
            return fsdpi_fail_mpi((ctx), fsdpi_code_, #call);                                                          \
        }                                                                                                              \
    } while (0)

/**
 * Records a detail and prints it at log level `error`: for the place where a failure is detected.
 * @param[in] ctx  the context concerned; NULL records it for the calling thread
 * @return `status`, so that it can be returned at once
 */
fsdp_status fsdpi_fail(fsdp_context *ctx, fsdp_status status, const char *format, ...)
    __attribute__((cold, format(printf, 3, 4)));

/**
 * As fsdpi_fail(), for what an agreement of all ranks is told next: that prints it, once where several ranks have found the same.
 * Without an agreement, fsdpi_error_print() has to follow.
 */
fsdp_status fsdpi_fail_together(fsdp_context *ctx, fsdp_status status, const char *format, ...)
    __attribute__((cold, format(printf, 3, 4)));

/** Whether what the calling thread has recorded last is still to be printed; from now on whoever asks has to. */
bool fsdpi_error_take_unprinted(void);

/** Prints it, if it is. */
void fsdpi_error_print(fsdp_context *ctx, fsdp_status status) __attribute__((cold));

/** As fsdpi_fail(), without printing: for failures that another rank, or an earlier call, has printed. */
fsdp_status fsdpi_record(fsdp_context *ctx, fsdp_status status, const char *format, ...)
    __attribute__((cold, format(printf, 3, 4)));

/**
 * Where the calling thread records the details of a context from now on, in place of the context's own: whoever carries
 * out an operation of another thread records them with the operation. FSDPI_ERROR_BYTES; NULL: in the context again.
 */
void fsdpi_record_into(char *place);

/** What the calling thread has recorded last for this context; or, if it has not, the last of any thread. */
const char *fsdpi_error_recorded(fsdp_context *ctx);

/** Records what was recorded last for one context for another as well, where `status` is not FSDP_OK and they are two. */
void fsdpi_error_hand_on(fsdp_context *from, fsdp_context *to, fsdp_status status);

/** The error of a context in a process that fork() has made: see lib/context/forks.h. */
fsdp_status fsdpi_fail_copy(fsdp_context *ctx) __attribute__((cold));

/**
 * Records an MPI failure in MPI's words, and marks the context as fit for fsdp_finalize() only.
 * @param[in] call  what has failed, as in the source
 */
fsdp_status fsdpi_fail_mpi(fsdp_context *ctx, int code, const char *call) __attribute__((cold));

#endif
