#include "gpt_trainer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi-examples/common/example_error.h"

/* ---- setting up -------------------------------------------------------------------------------------------------- */

static fsdp_status add_embedding(gpt_trainer *trainer, const fsdp_model_options *model)
{
    gpt_tensor  about[GPT_N_EMBEDDING_TENSORS];
    fsdp_tensor tensors[GPT_N_EMBEDDING_TENSORS];
    size_t      i;

    for (i = 0; i < GPT_N_EMBEDDING_TENSORS; i++) {
        gpt_embedding_tensor(&trainer->options->config, i, &about[i]);
        tensors[i] = gpt_whole_tensor(&about[i]);
    }
    example_views_describe(&trainer->embedding_views, trainer->ctx, model, tensors, GPT_N_EMBEDDING_TENSORS);
    return fsdp_unit_add(trainer->model, "embedding", tensors, GPT_N_EMBEDDING_TENSORS, &trainer->embedding);
}

static fsdp_status add_block(gpt_trainer *trainer, const fsdp_model_options *model, size_t layer)
{
    gpt_tensor  about[GPT_N_BLOCK_TENSORS];
    fsdp_tensor tensors[GPT_N_BLOCK_TENSORS];
    char        name[32];
    size_t      i;

    for (i = 0; i < GPT_N_BLOCK_TENSORS; i++) {
        gpt_block_tensor(&trainer->options->config, layer, i, &about[i]);
        tensors[i] = gpt_whole_tensor(&about[i]);
    }
    snprintf(name, sizeof name, "h.%zu", layer);
    example_views_describe(&trainer->block_views, trainer->ctx, model, tensors, GPT_N_BLOCK_TENSORS);
    return fsdp_unit_add(trainer->model, name, tensors, GPT_N_BLOCK_TENSORS, &trainer->blocks[layer]);
}

/* The matrices of the blocks: of attention and of the MLP. */
static const char matrices[] = "h.*.c_*.weight";

/* Muon updates whole matrices; AdamW keeps embeddings, head and vectors, as Jordan et al. (2024) divide them. */
static fsdp_status add_matrices(const gpt_trainer *trainer)
{
    fsdp_model_group group = FSDP_MODEL_GROUP_DEFAULT;

    if (trainer->options->optimizer != GPT_OPTIMIZER_MUON) {
        return FSDP_OK;
    }
    group.granularity = FSDP_GRANULARITY_TENSOR;
    group.optimizer   = FSDP_MUON;
    return fsdp_model_add_group(trainer->model, matrices, &group);
}

/* Whether micro-batches add up without communication. */
static int accumulates_locally(const gpt_options *options)
{
    return options->accumulate > 1 && !options->accumulate_sync;
}

static fsdp_model_options model_options(const gpt_options *options)
{
    fsdp_model_options model = FSDP_MODEL_OPTIONS_DEFAULT;

    model.strategy         = options->strategy;
    model.group_size       = options->group_size;
    model.seed             = options->seed;
    model.param_dtype      = options->param_dtype;
    model.reduce_dtype     = options->reduce_dtype;
    model.moment_dtype     = options->moment_dtype;
    model.local_gradients  = accumulates_locally(options);
    model.quantized_params = options->quantized_params;
    return model;
}

/* Beside it that of one rank: what dividing saves. Hooks and groups have no meaning there. */
static fsdp_status count_budget(gpt_trainer *trainer)
{
    const gpt_options *o = trainer->options;

    EXAMPLE_TRY(fsdp_model_budget(trainer->model, o->strategy, 0, FSDP_ADAMW, &trainer->budget));
    if (fsdp_size(trainer->ctx) == 1 || o->hook != GPT_HOOK_NONE || o->strategy == FSDP_HYBRID_SHARD ||
        o->strategy == FSDP_HYBRID_SHARD_ZERO2) {
        return FSDP_OK;
    }
    return fsdp_model_budget(trainer->model, o->strategy, 1, FSDP_ADAMW, &trainer->budget_alone);
}

static fsdp_status open_parallel(gpt_trainer *trainer, const gpt_data *data)
{
    trainer->parallel = calloc(1, sizeof *trainer->parallel);
    EXAMPLE_TRY(example_agree(trainer->ctx, trainer->parallel ? "" : "no memory for the description of the mesh"));
    EXAMPLE_TRY(gpt_parallel_open(trainer->ctx, trainer->options, data, trainer->parallel));
    trainer->model  = trainer->parallel->model;
    trainer->budget = trainer->parallel->budget;
    return FSDP_OK;
}

fsdp_status gpt_trainer_open(fsdp_context *ctx, const gpt_options *options, const gpt_data *data, gpt_trainer *trainer)
{
    const fsdp_model_options model = model_options(options);
    size_t                   i;

    *trainer = (gpt_trainer){.options = options,
                             .ctx     = ctx,
                             .share   = gpt_options_share(options, (size_t)fsdp_size(ctx), (size_t)fsdp_rank(ctx)),
                             .room    = gpt_options_share(options, (size_t)fsdp_size(ctx), 0).count};
    if (gpt_options_mesh(options)) {
        return open_parallel(trainer, data);
    }
    trainer->blocks = calloc(options->config.layers, sizeof(fsdp_unit *));
    EXAMPLE_TRY(example_agree(ctx, trainer->blocks ? "" : "no memory for the list of layers; use fewer --layers"));
    EXAMPLE_TRY(fsdp_model_create(ctx, &model, &trainer->model));
    EXAMPLE_TRY(add_matrices(trainer));
    EXAMPLE_TRY(add_embedding(trainer, &model));
    for (i = 0; i < options->config.layers; i++) {
        EXAMPLE_TRY(add_block(trainer, &model, i));
    }
    return count_budget(trainer);
}

gpt_profile *gpt_trainer_profile(const gpt_trainer *trainer)
{
    return trainer->parallel ? &trainer->parallel->profile : gpt_activations_profile(trainer->activations);
}

double gpt_trainer_wait_seconds(const gpt_trainer *trainer)
{
    return trainer->parallel ? gpt_parallel_wait_seconds(trainer->parallel) : fsdp_wait_seconds(trainer->ctx);
}

double gpt_trainer_communication_seconds(const gpt_trainer *trainer)
{
    return trainer->parallel ? gpt_parallel_communication_seconds(trainer->parallel)
                             : fsdp_progress_cpu_seconds(trainer->ctx) + fsdp_wait_cpu_seconds(trainer->ctx);
}

fsdp_status gpt_trainer_memory(const gpt_trainer *trainer, fsdp_memory *memory)
{
    return trainer->parallel ? gpt_parallel_memory(trainer->parallel, memory) : fsdp_memory_usage(trainer->ctx, memory);
}

size_t gpt_trainer_activation_bytes(const gpt_trainer *trainer)
{
    return gpt_activations_bytes(&trainer->options->config, trainer->room);
}

size_t gpt_trainer_copy_bytes(const gpt_trainer *trainer)
{
    return example_views_bytes(&trainer->embedding_views) + example_views_bytes(&trainer->block_views);
}

static fsdp_status check_memory(const gpt_trainer *trainer, size_t limit)
{
    const size_t activations = gpt_trainer_activation_bytes(trainer) + gpt_trainer_copy_bytes(trainer);

    if (activations <= limit && trainer->budget.total <= limit - activations) {
        return FSDP_OK;
    }
    return example_fail(
        "a rank would need %zu bytes of training state and %zu of activations, and its part of the node's "
        "memory is %zu; use more ranks, or a smaller --width, --layers, --context or --batch",
        trainer->budget.total, activations, limit);
}

/* Its updates are scaled to the size of AdamW's, so that one rate and one decay serve both (Liu et al., 2025). */
static fsdp_status create_muon(gpt_trainer *trainer)
{
    fsdp_optimizer_options muon;

    if (trainer->options->optimizer != GPT_OPTIMIZER_MUON) {
        return FSDP_OK;
    }
    EXAMPLE_TRY(fsdp_optimizer_options_init(FSDP_MUON, &muon));
    muon.group        = matrices;
    muon.lr           = trainer->options->lr;
    muon.weight_decay = trainer->options->weight_decay;
    muon.muon_scale   = 0.2;
    return fsdp_optimizer_create(trainer->model, &muon, &trainer->muon);
}

static fsdp_status create_optimizer(gpt_trainer *trainer)
{
    fsdp_optimizer_options adamw;

    EXAMPLE_TRY(gpt_options_adamw(trainer->options, &adamw));
    return fsdp_optimizer_create(trainer->model, &adamw, &trainer->optimizer);
}

/* A hook that comes later is tried now, so that one that cannot be is refused before anything is computed. */
static fsdp_status create_hook(gpt_trainer *trainer)
{
    EXAMPLE_TRY(gpt_hook_create(trainer->ctx, trainer->options, &trainer->hook));
    if (!trainer->hook) {
        return FSDP_OK;
    }
    EXAMPLE_TRY(fsdp_model_set_hook(trainer->model, trainer->hook));
    EXAMPLE_TRY(fsdp_hook_budget(trainer->hook, trainer->model, &trainer->budget));
    return trainer->options->hook_start ? fsdp_model_set_hook(trainer->model, NULL) : FSDP_OK;
}

/* f16 has a narrow range wherever it is used: in views, or on the way between the ranks. */
static fsdp_status create_scaler(gpt_trainer *trainer)
{
    const gpt_options       *o      = trainer->options;
    fsdp_loss_scaler_options scaler = FSDP_LOSS_SCALER_OPTIONS_DEFAULT;

    if (o->param_dtype != FSDP_F16 && o->reduce_dtype != FSDP_F16 && o->hook != GPT_HOOK_F16) {
        return FSDP_OK;
    }
    scaler.allow_any_dtype = 1;
    return fsdp_loss_scaler_create(trainer->model, &scaler, &trainer->scaler);
}

static int allocate(gpt_trainer *trainer)
{
    const gpt_config *config = &trainer->options->config;

    trainer->activations = gpt_activations_create(config, trainer->room);
    trainer->windows     = malloc(trainer->room * (config->context + 1));
    return trainer->activations && trainer->windows && example_views_allocate(&trainer->embedding_views) &&
           example_views_allocate(&trainer->block_views);
}

static fsdp_status commit_parallel(gpt_trainer *trainer, size_t memory_limit)
{
    EXAMPLE_TRY(gpt_parallel_commit(trainer->parallel, memory_limit));
    trainer->optimizer = trainer->parallel->optimizer;
    return FSDP_OK;
}

fsdp_status gpt_trainer_commit(gpt_trainer *trainer, size_t memory_limit)
{
    if (trainer->parallel) {
        return commit_parallel(trainer, memory_limit);
    }
    EXAMPLE_TRY(check_memory(trainer, memory_limit));
    EXAMPLE_TRY(example_agree(
        trainer->ctx, allocate(trainer) ? "" : "no memory for the activations; use more ranks or a smaller --batch"));
    EXAMPLE_TRY(fsdp_model_commit(trainer->model));
    EXAMPLE_TRY(create_hook(trainer));
    EXAMPLE_TRY(create_scaler(trainer));
    EXAMPLE_TRY(create_muon(trainer));
    return create_optimizer(trainer);
}

void gpt_trainer_close(gpt_trainer *trainer)
{
    fsdp_checkpoint_close(trainer->checkpoint.saver); /* still open only where something has failed */
    if (trainer->parallel) {
        gpt_parallel_close(trainer->parallel);
        free(trainer->parallel);
        return;
    }
    fsdp_model_destroy(trainer->model);
    fsdp_hook_destroy(trainer->hook);
    example_views_release(&trainer->embedding_views);
    example_views_release(&trainer->block_views);
    gpt_activations_destroy(trainer->activations);
    free(trainer->windows);
    free(trainer->blocks);
}

/* ---- going on ---------------------------------------------------------------------------------------------------- */

/* All that changes what is computed, but for the number of ranks and what is divided over them, which may change. */
static void describe_training(const gpt_trainer *trainer, const gpt_data *data, char *text, size_t size)
{
    const gpt_options *o = trainer->options;

    snprintf(
        text, size,
        "%s%zu layers, %zu heads, width %zu, context %zu, batch %zu in %zu, %zu steps, seed %zu, %zu bytes of text, "
        "rates %.9g to %.9g after %zu, decay %.9g, beta2 %.9g, clip %.9g, %s%s, %s, hook %s of rank %zu from %zu",
        o->optimizer == GPT_OPTIMIZER_MUON ? "muon, " : "", o->config.layers, o->config.heads, o->config.width,
        o->config.context, o->batch, o->accumulate, o->steps, o->seed, data->bytes, o->lr, o->min_lr, o->warmup,
        o->weight_decay, o->beta2, o->clip, fsdp_dtype_name(o->param_dtype), o->quantized_params ? " as int8" : "",
        fsdp_dtype_name(o->reduce_dtype), gpt_hook_names[o->hook], o->hook_rank, o->hook_start);
}

/* The sampler is a function of the step; where it stands is noted for people. */
static fsdp_checkpoint_state state_at(const gpt_trainer *trainer, size_t step)
{
    return (fsdp_checkpoint_state){
        .step = step, .sample = step * trainer->options->batch, .seed = trainer->options->seed};
}

/* The prefixes of names in files from elsewhere, and what becomes of them. */
typedef struct weight_names {
    size_t                 n;
    fsdp_checkpoint_rename renames[];
} weight_names;

enum { NAME_ROOM = 64, MASKS = 2, WITH_PREFIX = 2 };

/*
 * Hugging Face's later files begin all names with "transformer."; in each block they may have masks of attention, which are no
 * parameters, and beside all blocks the output head, which is the token embedding again.
 */
static void list_weight_names(size_t layers, weight_names *names, char *room)
{
    static const char *const prefixes[WITH_PREFIX] = {"", "transformer."}, *const masks[MASKS] = {"bias",
                                                                                                  "masked_bias"};

    for (size_t layer = 0; layer < layers; layer++) {
        for (size_t i = 0; i < (size_t)WITH_PREFIX * MASKS; i++, room += NAME_ROOM) {
            (void)snprintf(room, NAME_ROOM, "%sh.%zu.attn.%s", prefixes[i / MASKS], layer, masks[i % MASKS]);
            names->renames[names->n++] = (fsdp_checkpoint_rename){room, NULL};
        }
    }
    names->renames[names->n++] = (fsdp_checkpoint_rename){"lm_head.weight", NULL};
    names->renames[names->n++] = (fsdp_checkpoint_rename){"transformer.", ""};
}

static fsdp_status load_weights(const gpt_trainer *trainer)
{
    const size_t                 layers  = trainer->options->config.layers;
    const size_t                 masks   = layers * WITH_PREFIX * MASKS;
    weight_names                *names   = calloc(1, sizeof *names + (masks + 2) * sizeof *names->renames);
    char                        *room    = calloc(masks, NAME_ROOM);
    fsdp_checkpoint_load_options options = FSDP_CHECKPOINT_LOAD_OPTIONS_DEFAULT;
    fsdp_status                  status  = FSDP_ERR_MEMORY;

    if (names && room) {
        list_weight_names(layers, names, room);
        options.renames   = names->renames;
        options.n_renames = names->n;
        status            = FSDP_OK;
    }
    status = fsdp_agree(trainer->ctx, status, NULL);
    if (status == FSDP_OK) {
        status = fsdp_checkpoint_load(trainer->model, NULL, trainer->options->weights, &options, NULL);
    }
    free(names);
    free(room);
    return status;
}

/* What a save stages is the same for any number of ranks, but for the copy that --async makes. */
static void count_saves_alone(gpt_trainer *trainer, size_t staging_before)
{
    const size_t staging = trainer->budget.bytes[FSDP_MEMORY_STAGING] - staging_before;

    if (trainer->options->checkpoint.asynchronous) {
        trainer->budget_alone = (fsdp_budget){0};
    } else if (trainer->budget_alone.total > 0) {
        trainer->budget_alone.bytes[FSDP_MEMORY_STAGING] += staging;
        trainer->budget_alone.total += staging;
        trainer->budget_alone.mean_total += staging;
    }
}

fsdp_status gpt_trainer_resume(gpt_trainer *trainer, const gpt_data *data)
{
    fsdp_checkpoint_state state   = state_at(trainer, 0);
    const size_t          staging = trainer->budget.bytes[FSDP_MEMORY_STAGING];

    if (trainer->options->weights) {
        EXAMPLE_TRY(load_weights(trainer));
    }
    describe_training(trainer, data, trainer->text, sizeof trainer->text);
    memcpy(state.text, trainer->text, sizeof state.text);
    EXAMPLE_TRY(example_checkpoint_open(&trainer->checkpoint, &trainer->options->checkpoint, trainer->model,
                                        trainer->optimizer, trainer->ctx, &state, &trainer->budget));
    count_saves_alone(trainer, staging);
    trainer->first_step = (size_t)state.step;
    return trainer->hook && trainer->first_step > trainer->options->hook_start
               ? fsdp_model_set_hook(trainer->model, trainer->hook)
               : FSDP_OK;
}

fsdp_status gpt_trainer_save(gpt_trainer *trainer, size_t step, int *stop)
{
    fsdp_checkpoint_state state = state_at(trainer, step + 1);

    memcpy(state.text, trainer->text, sizeof state.text);
    EXAMPLE_TRY(example_checkpoint_step(&trainer->checkpoint, &state, step + 1 == trainer->options->steps));
    *stop = trainer->checkpoint.stopped != 0;
    return FSDP_OK;
}

fsdp_status gpt_trainer_close_checkpoint(gpt_trainer *trainer)
{
    return example_checkpoint_close(&trainer->checkpoint);
}

/* ---- passes ------------------------------------------------------------------------------------------------------ */

static void lap(gpt_trainer *trainer, gpt_part part)
{
    gpt_profile_lap(gpt_activations_profile(trainer->activations), part);
}

static fsdp_status begin_forward(gpt_trainer *trainer, fsdp_unit *unit, example_views *views)
{
    EXAMPLE_TRY(example_views_begin_forward(views, unit));
    lap(trainer, GPT_PART_SHARDING);
    return FSDP_OK;
}

static fsdp_status begin_backward(gpt_trainer *trainer, fsdp_unit *unit, example_views *views)
{
    EXAMPLE_TRY(example_views_begin_backward(views, unit));
    lap(trainer, GPT_PART_SHARDING);
    return FSDP_OK;
}

static fsdp_status end_backward(gpt_trainer *trainer, fsdp_unit *unit, example_views *views)
{
    EXAMPLE_TRY(example_views_end_backward(views, unit));
    lap(trainer, GPT_PART_SHARDING);
    return FSDP_OK;
}

/* The embedding stays open from the first lookup to the head, since the head is tied to it; blocks open in turn. */
fsdp_status gpt_trainer_forward(gpt_trainer *trainer, const gpt_pass *pass)
{
    gpt_activations *a         = trainer->activations;
    example_views   *embedding = &trainer->embedding_views, *block = &trainer->block_views;
    size_t           i;

    EXAMPLE_TRY(begin_forward(trainer, trainer->embedding, embedding));
    gpt_embedding_forward(a, pass, embedding->params);
    for (i = 0; i < trainer->options->config.layers; i++) {
        EXAMPLE_TRY(begin_forward(trainer, trainer->blocks[i], block));
        gpt_block_forward(a, pass, i, block->params);
        EXAMPLE_TRY(fsdp_unit_end_forward(trainer->blocks[i]));
    }
    gpt_head_forward(a, pass, embedding->params);
    return fsdp_unit_end_forward(trainer->embedding);
}

/* Of `weight` times the mean loss. */
static fsdp_status backward(gpt_trainer *trainer, const gpt_pass *pass, double weight)
{
    gpt_activations *a         = trainer->activations;
    example_views   *embedding = &trainer->embedding_views, *block = &trainer->block_views;
    size_t           i;

    EXAMPLE_TRY(begin_backward(trainer, trainer->embedding, embedding));
    gpt_head_backward(a, pass, weight, embedding->params, embedding->grads);
    for (i = trainer->options->config.layers; i-- > 0;) {
        EXAMPLE_TRY(begin_backward(trainer, trainer->blocks[i], block));
        gpt_block_backward(a, pass, i, block->params, block->grads);
        EXAMPLE_TRY(end_backward(trainer, trainer->blocks[i], block));
    }
    gpt_embedding_backward(a, pass, embedding->grads);
    return end_backward(trainer, trainer->embedding, embedding);
}

/* ---- training and validation ------------------------------------------------------------------------------------- */

/* Sequences of all ranks. */
static size_t micro_batch(const gpt_trainer *trainer)
{
    return trainer->options->batch / trainer->options->accumulate;
}

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

/* Micro-batch number `micro`, counted over all steps. Ranks take slices of it in their order, so that it is the same for any
 * number of ranks. */
static void load_batch(gpt_trainer *trainer, const gpt_data *data, size_t micro)
{
    const size_t first = micro * micro_batch(trainer) + trainer->share.first;
    size_t       i;

    for (i = 0; i < trainer->share.count; i++) {
        set_window(trainer, i, gpt_data_train_window(data, first + i));
    }
}

/*
 * Adds its loss to `*loss`, and `weight` times the gradients of the mean loss over all ranks' sequences to the gradients. These
 * are averaged over the ranks: a rank with more sequences than the mean counts for more.
 */
static fsdp_status train_micro_batch(gpt_trainer *trainer, const gpt_data *data, size_t micro, double weight,
                                     double *loss)
{
    const size_t   mine = trainer->share.count;
    const gpt_pass pass = pass_over_windows(trainer, mine);

    load_batch(trainer, data, micro);
    lap(trainer, GPT_PART_OTHER);
    EXAMPLE_TRY(gpt_trainer_forward(trainer, &pass));
    *loss += gpt_loss(trainer->activations, &pass);
    return backward(trainer, &pass,
                    weight * (double)(mine * (size_t)fsdp_size(trainer->ctx)) / (double)micro_batch(trainer));
}

static fsdp_status step_optimizer(gpt_trainer *trainer, fsdp_optimizer *optimizer, double lr, int *stepped)
{
    EXAMPLE_TRY(fsdp_optimizer_set_lr(optimizer, lr));
    return trainer->scaler ? fsdp_loss_scaler_step(trainer->scaler, optimizer, stepped)
                           : fsdp_optimizer_step(optimizer);
}

/* With a loss scaler gradients are unscaled first, so that what is clipped is their true norm. */
static fsdp_status update(gpt_trainer *trainer, double lr, gpt_step *result)
{
    int stepped = 1;

    if (trainer->scaler) {
        EXAMPLE_TRY(fsdp_loss_scaler_unscale(trainer->scaler, NULL));
    }
    EXAMPLE_TRY(fsdp_clip_grad_norm(trainer->model, trainer->options->clip, &result->norm));
    if (trainer->muon) {
        EXAMPLE_TRY(step_optimizer(trainer, trainer->muon, lr, &stepped));
    }
    EXAMPLE_TRY(step_optimizer(trainer, trainer->optimizer, lr, &stepped));
    result->skipped = !stepped;
    lap(trainer, GPT_PART_OPTIMIZER);
    return FSDP_OK;
}

/* The mean over the batch is the mean over its micro-batches, which are of equal size. */
static fsdp_status step_parallel(gpt_trainer *trainer, size_t step, double lr, gpt_step *result)
{
    gpt_parallel_step done;

    EXAMPLE_TRY(gpt_parallel_train(trainer->parallel, step, lr, &done));
    *result = (gpt_step){.loss = done.loss, .norm = done.norm};
    return FSDP_OK;
}

fsdp_status gpt_trainer_step(gpt_trainer *trainer, const gpt_data *data, size_t step, double lr, gpt_step *result)
{
    const size_t parts  = trainer->options->accumulate;
    const double weight = (trainer->scaler ? fsdp_loss_scaler_scale(trainer->scaler) : 1) / (double)parts;
    size_t       i;

    if (trainer->parallel) {
        return step_parallel(trainer, step, lr, result);
    }
    *result = (gpt_step){0};
    if (trainer->hook && step && step == trainer->options->hook_start) {
        EXAMPLE_TRY(fsdp_model_set_hook(trainer->model, trainer->hook));
    }
    for (i = 0; i < parts; i++) {
        if (accumulates_locally(trainer->options)) {
            EXAMPLE_TRY(fsdp_model_set_sync(trainer->model, i + 1 == parts));
        }
        EXAMPLE_TRY(train_micro_batch(trainer, data, step * parts + i, weight, &result->loss));
    }
    return update(trainer, lr, result);
}

/* Loads the windows of this rank among `count` from `first` on, every rank its part in turn; the last ranks may get less. */
static size_t load_val_batch(gpt_trainer *trainer, const gpt_data *data, size_t first, size_t windows)
{
    const size_t mine = first + trainer->share.first;
    size_t       i;

    for (i = 0; i < trainer->share.count && mine + i < windows; i++) {
        set_window(trainer, i, gpt_data_val_window(data, mine + i));
    }
    return i;
}

/* The sum of the losses of so many windows, over all ranks. */
static fsdp_status validate_windows(gpt_trainer *trainer, const gpt_data *data, size_t windows, double *loss)
{
    const size_t per_pass = micro_batch(trainer);
    size_t       first;

    *loss = 0;
    for (first = 0; first < windows; first += per_pass) {
        const gpt_pass pass = pass_over_windows(trainer, load_val_batch(trainer, data, first, windows));

        EXAMPLE_TRY(gpt_trainer_forward(trainer, &pass));
        *loss += gpt_loss(trainer->activations, &pass);
    }
    return fsdp_allreduce(trainer->ctx, FSDP_IN_PLACE, loss, 1, FSDP_F64, FSDP_SUM);
}

fsdp_status gpt_trainer_validate(gpt_trainer *trainer, const gpt_data *data, double *loss, size_t *bytes)
{
    const size_t all = gpt_data_val_windows(data), batch = trainer->options->batch;
    const size_t most    = trainer->options->val_batches;
    const size_t windows = most && most < all / batch ? most * batch : all;

    *bytes = windows * trainer->options->config.context;
    EXAMPLE_TRY(trainer->parallel ? gpt_parallel_validate(trainer->parallel, windows, loss)
                                  : validate_windows(trainer, data, windows, loss));
    *loss /= (double)*bytes;
    return FSDP_OK;
}
