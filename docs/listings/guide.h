/*
 * What the guides share: a network of three layers learns a function of four numbers by SGD. Each layer is a unit. Names, initial
 * values and batches are the same in all guides, so that they print the same losses; they differ in who computes a layer.
 */
#ifndef GUIDE_H
#define GUIDE_H

#include <math.h>
#include <string.h>

#include "listing.h"

enum { LAYERS = 3, SAMPLES = 16, STEPS = 50, WEIGHT = 0, BIAS = 1 };

static const size_t widths[LAYERS + 1] = {4, 64, 48, 1};

typedef struct guide {
    fsdp_context   *ctx;
    fsdp_model     *model;
    fsdp_unit      *layers[LAYERS];
    fsdp_optimizer *optimizer;
    float           x[SAMPLES * 4], target[SAMPLES]; /* this rank's batch */
} guide;

static int guide_add_layer(guide *g, size_t i)
{
    static const char *const names[LAYERS][3] = {
        {"h.0", "h.0.weight", "h.0.bias"}, {"h.1", "h.1.weight", "h.1.bias"}, {"h.2", "h.2.weight", "h.2.bias"}};
    fsdp_tensor tensors[2];

    memset(tensors, 0, sizeof tensors);
    tensors[WEIGHT].name     = names[i][1];
    tensors[WEIGHT].n_dims   = 2;
    tensors[WEIGHT].shape[0] = widths[i + 1];
    tensors[WEIGHT].shape[1] = widths[i];
    tensors[WEIGHT].dtype    = FSDP_F32;
    tensors[WEIGHT].fill     = FSDP_FILL_NORMAL;
    tensors[WEIGHT].b        = 1.0 / sqrt((double)widths[i]);
    tensors[BIAS].name       = names[i][2];
    tensors[BIAS].n_dims     = 1;
    tensors[BIAS].shape[0]   = widths[i + 1];
    tensors[BIAS].dtype      = FSDP_F32;
    TRY(fsdp_unit_add(g->model, names[i][0], tensors, 2, &g->layers[i]));
    return EXIT_SUCCESS;
}

/* `fixed_addresses`: as in fsdp_model_options. */
static int guide_open(guide *g, fsdp_context *ctx, int fixed_addresses)
{
    fsdp_model_options     options = FSDP_MODEL_OPTIONS_DEFAULT;
    fsdp_optimizer_options sgd;

    g->ctx                  = ctx;
    options.fixed_addresses = fixed_addresses;
    TRY(fsdp_model_create(ctx, &options, &g->model));
    for (size_t i = 0; i < LAYERS; i++) {
        if (guide_add_layer(g, i) != EXIT_SUCCESS) {
            return EXIT_FAILURE;
        }
    }
    TRY(fsdp_model_commit(g->model));
    TRY(fsdp_optimizer_options_init(FSDP_SGD, &sgd));
    sgd.lr           = 0.05;
    sgd.weight_decay = 0.0;
    TRY(fsdp_optimizer_create(g->model, &sgd, &g->optimizer));
    return EXIT_SUCCESS;
}

/* Every rank draws samples of its own, the same in every run. */
static void guide_draw_batch(guide *g, size_t step)
{
    const size_t first = (step * (size_t)fsdp_size(g->ctx) + (size_t)fsdp_rank(g->ctx)) * SAMPLES;

    for (size_t s = 0; s < SAMPLES; s++) {
        float sum = 0.0F;
        for (size_t i = 0; i < 4; i++) {
            g->x[4 * s + i] = 2.0F * (float)fsdp_random_uniform(1, i, first + s) - 1.0F;
            sum += g->x[4 * s + i] * 0.25F * (float)(i + 1);
        }
        g->target[s] = sinf(sum);
    }
}

/* The mean squared error, and its gradient by what the network has put out. */
static inline float guide_compare(const guide *g, const float *y, float *dy)
{
    float loss = 0.0F;

    for (size_t s = 0; s < SAMPLES; s++) {
        const float error = y[s] - g->target[s];
        dy[s]             = 2.0F * error / SAMPLES;
        loss += error * error / SAMPLES;
    }
    return loss;
}

/* Prints the mean over all ranks. */
static int guide_report(guide *g, size_t step, float loss)
{
    TRY(fsdp_allreduce(g->ctx, FSDP_IN_PLACE, &loss, 1, FSDP_F32, FSDP_AVG));
    if (fsdp_rank(g->ctx) == 0) {
        printf("step %2zu | loss %.7f\n", step + 1, (double)loss);
    }
    return EXIT_SUCCESS;
}

#endif
