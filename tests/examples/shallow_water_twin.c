/* The twin of 07_shallow_water: the same physics and the same network, written again in C from the formulas. Every rank computes
 * the whole basin, so that there are no neighbours to exchange anything with, and trains on every n-th of the drawn cells,
 * wherever they lie. It prints what the program prints with --exact.
 *
 *   shallow_water_twin NX NY STEPS UPDATES BATCH WIDTH LAYERS LR SEED */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fsdp/fsdp.h>
#include <mpi.h>

#include "shallow_water_twin.h"

enum { INPUTS = 27, OUTPUTS = 2, MOST_LAYERS = 8 };

#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        const fsdp_status try_status = (call);                                                                         \
        if (try_status != FSDP_OK) {                                                                                   \
            return try_status;                                                                                         \
        }                                                                                                              \
    } while (0)

typedef struct network {
    fsdp_context   *ctx;
    fsdp_model     *model;
    fsdp_optimizer *optimizer;
    fsdp_unit      *units[MOST_LAYERS + 1];
    unsigned        origins[MOST_LAYERS + 1][3]; /* seed, layer from 1, neurons below: of its initial weights */
    size_t          layers, neurons[MOST_LAYERS + 2], batch;
    float          *x[MOST_LAYERS + 2], *d, *below, *wanted;
} network;

/* ---- random numbers ------------------------------------------------------------------------------------------------ */

static uint32_t scrambled(uint32_t x)
{
    x = (x ^ x >> 16) * 0x45D9F3BU;
    x = (x ^ x >> 16) * 0x45D9F3BU;
    return x ^ x >> 16;
}

static double random_of(const uint64_t *keys, size_t n_keys)
{
    uint32_t x = 0;

    for (size_t i = 0; i < n_keys; i++) {
        x = scrambled(x * 31U + (uint32_t)keys[i] + 1U);
    }
    return x / 4294967296.0;
}

static fsdp_status fill(void *state, const char *tensor, size_t first, size_t count, void *values, fsdp_dtype dtype)
{
    const unsigned *origin = state;
    float          *w      = values;

    (void)tensor;
    (void)dtype;
    for (size_t i = 0; i < count; i++) {
        w[i] = (float)((2 * random_of((uint64_t[]){origin[0], origin[1], first + i}, 3) - 1) * sqrt(3.0 / origin[2]));
    }
    return FSDP_OK;
}

/* ---- the network --------------------------------------------------------------------------------------------------- */

static float *numbers(size_t count)
{
    float *memory = calloc(count, sizeof *memory);

    if (memory == NULL) {
        (void)fprintf(stderr, "no memory for %zu numbers\n", count);
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    }
    return memory;
}

static fsdp_status add_layer(network *net, unsigned seed, size_t i)
{
    const size_t below = net->neurons[i], above = net->neurons[i + 1];
    char         name[20], weight[30], bias[30];

    (void)snprintf(name, sizeof name, "layer.%zu", i + 1);
    (void)snprintf(weight, sizeof weight, "%s.weight", name);
    (void)snprintf(bias, sizeof bias, "%s.bias", name);
    net->origins[i][0]          = seed;
    net->origins[i][1]          = (unsigned)i + 1;
    net->origins[i][2]          = (unsigned)below;
    const fsdp_tensor tensors[] = {{.name        = weight,
                                    .n_dims      = 2,
                                    .shape       = {above, below},
                                    .fill        = FSDP_FILL_CALLBACK,
                                    .fill_values = fill,
                                    .fill_state  = net->origins[i]},
                                   {.name = bias, .n_dims = 1, .shape = {above}}};
    return fsdp_unit_add(net->model, name, tensors, 2, &net->units[i]);
}

static fsdp_status network_open(network *net, size_t hidden, size_t width, size_t batch, unsigned seed)
{
    const size_t           widest = width > INPUTS ? width : INPUTS;
    fsdp_optimizer_options adamw;

    net->layers = hidden + 1;
    net->batch  = batch;
    net->d      = numbers(widest * batch);
    net->below  = numbers(widest * batch);
    net->wanted = numbers(OUTPUTS * batch);
    for (size_t i = 0; i <= net->layers; i++) {
        net->neurons[i] = i == 0 ? INPUTS : i == net->layers ? OUTPUTS : width;
        net->x[i]       = numbers(net->neurons[i] * batch);
    }
    TRY(fsdp_init(MPI_COMM_WORLD, NULL, &net->ctx));
    TRY(fsdp_model_create(net->ctx, NULL, &net->model));
    for (size_t i = 0; i < net->layers; i++) {
        TRY(add_layer(net, seed, i));
    }
    TRY(fsdp_model_commit(net->model));
    TRY(fsdp_optimizer_options_init(FSDP_ADAMW, &adamw));
    adamw.weight_decay = 0;
    return fsdp_optimizer_create(net->model, &adamw, &net->optimizer);
}

static fsdp_status network_close(network *net)
{
    for (size_t i = 0; i <= net->layers; i++) {
        free(net->x[i]);
    }
    free(net->d);
    free(net->below);
    free(net->wanted);
    fsdp_model_destroy(net->model);
    return fsdp_finalize(net->ctx);
}

static void forward(network *net, size_t i, size_t n, const float *w, const float *b)
{
    const size_t below = net->neurons[i], above = net->neurons[i + 1];

    for (size_t s = 0; s < n; s++) {
        for (size_t o = 0; o < above; o++) {
            float sum = b[o];
            for (size_t k = 0; k < below; k++) {
                sum += w[o * below + k] * net->x[i][s * below + k];
            }
            net->x[i + 1][s * above + o] = i + 1 < net->layers && sum < 0 ? 0 : sum;
        }
    }
}

static void backward(network *net, size_t i, size_t n, const float *w, float *dw, float *db)
{
    const size_t below = net->neurons[i], above = net->neurons[i + 1];

    memset(net->below, 0, n * below * sizeof(float));
    for (size_t s = 0; s < n; s++) {
        for (size_t o = 0; o < above; o++) {
            const float d = i + 1 < net->layers && net->x[i + 1][s * above + o] <= 0 ? 0 : net->d[s * above + o];
            db[o] += d;
            for (size_t k = 0; k < below; k++) {
                dw[o * below + k] += d * net->x[i][s * below + k];
                net->below[s * below + k] += d * w[o * below + k];
            }
        }
    }
    memcpy(net->d, net->below, n * below * sizeof(float));
}

static double compare(network *net, size_t n)
{
    double loss = 0;

    for (size_t k = 0; k < n * OUTPUTS; k++) {
        net->d[k] = net->x[net->layers][k] - net->wanted[k];
        loss += 0.5 * net->d[k] * net->d[k];
    }
    return loss;
}

static fsdp_status train(network *net, size_t n, double lr, double *loss)
{
    for (size_t i = 0; i < net->layers; i++) {
        TRY(fsdp_unit_begin_forward(net->units[i]));
        forward(net, i, n, fsdp_unit_param(net->units[i], 0), fsdp_unit_param(net->units[i], 1));
        TRY(fsdp_unit_end_forward(net->units[i]));
    }
    *loss = compare(net, n);
    for (size_t i = net->layers; i-- > 0;) {
        TRY(fsdp_unit_begin_backward(net->units[i]));
        backward(net, i, n, fsdp_unit_param(net->units[i], 0), fsdp_unit_grad(net->units[i], 0),
                 fsdp_unit_grad(net->units[i], 1));
        TRY(fsdp_unit_end_backward(net->units[i]));
    }
    TRY(fsdp_model_set_gradient_divisor(net->model, (double)net->batch));
    TRY(fsdp_optimizer_set_lr(net->optimizer, lr));
    return fsdp_optimizer_step(net->optimizer);
}

/* ---- samples ------------------------------------------------------------------------------------------------------- */

/* This rank's of the cells that an update draws; gives their number. */
static size_t draw(network *net, const basin *b, const uint64_t keys[3])
{
    const size_t rank = (size_t)fsdp_rank(net->ctx), size = (size_t)fsdp_size(net->ctx);
    size_t       n = 0;

    for (size_t s = 0; s < net->batch; s++) {
        const uint64_t all[]  = {keys[0], 0, keys[1], keys[2], s + 1};
        const size_t   cell   = (size_t)(random_of(all, 5) * (double)b->nx * (double)b->ny);
        const size_t   column = cell % b->nx, row = cell / b->nx;

        if (s % size != rank) {
            continue;
        }
        for (size_t k = 0; k < 9; k++) {
            const size_t at = basin_at(b, column + b->nx + k % 3 - 1, row + b->ny + k / 3 - 1);

            net->x[0][n * INPUTS + k]      = (float)((b->h[at] - 20) / 4);
            net->x[0][n * INPUTS + 9 + k]  = (float)(b->x[at] / 0.5);
            net->x[0][n * INPUTS + 18 + k] = (float)(b->y[at] / 0.5);
        }
        net->wanted[n * OUTPUTS]     = (float)(b->stress_x[cell] / 2e-4);
        net->wanted[n * OUTPUTS + 1] = (float)(b->stress_y[cell] / 2e-4);
        n++;
    }
    return n;
}

static fsdp_status step(network *net, basin *b, unsigned seed, size_t number, size_t updates, double lr)
{
    double   mine = 0, all, loss;
    uint64_t bits;

    basin_find_stress(b);
    for (size_t update = 1; update <= updates; update++) {
        const size_t n = draw(net, b, (uint64_t[]){seed, number, update});

        TRY(train(net, n, lr / sqrt(1 + (double)number / 50), &loss));
        mine += loss / (double)net->batch / (double)updates;
    }
    basin_advance(b);
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    memcpy(&bits, &all, sizeof bits);
    if (fsdp_rank(net->ctx) == 0) {
        printf("exact step %zu loss %016" PRIx64 " = %.15e\n", number, bits, all);
    }
    return FSDP_OK;
}

static fsdp_status run(char **words)
{
    size_t       v[7];
    const double lr   = strtod(words[7], NULL);
    const size_t seed = strtoul(words[8], NULL, 10);
    network      net  = {.ctx = NULL};
    uint64_t     hash;
    basin       *b;

    for (int i = 0; i < 7; i++) {
        v[i] = strtoul(words[i], NULL, 10);
    }
    if (v[6] < 1 || v[6] > MOST_LAYERS) {
        return FSDP_ERR_ARG;
    }
    b = basin_open(v[0], v[1]);
    TRY(network_open(&net, v[6], v[5], v[4], (unsigned)seed));
    for (size_t number = 1; number <= v[2]; number++) {
        TRY(step(&net, b, (unsigned)seed, number, v[3], lr));
    }
    TRY(fsdp_model_hash(net.model, &hash));
    if (fsdp_rank(net.ctx) == 0) {
        printf("exact fields %016" PRIx64 "\nexact parameters %016" PRIx64 "\n", basin_hash(b), hash);
    }
    basin_close(b);
    return network_close(&net);
}

int main(int argc, char **argv)
{
    fsdp_status status = FSDP_ERR_ARG;
    int         provided;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    if (argc == 10) {
        status = run(argv + 1);
    }
    MPI_Finalize();
    return status == FSDP_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
