#include "bench/training/checkpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/machine/disk.h"
#include "bench/training/checkpoint_report.h"
#include "bench/training/step_model.h"

enum { BYTES_PER_PARAMETER = 12, COPY_MOST = 256 << 20 }; /* a parameter and AdamW's two moments, all f32 */

/* What is measured, and on what. */
typedef struct saving {
    bench_checkpoint_run *run;
    bench_step_model      model;
    bench_disk            disk;
    fsdp_checkpoint      *checkpoint;
    size_t                share; /* BYTES that dd reads and writes on this rank */
    uint64_t              saves;
    void                 *from, *to; /* what memcpy() is timed on */
    bench_work            compute;   /* of a unit's forward pass, where some is asked for */
    const bench_work     *work;      /* that, or NULL */
} saving;

typedef fsdp_status (*timed)(saving *s);

/* SECONDS of `work` on the slowest rank. Those that are done sleep: they would take cores from the others. */
static fsdp_status time_it(saving *s, timed work, double *seconds)
{
    const bench_world *world = s->run->job->world;
    double             begin;

    MPI_Barrier(world->comm);
    begin = bench_now();
    BENCH_TRY(work(s));
    *seconds = bench_max_asleep(world, bench_now() - begin);
    return FSDP_OK;
}

/* ---- what is timed ----------------------------------------------------------------------------------------------- */

static fsdp_status save(saving *s)
{
    const fsdp_checkpoint_state state = {.step = ++s->saves};

    return fsdp_checkpoint_save(s->checkpoint, &state);
}

static fsdp_status load(saving *s)
{
    return fsdp_checkpoint_load(s->model.model, s->model.optimizer, s->disk.folder, NULL, NULL);
}

/* With no gradients, but weight decay: values change. */
static fsdp_status step(saving *s)
{
    BENCH_TRY(bench_step_do(&s->model, s->work));
    return fsdp_checkpoint_progress(s->checkpoint, NULL);
}

static fsdp_status step_with_copy(saving *s)
{
    const fsdp_checkpoint_state state = {.step = ++s->saves};

    BENCH_TRY(step(s));
    return fsdp_checkpoint_save_async(s->checkpoint, &state);
}

/* Called through memory, so that no compiler leaves out copies that nobody reads. */
static void *(*volatile copy)(void *to, const void *from, size_t n_bytes) = memcpy;

static void close_copying(saving *s)
{
    free(s->from);
    free(s->to);
    s->from = s->to = NULL;
}

/* Memory that memcpy() reads and writes: as much as this rank's part of a copy, in pieces larger than caches. */
static fsdp_status open_copying(saving *s)
{
    const size_t piece = s->share < COPY_MOST ? s->share : COPY_MOST;

    s->from = malloc(piece);
    s->to   = malloc(piece);
    if (s->to) {
        memset(s->to, 2, piece);
    }
    const fsdp_status status = bench_agree(s->run->job->world, s->from && s->to,
                                           "no memory for two buffers to copy between; use a smaller --state-bytes");
    if (status != FSDP_OK) {
        close_copying(s);
    }
    return status;
}

/*
 * What is read was just written, as a step writes the state. What is written to may have been idle as long as the memory of a state
 * that was cached before: a virtual machine may take that away meanwhile, and its first touch is slow.
 */
static void time_copy(const saving *s, double *seconds)
{
    const size_t piece = s->share < COPY_MOST ? s->share : COPY_MOST;

    memset(s->from, 1, piece);
    MPI_Barrier(s->run->job->world->comm);
    const double begin = bench_now();
    for (size_t at = 0; at < s->share; at += piece) {
        (void)copy(s->to, s->from, s->share - at < piece ? s->share - at : piece);
    }
    *seconds = bench_max_asleep(s->run->job->world, bench_now() - begin);
}

/* ---- a repetition ------------------------------------------------------------------------------------------------ */

/* What was saved, the steps after it have changed. */
static fsdp_status check(saving *s, uint64_t saved)
{
    uint64_t loaded;

    BENCH_TRY(fsdp_model_hash(s->model.model, &loaded));
    s->run->wrong += loaded != saved;
    return FSDP_OK;
}

/* Ours and dd's, each with as much free memory and nothing of it in caches. Who begins alternates: a disk that was idle
   may take the first bytes faster than those that follow. */
static fsdp_status beside_dd(saving *s, size_t i, timed ours, double *our_seconds, double *dd_seconds, int reads)
{
    for (size_t turn = i; turn < i + 2; turn++) {
        bench_disk_forget(&s->disk);
        if (turn % 2 == 0) {
            *dd_seconds = bench_disk_dd(&s->disk, s->share, reads);
        } else {
            BENCH_TRY(time_it(s, ours, our_seconds));
        }
    }
    return FSDP_OK;
}

static fsdp_status save_and_load(saving *s, size_t i)
{
    double *const *seconds = s->run->seconds;
    uint64_t       saved;

    bench_disk_clear(&s->disk);
    BENCH_TRY(beside_dd(s, i, save, &seconds[BENCH_SAVE][i], &seconds[BENCH_DD_WRITE][i], 0));
    BENCH_TRY(fsdp_model_hash(s->model.model, &saved));
    BENCH_TRY(step(s));
    BENCH_TRY(beside_dd(s, i, load, &seconds[BENCH_LOAD][i], &seconds[BENCH_DD_READ][i], 1));
    return s->run->job->options->no_check ? FSDP_OK : check(s, saved);
}

/* The steps that follow, until the checkpoint is there; at least one. SECONDS of one and of all. */
static fsdp_status go_on(saving *s, double *one, double *all)
{
    double seconds;
    size_t n    = 0;
    int    done = 0;

    *all = 0;
    while (!done) {
        BENCH_TRY(time_it(s, step, &seconds));
        BENCH_TRY(fsdp_checkpoint_progress(s->checkpoint, &done));
        *all += seconds;
        n++;
    }
    *one = *all / (double)n;
    return FSDP_OK;
}

static fsdp_status save_behind_steps(saving *s, size_t i)
{
    double *const *seconds = s->run->seconds;

    bench_disk_clear(&s->disk);
    bench_disk_forget(&s->disk);
    BENCH_TRY(open_copying(s));
    time_copy(s, &seconds[BENCH_COPY][i]);
    close_copying(s);
    BENCH_TRY(time_it(s, step, &seconds[BENCH_STEP_ALONE][i]));
    BENCH_TRY(time_it(s, step_with_copy, &seconds[BENCH_STEP_COPIES][i]));
    return go_on(s, &seconds[BENCH_STEP_BEHIND][i], &seconds[BENCH_BEHIND][i]);
}

/* ---- levels ------------------------------------------------------------------------------------------------------ */

static fsdp_status cache(saving *s)
{
    const fsdp_checkpoint_state state = {.step = ++s->saves};

    return fsdp_checkpoint_cache(s->checkpoint, &state);
}

/* SECONDS of one, as a mean of as many as lie between two states. */
static fsdp_status time_steps(saving *s, double *seconds)
{
    double all = 0, one;

    for (int i = 0; i < BENCH_CACHE_STEPS; i++) {
        BENCH_TRY(time_it(s, step, &one));
        all += one;
    }
    *seconds = all / BENCH_CACHE_STEPS;
    return FSDP_OK;
}

/* The first state lets the library see how many steps there are from one to the next: over these it spreads the copy. */
static fsdp_status cache_behind_steps(saving *s, size_t i)
{
    double *const *seconds = s->run->seconds;
    double         ignored;

    BENCH_TRY(fsdp_checkpoint_wait(s->checkpoint));
    BENCH_TRY(time_steps(s, &seconds[BENCH_PLAIN][i]));
    BENCH_TRY(time_it(s, cache, &ignored));
    BENCH_TRY(time_steps(s, &ignored));
    time_copy(s, &seconds[BENCH_CACHE_COPY][i]);
    BENCH_TRY(fsdp_checkpoint_wait(s->checkpoint));
    BENCH_TRY(time_it(s, cache, &seconds[BENCH_CACHE][i]));
    return time_steps(s, &seconds[BENCH_FOLLOWED][i]);
}

/* Where nothing can be cached, that is said, and the rest is measured all the same. */
static fsdp_status measure_levels(saving *s)
{
    const fsdp_checkpoint_options cached = {.size = sizeof cached, .dtype = FSDP_F32, .cached = 1};
    bench_job                    *job    = s->run->job;

    s->checkpoint = NULL;
    if (fsdp_checkpoint_open(s->model.model, s->model.optimizer, s->disk.folder, &cached, &s->checkpoint) != FSDP_OK) {
        (void)snprintf(s->run->why_not, sizeof s->run->why_not, "%s", fsdp_last_error(s->model.world.ctx));
        return FSDP_OK;
    }
    s->run->cached     = 1;
    fsdp_status status = open_copying(s);
    for (size_t i = 0; i < job->options->repeat && status == FSDP_OK; i++) {
        status = cache_behind_steps(s, i);
        bench_progress_bar_step(&job->bar);
    }
    close_copying(s);
    status                   = status == FSDP_OK ? save(s) : status; /* so that nothing of it stays */
    const fsdp_status closed = fsdp_checkpoint_close(s->checkpoint);
    return status != FSDP_OK ? status : closed;
}

static fsdp_status measure(saving *s)
{
    const size_t n   = s->run->job->options->repeat;
    bench_job   *job = s->run->job;

    bench_checkpoint_head(s->run);
    bench_progress_bar_open(&job->bar, job->world, job->options->progress, 3 * n);
    BENCH_TRY(step(s)); /* the first one records the order of units */
    for (size_t i = 0; i < n; i++) {
        BENCH_TRY(save_and_load(s, i));
        bench_progress_bar_step(&job->bar);
    }
    for (size_t i = 0; i < n; i++) {
        BENCH_TRY(save_behind_steps(s, i));
        bench_progress_bar_step(&job->bar);
    }
    return FSDP_OK;
}

/* ---- opening and closing ----------------------------------------------------------------------------------------- */

static fsdp_status open_and_measure(saving *s, const bench_options *options)
{
    const fsdp_checkpoint_options keep_all = {.size = sizeof keep_all, .dtype = FSDP_F32, .asynchronous = 1};
    fsdp_config                   config;

    fsdp_config_init(&config);
    BENCH_TRY(bench_step_model_open(&s->model, s->run->job->world, options, FSDP_ADAMW, &config));
    if (options->compute_us > 0) {
        s->compute = bench_work_make(&s->model.world, options->overlap_compute, 1e-6 * (double)options->compute_us);
        s->work    = &s->compute;
    }
    BENCH_TRY(fsdp_checkpoint_open(s->model.model, s->model.optimizer, s->disk.folder, &keep_all, &s->checkpoint));
    fsdp_status       status = measure(s);
    const fsdp_status closed = fsdp_checkpoint_close(s->checkpoint);
    status                   = status != FSDP_OK ? status : closed;
    status                   = status == FSDP_OK ? measure_levels(s) : status;
    bench_progress_bar_clear(&s->run->job->bar);
    if (status == FSDP_OK) {
        bench_checkpoint_rows(s->run);
    }
    return status;
}

/* A model of the size that was asked for, or a little more. */
static fsdp_status open_model(saving *s)
{
    const bench_world *world   = s->run->job->world;
    bench_options      options = *s->run->job->options;

    options.unit_params      = 1 + (options.state_bytes - 1) / (options.units * BYTES_PER_PARAMETER);
    options.dtype            = FSDP_F32;
    s->run->unit_params      = options.unit_params;
    s->run->bytes            = options.unit_params * options.units * BYTES_PER_PARAMETER;
    s->run->drops            = s->disk.drops;
    s->share                 = 1 + (s->run->bytes - 1) / (size_t)world->size;
    const fsdp_status status = open_and_measure(s, &options), closed = bench_step_model_close(&s->model);
    return status != FSDP_OK ? status : closed;
}

fsdp_status bench_checkpoint(bench_job *job, size_t *wrong)
{
    const size_t         n      = job->options->repeat;
    bench_checkpoint_run run    = {.job = job};
    double              *values = calloc(BENCH_N_SAVINGS * n, sizeof *values);
    saving               s      = {.run = &run};
    fsdp_status status = bench_agree(job->world, values != NULL, "no memory for the samples; use a smaller --repeat");

    for (int i = 0; i < BENCH_N_SAVINGS && values; i++) {
        run.seconds[i] = values + (size_t)i * n;
    }
    if (status == FSDP_OK) {
        status = bench_disk_open(&s.disk, job->world, job->options->checkpoint);
    }
    if (status == FSDP_OK) {
        status = open_model(&s);
        bench_disk_close(&s.disk);
    }
    *wrong += run.wrong;
    free(values);
    return status;
}
