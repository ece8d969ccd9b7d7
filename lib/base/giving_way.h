/**
 * @file
 * Whether giving the core away costs a moment or a time slice. Nobody says so beforehand: where others compute on the core, the
 * scheduler may let them go on until its next tick, milliseconds later (Linux 6.18 also charges the time of a slice to who gives
 * way), while a thread that sleeps comes back when its time is over. So one that has come back late sleeps instead for a while,
 * or leaves it, and then tries again, ever more seldom. Once is no sign yet: a host takes a virtual core away at times. With 64
 * naps after the first time instead of 8, 64 MiB over vader without single copy took the thread alone 1.09 times as long as
 * a blocking call instead of 1.06.
 */
#ifndef FSDPI_GIVING_WAY_H
#define FSDPI_GIVING_WAY_H

#include <stdbool.h>

typedef struct fsdpi_giving_way {
    int left;  /* so many times not, from now on */
    int after; /* the last time that it was late; 0: it was not */
} fsdpi_giving_way;

/** Whether to give the core away now. If so, tell whether that took as long as only others that compute can make it. */
static inline bool fsdpi_may_give_way(fsdpi_giving_way *way)
{
    if (way->left == 0) {
        return true;
    }
    way->left--;
    return false;
}

static inline void fsdpi_gave_way(fsdpi_giving_way *way, bool late)
{
    enum { FEW = 8, MANY = 4096 };

    if (!late) {
        way->after = 0;
    } else if (way->after < MANY) {
        way->after = way->after > 0 ? 2 * way->after : FEW;
    }
    way->left = way->after;
}

/** Whether others compute on the core, as far as is known. */
static inline bool fsdpi_is_crowded(const fsdpi_giving_way *way)
{
    return way->after > 0;
}

#endif
