#include "fashion_batch.h"

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* With mean 0 and deviation 1 over the training set. */
static void load_image(const fashion_batch *batch, size_t index, float *to)
{
    const float          mean = (float)batch->data->mean, scale = (float)(1 / batch->data->deviation);
    const unsigned char *from = batch->set->images + index * FASHION_PIXELS;
    size_t               k;

    for (k = 0; k < FASHION_PIXELS; k++) {
        to[k] = ((float)from[k] - mean) * scale;
    }
}

/* One sampler serves all ranks, which take slices of its order themselves. */
size_t fashion_batch_load(const fashion_batch *batch, const fsdp_context *ctx, float *images, unsigned char *labels)
{
    const fsdp_sampler sampler = {
        .dataset = batch->set->count, .rank = 0, .size = 1, .seed = batch->seed, .shuffle = batch->shuffle};
    const size_t rank = (size_t)fsdp_rank(ctx), ranks = (size_t)fsdp_size(ctx), all = batch->end - batch->begin;
    const size_t begin = batch->begin + rank * (all / ranks) + least(rank, all % ranks);
    const size_t mine  = all / ranks + (rank < all % ranks);
    size_t       i;

    for (i = 0; i < mine; i++) {
        const size_t index = fsdp_sampler_index(&sampler, batch->epoch, begin + i);

        load_image(batch, index, images + i * FASHION_PIXELS);
        labels[i] = batch->set->labels[index];
    }
    return mine;
}
