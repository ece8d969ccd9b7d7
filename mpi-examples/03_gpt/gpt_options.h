/**
 * @file
 * The command line.
 */
#ifndef GPT_OPTIONS_H
#define GPT_OPTIONS_H

#include <stdint.h>

#include <fsdp/fsdp.h>

#include "gpt_model.h"
#include "mpi-examples/common/example_checkpoint.h"

/** What --hook says. */
typedef enum gpt_hook_kind {
    GPT_HOOK_NONE,
    GPT_HOOK_BF16,
    GPT_HOOK_F16,
    GPT_HOOK_INT8,
    GPT_HOOK_POWER_SGD
} gpt_hook_kind;

/** Their names. */
extern const char *const gpt_hook_names[];

/** What --recompute says. */
typedef enum gpt_recompute { GPT_RECOMPUTE_NONE, GPT_RECOMPUTE_SELECTIVE, GPT_RECOMPUTE_FULL } gpt_recompute;

/** Their names. */
extern const char *const gpt_recompute_names[];

/** What --optimizer says. */
typedef enum gpt_optimizer_kind { GPT_OPTIMIZER_ADAMW, GPT_OPTIMIZER_MUON } gpt_optimizer_kind;

typedef struct gpt_options {
    gpt_config                 config;
    size_t                     batch;      /* sequences per step, over all ranks, which may have one more or less */
    size_t                     accumulate; /* micro-batches that it is divided into */
    size_t                     dp, tp, pp; /* ranks along each axis of a mesh; 0 each: there is none */
    size_t                     outer;      /* positions along the first of two axes that `dp` is; 0: it is one */
    const char                *axis_strategies; /* of its axes; NULL: `strategy` */
    size_t                     micro;           /* micro-batches of a pipeline; 0: as many as stages' ranks */
    size_t                     stages_per_rank; /* 0: as the schedule has it by itself */
    const char                *schedule;        /* a name, or a file; NULL: 1f1b */
    int                        recompute;       /* gpt_recompute */
    int                        sequence_parallel;
    size_t                     steps, warmup, interval;
    size_t                     val_batches;  /* 0: the whole validation text */
    size_t                     sample;       /* BYTES to generate in the end */
    size_t                     blas_threads; /* 0: chosen by the program */
    size_t                     seed;
    int                        optimizer; /* gpt_optimizer_kind */
    double                     lr, min_lr, weight_decay, beta2, clip, temperature;
    fsdp_strategy              strategy;
    int                        group_size; /* 0: the ranks of a node */
    int                        prefetch;   /* FSDP_UNSET: as the environment says */
    fsdp_dtype                 dtype;      /* of the passes */
    fsdp_dtype                 param_dtype, reduce_dtype, moment_dtype;
    int                        hook;       /* gpt_hook_kind */
    size_t                     hook_rank;  /* 0: the library's default */
    size_t                     hook_start; /* steps without it */
    int                        progress;   /* example_progress */
    const char                *data;       /* NULL: the King James text */
    const char                *weights;    /* a safetensors file to begin with; NULL: drawn from the seed */
    example_checkpoint_options checkpoint;
    int                        accumulate_sync, quantized_params, exact, profile, help;
} gpt_options;

/**
 * Reads the command line, which is the same on all ranks. Local.
 * @return FSDP_OK; FSDP_ERR_ARG, and rank 0 has said why.
 */
fsdp_status gpt_options_read(int argc, char **argv, gpt_options *options);

/** Whether the ranks are a mesh: whether one of its options was given. Local. */
int gpt_options_mesh(const gpt_options *options);

/** What AdamW is told. Local. @return what fsdp_optimizer_options_init() does. */
fsdp_status gpt_options_adamw(const gpt_options *options, fsdp_optimizer_options *adamw);

/** Of the sequences of a micro-batch, those that are a rank's. */
typedef struct gpt_share {
    size_t first, count;
} gpt_share;

/** Ranks that have more by one come first, so that rank 0 has as many as any. Local. */
gpt_share gpt_options_share(const gpt_options *options, size_t ranks, size_t rank);

/**
 * Checks what options that are fine by themselves mean together, and on these ranks; gpt_shape_complete() does that for the options
 * of a mesh. Local. @return as above.
 */
fsdp_status gpt_options_check(const fsdp_context *ctx, const gpt_options *options);

/** Prints what the options are, and their defaults. Local. */
void gpt_options_help(void);

#endif
