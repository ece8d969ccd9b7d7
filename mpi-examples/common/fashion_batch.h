/**
 * @file
 * The part of a batch that is a rank's: images as numbers with mean 0 and deviation 1, in an order drawn anew each epoch.
 */
#ifndef FASHION_BATCH_H
#define FASHION_BATCH_H

#include "fashion_data.h"

/** Images number `begin` up to `end` of an epoch's order, over all ranks. */
typedef struct fashion_batch {
    const fashion_data *data;
    const fashion_set  *set;
    size_t              seed, epoch;
    int                 shuffle;
    size_t              begin, end;
} fashion_batch;

/**
 * Loads this rank's part. So the images of a step do not depend on the number of ranks. Local.
 *
 * @param[out] images  FASHION_PIXELS for each
 * @return how many: as many as on other ranks, or one more or less
 */
size_t fashion_batch_load(const fashion_batch *batch, const fsdp_context *ctx, float *images, unsigned char *labels);

#endif
