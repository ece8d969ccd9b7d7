/**
 * @file
 * The command line.
 */
#ifndef FASHION_OPTIONS_H
#define FASHION_OPTIONS_H

#include <fsdp/fsdp.h>

#include "fashion_model.h"
#include "mpi-examples/common/example_checkpoint.h"
#include "mpi-examples/common/fashion_data.h"

typedef struct fashion_options {
    size_t                     epochs;
    size_t                     batch;      /* images per micro-batch, over all ranks */
    size_t                     accumulate; /* micro-batches per step */
    size_t                     warmup;
    size_t                     blas_threads; /* 0: chosen by the program */
    size_t                     seed;
    double                     lr, momentum, weight_decay;
    fsdp_strategy              strategy;
    fsdp_dtype                 dtype;    /* of gathered parameters and reduced gradients */
    int                        progress; /* example_progress */
    fashion_data_options       data;
    example_checkpoint_options checkpoint;
    int                        exact, help;
} fashion_options;

/**
 * Reads the command line, which is the same on all ranks. Local.
 * @return FSDP_OK; FSDP_ERR_ARG, and rank 0 has said why.
 */
fsdp_status fashion_options_read(int argc, char **argv, fashion_options *options);

/** Prints what the options are, and their defaults. Local. */
void fashion_options_help(void);

#endif
