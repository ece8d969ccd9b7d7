/**
 * @file
 * The network, and the passes over it. A layer is a unit: its matrix is gathered for as long as it is computed with.
 *
 * With --tp, ranks divide layers in pairs. Of the values between two layers of a pair each has a part of the columns, computed with
 * its rows of the first matrix; with its columns of the second one it has a term of what they come to. One sum over the ranks ends the
 * pair, and in the backward pass another one. A last layer without a partner is whole on each of them.
 *
 * All that is as large as the network or as a batch is on the device; only images go there, and losses come back.
 */
#ifndef MLP_TRAINER_H
#define MLP_TRAINER_H

#include "mlp_device.h"
#include "mlp_options.h"

typedef struct mlp_trainer {
    const mlp_options  *options;
    const fashion_data *data;
    fsdp_context       *ctx;
    fsdp_mesh          *mesh; /* with --tp; or NULL */
    fsdp_context   *dp, *tp; /* ranks with other images, and with other parts of layers; without --tp `ctx`, and NULL */
    mlp_device     *device;
    fsdp_model     *model;
    fsdp_optimizer *optimizer;
    fsdp_budget     budget;

    size_t     n_layers;
    size_t     widths[MLP_MOST_LAYERS + 1];  /* of the input of each layer, and of the last one's output */
    size_t     columns[MLP_MOST_LAYERS + 1]; /* of these, those that this rank has */
    fsdp_unit *units[MLP_MOST_LAYERS];

    size_t most_images; /* that a pass has on this rank */

    /* On the device. */
    float         *values[MLP_MOST_LAYERS + 1];    /* the input of each layer; behind the last one logits */
    float         *gradients[MLP_MOST_LAYERS + 1]; /* of the same; those of the logits take their place */
    float         *losses;
    unsigned char *labels, *found;

    /* On the host, for one pass. */
    float         *host_images, *host_losses;
    unsigned char *host_labels, *host_found;
} mlp_trainer;

/** What a pass over some images has come to. Sums over this rank's images. */
typedef struct mlp_outcome {
    double loss;
    size_t images, found;
} mlp_outcome;

/** Makes the model and all memory for it. Collective. Whatever it returns, mlp_trainer_close() follows. */
fsdp_status mlp_trainer_open(fsdp_context *ctx, const mlp_options *options, const fashion_data *data,
                             mlp_device *device, mlp_trainer *trainer);
void        mlp_trainer_close(mlp_trainer *trainer);

size_t mlp_steps_per_epoch(const mlp_options *options, const fashion_data *data);

/** One step, counted from 0 in its epoch. Collective. Adds what came out to `outcome`. */
fsdp_status mlp_trainer_step(mlp_trainer *trainer, size_t epoch, size_t step, mlp_outcome *outcome);

/** All test images. Collective. */
fsdp_status mlp_trainer_test(mlp_trainer *trainer, mlp_outcome *outcome);

/** Sums over the ranks of a context, which have different images. Collective. */
fsdp_status mlp_outcome_of_all(fsdp_context *ctx, mlp_outcome *outcome);

#endif
