/**
 * @file
 * What the network learns: Fashion-MNIST, or images that are made up where it is not there.
 */
#ifndef MLP_DATA_H
#define MLP_DATA_H

#include "mlp_options.h"

/**
 * Loads what --data says on all ranks. Collective. fashion_data_release() ends it.
 * @param[out] source  its name; static, or that of the options
 * @return FSDP_OK; another status: rank 0 has said why, and `data` holds nothing.
 */
fsdp_status mlp_data_load(fsdp_context *ctx, const mlp_options *options, fashion_data *data, const char **source);

#endif
