/**
 * @file
 * The two ranks of a floor, and the letters of 64 bytes by which they agree on what they call.
 */
#ifndef BENCH_PAIR_H
#define BENCH_PAIR_H

#include <stdint.h>

#include "bench/base/collective.h"
#include "bench/base/world.h"
#include "kernels/kernels.h"

#define BENCH_SPINS 1000 /* looks in vain at full speed; then each gives the core away, as MPI may */

/** What a rank says of its call: one cache line. */
typedef struct bench_letter {
    uint64_t call; /* counts them */
    uint64_t fingerprint, bytes;
    int32_t  status;
    uint32_t flags;
    char     rest[32];
} bench_letter;

typedef struct bench_pair {
    MPI_Comm             comm; /* of its own */
    int                  rank, peer;
    const fsdpi_kernels *kernels;
    char                *room;            /* for BENCH_PLAN_ROOM bytes of what is to be reduced */
    char                *sent, *received; /* letters with data behind them */
    bench_letter         mine, theirs;    /* those without */
    MPI_Request          requests[2];     /* of these */
} bench_pair;

/** Message tags. */
enum { BENCH_TAG_LETTER = 1, BENCH_TAG_INLINE, BENCH_TAG_DATA, BENCH_TAG_RESULT };

/** Collective; the job has two ranks. Whatever is returned, bench_pair_close() follows. */
fsdp_status bench_pair_open(bench_pair *pair, const bench_world *world);
void        bench_pair_close(bench_pair *pair);

/** Writes this rank's letter for a call. */
void bench_letter_write(bench_pair *pair, const bench_case *c);

/** Sends it, and receives the other's: bench_letter_end() waits for both. */
void bench_letter_post(bench_pair *pair);
void bench_letter_end(bench_pair *pair);

/** Exchanges BENCH_PLAN_INLINE_BYTES of data or less behind the letters. @return what the other rank has sent */
const char *bench_letter_exchange(bench_pair *pair, const void *data, size_t bytes);

/** FSDP_OK, or FSDP_ERR_MISMATCH if the other rank has called something else. */
fsdp_status bench_letter_compare(const bench_pair *pair);

#endif
