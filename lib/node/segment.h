/**
 * @file
 * Memory that the ranks of a node share: one segment per node, of which each rank makes its own part its own first.
 */
#ifndef FSDPI_SEGMENT_H
#define FSDPI_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/core.h"
#include "lib/node/nodes.h"

typedef struct fsdpi_segment {
    unsigned char *base;
    size_t         bytes;
    int            file; /* one more than the descriptor that is kept of it; 0: none */
} fsdpi_segment;

typedef struct fsdpi_segment_need {
    size_t      bytes;      /* of the whole, the same on all ranks of the node; not 0 */
    size_t      own, n_own; /* what this rank touches first, so that it lies on its NUMA node: offset and BYTES */
    const char *remedy;     /* where there is no room: "lower FSDP_STAGING_BYTES" */
    bool        mappable;   /* parts of it will be mapped elsewhere too: see fsdpi_window_open() */
} fsdpi_segment_need;

/**
 * Makes a segment. Collective over the ranks of the node; each returns its own verdict, which they still have to agree on.
 * Space is reserved before anything is touched: a file system without room is an error, not a signal.
 *
 * @return FSDP_OK; FSDP_ERR_MEMORY with the detail recorded, for the agreement to print: no room, or the folder cannot be used
 */
fsdp_status fsdpi_segment_open(fsdpi_core *core, const fsdpi_nodes *nodes, const fsdpi_segment_need *need,
                               fsdpi_segment *segment);

/** BYTES that are free in the file system of a folder, as FSDP_SHM_DIR. False where it cannot be looked at. Local. */
bool fsdpi_segment_room(const char *folder, uintmax_t *bytes);

/** Releases this rank's view of it; the memory goes with the last view. Does nothing on an empty segment. Local. */
void fsdpi_segment_close(fsdpi_segment *segment);

/** Releases the memory but keeps the addresses from being given to anything else. Local. */
void fsdpi_segment_bury(fsdpi_segment *segment);

#endif
