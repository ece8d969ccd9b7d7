#include "gpt_trainer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpt_error.h"

/* ---- setting up -------------------------------------------------------------------------------------------------- */

static fsdp_tensor sharded_tensor(const gpt_tensor *t)
{
    return (fsdp_tensor){.name   = t->name,
                         .n_dims = t->n_dims,
                         .shape  = {t->shape[0], t->shape[1]},
                         .dtype  = FSDP_F32,
                         .fill   = t->deviation > 0 ? FSDP_FILL_NORMAL : FSDP_FILL_CONSTANT,
                         .a      = t->mean,
                         .b      = t->deviation,
                         .flags  = t->decays ? 0 : FSDP_TENSOR_NO_WEIGHT_DECAY};
}

static fsdp_status add_embedding(gpt_trainer *trainer)
{
    gpt_tensor  about[GPT_N_EMBEDDING_TENSORS];
    fsdp_tensor tensors[GPT_N_EMBEDDING_TENSORS];
    size_t      i;

    for (i = 0; i < GPT_N_EMBEDDING_TENSORS; i++) {
        gpt_embedding_tensor(&trainer->options->config, i, &about[i]);
        tensors[i] = sharded_tensor(&about[i]);
    }
    return fsdp_unit_add(trainer->model, "embedding", tensors, GPT_N_EMBEDDING_TENSORS, &trainer->embedding);
}

static fsdp_status add_block(gpt_trainer *trainer, size_t layer)
{
    gpt_tensor  about[GPT_N_BLOCK_TENSORS];
    fsdp_tensor tensors[GPT_N_BLOCK_TENSORS];
    char        name[32];
    size_t      i;

    for (i = 0; i < GPT_N_BLOCK_TENSORS; i++) {
        gpt_block_tensor(&trainer->options->config, layer, i, &about[i]);
        tensors[i] = sharded_tensor(&about[i]);
    }
    snprintf(name, sizeof name, "h.%zu", layer);
    return fsdp_unit_add(trainer->model, name, tensors, GPT_N_BLOCK_TENSORS, &trainer->blocks[layer]);
}

fsdp_status gpt_trainer_open(fsdp_context *ctx, const gpt_options *options, gpt_trainer *trainer)
{
    const fsdp_model_options model = {.strategy = options->strategy, .seed = options->seed, .optimizer = FSDP_ADAMW};
    size_t                   i;

    *trainer        = (gpt_trainer){.options = options, .ctx = ctx, .batch = options->batch / (size_t)fsdp_size(ctx)};
    trainer->blocks = calloc(options->config.layers, sizeof(fsdp_unit *));
    GPT_TRY(gpt_agree(ctx, trainer->blocks ? "" : "no memory for the list of layers; use fewer --layers"));
    GPT_TRY(fsdp_model_create(ctx, &model, &trainer->model));
    GPT_TRY(add_embedding(trainer));
    for (i = 0; i < options->config.layers; i++) {
        GPT_TRY(add_block(trainer, i));
    }
    return fsdp_model_budget(trainer->model, options->strategy, 0, FSDP_ADAMW, &trainer->budget);
}

static fsdp_status check_memory(const gpt_trainer *trainer, size_t limit)
{
    const size_t activations = gpt_activations_bytes(&trainer->options->config, trainer->batch);

    if (activations <= limit && trainer->budget.total <= limit - activations) {
        return FSDP_OK;
    }
    return gpt_fail(trainer->ctx,
                    "a rank would need %zu bytes of training state and %zu of activations, and its part of the node's "
                    "memory is %zu; use more ranks, or a smaller --width, --layers, --context or --batch",
                    trainer->budget.total, activations, limit);
}

static fsdp_status create_optimizer(gpt_trainer *trainer)
{
    fsdp_optimizer_options adamw;

    GPT_TRY(fsdp_optimizer_options_init(FSDP_ADAMW, &adamw));
    adamw.lr           = trainer->options->lr;
    adamw.weight_decay = trainer->options->weight_decay;
    adamw.beta2        = trainer->options->beta2;
    return fsdp_optimizer_create(trainer->model, &adamw, &trainer->optimizer);
}

fsdp_status gpt_trainer_commit(gpt_trainer *trainer, size_t memory_limit)
{
    const gpt_config *config = &trainer->options->config;

    GPT_TRY(check_memory(trainer, memory_limit));
    trainer->activations = gpt_activations_create(config, trainer->batch);
    trainer->windows     = malloc(trainer->batch * (config->context + 1));
    GPT_TRY(gpt_agree(trainer->ctx, trainer->activations && trainer->windows
                                        ? ""
                                        : "no memory for the activations; use more ranks or a smaller --batch"));
    GPT_TRY(fsdp_model_commit(trainer->model));
    return create_optimizer(trainer);
}

void gpt_trainer_close(gpt_trainer *trainer)
{
    fsdp_model_destroy(trainer->model);
    gpt_activations_destroy(trainer->activations);
    free(trainer->windows);
    free(trainer->blocks);
}

/* ---- passes ------------------------------------------------------------------------------------------------------ */

/* What the model's functions take: the views of a unit's tensors. */
typedef struct unit_views {
    const real *params[GPT_N_BLOCK_TENSORS];
    real       *grads[GPT_N_BLOCK_TENSORS];
} unit_views;

static void lap(gpt_trainer *trainer, gpt_part part)
{
    gpt_profile_lap(gpt_activations_profile(trainer->activations), part);
}

static fsdp_status begin_forward(gpt_trainer *trainer, fsdp_unit *unit, size_t n_tensors, unit_views *views)
{
    size_t i;

    GPT_TRY(fsdp_unit_begin_forward(unit));
    for (i = 0; i < n_tensors; i++) {
        views->params[i] = fsdp_unit_param(unit, i);
    }
    lap(trainer, GPT_PART_SHARDING);
    return FSDP_OK;
}

static fsdp_status begin_backward(gpt_trainer *trainer, fsdp_unit *unit, size_t n_tensors, unit_views *views)
{
    size_t i;

    GPT_TRY(fsdp_unit_begin_backward(unit));
    for (i = 0; i < n_tensors; i++) {
        views->params[i] = fsdp_unit_param(unit, i);
        views->grads[i]  = fsdp_unit_grad(unit, i);
    }
    lap(trainer, GPT_PART_SHARDING);
    return FSDP_OK;
}

static fsdp_status end_backward(gpt_trainer *trainer, fsdp_unit *unit)
{
    GPT_TRY(fsdp_unit_end_backward(unit));
    lap(trainer, GPT_PART_SHARDING);
    return FSDP_OK;
}

/* The embedding stays open from the first lookup to the head, since the head is tied to it; blocks open in turn. */
fsdp_status gpt_trainer_forward(gpt_trainer *trainer, const gpt_pass *pass)
{
    gpt_activations *a = trainer->activations;
    unit_views       embedding, block;
    size_t           i;

    GPT_TRY(begin_forward(trainer, trainer->embedding, GPT_N_EMBEDDING_TENSORS, &embedding));
    gpt_embedding_forward(a, pass, embedding.params);
    for (i = 0; i < trainer->options->config.layers; i++) {
        GPT_TRY(begin_forward(trainer, trainer->blocks[i], GPT_N_BLOCK_TENSORS, &block));
        gpt_block_forward(a, pass, i, block.params);
        GPT_TRY(fsdp_unit_end_forward(trainer->blocks[i]));
    }
    gpt_head_forward(a, pass, embedding.params);
    return fsdp_unit_end_forward(trainer->embedding);
}

static fsdp_status backward(gpt_trainer *trainer, const gpt_pass *pass)
{
    gpt_activations *a = trainer->activations;
    unit_views       embedding, block;
    size_t           i;

    GPT_TRY(begin_backward(trainer, trainer->embedding, GPT_N_EMBEDDING_TENSORS, &embedding));
    gpt_head_backward(a, pass, embedding.params, embedding.grads);
    for (i = trainer->options->config.layers; i-- > 0;) {
        GPT_TRY(begin_backward(trainer, trainer->blocks[i], GPT_N_BLOCK_TENSORS, &block));
        gpt_block_backward(a, pass, i, block.params, block.grads);
        GPT_TRY(end_backward(trainer, trainer->blocks[i]));
    }
    gpt_embedding_backward(a, pass, embedding.grads);
    return end_backward(trainer, trainer->embedding);
}

/* ---- training and validation ------------------------------------------------------------------------------------- */

static gpt_pass pass_over_windows(const gpt_trainer *trainer, size_t batch)
{
    const size_t context = trainer->options->config.context;

    return (gpt_pass){.text = trainer->windows, .stride = context + 1, .batch = batch, .first = 0, .length = context};
}

static void set_window(gpt_trainer *trainer, size_t i, const unsigned char *window)
{
    const size_t bytes = trainer->options->config.context + 1;

    memcpy(trainer->windows + i * bytes, window, bytes);
}

/* Rank r takes the r-th slice of the global batch, so that the batch is the same for any number of ranks. */
static void load_batch(gpt_trainer *trainer, const gpt_data *data, size_t step)
{
    const size_t first = step * trainer->options->batch + (size_t)fsdp_rank(trainer->ctx) * trainer->batch;
    size_t       i;

    for (i = 0; i < trainer->batch; i++) {
        set_window(trainer, i, gpt_data_train_window(data, first + i));
    }
}

fsdp_status gpt_trainer_step(gpt_trainer *trainer, const gpt_data *data, size_t step, double lr, double *loss,
                             double *norm)
{
    const gpt_pass pass = pass_over_windows(trainer, trainer->batch);

    load_batch(trainer, data, step);
    lap(trainer, GPT_PART_OTHER);
    GPT_TRY(gpt_trainer_forward(trainer, &pass));
    *loss = gpt_loss(trainer->activations, &pass);
    GPT_TRY(backward(trainer, &pass));
    GPT_TRY(fsdp_clip_grad_norm(trainer->model, trainer->options->clip, norm));
    GPT_TRY(fsdp_optimizer_set_lr(trainer->optimizer, lr));
    GPT_TRY(fsdp_optimizer_step(trainer->optimizer));
    lap(trainer, GPT_PART_OPTIMIZER);
    return FSDP_OK;
}

/* Loads the windows of this rank among `count` from `first` on, every rank its part in turn; the last ranks may get less. */
static size_t load_val_batch(gpt_trainer *trainer, const gpt_data *data, size_t first, size_t windows)
{
    const size_t mine = first + (size_t)fsdp_rank(trainer->ctx) * trainer->batch;
    size_t       i;

    for (i = 0; i < trainer->batch && mine + i < windows; i++) {
        set_window(trainer, i, gpt_data_val_window(data, mine + i));
    }
    return i;
}

fsdp_status gpt_trainer_validate(gpt_trainer *trainer, const gpt_data *data, double *loss, size_t *bytes)
{
    const size_t all = gpt_data_val_windows(data), batch = trainer->options->batch;
    const size_t most    = trainer->options->val_batches;
    const size_t windows = most && most < all / batch ? most * batch : all;
    size_t       first;

    *loss  = 0;
    *bytes = windows * trainer->options->config.context;
    for (first = 0; first < windows; first += batch) {
        const gpt_pass pass = pass_over_windows(trainer, load_val_batch(trainer, data, first, windows));

        GPT_TRY(gpt_trainer_forward(trainer, &pass));
        *loss += gpt_loss(trainer->activations, &pass);
    }
    GPT_TRY(fsdp_allreduce(trainer->ctx, FSDP_IN_PLACE, loss, 1, FSDP_F64, FSDP_SUM));
    *loss /= (double)*bytes;
    return FSDP_OK;
}
