#include "bench/compare/check.h"

#include <stdint.h>
#include <string.h>

#include "bench/base/values.h"

#define CHUNK       1024 /* elements worked on at once */
#define MOST_ADDED  64   /* ranks that add something else than 0 to an element: 3 times as much is exact in bf16 */
#define POISON_BYTE 0xA5

static uint32_t hash(uint32_t rank, uint64_t index, uint32_t pattern)
{
    uint32_t x = (uint32_t)index * 0x9E3779B1U + (uint32_t)(index >> 32) * 0x27D4EB2FU;

    x += rank * 0x85EBCA77U + pattern * 0xC2B2AE3DU;
    x = (x ^ (x >> 15)) * 0x2C1B3C6DU;
    x = (x ^ (x >> 12)) * 0x297A2D39U;
    return x ^ (x >> 15);
}

static uint32_t any_rank_hash(uint64_t index, uint32_t pattern)
{
    return hash(0x10001U, index, pattern);
}

/* Elements first .. first+n of the input of `rank`. */
static void make_moved(uint32_t rank, uint32_t pattern, uint64_t first, size_t n, int32_t *values)
{
    for (size_t i = 0; i < n; i++) {
        values[i] = (int32_t)(hash(rank, first + i, pattern) & 255);
    }
}

static void make_ordered(uint32_t rank, uint32_t pattern, uint64_t first, size_t n, int32_t *values)
{
    for (size_t i = 0; i < n; i++) {
        values[i] = (int32_t)(hash(rank, first + i, pattern) & 127);
    }
}

static void make_added(uint32_t ranks, uint32_t rank, uint32_t pattern, uint64_t first, size_t n, int32_t *values)
{
    for (size_t i = 0; i < n; i++) {
        values[i] = (int32_t)(hash(rank, first + i, pattern) & 3);
    }
    for (size_t i = 0; i < n && ranks > MOST_ADDED; i++) {
        if ((rank + any_rank_hash(first + i, pattern) % ranks) % ranks >= MOST_ADDED) {
            values[i] = 0;
        }
    }
}

/* One rank multiplies by something else than 1. */
static void make_multiplied(uint32_t ranks, uint32_t rank, uint32_t pattern, uint64_t first, size_t n, int32_t *values)
{
    for (size_t i = 0; i < n; i++) {
        const uint32_t h = any_rank_hash(first + i, pattern);

        values[i] = (h >> 4) % ranks == rank ? 1 + (int32_t)(h & 3) : 1;
    }
}

static void make_values(const bench_case *c, int rank, unsigned pattern, uint64_t first, size_t n, int32_t *values)
{
    const uint32_t r = (uint32_t)rank, ranks = (uint32_t)c->ranks;

    if (!bench_collective_reduces(c->collective)) {
        make_moved(r, pattern, first, n, values);
    } else if (c->op == FSDP_MIN || c->op == FSDP_MAX) {
        make_ordered(r, pattern, first, n, values);
    } else if (c->op == FSDP_PROD) {
        make_multiplied(ranks, r, pattern, first, n, values);
    } else {
        make_added(ranks, r, pattern, first, n, values);
    }
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

void bench_fill(const bench_case *c, int rank, unsigned pattern, void *in, void *out)
{
    const size_t element = fsdp_dtype_size(c->dtype), count = bench_in_count(c, rank);
    char        *input = bench_input(c, rank, in, out);
    int32_t      values[CHUNK];

    if (!c->in_place) {
        memset(out, POISON_BYTE, bench_out_count(c, rank) * element);
    }
    for (size_t first = 0; first < count; first += CHUNK) {
        const size_t n = smaller(CHUNK, count - first);

        make_values(c, rank, pattern, first, n, values);
        bench_values_store(c->dtype, values, n, 1, input + first * element);
    }
}

static void combine(fsdp_redop op, const int32_t *more, size_t n, int32_t *values)
{
    for (size_t i = 0; i < n; i++) {
        switch (op) {
        case FSDP_MIN:
            values[i] = more[i] < values[i] ? more[i] : values[i];
            break;
        case FSDP_MAX:
            values[i] = more[i] > values[i] ? more[i] : values[i];
            break;
        case FSDP_PROD:
            values[i] *= more[i];
            break;
        case FSDP_SUM:
        case FSDP_AVG:
            values[i] += more[i];
            break;
        }
    }
}

static void reduce_values(const bench_case *c, unsigned pattern, uint64_t first, size_t n, int32_t *values)
{
    int32_t more[CHUNK];

    make_values(c, 0, pattern, first, n, values);
    for (int rank = 1; rank < c->ranks; rank++) {
        make_values(c, rank, pattern, first, n, more);
        combine(c->op, more, n, values);
    }
}

/* What elements first .. first+n of the output of `rank` must be; they may not cross from one rank's block to the next. */
static void expect(const bench_case *c, int rank, unsigned pattern, size_t first, size_t n, int32_t *values)
{
    const uint64_t slice = (uint64_t)rank * c->count;

    switch (c->collective) {
    case BENCH_ALLGATHER:
        make_values(c, (int)(first / c->count), pattern, first % c->count, n, values);
        break;
    case BENCH_ALLTOALL:
        make_values(c, (int)(first / c->count), pattern, slice + first % c->count, n, values);
        break;
    case BENCH_BROADCAST:
        make_values(c, 0, pattern, first, n, values);
        break;
    case BENCH_REDUCE_SCATTER:
        reduce_values(c, pattern, slice + first, n, values);
        break;
    case BENCH_ALLREDUCE:
    case BENCH_REDUCE:
        reduce_values(c, pattern, first, n, values);
        break;
    }
}

static size_t count_different(const char *found, const char *wanted, size_t n, size_t element)
{
    size_t wrong = 0;

    if (memcmp(found, wanted, n * element) == 0) {
        return 0;
    }
    for (size_t i = 0; i < n; i++) {
        wrong += memcmp(found + i * element, wanted + i * element, element) != 0;
    }
    return wrong;
}

size_t bench_count_wrong(const bench_case *c, int rank, unsigned pattern, const void *out)
{
    const size_t element = fsdp_dtype_size(c->dtype), count = bench_out_count(c, rank);
    const int    divisor = bench_collective_reduces(c->collective) && c->op == FSDP_AVG ? c->ranks : 1;
    int32_t      values[CHUNK];
    char         wanted[CHUNK * sizeof(double)];
    size_t       wrong = 0, n;

    for (size_t first = 0; first < count; first += n) {
        n = smaller(smaller(CHUNK, count - first), c->count - first % c->count);
        expect(c, rank, pattern, first, n, values);
        bench_values_store(c->dtype, values, n, divisor, wanted);
        wrong += count_different((const char *)out + first * element, wanted, n, element);
    }
    return wrong;
}

fsdp_status bench_check(const bench_case *c, const bench_world *world, const bench_buffers *buffers, unsigned pattern,
                        size_t *wrong)
{
    const size_t out_bytes = bench_out_count(c, world->rank) * fsdp_dtype_size(c->dtype);
    void        *host_out  = bench_buffers_host_result(buffers, c);
    uint64_t     mine;

    /* with one copy per node, a rank must not write its slot while another still looks at it, nor look too early */
    MPI_Barrier(world->comm);
    bench_fill(c, world->rank, pattern, buffers->host_in, host_out);
    bench_buffers_send(buffers, buffers->host_in, c->bytes);
    bench_buffers_send(buffers, host_out, c->bytes);
    MPI_Barrier(world->comm);
    BENCH_TRY(bench_run(c, world->ctx, buffers->in, bench_buffers_result(buffers, c)));
    bench_buffers_fetch(buffers, host_out, out_bytes);
    mine = bench_count_wrong(c, world->rank, pattern, host_out);
    MPI_Allreduce(MPI_IN_PLACE, &mine, 1, MPI_UINT64_T, MPI_SUM, world->comm);
    *wrong += mine;
    return FSDP_OK;
}
