/*
 * Step 3: a GPT-2, fully sharded. What to learn here is in gpt_trainer.c: the model's layers become units, whose parameters
 * are gathered where a pass opens them and whose gradients are reduced where it closes them; nothing else differs from
 * training on one process. The mathematics is in gpt_model.c and gpt_math.c and knows nothing of MPI.
 *
 *     mpirun -n 4 03_gpt                       (a minute and a half on two cores)
 *     mpirun -n 4 03_gpt --data FILE --layers 6 --heads 6 --width 384 --context 256
 *
 * When not to do it this way: a model of this size fits into any one process. Sharding pays where it does not.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "gpt_data.h"
#include "gpt_error.h"
#include "gpt_options.h"
#include "gpt_report.h"
#include "gpt_sample.h"
#include "gpt_threads.h"
#include "gpt_trainer.h"

/* The mean over the ranks' bytes, and over the ranks. */
static fsdp_status reduce_interval(fsdp_context *ctx, gpt_interval *interval)
{
    double sums[2] = {interval->loss, interval->wait_seconds};

    GPT_TRY(fsdp_allreduce(ctx, FSDP_IN_PLACE, sums, 2, FSDP_F64, FSDP_SUM));
    interval->loss         = sums[0] / (double)interval->tokens;
    interval->wait_seconds = sums[1] / fsdp_size(ctx);
    return FSDP_OK;
}

static fsdp_status report_interval(gpt_trainer *trainer, const gpt_report *report, gpt_interval *interval)
{
    const double now = gpt_now(), waited = fsdp_wait_seconds(trainer->ctx);

    interval->seconds      = now - interval->seconds;
    interval->wait_seconds = waited - interval->wait_seconds;
    GPT_TRY(reduce_interval(trainer->ctx, interval));
    gpt_report_interval(report, interval);
    *interval = (gpt_interval){.seconds = now, .wait_seconds = waited};
    return FSDP_OK;
}

static fsdp_status report_exact_loss(gpt_trainer *trainer, const gpt_report *report, size_t step, double loss)
{
    const gpt_options *o = trainer->options;

    GPT_TRY(fsdp_allreduce(trainer->ctx, FSDP_IN_PLACE, &loss, 1, FSDP_F64, FSDP_SUM));
    gpt_report_exact_loss(report, step, loss / (double)(o->batch * o->config.context));
    return FSDP_OK;
}

static fsdp_status train(gpt_trainer *trainer, const gpt_data *data, gpt_report *report)
{
    const gpt_options     *o        = trainer->options;
    const fsdp_lr_schedule schedule = {.kind   = FSDP_LR_COSINE,
                                       .peak   = o->lr,
                                       .final  = o->min_lr,
                                       .warmup = o->warmup,
                                       .total  = o->steps > o->warmup ? o->steps : o->warmup};
    gpt_profile           *profile  = gpt_activations_profile(trainer->activations);
    gpt_interval           interval = {.seconds = gpt_now(), .wait_seconds = fsdp_wait_seconds(trainer->ctx)};
    size_t                 step;

    GPT_TRY(fsdp_lr_schedule_check(&schedule));
    gpt_report_start(report);
    for (step = 0; step < o->steps; step++) {
        double loss;

        if (step <= 1) {
            gpt_profile_start(profile); /* the first step touches all memory for the first time */
        }
        GPT_TRY(gpt_trainer_step(trainer, data, step, fsdp_lr_at(&schedule, step), &loss, &interval.norm));
        if (!isfinite(interval.norm)) {
            return gpt_fail(trainer->ctx, "the gradient norm of step %zu is not finite; use an --lr below %g", step + 1,
                            o->lr);
        }
        interval.step = step + 1;
        interval.loss += loss;
        interval.tokens += o->batch * o->config.context;
        if (o->exact) {
            GPT_TRY(report_exact_loss(trainer, report, step + 1, loss));
        }
        if ((step + 1) % o->interval == 0 || step + 1 == o->steps) {
            GPT_TRY(report_interval(trainer, report, &interval));
        }
        gpt_report_progress(report, step + 1);
    }
    gpt_profile_lap(profile, GPT_PART_OTHER);
    gpt_report_clear(report);
    if (o->profile) {
        gpt_report_profile(report, profile, o->steps > 1 ? o->steps - 1 : 1);
    }
    return FSDP_OK;
}

static fsdp_status write_sample(gpt_trainer *trainer, const gpt_report *report)
{
    const size_t   bytes  = trainer->options->sample;
    unsigned char *text   = bytes ? malloc(bytes) : NULL;
    fsdp_status    status = gpt_agree(trainer->ctx, text || !bytes ? "" : "no memory for --sample bytes; use fewer");

    if (status == FSDP_OK && bytes) {
        status = gpt_sample(trainer, text, bytes);
    }
    if (status == FSDP_OK && bytes) {
        gpt_report_sample(report, text, bytes);
    }
    free(text);
    return status;
}

/* All that comes after training. */
static fsdp_status conclude(gpt_trainer *trainer, const gpt_data *data, const gpt_report *report)
{
    fsdp_memory memory;
    double      loss;
    size_t      bytes;

    if (trainer->options->exact) {
        uint64_t hash;

        GPT_TRY(fsdp_model_hash(trainer->model, &hash));
        gpt_report_exact_hash(report, hash);
    }
    GPT_TRY(gpt_trainer_validate(trainer, data, &loss, &bytes));
    gpt_report_validation(report, loss, bytes);
    GPT_TRY(write_sample(trainer, report));
    GPT_TRY(fsdp_memory_usage(trainer->ctx, &memory));
    gpt_report_memory(report, &memory, &trainer->budget);
    return FSDP_OK;
}

/* BYTES of memory for each rank of this rank's node; the smallest node counts, so that all ranks decide alike. */
static fsdp_status memory_per_rank(fsdp_context *ctx, const gpt_node *node, size_t *bytes)
{
    int64_t mine = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE) / node->ranks;

    GPT_TRY(fsdp_allreduce(ctx, FSDP_IN_PLACE, &mine, 1, FSDP_I64, FSDP_MIN));
    *bytes = (size_t)mine;
    return FSDP_OK;
}

static fsdp_status run_trainer(gpt_trainer *trainer, const gpt_data *data)
{
    const gpt_node node    = gpt_node_of(MPI_COMM_WORLD);
    const size_t   threads = gpt_threads_set(&node, trainer->options->blas_threads);
    gpt_report     report;
    size_t         memory;

    GPT_TRY(memory_per_rank(trainer->ctx, &node, &memory));
    GPT_TRY(gpt_trainer_commit(trainer, memory));
    gpt_report_open(&report, trainer->ctx, trainer->options);
    gpt_report_header(&report, trainer->ctx, data, &node, threads,
                      gpt_activations_bytes(&trainer->options->config, trainer->batch));
    gpt_report_budget(&report, &trainer->budget);
    GPT_TRY(train(trainer, data, &report));
    return conclude(trainer, data, &report);
}

static fsdp_status run(fsdp_context *ctx, const gpt_options *options)
{
    gpt_trainer trainer;
    gpt_data    data;
    fsdp_status status = gpt_data_load(ctx, options, &data);

    if (status != FSDP_OK) {
        return status;
    }
    status = gpt_trainer_open(ctx, options, &trainer);
    if (status == FSDP_OK) {
        status = run_trainer(&trainer, &data);
    }
    gpt_trainer_close(&trainer);
    gpt_data_release(&data);
    return status;
}

int main(int argc, char **argv)
{
    fsdp_context *ctx;
    gpt_options   options;
    fsdp_status   status;

    MPI_Init(&argc, &argv);
    status = fsdp_init(MPI_COMM_WORLD, NULL, &ctx);
    if (status == FSDP_OK) {
        status = gpt_options_parse(ctx, argc, argv, &options);
        if (status == FSDP_OK && options.help && fsdp_rank(ctx) == 0) {
            gpt_options_help();
        } else if (status == FSDP_OK && !options.help) {
            status = run(ctx, &options);
        }
        if (fsdp_finalize(ctx) != FSDP_OK) {
            MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE); /* MPI_Finalize() would wait for a rank that is gone */
        }
    }
    MPI_Finalize();
    return status == FSDP_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
