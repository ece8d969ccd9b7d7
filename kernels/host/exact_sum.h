/**
 * @file
 * How squares are added to an fsdpi_exact_sum: one at a time, in integers; or many at a time, by floating-point additions that
 * are exact. On the host and on a GPU.
 */
#ifndef FSDPI_KERNELS_HOST_EXACT_SUM_H
#define FSDPI_KERNELS_HOST_EXACT_SUM_H

#include <stdint.h>

#include "kernels/host/half.h"
#include "kernels/kernels.h"

/** Each addition adds less than 2^32 to a digit, which has 63 bits: after this many and a carry there is room for more. */
enum { FSDPI_SUM_PIECE = 1 << 28 };

/** Adds value 2^(position - 298). */
FSDPI_HALF_INLINE void fsdpi_exact_sum_add(fsdpi_exact_sum *sum, int64_t value, unsigned position)
{
    const unsigned digit = position / 32, shift = position % 32;
    const uint64_t low = (uint64_t)value << shift;

    sum->digits[digit] += (int64_t)(low & 0xffffffffU);
    sum->digits[digit + 1] += (int64_t)(low >> 32);
    sum->digits[digit + 2] += value >> 1 >> (63 - shift);
}

/** Brings every digit but the last to 0 .. 2^32 - 1, so that equal sums are equal digits. */
FSDPI_HALF_INLINE void fsdpi_exact_sum_carry(fsdpi_exact_sum *sum)
{
    for (int k = 0; k + 1 < FSDPI_SUM_DIGITS; k++) {
        sum->digits[k + 1] += sum->digits[k] >> 32;
        sum->digits[k] &= 0xffffffff;
    }
}

/** Adds the square of an f32 by its bits: m^2 2^(2 e) for m 2^e; or one more infinity or NaN. */
FSDPI_HALF_INLINE void fsdpi_exact_sum_add_square(fsdpi_exact_sum *sum, uint32_t bits)
{
    const uint32_t magnitude = bits & 0x7fffffffU, exponent = magnitude >> 23;
    const uint64_t mantissa = (magnitude & 0x007fffffU) | (exponent > 0 ? 0x00800000U : 0);

    if (magnitude >= 0x7f800000U) {
        sum->infinities += magnitude == 0x7f800000U;
        sum->nans += magnitude > 0x7f800000U;
    } else {
        fsdpi_exact_sum_add(sum, (int64_t)(mantissa * mantissa), exponent > 0 ? 2 * (exponent - 1) : 0);
    }
}

/*
 * ---- bins ----
 *
 * A bin with the unit u = 2^k is an f64 that begins at 1.5 2^52 u and stays from 2^52 u to 2^53 u, where its last bit is worth u:
 * what is added to it is rounded to a multiple of u. The difference, which f64 holds exactly and which is u / 2 at most, is added to the
 * next bin, and so on. The unit of the last bin divides whatever comes to it, so that nothing is left. What a bin has received, in
 * units, is then the difference of its bits, read as an integer, from those that it began with.
 *
 * With 2^a additions at most, a bin stays in its range if each addend is below 2^(51 - a) u: so the unit of the next one is smaller
 * by 2^(52 - a). Now let 2^d be the largest power of 2 that is not above any magnitude but zeros, and 2^(e + 1) above all. Of numbers
 * with p bits after the leading one, all squares are multiples of 2^(2 d - 2 p), the unit of the last bin, and below 2^(2 e + 2). So n
 * bins are enough if 2 e + 2 <= (51 - a) + (n - 1) (52 - a) + (2 d - 2 p).
 */

/** Of a type of floating point that f32 holds: bits after the leading one. */
FSDPI_HALF_INLINE int fsdpi_fraction_bits(fsdp_dtype dtype)
{
    return dtype == FSDP_BF16 ? 7 : dtype == FSDP_F16 ? 10 : 23;
}

/** How many bins do for such numbers if e - d is `spread`, and there are 2^log_added additions to a bin. */
FSDPI_HALF_INLINE int fsdpi_bins_needed(int spread, int fraction_bits, int log_added)
{
    const int bits = 2 * spread + 2 * fraction_bits + 2 - (51 - log_added);

    return bits <= 0 ? 1 : 1 + (bits + 51 - log_added) / (52 - log_added);
}

/** The position of the last bin's unit, from the bits of an f32 between 2^d and 2^(d + 1), which is not subnormal. */
FSDPI_HALF_INLINE unsigned fsdpi_last_bin(uint32_t least, int fraction_bits)
{
    return 2 * ((least >> 23) - 1) + 2 * (23 - (unsigned)fraction_bits);
}

/** The bits of what a bin with its unit at `position` begins with. */
FSDPI_HALF_INLINE uint64_t fsdpi_bin_start(unsigned position)
{
    return (uint64_t)(position + 1023 - 298 + 52) << 52 | (uint64_t)1 << 51;
}

#endif
