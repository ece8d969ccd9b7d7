/*
 * Two optimizers in one model: AdaGrad of the program's own for the weights, AdamW for the rest. Then a projection of the weights, on
 * each rank's own shard: mpirun -n 3 own_optimizer
 */
#include <math.h>

#include "listing.h"

enum { ROWS = 12, COLUMNS = 31, WEIGHT = 0, BIAS = 1, STEPS = 400 };

/* begin update */
/* AdaGrad (Duchi, Hazan and Singer, 2011): one state, the sum of the squares of all gradients so far. */
static fsdp_status adagrad(void *state, const fsdp_update *u)
{
    float       *w = u->master, *sum = u->states[0];
    const float *g = u->gradient;

    (void)state;
    for (size_t i = 0; i < u->count; i++) { /* element u->begin + i of tensor u->tensor */
        sum[i] += g[i] * g[i];
        w[i] -= (float)u->lr * g[i] / (sqrtf(sum[i]) + 1e-10F);
    }
    return FSDP_OK;
}
/* end update */

/* begin groups */
static int make(fsdp_context *ctx, fsdp_model **model, fsdp_unit **unit)
{
    const fsdp_tensor tensors[] = {
        {.name   = "h.weight",
         .n_dims = 2,
         .shape  = {ROWS, COLUMNS},
         .dtype  = FSDP_F32,
         .fill   = FSDP_FILL_NORMAL,
         .b      = 1},
        {.name = "h.bias", .n_dims = 1, .shape = {ROWS}, .dtype = FSDP_F32},
    };
    fsdp_model_group weights = FSDP_MODEL_GROUP_DEFAULT;

    weights.optimizer = FSDP_CUSTOM; /* what budgets assume */
    weights.n_states  = 1;
    TRY(fsdp_model_create(ctx, NULL, model));
    TRY(fsdp_unit_add(*model, "h", tensors, 2, unit));
    TRY(fsdp_model_add_group(*model, "*.weight", &weights));
    TRY(fsdp_model_commit(*model));
    return EXIT_SUCCESS;
}

static int make_optimizers(fsdp_model *model, fsdp_optimizer **of_weights, fsdp_optimizer **of_rest)
{
    static const char *const names[] = {"sum"}; /* checkpoints have h.weight.sum */
    fsdp_optimizer_options   own, adamw;

    TRY(fsdp_optimizer_options_init(FSDP_CUSTOM, &own));
    own.group       = "*.weight"; /* as it was given to fsdp_model_add_group() */
    own.lr          = 0.5;
    own.n_states    = 1;
    own.state_names = names;
    own.update      = adagrad;
    TRY(fsdp_optimizer_create(model, &own, of_weights));
    TRY(fsdp_optimizer_options_init(FSDP_ADAMW, &adamw));
    adamw.lr = 0.05;
    TRY(fsdp_optimizer_create(model, &adamw, of_rest)); /* all tensors of no group */
    return EXIT_SUCCESS;
}
/* end groups */

/* Pulls all weights towards 2 and all biases towards -1. */
static int pass(fsdp_unit *unit)
{
    TRY(fsdp_unit_begin_backward(unit));
    const float *w = fsdp_unit_param(unit, WEIGHT), *b = fsdp_unit_param(unit, BIAS);
    float       *dw = fsdp_unit_grad(unit, WEIGHT), *db = fsdp_unit_grad(unit, BIAS);
    for (size_t i = 0; i < (size_t)ROWS * COLUMNS; i++) {
        dw[i] = w[i] - 2.0F;
    }
    for (size_t i = 0; i < ROWS; i++) {
        db[i] = b[i] + 1.0F;
    }
    TRY(fsdp_unit_end_backward(unit));
    return EXIT_SUCCESS;
}

/* begin shard */
/* Limits what this rank holds of the weights to 1.5. No rank has, or needs, more than its part. */
static int project(fsdp_model *model, fsdp_unit *unit)
{
    fsdp_shard shard;

    TRY(fsdp_unit_shard(unit, WEIGHT, &shard));
    float *w = shard.master;
    for (size_t i = 0; i < shard.count; i++) {
        w[i] = w[i] > 1.5F ? 1.5F : w[i];
    }
    TRY(fsdp_model_shards_changed(model)); /* on all ranks: what is gathered next has the new values */
    return EXIT_SUCCESS;
}
/* end shard */

static int show(fsdp_context *ctx, fsdp_unit *unit, const char *when)
{
    TRY(fsdp_unit_begin_forward(unit));
    const float *w = fsdp_unit_param(unit, WEIGHT), *b = fsdp_unit_param(unit, BIAS);
    if (fsdp_rank(ctx) == 0) {
        printf("%s: weight %.2f, bias %.2f\n", when, w[7], b[7]);
    }
    TRY(fsdp_unit_end_forward(unit));
    return EXIT_SUCCESS;
}

static int train(fsdp_context *ctx, int argc, char **argv)
{
    fsdp_model     *model;
    fsdp_unit      *unit;
    fsdp_optimizer *of_weights, *of_rest;

    (void)argc;
    (void)argv;
    TRY(make(ctx, &model, &unit));
    TRY(make_optimizers(model, &of_weights, &of_rest));
    for (int s = 0; s < STEPS; s++) {
        TRY(pass(unit));
        TRY(fsdp_optimizer_step(of_weights));
        TRY(fsdp_optimizer_step(of_rest));
    }
    TRY(show(ctx, unit, "trained"));
    TRY(project(model, unit));
    TRY(show(ctx, unit, "projected"));
    fsdp_model_destroy(model);
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    return listing_run(argc, argv, train);
}
