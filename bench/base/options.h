/**
 * @file
 * The command line.
 */
#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

#include <stddef.h>

#include <fsdp/fsdp.h>

#include "bench/base/collective.h"

typedef enum bench_memory { BENCH_MEMORY_SYMMETRIC, BENCH_MEMORY_USER } bench_memory;
typedef enum bench_device { BENCH_DEVICE_HOST, BENCH_DEVICE_GPU } bench_device;
typedef enum bench_compute { BENCH_COMPUTE_TIMED, BENCH_COMPUTE_CPU } bench_compute;

/** AUTO: where stderr is a terminal, which mpirun hides from the ranks. */
typedef enum bench_progress { BENCH_PROGRESS_AUTO, BENCH_PROGRESS_ON, BENCH_PROGRESS_OFF } bench_progress;

typedef struct bench_options {
    int         collectives; /* a bit for each bench_collective */
    size_t      begin, end;  /* BYTES of the full vector */
    size_t      factor;
    fsdp_dtype  dtype;
    fsdp_redop  op;
    size_t      ranks_per_node; /* 0: as found */
    int         device;         /* a bench_device: where the buffers are */
    int         memory;         /* a bench_memory */
    int         shared;         /* allgather into one copy per node */
    int         in_place;
    size_t      iterations; /* per block; 0: as many as take 50 ms */
    size_t      warmup;
    size_t      repeat; /* blocks of each side */
    int         no_check;
    int         no_twin;
    int         reuse;        /* the same memory in every iteration */
    int         thread_level; /* 0: multiple, 1: single */
    size_t      link_rate;    /* BITS per second; 0: measured */
    size_t      memory_rate;  /* BYTES per second of a node; 0: measured */
    int         overlap;
    int         overlap_compute; /* a bench_compute */
    int         floor;
    int         async;
    int         lanes;
    int         record;
    const char *drop_in; /* what the ranks of its jobs preload; NULL: another run */
    int         osu;     /* there: each call timed by itself */
    int         shards;
    int         step;
    size_t      units, unit_params; /* of the model of a step */
    int         strategy;           /* a fsdp_strategy */
    int         fixed_addresses;    /* as in fsdp_model_options */
    size_t      compute_us;         /* per forward pass of a unit; 0: as much as there is communication */
    const char *checkpoint;         /* a folder; NULL: another run */
    size_t      state_bytes;        /* of what is saved */
    int         pipeline;
    size_t      micro;            /* micro-batches of its steps; 0: once, twice and four times the ranks */
    size_t      activation_bytes; /* that its stages pass on */
    int         kernels;
    int         algorithms;
    size_t      nodes;       /* of the algorithms; 0: the job's */
    double      alpha, beta; /* MICROSECONDS and GB per second there; 0: measured */
    int         progress;    /* a bench_progress */
    int         help, version;
    const char *tune, *json, *csv, *plot;
    const char *program; /* argv[0] */
} bench_options;

/**
 * Needs no MPI, and gives the same on all ranks.
 *
 * @param[out] message  CLI_MESSAGE_BYTES: what is wrong and what to do; "" if nothing is
 */
void bench_options_parse(int argc, char **argv, bench_options *options, char *message);

/** Whether this is the plain run: none of those that have an option of their own. */
int bench_options_sweep(const bench_options *options);

/**
 * Prints, on rank 0, what --help and --version ask for.
 * @return 1 where one of them is given: nothing else is to be done then
 */
int bench_options_answer(const bench_options *options, int rank);

#endif
