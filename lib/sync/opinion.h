/**
 * @file
 * What one rank says of an operation, and what several say together: a few words, however many they are.
 *
 * Joining is idempotent: what has been heard twice, by two ways, changes nothing.
 */
#ifndef FSDPI_OPINION_H
#define FSDPI_OPINION_H

#include <stdbool.h>
#include <stdint.h>

#include "fsdp/status.h"

/** What holds on a rank, and, after the agreement, on all. */
typedef enum fsdpi_flags {
    FSDPI_FLAG_OFFERED   = 1,   /* the letter carries the data */
    FSDPI_FLAG_PLACES    = 2,   /* the letter says where the buffers are */
    FSDPI_FLAG_SYMMETRIC = 4,   /* these are symmetric */
    FSDPI_FLAG_SEPARATE  = 8,   /* input and output are different memory */
    FSDPI_FLAG_SHARED    = 16,  /* the output is one buffer for the whole node */
    FSDPI_FLAG_DEVICE    = 64,  /* the buffers are on GPUs */
    FSDPI_FLAG_SAME      = 32,  /* in what several say: all of them call the same */
    FSDPI_FLAG_STILL     = 256, /* no data of earlier operations moves any more */
    FSDPI_FLAG_AGAIN     = 512, /* of two ranks: the input is that of the last allreduce, which has only just ended */
    FSDPI_FLAG_ONE_PLACE = 128  /* likewise, joined in a tree: the output is at one place of one buffer */
} fsdpi_flags;

typedef struct fsdpi_opinion {
    uint64_t call;   /* a hash of what one of them calls; of what all do, if that is the same */
    uint32_t flags;  /* fsdpi_flags that hold for all */
    int32_t  status; /* the highest fsdp_status of any */
} fsdpi_opinion;

/** Adds what others say to `all`. Both have FSDPI_FLAG_SAME where those that they stand for call the same. */
static inline void fsdpi_join(fsdpi_opinion *all, const fsdpi_opinion *others)
{
    if (others->call != all->call) {
        all->flags &= ~(uint32_t)FSDPI_FLAG_SAME;
    }
    all->flags &= others->flags;
    all->status = others->status > all->status ? others->status : all->status;
}

/** Whether all call the same, with arguments that are good. */
static inline bool fsdpi_is_consent(const fsdpi_opinion *all)
{
    return (all->flags & FSDPI_FLAG_SAME) != 0 && all->status == FSDP_OK;
}

/** Whether, besides, all carry their data. */
static inline bool fsdpi_carries(const fsdpi_opinion *all)
{
    return fsdpi_is_consent(all) && (all->flags & FSDPI_FLAG_OFFERED) != 0;
}

#endif
