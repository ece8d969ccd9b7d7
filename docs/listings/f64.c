/*
 * A model in f64 finds the root of 2 by gradient descent, to 15 digits: mpirun -n 2 f64
 */
#include "listing.h"

enum { N = 1000, STEPS = 60 };

/* begin options */
static int make(fsdp_context *ctx, fsdp_model **model, fsdp_unit **unit, fsdp_optimizer **optimizer)
{
    const fsdp_tensor      x       = {.name = "x", .n_dims = 1, .shape = {N}, .a = 1.0}; /* ones */
    fsdp_model_options     options = FSDP_MODEL_OPTIONS_DEFAULT;
    fsdp_optimizer_options sgd;

    options.param_dtype  = FSDP_F64; /* and with it masters and gradients */
    options.reduce_dtype = FSDP_F64; /* the defaults of the others are f32 */
    options.moment_dtype = FSDP_F64;
    TRY(fsdp_model_create(ctx, &options, model));
    TRY(fsdp_unit_add(*model, "x", &x, 1, unit));
    TRY(fsdp_model_commit(*model));
    TRY(fsdp_optimizer_options_init(FSDP_SGD_MOMENTUM, &sgd));
    sgd.lr           = 0.2;
    sgd.momentum     = 0.1;
    sgd.moment_dtype = FSDP_F64;
    TRY(fsdp_optimizer_create(*model, &sgd, optimizer));
    return EXIT_SUCCESS;
}
/* end options */

/* The loss of each parameter is (x^2 - 2)^2 / 4. */
static int step(fsdp_unit *unit, fsdp_optimizer *optimizer)
{
    TRY(fsdp_unit_begin_backward(unit));
    const double *x  = fsdp_unit_param(unit, 0);
    double       *dx = fsdp_unit_grad(unit, 0);
    for (size_t i = 0; i < N; i++) {
        dx[i] = x[i] * (x[i] * x[i] - 2.0);
    }
    TRY(fsdp_unit_end_backward(unit));
    TRY(fsdp_optimizer_step(optimizer));
    return EXIT_SUCCESS;
}

static int train(fsdp_context *ctx, int argc, char **argv)
{
    static double   x[N];
    fsdp_model     *model;
    fsdp_unit      *unit;
    fsdp_optimizer *optimizer;

    (void)argc;
    (void)argv;
    TRY(make(ctx, &model, &unit, &optimizer));
    for (int s = 0; s < STEPS; s++) {
        TRY(step(unit, optimizer));
    }
    TRY(fsdp_tensor_export_to_all(model, "x", x, sizeof x));
    if (fsdp_rank(ctx) == 0) {
        printf("%.15f\n", x[N - 1]);
    }
    fsdp_model_destroy(model);
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    return listing_run(argc, argv, train);
}
