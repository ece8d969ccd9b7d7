/*
 * A loop whose ranks have different numbers of samples, and a unit that this training has no use for: mpirun -n 4 training_loops
 */
#include "listing.h"

enum { FEATURES = 4, MICRO_BATCHES = 2, MOST_SAMPLES = 5 };

typedef struct training {
    fsdp_context   *ctx;
    fsdp_model     *model;
    fsdp_unit      *used, *spare;
    fsdp_optimizer *sgd;
    size_t          batch, batches; /* this rank's next one, and how many it has */
    double          loss;           /* of a step */
} training;

/* begin model */
static int open_model(training *t)
{
    const fsdp_tensor      w     = {.name = "w", .n_dims = 1, .shape = {FEATURES}, .dtype = FSDP_F32};
    const fsdp_tensor      other = {.name = "other_head", .n_dims = 1, .shape = {FEATURES}, .dtype = FSDP_F32};
    fsdp_model_options     options;
    fsdp_optimizer_options o;

    fsdp_model_options_init(&options);
    options.unused          = FSDP_UNUSED_KEEP;  /* "spare" has no passes in this training: it stays as it is */
    options.recorded_passes = 2 * MICRO_BATCHES; /* forward and backward of one unit, for fsdp_model_replay() */
    options.kept_units      = 1;                 /* gathered once per step, not once per pass */
    TRY(fsdp_model_create(t->ctx, &options, &t->model));
    TRY(fsdp_unit_add(t->model, "used", &w, 1, &t->used));
    TRY(fsdp_unit_add(t->model, "spare", &other, 1, &t->spare));
    TRY(fsdp_model_commit(t->model));
    TRY(fsdp_optimizer_options_init(FSDP_SGD, &o));
    o.lr = 0.5;
    TRY(fsdp_optimizer_create(t->model, &o, &t->sgd));
    return EXIT_SUCCESS;
}
/* end model */

/* Of this rank's next batch, which has 1 to MOST_SAMPLES of them: the sum of squared errors, and its gradient. */
static int learn_samples(training *t, const float *w, float *gradient)
{
    const size_t samples = 1 + (t->batch * 3 + (size_t)fsdp_rank(t->ctx)) % MOST_SAMPLES;

    for (size_t s = 0; s < samples; s++) {
        float x[FEATURES], error = 0.0F;

        for (size_t i = 0; i < FEATURES; i++) {
            x[i] =
                2.0F * (float)fsdp_random_uniform((uint64_t)fsdp_rank(t->ctx), i, t->batch * MOST_SAMPLES + s) - 1.0F;
            error += (w[i] - (float)(i + 1)) * x[i]; /* the target is 1 x0 + 2 x1 + ... */
        }
        for (size_t i = 0; i < FEATURES; i++) {
            gradient[i] += 2.0F * error * x[i];
        }
        t->loss += (double)(error * error);
    }
    t->batch++;
    return (int)samples;
}

/* begin micro_batch */
static int micro_batch(training *t, double *samples)
{
    TRY(fsdp_unit_begin_forward(t->used)); /* your layers; here, all is done in the backward pass */
    TRY(fsdp_unit_end_forward(t->used));
    TRY(fsdp_unit_begin_backward(t->used));
    *samples += learn_samples(t, fsdp_unit_param(t->used, 0), fsdp_unit_grad(t->used, 0)); /* sums, not means */
    TRY(fsdp_unit_end_backward(t->used));
    return EXIT_SUCCESS;
}
/* end micro_batch */

/* begin loop */
static int train(training *t)
{
    double samples, all, norm;

    for (int step = 1;; step++) {
        samples = t->loss = 0.0;
        for (int k = 0; k < MICRO_BATCHES && t->batch < t->batches; k++) {
            if (micro_batch(t, &samples) != EXIT_SUCCESS) {
                return EXIT_FAILURE;
            }
        }
        if (t->batch == t->batches) {
            TRY(fsdp_model_replay(t->model)); /* the passes that this rank has no samples for; maybe none */
        }
        TRY(fsdp_model_sum_gradient_divisor(t->model, samples, &all)); /* the mean over all samples of all ranks */
        if (all == 0.0) { /* nobody had any: the epoch is over on all ranks at once */
            TRY(fsdp_model_zero_grad(t->model));
            return EXIT_SUCCESS;
        }
        TRY(fsdp_clip_grad_norm(t->model, 10.0, &norm));
        TRY(fsdp_optimizer_step(t->sgd));
        TRY(fsdp_allreduce(t->ctx, FSDP_IN_PLACE, &t->loss, 1, FSDP_F64, FSDP_SUM));
        if (fsdp_rank(t->ctx) == 0) {
            printf("step %d: %.0f samples, loss %.4f\n", step, all, t->loss / all);
        }
    }
}
/* end loop */

static int run(fsdp_context *ctx, int argc, char **argv)
{
    training t = {.ctx = ctx, .batches = 12 + (size_t)fsdp_rank(ctx) % 3}; /* ranks have 12 to 14 batches */

    (void)argc;
    (void)argv;
    const int result = open_model(&t) == EXIT_SUCCESS ? train(&t) : EXIT_FAILURE;
    fsdp_model_destroy(t.model);
    return result;
}

int main(int argc, char **argv)
{
    return listing_run(argc, argv, run);
}
