/**
 * @file
 * Whose memory the buffers of a call are: the host's, this rank's GPU's, or none that can be used.
 */
#ifndef FSDPI_ARGUMENTS_MEMORY_H
#define FSDPI_ARGUMENTS_MEMORY_H

#include <stdbool.h>

#include "lib/progress/queue.h"

/**
 * Whether a buffer of `function` is in the memory of this rank's GPU; not where it has no bytes. FSDP_ERR_UNSUPPORTED if the context
 * uses no GPU, FSDP_ERR_ARG if it uses another one: recorded, for an agreement to print, or for fsdpi_error_print().
 */
fsdp_status fsdpi_is_on_device_of(fsdp_context *ctx, const char *function, const void *buffer, size_t bytes,
                                  bool *on_device);

/** Sets call->on_device. FSDP_ERR_ARG or FSDP_ERR_UNSUPPORTED if the buffers are of two kinds, or of one that cannot serve. */
fsdp_status fsdpi_check_memory(fsdp_context *ctx, fsdpi_call *call);

/** See fsdpi_queue_run_again(). */
bool fsdpi_takes_memory_of(fsdp_request *request, const fsdpi_plain_call *call);

#endif
