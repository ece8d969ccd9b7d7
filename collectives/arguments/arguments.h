/**
 * @file
 * Checks the arguments of a collective before anything moves, and issues it.
 */
#ifndef FSDPI_ARGUMENTS_H
#define FSDPI_ARGUMENTS_H

#include "collectives/arguments/memory.h"
#include "lib/context/context.h"
#include "lib/progress/queue.h"

/** What the buffers of a call hold: the whole vector or one rank's part. */
typedef enum fsdpi_extent { FSDPI_NOTHING, FSDPI_PART, FSDPI_WHOLE } fsdpi_extent;

/**
 * Checks pointers, counts, types, root and overlap of a call and issues it: the common end of all collectives.
 * @param[in,out] call     completed: its sizes, where its input really is, and on which memory
 * @param[in]     in, out  how much of the vector the two buffers hold on this rank
 * @param[in]     status   what this rank has found wrong already; then nothing is checked and the call only carries that
 * @param[out]    request  ends with fsdp_wait()
 */
fsdp_status fsdpi_issue_checked(fsdp_context *ctx, fsdpi_call *call, fsdpi_extent in, fsdpi_extent out,
                                fsdp_status status, fsdp_request **request);

/** Runs a call that repeats the last short one, with the same memory or other: nothing else is checked. False: it does not repeat it. */
static inline bool fsdpi_run_again(fsdp_context *ctx, const fsdpi_plain_call *call, fsdp_status *status)
{
    return ctx != NULL && ctx->n_gpus == 0 && ctx->buffers.n_per_node == 0 &&
           fsdpi_queue_run_again(&ctx->queue, call, fsdpi_takes_memory_of, status);
}

/** The same, and waits for it. */
fsdp_status fsdpi_run_checked(fsdp_context *ctx, fsdpi_call *call, fsdpi_extent in, fsdpi_extent out,
                              fsdp_status status);

#endif
