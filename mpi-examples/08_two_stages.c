/*
 * Step 8: a network cut in two. Each rank has half of the layers, and hands what they put out to the other.
 *
 *     mpirun -n 2 08_two_stages
 *     mpirun -n 4 08_two_stages --stages 4 --schedule zb-h1 --micro 12
 *
 * It trains twice with the same micro-batches: plain, one after the other, where only one rank computes at a time; and by a schedule,
 * where the second half works on one while the first has the next. The losses are the same, bit by bit, and those of one rank
 * that has all layers. With more ranks than stages, pipelines stand beside each other and share their models' gradients.
 *
 * When not to do it this way: where the whole network fits on each rank, data-parallel ranks (step 2) do not wait for each other.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fsdp/fsdp.h>

#include "mpi-examples/common/example_clock.h"
#include "mpi-examples/common/example_error.h"
#include "mpi-examples/common/example_options.h"

enum { LAYERS = 4, ROWS = 16, MOST_STEPS = 1000 };

typedef struct settings {
    int         stages, micros, steps, width, exact, help;
    const char *schedule;
} settings;

#define FIELD(name) offsetof(settings, name)
static const example_option rows[] = {
    {"stages", EXAMPLE_COUNT, FIELD(stages), 1, LAYERS, NULL, "parts of the network: 1, 2 or 4"},
    {"schedule", EXAMPLE_TEXT, FIELD(schedule), 0, 0, NULL, "gpipe, 1f1b or zb-h1"},
    {"micro", EXAMPLE_COUNT, FIELD(micros), 1, 1024, NULL, "micro-batches of a step"},
    {"steps", EXAMPLE_COUNT, FIELD(steps), 1, MOST_STEPS, NULL, "steps of each training"},
    {"width", EXAMPLE_COUNT, FIELD(width), 1, 8192, NULL, "of each layer"},
    {"exact", EXAMPLE_FLAG, FIELD(exact), 0, 0, NULL, "print all bits of the losses"},
    {"help", EXAMPLE_FLAG, FIELD(help), 0, 0, NULL, "this text"},
};
enum { N_ROWS = sizeof rows / sizeof rows[0] };

/* One training: this rank's stages of a network, and what they remember between forward and backward. */
typedef struct training {
    const settings *o;
    int             ranks, pipe;    /* of a pipeline; which one this is */
    fsdp_context   *along, *across; /* the ranks of the pipeline; those with the same stages in others */
    fsdp_pipeline  *pipeline;
    fsdp_model     *model;
    fsdp_optimizer *optimizer;
    fsdp_unit      *units[LAYERS]; /* of each stage; NULL: elsewhere */
    float   *activations; /* of each micro-batch: before each layer, and behind the last; then gradients behind tanh */
    uint64_t step;
} training;

/* ---- layers: y = tanh(x W + b) ---------------------------------------------------------------------------------------- */

static size_t plane(const training *t)
{
    return (size_t)ROWS * (size_t)t->o->width;
}

/* What goes into a layer with a micro-batch; `layer` may be LAYERS. */
static float *input_of(const training *t, int micro, int layer)
{
    return t->activations + ((size_t)micro * (2 * LAYERS + 1) + (size_t)layer) * plane(t);
}

/* The gradient of what goes into a layer's tanh. */
static float *gradient_of(const training *t, int micro, int layer)
{
    return input_of(t, micro, LAYERS + 1 + layer);
}

static void layer_forward(int width, const float *x, const float *weight, const float *bias, float *y)
{
    for (int r = 0; r < ROWS; r++) {
        float *out = y + (size_t)r * (size_t)width;

        memcpy(out, bias, (size_t)width * sizeof *out);
        for (int i = 0; i < width; i++) {
            const float  value = x[r * width + i];
            const float *row   = weight + (size_t)i * (size_t)width;

            for (int o = 0; o < width; o++) {
                out[o] += value * row[o];
            }
        }
        for (int o = 0; o < width; o++) {
            out[o] = tanhf(out[o]);
        }
    }
}

static void through_tanh(size_t n, const float *y, const float *dy, float *dz)
{
    for (size_t i = 0; i < n; i++) {
        dz[i] = dy[i] * (1.0F - y[i] * y[i]);
    }
}

static void layer_backward_input(int width, const float *dz, const float *weight, float *dx)
{
    for (int r = 0; r < ROWS; r++) {
        for (int i = 0; i < width; i++) {
            const float *row = weight + (size_t)i * (size_t)width, *d = dz + (size_t)r * (size_t)width;
            float        sum = 0.0F;

            for (int o = 0; o < width; o++) {
                sum += d[o] * row[o];
            }
            dx[r * width + i] = sum;
        }
    }
}

static void layer_backward_weight(int width, const float *x, const float *dz, float *dw, float *db)
{
    for (int r = 0; r < ROWS; r++) {
        const float *d = dz + (size_t)r * (size_t)width;

        for (int i = 0; i < width; i++) {
            for (int o = 0; o < width; o++) {
                dw[(size_t)i * (size_t)width + (size_t)o] += x[r * width + i] * d[o];
            }
        }
        for (int o = 0; o < width; o++) {
            db[o] += d[o];
        }
    }
}

/* ---- the four callbacks -------------------------------------------------------------------------------------------------- */

static int layers_of_stage(const training *t)
{
    return LAYERS / t->o->stages;
}

/* Inputs, and what the network shall make of them. */
static void draw(const training *t, int micro, uint64_t stream, float scale, float *values)
{
    const uint64_t batch = (t->step * (uint64_t)t->o->micros + (uint64_t)micro) * 64 + (uint64_t)t->pipe;

    for (size_t i = 0; i < plane(t); i++) {
        values[i] = scale * (float)fsdp_random_normal(11, stream, batch * plane(t) + i);
    }
}

static fsdp_status forward(void *user, int stage, int micro, const void *in, void *out)
{
    training *t     = user;
    const int first = stage * layers_of_stage(t), end = first + layers_of_stage(t);

    if (in == NULL) {
        draw(t, micro, 1, 1.0F, input_of(t, micro, 0));
    } else {
        memcpy(input_of(t, micro, first), in, plane(t) * sizeof(float));
    }
    for (int l = first; l < end; l++) {
        const size_t tensor = 2 * (size_t)(l - first);

        layer_forward(t->o->width, input_of(t, micro, l), fsdp_unit_param(t->units[stage], tensor),
                      fsdp_unit_param(t->units[stage], tensor + 1), input_of(t, micro, l + 1));
    }
    memcpy(out, input_of(t, micro, end), plane(t) * sizeof(float));
    return FSDP_OK;
}

/* Half the mean squared error, over all micro-batches. */
static fsdp_status loss(void *user, int micro, const void *out, void *grad_out, double *value)
{
    const training *t     = user;
    const float    *y     = out;
    float          *d     = grad_out;
    const float     scale = 1.0F / ((float)plane(t) * (float)t->o->micros);

    draw(t, micro, 2, 0.5F, d);
    *value = 0;
    for (size_t i = 0; i < plane(t); i++) {
        const float error = y[i] - d[i];

        *value += 0.5 * (double)scale * (double)error * (double)error;
        d[i] = scale * error;
    }
    return FSDP_OK;
}

static fsdp_status backward_input(void *user, int stage, int micro, const void *in, const void *grad_out, void *grad_in)
{
    training    *t     = user;
    const int    first = stage * layers_of_stage(t);
    const float *dy    = grad_out;

    (void)in;
    for (int l = first + layers_of_stage(t) - 1; l >= first; l--) {
        float *dz = gradient_of(t, micro, l);

        through_tanh(plane(t), input_of(t, micro, l + 1), dy, dz);
        float *dx = l > first ? gradient_of(t, micro, l - 1) : grad_in; /* NULL before the first layer */
        if (dx != NULL) {
            layer_backward_input(t->o->width, dz, fsdp_unit_param(t->units[stage], 2 * (size_t)(l - first)), dx);
        }
        dy = dx;
    }
    return FSDP_OK;
}

static fsdp_status backward_weight(void *user, int stage, int micro, const void *in, const void *grad_out)
{
    training *t     = user;
    const int first = stage * layers_of_stage(t);

    (void)in;
    (void)grad_out;
    for (int l = first; l < first + layers_of_stage(t); l++) {
        const size_t tensor = 2 * (size_t)(l - first);

        layer_backward_weight(t->o->width, input_of(t, micro, l), gradient_of(t, micro, l),
                              fsdp_unit_grad(t->units[stage], tensor), fsdp_unit_grad(t->units[stage], tensor + 1));
    }
    return FSDP_OK;
}

/* ---- training ------------------------------------------------------------------------------------------------------------- */

/* Micro-batch after micro-batch, forward and then backward: a line for each rank. */
static char *plain_schedule(const training *t)
{
    enum { ACTION = 24 };
    const size_t room = 2 * (size_t)t->o->stages * (size_t)t->o->micros * ACTION + 64;
    char        *text = calloc(1, room);
    size_t       used = 0;

    for (int r = 0; text != NULL && r < t->ranks; r++) {
        for (int m = 0; m < t->o->micros; m++) {
            for (int s = 0; s < 2 * t->o->stages; s++) {
                const int stage = s < t->o->stages ? s : 2 * t->o->stages - 1 - s;

                if (stage % t->ranks == r) {
                    used +=
                        (size_t)snprintf(text + used, room - used, "%d%c%d,", stage, s < t->o->stages ? 'F' : 'B', m);
                }
            }
        }
        used += (size_t)snprintf(text + used, room - used, "\n");
    }
    return text;
}

static fsdp_status add_stage(training *t, int stage)
{
    const size_t width = (size_t)t->o->width;
    char         name[32], names[2 * LAYERS][32];
    fsdp_tensor  tensors[2 * LAYERS] = {{0}};
    const int    n                   = layers_of_stage(t);

    for (int l = 0; l < n; l++) {
        (void)snprintf(names[2 * l], sizeof names[0], "layer.%d.weight", stage * n + l);
        (void)snprintf(names[2 * l + 1], sizeof names[0], "layer.%d.bias", stage * n + l);
        tensors[2 * l]     = (fsdp_tensor){.name   = names[2 * l],
                                           .n_dims = 2,
                                           .shape  = {width, width},
                                           .dtype  = FSDP_F32,
                                           .fill   = FSDP_FILL_NORMAL,
                                           .b      = 1.0 / sqrt((double)width)};
        tensors[2 * l + 1] = (fsdp_tensor){.name = names[2 * l + 1], .n_dims = 1, .shape = {width}, .dtype = FSDP_F32};
    }
    (void)snprintf(name, sizeof name, "stage.%d", stage);
    return fsdp_unit_add(t->model, name, tensors, 2 * (size_t)n, &t->units[stage]);
}

/* The model of this rank's stages, which it shares with the ranks that have the same ones. */
static fsdp_status make_model(training *t)
{
    fsdp_model_options     options = FSDP_MODEL_OPTIONS_DEFAULT;
    fsdp_optimizer_options adam;

    options.local_gradients = 1;
    EXAMPLE_TRY(fsdp_model_create(t->across, &options, &t->model));
    for (int s = fsdp_rank(t->along); s < t->o->stages; s += t->ranks) {
        EXAMPLE_TRY(add_stage(t, s));
    }
    EXAMPLE_TRY(fsdp_model_commit(t->model));
    EXAMPLE_TRY(fsdp_optimizer_options_init(FSDP_ADAMW, &adam));
    adam.lr = 0.002;
    return fsdp_optimizer_create(t->model, &adam, &t->optimizer);
}

/* `text`: the schedule; NULL: that of the options. */
static fsdp_status make_pipeline(training *t, const char *text)
{
    const fsdp_pipeline_callbacks callbacks = {.size            = sizeof callbacks,
                                               .forward         = forward,
                                               .loss            = loss,
                                               .backward_input  = backward_input,
                                               .backward_weight = backward_weight,
                                               .user            = t};
    fsdp_pipeline_options         options   = FSDP_PIPELINE_OPTIONS_DEFAULT;
    const int                     each      = t->o->stages / t->ranks;

    options.text            = text;
    options.schedule        = each > 1 ? "interleaved" : t->o->schedule; /* one rank that has all stages */
    options.stages_per_rank = each;
    options.micros          = t->o->micros;
    options.bytes           = plane(t) * sizeof(float);
    options.output_bytes    = options.bytes;
    EXAMPLE_TRY(fsdp_pipeline_create(t->along, &options, &callbacks, &t->pipeline));
    for (int s = fsdp_rank(t->along); s < t->o->stages; s += t->ranks) {
        EXAMPLE_TRY(fsdp_pipeline_set_units(t->pipeline, s, &t->units[s], 1));
    }
    return FSDP_OK;
}

/* What a training was like. */
typedef struct result {
    double losses[MOST_STEPS], seconds, waited; /* the last: share of the time, on this rank */
} result;

static fsdp_status run_steps(training *t, result *r)
{
    fsdp_pipeline_info info;
    const double       begin = example_now();

    for (t->step = 0; t->step < (uint64_t)t->o->steps; t->step++) {
        EXAMPLE_TRY(fsdp_pipeline_step(t->pipeline, &r->losses[t->step]));
        EXAMPLE_TRY(fsdp_optimizer_step(t->optimizer));
        EXAMPLE_TRY(fsdp_pipeline_get_info(t->pipeline, &info));
        r->waited += info.wait_seconds;
    }
    r->seconds = example_now() - begin;
    r->waited /= r->seconds;
    return FSDP_OK;
}

static fsdp_status train(training *t, const char *text, result *r)
{
    const size_t room = (size_t)t->o->micros * (2 * LAYERS + 1) * plane(t) * sizeof(float);

    t->activations     = malloc(room);
    fsdp_status status = example_agree(t->along, t->activations != NULL ? "" : "no memory for activations");
    status             = status == FSDP_OK ? make_model(t) : status;
    status             = status == FSDP_OK ? make_pipeline(t, text) : status;
    status             = status == FSDP_OK ? run_steps(t, r) : status;
    fsdp_pipeline_destroy(t->pipeline);
    fsdp_model_destroy(t->model);
    free(t->activations);
    t->pipeline = NULL;
    t->model    = NULL;
    return status;
}

static void report(const training *t, const char *name, const result *r)
{
    const double loss = r->losses[t->o->steps - 1];

    if (example_speaks()) {
        printf("%-11s %d stages on %d ranks, %d micro-batches: %d steps in %6.2f s, rank 0 waits %4.1f%%, loss %.6f\n",
               name, t->o->stages, t->ranks, t->o->micros, t->o->steps, r->seconds, 100 * r->waited, loss);
        for (int i = 0; t->o->exact && i < t->o->steps; i++) {
            printf("loss %d %a\n", i, r->losses[i]);
        }
    }
}

static fsdp_status train_both(training *t)
{
    static result plain, pipelined;
    char         *text = plain_schedule(t);

    fsdp_status status = example_agree(t->along, text != NULL ? "" : "no memory for a schedule");
    status             = status == FSDP_OK ? train(t, text, &plain) : status;
    status             = status == FSDP_OK ? train(t, NULL, &pipelined) : status;
    free(text);
    EXAMPLE_TRY(status);
    report(t, "plain", &plain);
    report(t, t->o->stages > t->ranks ? "interleaved" : t->o->schedule, &pipelined);
    if (memcmp(plain.losses, pipelined.losses, sizeof plain.losses) != 0) {
        return example_fail("the losses differ");
    }
    if (example_speaks()) {
        printf("the same losses, bit by bit; %.2f times as fast\n", plain.seconds / pipelined.seconds);
    }
    return FSDP_OK;
}

/* Rank r of MPI_COMM_WORLD is rank r mod p of pipeline r / p. */
static fsdp_status run(const settings *o)
{
    training t = {.o = o};
    int      size, rank;
    MPI_Comm along, across;

    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    t.ranks = size < o->stages ? 1 : o->stages;
    if (LAYERS % o->stages != 0 || size % t.ranks != 0 || (t.ranks == 1 && size > 1 && o->stages > 1)) {
        return example_fail(
            "--stages is %d, of %d layers, on %d ranks; use 1, 2 or 4, and one rank or a multiple of it", o->stages,
            LAYERS, size);
    }
    t.pipe = rank / t.ranks;
    MPI_Comm_split(MPI_COMM_WORLD, t.pipe, rank, &along);
    MPI_Comm_split(MPI_COMM_WORLD, rank % t.ranks, rank, &across);
    fsdp_status status = fsdp_init(along, NULL, &t.along);
    status             = status == FSDP_OK ? fsdp_init(across, NULL, &t.across) : status;
    MPI_Comm_free(&along);
    MPI_Comm_free(&across);
    status                  = status == FSDP_OK ? train_both(&t) : status;
    const fsdp_status first = fsdp_finalize(t.across), second = fsdp_finalize(t.along);
    return status != FSDP_OK ? status : first != FSDP_OK ? first : second;
}

int main(int argc, char **argv)
{
    settings    o = {.stages = 2, .micros = 8, .steps = 10, .width = 256, .schedule = "1f1b"};
    fsdp_status status;
    int         threads;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &threads); /* so that messages move while stages compute */
    status = example_options_read(argc, argv, rows, N_ROWS, &o);
    if (status == FSDP_OK && o.help && example_speaks()) {
        example_options_print(rows, N_ROWS,
                              &(settings){.stages = 2, .micros = 8, .steps = 10, .width = 256, .schedule = "1f1b"});
    }
    if (status == FSDP_OK && !o.help) {
        status = run(&o);
    }
    if (status == FSDP_ERR_MPI || status == FSDP_ERR_TIMEOUT) {
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE); /* MPI_Finalize() would wait for a rank that is gone */
    }
    MPI_Finalize();
    return status == FSDP_OK && example_output_is_written() ? EXIT_SUCCESS : EXIT_FAILURE;
}
