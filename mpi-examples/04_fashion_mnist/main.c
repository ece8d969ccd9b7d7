/*
 * Step 4: a convolutional network on Fashion-MNIST, whose batch normalization spans all ranks. What to learn here is in
 * fashion_trainer.c: statistics that need every rank's samples, micro-batches that add up to a step, batches that ranks
 * cannot share equally, and passes in bf16 over masters in f32 (common/example_views.h).
 *
 *     mpirun -n 4 04_fashion_mnist                       (Debian: apt-get install dataset-fashion-mnist)
 *     mpirun -n 4 04_fashion_mnist --dtype bf16 --batch 64 --accumulate 2
 *
 * When not to do it this way: a network of 29000 parameters has nothing to shard, and two exchanges per normalization cost
 * more than they bring where each rank has a few dozen images of its own.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "fashion_report.h"
#include "mpi-examples/common/example_clock.h"
#include "mpi-examples/common/example_error.h"

/* Sums over the ranks: of an epoch's loss, and of the time that they waited. */
static fsdp_status reduce_epoch(fsdp_context *ctx, fashion_epoch *epoch)
{
    double sums[2] = {epoch->loss, epoch->wait_seconds};

    EXAMPLE_TRY(fsdp_allreduce(ctx, FSDP_IN_PLACE, sums, 2, FSDP_F64, FSDP_SUM));
    epoch->loss         = sums[0] / (double)epoch->images;
    epoch->wait_seconds = sums[1] / fsdp_size(ctx);
    return FSDP_OK;
}

static fsdp_status report_exact_loss(const fashion_trainer *trainer, const fashion_report *report, size_t step,
                                     double loss, size_t images)
{
    EXAMPLE_TRY(fsdp_allreduce(trainer->ctx, FSDP_IN_PLACE, &loss, 1, FSDP_F64, FSDP_SUM));
    fashion_report_exact_loss(report, step, loss / (double)images);
    return FSDP_OK;
}

/* The steps of one epoch, `epoch->epoch` counted from 1, that an earlier run has left. */
static fsdp_status train_epoch(fashion_trainer *trainer, const fsdp_lr_schedule *schedule, fashion_report *report,
                               fashion_epoch *epoch, int *stop)
{
    const size_t steps = fashion_steps_per_epoch(trainer->options, trainer->data), before = (epoch->epoch - 1) * steps;
    const double started = example_now(), waited = fsdp_wait_seconds(trainer->ctx);
    size_t       step, images;

    for (step = (size_t)trainer->state.step - before; step < steps && !*stop; step++) {
        double loss;

        EXAMPLE_TRY(
            fashion_trainer_step(trainer, epoch->epoch - 1, step, fsdp_lr_at(schedule, before + step), &loss, &images));
        epoch->loss += loss;
        epoch->images += images;
        if (trainer->options->exact) {
            EXAMPLE_TRY(report_exact_loss(trainer, report, before + step + 1, loss, images));
        }
        example_bar_draw(&report->bar, before + step + 1, trainer->options->epochs * steps);
        EXAMPLE_TRY(fashion_trainer_save(trainer, before + step + 1, stop));
    }
    epoch->train_seconds = example_now() - started;
    epoch->wait_seconds  = fsdp_wait_seconds(trainer->ctx) - waited;
    return reduce_epoch(trainer->ctx, epoch);
}

static fsdp_status train(fashion_trainer *trainer, fashion_report *report, fashion_confusion *confusion)
{
    const fashion_options *o        = trainer->options;
    const size_t           steps    = o->epochs * fashion_steps_per_epoch(o, trainer->data);
    const fsdp_lr_schedule schedule = {
        .kind = FSDP_LR_COSINE, .peak = o->lr, .warmup = o->warmup, .total = steps > o->warmup ? steps : o->warmup};
    size_t i    = (size_t)trainer->state.epoch;
    int    stop = 0;

    EXAMPLE_TRY(fsdp_lr_schedule_check(&schedule));
    if (i == o->epochs) {
        EXAMPLE_TRY(fashion_trainer_test(trainer, confusion)); /* an earlier run has trained to the end */
    }
    for (; i < o->epochs; i++) {
        const double  started = example_now();
        fashion_epoch epoch   = {.epoch = i + 1};

        EXAMPLE_TRY(train_epoch(trainer, &schedule, report, &epoch, &stop));
        if (!isfinite(epoch.loss)) {
            return example_fail("the loss of epoch %zu is not finite; use an --lr below %g", i + 1, o->lr);
        }
        if (stop) {
            break;
        }
        EXAMPLE_TRY(fashion_trainer_test(trainer, confusion));
        epoch.accuracy = fashion_accuracy(confusion);
        epoch.seconds  = example_now() - started;
        fashion_report_epoch(report, &epoch);
    }
    return fashion_trainer_close_checkpoint(trainer);
}

/* All that comes after training. */
static fsdp_status conclude(fashion_trainer *trainer, const fashion_report *report, const fashion_confusion *confusion)
{
    fsdp_memory memory;

    if (trainer->options->exact) {
        uint64_t hash;

        EXAMPLE_TRY(fsdp_model_hash(trainer->model, &hash));
        fashion_report_exact_hash(report, hash);
    }
    fashion_report_confusion(report, confusion);
    EXAMPLE_TRY(fsdp_memory_usage(trainer->ctx, &memory));
    fashion_report_memory(report, &memory, &trainer->budget);
    return FSDP_OK;
}

static fsdp_status run_trainer(fashion_trainer *trainer)
{
    const example_node node    = example_node_of(MPI_COMM_WORLD);
    const size_t       threads = example_threads_set(&node, trainer->options->blas_threads);
    fashion_confusion  confusion;
    fashion_report     report;
    size_t             memory;

    EXAMPLE_TRY(example_memory_per_rank(trainer->ctx, &node, &memory));
    EXAMPLE_TRY(fashion_trainer_commit(trainer, memory));
    EXAMPLE_TRY(fashion_trainer_resume(trainer));
    fashion_report_open(&report, trainer->ctx, trainer->options);
    fashion_report_header(&report, trainer->ctx, trainer->data, &node, threads);
    fashion_report_budget(&report, &trainer->budget);
    EXAMPLE_TRY(train(trainer, &report, &confusion));
    return trainer->checkpoint.stopped ? FSDP_OK : conclude(trainer, &report, &confusion);
}

static fsdp_status run(fsdp_context *ctx, const fashion_options *options, int *stopped)
{
    fashion_trainer trainer;
    fashion_data    data;
    fsdp_status     status = fashion_data_load(ctx, &options->data, &data);

    if (status != FSDP_OK) {
        return status;
    }
    status = fashion_trainer_open(ctx, options, &data, &trainer);
    if (status == FSDP_OK) {
        status = run_trainer(&trainer);
    }
    *stopped = trainer.checkpoint.stopped;
    fashion_trainer_close(&trainer);
    fashion_data_release(&data);
    return status;
}

static fsdp_status run_in_context(const fashion_options *options, int *stopped)
{
    fsdp_context *ctx;
    fsdp_status   status;

    EXAMPLE_TRY(fsdp_init(MPI_COMM_WORLD, NULL, &ctx));
    status = run(ctx, options, stopped);
    if (fsdp_finalize(ctx) != FSDP_OK) {
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE); /* MPI_Finalize() would wait for a rank that is gone */
    }
    return status;
}

int main(int argc, char **argv)
{
    fashion_options options;
    fsdp_status     status;
    int             stopped = 0, threads;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &threads); /* so that communication overlaps with compute */
    status = fashion_options_read(argc, argv, &options);
    if (status == FSDP_OK && !options.help) {
        status = run_in_context(&options, &stopped);
    } else if (status == FSDP_OK && example_speaks()) {
        fashion_options_help();
    }
    MPI_Finalize();
    return example_exit_status(status, stopped);
}
