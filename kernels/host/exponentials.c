#include <math.h>
#include <stdint.h>
#include <string.h>

#include "kernels/kernels.h"

enum { LANES = 8 };

static double sum_of(const double *lane)
{
    return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

static float power_of_2(int32_t n)
{
    const int32_t bits = (n + 127) * (1 << 23);
    float         power;

    memcpy(&power, &bits, sizeof power);
    return power;
}

/*
 * exp(x) of x <= 0: x = n log 2 + r with |r| <= log(2) / 2, and Taylor's polynomial of exp(r), whose remainder is below 6e-9 of it.
 * log 2 is subtracted in two parts, of which the first has few enough bits for n times it to be exact. Without branches, so that
 * compilers make vectors of it.
 */
static float exponential(float x)
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
    p = (p + 1.0F) * power_of_2(n);
    return x >= least ? p : x < least ? 0.0F : x;
}

double fsdpi_exponentials_f32(float *values, size_t count, float shift)
{
    double lane[LANES] = {0};
    size_t i           = 0;

    for (; i + LANES <= count; i += LANES) {
        for (size_t k = 0; k < LANES; k++) {
            values[i + k] = exponential(values[i + k] - shift);
            lane[k] += (double)values[i + k];
        }
    }
    for (size_t k = 0; i + k < count; k++) {
        values[i + k] = exponential(values[i + k] - shift);
        lane[k] += (double)values[i + k];
    }
    return sum_of(lane);
}

double fsdpi_exponentials_f64(double *values, size_t count, double shift)
{
    double lane[LANES] = {0};

    for (size_t i = 0; i < count; i++) {
        values[i] = exp(values[i] - shift);
        lane[i % LANES] += values[i];
    }
    return sum_of(lane);
}
