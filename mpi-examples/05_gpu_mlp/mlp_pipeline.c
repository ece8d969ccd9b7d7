/*
 * What to learn here: callbacks put their kernels into the stream and return, without waiting for anything but the losses. They get
 * device pointers, and when the library sends what lies there, it comes behind the kernels.
 *
 * A mesh of dp x pp ranks: those along pp are a pipeline, those along dp share the model of a stage.
 */
#include "mlp_pipeline.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "mlp_trainer.h"
#include "mpi-examples/common/example_clock.h"
#include "mpi-examples/common/example_error.h"
#include "mpi-examples/common/example_report.h"
#include "mpi-examples/common/fashion_batch.h"

enum { WEIGHT, BIAS, N_TENSORS };

typedef struct stage {
    const mlp_options  *options;
    const fashion_data *data;
    mlp_device         *device;
    fsdp_context       *all, *dp, *pp;
    fsdp_mesh          *mesh;
    fsdp_model         *model;
    fsdp_optimizer     *optimizer;
    fsdp_pipeline      *pipeline;

    size_t     n_layers, begin, end; /* of the network; and this rank's */
    fsdp_unit *units[MLP_MOST_LAYERS];
    size_t     images; /* of a micro-batch in this pipeline */

    /* On the device. Of each micro-batch, what layers put out, as long as the library does not hold it: those within the stage, and
     * the last one's logits. */
    float         *input, *outputs[MLP_MOST_LAYERS], *losses;
    float         *gradients[MLP_MOST_LAYERS]; /* of the same within the stage; the next micro-batch has them again */
    unsigned char *labels, *found;

    /* On the host: of a step, and of a micro-batch. */
    float         *host_images, *host_losses;
    unsigned char *host_labels, *host_found;
    mlp_outcome    outcome; /* of the step, in the last stage */
} stage;

/* ---- setting up -------------------------------------------------------------------------------------------------- */

static size_t width_of(const stage *s, size_t layer)
{
    return layer == 0 ? FASHION_PIXELS : layer < s->n_layers ? s->options->hidden : FASHION_CLASSES;
}

static int is_first(const stage *s)
{
    return s->begin == 0;
}

static int is_last(const stage *s)
{
    return s->end == s->n_layers;
}

/* Names are those of the whole network, so that it begins with the same values. */
static fsdp_status add_layer(stage *s, size_t layer)
{
    const size_t in = width_of(s, layer), out = width_of(s, layer + 1);
    char         name[32], weight[48], bias[48];

    (void)snprintf(name, sizeof name, "layers.%zu", layer);
    (void)snprintf(weight, sizeof weight, "%s.weight", name);
    (void)snprintf(bias, sizeof bias, "%s.bias", name);
    const fsdp_tensor tensors[N_TENSORS] = {
        [WEIGHT] =
            {.name = weight, .n_dims = 2, .shape = {out, in}, .fill = FSDP_FILL_NORMAL, .b = sqrt(2 / (double)in)},
        [BIAS] = {.name = bias, .n_dims = 1, .shape = {out}, .flags = FSDP_TENSOR_NO_WEIGHT_DECAY}};
    return fsdp_unit_add(s->model, name, tensors, N_TENSORS, &s->units[layer]);
}

static fsdp_status make_model(stage *s)
{
    const mlp_options     *o     = s->options;
    fsdp_model_options     model = FSDP_MODEL_OPTIONS_DEFAULT;
    fsdp_optimizer_options adamw;

    model.strategy        = o->strategy;
    model.seed            = o->seed;
    model.local_gradients = 1; /* those of micro-batches add up on each rank */
    model.placement = o->device == MLP_ON_HOST ? FSDP_ON_HOST : o->offload ? FSDP_ON_DEVICE_OFFLOADED : FSDP_ON_DEVICE;
    EXAMPLE_TRY(fsdp_model_create(s->dp, &model, &s->model));
    for (size_t l = s->begin; l < s->end; l++) {
        EXAMPLE_TRY(add_layer(s, l));
    }
    EXAMPLE_TRY(fsdp_model_commit(s->model));
    EXAMPLE_TRY(fsdp_optimizer_options_init(FSDP_ADAMW, &adamw));
    adamw.lr = o->lr;
    return fsdp_optimizer_create(s->model, &adamw, &s->optimizer);
}

/* In the last stage the output stays here, as logits. */
static int is_here(const stage *s, size_t layer)
{
    return layer + 1 < s->end || is_last(s);
}

static int allocate(stage *s)
{
    mlp_device  *d = s->device;
    const size_t n = s->images, all = n * s->options->micros;
    int          ok;

    s->losses = d->alloc(d, n * sizeof *s->losses);
    s->labels = d->alloc(d, n);
    s->found  = d->alloc(d, n);
    s->input  = is_first(s) ? d->alloc(d, all * FASHION_PIXELS * sizeof *s->input) : NULL;
    ok        = s->losses && s->labels && s->found && (s->input || !is_first(s));
    for (size_t l = s->begin; l < s->end && ok; l++) {
        const size_t bytes = n * width_of(s, l + 1) * sizeof(float);

        s->outputs[l]   = is_here(s, l) ? d->alloc(d, s->options->micros * bytes) : NULL;
        s->gradients[l] = l + 1 < s->end ? d->alloc(d, bytes) : NULL;
        ok              = (s->outputs[l] || !is_here(s, l)) && (s->gradients[l] || l + 1 == s->end);
    }
    s->host_images = malloc(all * FASHION_PIXELS * sizeof *s->host_images);
    s->host_labels = malloc(all);
    s->host_losses = malloc(n * sizeof *s->host_losses);
    s->host_found  = malloc(n);
    return ok && s->host_images && s->host_labels && s->host_losses && s->host_found;
}

/* ---- passes ------------------------------------------------------------------------------------------------------ */

static float *of_micro(const stage *s, float *all, int micro, size_t width)
{
    return all + (size_t)micro * s->images * width;
}

/* What goes into a layer. `in`: into the stage. */
static const float *input_of(const stage *s, size_t layer, int micro, const void *in)
{
    return layer > s->begin ? of_micro(s, s->outputs[layer - 1], micro, width_of(s, layer))
           : is_first(s)    ? of_micro(s, s->input, micro, FASHION_PIXELS)
                            : in;
}

static fsdp_status forward(void *user, int number, int micro, const void *in, void *out)
{
    stage      *s = user;
    mlp_device *d = s->device;

    (void)number;
    if (is_first(s)) {
        const size_t at = (size_t)micro * s->images * FASHION_PIXELS;

        d->send(d, s->input + at, s->host_images + at, s->images * FASHION_PIXELS * sizeof *s->input);
    }
    for (size_t l = s->begin; l < s->end; l++) {
        const size_t width = width_of(s, l), next = width_of(s, l + 1);

        d->multiply(d, &(mlp_product){.a       = {input_of(s, l, micro, in), width, 1},
                                      .b       = {fsdp_unit_param(s->units[l], WEIGHT), 1, width},
                                      .rows    = s->images,
                                      .columns = next,
                                      .steps   = width,
                                      .out     = is_here(s, l) ? of_micro(s, s->outputs[l], micro, next) : out,
                                      .bias    = fsdp_unit_param(s->units[l], BIAS),
                                      .rectify = l + 1 < s->n_layers});
    }
    return FSDP_OK;
}

/* The gradient takes the place of the logits; both are the program's own. */
static fsdp_status loss(void *user, int micro, const void *out, void *grad_out, double *value)
{
    stage       *s     = user;
    mlp_device  *d     = s->device;
    const double ranks = fsdp_size(s->dp);

    (void)out, (void)grad_out;
    d->send(d, s->labels, s->host_labels + (size_t)micro * s->images, s->images);
    d->loss(d, &(mlp_loss){.logits  = of_micro(s, s->outputs[s->n_layers - 1], micro, FASHION_CLASSES),
                           .labels  = s->labels,
                           .rows    = s->images,
                           .columns = FASHION_CLASSES,
                           .scale   = (float)(ranks / (double)s->options->batch),
                           .losses  = s->losses,
                           .found   = s->found});
    d->fetch(d, s->host_losses, s->losses, s->images * sizeof *s->losses);
    d->fetch(d, s->host_found, s->found, s->images);
    *value = 0;
    for (size_t i = 0; i < s->images; i++) {
        *value += (double)s->host_losses[i];
        s->outcome.found += s->host_found[i];
    }
    s->outcome.loss += *value;
    s->outcome.images += s->images;
    return FSDP_OK;
}

static void layer_backward(const stage *s, size_t l, const float *input, const float *gradient, float *of_input)
{
    const size_t in = width_of(s, l), out = width_of(s, l + 1);
    mlp_device  *d = s->device;

    d->multiply(d, &(mlp_product){.a       = {gradient, 1, out},
                                  .b       = {input, in, 1},
                                  .rows    = out,
                                  .columns = in,
                                  .steps   = s->images,
                                  .out     = fsdp_unit_grad(s->units[l], WEIGHT)});
    d->sum(d,
           &(mlp_sum){.data = gradient, .rows = s->images, .columns = out, .out = fsdp_unit_grad(s->units[l], BIAS)});
    if (of_input) {
        d->multiply(d, &(mlp_product){.a       = {gradient, out, 1},
                                      .b       = {fsdp_unit_param(s->units[l], WEIGHT), in, 1},
                                      .rows    = s->images,
                                      .columns = in,
                                      .steps   = out,
                                      .out     = of_input,
                                      .gate    = input});
    }
}

/* Gradients of parameters as well, since there is no `backward_weight`. */
static fsdp_status backward(void *user, int number, int micro, const void *in, const void *grad_out, void *grad_in)
{
    const stage *s        = user;
    const float *gradient = is_last(s) ? of_micro(s, s->outputs[s->n_layers - 1], micro, FASHION_CLASSES) : grad_out;

    (void)number;
    for (size_t l = s->end; l-- > s->begin;) {
        float *next = l > s->begin ? s->gradients[l - 1] : grad_in;

        layer_backward(s, l, input_of(s, l, micro, in), gradient, next);
        gradient = next;
    }
    return FSDP_OK;
}

/* ---- training ---------------------------------------------------------------------------------------------------- */

static fsdp_status make_pipeline(stage *s)
{
    const mlp_options      *o         = s->options;
    fsdp_pipeline_options   options   = FSDP_PIPELINE_OPTIONS_DEFAULT;
    fsdp_pipeline_callbacks callbacks = {
        .size = sizeof callbacks, .forward = forward, .loss = loss, .backward_input = backward, .user = s};

    options.schedule  = o->schedule;
    options.micros    = (int)o->micros;
    options.batch     = o->batch;
    options.bytes     = s->images * o->hidden * sizeof(float);
    options.placement = o->device == MLP_ON_GPU ? FSDP_ON_DEVICE : FSDP_ON_HOST;
    EXAMPLE_TRY(fsdp_pipeline_create(s->pp, &options, &callbacks, &s->pipeline));
    return fsdp_pipeline_set_units(s->pipeline, fsdp_rank(s->pp), s->units + s->begin, s->end - s->begin);
}

static fsdp_status take_step(stage *s, size_t epoch, size_t step)
{
    const size_t each = s->options->batch / s->options->micros;
    float        one;

    for (size_t m = 0; m < s->options->micros; m++) {
        const size_t        begin = step * s->options->batch + m * each;
        const fashion_batch batch = {.data    = s->data,
                                     .set     = &s->data->train,
                                     .seed    = s->options->seed,
                                     .epoch   = epoch,
                                     .shuffle = 1,
                                     .begin   = begin,
                                     .end     = begin + each};

        (void)fashion_batch_load(&batch, s->dp, s->host_images + m * s->images * FASHION_PIXELS,
                                 s->host_labels + m * s->images);
    }
    s->outcome = (mlp_outcome){0};
    EXAMPLE_TRY(fsdp_pipeline_step(s->pipeline, NULL));
    EXAMPLE_TRY(fsdp_optimizer_step(s->optimizer));
    s->device->fetch(s->device, &one, s->losses, sizeof one); /* the host's images have been copied: others may come */
    return mlp_outcome_of_all(s->all, &s->outcome);
}

static fsdp_status train_epoch(stage *s, size_t epoch)
{
    const size_t steps   = s->data->train.count / s->options->batch;
    const double started = example_now();
    const int    speaks  = fsdp_rank(s->all) == 0;
    mlp_outcome  sum     = {0};

    for (size_t step = 0; step < steps; step++) {
        EXAMPLE_TRY(take_step(s, epoch, step));
        sum.loss += s->outcome.loss;
        sum.images += s->outcome.images;
        sum.found += s->outcome.found;
        if (speaks && s->options->exact) {
            example_print_exact_loss(epoch * steps + step + 1, s->outcome.loss / (double)s->outcome.images);
        }
    }
    if (!isfinite(sum.loss)) {
        return example_fail("the loss of epoch %zu is not finite; use an --lr below %g", epoch + 1, s->options->lr);
    }
    if (speaks) {
        printf("epoch %zu | loss %.5f, accuracy %.2f%% | %.2f s\n", epoch + 1, sum.loss / (double)sum.images,
               100 * (double)sum.found / (double)sum.images, example_now() - started);
        (void)fflush(stdout);
    }
    return FSDP_OK;
}

static void print_header(const stage *s, const char *source)
{
    const mlp_options *o = s->options;
    fsdp_pipeline_info info;

    if (fsdp_rank(s->all) != 0 || fsdp_pipeline_get_info(s->pipeline, &info) != FSDP_OK) {
        return;
    }
    printf("ranks       %d: %d pipelines of %d stages, on %s\n", fsdp_size(s->all), fsdp_size(s->dp), info.stages,
           s->device->name);
    printf("schedule    %s, %d micro-batches of %zu images\n", o->schedule, info.micros, s->images);
    printf("data        %s: %zu images to train on\n", source, s->data->train.count);
    printf("pipeline    %zu bytes on rank 0, %zu of them on its GPU, %zu pinned\n", info.bytes, info.device_bytes,
           info.pinned_bytes);
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

static fsdp_status check(const stage *s)
{
    const mlp_options *o     = s->options;
    const size_t       ranks = (size_t)fsdp_size(s->all);

    if (ranks % o->pp != 0) {
        return example_fail("--pp %zu does not divide %zu ranks; start a multiple of it", o->pp, ranks);
    }
    if (o->pp > s->n_layers) {
        return example_fail("--pp %zu is more than the %zu layers; use more --layers", o->pp, s->n_layers);
    }
    if (o->batch % (o->micros * (ranks / o->pp)) != 0) {
        return example_fail("--batch %zu does not divide into %zu micro-batches for each of %zu pipelines", o->batch,
                            o->micros, ranks / o->pp);
    }
    return s->data->train.count >= o->batch
               ? FSDP_OK
               : example_fail("%zu images to train on are less than a batch of %zu", s->data->train.count, o->batch);
}

static fsdp_status open_stage(stage *s)
{
    const fsdp_axis axes[] = {{"dp", fsdp_size(s->all) / (int)s->options->pp}, {"pp", (int)s->options->pp}};

    EXAMPLE_TRY(fsdp_mesh_create(s->all, axes, 2, NULL, &s->mesh));
    EXAMPLE_TRY(fsdp_mesh_context(s->mesh, "dp", &s->dp));
    EXAMPLE_TRY(fsdp_mesh_context(s->mesh, "pp", &s->pp));
    const size_t rank = (size_t)fsdp_rank(s->pp), stages = (size_t)fsdp_size(s->pp);
    s->begin  = rank * s->n_layers / stages;
    s->end    = (rank + 1) * s->n_layers / stages;
    s->images = s->options->batch / s->options->micros / (size_t)fsdp_size(s->dp);
    EXAMPLE_TRY(example_agree(s->all, allocate(s) ? "" : "no memory for a batch on the device or the host"));
    EXAMPLE_TRY(make_model(s));
    return make_pipeline(s);
}

static void close_stage(stage *s)
{
    mlp_device *d        = s->device;
    void *const memory[] = {s->input, s->losses, s->labels, s->found};

    fsdp_pipeline_destroy(s->pipeline);
    fsdp_model_destroy(s->model);
    fsdp_mesh_destroy(s->mesh);
    for (size_t i = 0; i < sizeof memory / sizeof memory[0]; i++) {
        if (memory[i]) {
            d->release(d, memory[i]);
        }
    }
    for (size_t l = 0; l < MLP_MOST_LAYERS; l++) {
        if (s->outputs[l]) {
            d->release(d, s->outputs[l]);
        }
        if (s->gradients[l]) {
            d->release(d, s->gradients[l]);
        }
    }
    free(s->host_images);
    free(s->host_labels);
    free(s->host_losses);
    free(s->host_found);
}

static fsdp_status run(stage *s, const char *source)
{
    EXAMPLE_TRY(open_stage(s));
    print_header(s, source);
    for (size_t epoch = 0; epoch < s->options->epochs; epoch++) {
        EXAMPLE_TRY(train_epoch(s, epoch));
    }
    return FSDP_OK;
}

fsdp_status mlp_pipeline_train(fsdp_context *ctx, const mlp_options *options, const fashion_data *data,
                               mlp_device *device, const char *source)
{
    stage s = {.options = options, .data = data, .device = device, .all = ctx, .n_layers = options->layers + 1};

    EXAMPLE_TRY(check(&s));
    const fsdp_status status = run(&s, source);
    close_stage(&s);
    return status;
}
