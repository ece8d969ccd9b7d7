/**
 * @file
 * The stages of a pipeline that are on one rank: what a micro-batch does there, forward and backward, as the callbacks of
 * fsdp/pipeline.h; and the memory for it, all of which is known before it is allocated.
 */
#ifndef GPT_STAGE_H
#define GPT_STAGE_H

#include <stdint.h>

#include "gpt_data.h"
#include "gpt_ends.h"
#include "gpt_layer.h"
#include "gpt_mesh.h"
#include "gpt_schedule.h"

/** A place for what a micro-batch leaves in a stage until its gradients are there. */
typedef struct gpt_slot {
    int       stage, micro; /* -1: free */
    gpt_kept *layers;       /* of a stage */
} gpt_slot;

/** A place for gradients between the two actions of a backward pass; without such actions there is one, for a layer. */
typedef struct gpt_debt {
    int       stage, micro; /* -1: free */
    gpt_owed *layers;
} gpt_debt;

typedef struct gpt_stages {
    gpt_division    division;
    const gpt_mesh *mesh;
    const gpt_data *data;
    size_t          batch;  /* sequences of a micro-batch on this rank */
    size_t          micros; /* of a step */
    size_t          step;   /* counted over all runs: which samples micro-batches have */
    int             n, layers_each, splits;
    int             has_first, has_last;
    int             first_rank, last_rank; /* of the pipeline, that have the ends */
    const int      *ranks;                 /* for each stage, the rank of the pipeline that has it */

    fsdp_unit  *embedding;                        /* what this rank has of both ends; NULL: nothing */
    size_t      tensors[GPT_N_EMBEDDING_TENSORS]; /* the number in that unit, or FSDP_NO_TENSOR */
    fsdp_unit **layers;                           /* of the whole model; NULL: on other ranks */

    real             *storage;
    size_t            bytes; /* of storage */
    size_t            n_slots, n_debts;
    gpt_slot         *slots;
    gpt_debt         *debts;
    gpt_kept         *kept; /* of all slots */
    gpt_owed         *owed;
    gpt_workspace     work;
    gpt_head          head;
    gpt_end_gradients first, last; /* of each end by itself */
    real             *others;      /* V x C: the table's, of the other end, where that is on another rank */
    real             *gradient;    /* S x C: on its way through a stage */
    real    *hop[2]; /* S x C: what goes into a stage and out of it, in passes that the pipeline does not run */
    int32_t *words;  /* R */
} gpt_stages;

/** How many micro-batches are held at once, as fsdp_pipeline_get_info() says. Local. */
void gpt_stages_plan(gpt_stages *s, const fsdp_pipeline_info *info, const gpt_schedule *schedule);

/** BYTES of activations and what else the passes work in. Local. */
size_t gpt_stages_bytes(const gpt_stages *s);

/** Local. @return 0: out of memory */
int  gpt_stages_allocate(gpt_stages *s);
void gpt_stages_release(gpt_stages *s);

/** The callbacks, for `user` = a gpt_stages. Local. */
void gpt_stages_callbacks(gpt_stages *s, fsdp_pipeline_callbacks *callbacks);

/** Before each step: no gradients of the ends yet. Local. */
void gpt_stages_begin_step(gpt_stages *s, size_t step);

/** Behind each step: the gradients of the ends, those of the tied table from both, go to the model. Collective. */
fsdp_status gpt_stages_end_step(gpt_stages *s);

/**
 * A forward pass through all stages, up to the logits on the ranks of the last one; behind it, s->head and fsdp functions of
 * gpt_ends.h have the loss. Collective. `pass`: of this rank's sequences, of whole contexts.
 */
fsdp_status gpt_stages_forward(gpt_stages *s, const gpt_pass *pass);

#endif
