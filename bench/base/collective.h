/**
 * @file
 * One collective on one size: what it moves, and how the library and MPI are asked to do it.
 *
 * Sizes and counts are those of nccl-tests: `bytes` is the full vector S on one rank; `count` is in ELEMENTS, per rank for
 * allgather, reduce_scatter and alltoall, and of the whole for the others. The root is rank 0.
 */
#ifndef BENCH_COLLECTIVE_H
#define BENCH_COLLECTIVE_H

#include <stddef.h>

#include <fsdp/fsdp.h>

typedef enum bench_collective {
    BENCH_ALLGATHER,
    BENCH_REDUCE_SCATTER,
    BENCH_ALLREDUCE,
    BENCH_BROADCAST,
    BENCH_REDUCE,
    BENCH_ALLTOALL
} bench_collective;
#define BENCH_N_COLLECTIVES 6

typedef struct bench_case {
    bench_collective collective;
    int              ranks;
    fsdp_dtype       dtype;
    fsdp_redop       op;
    int              in_place;
    int              shared; /* the library's result is one copy per node; MPI's is not */
    size_t           bytes, count;
} bench_case;

const char *bench_collective_name(bench_collective collective);

/** Whether elements are combined, so that a reduction plays a part. */
int bench_collective_reduces(bench_collective collective);

/** "sum" and so on, or "none" where elements are only moved. */
const char *bench_case_op(const bench_case *c);

/** The case of nearly `bytes`: a whole number of elements for each rank, at least one. */
void bench_case_size(bench_case *c, size_t bytes);

/** GB/s, as nccl-tests has them: bytes over time, and with its factor for what the hardware carries. */
double bench_algbw(const bench_case *c, double seconds);
double bench_busbw(const bench_case *c, double seconds);

/** ELEMENTS that `rank` passes in, and gets out. */
size_t bench_in_count(const bench_case *c, int rank);
size_t bench_out_count(const bench_case *c, int rank);

/** Where the input of `rank` lies: in `in`, or in `out` if that is where it is in place. */
void *bench_input(const bench_case *c, int rank, void *in, void *out);

/** Issues the library's nonblocking form. */
fsdp_status bench_issue(const bench_case *c, fsdp_context *ctx, void *in, void *out, fsdp_request **request);

/** The library's blocking form. */
fsdp_status bench_run(const bench_case *c, fsdp_context *ctx, void *in, void *out);

#endif
