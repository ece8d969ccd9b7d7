/*
 * Step 5: a small network that is on GPUs altogether: parameters, gradients, optimizer state and batches. What to learn here
 * is in mlp_trainer.c: views are pointers to the GPU's memory, the program's kernels and the library's work are ordered on one
 * stream, and the host waits for it once per step, when it looks at the losses.
 *
 *     mpirun -n 4 05_gpu_mlp --device gpu
 *     mpirun -n 4 05_gpu_mlp --device gpu --tp 2         (pairs of layers divided over two GPUs)
 *     mpirun -n 4 05_gpu_mlp --device gpu --pp 2         (layers on two GPUs, mlp_pipeline.c)
 *     mpirun -n 4 05_gpu_mlp                             (--device host: the same network, by plain loops)
 *
 * When not to do it this way: a network that fits a GPU many times over is trained faster with its parameters whole on each
 * (--strategy no_shard), and matrix products of one's own are for reading.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "mlp_data.h"
#include "mlp_pipeline.h"
#include "mlp_trainer.h"
#include "mpi-examples/common/example_clock.h"
#include "mpi-examples/common/example_error.h"
#include "mpi-examples/common/example_report.h"

static double mean_loss(const mlp_outcome *outcome)
{
    return outcome->loss / (double)outcome->images;
}

static fsdp_status train_epoch(mlp_trainer *trainer, size_t epoch, mlp_outcome *outcome)
{
    const size_t steps = mlp_steps_per_epoch(trainer->options, trainer->data);

    for (size_t step = 0; step < steps; step++) {
        mlp_outcome one = {0};

        EXAMPLE_TRY(mlp_trainer_step(trainer, epoch, step, &one));
        outcome->loss += one.loss;
        outcome->images += one.images;
        if (trainer->options->exact) {
            EXAMPLE_TRY(mlp_outcome_of_all(trainer->dp, &one));
            if (fsdp_rank(trainer->ctx) == 0) {
                example_print_exact_loss(epoch * steps + step + 1, mean_loss(&one));
            }
        }
    }
    return mlp_outcome_of_all(trainer->dp, outcome);
}

static fsdp_status train(mlp_trainer *trainer)
{
    for (size_t epoch = 0; epoch < trainer->options->epochs; epoch++) {
        const double started = example_now();
        mlp_outcome  trained = {0}, tested = {0};

        EXAMPLE_TRY(train_epoch(trainer, epoch, &trained));
        if (!isfinite(trained.loss)) {
            return example_fail("the loss of epoch %zu is not finite; use an --lr below %g", epoch + 1,
                                trainer->options->lr);
        }
        EXAMPLE_TRY(mlp_trainer_test(trainer, &tested));
        if (fsdp_rank(trainer->ctx) == 0) {
            printf("epoch %zu | loss %.5f | test loss %.5f, accuracy %.2f%% | %.2f s\n", epoch + 1, mean_loss(&trained),
                   mean_loss(&tested), 100 * (double)tested.found / (double)tested.images, example_now() - started);
            (void)fflush(stdout);
        }
    }
    return FSDP_OK;
}

static void print_header(const mlp_trainer *trainer, const char *source)
{
    const mlp_options *o = trainer->options;

    printf("model       %zu parameters in %zu layers\n", trainer->budget.parameters, trainer->n_layers);
    printf("ranks       %d, %s, on %s%s\n", fsdp_size(trainer->ctx), fsdp_strategy_name(o->strategy),
           trainer->device->name, o->offload ? ", masters and optimizer state on the host" : "");
    if (o->tp > 1) {
        printf("mesh        dp %d x tp %zu: layers are divided in pairs\n", fsdp_size(trainer->dp), o->tp);
    }
    printf("data        %s: %zu images to train on, %zu to test on\n", source, trainer->data->train.count,
           trainer->data->test.count);
    printf("training    %zu epochs of %zu steps of %zu images; learning rate %g, seed %zu\n", o->epochs,
           mlp_steps_per_epoch(o, trainer->data), o->batch, o->lr, o->seed);
    example_print_budget(&trainer->budget, 1, NULL);
}

static fsdp_status run_trainer(mlp_trainer *trainer, const char *source)
{
    const int   speaks = fsdp_rank(trainer->ctx) == 0;
    fsdp_memory memory;
    uint64_t    hash;

    if (speaks) {
        print_header(trainer, source);
    }
    EXAMPLE_TRY(train(trainer));
    if (trainer->options->exact) {
        EXAMPLE_TRY(fsdp_model_hash(trainer->model, &hash));
        if (speaks) {
            example_print_exact_hash(hash);
        }
    }
    EXAMPLE_TRY(fsdp_memory_usage(trainer->dp, &memory));
    if (speaks) {
        example_print_memory(&memory, &trainer->budget);
    }
    return FSDP_OK;
}

static fsdp_status run_on(fsdp_context *ctx, const mlp_options *options, mlp_device *device)
{
    const char  *source;
    fashion_data data;
    mlp_trainer  trainer;
    fsdp_status  status;

    EXAMPLE_TRY(mlp_data_load(ctx, options, &data, &source));
    if (options->pp > 1) {
        status = mlp_pipeline_train(ctx, options, &data, device, source);
        fashion_data_release(&data);
        return status;
    }
    status = mlp_trainer_open(ctx, options, &data, device, &trainer);
    if (status == FSDP_OK) {
        status = run_trainer(&trainer, source);
    }
    mlp_trainer_close(&trainer);
    fashion_data_release(&data);
    return status;
}

static fsdp_status run(fsdp_context *ctx, const mlp_options *options)
{
    mlp_device  device = mlp_host_open();
    fsdp_status status;

    if (options->device == MLP_ON_GPU) {
        EXAMPLE_TRY(mlp_gpu_open(ctx, &device));
    }
    status = run_on(ctx, options, &device);
    device.close(&device);
    return status;
}

/* With --device gpu, ranks without one are an error here, on all of them. */
static fsdp_status run_in_context(const mlp_options *options)
{
    fsdp_config   config;
    fsdp_context *ctx;
    fsdp_status   status;

    fsdp_config_init(&config);
    config.device = options->device == MLP_ON_GPU ? FSDP_DEVICE_GPU : FSDP_DEVICE_HOST;
    if (options->pp > 1) {
        config.views_in_flight = MLP_MOST_LAYERS; /* all layers of a stage are open at once */
    }
    EXAMPLE_TRY(fsdp_init(MPI_COMM_WORLD, &config, &ctx));
    status = run(ctx, options);
    if (fsdp_finalize(ctx) != FSDP_OK) {
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE); /* MPI_Finalize() would wait for a rank that is gone */
    }
    return status;
}

int main(int argc, char **argv)
{
    mlp_options options;
    fsdp_status status;

    MPI_Init(&argc, &argv);
    status = mlp_options_read(argc, argv, &options);
    if (status == FSDP_OK && !options.help) {
        status = run_in_context(&options);
    } else if (status == FSDP_OK && example_speaks()) {
        mlp_options_help();
    }
    MPI_Finalize();
    return example_output_is_written() && status == FSDP_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
