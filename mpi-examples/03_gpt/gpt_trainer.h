/**
 * @file
 * The model as sharded units: how a pass opens and closes them, and what a step of training consists of.
 */
#ifndef GPT_TRAINER_H
#define GPT_TRAINER_H

#include "gpt_data.h"
#include "gpt_hook.h"
#include "gpt_options.h"
#include "gpt_parallel.h"
#include "mpi-examples/common/example_views.h"

typedef struct gpt_trainer {
    const gpt_options *options;
    fsdp_context      *ctx;
    gpt_parallel      *parallel; /* NULL: data parallelism alone; else model, optimizer and passes are its own */
    fsdp_model        *model;
    fsdp_unit         *embedding;
    fsdp_unit        **blocks;
    fsdp_optimizer    *optimizer; /* AdamW */
    fsdp_optimizer    *muon;      /* of the matrices of the blocks; NULL: AdamW has them too */
    fsdp_hook         *hook;      /* NULL: none */
    fsdp_loss_scaler  *scaler;    /* NULL: nothing is f16 */
    example_checkpoint checkpoint;
    char               text[FSDP_CHECKPOINT_TEXT_BYTES]; /* of checkpoints: what is trained */
    size_t             first_step;                       /* 0, or where an earlier run has stopped */
    example_views      embedding_views, block_views;
    gpt_activations   *activations;
    gpt_share          share;   /* of this rank, of the sequences of a micro-batch */
    size_t             room;    /* sequences of the rank that has most of them */
    unsigned char     *windows; /* room x (context + 1) bytes */
    fsdp_budget        budget;
    fsdp_budget        budget_alone; /* of one rank on its own; all 0 where that says nothing */
} gpt_trainer;

/**
 * Describes the model and computes its budget. Collective.
 * @return FSDP_OK; another status: rank 0 or the library has said why. Close it all the same.
 */
fsdp_status gpt_trainer_open(fsdp_context *ctx, const gpt_options *options, const gpt_data *data, gpt_trainer *trainer);

/** Allocates what has been described. Collective. `memory_limit`: BYTES per rank that all of it may take. */
fsdp_status gpt_trainer_commit(gpt_trainer *trainer, size_t memory_limit);

/** Begins with weights from a file, or goes on where an earlier run has stopped, as the options say. Collective. */
fsdp_status gpt_trainer_resume(gpt_trainer *trainer, const gpt_data *data);

/** Behind step number `step`: saves if it is time. Collective. @param[out] stop  1: on a signal training ends here */
fsdp_status gpt_trainer_save(gpt_trainer *trainer, size_t step, int *stop);

/** Completes what is being saved. Collective. */
fsdp_status gpt_trainer_close_checkpoint(gpt_trainer *trainer);

void gpt_trainer_close(gpt_trainer *trainer);

/** The stopwatch of all passes. Local. */
gpt_profile *gpt_trainer_profile(const gpt_trainer *trainer);

/** Seconds that this rank has waited for others, and CPU time of its communication. Local. */
double gpt_trainer_wait_seconds(const gpt_trainer *trainer);
double gpt_trainer_communication_seconds(const gpt_trainer *trainer);

/** What the library holds and has held on this rank. Local. */
fsdp_status gpt_trainer_memory(const gpt_trainer *trainer, fsdp_memory *memory);

/** BYTES that the passes work in beside the budget: activations, and copies in f32 of views that are not. */
size_t gpt_trainer_activation_bytes(const gpt_trainer *trainer);
size_t gpt_trainer_copy_bytes(const gpt_trainer *trainer);

/**
 * A forward pass up to the logits. Collective. Ranks with nothing to compute pass a batch of 0: they still give their share
 * of the parameters to the others.
 */
fsdp_status gpt_trainer_forward(gpt_trainer *trainer, const gpt_pass *pass);

/** What a step gives. */
typedef struct gpt_step {
    double loss;    /* this rank's sum over its bytes */
    double norm;    /* of the gradient, before it was clipped */
    int    skipped; /* on all ranks: a gradient has overflown, and the loss is scaled by less from here on */
} gpt_step;

/** One step on the global batch number `step`: forward and backward of each micro-batch, clip, update. Collective. */
fsdp_status gpt_trainer_step(gpt_trainer *trainer, const gpt_data *data, size_t step, double lr, gpt_step *result);

/** The mean loss over the validation text, or the part of it that the options ask for. Collective. */
fsdp_status gpt_trainer_validate(gpt_trainer *trainer, const gpt_data *data, double *loss, size_t *bytes);

#endif
