/**
 * @file
 * The model as sharded units: how a pass opens and closes them, and what a step of training consists of.
 */
#ifndef GPT_TRAINER_H
#define GPT_TRAINER_H

#include "gpt_data.h"
#include "gpt_options.h"

typedef struct gpt_trainer {
    const gpt_options *options;
    fsdp_context      *ctx;
    fsdp_model        *model;
    fsdp_unit         *embedding;
    fsdp_unit        **blocks;
    fsdp_optimizer    *optimizer;
    gpt_activations   *activations;
    size_t             batch;   /* sequences of this rank per step */
    unsigned char     *windows; /* batch x (context + 1) bytes */
    fsdp_budget        budget;
} gpt_trainer;

/**
 * Describes the model and computes its budget. Collective.
 * @return FSDP_OK; another status: rank 0 or the library has said why. Close it all the same.
 */
fsdp_status gpt_trainer_open(fsdp_context *ctx, const gpt_options *options, gpt_trainer *trainer);

/** Allocates what has been described. Collective. `memory_limit`: BYTES per rank that all of it may take. */
fsdp_status gpt_trainer_commit(gpt_trainer *trainer, size_t memory_limit);

void gpt_trainer_close(gpt_trainer *trainer);

/**
 * A forward pass up to the logits. Collective. Ranks with nothing to compute pass a batch of 0: they still give their share
 * of the parameters to the others.
 */
fsdp_status gpt_trainer_forward(gpt_trainer *trainer, const gpt_pass *pass);

/**
 * One step on the global batch number `step`: forward, backward, clip, update. Collective.
 * @param[out] loss  this rank's sum of losses over its bytes
 * @param[out] norm  of the gradient, before it was clipped
 */
fsdp_status gpt_trainer_step(gpt_trainer *trainer, const gpt_data *data, size_t step, double lr, double *loss,
                             double *norm);

/** The mean loss over the validation text, or the part of it that the options ask for. Collective. */
fsdp_status gpt_trainer_validate(gpt_trainer *trainer, const gpt_data *data, double *loss, size_t *bytes);

#endif
