/*
 * A network of three layers learns a sine wave, each layer a unit: mpirun -n 4 first_model
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <fsdp/fsdp.h>

enum { LAYERS = 3, WIDTH = 32, SAMPLES = 64, STEPS = 1500, WEIGHT = 0, BIAS = 1 };

/* The activations of one batch: what goes into layer i, and behind the last layer what comes out; and their gradients. */
typedef struct network {
    float x[LAYERS + 1][SAMPLES][WIDTH];
    float dx[LAYERS + 1][SAMPLES][WIDTH];
} network;

static const size_t widths[LAYERS + 1] = {1, WIDTH, WIDTH, 1};

#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        if ((call) != FSDP_OK) {                                                                                       \
            return EXIT_FAILURE; /* the library has printed why */                                                     \
        }                                                                                                              \
    } while (0)

static void layer_forward(network *net, int layer, const float *weight, const float *bias)
{
    const size_t inputs = widths[layer], outputs = widths[layer + 1];

    for (size_t s = 0; s < SAMPLES; s++) {
        for (size_t o = 0; o < outputs; o++) {
            float sum = bias[o];
            for (size_t i = 0; i < inputs; i++) {
                sum += weight[o * inputs + i] * net->x[layer][s][i];
            }
            net->x[layer + 1][s][o] = layer + 1 < LAYERS ? tanhf(sum) : sum;
        }
    }
}

static void layer_backward(network *net, int layer, const float *weight, float *d_weight, float *d_bias)
{
    const size_t inputs = widths[layer], outputs = widths[layer + 1];

    for (size_t s = 0; s < SAMPLES; s++) {
        const float *x = net->x[layer][s], *y = net->x[layer + 1][s];
        float       *dx = net->dx[layer][s];

        for (size_t i = 0; i < inputs; i++) {
            dx[i] = 0.0F;
        }
        for (size_t o = 0; o < outputs; o++) {
            const float slope = layer + 1 < LAYERS ? 1.0F - y[o] * y[o] : 1.0F;
            const float d     = net->dx[layer + 1][s][o] * slope;

            d_bias[o] += d;
            for (size_t i = 0; i < inputs; i++) {
                d_weight[o * inputs + i] += d * x[i];
                dx[i] += d * weight[o * inputs + i];
            }
        }
    }
}

/* Every rank draws samples of its own, the same in every run. */
static void draw_batch(network *net, fsdp_context *ctx, size_t step)
{
    const size_t first = (step * (size_t)fsdp_size(ctx) + (size_t)fsdp_rank(ctx)) * SAMPLES;

    for (size_t s = 0; s < SAMPLES; s++) {
        net->x[0][s][0] = 2.0F * (float)fsdp_random_uniform(1, 0, first + s) - 1.0F;
    }
}

/* The mean squared error, and its gradient by what the network has put out. */
static float compare(network *net)
{
    float loss = 0.0F;

    for (size_t s = 0; s < SAMPLES; s++) {
        const float error = net->x[LAYERS][s][0] - sinf(3.0F * net->x[0][s][0]);

        net->dx[LAYERS][s][0] = 2.0F * error / SAMPLES;
        loss += error * error / SAMPLES;
    }
    return loss;
}

/* begin create */
static int create(fsdp_context *ctx, fsdp_model **model, fsdp_unit *layers[], fsdp_optimizer **optimizer)
{
    static const char *const names[LAYERS][3] = {
        {"h.0", "h.0.weight", "h.0.bias"}, {"h.1", "h.1.weight", "h.1.bias"}, {"h.2", "h.2.weight", "h.2.bias"}};
    fsdp_optimizer_options options;

    TRY(fsdp_model_create(ctx, NULL, model)); /* the defaults: FULL_SHARD, f32 */
    for (int i = 0; i < LAYERS; i++) {
        const fsdp_tensor tensors[] = {
            {.name   = names[i][1],
             .n_dims = 2,
             .shape  = {widths[i + 1], widths[i]},
             .dtype  = FSDP_F32,
             .fill   = FSDP_FILL_NORMAL,
             .b      = 1.0 / sqrt((double)widths[i])},
            {.name = names[i][2], .n_dims = 1, .shape = {widths[i + 1]}, .dtype = FSDP_F32},
        };
        TRY(fsdp_unit_add(*model, names[i][0], tensors, 2, &layers[i]));
    }
    TRY(fsdp_model_commit(*model)); /* lays out, checks the memory budget, allocates, draws initial values */
    TRY(fsdp_optimizer_options_init(FSDP_ADAMW, &options));
    return fsdp_optimizer_create(*model, &options, optimizer) == FSDP_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
/* end create */

/* begin step */
static int train_step(fsdp_model *model, fsdp_optimizer *optimizer, fsdp_unit *layers[], network *net, float *loss)
{
    for (int i = 0; i < LAYERS; i++) {
        TRY(fsdp_unit_begin_forward(layers[i])); /* the layer's parameters arrive from all ranks */
        layer_forward(net, i, fsdp_unit_param(layers[i], WEIGHT), fsdp_unit_param(layers[i], BIAS));
        TRY(fsdp_unit_end_forward(layers[i])); /* and are released again */
    }
    *loss = compare(net);
    for (int i = LAYERS - 1; i >= 0; i--) {
        TRY(fsdp_unit_begin_backward(layers[i]));
        layer_backward(net, i, fsdp_unit_param(layers[i], WEIGHT), fsdp_unit_grad(layers[i], WEIGHT),
                       fsdp_unit_grad(layers[i], BIAS));
        TRY(fsdp_unit_end_backward(layers[i])); /* gradients are averaged over all ranks; each keeps its slice */
    }
    TRY(fsdp_clip_grad_norm(model, 1.0, NULL));
    TRY(fsdp_optimizer_step(optimizer)); /* each rank updates its slice of the parameters */
    return EXIT_SUCCESS;
}
/* end step */

static int train(fsdp_context *ctx, network *net)
{
    fsdp_model     *model;
    fsdp_unit      *layers[LAYERS];
    fsdp_optimizer *optimizer;
    float           loss = 0.0F;

    TRY(create(ctx, &model, layers, &optimizer));
    for (size_t step = 0; step < STEPS; step++) {
        draw_batch(net, ctx, step);
        TRY(train_step(model, optimizer, layers, net, &loss));
        if ((step + 1) % 500 == 0) {
            TRY(fsdp_allreduce(ctx, FSDP_IN_PLACE, &loss, 1, FSDP_F32, FSDP_AVG));
            if (fsdp_rank(ctx) == 0) {
                printf("step %4zu | loss %.5f\n", step + 1, (double)loss);
            }
        }
    }
    fsdp_model_destroy(model);
    return EXIT_SUCCESS;
}

/* begin main */
int main(int argc, char **argv)
{
    fsdp_context *ctx;
    network      *net    = calloc(1, sizeof *net);
    int           result = EXIT_FAILURE, provided;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided); /* so that communication overlaps with compute */
    if (net != NULL && fsdp_init(MPI_COMM_WORLD, NULL, &ctx) == FSDP_OK) {
        result = train(ctx, net);
        if (fsdp_finalize(ctx) != FSDP_OK) {
            MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE); /* MPI_Finalize() would wait for a rank that is gone */
        }
    }
    MPI_Finalize();
    free(net);
    return result;
}
/* end main */
