/**
 * @file
 * Data on its way to or from the other rank, cut into chunks, a few of which are under way at a time.
 */
#ifndef BENCH_STREAM_H
#define BENCH_STREAM_H

#include <mpi.h>
#include <stddef.h>

#define BENCH_STREAM_MOST_DEPTH 8

/** Set the fields down to `slots`, the rest to 0. One of `from` and `to` is NULL. */
typedef struct bench_stream {
    MPI_Comm    comm;
    int         peer, tag;
    const char *from;  /* what is sent */
    char       *to;    /* where it is received */
    size_t      bytes; /* in all */
    size_t      chunk; /* BYTES of each but the last */
    size_t      depth; /* chunks under way at most, up to BENCH_STREAM_MOST_DEPTH */
    size_t      slots; /* chunks that `to` has room for, used in turn; 0: for all of them */
    size_t      posted, done;
    MPI_Request requests[BENCH_STREAM_MOST_DEPTH];
} bench_stream;

/** How many chunks it has. */
size_t bench_stream_chunks(const bench_stream *stream);

/** BYTES of a chunk, and where it begins in the whole. */
size_t bench_stream_length(const bench_stream *stream, size_t number);
size_t bench_stream_begin(const bench_stream *stream, size_t number);

/** Where a chunk is received. */
char *bench_stream_place(const bench_stream *stream, size_t number);

/** Posts what may be under way of the first `ready` chunks. */
void bench_stream_post(bench_stream *stream, size_t ready);

/** 1 if the oldest chunk under way has come or gone; it then counts as done. */
int bench_stream_look(bench_stream *stream);

int bench_stream_over(const bench_stream *stream);

#endif
