/*
 * Layers computed by loops of one's own, straight on gathered views: mpirun -n 3 own_kernels
 */
#include "guide.h"

enum { WIDEST = 64 };

/* The activations of one batch: what goes into layer i, and behind the last layer what comes out; and their gradients. */
typedef struct network {
    float x[LAYERS + 1][SAMPLES * WIDEST];
    float dx[LAYERS + 1][SAMPLES * WIDEST];
} network;

/* begin forward */
/* y = tanh(W x + b); the last layer has no tanh. */
static void forward(network *net, size_t layer, const float *weight, const float *bias)
{
    const size_t inputs = widths[layer], outputs = widths[layer + 1];

    for (size_t s = 0; s < SAMPLES; s++) {
        const float *x = &net->x[layer][s * inputs];
        for (size_t o = 0; o < outputs; o++) {
            float sum = bias[o];
            for (size_t i = 0; i < inputs; i++) {
                sum += weight[o * inputs + i] * x[i];
            }
            net->x[layer + 1][s * outputs + o] = layer + 1 < LAYERS ? tanhf(sum) : sum;
        }
    }
}
/* end forward */

/* begin backward */
/* Gradient views are zero when a pass begins: what is added there by several samples, or several kernels, adds up. */
static void backward(network *net, size_t layer, const float *weight, float *d_weight, float *d_bias)
{
    const size_t inputs = widths[layer], outputs = widths[layer + 1];

    for (size_t s = 0; s < SAMPLES; s++) {
        const float *x = &net->x[layer][s * inputs], *y = &net->x[layer + 1][s * outputs];
        const float *dy = &net->dx[layer + 1][s * outputs];
        float       *dx = &net->dx[layer][s * inputs];

        for (size_t i = 0; i < inputs; i++) {
            dx[i] = 0.0F;
        }
        for (size_t o = 0; o < outputs; o++) {
            const float d = layer + 1 < LAYERS ? dy[o] * (1.0F - y[o] * y[o]) : dy[o];
            d_bias[o] += d;
            for (size_t i = 0; i < inputs; i++) {
                d_weight[o * inputs + i] += d * x[i];
                dx[i] += d * weight[o * inputs + i];
            }
        }
    }
}
/* end backward */

/* begin step */
static int train_step(guide *g, network *net, float *loss)
{
    for (size_t i = 0; i < LAYERS; i++) {
        TRY(fsdp_unit_begin_forward(g->layers[i])); /* its parameters arrive from all ranks */
        forward(net, i, fsdp_unit_param(g->layers[i], WEIGHT), fsdp_unit_param(g->layers[i], BIAS));
        TRY(fsdp_unit_end_forward(g->layers[i])); /* and are released again */
    }
    *loss = guide_compare(g, net->x[LAYERS], net->dx[LAYERS]);
    for (size_t i = LAYERS; i-- > 0;) {
        TRY(fsdp_unit_begin_backward(g->layers[i]));
        backward(net, i, fsdp_unit_param(g->layers[i], WEIGHT), fsdp_unit_grad(g->layers[i], WEIGHT),
                 fsdp_unit_grad(g->layers[i], BIAS));
        TRY(fsdp_unit_end_backward(g->layers[i])); /* gradients are averaged over all ranks */
    }
    TRY(fsdp_optimizer_step(g->optimizer)); /* each rank updates its part of the parameters */
    return EXIT_SUCCESS;
}
/* end step */

static int train(fsdp_context *ctx, int argc, char **argv)
{
    static guide   g;
    static network net;
    float          loss = 0.0F;

    (void)argc;
    (void)argv;
    if (guide_open(&g, ctx, 0) != EXIT_SUCCESS) {
        return EXIT_FAILURE;
    }
    for (size_t step = 0; step < STEPS; step++) {
        guide_draw_batch(&g, step);
        for (size_t i = 0; i < SAMPLES * widths[0]; i++) {
            net.x[0][i] = g.x[i];
        }
        if (train_step(&g, &net, &loss) != EXIT_SUCCESS || guide_report(&g, step, loss) != EXIT_SUCCESS) {
            return EXIT_FAILURE;
        }
    }
    fsdp_model_destroy(g.model);
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    return listing_run(argc, argv, train);
}
