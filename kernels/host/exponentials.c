#include <math.h>

#include "kernels/host/exponential.h"
#include "kernels/kernels.h"

enum { LANES = 8 };

static double sum_of(const double *lane)
{
    return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

double fsdpi_exponentials_f32(float *values, size_t count, float shift)
{
    double lane[LANES] = {0};
    size_t i           = 0;

    for (; i + LANES <= count; i += LANES) {
        for (size_t k = 0; k < LANES; k++) {
            values[i + k] = fsdpi_exponential_f32(values[i + k] - shift);
            lane[k] += (double)values[i + k];
        }
    }
    for (size_t k = 0; i + k < count; k++) {
        values[i + k] = fsdpi_exponential_f32(values[i + k] - shift);
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
