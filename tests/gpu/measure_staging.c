/*
 * How near collectives on GPU memory between nodes come to the slower of the link and the copy engine:
 *
 *   measure_staging MIB LINK_BYTES_PER_S COPY_BYTES_PER_S LEAST
 *
 * Prints the rate of each for a vector of so many MiB, and exits with 1 where one is less than LEAST of the slower.
 * Runs on the double of the HIP runtime: tests/gpu/measure_staging.sh makes the links and the copy engine.
 */
#include <hip/hip_runtime_api.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "fsdp/fsdp.h"
#include "tests/doubles/hip/job.h"

enum { ALLGATHER, REDUCE_SCATTER, ALLREDUCE, N_COLLECTIVES, ROUNDS = 3 };

typedef struct measurement {
    fsdp_context *ctx;
    float        *in, *out;
    size_t        count; /* ELEMENTS of a rank */
} measurement;

static fsdp_status call(const measurement *m, int which)
{
    switch (which) {
    case ALLGATHER:
        return fsdp_allgather(m->ctx, m->in, m->out, m->count, FSDP_F32);
    case REDUCE_SCATTER:
        return fsdp_reduce_scatter(m->ctx, m->in, m->out, m->count, FSDP_F32, FSDP_SUM);
    default:
        return fsdp_allreduce(m->ctx, m->in, m->out, m->count * (size_t)fsdp_size(m->ctx), FSDP_F32, FSDP_SUM);
    }
}

/* Seconds of the fastest round, as the slowest rank sees it; 0 where a call fails. The first round is not counted. */
static double seconds_of(const measurement *m, int which)
{
    double best = 0;

    for (int round = 0; round <= ROUNDS; round++) {
        (void)MPI_Barrier(MPI_COMM_WORLD);
        const double      begin  = MPI_Wtime();
        const fsdp_status status = call(m, which);
        double            took   = MPI_Wtime() - begin;

        (void)MPI_Allreduce(MPI_IN_PLACE, &took, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        if (status != FSDP_OK || hipStreamSynchronize(NULL) != hipSuccess) {
            return 0;
        }
        best = round == 1 || (round > 1 && took < best) ? took : best;
    }
    return best;
}

/* BYTES that each node sends, and receives. */
static double bytes_between_nodes(const measurement *m, int which)
{
    const double nodes = (double)fsdp_node_count(m->ctx);
    const double whole = (double)m->count * (double)fsdp_size(m->ctx) * sizeof *m->in;

    return (which == ALLREDUCE ? 2.0 : 1.0) * whole * (nodes - 1) / nodes;
}

static int measure(const measurement *m, double slower, double least)
{
    static const char *const NAMES[N_COLLECTIVES] = {"allgather", "reduce_scatter", "allreduce"};
    int                      failed               = 0;

    for (int which = 0; which < N_COLLECTIVES; which++) {
        const double took = seconds_of(m, which);
        const double rate = took > 0 ? bytes_between_nodes(m, which) / took : 0;

        failed |= rate < least * slower;
        if (fsdp_rank(m->ctx) == 0) {
            (void)printf("%-14s %-6s %8.2f MB/s, %.3f of the slower of link and copies\n", NAMES[which],
                         fsdp_last_algorithm(m->ctx), rate * 1e-6, rate / slower);
        }
    }
    return failed;
}

static int open_memory(measurement *m, size_t bytes)
{
    return fsdp_init(MPI_COMM_WORLD, NULL, &m->ctx) != FSDP_OK ||
           fsdp_buffer_alloc(m->ctx, FSDP_BUFFER_DEVICE, bytes, (void **)&m->in) != FSDP_OK ||
           fsdp_buffer_alloc(m->ctx, FSDP_BUFFER_DEVICE, bytes, (void **)&m->out) != FSDP_OK;
}

static int run(char **argv)
{
    const size_t bytes = (size_t)strtoull(argv[1], NULL, 10) << 20;
    const double link = strtod(argv[2], NULL), copies = strtod(argv[3], NULL);
    measurement  m = {0};

    if (hip_double_join_job(NULL) != 0 || open_memory(&m, bytes) != 0) {
        (void)fprintf(stderr, "measure_staging: %s\n", fsdp_last_error(NULL));
        return 1;
    }
    m.count          = bytes / sizeof *m.in / (size_t)fsdp_size(m.ctx);
    const int failed = measure(&m, link < copies ? link : copies, strtod(argv[4], NULL));
    (void)fsdp_buffer_free(m.ctx, m.in);
    (void)fsdp_buffer_free(m.ctx, m.out);
    return fsdp_finalize(m.ctx) != FSDP_OK || failed;
}

int main(int argc, char **argv)
{
    int level;

    if (argc != 5) {
        (void)fprintf(stderr, "usage: measure_staging MIB LINK_BYTES_PER_S COPY_BYTES_PER_S LEAST\n");
        return 2;
    }
    (void)MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    const int status = run(argv);
    (void)MPI_Finalize();
    return status;
}
