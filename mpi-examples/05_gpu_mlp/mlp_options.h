/**
 * @file
 * The command line.
 */
#ifndef MLP_OPTIONS_H
#define MLP_OPTIONS_H

#include <fsdp/fsdp.h>

#include "mpi-examples/common/fashion_data.h"

/** Layers at most, the last one included. */
#define MLP_MOST_LAYERS 16

/** What --data says, if it is no folder. */
#define MLP_DATA_AUTO    "auto"
#define MLP_DATA_MADE_UP "made-up"

typedef enum mlp_place { MLP_ON_HOST, MLP_ON_GPU } mlp_place;

typedef struct mlp_options {
    int                  device;  /* mlp_place */
    int                  offload; /* masters and optimizer state on the host */
    size_t               hidden, layers, tp;
    size_t               epochs, batch, seed;
    double               lr;
    fsdp_strategy        strategy;
    fashion_data_options data;
    size_t               pp, micros; /* stages of a pipeline, and micro-batches of a step there */
    const char          *schedule;
    int                  exact, help;
} mlp_options;

/**
 * Reads the command line, which is the same on all ranks. Local.
 * @return FSDP_OK; FSDP_ERR_ARG, and rank 0 has said why.
 */
fsdp_status mlp_options_read(int argc, char **argv, mlp_options *options);

/** Prints what the options are, and their defaults. Local. */
void mlp_options_help(void);

#endif
