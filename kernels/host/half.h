/**
 * @file
 * bf16 and f16, held as their bits in an uint16_t: one value at a time, in integer arithmetic.
 *
 * Narrowing rounds once, to nearest even, and overflows to infinity. A NaN keeps its sign and the leading bits of its
 * payload and becomes quiet, which is also what x86 does.
 */
#ifndef FSDPI_KERNELS_HOST_HALF_H
#define FSDPI_KERNELS_HOST_HALF_H

#include <stdint.h>
#include <string.h>

/* Whoever includes this for a GPU as well says so here. */
#ifndef FSDPI_HALF_INLINE
#define FSDPI_HALF_INLINE static inline
#endif

FSDPI_HALF_INLINE uint32_t fsdpi_f32_bits(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

FSDPI_HALF_INLINE float fsdpi_f32_from_bits(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

FSDPI_HALF_INLINE uint64_t fsdpi_f64_bits(double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

FSDPI_HALF_INLINE float fsdpi_bf16_to_f32(uint16_t bf16)
{
    uint32_t bits = (uint32_t)bf16 << 16;

    if ((bits & 0x7fffffffu) > 0x7f800000u) {
        bits |= 0x00400000u;
    }
    return fsdpi_f32_from_bits(bits);
}

FSDPI_HALF_INLINE float fsdpi_f16_to_f32(uint16_t f16)
{
    uint32_t sign      = (uint32_t)(f16 & 0x8000u) << 16;
    uint32_t magnitude = f16 & 0x7fffu;

    if (magnitude > 0x7c00u) {
        return fsdpi_f32_from_bits(sign | 0x7fc00000u | (magnitude & 0x03ffu) << 13);
    }
    if (magnitude == 0x7c00u) {
        return fsdpi_f32_from_bits(sign | 0x7f800000u);
    }
    if (magnitude < 0x0400u) { /* a multiple of 2^-24, exact in f32 */
        return fsdpi_f32_from_bits(sign | fsdpi_f32_bits((float)magnitude * 0x1p-24f));
    }
    return fsdpi_f32_from_bits(sign | ((magnitude << 13) + (112u << 23))); /* the biases differ by 127 - 15 */
}

/** Narrows to a 16 bit format with `mantissa_bits` stored bits of mantissa and the exponent bias `bias`. */
FSDPI_HALF_INLINE uint16_t fsdpi_f64_to_16_bits(double value, int mantissa_bits, int bias)
{
    uint64_t bits        = fsdpi_f64_bits(value);
    uint64_t sign        = bits >> 63 << 15;
    uint64_t magnitude   = bits & 0x7fffffffffffffffu;
    uint64_t infinity    = (2 * (uint64_t)bias + 1) << mantissa_bits;
    uint64_t significand = (magnitude & 0x000fffffffffffffu) | 0x0010000000000000u;
    int      exponent    = (int)(magnitude >> 52) - 1023;
    int      shift       = 52 - mantissa_bits;
    uint64_t quiet_bit   = (uint64_t)1 << (mantissa_bits - 1);
    uint64_t kept, dropped, half;

    if (magnitude > 0x7ff0000000000000u) {
        return (uint16_t)(sign | infinity | quiet_bit | (significand >> shift & (2 * quiet_bit - 1)));
    }
    if (exponent > bias) {
        return (uint16_t)(sign | infinity);
    }
    if (exponent < 1 - bias) { /* subnormal there: the last bit stays at a fixed place */
        shift += 1 - bias - exponent;
        exponent = -bias;
    }
    if (shift > 53) { /* less than half of the smallest subnormal; f64's own subnormals end here too */
        return (uint16_t)sign;
    }
    kept    = significand >> shift;
    dropped = significand & (((uint64_t)1 << shift) - 1);
    half    = (uint64_t)1 << (shift - 1);
    kept += dropped > half || (dropped == half && (kept & 1) == 1);
    /* A normal number's leading 1 adds one to the exponent field; a carry out of the mantissa does so once more, up to
     * and including infinity. */
    if (exponent > -bias) {
        kept += (uint64_t)(exponent + bias - 1) << mantissa_bits;
    }
    return (uint16_t)(sign | kept);
}

FSDPI_HALF_INLINE uint16_t fsdpi_f64_to_bf16(double value)
{
    return fsdpi_f64_to_16_bits(value, 7, 127);
}

FSDPI_HALF_INLINE uint16_t fsdpi_f64_to_f16(double value)
{
    return fsdpi_f64_to_16_bits(value, 10, 15);
}

FSDPI_HALF_INLINE uint16_t fsdpi_f32_to_f16(float value)
{
    return fsdpi_f64_to_f16((double)value);
}

FSDPI_HALF_INLINE uint16_t fsdpi_f32_to_bf16(float value)
{
    uint32_t bits = fsdpi_f32_bits(value);

    if ((bits & 0x7fffffffu) > 0x7f800000u) {
        return (uint16_t)(bits >> 16 | 0x0040u);
    }
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

#endif
