/**
 * @file
 * The kernels, put into a stream of the GPU. Each returns the runtime's own number: 0, or why it could not be launched.
 */
#ifndef MLP_KERNELS_H
#define MLP_KERNELS_H

#include <fsdp/export.h>

#include "mlp_math.h"

FSDP_EXTERN_C_BEGIN

int mlp_launch_multiply(const mlp_product *product, void *stream);
int mlp_launch_activate(const mlp_activation *activation, void *stream);
int mlp_launch_sum(const mlp_sum *sum, void *stream);
int mlp_launch_loss(const mlp_loss *loss, void *stream);

FSDP_EXTERN_C_END

#endif
