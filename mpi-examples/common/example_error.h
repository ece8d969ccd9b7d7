/**
 * @file
 * How an example ends when something is wrong: together on all ranks, with one message that begins with its name.
 *
 * The library prints its own failures, so that EXAMPLE_TRY only returns. What the program finds out by itself goes through
 * example_fail() where every rank finds the same, and through example_agree() where one rank may find what others do not.
 */
#ifndef EXAMPLE_ERROR_H
#define EXAMPLE_ERROR_H

#include <fsdp/fsdp.h>

/** BYTES of the longest message, with its NUL. */
#define EXAMPLE_MESSAGE_BYTES 256

/** Returns from the calling function where `call` does not return FSDP_OK. */
#define EXAMPLE_TRY(call)                                                                                              \
    do {                                                                                                               \
        const fsdp_status example_status_ = (call);                                                                    \
        if (example_status_ != FSDP_OK) {                                                                              \
            return example_status_;                                                                                    \
        }                                                                                                              \
    } while (0)

/** Whether this is rank 0 of MPI_COMM_WORLD, which speaks for all. Local. */
int example_speaks(void);

/** Rank 0 prints the message. Local; works from MPI_Init() on. @return FSDP_ERR_ARG */
fsdp_status example_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** Collective: FSDP_OK if `message` is empty on all ranks; else rank 0 prints those that are not. */
fsdp_status example_agree(fsdp_context *ctx, const char *message);

/** Whether all that was printed has arrived; if not, says why. To be asked last, behind MPI_Finalize(). Local. */
int example_output_is_written(void);

#endif
