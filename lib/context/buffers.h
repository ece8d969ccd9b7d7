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
#include "lib/context/owned.h"
#include "lib/node/segment.h"

/** Of a position on the node, as this rank sees it. */
typedef struct fsdpi_buffer_part {
    unsigned char *base; /* NULL: out of reach */
    size_t         bytes;
} fsdpi_buffer_part;

/** Where the buffer of a position lies in the segment of the node. */
typedef struct fsdpi_buffer_place {
    size_t begin, bytes;
} fsdpi_buffer_place;

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
    /* Of each position, at the beginning of the segment, once for all its ranks. NULL: all have the same, as one buffer for
     * the node, or none, or this rank is alone. */
    const fsdpi_buffer_place *places;
    fsdpi_buffer_part         parts[]; /* of each position: on GPUs only */
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
fsdpi_buffer *fsdpi_buffer_of(const fsdpi_buffers *buffers, const void *memory, size_t bytes);

/** What this rank sees of a live buffer at a position. */
fsdpi_buffer_part fsdpi_buffer_part_of(const fsdpi_buffer *buffer, int position);

/** Where this rank sees an offset into a peer's buffer. */
unsigned char *fsdpi_buffer_at(const fsdpi_buffers *buffers, uint32_t number, int position, uint64_t offset);

#endif
