/**
 * @file
 * The L-operand reduction: one pass in which accumulators stay in registers, each input is read once and the result is
 * written once, so L + 1 elements of memory traffic per result. Included once per instruction set.
 */
#ifndef FSDPI_KERNELS_HOST_SIMD_REDUCE_H
#define FSDPI_KERNELS_HOST_SIMD_REDUCE_H

#include "kernels/host/simd.h"

SIMD_INLINE simd combine(simd sum, simd x, fsdp_dtype dtype, fsdp_redop op)
{
    switch (op) {
    case FSDP_SUM:
    case FSDP_AVG:
        return simd_add(sum, x, dtype);
    case FSDP_MIN:
        return simd_min(sum, x, dtype);
    case FSDP_MAX:
        return simd_max(sum, x, dtype);
    case FSDP_PROD:
        return simd_multiply(sum, x, dtype);
    }
    return sum;
}

/** The division of an average; that of integers has its own pass, see average_integers(). */
SIMD_INLINE simd finish(simd sum, size_t n_in, fsdp_dtype dtype, fsdp_redop op)
{
    if (op != FSDP_AVG) {
        return sum;
    }
    if (dtype == FSDP_F64) {
        return (simd)((simd_f64)sum / simd_f64_splat((double)n_in));
    }
    return (simd)((simd_f32)sum / simd_f32_splat((float)n_in));
}

/**
 * Asks for the lines that a later block reads. Only for the types of 16 bits: converting them fills the window in which
 * the processor looks ahead by itself, and without this half of the memory's bandwidth is lost. Others only lose by it.
 */
SIMD_INLINE void reduce_prefetch(const char *x, size_t bytes, fsdp_dtype dtype)
{
    enum { AHEAD = 1024, LINE = 64 };

    if (dtype == FSDP_BF16 || dtype == FSDP_F16) {
        for (size_t i = 0; i < bytes; i += LINE) {
            __builtin_prefetch((const void *)((uintptr_t)x + AHEAD + i));
        }
    }
}

SIMD_INLINE simd_pair combine_pair(simd_pair sum, simd_pair x, fsdp_dtype dtype, fsdp_redop op)
{
    sum.first  = combine(sum.first, x.first, dtype, op);
    sum.second = combine(sum.second, x.second, dtype, op);
    return sum;
}

SIMD_INLINE simd_pair finish_pair(simd_pair sum, size_t n_in, fsdp_dtype dtype, fsdp_redop op)
{
    sum.first  = finish(sum.first, n_in, dtype, op);
    sum.second = finish(sum.second, n_in, dtype, op);
    return sum;
}

/** Eight vectors from BYTE `at` of each array: as many as 16 registers take, and some cache lines at each visit. */
SIMD_INLINE void reduce_block(char *out, const char *const *in, size_t n_in, size_t at, fsdp_dtype dtype, fsdp_redop op)
{
    size_t      step = 2 * simd_lanes(dtype) * fsdpi_element_bytes(dtype);
    const char *x    = in[0] + at;
    simd_pair   sum0 = simd_load_pair(x, dtype);
    simd_pair   sum1 = simd_load_pair(x + step, dtype);
    simd_pair   sum2 = simd_load_pair(x + 2 * step, dtype);
    simd_pair   sum3 = simd_load_pair(x + 3 * step, dtype);

    reduce_prefetch(x, 4 * step, dtype);
    for (size_t r = 1; r < n_in; r++) {
        x = in[r] + at;
        reduce_prefetch(x, 4 * step, dtype);
        sum0 = combine_pair(sum0, simd_load_pair(x, dtype), dtype, op);
        sum1 = combine_pair(sum1, simd_load_pair(x + step, dtype), dtype, op);
        sum2 = combine_pair(sum2, simd_load_pair(x + 2 * step, dtype), dtype, op);
        sum3 = combine_pair(sum3, simd_load_pair(x + 3 * step, dtype), dtype, op);
    }
    simd_store_pair(out + at, finish_pair(sum0, n_in, dtype, op), dtype);
    simd_store_pair(out + at + step, finish_pair(sum1, n_in, dtype, op), dtype);
    simd_store_pair(out + at + 2 * step, finish_pair(sum2, n_in, dtype, op), dtype);
    simd_store_pair(out + at + 3 * step, finish_pair(sum3, n_in, dtype, op), dtype);
}

SIMD_INLINE void reduce_vector(char *out, const char *const *in, size_t n_in, size_t at, fsdp_dtype dtype,
                               fsdp_redop op)
{
    simd sum = simd_load(in[0] + at, dtype);

    for (size_t r = 1; r < n_in; r++) {
        sum = combine(sum, simd_load(in[r] + at, dtype), dtype, op);
    }
    simd_store(out + at, finish(sum, n_in, dtype, op), dtype);
}

/** The last `count` elements, fewer than a vector has. */
SIMD_INLINE void reduce_tail(char *out, const char *const *in, size_t n_in, size_t at, size_t count, fsdp_dtype dtype,
                             fsdp_redop op)
{
    simd sum = simd_load_tail(in[0] + at, count, dtype);

    for (size_t r = 1; r < n_in; r++) {
        sum = combine(sum, simd_load_tail(in[r] + at, count, dtype), dtype, op);
    }
    simd_store_tail(out + at, finish(sum, n_in, dtype, op), count, dtype);
}

/** Elements `first` to `end`, without. */
SIMD_INLINE void reduce_range(char *out, const char *const *in, size_t n_in, size_t first, size_t end, fsdp_dtype dtype,
                              fsdp_redop op)
{
    size_t lanes = simd_lanes(dtype);
    size_t bytes = fsdpi_element_bytes(dtype);
    size_t i     = first;

    for (; end - i >= 8 * lanes; i += 8 * lanes) {
        reduce_block(out, in, n_in, i * bytes, dtype, op);
    }
    for (; end - i >= lanes; i += lanes) {
        reduce_vector(out, in, n_in, i * bytes, dtype, op);
    }
    if (i < end) {
        reduce_tail(out, in, n_in, i * bytes, end - i, dtype, op);
    }
}

static void divide_integers(char *x, size_t divisor, size_t count, fsdp_dtype dtype)
{
    if (dtype == FSDP_I64) {
        for (size_t i = 0; i < count; i++) {
            ((int64_t *)(void *)x)[i] /= (int64_t)divisor;
        }
    } else if (dtype == FSDP_I32) {
        for (size_t i = 0; i < count; i++) {
            ((int32_t *)(void *)x)[i] = (int32_t)(((int32_t *)(void *)x)[i] / (int64_t)divisor);
        }
    } else {
        for (size_t i = 0; i < count; i++) {
            ((uint8_t *)x)[i] = (uint8_t)((uint8_t)x[i] / divisor);
        }
    }
}

/** Sums and then divides piece by piece, small enough that a piece is still in the first cache when it is divided. */
SIMD_INLINE void average_integers(char *out, const char *const *in, size_t n_in, size_t count, fsdp_dtype dtype)
{
    enum { PIECE = 1024 };
    size_t bytes = fsdpi_element_bytes(dtype);

    for (size_t i = 0; i < count; i += PIECE) {
        size_t end = count - i < PIECE ? count : i + PIECE;

        reduce_range(out, in, n_in, i, end, dtype, FSDP_SUM);
        divide_integers(out + i * bytes, n_in, end - i, dtype);
    }
}

SIMD_INLINE void reduce_any(char *out, const char *const *in, size_t n_in, size_t count, fsdp_dtype dtype,
                            fsdp_redop op)
{
    bool integers = dtype == FSDP_I64 || dtype == FSDP_I32 || dtype == FSDP_U8;

    switch (op) {
    case FSDP_SUM:
        reduce_range(out, in, n_in, 0, count, dtype, FSDP_SUM);
        break;
    case FSDP_AVG:
        if (integers) {
            average_integers(out, in, n_in, count, dtype);
        } else {
            reduce_range(out, in, n_in, 0, count, dtype, FSDP_AVG);
        }
        break;
    case FSDP_MIN:
        reduce_range(out, in, n_in, 0, count, dtype, FSDP_MIN);
        break;
    case FSDP_MAX:
        reduce_range(out, in, n_in, 0, count, dtype, FSDP_MAX);
        break;
    case FSDP_PROD:
        reduce_range(out, in, n_in, 0, count, dtype, FSDP_PROD);
        break;
    }
}

static void reduce_f64(char *out, const char *const *in, size_t n_in, size_t count, fsdp_redop op)
{
    reduce_any(out, in, n_in, count, FSDP_F64, op);
}

static void reduce_f32(char *out, const char *const *in, size_t n_in, size_t count, fsdp_redop op)
{
    reduce_any(out, in, n_in, count, FSDP_F32, op);
}

static void reduce_bf16(char *out, const char *const *in, size_t n_in, size_t count, fsdp_redop op)
{
    reduce_any(out, in, n_in, count, FSDP_BF16, op);
}

static void reduce_f16(char *out, const char *const *in, size_t n_in, size_t count, fsdp_redop op)
{
    reduce_any(out, in, n_in, count, FSDP_F16, op);
}

static void reduce_i64(char *out, const char *const *in, size_t n_in, size_t count, fsdp_redop op)
{
    reduce_any(out, in, n_in, count, FSDP_I64, op);
}

static void reduce_i32(char *out, const char *const *in, size_t n_in, size_t count, fsdp_redop op)
{
    reduce_any(out, in, n_in, count, FSDP_I32, op);
}

static void reduce_u8(char *out, const char *const *in, size_t n_in, size_t count, fsdp_redop op)
{
    reduce_any(out, in, n_in, count, FSDP_U8, op);
}

static void reduce(void *out, const void *const *in, size_t n_in, size_t count, fsdp_dtype dtype, fsdp_redop op)
{
    const char *const *bytes = (const char *const *)in;

    switch (dtype) {
    case FSDP_F64:
        reduce_f64(out, bytes, n_in, count, op);
        break;
    case FSDP_F32:
        reduce_f32(out, bytes, n_in, count, op);
        break;
    case FSDP_BF16:
        reduce_bf16(out, bytes, n_in, count, op);
        break;
    case FSDP_F16:
        reduce_f16(out, bytes, n_in, count, op);
        break;
    case FSDP_I64:
        reduce_i64(out, bytes, n_in, count, op);
        break;
    case FSDP_I32:
        reduce_i32(out, bytes, n_in, count, op);
        break;
    case FSDP_U8:
        reduce_u8(out, bytes, n_in, count, op);
        break;
    }
}

#endif
