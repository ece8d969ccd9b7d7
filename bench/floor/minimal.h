/**
 * @file
 * The floor: allgather, reduce_scatter and allreduce of f32 between two ranks, with as little as they can do over
 * MPI_Isend() and MPI_Irecv() and still agree on what they call, as the library does.
 *
 * Each rank sends the other a letter of 64 bytes that says what it calls, in front of short data or beside longer data,
 * and compares it with its own. Data lands where it belongs in the result, or in room for a few chunks from which it is
 * reduced in one pass, in rank order, by the library's kernels. Nothing else is copied but this rank's own part of an
 * allgather. Bytes sent by each rank of a full vector of S: S/2, and S for an allreduce.
 */
#ifndef BENCH_MINIMAL_H
#define BENCH_MINIMAL_H

#include "bench/base/collective.h"
#include "bench/floor/pair.h"
#include "bench/floor/plan.h"

/**
 * One operation, out of place. Collective. Blocking.
 * @return FSDP_OK; FSDP_ERR_MISMATCH if the other rank has called something else
 */
fsdp_status bench_minimal_run(bench_pair *pair, const bench_plan *plan, const bench_case *c, const void *in, void *out);

#endif
