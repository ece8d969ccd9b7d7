/**
 * @file
 * The ranks of the job, how the program says what is wrong, and its clock.
 */
#ifndef BENCH_WORLD_H
#define BENCH_WORLD_H

#include <stddef.h>

#include <fsdp/fsdp.h>

/** Exit status for a wrong option, and for everything else that fails. */
#define BENCH_EXIT_USAGE 2

/** Returns from the calling function where `call` does not return FSDP_OK. */
#define BENCH_TRY(call)                                                                                                \
    do {                                                                                                               \
        const fsdp_status bench_status_ = (call);                                                                      \
        if (bench_status_ != FSDP_OK)                                                                                  \
            return bench_status_;                                                                                      \
    } while (0)

typedef struct bench_world {
    MPI_Comm      comm;    /* of all ranks: for MPI's own collectives, and for what the program has to agree on */
    MPI_Comm      machine; /* those that share this machine's memory, whatever the library is told to call a node */
    int           rank, size;
    int           machine_ranks;
    int           level; /* of thread support, as MPI gave it */
    fsdp_context *ctx;   /* NULL until it is opened */
} bench_world;

/** Fills all but the context. Collective over MPI_COMM_WORLD. */
void bench_world_open(bench_world *world, int level);
void bench_world_close(bench_world *world);

/** Rank 0 prints one line to stderr. @return FSDP_ERR_ARG */
fsdp_status bench_fail(const bench_world *world, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** What bench_agree() does after this rank's part. */
fsdp_status bench_agree_all(const bench_world *world, int ok, const char *line);

/** Collective: FSDP_ERR_ARG on every rank if `ok` is 0 on one of them; rank 0 then prints the line. */
static inline fsdp_status bench_agree(const bench_world *world, int ok, const char *line)
{
    const fsdp_status all = bench_agree_all(world, ok, line);

    return ok ? all : FSDP_ERR_ARG; /* as it is anyway, but here a checker of sources can see it */
}

double bench_now(void);

/** The largest over all ranks. Collective. */
double bench_max(const bench_world *world, double value);

/** The same, asleep until the last rank has come, where MPI would keep the cores of all others busy. Collective. */
double bench_max_asleep(const bench_world *world, double value);

/** The sum over the ranks of this machine. Collective. */
double bench_machine_sum(const bench_world *world, double value);

/** Cores that the ranks of this machine may use between them. Collective. */
int bench_machine_cores(const bench_world *world);

/** The median of `n` values, which are put in order. */
double bench_median(double *values, size_t n);

#endif
