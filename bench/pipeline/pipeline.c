#include "bench/pipeline/pipeline.h"

#include <stdlib.h>
#include <string.h>

#include "bench/base/compute.h"
#include "bench/pipeline/pipeline_report.h"
#include "shard/pipeline/generate.h"
#include "shard/pipeline/lower.h"
#include "shard/pipeline/simulate.h"

enum { EACH = 2, STEPS_FOR_TRANSFER = 20 };

/* A pipeline whose stages take time. */
typedef struct timed {
    bench_job     *job;
    bench_work     work; /* of one F, I or W; of 0 seconds: none */
    size_t         bytes;
    int            stages, micros;
    size_t         wrong;
    fsdp_pipeline *pipeline;
} timed;

/* ---- what is computed ----------------------------------------------------------------------------------------------------- */

static void compute(const timed *t)
{
    if (t->work.seconds > 0) {
        bench_work_do(&t->work);
    }
}

/* What a message has in its first and last bytes. */
static unsigned char mark(int stage, int micro)
{
    return (unsigned char)(7 * stage + 3 * micro + 1);
}

static void put_mark(const timed *t, void *memory, int stage, int micro)
{
    memset(memory, mark(stage, micro), 1);
    memset((unsigned char *)memory + t->bytes - 1, mark(stage, micro), 1);
}

static void check_mark(timed *t, const void *memory, int stage, int micro)
{
    const unsigned char *bytes = memory;

    t->wrong += bytes[0] != mark(stage, micro) || bytes[t->bytes - 1] != mark(stage, micro);
}

static fsdp_status forward(void *user, int stage, int micro, const void *in, void *out)
{
    timed *t = user;

    if (in != NULL) {
        check_mark(t, in, stage - 1, micro);
    }
    compute(t);
    if (out != NULL) {
        put_mark(t, out, stage, micro);
    }
    return FSDP_OK;
}

static fsdp_status loss(void *user, int micro, const void *out, void *grad_out, double *value)
{
    (void)user;
    (void)out;
    (void)grad_out;
    *value = micro;
    return FSDP_OK;
}

static fsdp_status backward_input(void *user, int stage, int micro, const void *in, const void *grad_out, void *grad_in)
{
    timed *t = user;

    (void)in;
    if (grad_out != NULL) {
        check_mark(t, grad_out, stage + 1, micro);
    }
    compute(t);
    if (grad_in != NULL) {
        put_mark(t, grad_in, stage, micro);
    }
    return FSDP_OK;
}

static fsdp_status backward_weight(void *user, int stage, int micro, const void *in, const void *grad_out)
{
    (void)stage;
    (void)micro;
    (void)in;
    (void)grad_out;
    compute(user);
    return FSDP_OK;
}

/* ---- steps ---------------------------------------------------------------------------------------------------------------- */

static fsdp_status open_pipeline(timed *t, fsdpi_pipeline_kind kind, int each, int micros)
{
    const fsdp_pipeline_callbacks callbacks = {.size            = sizeof callbacks,
                                               .forward         = forward,
                                               .loss            = loss,
                                               .backward_input  = backward_input,
                                               .backward_weight = backward_weight,
                                               .user            = t};
    fsdp_pipeline_options         options   = FSDP_PIPELINE_OPTIONS_DEFAULT;

    t->micros               = micros;
    t->stages               = each * t->job->world->size;
    options.schedule        = fsdpi_pipeline_kind_text(kind);
    options.stages_per_rank = each;
    options.micros          = micros;
    options.bytes           = t->bytes;
    BENCH_TRY(fsdp_pipeline_create(t->job->world->ctx, &options, &callbacks, &t->pipeline));
    for (int s = t->job->world->rank; s < t->stages; s += t->job->world->size) {
        BENCH_TRY(fsdp_pipeline_set_units(t->pipeline, s, NULL, 0));
    }
    return FSDP_OK;
}

/* The median of some steps, of which each takes as long as the rank that takes longest. */
static fsdp_status time_steps(timed *t, size_t n, double *values, double *seconds, double *waiting)
{
    double share = 0;

    for (size_t i = 0; i <= n; i++) { /* the first one is not counted */
        fsdp_pipeline_info info;

        MPI_Barrier(t->job->world->comm);
        BENCH_TRY(fsdp_pipeline_step(t->pipeline, NULL));
        BENCH_TRY(fsdp_pipeline_get_info(t->pipeline, &info));
        values[i > 0 ? i - 1 : 0] = bench_max(t->job->world, info.step_seconds);
        share                     = info.wait_seconds / info.step_seconds;
    }
    *seconds = bench_median(values, n);
    *waiting = 1 - bench_max(t->job->world, 1 - share);
    return FSDP_OK;
}

/* SECONDS of a message: of a step with one micro-batch that computes nothing, which goes there and back. */
static fsdp_status measure_transfer(timed *t, double *values, double *transfer)
{
    double seconds, waiting;

    *transfer = 0;
    if (t->job->world->size == 1) {
        return FSDP_OK;
    }
    t->work.seconds    = 0;
    fsdp_status status = open_pipeline(t, FSDPI_GPIPE, 1, 1);
    status             = status == FSDP_OK ? time_steps(t, STEPS_FOR_TRANSFER, values, &seconds, &waiting) : status;
    if (status == FSDP_OK) {
        *transfer = seconds / (2 * (t->job->world->size - 1));
    }
    fsdp_pipeline_destroy(t->pipeline);
    t->pipeline = NULL;
    return status;
}

/* ---- what is expected ------------------------------------------------------------------------------------------------------ */

static int simulate(const fsdpi_schedule *given, const fsdpi_pace *pace, double *seconds)
{
    fsdpi_schedule   lowered;
    fsdpi_passes     passes, with_messages;
    fsdpi_simulation run = {0};
    fsdpi_flaw       flaw;
    int              good = 0;

    if (!fsdpi_passes_open(&passes, given, &flaw)) {
        return 0;
    }
    if (fsdpi_lower(&passes, &lowered, &flaw)) {
        if (fsdpi_passes_open(&with_messages, &lowered, &flaw)) {
            good     = fsdpi_simulate(&with_messages, pace, &run, &flaw);
            *seconds = run.seconds;
            fsdpi_simulation_close(&run);
            fsdpi_passes_close(&with_messages);
        }
        fsdpi_schedule_close(&lowered);
    }
    fsdpi_passes_close(&passes);
    return good;
}

static fsdp_status expect(const timed *t, fsdpi_pipeline_kind kind, double transfer, bench_pipeline_result *r)
{
    const double     action = t->work.seconds;
    const int        each   = r->stages / r->ranks;
    const double     bubble = fsdpi_bubble(kind, r->ranks, each, r->micros);
    const fsdpi_pace pace   = {
          .forward = action, .backward_input = action, .backward_weight = action, .transfer = transfer, .buffers = 1};
    fsdpi_schedule schedule;
    fsdpi_flaw     flaw;
    int            good = 0;

    r->busy    = 3 * action * each * r->micros;
    r->formula = bubble < 0 ? -1 : r->busy / (1 - bubble);
    if (fsdpi_generate(&schedule, kind, r->ranks, each, r->micros, &flaw)) {
        good = simulate(&schedule, &pace, &r->simulated);
        fsdpi_schedule_close(&schedule);
    }
    return bench_agree(t->job->world, good, "no memory for a simulation; use fewer micro-batches");
}

/* ---- all ------------------------------------------------------------------------------------------------------------------- */

static fsdp_status measure(timed *t, fsdpi_pipeline_kind kind, int micros, double transfer, double *values)
{
    const int             each = kind == FSDPI_INTERLEAVED ? EACH : 1;
    bench_pipeline_result r    = {.schedule = fsdpi_pipeline_kind_text(kind),
                                  .ranks    = t->job->world->size,
                                  .stages   = each * t->job->world->size,
                                  .micros   = micros};

    BENCH_TRY(expect(t, kind, transfer, &r));
    fsdp_status status = open_pipeline(t, kind, each, micros);
    status = status == FSDP_OK ? time_steps(t, t->job->options->repeat, values, &r.measured, &r.waiting) : status;
    fsdp_pipeline_destroy(t->pipeline);
    t->pipeline = NULL;
    BENCH_TRY(status);
    bench_pipeline_row(t->job, &r);
    return FSDP_OK;
}

/* As many micro-batches as are asked for; or once, twice and four times the ranks. */
static fsdp_status measure_all(timed *t, double *values)
{
    const bench_options *o     = t->job->options;
    const int            ranks = t->job->world->size;
    double               transfer;

    BENCH_TRY(measure_transfer(t, values, &transfer));
    t->work =
        bench_work_make(t->job->world, o->overlap_compute, 1e-6 * (double)(o->compute_us ? o->compute_us : 10000));
    bench_pipeline_head(t->job, t->work.seconds, t->bytes, transfer);
    for (int k = 0; k < FSDPI_N_PIPELINE_KINDS; k++) {
        for (int m = 1; m <= 4; m *= 2) {
            const int micros = o->micro ? (int)o->micro : m * ranks;

            if (k == FSDPI_INTERLEAVED && micros % ranks != 0) {
                break; /* it needs a multiple of the ranks */
            }
            BENCH_TRY(measure(t, (fsdpi_pipeline_kind)k, micros, transfer, values));
            if (o->micro) {
                break;
            }
        }
    }
    return FSDP_OK;
}

fsdp_status bench_pipeline(bench_job *job, size_t *wrong)
{
    const size_t room   = job->options->repeat > STEPS_FOR_TRANSFER ? job->options->repeat : STEPS_FOR_TRANSFER;
    timed        t      = {.job = job, .bytes = job->options->activation_bytes};
    double      *values = calloc(room, sizeof *values);
    fsdp_status  status = bench_agree(job->world, values != NULL, "no memory for the samples; use a smaller --repeat");

    status = status == FSDP_OK ? measure_all(&t, values) : status;
    *wrong += t.wrong;
    free(values);
    return status;
}
