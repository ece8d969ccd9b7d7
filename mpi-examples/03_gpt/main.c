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
#include <sys/resource.h>

#include "gpt_data.h"
#include "gpt_options.h"
#include "gpt_report.h"
#include "gpt_sample.h"
#include "gpt_shape.h"
#include "gpt_trainer.h"
#include "mpi-examples/common/example_clock.h"
#include "mpi-examples/common/example_error.h"
#include "mpi-examples/common/example_node.h"

/* Units that the library can have open at once. */
enum { MOST_VIEWS = 1024 };

static double system_seconds(void)
{
    struct rusage used;

    return getrusage(RUSAGE_SELF, &used) == 0 ? (double)used.ru_stime.tv_sec + 1e-6 * (double)used.ru_stime.tv_usec : 0;
}

/* Where all clocks stand now. */
static gpt_interval begin_interval(const gpt_trainer *trainer)
{
    return (gpt_interval){.seconds               = example_now(),
                          .wait_seconds          = gpt_trainer_wait_seconds(trainer),
                          .communication_seconds = gpt_trainer_communication_seconds(trainer),
                          .system_seconds        = system_seconds()};
}

/* The mean over the ranks' bytes, and over the ranks. */
static fsdp_status reduce_interval(fsdp_context *ctx, gpt_interval *interval)
{
    double sums[] = {interval->loss, interval->wait_seconds, interval->communication_seconds, interval->system_seconds};
    const double ranks = fsdp_size(ctx);

    EXAMPLE_TRY(fsdp_allreduce(ctx, FSDP_IN_PLACE, sums, sizeof sums / sizeof sums[0], FSDP_F64, FSDP_SUM));
    interval->loss                  = sums[0] / (double)interval->tokens;
    interval->wait_seconds          = sums[1] / ranks;
    interval->communication_seconds = sums[2] / ranks;
    interval->system_seconds        = sums[3] / ranks;
    return FSDP_OK;
}

static fsdp_status report_interval(gpt_trainer *trainer, const gpt_report *report, gpt_interval *interval)
{
    const gpt_interval next = begin_interval(trainer);

    interval->seconds               = next.seconds - interval->seconds;
    interval->wait_seconds          = next.wait_seconds - interval->wait_seconds;
    interval->communication_seconds = next.communication_seconds - interval->communication_seconds;
    interval->system_seconds        = next.system_seconds - interval->system_seconds;
    EXAMPLE_TRY(reduce_interval(trainer->ctx, interval));
    if (trainer->scaler) {
        interval->scale = fsdp_loss_scaler_scale(trainer->scaler);
    }
    gpt_report_interval(report, interval);
    *interval = next;
    return FSDP_OK;
}

static fsdp_status report_exact_loss(gpt_trainer *trainer, const gpt_report *report, size_t step, double loss)
{
    const gpt_options *o = trainer->options;

    EXAMPLE_TRY(fsdp_allreduce(trainer->ctx, FSDP_IN_PLACE, &loss, 1, FSDP_F64, FSDP_SUM));
    gpt_report_exact_loss(report, step, loss / (double)(o->batch * o->config.context));
    return FSDP_OK;
}

static fsdp_status fail_at_step(const gpt_trainer *trainer, const char *what, size_t step)
{
    return example_fail("the %s of step %zu is not finite; use an --lr below %g", what, step, trainer->options->lr);
}

/* A step may be skipped because scaled gradients overflow, but not because the model has been lost. */
static fsdp_status check_step(const gpt_trainer *trainer, const gpt_step *result, size_t step)
{
    double loss = result->loss;

    if (!result->skipped) {
        return isfinite(result->norm) ? FSDP_OK : fail_at_step(trainer, "gradient norm", step);
    }
    EXAMPLE_TRY(fsdp_allreduce(trainer->ctx, FSDP_IN_PLACE, &loss, 1, FSDP_F64, FSDP_SUM));
    return isfinite(loss) ? FSDP_OK : fail_at_step(trainer, "loss", step);
}

static void count_step(const gpt_options *o, const gpt_step *result, size_t step, gpt_interval *interval)
{
    interval->step = step;
    interval->loss += result->loss;
    interval->norm = result->skipped ? interval->norm : result->norm;
    interval->tokens += o->batch * o->config.context;
    interval->skipped += result->skipped != 0;
}

static fsdp_status train(gpt_trainer *trainer, const gpt_data *data, gpt_report *report)
{
    const gpt_options     *o        = trainer->options;
    const fsdp_lr_schedule schedule = {.kind   = FSDP_LR_COSINE,
                                       .peak   = o->lr,
                                       .final  = o->min_lr,
                                       .warmup = o->warmup,
                                       .total  = o->steps > o->warmup ? o->steps : o->warmup};
    gpt_profile           *profile  = gpt_trainer_profile(trainer);
    gpt_interval           interval = begin_interval(trainer);
    const size_t           first    = trainer->first_step;
    int                    stop     = 0;
    size_t                 step;

    EXAMPLE_TRY(fsdp_lr_schedule_check(&schedule));
    for (step = first; step < o->steps && !stop; step++) {
        gpt_step result;

        if (step <= first + 1) {
            gpt_profile_start(profile); /* the first step touches all memory for the first time */
        }
        EXAMPLE_TRY(gpt_trainer_step(trainer, data, step, fsdp_lr_at(&schedule, step), &result));
        EXAMPLE_TRY(check_step(trainer, &result, step + 1));
        count_step(o, &result, step + 1, &interval);
        if (o->exact) {
            EXAMPLE_TRY(report_exact_loss(trainer, report, step + 1, result.loss));
        }
        if ((step + 1) % o->interval == 0 || step + 1 == o->steps) {
            EXAMPLE_TRY(report_interval(trainer, report, &interval));
        }
        example_bar_draw(&report->bar, step + 1, o->steps);
        EXAMPLE_TRY(gpt_trainer_save(trainer, step, &stop));
    }
    gpt_profile_lap(profile, GPT_PART_OTHER);
    example_bar_clear(&report->bar);
    if (o->profile) {
        gpt_report_profile(report, profile, step > first + 1 ? step - first - 1 : 1);
    }
    return gpt_trainer_close_checkpoint(trainer);
}

static fsdp_status write_sample(gpt_trainer *trainer, const gpt_report *report)
{
    const size_t   bytes = trainer->options->sample;
    unsigned char *text  = bytes ? malloc(bytes) : NULL;
    fsdp_status status   = example_agree(trainer->ctx, text || !bytes ? "" : "no memory for --sample bytes; use fewer");

    if (status == FSDP_OK && bytes) {
        status = gpt_sample(trainer, text, bytes);
    }
    if (status == FSDP_OK && bytes) {
        gpt_report_sample(report, text, bytes);
    }
    free(text);
    return status;
}

/* What saves need for a while may come when the passes need nothing, and then all holds less. */
static fsdp_status count_kept_budgets(const gpt_trainer *trainer, const gpt_report *report)
{
    size_t kept;

    if (!trainer->parallel || trainer->options->checkpoint.folder) {
        return FSDP_OK;
    }
    EXAMPLE_TRY(gpt_parallel_count_kept_budgets(trainer->parallel, &kept));
    gpt_report_kept_budgets(report, kept, fsdp_size(trainer->ctx));
    return FSDP_OK;
}

/* All that comes after training. */
static fsdp_status conclude(gpt_trainer *trainer, const gpt_data *data, const gpt_report *report)
{
    gpt_traffic traffic;
    fsdp_memory memory;
    double      loss;
    size_t      bytes;

    if (trainer->options->exact) {
        uint64_t hash;

        EXAMPLE_TRY(fsdp_model_hash(trainer->model, &hash));
        gpt_report_exact_hash(report, hash);
    }
    EXAMPLE_TRY(gpt_hook_traffic(trainer->ctx, trainer->hook, &traffic));
    gpt_report_traffic(report, &traffic);
    EXAMPLE_TRY(gpt_trainer_validate(trainer, data, &loss, &bytes));
    gpt_report_validation(report, loss, bytes);
    EXAMPLE_TRY(write_sample(trainer, report));
    EXAMPLE_TRY(gpt_trainer_memory(trainer, &memory));
    gpt_report_memory(report, &memory, &trainer->budget);
    return count_kept_budgets(trainer, report);
}

static fsdp_status run_trainer(gpt_trainer *trainer, const gpt_data *data)
{
    const example_node node    = example_node_of(MPI_COMM_WORLD);
    const size_t       threads = example_threads_set(&node, trainer->options->blas_threads);
    gpt_report         report;
    size_t             memory;

    EXAMPLE_TRY(example_memory_per_rank(trainer->ctx, &node, &memory));
    EXAMPLE_TRY(gpt_trainer_commit(trainer, memory));
    EXAMPLE_TRY(gpt_trainer_resume(trainer, data));
    gpt_report_open(&report, trainer->ctx, trainer->options);
    gpt_report_header(&report, trainer, data, &node, threads);
    gpt_report_budget(&report, trainer);
    EXAMPLE_TRY(train(trainer, data, &report));
    return trainer->checkpoint.stopped ? FSDP_OK : conclude(trainer, data, &report);
}

static fsdp_status run(fsdp_context *ctx, gpt_options *options, int *stopped)
{
    gpt_trainer trainer;
    gpt_data    data;
    fsdp_status status;

    EXAMPLE_TRY(gpt_options_check(ctx, options));
    EXAMPLE_TRY(gpt_options_mesh(options) ? gpt_shape_complete(options, (size_t)fsdp_size(ctx)) : FSDP_OK);
    EXAMPLE_TRY(gpt_data_load(ctx, options, &data));
    status = gpt_trainer_open(ctx, options, &data, &trainer);
    if (status == FSDP_OK) {
        status = run_trainer(&trainer, &data);
    }
    *stopped = trainer.checkpoint.stopped;
    gpt_trainer_close(&trainer);
    gpt_data_release(&data);
    return status;
}

/* A stage's layers are gathered at once, and an end of the network beside them. */
static int most_views(const gpt_options *options)
{
    const size_t ranks = options->pp ? options->pp : 1, each = options->stages_per_rank ? options->stages_per_rank : 1;
    const size_t stages = ranks * each, layers = options->config.layers;

    return (int)(layers / stages < MOST_VIEWS ? layers / stages + 1 : MOST_VIEWS);
}

/* A setting of the library that is also an option goes into its configuration, which wins over the environment. */
static fsdp_status run_in_context(gpt_options *options, int *stopped)
{
    fsdp_config   config;
    fsdp_context *ctx;
    fsdp_status   status;

    fsdp_config_init(&config);
    config.prefetch = options->prefetch;
    if (gpt_options_mesh(options)) {
        config.views_in_flight = most_views(options);
    }
    EXAMPLE_TRY(fsdp_init(MPI_COMM_WORLD, &config, &ctx));
    status = run(ctx, options, stopped);
    if (fsdp_finalize(ctx) != FSDP_OK) {
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE); /* MPI_Finalize() would wait for a rank that is gone */
    }
    return status;
}

int main(int argc, char **argv)
{
    gpt_options options;
    fsdp_status status;
    int         stopped = 0, threads;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &threads); /* so that communication overlaps with compute */
    status = gpt_options_read(argc, argv, &options);
    if (status == FSDP_OK && !options.help) {
        status = run_in_context(&options, &stopped);
    } else if (status == FSDP_OK && example_speaks()) {
        gpt_options_help();
    }
    MPI_Finalize();
    return example_exit_status(status, stopped);
}
