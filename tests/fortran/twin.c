/* The network of test_training.f90 in C, in the same order of operations: one hidden layer, two units, AdamW. */
#include <stdint.h>

#include <fsdp/fsdp.h>

enum { INPUTS = 3, HIDDEN = 5, SAMPLES = 8 };

#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        const fsdp_status try_status = (call);                                                                         \
        if (try_status != FSDP_OK) {                                                                                   \
            return (int)try_status;                                                                                    \
        }                                                                                                              \
    } while (0)

typedef struct network {
    float x[SAMPLES][INPUTS], h[SAMPLES][HIDDEN], y[SAMPLES], dy[SAMPLES], dh[SAMPLES][HIDDEN];
} network;

static void draw(network *net, const fsdp_context *ctx, int step)
{
    for (int s = 0; s < SAMPLES; s++) {
        for (int i = 0; i < INPUTS; i++) {
            const int64_t index = ((int64_t)step * fsdp_size(ctx) + fsdp_rank(ctx)) * SAMPLES * INPUTS + s * INPUTS + i;
            net->x[s][i]        = 2.0F * (float)fsdp_random_uniform(1, 0, (uint64_t)index) - 1.0F;
        }
    }
}

static float compare(network *net)
{
    float loss = 0.0F;

    for (int s = 0; s < SAMPLES; s++) {
        const float error = net->y[s] - (net->x[s][0] * net->x[s][1] + net->x[s][2]);

        net->dy[s] = 2.0F * error / SAMPLES;
        loss       = loss + error * error / SAMPLES;
    }
    return loss;
}

static void first_forward(network *net, const float *w, const float *b)
{
    for (int s = 0; s < SAMPLES; s++) {
        for (int o = 0; o < HIDDEN; o++) {
            float sum = b[o];
            for (int i = 0; i < INPUTS; i++) {
                sum = sum + w[o * INPUTS + i] * net->x[s][i];
            }
            net->h[s][o] = sum > 0.0F ? sum : 0.1F * sum;
        }
    }
}

static void first_backward(network *net, float *dw, float *db)
{
    for (int s = 0; s < SAMPLES; s++) {
        for (int o = 0; o < HIDDEN; o++) {
            const float d = net->h[s][o] > 0.0F ? net->dh[s][o] : 0.1F * net->dh[s][o];

            db[o] = db[o] + d;
            for (int i = 0; i < INPUTS; i++) {
                dw[o * INPUTS + i] = dw[o * INPUTS + i] + d * net->x[s][i];
            }
        }
    }
}

static void second_forward(network *net, const float *w)
{
    for (int s = 0; s < SAMPLES; s++) {
        net->y[s] = 0.0F;
        for (int i = 0; i < HIDDEN; i++) {
            net->y[s] = net->y[s] + w[i] * net->h[s][i];
        }
    }
}

static void second_backward(network *net, const float *w, float *dw)
{
    for (int s = 0; s < SAMPLES; s++) {
        for (int i = 0; i < HIDDEN; i++) {
            dw[i]         = dw[i] + net->dy[s] * net->h[s][i];
            net->dh[s][i] = net->dy[s] * w[i];
        }
    }
}

static int create(fsdp_context *ctx, fsdp_model **model, fsdp_unit *units[2], fsdp_optimizer **optimizer)
{
    const fsdp_tensor first[] = {
        {.name = "first.weight", .n_dims = 2, .shape = {HIDDEN, INPUTS}, .fill = FSDP_FILL_NORMAL, .b = 0.5},
        {.name = "first.bias", .n_dims = 1, .shape = {HIDDEN}}};
    const fsdp_tensor second[] = {
        {.name = "second.weight", .n_dims = 2, .shape = {1, HIDDEN}, .fill = FSDP_FILL_NORMAL, .b = 0.5}};
    fsdp_optimizer_options options;

    TRY(fsdp_model_create(ctx, NULL, model));
    TRY(fsdp_unit_add(*model, "first", first, 2, &units[0]));
    TRY(fsdp_unit_add(*model, "second", second, 1, &units[1]));
    TRY(fsdp_model_commit(*model));
    TRY(fsdp_optimizer_options_init(FSDP_ADAMW, &options));
    options.lr = 0.02;
    return fsdp_optimizer_create(*model, &options, optimizer);
}

static int step(fsdp_model *model, fsdp_unit *const units[2], fsdp_optimizer *optimizer, network *net, float *loss)
{
    TRY(fsdp_unit_begin_forward(units[0]));
    first_forward(net, fsdp_unit_param(units[0], 0), fsdp_unit_param(units[0], 1));
    TRY(fsdp_unit_end_forward(units[0]));
    TRY(fsdp_unit_begin_forward(units[1]));
    second_forward(net, fsdp_unit_param(units[1], 0));
    TRY(fsdp_unit_end_forward(units[1]));
    *loss = compare(net);
    TRY(fsdp_unit_begin_backward(units[1]));
    second_backward(net, fsdp_unit_param(units[1], 0), fsdp_unit_grad(units[1], 0));
    TRY(fsdp_unit_end_backward(units[1]));
    TRY(fsdp_unit_begin_backward(units[0]));
    first_backward(net, fsdp_unit_grad(units[0], 0), fsdp_unit_grad(units[0], 1));
    TRY(fsdp_unit_end_backward(units[0]));
    TRY(fsdp_clip_grad_norm(model, 1.0, NULL));
    return fsdp_optimizer_step(optimizer);
}

int twin_train(MPI_Fint comm, int steps, float *losses, int64_t *hash);

/* Gives the loss of each step on this rank, and the hash of the parameters behind the last one. */
int twin_train(MPI_Fint comm, int steps, float *losses, int64_t *hash)
{
    fsdp_context   *ctx;
    fsdp_model     *model;
    fsdp_unit      *units[2];
    fsdp_optimizer *optimizer;
    network         net;

    TRY(fsdp_init_f(comm, NULL, &ctx));
    TRY(create(ctx, &model, units, &optimizer));
    for (int s = 0; s < steps; s++) {
        draw(&net, ctx, s);
        TRY(step(model, units, optimizer, &net, &losses[s]));
    }
    TRY(fsdp_model_hash(model, (uint64_t *)hash));
    fsdp_model_destroy(model);
    return fsdp_finalize(ctx);
}
