/**
 * @file
 * Whose memory the buffers of a call are: the host's, this rank's GPU's, or none that can be used.
 */
#ifndef FSDPI_ARGUMENTS_MEMORY_H
#define FSDPI_ARGUMENTS_MEMORY_H

#include "lib/progress/queue.h"

/** Sets call->on_device. FSDP_ERR_ARG or FSDP_ERR_UNSUPPORTED if the buffers are of two kinds, or of one that cannot serve. */
fsdp_status fsdpi_check_memory(fsdp_context *ctx, fsdpi_call *call);

#endif
