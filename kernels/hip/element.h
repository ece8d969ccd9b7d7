/**
 * @file
 * Element types on the device, and in which type each is computed with.
 */
#ifndef FSDPI_KERNELS_HIP_ELEMENT_H
#define FSDPI_KERNELS_HIP_ELEMENT_H

#include "kernels/hip/launch.h"

#if FSDPI_GPU_CODE
#define FSDPI_HALF_INLINE static inline __host__ __device__
#endif
#include "kernels/host/half.h"

namespace fsdpi
{

struct bf16 {
    uint16_t bits;
};

struct f16 {
    uint16_t bits;
};

/**
 * The bits of fsdpi_f32_to_f16(), in 32 bit operations only. Normal numbers are rounded by adding to their bits; adding
 * 0.5 to subnormal ones leaves them in the last bits of the sum.
 */
FSDPI_DEVICE uint16_t f32_to_f16(float value)
{
    const uint32_t bits = fsdpi_f32_bits(value), sign = bits >> 16 & 0x8000U, magnitude = bits & 0x7fffffffU;
    uint32_t       narrow;

    if (magnitude > 0x7f800000U) {
        narrow = 0x7e00U | (magnitude >> 13 & 0x03ffU);
    } else if (magnitude >= 0x47800000U) { /* 2^16 */
        narrow = 0x7c00U;
    } else if (magnitude >= 0x38800000U) { /* 2^-14 */
        narrow = (magnitude - 0x38000000U + 0x0fffU + (magnitude >> 13 & 1U)) >> 13;
    } else {
        narrow = fsdpi_f32_bits(fsdpi_f32_from_bits(magnitude) + 0.5F) - 0x3f000000U;
    }
    return static_cast<uint16_t>(sign | narrow);
}

/* Exact: to f32 from 16 bits, and else to the same type. */

FSDPI_DEVICE float widen(float x)
{
    return x;
}

FSDPI_DEVICE float widen(bf16 x)
{
    return fsdpi_bf16_to_f32(x.bits);
}

FSDPI_DEVICE float widen(f16 x)
{
    return fsdpi_f16_to_f32(x.bits);
}

template <class T> FSDPI_DEVICE T widen(T x)
{
    return x;
}

FSDPI_DEVICE double f64_from_bits(uint64_t bits)
{
    double value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

FSDPI_DEVICE double not_a_number()
{
    return f64_from_bits(0x7ff8000000000000U);
}

FSDPI_DEVICE bool is_nan(float x)
{
    return (fsdpi_f32_bits(x) & 0x7fffffffU) > 0x7f800000U;
}

FSDPI_DEVICE bool is_nan(double x)
{
    return (fsdpi_f64_bits(x) & 0x7fffffffffffffffU) > 0x7ff0000000000000U;
}

/* Of integers. */
template <class T> FSDPI_DEVICE bool is_nan(T)
{
    return false;
}

/** What a type is computed in, and how results come back: rounded once, to nearest even. */
template <class T> struct element {
    typedef T working;

    static FSDPI_DEVICE T narrow(T x)
    {
        return x;
    }
    static FSDPI_DEVICE T from_f64(double x)
    {
        return static_cast<T>(x);
    }
};

template <> struct element<bf16> {
    typedef float working;

    static FSDPI_DEVICE bf16 narrow(float x)
    {
        return bf16{fsdpi_f32_to_bf16(x)};
    }
    static FSDPI_DEVICE bf16 from_f64(double x)
    {
        return bf16{fsdpi_f64_to_bf16(x)};
    }
};

template <> struct element<f16> {
    typedef float working;

    static FSDPI_DEVICE f16 narrow(float x)
    {
        return f16{f32_to_f16(x)};
    }
    static FSDPI_DEVICE f16 from_f64(double x)
    {
        return f16{fsdpi_f64_to_f16(x)};
    }
};

/** Calls visit.on<T>() with the element type of a floating-point dtype; hipErrorInvalidValue for another. */
template <class Visitor> int with_float_type(fsdp_dtype dtype, const Visitor &visit)
{
    switch (dtype) {
    case FSDP_F64:
        return visit.template on<double>();
    case FSDP_F32:
        return visit.template on<float>();
    case FSDP_BF16:
        return visit.template on<bf16>();
    case FSDP_F16:
        return visit.template on<f16>();
    case FSDP_I64:
    case FSDP_I32:
    case FSDP_U8:
        break;
    }
    return static_cast<int>(hipErrorInvalidValue);
}

/** The same with any element type. */
template <class Visitor> int with_type(fsdp_dtype dtype, const Visitor &visit)
{
    switch (dtype) {
    case FSDP_I64:
        return visit.template on<int64_t>();
    case FSDP_I32:
        return visit.template on<int32_t>();
    case FSDP_U8:
        return visit.template on<uint8_t>();
    case FSDP_F64:
    case FSDP_F32:
    case FSDP_BF16:
    case FSDP_F16:
        break;
    }
    return with_float_type(dtype, visit);
}

} // namespace fsdpi

#endif
