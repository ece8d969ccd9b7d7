/*
 * What the listings share: how they end when a call fails. The library has printed why by then, once, where it was detected.
 */
#ifndef LISTING_H
#define LISTING_H

#include <stdio.h>
#include <stdlib.h>

#include <fsdp/fsdp.h>

#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        if ((call) != FSDP_OK) {                                                                                       \
            return EXIT_FAILURE;                                                                                       \
        }                                                                                                              \
    } while (0)

/* Runs `body` in a context over all ranks. */
static int listing_run(int argc, char **argv, int (*body)(fsdp_context *ctx, int argc, char **argv))
{
    fsdp_context *ctx;
    int           result = EXIT_FAILURE, provided;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    if (fsdp_init(MPI_COMM_WORLD, NULL, &ctx) == FSDP_OK) {
        result = body(ctx, argc, argv);
        if (fsdp_finalize(ctx) != FSDP_OK) {
            MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE); /* MPI_Finalize() would wait for a rank that is gone */
        }
    }
    MPI_Finalize();
    return result;
}

#endif
