/**
 * @file
 * The memory that both sides work on: the same for the library and for MPI, so that its pages are alike too.
 */
#ifndef BENCH_BUFFERS_H
#define BENCH_BUFFERS_H

#include "bench/base/collective.h"
#include "bench/base/options.h"
#include "bench/base/world.h"
#include "bench/machine/gpu.h"

typedef struct bench_buffers {
    fsdp_context *ctx;
    bench_gpu    *gpu;    /* where they are; NULL: on the host */
    int           memory; /* a bench_memory */
    size_t        bytes;  /* of each */
    void         *in, *out;
    void         *node_out;           /* one copy per node; NULL unless it was asked for */
    void         *host_in, *host_out; /* where the host reads and writes them: the same memory, or pinned for a GPU */
} bench_buffers;

/**
 * Collective. Each buffer has room for `bytes`, on the GPU or, where that is NULL, on the host, and has been written to there;
 * `shared` asks for `node_out`, which is on the host only.
 */
fsdp_status bench_buffers_open(bench_buffers *buffers, const bench_world *world, bench_gpu *gpu, int memory, int shared,
                               size_t bytes);

/** Collective. */
fsdp_status bench_buffers_close(bench_buffers *buffers);

/**
 * The part of the buffers that iteration `turn` of a case works on: the next one each time, so that none is still in a cache
 * from the last. It begins on a line of the caches, and is to be used like the whole.
 */
bench_buffers bench_buffers_turn(const bench_buffers *buffers, const bench_case *c, size_t turn);

/** The output of the library, and where the host reads it: MPI's is always `out`. */
void *bench_buffers_result(const bench_buffers *buffers, const bench_case *c);
void *bench_buffers_host_result(const bench_buffers *buffers, const bench_case *c);

/**
 * Copies BYTES from a place in `host_in` or `host_out` to the same place on the GPU, in its stream, or back, which waits for
 * it. Nothing on the host. Local.
 */
void bench_buffers_send(const bench_buffers *buffers, const void *host, size_t bytes);
void bench_buffers_fetch(const bench_buffers *buffers, void *host, size_t bytes);

/** "4 KiB pages of private memory", from what the kernel says of `memory`. */
void bench_describe_pages(const void *memory, char *text, size_t text_bytes);

#endif
