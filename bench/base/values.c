#include "bench/base/values.h"

#include <string.h>

static uint32_t bits_of(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* Without the lowest `n` bits, rounded to nearest, ties to even. */
static uint32_t round_bits(uint32_t bits, int n)
{
    const uint32_t odd = (bits >> n) & 1;

    return (bits + (1U << (n - 1)) - 1 + odd) >> n;
}

static uint16_t bf16_of(float value)
{
    return (uint16_t)round_bits(bits_of(value), 16);
}

/* 0 and what is at least 2^-14 only, the least normal number: no average of up to 16384 ranks is less. */
static uint16_t f16_of(float value)
{
    const uint32_t bits = bits_of(value);

    return (uint16_t)(bits ? round_bits(bits - (112U << 23), 13) : 0);
}

static void store_floats(const int32_t *values, size_t n, int divisor, float *elements)
{
    for (size_t i = 0; i < n; i++) {
        elements[i] = (float)values[i] / (float)divisor;
    }
}

static void store_halves(fsdp_dtype dtype, const int32_t *values, size_t n, int divisor, uint16_t *elements)
{
    for (size_t i = 0; i < n; i++) {
        const float value = (float)values[i] / (float)divisor;

        elements[i] = dtype == FSDP_BF16 ? bf16_of(value) : f16_of(value);
    }
}

static void store_doubles(const int32_t *values, size_t n, int divisor, double *elements)
{
    for (size_t i = 0; i < n; i++) {
        elements[i] = (double)values[i] / divisor;
    }
}

static void store_i64(const int32_t *values, size_t n, int divisor, int64_t *elements)
{
    for (size_t i = 0; i < n; i++) {
        elements[i] = values[i] / divisor;
    }
}

static void store_i32(const int32_t *values, size_t n, int divisor, int32_t *elements)
{
    for (size_t i = 0; i < n; i++) {
        elements[i] = values[i] / divisor;
    }
}

static void store_u8(const int32_t *values, size_t n, int divisor, uint8_t *elements)
{
    for (size_t i = 0; i < n; i++) {
        elements[i] = (uint8_t)(values[i] / divisor);
    }
}

void bench_values_store(fsdp_dtype dtype, const int32_t *values, size_t n, int divisor, void *elements)
{
    switch (dtype) {
    case FSDP_F64:
        store_doubles(values, n, divisor, elements);
        break;
    case FSDP_F32:
        store_floats(values, n, divisor, elements);
        break;
    case FSDP_BF16:
    case FSDP_F16:
        store_halves(dtype, values, n, divisor, elements);
        break;
    case FSDP_I64:
        store_i64(values, n, divisor, elements);
        break;
    case FSDP_I32:
        store_i32(values, n, divisor, elements);
        break;
    case FSDP_U8:
        store_u8(values, n, divisor, elements);
        break;
    }
}
