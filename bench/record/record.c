#include "bench/record/record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/record/recorder.h"

enum { ENTRIES = 1024, STEPS = 1000000, CALLS = 20000 };

/* ---- the recorder alone ------------------------------------------------------------------------------------------------ */

/* What a context has of it, in memory of its own. */
typedef struct alone {
    fsdpi_recorder recorder;
    unsigned char *memory;
} alone;

static int open_alone(alone *a, uint32_t clock)
{
    *a        = (alone){.recorder = {.mask = ENTRIES - 1, .clock = clock}};
    a->memory = aligned_alloc(64, FSDPI_RECORDED_HEAD_BYTES + ENTRIES * FSDPI_RECORDED_WORDS * sizeof(uint64_t));
    if (a->memory == NULL) {
        return 0;
    }
    memset(a->memory, 0, FSDPI_RECORDED_HEAD_BYTES + ENTRIES * FSDPI_RECORDED_WORDS * sizeof(uint64_t));
    a->recorder.section = (fsdpi_recorded_section *)(void *)a->memory;
    a->recorder.entries = (_Atomic uint64_t *)(void *)(a->memory + FSDPI_RECORDED_HEAD_BYTES);
    atomic_store(&a->recorder.section->n_names, 1);
    return 1;
}

/* As a blocking call of a unit's gather does. */
static void record_one(fsdpi_recorder *recorder, uint64_t sequence)
{
    uint64_t marks = 0;

    fsdpi_recorder_issue(recorder,
                         &(fsdpi_recorder_call){.sequence   = sequence,
                                                .collective = "allgather",
                                                .call       = "fsdp_unit_begin_forward",
                                                .label      = "h.4",
                                                .count      = 2,
                                                .bytes      = 8,
                                                .dtype      = FSDP_F32,
                                                .op         = -1,
                                                .root       = -1,
                                                .marks      = &marks},
                         true, true, false);
    fsdpi_recorder_end(recorder, sequence, "inline", FSDP_OK, fsdpi_ticks(recorder->clock));
    fsdpi_recorder_go_on(recorder, sequence);
}

static double cpu_seconds(void)
{
    struct timespec used;

    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (double)used.tv_sec + 1e-9 * (double)used.tv_nsec;
}

/* SECONDS of CPU per operation, the median of some blocks; negative: no memory. */
static double time_alone(const bench_job *job, uint32_t clock, double *values)
{
    const size_t repeat = job->options->repeat;
    alone        a;

    if (!open_alone(&a, clock)) {
        return -1;
    }
    for (size_t i = 0; i < repeat; i++) {
        const double begin = cpu_seconds();
        for (uint64_t n = 0; n < STEPS; n++) {
            record_one(&a.recorder, n);
        }
        values[i] = (cpu_seconds() - begin) / STEPS;
    }
    free(a.memory);
    return bench_median(values, repeat);
}

/* ---- an operation of 8 bytes -------------------------------------------------------------------------------------------- */

static fsdp_status time_calls(const bench_world *world, fsdp_context *ctx, double *seconds)
{
    float value[2] = {0};

    MPI_Barrier(world->comm);
    const double begin = bench_now();
    for (int i = 0; i < CALLS; i++) {
        BENCH_TRY(fsdp_allreduce(ctx, FSDP_IN_PLACE, value, 2, FSDP_F32, FSDP_SUM));
    }
    *seconds = bench_max(world, (bench_now() - begin) / CALLS);
    return FSDP_OK;
}

static fsdp_status open_context(const bench_world *world, int operations, fsdp_context **ctx)
{
    fsdp_config config;

    fsdp_config_init(&config);
    config.record = operations;
    return fsdp_init(world->comm, &config, ctx);
}

/* In turns, so that both see the same machine. */
static fsdp_status time_both(const bench_job *job, double *with, double *without)
{
    const bench_world *world    = job->world;
    fsdp_context      *recorded = NULL, *plain = NULL;
    fsdp_status        status = open_context(world, ENTRIES, &recorded);

    status = status == FSDP_OK ? open_context(world, 0, &plain) : status;
    for (size_t i = 0; i < job->options->repeat && status == FSDP_OK; i++) {
        status = time_calls(world, recorded, &with[i]);
        status = status == FSDP_OK ? time_calls(world, plain, &without[i]) : status;
    }
    const fsdp_status first = fsdp_finalize(plain), second = fsdp_finalize(recorded);
    return status != FSDP_OK ? status : first != FSDP_OK ? first : second;
}

/* ---- what is printed ----------------------------------------------------------------------------------------------------- */

static void report(bench_job *job, double counter, double system_clock, double with, double without)
{
    const bench_field fields[] = {
        {"recorder_counter_ns", NULL, counter * 1e9},
        {"recorder_clock_ns", NULL, system_clock * 1e9},
        {"allreduce_recorded_us", NULL, with * 1e6},
        {"allreduce_plain_us", NULL, without * 1e6},
    };

    bench_records_row(&job->records, fields, sizeof fields / sizeof fields[0]);
    if (job->world->rank != 0) {
        return;
    }
    printf("#\n# what remembering operations costs (FSDP_RECORD)\n");
    if (counter >= 0) {
        printf("  recorder alone, time-stamp counter   %8.1f ns of CPU per operation\n", counter * 1e9);
    } else {
        printf("  recorder alone, time-stamp counter          - not steady here, or not trusted by Linux\n");
    }
    printf("  recorder alone, clock_gettime()      %8.1f ns of CPU per operation\n", system_clock * 1e9);
    printf("  allreduce of 8 bytes, recorded       %8.3f us\n", with * 1e6);
    printf("  allreduce of 8 bytes, FSDP_RECORD=0  %8.3f us\n", without * 1e6);
    (void)fflush(stdout);
}

fsdp_status bench_record(bench_job *job)
{
    const size_t repeat = job->options->repeat;
    double      *values = calloc(2 * repeat, sizeof *values);
    fsdp_status  status = bench_agree(job->world, values != NULL, "no memory for the samples; use a smaller --repeat");

    if (status == FSDP_OK) {
        const bool   steady  = fsdpi_ticks_clock() == FSDPI_CLOCK_TSC;
        const double counter = steady ? time_alone(job, FSDPI_CLOCK_TSC, values) : -1;
        const double clock   = time_alone(job, FSDPI_CLOCK_MONOTONIC, values);
        status               = time_both(job, values, values + repeat);
        if (status == FSDP_OK) {
            report(job, counter, clock, bench_median(values, repeat), bench_median(values + repeat, repeat));
        }
    }
    free(values);
    return status;
}
