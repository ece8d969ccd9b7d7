/**
 * @file
 * Device memory for what lasts no longer than the kernels of one call. A context has one piece of it, as large as the largest call has
 * asked for.
 */
#ifndef FSDPI_GPU_SCRATCH_H
#define FSDPI_GPU_SCRATCH_H

#include <stddef.h>

#include "fsdp/context.h"

/**
 * Memory of the context's GPU, `bytes` of it, aligned to FSDPI_ALIGNMENT. What comes into the caller's stream from then on may use it,
 * up to fsdpi_gpu_scratch_leave(), which follows on the same thread; other threads wait. Undefined to begin with.
 * @return FSDP_OK; FSDP_ERR_MEMORY, FSDP_ERR_DEVICE: nothing is taken.
 */
fsdp_status fsdpi_gpu_scratch_take(fsdp_context *ctx, size_t bytes, void **memory);

/** What is in the caller's stream by now is all that uses the memory. */
fsdp_status fsdpi_gpu_scratch_leave(fsdp_context *ctx);

/** Opens nothing but a lock; and releases all, with the streams idle. */
void fsdpi_gpu_scratch_open(fsdp_context *ctx);
void fsdpi_gpu_scratch_close(fsdp_context *ctx);

#endif
