/**
 * @file
 * Who publishes what in blocks, and who takes it: the pattern of a collective.
 */
#ifndef FSDPI_PATTERN_H
#define FSDPI_PATTERN_H

#include "lib/progress/queue.h"

typedef enum fsdpi_pattern {
    FSDPI_GATHER,    /* each its own part; all take all parts */
    FSDPI_SCATTER,   /* each the whole; each takes the reduction of its own part */
    FSDPI_COMBINE,   /* each the whole; each takes the reduction of the whole */
    FSDPI_TO_ROOT,   /* each the whole; the root takes its reduction */
    FSDPI_FROM_ROOT, /* the root the whole; all take it */
    FSDPI_TRANSPOSE  /* each the whole; each takes its own part of every rank's. On one node, or inline in pairs. */
} fsdpi_pattern;

/** A collective whose data can go through blocks. */
typedef struct fsdpi_patterned {
    fsdpi_collective collective; /* first, so that a request leads here */
    fsdpi_pattern    pattern;
} fsdpi_patterned;

static inline fsdpi_pattern fsdpi_pattern_of(const fsdp_request *request)
{
    return ((const fsdpi_patterned *)(const void *)request->call.collective)->pattern;
}

#endif
