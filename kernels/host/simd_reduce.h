/**
 * @file
 * The L-operand reduction: one pass in which accumulators stay in registers, each input is read once and the result is
 * written once, so L + 1 elements of memory traffic per result. Included once per instruction set.
 */
#ifndef FSDPI_KERNELS_HOST_SIMD_REDUCE_H
#define FSDPI_KERNELS_HOST_SIMD_REDUCE_H

#include "kernels/host/simd.h"
#include "kernels/host/walk.h"

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
SIMD_INLINE simd finish(simd sum, size_t divisor, fsdp_dtype dtype, fsdp_redop op)
{
    if (op != FSDP_AVG) {
        return sum;
    }
    if (dtype == FSDP_F64) {
        return (simd)((simd_f64)sum / simd_f64_splat((double)divisor));
    }
    return (simd)((simd_f32)sum / simd_f32_splat((float)divisor));
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

SIMD_INLINE simd_pair finish_pair(simd_pair sum, size_t divisor, fsdp_dtype dtype, fsdp_redop op)
{
    sum.first  = finish(sum.first, divisor, dtype, op);
    sum.second = finish(sum.second, divisor, dtype, op);
    return sum;
}

/** Eight vectors: as many as 16 registers take, and some cache lines at each visit. */
typedef struct simd_block {
    simd_pair a, b, c, d;
} simd_block;

/** From BYTE `at` of each array. */
SIMD_INLINE simd_block reduced_block(const char *const *in, size_t n_in, size_t at, fsdp_dtype dtype, fsdp_redop op,
                                     size_t divisor)
{
    size_t      step = 2 * simd_lanes(dtype) * fsdpi_element_bytes(dtype);
    const char *x    = in[0] + at;
    simd_block  sum  = {simd_load_pair(x, dtype), simd_load_pair(x + step, dtype), simd_load_pair(x + 2 * step, dtype),
                        simd_load_pair(x + 3 * step, dtype)};

    reduce_prefetch(x, 4 * step, dtype);
    for (size_t r = 1; r < n_in; r++) {
        x = in[r] + at;
        reduce_prefetch(x, 4 * step, dtype);
        sum.a = combine_pair(sum.a, simd_load_pair(x, dtype), dtype, op);
        sum.b = combine_pair(sum.b, simd_load_pair(x + step, dtype), dtype, op);
        sum.c = combine_pair(sum.c, simd_load_pair(x + 2 * step, dtype), dtype, op);
        sum.d = combine_pair(sum.d, simd_load_pair(x + 3 * step, dtype), dtype, op);
    }
    sum.a = finish_pair(sum.a, divisor, dtype, op);
    sum.b = finish_pair(sum.b, divisor, dtype, op);
    sum.c = finish_pair(sum.c, divisor, dtype, op);
    sum.d = finish_pair(sum.d, divisor, dtype, op);
    return sum;
}

SIMD_INLINE void store_block(char *out, simd_block sum, fsdp_dtype dtype)
{
    size_t step = 2 * simd_lanes(dtype) * fsdpi_element_bytes(dtype);

    simd_store_pair(out, sum.a, dtype);
    simd_store_pair(out + step, sum.b, dtype);
    simd_store_pair(out + 2 * step, sum.c, dtype);
    simd_store_pair(out + 3 * step, sum.d, dtype);
}

SIMD_INLINE void reduce_vector(char *out, const char *const *in, size_t n_in, size_t at, fsdp_dtype dtype,
                               fsdp_redop op, size_t divisor)
{
    simd sum = simd_load(in[0] + at, dtype);

    for (size_t r = 1; r < n_in; r++) {
        sum = combine(sum, simd_load(in[r] + at, dtype), dtype, op);
    }
    simd_store(out + at, finish(sum, divisor, dtype, op), dtype);
}

/** Asks for the lines of two inputs and an output that are reached 2 KiB later. */
SIMD_INLINE void ask_ahead(const char *a, const char *b, const char *out)
{
    enum { AHEAD = 2048 };

    __builtin_prefetch((const void *)((uintptr_t)a + AHEAD));
    __builtin_prefetch((const void *)((uintptr_t)b + AHEAD));
    __builtin_prefetch((const void *)((uintptr_t)out + AHEAD), 1);
}

/**
 * Whole vectors of two inputs, one after the other: on AMD's processors faster than blocks where one of the arrays is in no cache;
 * others have not been tried. With constants, as in reduce_range_past_caches(). How far it got.
 */
SIMD_INLINE size_t reduce_two(char *out, const char *const *in, size_t first, size_t end, fsdp_dtype dtype,
                              fsdp_redop op, size_t divisor)
{
    enum { LONG_BYTES = 32 << 10, LINE = 64 };
    const char *two[] = {in[0], in[1]};
    size_t      bytes = fsdpi_element_bytes(dtype);
    size_t      lanes = simd_lanes(dtype);
    bool        asks  = (end - first) * bytes >= LONG_BYTES;
    size_t      i     = first;

    for (; end - i >= lanes; i += lanes) {
        size_t at = i * bytes;

        if (asks && (SIMD_BYTES == LINE || at % LINE < SIMD_BYTES)) {
            ask_ahead(two[0] + at, two[1] + at, out + at);
        }
        reduce_vector(out, two, 2, at, dtype, op, divisor);
    }
    return i;
}

/** The last `count` elements, fewer than a vector has. */
SIMD_INLINE void reduce_tail(char *out, const char *const *in, size_t n_in, size_t at, size_t count, fsdp_dtype dtype,
                             fsdp_redop op, size_t divisor)
{
    simd sum = simd_load_tail(in[0] + at, count, dtype);

    for (size_t r = 1; r < n_in; r++) {
        sum = combine(sum, simd_load_tail(in[r] + at, count, dtype), dtype, op);
    }
    simd_store_tail(out + at, finish(sum, divisor, dtype, op), count, dtype);
}

/** Copies elements `first` to `end` of the first output to the others. */
SIMD_APART void spread(char *const *out, size_t n_out, size_t first, size_t end, size_t bytes)
{
    for (size_t o = 1; o < n_out && end > first; o++) {
        memcpy(out[o] + first * bytes, out[0] + first * bytes, (end - first) * bytes);
    }
}

/** Elements `first` to `end`, without. Each block is stored into all outputs from the registers. */
SIMD_INLINE void reduce_range(char *const *out, size_t n_out, const char *const *in, size_t n_in, size_t first,
                              size_t end, fsdp_dtype dtype, fsdp_redop op, size_t divisor)
{
    size_t lanes = simd_lanes(dtype);
    size_t bytes = fsdpi_element_bytes(dtype);
    size_t i     = first, rest;

    if (n_out == 1 && n_in == 2 && dtype != FSDP_BF16 && dtype != FSDP_F16 && fsdpi_asks_ahead()) {
        i = reduce_two(out[0], in, i, end, dtype, op, divisor);
    }
    for (; end - i >= 8 * lanes; i += 8 * lanes) {
        simd_block sum = reduced_block(in, n_in, i * bytes, dtype, op, divisor);

        for (size_t o = 0; o < n_out; o++) {
            store_block(out[o] + i * bytes, sum, dtype);
        }
    }
    rest = i;
    for (; end - i >= lanes; i += lanes) {
        reduce_vector(out[0], in, n_in, i * bytes, dtype, op, divisor);
    }
    if (i < end) {
        reduce_tail(out[0], in, n_in, i * bytes, end - i, dtype, op, divisor);
    }
    if (n_out > 1) {
        spread(out, n_out, rest, end, bytes);
    }
}

/** Whether all outputs reach a vector's alignment together, behind a whole number of elements of `bytes` BYTES. */
SIMD_APART bool align_together(char *const *out, size_t n_out, size_t bytes)
{
    if ((uintptr_t)out[0] % bytes != 0) {
        return false;
    }
    for (size_t o = 1; o < n_out; o++) {
        if (((uintptr_t)out[o] - (uintptr_t)out[0]) % SIMD_BYTES != 0) {
            return false;
        }
    }
    return true;
}

/** A pair of vectors at a time: reading and writing past the caches mix best in small portions. */
SIMD_INLINE void reduce_past_caches(char *const *out, size_t n_out, size_t n_past, const char *const *in, size_t n_in,
                                    size_t at, fsdp_dtype dtype, fsdp_redop op, size_t divisor)
{
    size_t    step = 2 * simd_lanes(dtype) * fsdpi_element_bytes(dtype);
    simd_pair sum  = simd_load_pair(in[0] + at, dtype);

    reduce_prefetch(in[0] + at, step, dtype);
    for (size_t r = 1; r < n_in; r++) {
        reduce_prefetch(in[r] + at, step, dtype);
        sum = combine_pair(sum, simd_load_pair(in[r] + at, dtype), dtype, op);
    }
    sum = finish_pair(sum, divisor, dtype, op);
    for (size_t o = 0; o < n_past; o++) {
        simd_store_pair_past_caches(out[o] + at, sum, dtype);
    }
    for (size_t o = n_past; o < n_out; o++) {
        simd_store_pair(out[o] + at, sum, dtype);
    }
}

/** The whole stretches of pages from element `first` to at most `end`; how far it got. */
SIMD_INLINE size_t reduce_pages(char *const *out, size_t n_out, size_t n_past, const char *const *in, size_t n_in,
                                size_t first, size_t end, fsdp_dtype dtype, fsdp_redop op, size_t divisor)
{
    size_t bytes = fsdpi_element_bytes(dtype);
    size_t pair  = 2 * simd_lanes(dtype);
    size_t walk  = fsdpi_pages_at_once() * SIMD_PAGE_BYTES;
    size_t visit = pair * bytes > SIMD_VISIT_BYTES ? pair * bytes : SIMD_VISIT_BYTES;
    size_t i     = first;

    for (; end - i >= walk / bytes; i += walk / bytes) {
        for (size_t at = i * bytes; at < i * bytes + SIMD_PAGE_BYTES; at += visit) {
            for (size_t page = at; page < at + walk; page += SIMD_PAGE_BYTES) {
                for (size_t x = page; x < page + visit; x += pair * bytes) {
                    reduce_past_caches(out, n_out, n_past, in, n_in, x, dtype, op, divisor);
                }
            }
        }
    }
    return i;
}

/** Elements `first` to at most `end`, where the first `n_past` outputs are aligned; how far it got. */
SIMD_INLINE size_t reduce_range_past_caches(char *const *out, size_t n_out, size_t n_past, const char *const *in,
                                            size_t n_in, size_t first, size_t end, fsdp_dtype dtype, fsdp_redop op,
                                            size_t divisor)
{
    size_t bytes = fsdpi_element_bytes(dtype);
    size_t pair  = 2 * simd_lanes(dtype);
    size_t i     = first;

    /* With constants where two ranks meet: the fewer instructions, the more reads are under way. */
    if (n_past == 1 && n_in == 2 && n_out == 1) {
        i = reduce_pages(out, 1, 1, in, 2, i, end, dtype, op, divisor);
    } else if (n_past == 2 && n_in == 2 && n_out == 2) {
        i = reduce_pages(out, 2, 2, in, 2, i, end, dtype, op, divisor);
    } else if (n_past == 1 && n_in == 2 && n_out == 2) {
        i = reduce_pages(out, 2, 1, in, 2, i, end, dtype, op, divisor);
    } else {
        i = reduce_pages(out, n_out, n_past, in, n_in, i, end, dtype, op, divisor);
    }
    for (; end - i >= pair; i += pair) {
        reduce_past_caches(out, n_out, n_past, in, n_in, i * bytes, dtype, op, divisor);
    }
    return i;
}

/**
 * Each type and operation has one copy of this, and with it one of reduce_range(), which serves both ends around what
 * goes past the caches: the loops here are most of what there is to compile.
 */
SIMD_INLINE void reduce_op(char *const *out, size_t n_out, size_t n_past, const char *const *in, size_t n_in,
                           size_t first, size_t end, fsdp_dtype dtype, fsdp_redop op, size_t divisor)
{
    size_t bytes = fsdpi_element_bytes(dtype);
    size_t stop  = end; /* of what reduce_range() takes next */

    if (n_past > 0 && align_together(out, n_past, bytes)) {
        size_t skew = (SIMD_BYTES - (uintptr_t)(out[0] + first * bytes) % SIMD_BYTES) % SIMD_BYTES / bytes;

        stop = skew < end - first ? first + skew : end;
    }
    for (;;) {
        reduce_range(out, n_out, in, n_in, first, stop, dtype, op, divisor);
        if (stop == end) {
            break;
        }
        first = reduce_range_past_caches(out, n_out, n_past, in, n_in, stop, end, dtype, op, divisor);
        stop  = end;
    }
    if (n_past > 0) {
        simd_end_past_caches();
    }
}

/** The average of integers is a sum that average_integers() divides. */
SIMD_INLINE void reduce_any(char *const *out, size_t n_out, size_t n_past, const char *const *in, size_t n_in,
                            size_t first, size_t end, fsdp_dtype dtype, fsdp_redop op, size_t divisor)
{
    bool integers = dtype == FSDP_I64 || dtype == FSDP_I32 || dtype == FSDP_U8;

    if (op == FSDP_AVG && !integers) {
        reduce_op(out, n_out, n_past, in, n_in, first, end, dtype, FSDP_AVG, divisor);
    } else if (op == FSDP_SUM || op == FSDP_AVG) {
        reduce_op(out, n_out, n_past, in, n_in, first, end, dtype, FSDP_SUM, divisor);
    } else if (op == FSDP_MIN) {
        reduce_op(out, n_out, n_past, in, n_in, first, end, dtype, FSDP_MIN, divisor);
    } else if (op == FSDP_MAX) {
        reduce_op(out, n_out, n_past, in, n_in, first, end, dtype, FSDP_MAX, divisor);
    } else {
        reduce_op(out, n_out, n_past, in, n_in, first, end, dtype, FSDP_PROD, divisor);
    }
}

SIMD_APART void reduce_f64(char *const *out, size_t n_out, size_t n_past, const char *const *in, size_t n_in,
                           size_t first, size_t end, fsdp_redop op, size_t divisor)
{
    reduce_any(out, n_out, n_past, in, n_in, first, end, FSDP_F64, op, divisor);
}

SIMD_APART void reduce_f32(char *const *out, size_t n_out, size_t n_past, const char *const *in, size_t n_in,
                           size_t first, size_t end, fsdp_redop op, size_t divisor)
{
    reduce_any(out, n_out, n_past, in, n_in, first, end, FSDP_F32, op, divisor);
}

SIMD_APART void reduce_bf16(char *const *out, size_t n_out, size_t n_past, const char *const *in, size_t n_in,
                            size_t first, size_t end, fsdp_redop op, size_t divisor)
{
    reduce_any(out, n_out, n_past, in, n_in, first, end, FSDP_BF16, op, divisor);
}

SIMD_APART void reduce_f16(char *const *out, size_t n_out, size_t n_past, const char *const *in, size_t n_in,
                           size_t first, size_t end, fsdp_redop op, size_t divisor)
{
    reduce_any(out, n_out, n_past, in, n_in, first, end, FSDP_F16, op, divisor);
}

SIMD_APART void reduce_i64(char *const *out, size_t n_out, size_t n_past, const char *const *in, size_t n_in,
                           size_t first, size_t end, fsdp_redop op, size_t divisor)
{
    reduce_any(out, n_out, n_past, in, n_in, first, end, FSDP_I64, op, divisor);
}

SIMD_APART void reduce_i32(char *const *out, size_t n_out, size_t n_past, const char *const *in, size_t n_in,
                           size_t first, size_t end, fsdp_redop op, size_t divisor)
{
    reduce_any(out, n_out, n_past, in, n_in, first, end, FSDP_I32, op, divisor);
}

SIMD_APART void reduce_u8(char *const *out, size_t n_out, size_t n_past, const char *const *in, size_t n_in,
                          size_t first, size_t end, fsdp_redop op, size_t divisor)
{
    reduce_any(out, n_out, n_past, in, n_in, first, end, FSDP_U8, op, divisor);
}

/** Elements `first` to `end`, without. */
static void reduce_elements(char *const *out, size_t n_out, size_t n_past, const char *const *in, size_t n_in,
                            size_t first, size_t end, fsdp_dtype dtype, fsdp_redop op, size_t divisor)
{
    switch (dtype) {
    case FSDP_F64:
        reduce_f64(out, n_out, n_past, in, n_in, first, end, op, divisor);
        break;
    case FSDP_F32:
        reduce_f32(out, n_out, n_past, in, n_in, first, end, op, divisor);
        break;
    case FSDP_BF16:
        reduce_bf16(out, n_out, n_past, in, n_in, first, end, op, divisor);
        break;
    case FSDP_F16:
        reduce_f16(out, n_out, n_past, in, n_in, first, end, op, divisor);
        break;
    case FSDP_I64:
        reduce_i64(out, n_out, n_past, in, n_in, first, end, op, divisor);
        break;
    case FSDP_I32:
        reduce_i32(out, n_out, n_past, in, n_in, first, end, op, divisor);
        break;
    case FSDP_U8:
        reduce_u8(out, n_out, n_past, in, n_in, first, end, op, divisor);
        break;
    }
}

static void divide_integers(char *x, size_t divisor, size_t count, fsdp_dtype dtype)
{
    if (dtype == FSDP_I64) {
        for (size_t i = 0; i < count; i++) {
            ((fsdpi_any_i64 *)(void *)x)[i] /= (int64_t)divisor;
        }
    } else if (dtype == FSDP_I32) {
        for (size_t i = 0; i < count; i++) {
            ((fsdpi_any_i32 *)(void *)x)[i] = (int32_t)(((fsdpi_any_i32 *)(void *)x)[i] / (int64_t)divisor);
        }
    } else {
        for (size_t i = 0; i < count; i++) {
            ((uint8_t *)x)[i] = (uint8_t)((uint8_t)x[i] / divisor);
        }
    }
}

/** Sums and then divides piece by piece, small enough that a piece is still in the first cache when it is divided. */
static void average_integers(char *const *out, size_t n_out, const char *const *in, size_t n_in, size_t count,
                             fsdp_dtype dtype, size_t divisor)
{
    enum { PIECE = 1024 };
    size_t bytes = fsdpi_element_bytes(dtype);

    for (size_t i = 0; i < count; i += PIECE) {
        size_t n = count - i < PIECE ? count - i : PIECE;

        reduce_elements(out, 1, 0, in, n_in, i, i + n, dtype, FSDP_SUM, divisor);
        divide_integers(out[0] + i * bytes, divisor, n, dtype);
        spread(out, n_out, i, i + n, bytes);
    }
}

static void reduce_into(void *const *out, size_t n_out, const void *const *in, size_t n_in, size_t count,
                        fsdp_dtype dtype, fsdp_redop op, size_t divisor, size_t n_past)
{
    bool               integers = dtype == FSDP_I64 || dtype == FSDP_I32 || dtype == FSDP_U8;
    char *const       *to       = (char *const *)out;
    const char *const *from     = (const char *const *)in;

    if (op == FSDP_AVG && integers) {
        average_integers(to, n_out, from, n_in, count, dtype, divisor);
    } else {
        reduce_elements(to, n_out, n_past, from, n_in, 0, count, dtype, op, divisor);
    }
}

static void reduce(void *out, const void *const *in, size_t n_in, size_t count, fsdp_dtype dtype, fsdp_redop op,
                   size_t divisor)
{
    reduce_into(&out, 1, in, n_in, count, dtype, op, divisor, 0);
}

#endif
