/**
 * @file
 * The memory that both sides work on: the same for the library and for MPI, so that its pages are alike too.
 */
#ifndef BENCH_BUFFERS_H
#define BENCH_BUFFERS_H

#include "collective.h"
#include "options.h"
#include "world.h"

typedef struct bench_buffers {
    fsdp_context *ctx;
    int           memory; /* a bench_memory */
    size_t        bytes;  /* of each */
    void         *in, *out;
    void         *node_out; /* one copy per node; NULL unless it was asked for */
} bench_buffers;

/** Collective. Each buffer has room for `bytes` and has been written to; `shared` asks for `node_out`. */
fsdp_status bench_buffers_open(bench_buffers *buffers, const bench_world *world, int memory, int shared, size_t bytes);

/** Collective. */
fsdp_status bench_buffers_close(bench_buffers *buffers);

/** The output of the library: MPI's is always `out`. */
void *bench_buffers_result(const bench_buffers *buffers, const bench_case *c);

/** "4 KiB pages of private memory", from what the kernel says of `memory`. */
void bench_describe_pages(const void *memory, char *text, size_t text_bytes);

#endif
