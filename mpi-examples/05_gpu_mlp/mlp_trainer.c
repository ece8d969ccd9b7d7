#include "mlp_trainer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "mpi-examples/common/example_error.h"
#include "mpi-examples/common/fashion_batch.h"

/** The tensors of a layer. */
enum { WEIGHT, BIAS, N_TENSORS };

/* ---- setting up -------------------------------------------------------------------------------------------------- */

static void choose_widths(mlp_trainer *t)
{
    t->n_layers  = t->options->layers + 1;
    t->widths[0] = FASHION_PIXELS;
    for (size_t l = 1; l < t->n_layers; l++) {
        t->widths[l] = t->options->hidden;
    }
    t->widths[t->n_layers] = FASHION_CLASSES;
    for (size_t l = 0; l <= t->n_layers; l++) {
        const int between = l % 2 == 1 && l < t->n_layers; /* the two layers of a pair */

        t->columns[l] = between ? t->widths[l] / t->options->tp : t->widths[l];
    }
}

/* Whether a layer begins a pair that is divided, or ends one. */
static int begins_pair(const mlp_trainer *t, size_t layer)
{
    return t->columns[layer + 1] != t->widths[layer + 1];
}

static int ends_pair(const mlp_trainer *t, size_t layer)
{
    return t->columns[layer] != t->widths[layer];
}

/* The last axis stays within a node if it can. */
static fsdp_status make_mesh(mlp_trainer *t)
{
    const fsdp_axis axes[] = {{"dp", 0}, {"tp", (int)t->options->tp}};

    t->dp = t->ctx;
    if (t->options->tp == 1) {
        return FSDP_OK;
    }
    EXAMPLE_TRY(fsdp_mesh_create(t->ctx, axes, 2, NULL, &t->mesh));
    EXAMPLE_TRY(fsdp_mesh_context(t->mesh, "dp", &t->dp));
    return fsdp_mesh_context(t->mesh, "tp", &t->tp);
}

/* A matrix of outputs x inputs, as PyTorch has it, and a bias; of the whole network, whatever is divided. */
static fsdp_status add_layer(mlp_trainer *t, size_t layer)
{
    const size_t in = t->widths[layer], out = t->widths[layer + 1];
    char         name[32], weight[48], bias[48];
    fsdp_tensor  tensors[N_TENSORS];

    (void)snprintf(name, sizeof name, "layers.%zu", layer);
    (void)snprintf(weight, sizeof weight, "%s.weight", name);
    (void)snprintf(bias, sizeof bias, "%s.bias", name);
    tensors[WEIGHT] = (fsdp_tensor){.name   = weight,
                                    .n_dims = 2,
                                    .shape  = {out, in},
                                    .dtype  = FSDP_F32,
                                    .fill   = FSDP_FILL_NORMAL,
                                    .b      = sqrt(2 / (double)in)};
    tensors[BIAS]   = (fsdp_tensor){
          .name = bias, .n_dims = 1, .shape = {out}, .dtype = FSDP_F32, .flags = FSDP_TENSOR_NO_WEIGHT_DECAY};
    if (begins_pair(t, layer)) { /* by its outputs */
        tensors[WEIGHT].flags |= FSDP_TENSOR_TP;
        tensors[BIAS].flags |= FSDP_TENSOR_TP;
    } else if (ends_pair(t, layer)) { /* by its inputs: each rank has the bias of the sum */
        tensors[WEIGHT].flags |= FSDP_TENSOR_TP;
        tensors[WEIGHT].tp_dim = 1;
    }
    return fsdp_unit_add(t->model, name, tensors, N_TENSORS, &t->units[layer]);
}

static fsdp_placement placement_of(const mlp_options *o)
{
    return o->device == MLP_ON_HOST ? FSDP_ON_HOST : o->offload ? FSDP_ON_DEVICE_OFFLOADED : FSDP_ON_DEVICE;
}

static fsdp_status make_model(mlp_trainer *t)
{
    fsdp_model_options     model = FSDP_MODEL_OPTIONS_DEFAULT;
    fsdp_optimizer_options adamw;

    model.strategy  = t->options->strategy;
    model.seed      = t->options->seed;
    model.placement = placement_of(t->options);
    if (t->mesh) {
        model.mesh        = t->mesh;
        model.tensor_axis = "tp";
    }
    EXAMPLE_TRY(fsdp_model_create(t->dp, &model, &t->model));
    for (size_t l = 0; l < t->n_layers; l++) {
        EXAMPLE_TRY(add_layer(t, l));
    }
    EXAMPLE_TRY(fsdp_model_budget(t->model, model.strategy, 0, FSDP_ADAMW, &t->budget));
    EXAMPLE_TRY(fsdp_model_commit(t->model));
    EXAMPLE_TRY(fsdp_optimizer_options_init(FSDP_ADAMW, &adamw));
    adamw.lr = t->options->lr;
    return fsdp_optimizer_create(t->model, &adamw, &t->optimizer);
}

static int allocate_on_device(mlp_trainer *t)
{
    mlp_device  *d = t->device;
    const size_t n = t->most_images;

    t->losses = d->alloc(d, n * sizeof *t->losses);
    t->labels = d->alloc(d, n);
    t->found  = d->alloc(d, n);
    for (size_t l = 0; l <= t->n_layers; l++) {
        t->values[l] = d->alloc(d, n * t->columns[l] * sizeof *t->values[l]);
        if (!t->values[l]) {
            return 0;
        }
    }
    for (size_t l = 1; l < t->n_layers; l++) {
        t->gradients[l] = d->alloc(d, n * t->columns[l] * sizeof *t->gradients[l]);
        if (!t->gradients[l]) {
            return 0;
        }
    }
    t->gradients[t->n_layers] = t->values[t->n_layers];
    return t->losses && t->labels && t->found;
}

static int allocate_on_host(mlp_trainer *t)
{
    const size_t n = t->most_images;

    t->host_images = malloc(n * FASHION_PIXELS * sizeof *t->host_images);
    t->host_losses = malloc(n * sizeof *t->host_losses);
    t->host_labels = malloc(n);
    t->host_found  = malloc(n);
    return t->host_images && t->host_losses && t->host_labels && t->host_found;
}

fsdp_status mlp_trainer_open(fsdp_context *ctx, const mlp_options *options, const fashion_data *data,
                             mlp_device *device, mlp_trainer *trainer)
{
    size_t ranks;
    int    ok;

    *trainer = (mlp_trainer){.options = options, .data = data, .ctx = ctx, .device = device};
    choose_widths(trainer);
    EXAMPLE_TRY(make_mesh(trainer));
    ranks                = (size_t)fsdp_size(trainer->dp);
    trainer->most_images = (options->batch + ranks - 1) / ranks;
    ok                   = allocate_on_host(trainer) && allocate_on_device(trainer);
    EXAMPLE_TRY(example_agree(ctx, ok ? "" : "no memory for a batch on the device or the host; use a smaller --batch"));
    return make_model(trainer);
}

static void release(mlp_device *d, void *memory)
{
    if (memory) {
        d->release(d, memory);
    }
}

void mlp_trainer_close(mlp_trainer *trainer)
{
    mlp_device *d = trainer->device;

    fsdp_model_destroy(trainer->model);
    fsdp_mesh_destroy(trainer->mesh);
    for (size_t l = 0; l <= trainer->n_layers; l++) {
        release(d, trainer->values[l]);
    }
    for (size_t l = 1; l < trainer->n_layers; l++) {
        release(d, trainer->gradients[l]);
    }
    release(d, trainer->losses);
    release(d, trainer->labels);
    release(d, trainer->found);
    free(trainer->host_images);
    free(trainer->host_losses);
    free(trainer->host_labels);
    free(trainer->host_found);
}

/* ---- passes ------------------------------------------------------------------------------------------------------ */

/* `row_length`: of a matrix as it lies in memory. */
static mlp_matrix as_it_is(const float *data, size_t row_length)
{
    return (mlp_matrix){data, row_length, 1};
}

static mlp_matrix transposed(const float *data, size_t row_length)
{
    return (mlp_matrix){data, 1, row_length};
}

/* All rows of a layer's values, on each of the ranks that divide it. */
static fsdp_tp_activations whole_rows(size_t images, size_t width)
{
    return (fsdp_tp_activations){images, width, FSDP_F32, FSDP_TP_ALL_ROWS};
}

/* The sum of what ranks have computed with their inputs, and then what the layer does with it. In the stream, as all else. */
static fsdp_status end_forward_pair(mlp_trainer *t, size_t l, size_t images)
{
    const fsdp_tp_activations outputs = whole_rows(images, t->widths[l + 1]);

    EXAMPLE_TRY(fsdp_tp_end(t->tp, &outputs, t->values[l + 1], t->values[l + 1]));
    t->device->activate(t->device, &(mlp_activation){.values  = t->values[l + 1],
                                                     .rows    = images,
                                                     .columns = t->widths[l + 1],
                                                     .bias    = fsdp_unit_param(t->units[l], BIAS),
                                                     .rectify = l + 1 < t->n_layers});
    return FSDP_OK;
}

/* out = in weight' + bias, and ReLU but behind the last layer. Begin and end say when the views are there; on a GPU the
 * product is only put into the stream between them, and what the library does with the views comes behind it. A pair begins with
 * values that are there already, so that fsdp_tp_begin() has nothing to do; with FSDP_TP_OWN_ROWS it would gather them. */
static fsdp_status forward_layer(mlp_trainer *t, size_t l, size_t images)
{
    const size_t in = t->columns[l], out = t->columns[l + 1];
    const int    ends = ends_pair(t, l);

    EXAMPLE_TRY(fsdp_unit_begin_forward(t->units[l]));
    t->device->multiply(t->device, &(mlp_product){.a       = as_it_is(t->values[l], in),
                                                  .b       = transposed(fsdp_unit_param(t->units[l], WEIGHT), in),
                                                  .rows    = images,
                                                  .columns = out,
                                                  .steps   = in,
                                                  .out     = t->values[l + 1],
                                                  .bias    = ends ? NULL : fsdp_unit_param(t->units[l], BIAS),
                                                  .rectify = !ends && l + 1 < t->n_layers});
    if (ends) {
        EXAMPLE_TRY(end_forward_pair(t, l, images));
    }
    return fsdp_unit_end_forward(t->units[l]);
}

/* The gradient of the layer's input; of a pair's input each rank has the terms of its part. */
static fsdp_status backward_input(mlp_trainer *t, size_t l, size_t images)
{
    const size_t              in = t->columns[l], out = t->columns[l + 1];
    const fsdp_tp_activations inputs = whole_rows(images, in);

    t->device->multiply(t->device, &(mlp_product){.a       = as_it_is(t->gradients[l + 1], out),
                                                  .b       = as_it_is(fsdp_unit_param(t->units[l], WEIGHT), in),
                                                  .rows    = images,
                                                  .columns = in,
                                                  .steps   = out,
                                                  .out     = t->gradients[l],
                                                  .gate    = t->values[l]});
    return begins_pair(t, l) ? fsdp_tp_end(t->tp, &inputs, t->gradients[l], t->gradients[l]) : FSDP_OK;
}

/* Gradients of weight and bias, and of the layer's input, where that is another layer's output. Ranks without images have
 * gradients of 0. */
static fsdp_status backward_layer(mlp_trainer *t, size_t l, size_t images)
{
    const size_t in = t->columns[l], out = t->columns[l + 1];
    mlp_device  *d        = t->device;
    const float *gradient = t->gradients[l + 1];

    EXAMPLE_TRY(fsdp_unit_begin_backward(t->units[l]));
    d->multiply(d, &(mlp_product){.a       = transposed(gradient, out),
                                  .b       = as_it_is(t->values[l], in),
                                  .rows    = out,
                                  .columns = in,
                                  .steps   = images,
                                  .out     = fsdp_unit_grad(t->units[l], WEIGHT)});
    d->sum(d, &(mlp_sum){.data = gradient, .rows = images, .columns = out, .out = fsdp_unit_grad(t->units[l], BIAS)});
    if (l > 0) {
        EXAMPLE_TRY(backward_input(t, l, images));
    }
    return fsdp_unit_end_backward(t->units[l]);
}

/* `scale`: of the gradient. */
static fsdp_status forward(mlp_trainer *t, size_t images, double scale)
{
    mlp_device *d = t->device;

    d->send(d, t->values[0], t->host_images, images * FASHION_PIXELS * sizeof *t->host_images);
    d->send(d, t->labels, t->host_labels, images);
    for (size_t l = 0; l < t->n_layers; l++) {
        EXAMPLE_TRY(forward_layer(t, l, images));
    }
    d->loss(d, &(mlp_loss){.logits  = t->values[t->n_layers],
                           .labels  = t->labels,
                           .rows    = images,
                           .columns = FASHION_CLASSES,
                           .scale   = (float)scale,
                           .losses  = t->losses,
                           .found   = t->found});
    return FSDP_OK;
}

/* Waits for the pass, and so for the copies from the host, whose memory is free again. */
static void collect(mlp_trainer *t, size_t images, mlp_outcome *outcome)
{
    mlp_device *d = t->device;

    d->fetch(d, t->host_losses, t->losses, images * sizeof *t->losses);
    d->fetch(d, t->host_found, t->found, images);
    for (size_t i = 0; i < images; i++) {
        outcome->loss += (double)t->host_losses[i];
        outcome->found += t->host_found[i];
    }
    outcome->images += images;
}

/* ---- training and testing ---------------------------------------------------------------------------------------- */

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

size_t mlp_steps_per_epoch(const mlp_options *options, const fashion_data *data)
{
    return (data->train.count + options->batch - 1) / options->batch;
}

fsdp_status mlp_trainer_step(mlp_trainer *trainer, size_t epoch, size_t step, mlp_outcome *outcome)
{
    const size_t        begin  = step * trainer->options->batch;
    const fashion_batch batch  = {.data    = trainer->data,
                                  .set     = &trainer->data->train,
                                  .seed    = trainer->options->seed,
                                  .epoch   = epoch,
                                  .shuffle = 1,
                                  .begin   = begin,
                                  .end     = least(begin + trainer->options->batch, trainer->data->train.count)};
    const size_t        images = fashion_batch_load(&batch, trainer->dp, trainer->host_images, trainer->host_labels);

    /* The library averages gradients over the ranks; the loss is a mean over images, which ranks may not share equally. */
    EXAMPLE_TRY(forward(trainer, images, (double)fsdp_size(trainer->dp) / (double)(batch.end - batch.begin)));
    for (size_t l = trainer->n_layers; l-- > 0;) {
        EXAMPLE_TRY(backward_layer(trainer, l, images));
    }
    EXAMPLE_TRY(fsdp_optimizer_step(trainer->optimizer));
    collect(trainer, images, outcome);
    return FSDP_OK;
}

fsdp_status mlp_trainer_test(mlp_trainer *trainer, mlp_outcome *outcome)
{
    const fashion_set *set = &trainer->data->test;

    for (size_t begin = 0; begin < set->count; begin += trainer->options->batch) {
        const fashion_batch batch = {.data  = trainer->data,
                                     .set   = set,
                                     .begin = begin,
                                     .end   = least(begin + trainer->options->batch, set->count)};
        const size_t images       = fashion_batch_load(&batch, trainer->dp, trainer->host_images, trainer->host_labels);

        EXAMPLE_TRY(forward(trainer, images, 0));
        collect(trainer, images, outcome);
    }
    return mlp_outcome_of_all(trainer->dp, outcome);
}

fsdp_status mlp_outcome_of_all(fsdp_context *ctx, mlp_outcome *outcome)
{
    double sums[3] = {outcome->loss, (double)outcome->images, (double)outcome->found};

    EXAMPLE_TRY(fsdp_allreduce(ctx, FSDP_IN_PLACE, sums, 3, FSDP_F64, FSDP_SUM));
    *outcome = (mlp_outcome){.loss = sums[0], .images = (size_t)sums[1], .found = (size_t)sums[2]};
    return FSDP_OK;
}
