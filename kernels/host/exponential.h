/**
 * @file
 * The exponential function in f32, for arguments that are not above 0: the same bits on the host and on a GPU, if neither contracts to fused
 * multiply-add.
 */
#ifndef FSDPI_KERNELS_HOST_EXPONENTIAL_H
#define FSDPI_KERNELS_HOST_EXPONENTIAL_H

#include "kernels/host/half.h"

/**
 * x = n log 2 + r with |r| <= log(2) / 2, and Taylor's polynomial of exp(r), whose remainder is below 6e-9 of it. log 2 is subtracted
 * in two parts, of which the first has few enough bits for n times it to be exact. Below -87 it is 0. Without branches, so that
 * compilers make vectors of it.
 */
FSDPI_HALF_INLINE float fsdpi_exponential_f32(float x)
{
    const float   least = -87.0F, clamped = x > least ? x : least; /* NaN becomes `least`, and comes back at the end */
    const int32_t n = (int32_t)(clamped * 1.44269504F - 0.5F);
    const float   r = (clamped - (float)n * 0.693359375F) + (float)n * 2.12194440e-4F;
    float         p = 1.0F / 5040.0F;

    p = p * r + 1.0F / 720.0F;
    p = p * r + 1.0F / 120.0F;
    p = p * r + 1.0F / 24.0F;
    p = p * r + 1.0F / 6.0F;
    p = p * r + 0.5F;
    p = (p * r) * r + r;
    p = (p + 1.0F) * fsdpi_f32_from_bits((uint32_t)(n + 127) << 23);
    return x >= least ? p : x < least ? 0.0F : x;
}

#endif
