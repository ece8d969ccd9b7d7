#include "bench/floor/stream.h"

size_t bench_stream_chunks(const bench_stream *stream)
{
    return stream->bytes / stream->chunk + (stream->bytes % stream->chunk != 0);
}

size_t bench_stream_begin(const bench_stream *stream, size_t number)
{
    return number * stream->chunk;
}

size_t bench_stream_length(const bench_stream *stream, size_t number)
{
    const size_t rest = stream->bytes - bench_stream_begin(stream, number);

    return rest < stream->chunk ? rest : stream->chunk;
}

char *bench_stream_place(const bench_stream *stream, size_t number)
{
    return stream->to + bench_stream_begin(stream, stream->slots ? number % stream->slots : number);
}

/* bench_stream_look() completes them, which the checker does not take for a wait. */
/* NOLINTBEGIN(clang-analyzer-optin.mpi.MPI-Checker) */

static MPI_Request post(const bench_stream *stream, size_t number)
{
    const int   length = (int)bench_stream_length(stream, number);
    MPI_Request request;

    if (stream->from) {
        MPI_Isend(stream->from + bench_stream_begin(stream, number), length, MPI_BYTE, stream->peer, stream->tag,
                  stream->comm, &request);
    } else {
        MPI_Irecv(bench_stream_place(stream, number), length, MPI_BYTE, stream->peer, stream->tag, stream->comm,
                  &request);
    }
    return request;
}

/* NOLINTEND(clang-analyzer-optin.mpi.MPI-Checker) */

void bench_stream_post(bench_stream *stream, size_t ready)
{
    while (stream->posted < ready && stream->posted - stream->done < stream->depth) {
        stream->requests[stream->posted % stream->depth] = post(stream, stream->posted);
        stream->posted++;
    }
}

int bench_stream_look(bench_stream *stream)
{
    int done = 0;

    if (stream->done < stream->posted) {
        MPI_Test(&stream->requests[stream->done % stream->depth], &done, MPI_STATUS_IGNORE);
    }
    stream->done += done != 0;
    return done != 0;
}

int bench_stream_over(const bench_stream *stream)
{
    return stream->done == bench_stream_chunks(stream);
}
