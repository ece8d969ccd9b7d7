/**
 * @file
 * Training on a mesh: what gpt_trainer.c does with data parallelism alone, with layers divided over ranks (gpt_layer.c) and over
 * the stages of a pipeline (gpt_stage.c) as well.
 */
#ifndef GPT_PARALLEL_H
#define GPT_PARALLEL_H

#include "gpt_stage.h"

/** Contexts of a mesh: that of all ranks, and of its axes. */
enum { GPT_MOST_CONTEXTS = 4 };

/** Numbers of gpt_parallel::by_rank for a rank. */
enum { GPT_ACTIVATION_BYTES, GPT_HELD_AT_ONCE, GPT_PER_RANK };

/** What a step gives. */
typedef struct gpt_parallel_step {
    double loss; /* the sum over all bytes of the step, on rank 0; else 0 */
    double norm; /* of the gradient, before it was clipped */
} gpt_parallel_step;

typedef struct gpt_parallel {
    const gpt_options *options;
    gpt_mesh           mesh;
    gpt_schedule       schedule;
    gpt_profile        profile;
    fsdp_model        *model;
    fsdp_strategy      strategy;   /* that of the options, or of --axis-strategies */
    int                group_size; /* ranks that share one copy */
    fsdp_optimizer    *optimizer;
    fsdp_pipeline     *pipeline;
    fsdp_pipeline_info info;
    gpt_stages         stages;
    int               *ranks;   /* for each stage, the rank of the pipeline that has it */
    unsigned char     *windows; /* batch x (context + 1) bytes: what is validated on */
    fsdp_budget        budget;  /* of this rank: the model and the pipeline */
    int64_t *by_rank; /* for each rank of the pipeline, BYTES of activations, and micro-batches that it holds at once */
    double   waited;  /* seconds, for messages of the pipeline */

    fsdp_memory before[GPT_MOST_CONTEXTS], before_dp; /* what contexts hold from their beginning */
} gpt_parallel;

/**
 * Opens mesh and schedule, and describes the model of this rank's stages. Collective.
 * @return FSDP_OK; another status: rank 0 or the library has said why. Close it all the same.
 */
fsdp_status gpt_parallel_open(fsdp_context *ctx, const gpt_options *options, const gpt_data *data, gpt_parallel *p);

/** Allocates what has been described. Collective. `memory_limit`: BYTES per rank that all of it may take. */
fsdp_status gpt_parallel_commit(gpt_parallel *p, size_t memory_limit);
void        gpt_parallel_close(gpt_parallel *p);

/** One step on the global batch number `step`. Collective. */
fsdp_status gpt_parallel_train(gpt_parallel *p, size_t step, double lr, gpt_parallel_step *result);

/** The sum of the losses of `windows` windows of the validation text, the same on all ranks. Collective. */
fsdp_status gpt_parallel_validate(gpt_parallel *p, size_t windows, double *loss);

/** The logits of position `length` - 1 behind `text`, on all ranks. Collective. @param[out] logits  GPT_VOCABULARY */
fsdp_status gpt_parallel_logits(gpt_parallel *p, const unsigned char *text, size_t length, real *logits);

/** Seconds that this rank has waited, and CPU time of communication, over all contexts. Local. */
double gpt_parallel_wait_seconds(const gpt_parallel *p);
double gpt_parallel_communication_seconds(const gpt_parallel *p);

/** What all contexts hold on this rank, and the most that they have held, together. Local. */
fsdp_status gpt_parallel_memory(const gpt_parallel *p, fsdp_memory *memory);

/** On how many ranks the most is what the budget has said, to the byte: they hold different stages. Collective. */
fsdp_status gpt_parallel_count_kept_budgets(const gpt_parallel *p, size_t *ranks);

/* ---- between these files ---- */

/** Opens the mesh and notes what its contexts hold from their beginning: it counts in that of all ranks. Collective. */
fsdp_status gpt_parallel_open_mesh(gpt_parallel *p, fsdp_context *ctx);

/** What the library is told of a tensor that is not divided over tensor parallelism. gpt_trainer.c has all of them so. Local. */
fsdp_tensor gpt_whole_tensor(const gpt_tensor *t);

/** Creates the model, with the units of this rank's stages. Collective. */
fsdp_status gpt_parallel_describe(gpt_parallel *p);

/**
 * Fills in gpt_parallel::budget. The model's budget has the context that it is made on. The others are there already, and so is the
 * pipeline; to come are the lists of its units, what the loss works in, and how the ends find each other. Local.
 * @param[in] there  what gpt_parallel_memory() said before the model was created
 */
fsdp_status gpt_parallel_count_budget(gpt_parallel *p, const fsdp_memory *there);

#endif
