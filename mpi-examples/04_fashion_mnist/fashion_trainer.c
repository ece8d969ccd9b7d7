#include "fashion_trainer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi-examples/common/example_error.h"
#include "mpi-examples/common/fashion_batch.h"

static const fsdp_batch_norm_options norm_options = FSDP_BATCH_NORM_OPTIONS_DEFAULT;

/* ---- setting up -------------------------------------------------------------------------------------------------- */

static fsdp_tensor sharded_tensor(const fashion_tensor *t)
{
    fsdp_tensor tensor = {.name   = t->name,
                          .n_dims = t->n_dims,
                          .dtype  = FSDP_F32,
                          .fill   = t->deviation > 0 ? FSDP_FILL_NORMAL : FSDP_FILL_CONSTANT,
                          .a      = t->mean,
                          .b      = t->deviation,
                          .flags  = t->decays ? 0 : FSDP_TENSOR_NO_WEIGHT_DECAY};

    memcpy(tensor.shape, t->shape, sizeof t->shape);
    return tensor;
}

/* Running statistics are behind a block's parameters: held whole by every rank, and saved with them. */
enum { RUNNING_MEAN, RUNNING_VARIANCE, N_RUNNING };

typedef struct running_names {
    char text[N_RUNNING][64];
} running_names;

static void describe_running(size_t block, fsdp_tensor *tensors, running_names *names)
{
    static const char *const suffixes[N_RUNNING] = {"running_mean", "running_var"};
    const fashion_tensor     weight              = fashion_unit_tensor(block, FASHION_NORM_WEIGHT);
    size_t                   i;

    for (i = 0; i < N_RUNNING; i++) {
        snprintf(names->text[i], sizeof names->text[i], "%s.norm.%s", fashion_unit_name(block), suffixes[i]);
        tensors[i] = (fsdp_tensor){.name   = names->text[i],
                                   .n_dims = 1,
                                   .shape  = {weight.shape[0]},
                                   .dtype  = FSDP_F32,
                                   .fill   = FSDP_FILL_CONSTANT,
                                   .a      = i == RUNNING_VARIANCE,
                                   .flags  = FSDP_TENSOR_IGNORED};
    }
}

static fsdp_status add_unit(fashion_trainer *trainer, const fsdp_model_options *model, size_t unit)
{
    const size_t  n = fashion_unit_tensors(unit);
    fsdp_tensor   tensors[FASHION_MOST_TENSORS + N_RUNNING];
    running_names names;
    size_t        i;

    for (i = 0; i < n; i++) {
        const fashion_tensor about = fashion_unit_tensor(unit, i);

        tensors[i] = sharded_tensor(&about);
    }
    example_views_describe(&trainer->views[unit], trainer->ctx, model, tensors, n);
    if (unit == FASHION_HEAD) {
        return fsdp_unit_add(trainer->model, fashion_unit_name(unit), tensors, n, &trainer->units[unit]);
    }
    describe_running(unit, tensors + n, &names);
    return fsdp_unit_add(trainer->model, fashion_unit_name(unit), tensors, n + N_RUNNING, &trainer->units[unit]);
}

size_t fashion_images_per_rank(const fsdp_context *ctx, const fashion_options *options)
{
    const size_t ranks = (size_t)fsdp_size(ctx);

    return (options->batch + ranks - 1) / ranks;
}

fsdp_status fashion_trainer_open(fsdp_context *ctx, const fashion_options *options, const fashion_data *data,
                                 fashion_trainer *trainer)
{
    fsdp_model_options model = FSDP_MODEL_OPTIONS_DEFAULT;
    size_t             unit;

    model.strategy     = options->strategy;
    model.seed         = options->seed;
    model.optimizer    = FSDP_SGD_MOMENTUM;
    model.param_dtype  = options->dtype;
    model.reduce_dtype = options->dtype;
    *trainer           = (fashion_trainer){.options = options, .data = data, .ctx = ctx};
    EXAMPLE_TRY(fsdp_model_create(ctx, &model, &trainer->model));
    for (unit = 0; unit < FASHION_N_UNITS; unit++) {
        EXAMPLE_TRY(add_unit(trainer, &model, unit));
    }
    return fsdp_model_budget(trainer->model, options->strategy, 0, FSDP_SGD_MOMENTUM, &trainer->budget);
}

static fsdp_status check_memory(const fashion_trainer *trainer, size_t limit)
{
    const size_t activations = fashion_activations_bytes(fashion_images_per_rank(trainer->ctx, trainer->options));

    if (activations > 0 && activations <= limit && trainer->budget.total <= limit - activations) {
        return FSDP_OK;
    }
    return example_fail(
        "--batch %zu needs %zu bytes of activations per rank beside %zu of training state, and its part "
        "of the node's memory is %zu; use a smaller one",
        trainer->options->batch, activations, trainer->budget.total, limit);
}

/* Two arrays per block: what a forward pass saves. */
static int allocate_statistics(fashion_trainer *trainer)
{
    size_t most = 1, block;

    for (block = 0; block < FASHION_BLOCKS; block++) {
        const size_t maps = fashion_norm_of(trainer->activations, block).maps;

        most = maps > most ? maps : most;
    }
    trainer->statistics = calloc(FASHION_BLOCKS * 2 * most, sizeof *trainer->statistics);
    for (block = 0; block < FASHION_BLOCKS && trainer->statistics; block++) {
        double *next = trainer->statistics + block * 2 * most;

        trainer->saved[block] = (fsdp_batch_norm_saved){.mean = next, .scale = next + most};
    }
    return trainer->statistics != NULL;
}

/* From commit on. */
static void find_running(fashion_trainer *trainer)
{
    size_t block;

    for (block = 0; block < FASHION_BLOCKS; block++) {
        const size_t first = fashion_unit_tensors(block);

        trainer->running[block] = (fsdp_batch_norm_running){
            .mean     = fsdp_unit_buffer(trainer->units[block], first + RUNNING_MEAN),
            .variance = fsdp_unit_buffer(trainer->units[block], first + RUNNING_VARIANCE),
        };
    }
}

static int allocate_views(fashion_trainer *trainer)
{
    size_t unit;

    for (unit = 0; unit < FASHION_N_UNITS; unit++) {
        if (!example_views_allocate(&trainer->views[unit])) {
            return 0;
        }
    }
    return 1;
}

static int allocate(fashion_trainer *trainer)
{
    const size_t images = fashion_images_per_rank(trainer->ctx, trainer->options);

    trainer->activations = fashion_activations_create(images);
    trainer->labels      = malloc(images);
    return trainer->activations && trainer->labels && allocate_views(trainer) && allocate_statistics(trainer);
}

fsdp_status fashion_trainer_commit(fashion_trainer *trainer, size_t memory_limit)
{
    fsdp_optimizer_options sgd;

    EXAMPLE_TRY(check_memory(trainer, memory_limit));
    EXAMPLE_TRY(example_agree(
        trainer->ctx, allocate(trainer) ? "" : "no memory for the activations; use more ranks or a smaller --batch"));
    EXAMPLE_TRY(fsdp_model_commit(trainer->model));
    find_running(trainer);
    EXAMPLE_TRY(fsdp_optimizer_options_init(FSDP_SGD_MOMENTUM, &sgd));
    sgd.lr           = trainer->options->lr;
    sgd.momentum     = trainer->options->momentum;
    sgd.nesterov     = 1;
    sgd.weight_decay = trainer->options->weight_decay;
    return fsdp_optimizer_create(trainer->model, &sgd, &trainer->optimizer);
}

/* All that changes what is computed, but for the number of ranks and what is divided over them, which may change. */
static void describe_training(const fashion_trainer *trainer, char *text, size_t size)
{
    const fashion_options *o = trainer->options;

    snprintf(
        text, size,
        "%zu images, %zu epochs, batch %zu times %zu, seed %zu, rate %.9g after %zu, momentum %.9g, decay %.9g, %s",
        trainer->data->train.count, o->epochs, o->batch, o->accumulate, o->seed, o->lr, o->warmup, o->momentum,
        o->weight_decay, fsdp_dtype_name(o->dtype));
}

fsdp_status fashion_trainer_resume(fashion_trainer *trainer)
{
    fsdp_checkpoint_state *state = &trainer->state;

    state->seed = trainer->options->seed;
    describe_training(trainer, state->text, sizeof state->text);
    return example_checkpoint_open(&trainer->checkpoint, &trainer->options->checkpoint, trainer->model,
                                   trainer->optimizer, trainer->ctx, state, &trainer->budget);
}

fsdp_status fashion_trainer_save(fashion_trainer *trainer, size_t steps, int *stop)
{
    const size_t           per_epoch = fashion_steps_per_epoch(trainer->options, trainer->data);
    fsdp_checkpoint_state *state     = &trainer->state;

    state->step   = steps;
    state->epoch  = steps / per_epoch;
    state->sample = steps % per_epoch * trainer->options->batch * trainer->options->accumulate;
    EXAMPLE_TRY(example_checkpoint_step(&trainer->checkpoint, state, steps == per_epoch * trainer->options->epochs));
    *stop = trainer->checkpoint.stopped != 0;
    return FSDP_OK;
}

fsdp_status fashion_trainer_close_checkpoint(fashion_trainer *trainer)
{
    return example_checkpoint_close(&trainer->checkpoint);
}

void fashion_trainer_close(fashion_trainer *trainer)
{
    size_t unit;

    fsdp_checkpoint_close(trainer->checkpoint.saver); /* still open only where something has failed */
    fsdp_model_destroy(trainer->model);
    for (unit = 0; unit < FASHION_N_UNITS; unit++) {
        example_views_release(&trainer->views[unit]);
    }
    fashion_activations_destroy(trainer->activations);
    free(trainer->labels);
    free(trainer->statistics);
}

/* ---- passes ------------------------------------------------------------------------------------------------------ */

static fsdp_batch_norm_shape shape_of(const fashion_norm *norm)
{
    return (fsdp_batch_norm_shape){.samples = norm->images, .channels = norm->maps, .pixels = norm->pixels};
}

/* With the statistics of this batch on all ranks when training, else with those of the past. */
static fsdp_status normalize(fashion_trainer *trainer, size_t block, int training, const example_views *views)
{
    const fashion_norm          norm   = fashion_norm_of(trainer->activations, block);
    const fsdp_batch_norm_shape shape  = shape_of(&norm);
    const float                *weight = views->params[FASHION_NORM_WEIGHT], *bias = views->params[FASHION_NORM_BIAS];

    return training ? fsdp_batch_norm_forward(trainer->ctx, &shape, &norm_options, norm.in, weight, bias,
                                              &trainer->running[block], norm.out, &trainer->saved[block])
                    : fsdp_batch_norm_evaluate(trainer->ctx, &shape, &norm_options, norm.in, weight, bias,
                                               &trainer->running[block], norm.out);
}

static fsdp_status normalize_backward(fashion_trainer *trainer, size_t block, const example_views *views)
{
    const fashion_norm          norm  = fashion_norm_of(trainer->activations, block);
    const fsdp_batch_norm_shape shape = shape_of(&norm);

    return fsdp_batch_norm_backward(trainer->ctx, &shape, norm.in, views->params[FASHION_NORM_WEIGHT],
                                    &trainer->saved[block], norm.gradient, norm.gradient,
                                    views->grads[FASHION_NORM_WEIGHT], views->grads[FASHION_NORM_BIAS]);
}

/* Ranks with no images take part all the same: they give their share of the parameters to the others. */
static fsdp_status forward(fashion_trainer *trainer, int training)
{
    fashion_activations *a     = trainer->activations;
    example_views       *views = trainer->views;
    size_t               block;

    for (block = 0; block < FASHION_BLOCKS; block++) {
        EXAMPLE_TRY(example_views_begin_forward(&views[block], trainer->units[block]));
        fashion_convolve(a, block, views[block].params);
        EXAMPLE_TRY(normalize(trainer, block, training, &views[block]));
        fashion_pool(a, block);
        EXAMPLE_TRY(fsdp_unit_end_forward(trainer->units[block]));
    }
    EXAMPLE_TRY(example_views_begin_forward(&views[FASHION_HEAD], trainer->units[FASHION_HEAD]));
    fashion_head(a, views[FASHION_HEAD].params);
    return fsdp_unit_end_forward(trainer->units[FASHION_HEAD]);
}

static fsdp_status backward(fashion_trainer *trainer, double weight)
{
    fashion_activations *a     = trainer->activations;
    example_views       *views = trainer->views;
    size_t               block;

    EXAMPLE_TRY(example_views_begin_backward(&views[FASHION_HEAD], trainer->units[FASHION_HEAD]));
    fashion_head_backward(a, trainer->labels, weight, views[FASHION_HEAD].params, views[FASHION_HEAD].grads);
    EXAMPLE_TRY(example_views_end_backward(&views[FASHION_HEAD], trainer->units[FASHION_HEAD]));
    for (block = FASHION_BLOCKS; block-- > 0;) {
        EXAMPLE_TRY(example_views_begin_backward(&views[block], trainer->units[block]));
        fashion_pool_backward(a, block);
        EXAMPLE_TRY(normalize_backward(trainer, block, &views[block]));
        fashion_convolve_backward(a, block, views[block].params, views[block].grads);
        EXAMPLE_TRY(example_views_end_backward(&views[block], trainer->units[block]));
    }
    return FSDP_OK;
}

/* ---- training and testing ---------------------------------------------------------------------------------------- */

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Loads this rank's images of those from number `begin` up to `end` of an epoch's order. @return how many */
static size_t load(fashion_trainer *trainer, const fashion_set *set, int shuffle, size_t epoch, size_t begin,
                   size_t end)
{
    const fashion_batch batch = {.data    = trainer->data,
                                 .set     = set,
                                 .seed    = trainer->options->seed,
                                 .epoch   = epoch,
                                 .shuffle = shuffle,
                                 .begin   = begin,
                                 .end     = end};
    const size_t        images =
        fashion_batch_load(&batch, trainer->ctx, fashion_image(trainer->activations, 0), trainer->labels);

    fashion_set_images(trainer->activations, images);
    return images;
}

static size_t images_per_step(const fashion_options *options)
{
    return options->batch * options->accumulate;
}

size_t fashion_steps_per_epoch(const fashion_options *options, const fashion_data *data)
{
    return (data->train.count + images_per_step(options) - 1) / images_per_step(options);
}

fsdp_status fashion_trainer_step(fashion_trainer *trainer, size_t epoch, size_t step, double lr, double *loss,
                                 size_t *images)
{
    const fashion_set *set   = &trainer->data->train;
    const size_t       first = step * images_per_step(trainer->options);
    const size_t       end   = least(first + images_per_step(trainer->options), set->count);
    double             weight;
    size_t             begin;

    *images = end - first;
    *loss   = 0;
    weight  = (double)fsdp_size(trainer->ctx) / (double)*images;
    for (begin = first; begin < end; begin += trainer->options->batch) {
        (void)load(trainer, set, 1, epoch, begin, least(begin + trainer->options->batch, end));
        EXAMPLE_TRY(forward(trainer, 1));
        *loss += fashion_loss(trainer->activations, trainer->labels);
        EXAMPLE_TRY(backward(trainer, weight));
    }
    EXAMPLE_TRY(fsdp_optimizer_set_lr(trainer->optimizer, lr));
    return fsdp_optimizer_step(trainer->optimizer);
}

static void count_answers(const fashion_trainer *trainer, size_t images, fashion_confusion *confusion)
{
    size_t i;

    for (i = 0; i < images; i++) {
        confusion->counts[trainer->labels[i]][fashion_favourite(trainer->activations, i)]++;
    }
}

fsdp_status fashion_trainer_test(fashion_trainer *trainer, fashion_confusion *confusion)
{
    const fashion_set *set   = &trainer->data->test;
    const size_t       batch = trainer->options->batch;
    size_t             begin;

    memset(confusion, 0, sizeof *confusion);
    for (begin = 0; begin < set->count; begin += batch) {
        const size_t images = load(trainer, set, 0, 0, begin, least(begin + batch, set->count));

        EXAMPLE_TRY(forward(trainer, 0));
        count_answers(trainer, images, confusion);
    }
    return fsdp_allreduce(trainer->ctx, FSDP_IN_PLACE, confusion->counts, FASHION_CLASSES * FASHION_CLASSES, FSDP_I64,
                          FSDP_SUM);
}

double fashion_accuracy(const fashion_confusion *confusion)
{
    int64_t right = 0, all = 0;
    size_t  row, column;

    for (row = 0; row < FASHION_CLASSES; row++) {
        for (column = 0; column < FASHION_CLASSES; column++) {
            all += confusion->counts[row][column];
        }
        right += confusion->counts[row][row];
    }
    return (double)right / (double)all;
}
