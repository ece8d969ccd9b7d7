#include "mlp_data.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mpi-examples/common/example_error.h"

#define TRAIN_IMAGES 6000
#define TEST_IMAGES  1000

/* Of the generator of random numbers. */
enum { PATTERN_STREAM, TRAIN_STREAM, TEST_STREAM };

/* Each image is half the pattern of its class and half noise. */
static int make_up(fashion_set *set, size_t count, uint64_t stream)
{
    set->count  = count;
    set->images = malloc(count * FASHION_PIXELS);
    set->labels = malloc(count);
    if (!set->images || !set->labels) {
        return 0;
    }
    for (size_t i = 0; i < count; i++) {
        set->labels[i] = (unsigned char)(i % FASHION_CLASSES);
        for (size_t k = 0; k < FASHION_PIXELS; k++) {
            const uint64_t of_class = set->labels[i] * (uint64_t)FASHION_PIXELS + k, of_image = i * FASHION_PIXELS + k;

            set->images[of_image] = (unsigned char)(127 * fsdp_random_uniform(1, PATTERN_STREAM, of_class) +
                                                    127 * fsdp_random_uniform(1, stream, of_image));
        }
    }
    return 1;
}

static size_t or_all(size_t wanted, size_t all)
{
    return wanted && wanted < all ? wanted : all;
}

static fsdp_status make_up_all(fsdp_context *ctx, const fashion_data_options *options, fashion_data *data)
{
    int         ok;
    fsdp_status status;

    *data = (fashion_data){0};
    ok    = make_up(&data->train, or_all(options->train_images, TRAIN_IMAGES), TRAIN_STREAM) &&
         make_up(&data->test, or_all(options->test_images, TEST_IMAGES), TEST_STREAM);
    status = example_agree(ctx, ok ? "" : "no memory for the images; use --train-images");
    if (status != FSDP_OK) {
        fashion_data_release(data);
        return status;
    }
    fashion_data_measure(data);
    return FSDP_OK;
}

/* As rank 0 sees it, on all ranks. */
static fsdp_status look_for(fsdp_context *ctx, const char *folder, int *there)
{
    int32_t found = access(folder, R_OK | X_OK) == 0;

    EXAMPLE_TRY(fsdp_broadcast(ctx, &found, 1, FSDP_I32, 0));
    *there = found;
    return FSDP_OK;
}

fsdp_status mlp_data_load(fsdp_context *ctx, const mlp_options *options, fashion_data *data, const char **source)
{
    fashion_data_options from    = options->data;
    int                  made_up = strcmp(from.folder, MLP_DATA_MADE_UP) == 0, there = 1;

    if (strcmp(from.folder, MLP_DATA_AUTO) == 0) {
        from.folder = FASHION_DATA_FOLDER;
        EXAMPLE_TRY(look_for(ctx, from.folder, &there));
        made_up = !there;
    }
    *source = made_up ? MLP_DATA_MADE_UP : from.folder;
    return made_up ? make_up_all(ctx, &from, data) : fashion_data_load(ctx, &from, data);
}
