/**
 * @file
 * A twin of this job, of the same size, that runs MPI at the other thread level, on which MPI's speed depends, or with the
 * drop-in preloaded: one process can have only one of either. Both are measured in alternation, and whichever is not being
 * measured sleeps.
 *
 * Rank 0 starts the twin with the command line that this job was started with, and talks to the twin's rank 0 through a
 * socket. MPI_Comm_spawn() would be the shorter way, but connects the two jobs: Open MPI then polls its network sockets
 * whenever it waits, here and in the twin, and messages within the node take twice as long.
 */
#ifndef BENCH_TWIN_H
#define BENCH_TWIN_H

#include <sys/types.h>

#include "bench/base/collective.h"
#include "bench/base/options.h"
#include "bench/base/world.h"

/** What the ranks of a second job are. */
typedef struct bench_twin_kind {
    const char *preload;  /* LD_PRELOAD; NULL: nothing */
    int         multiple; /* MPI_THREAD_MULTIPLE instead of MPI_THREAD_SINGLE */
} bench_twin_kind;

struct bench_order;

typedef struct bench_twin {
    int   there;        /* the same on all ranks */
    int   socket;       /* on rank 0: to rank 0 of the twin */
    pid_t launcher;     /* on rank 0 */
    char  why_not[160]; /* on rank 0 */
} bench_twin;

/** Starts a second job. Collective. Without success `there` is 0, and `why_not` says why. */
void bench_twin_start(bench_twin *twin, const bench_world *world, const char *program, const bench_twin_kind *kind);

/** Has the job carry out an order. Collective. @return its answer; below 0 if it could not, or does not answer */
double bench_twin_ask(const bench_twin *twin, const bench_world *world, const struct bench_order *order);

/** Starts the twin and has it allocate `bytes` per buffer. Collective. Without success `why_not` says why. */
void bench_twin_open(bench_twin *twin, const bench_world *world, const bench_options *options, size_t bytes);

/** Collective. @return seconds per iteration of MPI's collective in the twin; below 0 without a twin */
double bench_twin_time(const bench_twin *twin, const bench_world *world, const bench_case *c, size_t iterations);

/** Collective. */
void bench_twin_close(bench_twin *twin, const bench_world *world);

/** The argument that makes the program a rank of the twin. */
#define BENCH_TWIN_ARGUMENT "--baseline-server"

/** What a rank of the twin does instead of everything else: argv is as bench_twin_open() passes it. */
int bench_twin_serve(int argc, char **argv);

#endif
