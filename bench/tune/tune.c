#include "bench/tune/tune.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/job/measure.h"
#include "bench/job/open.h"
#include "bench/tune/tuning.h"

/* One pass over all cases with one context. */
typedef struct pass {
    bench_job     job; /* with a context of its own */
    bench_tuning *tuning;
    int           algorithm;  /* to be timed; FSDP_ALGO_AUTO: the choices are compared with the table */
    size_t        different;  /* choices that are not the table's */
    char          first[160]; /* of them, in words */
    size_t        wrong;      /* elements */
} pass;

/* Runs the case once. `same` says whether all ranks then took the algorithm. */
static fsdp_status try_algorithm(pass *p, const bench_case *c, fsdp_algorithm wanted, int *same)
{
    const bench_job *job = &p->job;

    BENCH_TRY(bench_run(c, job->world->ctx, job->buffers.in, job->buffers.out));
    *same = strcmp(fsdp_last_algorithm(job->world->ctx), fsdp_algorithm_text(wanted)) == 0;
    MPI_Allreduce(MPI_IN_PLACE, same, 1, MPI_INT, MPI_LAND, job->world->comm);
    return FSDP_OK;
}

/* Between two nodes of one rank, an input that was reduced within the last millisecond counts as cached. */
static void outlast_the_caches(void)
{
    (void)nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
}

/* Compares what the library chooses with the table. */
static fsdp_status compare(pass *p, const bench_case *c, const bench_cell *cell)
{
    const fsdp_algorithm wanted = bench_fastest(cell);
    int                  same   = 1;

    if (wanted == FSDP_ALGO_AUTO) {
        return FSDP_OK;
    }
    outlast_the_caches();
    BENCH_TRY(try_algorithm(p, c, wanted, &same));
    if (!same && p->different++ == 0) {
        (void)snprintf(p->first, sizeof p->first, "%s of %zu bytes in %s memory: %s, not %s",
                       bench_collective_name(c->collective), c->bytes,
                       p->job.buffers.memory == BENCH_MEMORY_SYMMETRIC ? "symmetric" : "user",
                       fsdp_last_algorithm(p->job.world->ctx), fsdp_algorithm_text(wanted));
    }
    return FSDP_OK;
}

static fsdp_status time_cell(pass *p, const bench_case *c, bench_cell *cell)
{
    bench_result result;
    int          same;

    BENCH_TRY(try_algorithm(p, c, (fsdp_algorithm)p->algorithm, &same));
    if (same) {
        BENCH_TRY(bench_measure_ours(&p->job, c, &result));
        cell->seconds[p->algorithm] = result.seconds;
        p->wrong += result.wrong;
    }
    return FSDP_OK;
}

static fsdp_status visit_cell(pass *p, const bench_case *c, bench_cell *cell)
{
    cell->bytes = c->bytes;
    return p->algorithm == FSDP_ALGO_AUTO ? compare(p, c, cell) : time_cell(p, c, cell);
}

static fsdp_status visit_memory(pass *p, int memory, bench_progress_bar *bar)
{
    for (int c = 0; c < BENCH_N_TUNED; c++) {
        bench_cell *cells = p->tuning->cells[c][memory];
        bench_case  what  = {0};
        size_t      bytes = 0;

        for (size_t i = 0; cells && i < p->tuning->n; i++) {
            if (bench_job_next_case(&p->job, (bench_collective)c, &what, &bytes)) {
                BENCH_TRY(visit_cell(p, &what, &cells[i]));
            }
            bench_progress_bar_step(bar);
        }
    }
    return FSDP_OK;
}

static fsdp_status visit_all(pass *p, bench_progress_bar *bar)
{
    const bench_job *job   = &p->job;
    const size_t     bytes = bench_job_buffer_bytes(job->world, job->options);

    for (int memory = 0; memory < BENCH_N_MEMORIES; memory++) {
        fsdp_status status, closed;

        BENCH_TRY(bench_buffers_open(&p->job.buffers, job->world, NULL, memory, 0, bytes));
        status = visit_memory(p, memory, bar);
        closed = bench_buffers_close(&p->job.buffers);
        BENCH_TRY(status);
        BENCH_TRY(closed);
    }
    return FSDP_OK;
}

/* A context with the overrides in `config`, and everything with it. */
static fsdp_status make_pass(bench_job *job, pass *p, fsdp_config *config)
{
    bench_world world = *job->world;
    fsdp_status status, closed;

    BENCH_TRY(bench_context_open(&world, job->options, config));
    p->job       = *job;
    p->job.world = &world;
    status       = visit_all(p, &job->bar);
    job->pattern = p->job.pattern;
    closed       = fsdp_finalize(world.ctx);
    return status != FSDP_OK ? status : closed;
}

static fsdp_status time_algorithms(bench_job *job, bench_tuning *tuning, size_t *wrong)
{
    fsdp_config config;

    for (int a = FSDP_ALGO_AUTO + 1; a < BENCH_N_ALGORITHMS; a++) {
        pass p = {.tuning = tuning, .algorithm = a};

        fsdp_config_init(&config);
        config.algo_allgather = config.algo_reduce_scatter = config.algo_allreduce = a;
        BENCH_TRY(make_pass(job, &p, &config));
        *wrong += p.wrong;
    }
    return FSDP_OK;
}

static int write_file(const bench_tuning *tuning, const bench_job *job)
{
    const fsdp_context *ctx   = job->world->ctx;
    const char         *path  = job->options->tune;
    const int           ranks = job->world->size;
    char                temporary[4096];
    FILE               *file;
    int                 ok;

    (void)snprintf(temporary, sizeof temporary, "%s.tmp", path);
    file = fopen(temporary, "we");
    if (!file) {
        return 0;
    }
    (void)fprintf(file, "# fsdp-tuning 1\n# written by fsdp-bench --tune on %d rank%s\n", ranks, ranks > 1 ? "s" : "");
    ok = bench_tuning_write_library(ctx, 1, file); /* first, since rows for symmetric memory would serve it too */
    bench_tuning_write(tuning, file);
    (void)fprintf(file, "# what was not timed, as the library has it here\n");
    ok = bench_tuning_write_library(ctx, 0, file) && ok && !ferror(file);
    ok = fclose(file) == 0 && ok && rename(temporary, path) == 0;
    return ok;
}

static fsdp_status save(const bench_tuning *tuning, const bench_job *job)
{
    const int ok = job->world->rank != 0 || write_file(tuning, job);
    char      line[400];

    (void)snprintf(line, sizeof line, "'%.200s' cannot be written: %s; name another file with --tune",
                   job->options->tune, strerror(errno));
    return bench_agree(job->world, ok, line);
}

/* A context that is given the file chooses what was the fastest. */
static fsdp_status check_file(bench_job *job, bench_tuning *tuning)
{
    fsdp_config config;
    pass        p = {.tuning = tuning, .algorithm = FSDP_ALGO_AUTO};

    fsdp_config_init(&config);
    config.tuning_file = job->options->tune;
    BENCH_TRY(make_pass(job, &p, &config));
    if (p.different > 0) {
        return bench_fail(
            job->world,
            "a context opened with '%.200s' chooses otherwise than the file says in %zu cases; the first: %s",
            job->options->tune, p.different, p.first);
    }
    return FSDP_OK;
}

static void report(bench_job *job, const bench_tuning *tuning)
{
    bench_progress_bar_clear(&job->bar);
    if (job->world->rank == 0) {
        bench_tuning_print(tuning, stdout);
        printf("#\n# %s, which a context opened with it obeys:\n", job->options->tune);
        bench_tuning_write(tuning, stdout);
        (void)fflush(stdout);
    }
}

static fsdp_status tune(bench_job *job, bench_tuning *tuning, size_t *wrong)
{
    BENCH_TRY(bench_buffers_close(&job->buffers)); /* each context has its own */
    BENCH_TRY(time_algorithms(job, tuning, wrong));
    bench_tuning_settle(tuning);
    BENCH_TRY(save(tuning, job));
    BENCH_TRY(check_file(job, tuning));
    report(job, tuning);
    return FSDP_OK;
}

fsdp_status bench_tune(bench_job *job, size_t *wrong)
{
    bench_tuning tuning = {.nodes = job->limits.nodes};
    bench_cell  *cells;
    size_t       used = 0;
    fsdp_status  status;

    for (int c = 0; c < BENCH_N_TUNED; c++) {
        const size_t n = bench_job_count_cases(job, (bench_collective)c);

        tuning.n = tuning.n && tuning.n < n ? tuning.n : n;
    }
    cells  = calloc((size_t)BENCH_N_TUNED * BENCH_N_MEMORIES * tuning.n, sizeof *cells);
    status = bench_agree(job->world, cells != NULL, "no memory for the results; use a larger --factor");
    for (int c = 0; c < BENCH_N_TUNED && cells; c++) {
        for (int m = 0; m < BENCH_N_MEMORIES && bench_job_wants(job, (bench_collective)c); m++) {
            tuning.cells[c][m] = cells + used;
            used += tuning.n;
        }
    }
    bench_progress_bar_open(&job->bar, job->world, job->options->progress, used * BENCH_N_ALGORITHMS);
    if (status == FSDP_OK) {
        status = tune(job, &tuning, wrong);
    }
    free(cells);
    return status;
}
