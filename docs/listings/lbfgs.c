/* L-BFGS fits y = a exp(-b x) to 60 points that are divided among the ranks, in f64: mpirun -n 3 lbfgs */
#include <math.h>

#include "listing.h"

static fsdp_unit *unit; /* of a and b */
/* begin fit */
/* Half the sum of squared errors, and its gradient. The library takes the mean of gradients over the ranks, hence `size`. */
static fsdp_status errors(void *state, double *loss)
{
    fsdp_context *ctx  = state;
    const double  size = fsdp_size(ctx);
    *loss              = 0.0;
    if (fsdp_unit_begin_backward(unit) == FSDP_OK) {
        const double *p = fsdp_unit_param(unit, 0);
        double       *g = fsdp_unit_grad(unit, 0);
        for (int i = fsdp_rank(ctx); i < 60; i += fsdp_size(ctx)) {
            const double x = 0.1 * i, e = exp(-p[1] * x), error = p[0] * e - 2.0 * exp(-0.5 * x);
            *loss += 0.5 * error * error;
            g[0] += size * error * e;
            g[1] -= size * error * p[0] * x * e;
        }
    }
    const fsdp_status status = fsdp_unit_end_backward(unit); /* fails too where the pass has not begun */
    return status == FSDP_OK ? fsdp_allreduce(ctx, FSDP_IN_PLACE, loss, 1, FSDP_F64, FSDP_SUM) : status;
}

static int train(fsdp_context *ctx, int argc, char **argv)
{
    const fsdp_tensor  p       = {.name = "p", .n_dims = 1, .shape = {2}, .a = 1.0};
    fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;
    fsdp_model        *model;
    fsdp_lbfgs        *lbfgs;
    fsdp_lbfgs_result  result;

    (void)argc, (void)argv;
    options.param_dtype = options.reduce_dtype = options.moment_dtype = FSDP_F64;
    options.optimizer                                                 = FSDP_SGD; /* no moments in the budget */
    TRY(fsdp_model_create(ctx, &options, &model));
    TRY(fsdp_unit_add(model, "p", &p, 1, &unit));
    TRY(fsdp_model_commit(model));
    TRY(fsdp_lbfgs_create(model, NULL, &lbfgs));
    do {
        TRY(fsdp_lbfgs_step(lbfgs, errors, ctx, &result));
    } while (result.end == FSDP_LBFGS_MORE);
    double found[2];
    TRY(fsdp_tensor_export_to_all(model, "p", found, sizeof found));
    if (fsdp_rank(ctx) == 0) {
        printf("a = %.6f, b = %.6f\n", found[0], found[1]);
    }
    fsdp_model_destroy(model);
    return EXIT_SUCCESS;
}
/* end fit */

int main(int argc, char **argv)
{
    return listing_run(argc, argv, train);
}
