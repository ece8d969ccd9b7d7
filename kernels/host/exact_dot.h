/**
 * @file
 * How products are added to an fsdpi_exact_dot: in integers, by the bits of both factors. On the host and on a GPU.
 */
#ifndef FSDPI_KERNELS_HOST_EXACT_DOT_H
#define FSDPI_KERNELS_HOST_EXACT_DOT_H

#include <stdint.h>

#include "kernels/host/half.h"
#include "kernels/kernels.h"

/** Digit `k` of an fsdpi_exact_sum is worth as much as digit k + FSDPI_DOT_OF_SUM of an fsdpi_exact_dot. */
enum { FSDPI_DOT_EXPONENT = -2154, FSDPI_DOT_OF_SUM = 58 };

/** The bits of an f32 in f64: of subnormal ones too, whatever the processor was told. */
FSDPI_HALF_INLINE uint64_t fsdpi_f64_bits_of_f32(uint32_t bits)
{
    const uint32_t magnitude = bits & 0x7fffffffU;
    const uint64_t sign      = (uint64_t)(bits >> 31) << 63;

    if (magnitude >= 0x7f800000U) {
        return sign | (uint64_t)0x7ff << 52 | (uint64_t)(magnitude & 0x007fffffU) << 29;
    }
    if (magnitude < 0x00800000U) {
        return sign | fsdpi_f64_bits((double)(int32_t)magnitude * 0x1p-149);
    }
    return sign | (((uint64_t)magnitude << 29) + ((uint64_t)(1023 - 127) << 52));
}

/** The upper 64 bits of a product. */
FSDPI_HALF_INLINE uint64_t fsdpi_multiply_high(uint64_t a, uint64_t b)
{
    const uint64_t a_low = a & 0xffffffffU, a_high = a >> 32, b_low = b & 0xffffffffU, b_high = b >> 32;
    const uint64_t middle = a_high * b_low + (a_low * b_low >> 32), other = a_low * b_high + (middle & 0xffffffffU);

    return a_high * b_high + (middle >> 32) + (other >> 32);
}

/** Adds, or with `negative` subtracts, `value` times 2^shift, in units of digit `at`; shift is below 32. */
FSDPI_HALF_INLINE void fsdpi_exact_dot_add_word(fsdpi_exact_dot *dot, uint64_t value, unsigned at, unsigned shift,
                                                int64_t negative)
{
    const uint64_t low = value << shift, high = value >> 1 >> (63 - shift);

    dot->digits[at] += ((int64_t)(low & 0xffffffffU) ^ negative) - negative;
    dot->digits[at + 1] += ((int64_t)(low >> 32) ^ negative) - negative;
    dot->digits[at + 2] += ((int64_t)high ^ negative) - negative;
}

/** Brings every digit but the last to 0 .. 2^32 - 1, so that equal sums are equal digits. */
FSDPI_HALF_INLINE void fsdpi_exact_dot_carry(fsdpi_exact_dot *dot)
{
    for (int k = 0; k + 1 < FSDPI_DOT_DIGITS; k++) {
        dot->digits[k + 1] += dot->digits[k] >> 32;
        dot->digits[k] &= 0xffffffff;
    }
}

/** A product one of whose factors is not finite. */
FSDPI_HALF_INLINE void fsdpi_exact_dot_add_special(fsdpi_exact_dot *dot, uint64_t a, uint64_t b)
{
    const uint64_t infinity = (uint64_t)0x7ff << 52, a_size = a << 1 >> 1, b_size = b << 1 >> 1;

    if (a_size > infinity || b_size > infinity || a_size == 0 || b_size == 0) {
        dot->nans++;
    } else if ((a ^ b) >> 63 != 0) {
        dot->minus_infinities++;
    } else {
        dot->infinities++;
    }
}

/** Adds the product of two f64 by their bits: m n 2^(d + e - 2150) for m 2^(d - 1075) and n 2^(e - 1075). */
FSDPI_HALF_INLINE void fsdpi_exact_dot_add_product(fsdpi_exact_dot *dot, uint64_t a, uint64_t b)
{
    const uint64_t fraction = ((uint64_t)1 << 52) - 1;
    const unsigned d = (unsigned)(a >> 52) & 0x7ffU, e = (unsigned)(b >> 52) & 0x7ffU;
    const uint64_t m = (a & fraction) | (uint64_t)(d > 0) << 52, n = (b & fraction) | (uint64_t)(e > 0) << 52;

    if (d == 0x7ffU || e == 0x7ffU) {
        fsdpi_exact_dot_add_special(dot, a, b);
        return;
    }
    const unsigned position = d + (d == 0) + e + (e == 0) - 2150 - (unsigned)FSDPI_DOT_EXPONENT;
    const int64_t  negative = -(int64_t)((a ^ b) >> 63);

    fsdpi_exact_dot_add_word(dot, m * n, position / 32, position % 32, negative);
    fsdpi_exact_dot_add_word(dot, fsdpi_multiply_high(m, n), position / 32 + 2, position % 32, negative);
}

#endif
