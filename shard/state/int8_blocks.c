#include "shard/state/int8_blocks.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "kernels/host/half.h"

enum { LANES = 16 };

#define LARGEST_CODE 127.0F

/* Added to a number below 2^22 it leaves the nearest integer, ties to even, in the lowest bits of the sum. */
#define ROUNDER 0x1.8p23F

static size_t n_blocks(size_t n, size_t block)
{
    return n / block + (n % block != 0);
}

size_t fsdpi_int8_blocks_bytes(size_t n, size_t block)
{
    return n_blocks(n, block) * sizeof(float) + (n + 3) / 4 * 4;
}

static int32_t magnitude_of(float x)
{
    return (int32_t)(fsdpi_f32_bits(x) & 0x7fffffffu);
}

static int32_t larger(int32_t a, int32_t b)
{
    return a > b ? a : b;
}

/* Of bits without the sign: what is not finite comes after all that is. In lanes, which need not wait for each other. */
static int32_t largest_magnitude(const float *x, size_t n)
{
    int32_t lanes[LANES] = {0};
    size_t  i            = 0;

    for (; n - i >= LANES; i += LANES) {
        for (size_t l = 0; l < LANES; l++) {
            lanes[l] = larger(magnitude_of(x[i + l]), lanes[l]);
        }
    }
    for (; i < n; i++) {
        lanes[0] = larger(magnitude_of(x[i]), lanes[0]);
    }
    for (size_t l = 1; l < LANES; l++) {
        lanes[0] = larger(lanes[l], lanes[0]);
    }
    return lanes[0];
}

static float scale_of(const float *x, size_t n)
{
    const float largest = fsdpi_f32_from_bits((uint32_t)largest_magnitude(x, n));
    const float scale   = largest / LARGEST_CODE;

    if (!isfinite(largest)) {
        return NAN;
    }
    if (scale < FLT_MIN) { /* its inverse would overflow */
        return FLT_MIN;
    }
    return isfinite(LARGEST_CODE * scale) ? scale : nextafterf(scale, 0.0F);
}

static void encode(const float *restrict x, size_t n, float inverse, int8_t *restrict code)
{
    for (size_t i = 0; i < n; i++) {
        code[i] = (int8_t)(int32_t)(fsdpi_f32_bits(x[i] * inverse + ROUNDER) - fsdpi_f32_bits(ROUNDER));
    }
}

/* Where the codes of `n` values begin. */
static size_t codes_at(size_t n, size_t block)
{
    return n_blocks(n, block) * sizeof(float);
}

void fsdpi_int8_blocks_pack(const float *x, size_t n, size_t block, void *packed)
{
    float  *scales = packed;
    int8_t *codes  = (int8_t *)packed + codes_at(n, block);

    for (size_t begin = 0, b = 0; begin < n; begin += block, b++) {
        const size_t count = n - begin < block ? n - begin : block;

        scales[b] = scale_of(x + begin, count);
        if (isfinite(scales[b])) {
            encode(x + begin, count, 1.0F / scales[b], codes + begin);
        } else {
            memset(codes + begin, 0, count);
        }
    }
    memset(codes + n, 0, fsdpi_int8_blocks_bytes(n, block) - codes_at(n, block) - n);
}

static void decode(const int8_t *restrict code, size_t n, float scale, float *restrict x)
{
    for (size_t i = 0; i < n; i++) {
        x[i] = scale * (float)code[i];
    }
}

static void decode_and_add(const int8_t *restrict code, size_t n, float scale, float *restrict x)
{
    for (size_t i = 0; i < n; i++) {
        x[i] += scale * (float)code[i];
    }
}

void fsdpi_int8_blocks_unpack_run(const void *packed, size_t n, size_t block, size_t begin, size_t count, float *x)
{
    const float  *scales = (const float *)packed + begin / block;
    const int8_t *codes  = (const int8_t *)packed + codes_at(n, block) + begin;

    for (size_t i = 0, b = 0; i < count; i += block, b++) {
        decode(codes + i, count - i < block ? count - i : block, scales[b], x + i);
    }
}

void fsdpi_int8_blocks_unpack(const void *packed, size_t n, size_t block, float *x)
{
    fsdpi_int8_blocks_unpack_run(packed, n, block, 0, n, x);
}

/* `sign` is 1 or -1, which leaves the product exact. */
static void accumulate(const void *packed, size_t n, size_t block, float sign, float *x)
{
    const float  *scales = packed;
    const int8_t *codes  = (const int8_t *)packed + codes_at(n, block);

    for (size_t begin = 0, b = 0; begin < n; begin += block, b++) {
        decode_and_add(codes + begin, n - begin < block ? n - begin : block, sign * scales[b], x + begin);
    }
}

void fsdpi_int8_blocks_add(const void *packed, size_t n, size_t block, float *x)
{
    accumulate(packed, n, block, 1.0F, x);
}

void fsdpi_int8_blocks_subtract(const void *packed, size_t n, size_t block, float *x)
{
    accumulate(packed, n, block, -1.0F, x);
}

bool fsdpi_int8_blocks_finite(const void *packed, size_t n, size_t block)
{
    const float *scales = packed;

    for (size_t b = 0; b < n_blocks(n, block); b++) {
        if (!isfinite(scales[b])) {
            return false;
        }
    }
    return true;
}
