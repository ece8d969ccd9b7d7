/**
 * @file
 * Which calls are worth taking: a range of bytes for each collective, for communicators on one node, and on several with a fast
 * network between them or a slow one.
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

/** Where the ranks of a communicator are. A network is slow that fsdp_init() has found to be: about 12 Gbit/s or less. */
typedef enum fsdpi_span { FSDPI_ONE_NODE, FSDPI_FAST_NETWORK, FSDPI_SLOW_NETWORK, FSDPI_SPANS } fsdpi_span;

typedef struct fsdpi_worth {
    fsdpi_worth_range ranges[FSDPI_N_COVERED][FSDPI_SPANS];
} fsdpi_worth;

/** The built-in table. */
void fsdpi_worth_fill(fsdpi_worth *worth);

/**
 * Replaces rows by those of a file: lines of `COLLECTIVE NODES FROM TO` or `COLLECTIVE NODES never`, where NODES are one, several,
 * or, of several, fast or slow, and TO may be `max`; or, if `path` is "all", makes every call worth taking. What is wrong is named on
 * stderr, and changes nothing.
 */
void fsdpi_worth_read(fsdpi_worth *worth, const char *path);

static inline bool fsdpi_worth_taking(const fsdpi_worth *worth, fsdpi_collective which, fsdpi_span span, uint64_t bytes)
{
    const fsdpi_worth_range *range = &worth->ranges[which][span];

    return bytes >= range->from && bytes <= range->to;
}

/** Whether a call may be worth taking: before there is a context nobody knows where the ranks are. */
static inline bool fsdpi_worth_considering(const fsdpi_worth *worth, fsdpi_collective which, uint64_t bytes)
{
    bool may_be = false;

    for (int span = 0; span < FSDPI_SPANS; span++) {
        may_be = may_be || fsdpi_worth_taking(worth, which, (fsdpi_span)span, bytes);
    }
    return may_be;
}

/** Whether any size is, anywhere. */
bool fsdpi_worth_ever(const fsdpi_worth *worth, fsdpi_collective which);

/** "allreduce" and so on. */
const char *fsdpi_collective_name(fsdpi_collective which);

#endif
