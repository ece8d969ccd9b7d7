/**
 * @file
 * Allocating and freeing the symmetric buffers of a context.
 */
#ifndef FSDPI_BUFFER_ALLOC_H
#define FSDPI_BUFFER_ALLOC_H

#include <stdbool.h>
#include <stddef.h>

#include "fsdp/buffer.h"
#include "fsdp/context.h"

/**
 * As fsdp_buffer_alloc() and fsdp_buffer_free(), counted as what it is for.
 * @param[in] mappable  parts of it, in host memory, will be mapped elsewhere too: see lib/node/window.h
 */
fsdp_status fsdpi_buffer_alloc(fsdp_context *ctx, fsdp_buffer_kind kind, fsdp_memory_kind purpose, size_t bytes,
                               bool mappable, void **memory);

/** Releases one on this rank alone, where nothing that was issued here still uses it. NULL does nothing. */
void fsdpi_buffer_drop(fsdp_context *ctx, const void *memory);

/** Releases one of device memory on all ranks, where nothing that was issued still uses it. Collective. NULL does nothing. */
void fsdpi_buffer_free_device(fsdp_context *ctx, const void *memory);

/** BYTES of bookkeeping of one buffer, in a context of `size` ranks; of host memory the same for any. */
size_t fsdpi_buffer_bookkeeping(fsdp_buffer_kind kind, int size);

/** Forgets the freed ones. */
void fsdpi_buffers_close(fsdp_context *ctx);

#endif
