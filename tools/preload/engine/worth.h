/**
 * @file
 * Which calls are worth taking: a range of bytes for each collective, for communicators on one node and on several.
 *
 * Bytes are those of the full vector: what all ranks send together in an allgather or alltoall, what one rank holds in a
 * reduction or broadcast. Of an alltoallv no rank knows all, and a barrier has none: these count as 0.
 */
#ifndef FSDPI_PRELOAD_WORTH_H
#define FSDPI_PRELOAD_WORTH_H

#include "tools/preload/entry/call.h"

typedef struct fsdpi_worth_range {
    uint64_t from, to; /**< BYTES: taken are from <= bytes <= to, none if `from` is above `to` */
} fsdpi_worth_range;

enum { FSDPI_ONE_NODE = 0, FSDPI_SEVERAL_NODES = 1 };

typedef struct fsdpi_worth {
    fsdpi_worth_range ranges[FSDPI_N_COVERED][2];
} fsdpi_worth;

/** The built-in table. */
void fsdpi_worth_fill(fsdpi_worth *worth);

/**
 * Replaces rows by those of a file: lines of `COLLECTIVE one|several FROM TO` or `COLLECTIVE one|several never`, where TO may
 * be `max`; or, if `path` is "all", makes every call worth taking. What is wrong is named on stderr, and changes nothing.
 */
void fsdpi_worth_read(fsdpi_worth *worth, const char *path);

static inline bool fsdpi_worth_taking(const fsdpi_worth *worth, fsdpi_collective which, int nodes, uint64_t bytes)
{
    const fsdpi_worth_range *range = &worth->ranges[which][nodes];

    return bytes >= range->from && bytes <= range->to;
}

/** Whether any size is, on one node or on several. */
static inline bool fsdpi_worth_ever(const fsdpi_worth *worth, fsdpi_collective which)
{
    const fsdpi_worth_range *ranges = worth->ranges[which];

    return ranges[FSDPI_ONE_NODE].from <= ranges[FSDPI_ONE_NODE].to ||
           ranges[FSDPI_SEVERAL_NODES].from <= ranges[FSDPI_SEVERAL_NODES].to;
}

/** "allreduce" and so on. */
const char *fsdpi_collective_name(fsdpi_collective which);

#endif
