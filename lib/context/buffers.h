/**
 * @file
 * The symmetric buffers of a context, live ones and those freed last: whose memory is an address in?
 */
#ifndef FSDPI_BUFFERS_H
#define FSDPI_BUFFERS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fsdp/buffer.h"
#include "lib/base/lock.h"
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
    bool                 mappable;
    bool                 freed; /* its addresses are kept from other use, so that using them is noticed */
    /* Of each position, at the beginning of the segment, once for all its ranks. NULL: all have the same, as one buffer for
     * the node, or none, or this rank is alone. */
    const fsdpi_buffer_place *places;
    fsdpi_buffer_part         parts[]; /* of each position: on GPUs only */
} fsdpi_buffer;

/* The thread that carries operations out looks buffers up while others add some and take some away. */
typedef struct fsdpi_buffers {
    fsdpi_lock              lock; /* over both lists, and the `next` of what is in them */
    _Atomic(fsdpi_buffer *) live;
    _Atomic(fsdpi_buffer *) freed; /* the last ones, latest first */
    fsdpi_buffer           *left;  /* on the GPU, which peers may still have open */
    _Atomic size_t          n_freed;
    _Atomic size_t          n_per_node; /* live ones of that kind */
    uint32_t                made;
} fsdpi_buffers;

/**
 * The symmetric buffer that holds all of these BYTES, live or freed; NULL if none does. It stays for as long as the program
 * may use that memory.
 */
fsdpi_buffer *fsdpi_buffer_of(fsdpi_buffers *buffers, const void *memory, size_t bytes);

/** The live one that begins there, or any where that is NULL; and the one of a number. NULL if there is none. */
fsdpi_buffer *fsdpi_buffer_beginning_at(fsdpi_buffers *buffers, const void *memory);
fsdpi_buffer *fsdpi_buffer_numbered(fsdpi_buffers *buffers, uint32_t number);

/** What this rank sees of a live buffer at a position. */
fsdpi_buffer_part fsdpi_buffer_part_of(const fsdpi_buffer *buffer, int position);

/** Where this rank sees an offset into a peer's buffer. */
unsigned char *fsdpi_buffer_at(fsdpi_buffers *buffers, uint32_t number, int position, uint64_t offset);

/** Puts a buffer on the list of live ones, and takes it off. */
void fsdpi_buffer_enter(fsdpi_buffers *buffers, fsdpi_buffer *buffer);
void fsdpi_buffer_leave(fsdpi_buffers *buffers, const fsdpi_buffer *buffer);

/** Puts one that has left on the list of freed ones; takes the oldest off that list and returns it, where there are more than `most`. */
void          fsdpi_buffer_bury(fsdpi_buffers *buffers, fsdpi_buffer *buffer);
fsdpi_buffer *fsdpi_buffer_oldest(fsdpi_buffers *buffers, size_t most);

#endif
