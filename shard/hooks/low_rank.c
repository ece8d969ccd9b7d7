#include "shard/hooks/low_rank.h"

#include <math.h>
#include <string.h>

enum {
    LANES = 16,
    STRIP = 2048 /* columns of which one row and a few vectors fit the first cache */
};

static size_t strip_at(size_t begin, size_t n)
{
    return n - begin < STRIP ? n - begin : STRIP;
}

/* Element i is summed in lane i mod 16, and the lanes as a balanced tree. */
static float dot(const float *restrict x, const float *restrict y, size_t n)
{
    float  lanes[LANES] = {0.0F};
    size_t i            = 0;

    for (; n - i >= LANES; i += LANES) {
        for (size_t l = 0; l < LANES; l++) {
            lanes[l] += x[i + l] * y[i + l];
        }
    }
    for (size_t l = 0; i < n; i++, l++) {
        lanes[l] += x[i] * y[i];
    }
    for (size_t half = LANES / 2; half > 0; half /= 2) {
        for (size_t l = 0; l < half; l++) {
            lanes[l] += lanes[l + half];
        }
    }
    return lanes[0];
}

/* The same in f64. */
static double long_dot(const float *x, const float *y, size_t n)
{
    double lanes[LANES] = {0.0};
    size_t i            = 0;

    for (; n - i >= LANES; i += LANES) {
        for (size_t l = 0; l < LANES; l++) {
            lanes[l] += (double)x[i + l] * (double)y[i + l];
        }
    }
    for (size_t l = 0; i < n; i++, l++) {
        lanes[l] += (double)x[i] * (double)y[i];
    }
    for (size_t half = LANES / 2; half > 0; half /= 2) {
        for (size_t l = 0; l < half; l++) {
            lanes[l] += lanes[l + half];
        }
    }
    return lanes[0];
}

/* y += a x */
static void add_multiple(float *restrict y, float a, const float *restrict x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        y[i] += a * x[i];
    }
}

void fsdpi_left_factor(fsdpi_matrix_shape shape, const float *matrix, const float *right, float *left)
{
    memset(left, 0, shape.rank * shape.rows * sizeof *left);
    for (size_t begin = 0; begin < shape.columns; begin += STRIP) {
        const size_t n = strip_at(begin, shape.columns);

        for (size_t i = 0; i < shape.rows; i++) {
            for (size_t k = 0; k < shape.rank; k++) {
                left[k * shape.rows + i] +=
                    dot(matrix + i * shape.columns + begin, right + k * shape.columns + begin, n);
            }
        }
    }
}

void fsdpi_right_factor(fsdpi_matrix_shape shape, const float *matrix, const float *left, float *right)
{
    memset(right, 0, shape.rank * shape.columns * sizeof *right);
    for (size_t begin = 0; begin < shape.columns; begin += STRIP) {
        const size_t n = strip_at(begin, shape.columns);

        for (size_t i = 0; i < shape.rows; i++) {
            for (size_t k = 0; k < shape.rank; k++) {
                add_multiple(right + k * shape.columns + begin, left[k * shape.rows + i],
                             matrix + i * shape.columns + begin, n);
            }
        }
    }
}

/* product = start + sign x left x transposed right, where `start` may be NULL for 0: strip by strip, while it is cached. */
static void add_factors(fsdpi_matrix_shape shape, const float *start, const float *left, const float *right, float sign,
                        float *product)
{
    for (size_t begin = 0; begin < shape.columns; begin += STRIP) {
        const size_t n = strip_at(begin, shape.columns);

        for (size_t i = 0; i < shape.rows; i++) {
            const size_t at = i * shape.columns + begin;

            if (start != NULL) {
                memcpy(product + at, start + at, n * sizeof *product);
            } else {
                memset(product + at, 0, n * sizeof *product);
            }
            for (size_t k = 0; k < shape.rank; k++) {
                add_multiple(product + at, sign * left[k * shape.rows + i], right + k * shape.columns + begin, n);
            }
        }
    }
}

void fsdpi_multiply_factors(fsdpi_matrix_shape shape, const float *left, const float *right, float *product)
{
    add_factors(shape, NULL, left, right, 1.0F, product);
}

void fsdpi_subtract_factors(fsdpi_matrix_shape shape, const float *matrix, const float *left, const float *right,
                            float *rest)
{
    add_factors(shape, matrix, left, right, -1.0F, rest);
}

/* In f64, since the norm of subnormal vectors has no inverse in f32. A norm that is NaN goes through. */
static void divide_by_norm(const float *x, size_t n, double norm, float *out)
{
    for (size_t i = 0; i < n; i++) {
        out[i] = (float)((double)x[i] / norm);
    }
}

void fsdpi_normalise(const float *x, size_t n, float *out)
{
    const double norm = sqrt(long_dot(x, x, n));

    if (norm != 0.0) {
        divide_by_norm(x, n, norm, out);
    }
}

void fsdpi_orthonormalise(float *vectors, size_t n, size_t rank)
{
    for (size_t k = 0; k < rank; k++) {
        float *vector = vectors + k * n;

        for (int pass = 0; pass < 2; pass++) {
            for (size_t j = 0; j < k; j++) {
                add_multiple(vector, -(float)long_dot(vector, vectors + j * n, n), vectors + j * n, n);
            }
        }
        fsdpi_normalise(vector, n, vector);
    }
}
