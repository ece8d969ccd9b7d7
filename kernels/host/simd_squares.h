/**
 * @file
 * The exact sum of squares: blocks of elements go through bins (exact_sum.h), whose units depend on the block's largest and
 * smallest magnitude. Both are found while the block before it is added, so that the one waits for memory while the other
 * computes. A block of too many octaves is read several times, for some of them each. Included once per instruction set.
 */
#ifndef FSDPI_KERNELS_HOST_SIMD_SQUARES_H
#define FSDPI_KERNELS_HOST_SIMD_SQUARES_H

#include "kernels/host/exact_sum.h"
#include "kernels/host/simd.h"

enum {
    SQUARES_LANES     = 16, /* elements that are added together, each to bins of its own */
    SQUARES_LOG_ADDED = 6,
    SQUARES_BLOCK     = SQUARES_LANES << SQUARES_LOG_ADDED,
    SQUARES_VECTORS   = 8 * SQUARES_LANES / SIMD_BYTES, /* of f64: 2, 4 or 8 */
    SQUARES_AHEAD     = 8192,                           /* BYTES */
    MOST_BINS         = 4,
    OCTAVES           = 64 /* that so many bins take, of any type */
};

typedef int64_t simd_i64 __attribute__((vector_size(SIMD_BYTES)));
typedef int32_t simd_i32 __attribute__((vector_size(SIMD_BYTES)));

/* ---- the range of magnitudes ------------------------------------------------------------------------------------- */

/** Bits of magnitudes: in each lane the largest, and the smallest but zero, less 1. */
typedef struct squares_range {
    simd most, least;
} squares_range;

SIMD_INLINE squares_range range_of_none(void)
{
    return (squares_range){.most = {0}, .least = ~(simd){0}};
}

SIMD_INLINE void range_widen(squares_range *range, simd x)
{
    const simd magnitude = x & ~(simd)simd_f32_splat(-0.0F);

    range->most  = simd_i32_max(range->most, magnitude);
    range->least = simd_u32_min(range->least, (simd)((simd_u32)magnitude - 1));
}

SIMD_INLINE squares_range range_of(const char *x, size_t count, fsdp_dtype dtype)
{
    const size_t  step  = simd_lanes(FSDP_F32) * fsdpi_element_bytes(dtype);
    squares_range range = range_of_none();

    for (size_t i = 0; i < count; i += simd_lanes(FSDP_F32), x += step) {
        range_widen(&range, simd_load(x, dtype));
    }
    return range;
}

static uint32_t range_most(const squares_range *range)
{
    uint32_t lanes[SIMD_BYTES / 4], most = 0;

    memcpy(lanes, &range->most, sizeof lanes);
    for (size_t i = 0; i < SIMD_BYTES / 4; i++) {
        most = lanes[i] > most ? lanes[i] : most;
    }
    return most;
}

/** 0 where there are only zeros. */
static uint32_t range_least(const squares_range *range)
{
    uint32_t lanes[SIMD_BYTES / 4], least = UINT32_MAX;

    memcpy(lanes, &range->least, sizeof lanes);
    for (size_t i = 0; i < SIMD_BYTES / 4; i++) {
        least = lanes[i] < least ? lanes[i] : least;
    }
    return least + 1;
}

/* ---- one by one -------------------------------------------------------------------------------------------------- */

/** Those with a magnitude less than `behind`, in bits. */
SIMD_INLINE void add_lanes(fsdpi_exact_sum *sum, simd x, size_t count, uint32_t behind)
{
    uint32_t lanes[SIMD_BYTES / 4];

    memcpy(lanes, &x, sizeof lanes);
    for (size_t i = 0; i < count; i++) {
        if ((lanes[i] & 0x7fffffffU) < behind) {
            fsdpi_exact_sum_add_square(sum, lanes[i]);
        }
    }
}

/** What no bins are made for: few elements, subnormals, and blocks in which one is not finite. */
SIMD_INLINE void add_one_by_one(fsdpi_exact_sum *sum, const char *x, size_t count, uint32_t behind, fsdp_dtype dtype)
{
    const size_t lanes = simd_lanes(FSDP_F32), bytes = fsdpi_element_bytes(dtype);
    size_t       i = 0;

    for (; count - i >= lanes; i += lanes) {
        add_lanes(sum, simd_load(x + i * bytes, dtype), lanes, behind);
    }
    if (i < count) {
        add_lanes(sum, simd_load_tail(x + i * bytes, count - i, dtype), count - i, behind);
    }
    fsdpi_exact_sum_carry(sum);
}

/* ---- in bins ----------------------------------------------------------------------------------------------------- */

typedef struct squares_bins {
    simd_f64 at[MOST_BINS][SQUARES_VECTORS];
} squares_bins;

/** The position of the unit of bin `b` of `n`. */
SIMD_INLINE unsigned bin_position(int b, int n, unsigned last)
{
    return last + (unsigned)(n - 1 - b) * (52 - SQUARES_LOG_ADDED);
}

SIMD_INLINE void bins_begin(squares_bins *bins, int n, unsigned last)
{
    for (int b = 0; b < n; b++) {
        const uint64_t bits = fsdpi_bin_start(bin_position(b, n, last));
        double         start;

        memcpy(&start, &bits, sizeof start);
        for (int v = 0; v < SQUARES_VECTORS; v++) {
            bins->at[b][v] = simd_f64_splat(start);
        }
    }
}

/** Adds the squares to the bins of a vector. `over`: by how much what the bins so far have got is more than the square. */
SIMD_INLINE void bins_add(squares_bins *bins, int n, int v, simd_f64 x)
{
    const simd_f64 first = bins->at[0][v];

    bins->at[0][v] = simd_f64_add_product(first, x, x);
    if (n > 1) {
        simd_f64 over = simd_f64_subtract_product(bins->at[0][v] - first, x, x);

        if (n > 2) {
            const simd_f64 second = bins->at[1][v];

            bins->at[1][v] = second - over;
            over += bins->at[1][v] - second;
        }
        if (n > 3) {
            const simd_f64 third = bins->at[2][v];

            bins->at[2][v] = third - over;
            over += bins->at[2][v] - third;
        }
        bins->at[n - 1][v] -= over;
    }
}

/** Adds as many elements as two vectors of f64 have, of bins number `v` and the next. */
SIMD_INLINE void bins_add_pair(squares_bins *bins, int n, int v, const char *x, fsdp_dtype dtype)
{
    if (dtype == FSDP_F32) {
        bins_add(bins, n, v, simd_f64_from_f32(x));
        bins_add(bins, n, v + 1, simd_f64_from_f32(x + SIMD_BYTES / 2));
    } else {
        const simd_f32 both = (simd_f32)simd_load(x, dtype);

        bins_add(bins, n, v, simd_f64_low(both));
        bins_add(bins, n, v + 1, simd_f64_high(both));
    }
}

/** BYTES from a pair of vectors of f64 to the next. */
SIMD_INLINE size_t pair_bytes(fsdp_dtype dtype)
{
    return simd_lanes(FSDP_F32) * fsdpi_element_bytes(dtype);
}

/** Adds SQUARES_LANES elements, and widens `range` by as many of what comes next. */
SIMD_INLINE void bins_add_all(squares_bins *bins, int n, const char *x, const char *next, squares_range *range,
                              fsdp_dtype dtype)
{
    __builtin_prefetch((const void *)((uintptr_t)next + SQUARES_AHEAD)); /* beyond the end too, where it does nothing */
    bins_add_pair(bins, n, 0, x, dtype);
    range_widen(range, simd_load(next, dtype));
    if (SQUARES_VECTORS > 2) {
        bins_add_pair(bins, n, 2, x + pair_bytes(dtype), dtype);
        range_widen(range, simd_load(next + pair_bytes(dtype), dtype));
    }
    if (SQUARES_VECTORS > 4) {
        bins_add_pair(bins, n, 4, x + 2 * pair_bytes(dtype), dtype);
        range_widen(range, simd_load(next + 2 * pair_bytes(dtype), dtype));
        bins_add_pair(bins, n, 6, x + 3 * pair_bytes(dtype), dtype);
        range_widen(range, simd_load(next + 3 * pair_bytes(dtype), dtype));
    }
}

/** What all lanes of one bin have received. */
SIMD_INLINE int64_t bin_total(const simd_f64 *vectors, uint64_t start)
{
    simd_i64 sum = {0};
    int64_t  lanes[SIMD_BYTES / 8], total = 0;

    for (int v = 0; v < SQUARES_VECTORS; v++) {
        sum += (simd_i64)vectors[v] - (int64_t)start;
    }
    memcpy(lanes, &sum, sizeof lanes);
    for (size_t i = 0; i < SIMD_BYTES / 8; i++) {
        total += lanes[i];
    }
    return total;
}

SIMD_INLINE void bins_end(const squares_bins *bins, int n, unsigned last, fsdpi_exact_sum *sum)
{
    for (int b = 0; b < n; b++) {
        const unsigned position = bin_position(b, n, last);

        fsdpi_exact_sum_add(sum, bin_total(bins->at[b], fsdpi_bin_start(position)), position);
    }
}

SIMD_INLINE squares_range add_in_bins(fsdpi_exact_sum *sum, int n, unsigned last, const char *x, size_t count,
                                      const char *next, fsdp_dtype dtype)
{
    const size_t  step  = SQUARES_LANES * fsdpi_element_bytes(dtype);
    squares_range range = range_of_none();
    squares_bins  bins;

    bins_begin(&bins, n, last);
    for (size_t i = 0; i < count; i += SQUARES_LANES, x += step, next += step) {
        bins_add_all(&bins, n, x, next, &range, dtype);
    }
    bins_end(&bins, n, last, sum);
    return range;
}

/* ---- in bins, some octaves at a time ----------------------------------------------------------------------------- */

/** Adds those with a magnitude from `least` to less than `behind`, in bits: OCTAVES at most. */
SIMD_INLINE void add_octaves(fsdpi_exact_sum *sum, const char *x, size_t count, uint32_t least, uint32_t behind,
                             fsdp_dtype dtype)
{
    const unsigned last = fsdpi_last_bin(least, fsdpi_fraction_bits(dtype));
    squares_bins   bins;

    bins_begin(&bins, MOST_BINS, last);
    for (size_t i = 0; i < count; i += simd_lanes(FSDP_F32), x += pair_bytes(dtype)) {
        const simd     value     = simd_load(x, dtype);
        const simd_i32 magnitude = (simd_i32)(value & ~(simd)simd_f32_splat(-0.0F));
        const simd     kept      = value & (simd)((magnitude >= (int32_t)least) & (magnitude < (int32_t)behind));

        bins_add(&bins, MOST_BINS, 0, simd_f64_low((simd_f32)kept));
        bins_add(&bins, MOST_BINS, 1, simd_f64_high((simd_f32)kept));
    }
    bins_end(&bins, MOST_BINS, last, sum);
}

/** Adds a block of any magnitudes, which are less than 2^(`top` - 126). */
SIMD_INLINE void add_wide_block(fsdpi_exact_sum *sum, uint32_t top, const char *x, size_t count, fsdp_dtype dtype)
{
    const size_t most = simd_lanes(FSDP_F32) << SQUARES_LOG_ADDED;
    uint32_t     least;

    for (uint32_t behind = top + 1; behind > 1; behind = least) {
        least = behind > OCTAVES ? behind - OCTAVES : 1;
        for (size_t i = 0; i < count; i += most) {
            add_octaves(sum, x + i * fsdpi_element_bytes(dtype), count - i < most ? count - i : most, least << 23,
                        behind << 23, dtype);
        }
    }
    add_one_by_one(sum, x, count, 0x00800000U, dtype);
}

/* ---- block by block ---------------------------------------------------------------------------------------------- */

/** Adds a block, whose range is `of`, and returns the range of the next one. */
SIMD_INLINE squares_range add_block(fsdpi_exact_sum *sum, squares_range of, const char *x, size_t count,
                                    const char *next, fsdp_dtype dtype)
{
    const uint32_t most = range_most(&of), least = range_least(&of);
    const int      fraction = fsdpi_fraction_bits(dtype), spread = (int)(most >> 23) - (int)(least >> 23);
    const int      n    = fsdpi_bins_needed(spread, fraction, SQUARES_LOG_ADDED);
    const unsigned last = fsdpi_last_bin(least, fraction);

    if (most >= 0x7f800000U || least < 0x00800000U || n > MOST_BINS) {
        if (most >= 0x7f800000U) {
            add_one_by_one(sum, x, count, UINT32_MAX, dtype);
        } else if (most > 0) {
            add_wide_block(sum, most >> 23, x, count, dtype);
        }
        return range_of(next, count, dtype);
    }
    switch (n) {
    case 1:
        return add_in_bins(sum, 1, last, x, count, next, dtype);
    case 2:
        return add_in_bins(sum, 2, last, x, count, next, dtype);
    case 3:
        return add_in_bins(sum, 3, last, x, count, next, dtype);
    default:
        return add_in_bins(sum, 4, last, x, count, next, dtype);
    }
}

/** How many of `count` elements the next block has. */
SIMD_INLINE size_t block_of(size_t count)
{
    return count < SQUARES_BLOCK ? count / SQUARES_LANES * SQUARES_LANES : SQUARES_BLOCK;
}

SIMD_INLINE void add_squares(fsdpi_exact_sum *sum, const char *x, size_t count, fsdp_dtype dtype)
{
    const size_t  bytes = fsdpi_element_bytes(dtype);
    size_t        n     = block_of(count);
    squares_range range = range_of(x, n, dtype);

    while (n > 0) {
        const char  *after  = x + n * bytes;
        const size_t n_next = block_of(count - n);

        range = add_block(sum, range, x, n, n_next == n ? after : x, dtype);
        if (n_next < n) {
            range = range_of(after, n_next, dtype);
        }
        x = after;
        count -= n;
        n = n_next;
    }
    add_one_by_one(sum, x, count, UINT32_MAX, dtype);
}

static void sum_squares(fsdpi_exact_sum *sum, const void *x, size_t count, fsdp_dtype dtype)
{
    for (const char *piece = x; count > 0;) {
        const size_t n = count < FSDPI_SUM_PIECE ? count : FSDPI_SUM_PIECE;

        if (dtype == FSDP_F32) {
            add_squares(sum, piece, n, FSDP_F32);
        } else if (dtype == FSDP_BF16) {
            add_squares(sum, piece, n, FSDP_BF16);
        } else {
            add_squares(sum, piece, n, FSDP_F16);
        }
        piece += n * fsdpi_element_bytes(dtype);
        count -= n;
    }
}

#endif
