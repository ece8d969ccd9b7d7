/*
 * Step 2: a training loop. One linear layer, 20 inputs and one output, on 2048 samples that are divided over the ranks.
 *
 *     mpirun -n 4 02_linear_regression
 *
 * The parameters are sharded as those of a large model would be. When not to do it this way: 21 parameters are cheaper
 * held whole (FSDP_NO_SHARD); the loop is the same for both.
 */
#include <stdio.h>
#include <stdlib.h>

#include <fsdp/fsdp.h>

enum { INPUTS = 20, SAMPLES = 2048, BATCH = 32, EPOCHS = 20 };

#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        if ((call) != FSDP_OK) {                                                                                       \
            return EXIT_FAILURE; /* the library has printed why */                                                     \
        }                                                                                                              \
    } while (0)

/* Sample `s`: inputs between -1 and 1; the output is the sum of k x input k, plus 1 and a little noise. */
static float sample(size_t s, float x[INPUTS])
{
    float y = 1.0F + 0.1F * (float)fsdp_random_normal(7, 1, s);

    for (size_t k = 0; k < INPUTS; k++) {
        x[k] = 2.0F * (float)fsdp_random_uniform(7, 2, s * INPUTS + k) - 1.0F;
        y += (float)k * x[k];
    }
    return y;
}

/* The mean squared error of a batch; adds its gradient to dw and db. */
static float run_batch(const size_t *batch, const float *w, const float *b, float *dw, float *db)
{
    float loss = 0.0F;

    for (size_t i = 0; i < BATCH; i++) {
        float x[INPUTS], error = -sample(batch[i], x) + b[0];

        for (size_t k = 0; k < INPUTS; k++) {
            error += w[k] * x[k];
        }
        for (size_t k = 0; k < INPUTS; k++) {
            dw[k] += 2.0F * error * x[k] / BATCH;
        }
        db[0] += 2.0F * error / BATCH;
        loss += error * error / BATCH;
    }
    return loss;
}

/* One step. Forward and backward are one for a single layer: the views of the backward pass serve for both. */
static int train_step(fsdp_unit *layer, fsdp_optimizer *optimizer, const size_t *batch, float *loss)
{
    TRY(fsdp_unit_begin_backward(layer));
    *loss += run_batch(batch, fsdp_unit_param(layer, 0), fsdp_unit_param(layer, 1), fsdp_unit_grad(layer, 0),
                       fsdp_unit_grad(layer, 1));
    TRY(fsdp_unit_end_backward(layer));
    TRY(fsdp_optimizer_step(optimizer));
    return EXIT_SUCCESS;
}

static int train(fsdp_context *ctx)
{
    const fsdp_tensor tensors[] = {
        {.name = "weight", .n_dims = 2, .shape = {1, INPUTS}, .dtype = FSDP_F32, .fill = FSDP_FILL_NORMAL, .b = 0.1},
        {.name = "bias", .n_dims = 1, .shape = {1}, .dtype = FSDP_F32},
    };
    const fsdp_sampler     sampler = {.dataset = SAMPLES, .rank = fsdp_rank(ctx), .size = fsdp_size(ctx), .shuffle = 1};
    fsdp_model            *model;
    fsdp_unit             *layer;
    fsdp_optimizer        *optimizer;
    fsdp_optimizer_options options;

    TRY(fsdp_model_create(ctx, NULL, &model));
    TRY(fsdp_unit_add(model, "linear", tensors, 2, &layer));
    TRY(fsdp_model_commit(model));
    TRY(fsdp_optimizer_options_init(FSDP_SGD_MOMENTUM, &options));
    TRY(fsdp_optimizer_create(model, &options, &optimizer));

    for (uint64_t epoch = 0; epoch < EPOCHS; epoch++) {
        const size_t steps = fsdp_sampler_length(&sampler) / BATCH;
        float        loss  = 0.0F;

        for (size_t step = 0; step < steps; step++) {
            size_t batch[BATCH];
            for (size_t i = 0; i < BATCH; i++) {
                batch[i] = fsdp_sampler_index(&sampler, epoch, step * BATCH + i);
            }
            TRY(train_step(layer, optimizer, batch, &loss));
        }
        TRY(fsdp_allreduce(ctx, FSDP_IN_PLACE, &loss, 1, FSDP_F32, FSDP_AVG));
        if (fsdp_rank(ctx) == 0) {
            printf("epoch %2d | loss %9.5f\n", (int)epoch + 1, (double)(loss / (float)steps));
        }
    }
    fsdp_model_destroy(model);
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    fsdp_context *ctx;
    int           result = EXIT_FAILURE;

    MPI_Init(&argc, &argv);
    if (fsdp_init(MPI_COMM_WORLD, NULL, &ctx) == FSDP_OK) {
        result = train(ctx);
        if (fsdp_finalize(ctx) != FSDP_OK) {
            MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE); /* MPI_Finalize() would wait for a rank that is gone */
        }
    }
    MPI_Finalize();
    return result;
}
