/**
 * @file
 * The same network cut into stages (--pp): each rank has some of the layers, and what passes between them stays in the memory of GPUs.
 */
#ifndef MLP_PIPELINE_H
#define MLP_PIPELINE_H

#include "mlp_device.h"
#include "mlp_options.h"

/** Trains, and prints what comes out. Collective. */
fsdp_status mlp_pipeline_train(fsdp_context *ctx, const mlp_options *options, const fashion_data *data,
                               mlp_device *device, const char *source);

#endif
