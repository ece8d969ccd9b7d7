/*
 * Parameters and gradients in 16 bits, with a loss scaler and four micro-batches per step: mpirun -n 2 precision
 */
#include "listing.h"

enum { N = 1000, MICRO_BATCHES = 4, STEPS = 20 };

/* One micro-batch pulls every parameter towards 1. Views are in f16; the program computes in f32. */
static int pass(fsdp_context *ctx, fsdp_unit *unit, double scale)
{
    static float x[N], dx[N];

    TRY(fsdp_unit_begin_backward(unit));
    TRY(fsdp_cast(ctx, x, FSDP_F32, fsdp_unit_param(unit, 0), FSDP_F16, N));
    for (size_t i = 0; i < N; i++) {
        dx[i] = (float)scale * (x[i] - 1.0F) / MICRO_BATCHES;
    }
    TRY(fsdp_cast(ctx, fsdp_unit_grad(unit, 0), FSDP_F16, dx, FSDP_F32, N));
    TRY(fsdp_unit_end_backward(unit));
    return EXIT_SUCCESS;
}

/* begin options */
static int make(fsdp_context *ctx, fsdp_model **model, fsdp_unit **unit)
{
    const fsdp_tensor  x       = {.name = "x", .n_dims = 1, .shape = {N}, .dtype = FSDP_F32};
    fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT; /* start from this: zeros are not the defaults */

    options.strategy        = FSDP_SHARD_GRAD_OP;
    options.param_dtype     = FSDP_F16; /* gathered parameters; masters stay f32 */
    options.reduce_dtype    = FSDP_F16; /* gradient views and their reduction */
    options.local_gradients = 1;        /* room to accumulate without communication */
    TRY(fsdp_model_create(ctx, &options, model));
    TRY(fsdp_unit_add(*model, "x", &x, 1, unit));
    TRY(fsdp_model_commit(*model));
    return EXIT_SUCCESS;
}
/* end options */

/* begin step */
static int step(fsdp_context *ctx, fsdp_model *model, fsdp_unit *unit, fsdp_loss_scaler *scaler,
                fsdp_optimizer *optimizer, int *stepped)
{
    for (int m = 0; m < MICRO_BATCHES; m++) {
        TRY(fsdp_model_set_sync(model, m == MICRO_BATCHES - 1)); /* only the last micro-batch communicates */
        TRY(pass(ctx, unit, fsdp_loss_scaler_scale(scaler)));
    }
    TRY(fsdp_loss_scaler_unscale(scaler, NULL)); /* so that clipping sees the true norm */
    TRY(fsdp_clip_grad_norm(model, 100.0, NULL));
    TRY(fsdp_loss_scaler_step(scaler, optimizer,
                              stepped)); /* 0: a gradient overflowed, and all ranks skipped the step */
    return EXIT_SUCCESS;
}
/* end step */

static int train(fsdp_context *ctx, int argc, char **argv)
{
    fsdp_model            *model;
    fsdp_unit             *unit;
    fsdp_loss_scaler      *scaler;
    fsdp_optimizer        *optimizer;
    fsdp_optimizer_options options;
    int                    taken = 0;

    (void)argc;
    (void)argv;
    TRY(make(ctx, &model, &unit));
    TRY(fsdp_optimizer_options_init(FSDP_ADAMW, &options));
    TRY(fsdp_optimizer_create(model, &options, &optimizer));
    TRY(fsdp_loss_scaler_create(model, NULL, &scaler));
    for (int s = 0; s < STEPS; s++) {
        int stepped;
        TRY(step(ctx, model, unit, scaler, optimizer, &stepped));
        taken += stepped;
    }
    if (fsdp_rank(ctx) == 0) {
        printf("%d of %d steps taken, scale %.0f\n", taken, STEPS, fsdp_loss_scaler_scale(scaler));
    }
    fsdp_model_destroy(model);
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    return listing_run(argc, argv, train);
}
