/**
 * @file
 * What the job asks of its twin, and how: each order is answered with one double, seconds, or below 0 if it could not be
 * done. Waiting for either sleeps.
 */
#ifndef BENCH_TWIN_CHANNEL_H
#define BENCH_TWIN_CHANNEL_H

#include <stddef.h>

#include "bench/base/collective.h"
#include "bench/base/world.h"

/** ALONE: MPI_Allreduce() of 8 bytes on MPI_COMM_SELF, which nothing is communicated in. */
typedef enum bench_order_kind {
    BENCH_ORDER_PREPARE,
    BENCH_ORDER_TIME,
    BENCH_ORDER_ALONE,
    BENCH_ORDER_END
} bench_order_kind;

/** The answer to PREPARE of a job that has not loaded what LD_PRELOAD names. */
#define BENCH_NOT_LOADED (-2.0)

typedef struct bench_order {
    bench_order_kind kind;
    int              library;    /* PREPARE: with a context of the library, whose buffers these are */
    int              preloaded;  /* PREPARE: the drop-in has to be in the process */
    int              memory;     /* PREPARE: a bench_memory */
    int              node_size;  /* PREPARE: FSDP_UNSET, or as fsdp_config has it */
    size_t           bytes;      /* PREPARE: of each buffer */
    int              reuse;      /* PREPARE: --reuse-buffers */
    bench_case       what;       /* TIME */
    size_t           iterations; /* TIME, ALONE */
    int              in_blocks;  /* TIME: the median of several blocks, not the mean of all iterations */
    int apart; /* TIME, in blocks: each iteration with a barrier behind it that is not timed; the mean of all ranks */
} bench_order;

/** A socket that the twin can reach under `name`. @return below 0 on failure */
int bench_channel_listen(char *name, size_t name_bytes);

/** Waits for the twin for a while. @return its socket; below 0 if nobody of this user's has come */
int bench_channel_accept(int listener, double seconds);

/** @return the socket to the job that listens under `name`; below 0 on failure */
int bench_channel_connect(const char *name);

/** All `bytes`, or failure: 0. */
int bench_channel_send(int channel, const void *data, size_t bytes);
int bench_channel_receive(int channel, void *data, size_t bytes);

/** Rank 0's `data` for all ranks. The others sleep until it comes, where MPI would keep their cores busy. Collective. */
void bench_share_asleep(const bench_world *world, void *data, size_t bytes);

#endif
