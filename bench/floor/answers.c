#include "bench/floor/answers.h"

#include <stdint.h>
#include <string.h>

#define POISON_BYTE 0xA5

/* Between -1 and 1, with 24 significant bits, of which the sum of two loses some. */
static float value(int rank, size_t index, unsigned pattern)
{
    uint32_t x = (uint32_t)index * 0x9E3779B1U + (uint32_t)rank * 0x85EBCA77U + pattern * 0xC2B2AE3DU;

    x = (x ^ (x >> 15)) * 0x2C1B3C6DU;
    x = (x ^ (x >> 12)) * 0x297A2D39U;
    return (float)((int32_t)(x >> 7) - (1 << 24)) * 0x1p-24F;
}

void bench_answers_fill(const bench_case *c, int rank, unsigned pattern, float *in, float *out)
{
    const size_t count = bench_in_count(c, rank);

    memset(out, POISON_BYTE, bench_out_count(c, rank) * sizeof *out);
    for (size_t i = 0; i < count; i++) {
        in[i] = value(rank, i, pattern);
    }
}

static float expected(const bench_case *c, int rank, unsigned pattern, size_t i)
{
    const size_t index = c->collective == BENCH_REDUCE_SCATTER ? (size_t)rank * c->count + i : i;

    if (c->collective == BENCH_ALLGATHER) {
        return value((int)(i / c->count), i % c->count, pattern);
    }
    return value(0, index, pattern) + value(1, index, pattern);
}

size_t bench_answers_wrong(const bench_case *c, int rank, unsigned pattern, const float *out)
{
    const size_t count = bench_out_count(c, rank);
    size_t       wrong = 0;

    for (size_t i = 0; i < count; i++) {
        const float wanted = expected(c, rank, pattern, i);

        wrong += memcmp(&wanted, &out[i], sizeof wanted) != 0;
    }
    return wrong;
}
