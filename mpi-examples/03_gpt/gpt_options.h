/**
 * @file
 * The command line.
 */
#ifndef GPT_OPTIONS_H
#define GPT_OPTIONS_H

#include <stdint.h>

#include <fsdp/fsdp.h>

#include "gpt_model.h"

/** What --progress says. */
typedef enum gpt_progress { GPT_PROGRESS_AUTO, GPT_PROGRESS_ON, GPT_PROGRESS_OFF } gpt_progress;

typedef struct gpt_options {
    gpt_config    config;
    size_t        batch; /* sequences per step, over all ranks */
    size_t        steps, warmup, interval;
    size_t        val_batches;  /* 0: the whole validation text */
    size_t        sample;       /* BYTES to generate in the end */
    size_t        blas_threads; /* 0: chosen by the program */
    size_t        seed;
    double        lr, min_lr, weight_decay, beta2, clip, temperature;
    fsdp_strategy strategy;
    gpt_progress  progress;
    const char   *data; /* NULL: the King James text */
    int           exact, profile, help;
} gpt_options;

/**
 * Reads and checks the command line, which is the same on all ranks. Local.
 * @return FSDP_OK, also for --help, which leaves the rest unchecked; FSDP_ERR_ARG, and rank 0 has said why.
 */
fsdp_status gpt_options_parse(const fsdp_context *ctx, int argc, char **argv, gpt_options *options);

/** Prints what the options are, and their defaults. Local. */
void gpt_options_help(void);

#endif
