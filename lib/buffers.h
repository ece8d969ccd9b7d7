/**
 * @file
 * The symmetric buffers of a context, live ones and those freed last: whose memory is an address in?
 */
#ifndef FSDPI_BUFFERS_H
#define FSDPI_BUFFERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fsdp/buffer.h"
#include "lib/owned.h"
#include "lib/segment.h"

/** Of a position on the node, as this rank sees it. */
typedef struct fsdpi_buffer_part {
    unsigned char *base;  /* NULL: out of reach */
    size_t         begin; /* in the segment */
    size_t         bytes;
} fsdpi_buffer_part;

typedef struct fsdpi_buffer {
    struct fsdpi_buffer *next;
    fsdpi_owned          owned;
    fsdp_context        *ctx;
    fsdp_memory_kind     purpose;
    fsdp_buffer_kind     kind;
    uint32_t             number;  /* the same on all ranks; from 1 */
    fsdpi_segment        segment; /* of host memory */
    unsigned char       *base;    /* of this rank's buffer */
    size_t               bytes;
    bool                 freed; /* its addresses are kept from other use, so that using them is noticed */
    fsdpi_buffer_part    parts[];
} fsdpi_buffer;

typedef struct fsdpi_buffers {
    fsdpi_buffer *live;
    fsdpi_buffer *freed; /* the last ones, latest first */
    fsdpi_buffer *left;  /* on the GPU, which peers may still have open */
    size_t        n_freed;
    size_t        n_per_node; /* live ones of that kind */
    uint32_t      made;
} fsdpi_buffers;

/** The symmetric buffer that holds all of these BYTES, live or freed; NULL if none does. */
fsdpi_buffer *fsdpi_buffer_of(const fsdp_context *ctx, const void *memory, size_t bytes);

/** Where this rank sees an offset into a peer's buffer. */
unsigned char *fsdpi_buffer_at(const fsdp_context *ctx, uint32_t number, int position, uint64_t offset);

/** As fsdp_buffer_alloc() and fsdp_buffer_free(), counted as what it is for. */
fsdp_status fsdpi_buffer_alloc(fsdp_context *ctx, fsdp_buffer_kind kind, fsdp_memory_kind purpose, size_t bytes,
                               void **memory);

/** Releases one on this rank alone, where nothing that was issued here still uses it. NULL does nothing. */
void fsdpi_buffer_drop(fsdp_context *ctx, const void *memory);

/** Releases one of device memory on all ranks, where nothing that was issued still uses it. Collective. NULL does nothing. */
void fsdpi_buffer_free_device(fsdp_context *ctx, const void *memory);

/** BYTES of bookkeeping of one buffer, in a context of `size` ranks. */
size_t fsdpi_buffer_bookkeeping(int size);

/** Forgets the freed ones. */
void fsdpi_buffers_close(fsdp_context *ctx);

#endif
