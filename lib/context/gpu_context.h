/**
 * @file
 * Opening and closing what a context has on GPUs; see lib/sync/gpu_streams.h.
 */
#ifndef FSDPI_GPU_CONTEXT_H
#define FSDPI_GPU_CONTEXT_H

#include <stddef.h>

#include "fsdp/context.h"

/** Opens the GPU as FSDP_DEVICE says, and shares what peers need. Collective over the context, behind its mailbox. */
fsdp_status fsdpi_gpu_context_open(fsdp_context *ctx);

/** Closes what is open of peers, who then may release it; and, behind a barrier, all the rest. Collective over the node. */
void fsdpi_gpu_context_leave(fsdp_context *ctx);
void fsdpi_gpu_context_close(fsdp_context *ctx);

/** BYTES of device memory that a context holds from the beginning; and of host memory, one of `size` ranks. For budgets. */
size_t fsdpi_gpu_context_bytes(const fsdp_context *ctx);
size_t fsdpi_gpu_context_host_bytes(const fsdp_context *ctx, int size);

/** Why a context does not use the GPU that a pointer is on. */
const char *fsdpi_gpu_why_none(const fsdp_context *ctx);

#endif
