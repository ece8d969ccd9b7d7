/*
 * Muon for matrices, AdamW for vectors, in one model: a layer learns to undo what it is given. mpirun -n 3 muon
 */
#include "listing.h"

enum { ROWS = 24, COLUMNS = 40, WEIGHT = 0, BIAS = 1, STEPS = 60 };

/* begin groups */
static int make(fsdp_context *ctx, fsdp_model **model, fsdp_unit **unit)
{
    const fsdp_tensor tensors[] = {
        {.name = "h.weight", .n_dims = 2, .shape = {ROWS, COLUMNS}, .dtype = FSDP_F32},
        {.name = "h.bias", .n_dims = 1, .shape = {ROWS}, .dtype = FSDP_F32},
    };
    fsdp_model_group matrices = FSDP_MODEL_GROUP_DEFAULT;

    matrices.optimizer   = FSDP_MUON;
    matrices.granularity = FSDP_GRANULARITY_TENSOR; /* each matrix whole on one rank */
    TRY(fsdp_model_create(ctx, NULL, model));
    TRY(fsdp_model_add_group(*model, "*.weight", &matrices));
    TRY(fsdp_unit_add(*model, "h", tensors, 2, unit));
    TRY(fsdp_model_commit(*model));
    return EXIT_SUCCESS;
}

static int make_optimizers(fsdp_model *model, fsdp_optimizer **muon, fsdp_optimizer **adamw)
{
    fsdp_optimizer_options of_matrices, of_rest;

    TRY(fsdp_optimizer_options_init(FSDP_MUON, &of_matrices));
    of_matrices.group      = "*.weight";
    of_matrices.muon_scale = 0.2; /* updates the size of AdamW's, so that one rate serves both */
    of_matrices.lr         = 0.02;
    TRY(fsdp_optimizer_create(model, &of_matrices, muon));
    TRY(fsdp_optimizer_options_init(FSDP_ADAMW, &of_rest));
    of_rest.lr = 0.02;
    TRY(fsdp_optimizer_create(model, &of_rest, adamw));
    return EXIT_SUCCESS;
}
/* end groups */

/* The loss is half the sum of squares of what tensors are off: weights from a matrix of ones and zeros, biases from 0.5. */
static float wanted(size_t tensor, size_t i)
{
    return tensor == BIAS ? 0.5F : (float)(i / COLUMNS == i % COLUMNS);
}

static int pass(fsdp_unit *unit, double *loss)
{
    const size_t counts[] = {(size_t)ROWS * COLUMNS, ROWS};

    *loss = 0.0;
    TRY(fsdp_unit_begin_forward(unit));
    TRY(fsdp_unit_end_forward(unit));
    TRY(fsdp_unit_begin_backward(unit));
    for (size_t tensor = WEIGHT; tensor <= BIAS; tensor++) {
        const float *w = fsdp_unit_param(unit, tensor);
        float       *g = fsdp_unit_grad(unit, tensor);

        for (size_t i = 0; i < counts[tensor]; i++) {
            g[i] = w[i] - wanted(tensor, i);
            *loss += 0.5 * (double)(g[i] * g[i]);
        }
    }
    TRY(fsdp_unit_end_backward(unit));
    return EXIT_SUCCESS;
}

static int train(fsdp_context *ctx, int argc, char **argv)
{
    fsdp_model     *model;
    fsdp_unit      *unit;
    fsdp_optimizer *muon, *adamw;
    double          first = 0.0, loss = 0.0;

    (void)argc;
    (void)argv;
    if (make(ctx, &model, &unit) != EXIT_SUCCESS || make_optimizers(model, &muon, &adamw) != EXIT_SUCCESS) {
        return EXIT_FAILURE;
    }
    for (int step = 0; step < STEPS; step++) {
        if (pass(unit, &loss) != EXIT_SUCCESS) {
            return EXIT_FAILURE;
        }
        first = step == 0 ? loss : first;
        TRY(fsdp_optimizer_step(muon));
        TRY(fsdp_optimizer_step(adamw));
    }
    if (fsdp_rank(ctx) == 0) {
        printf("loss: %.2f, then %s\n", first, loss < 0.1 * first ? "below a tenth of it" : "no better");
    }
    fsdp_model_destroy(model);
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    return listing_run(argc, argv, train);
}
