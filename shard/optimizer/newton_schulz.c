#include "shard/optimizer/newton_schulz.h"

#include <math.h>
#include <stdbool.h>

#include "fsdp/dtype.h"

enum { ITERATIONS = 5, ALIGNMENT = 64 };
_Static_assert(ITERATIONS % 2 == 1, "the last iteration writes to the scratch");

static size_t aligned(size_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static size_t shorter(size_t rows, size_t columns)
{
    return rows < columns ? rows : columns;
}

/* Of X; and of A and B each. */
static size_t matrix_bytes(size_t rows, size_t columns, fsdp_dtype dtype)
{
    return aligned(rows * columns * fsdp_dtype_size(dtype));
}

size_t fsdpi_newton_schulz_bytes(size_t rows, size_t columns, fsdp_dtype dtype)
{
    const size_t side = shorter(rows, columns);

    return FSDPI_PRODUCT_WORK_BYTES + matrix_bytes(rows, columns, dtype) + 2 * matrix_bytes(side, side, dtype);
}

static double element(const void *x, size_t i, fsdp_dtype dtype)
{
    return dtype == FSDP_F64 ? ((const double *)x)[i] : (double)((const float *)x)[i];
}

/*
 * The sum is of squares of numbers scaled by a power of two, which is exact, and each term joins it with one rounding: so the compiler
 * has no choice.
 */
static double frobenius(const fsdpi_kernels *kernels, const void *x, size_t count, fsdp_dtype dtype)
{
    const double largest = kernels->absolute_maximum(x, count, dtype);
    double       sum     = 0.0;

    if (!isfinite(largest) || largest == 0.0) {
        return largest;
    }
    const int exponent = ilogb(largest);
    for (size_t i = 0; i < count; i++) {
        const double scaled = scalbn(element(x, i, dtype), -exponent);

        sum = fma(scaled, scaled, sum);
    }
    return scalbn(sqrt(sum), exponent);
}

static void normalise(const fsdpi_kernels *kernels, void *x, size_t count, fsdp_dtype dtype, double eps)
{
    const double norm = frobenius(kernels, x, count, dtype) + eps;

    for (size_t i = 0; i < count; i++) {
        const double normal = isfinite(norm) ? element(x, i, dtype) / norm : (double)NAN;

        if (dtype == FSDP_F64) {
            ((double *)x)[i] = normal;
        } else {
            ((float *)x)[i] = (float)normal;
        }
    }
}

/* The matrices of one iteration. */
typedef struct iteration {
    const fsdpi_kernels *kernels;
    size_t               rows, columns;
    fsdp_dtype           dtype;
    void                *gram, *polynomial, *work;
} iteration;

/* A = X X^T, or X^T X. */
static void multiply_by_itself(const iteration *at, const void *x)
{
    const bool          tall = at->rows > at->columns;
    const size_t        side = shorter(at->rows, at->columns);
    const fsdpi_product p    = {.dtype     = at->dtype,
                                .rows      = side,
                                .columns   = side,
                                .depth     = tall ? at->rows : at->columns,
                                .alpha     = 1.0,
                                .a         = x,
                                .a_row     = tall ? 1 : at->columns,
                                .a_column  = tall ? at->columns : 1,
                                .b         = x,
                                .b_row     = tall ? at->columns : 1,
                                .b_column  = tall ? 1 : at->columns,
                                .c         = at->gram,
                                .symmetric = true,
                                .work      = at->work};

    at->kernels->multiply(&p);
}

/* B = b A + c A A. */
static void square(const iteration *at)
{
    const size_t        side = shorter(at->rows, at->columns);
    const fsdpi_product p    = {.dtype     = at->dtype,
                                .rows      = side,
                                .columns   = side,
                                .depth     = side,
                                .alpha     = 2.0315,
                                .beta      = -4.7750,
                                .a         = at->gram,
                                .a_row     = side,
                                .a_column  = 1,
                                .b         = at->gram,
                                .b_row     = side,
                                .b_column  = 1,
                                .d         = at->gram,
                                .c         = at->polynomial,
                                .symmetric = true,
                                .work      = at->work};

    at->kernels->multiply(&p);
}

/* a X + B X, or a X + X B. */
static void improve(const iteration *at, const void *x, void *next)
{
    const bool    tall = at->rows > at->columns;
    fsdpi_product p    = {.dtype    = at->dtype,
                          .rows     = at->rows,
                          .columns  = at->columns,
                          .depth    = shorter(at->rows, at->columns),
                          .alpha    = 1.0,
                          .beta     = 3.4445,
                          .a        = tall ? x : at->polynomial,
                          .a_column = 1,
                          .b        = tall ? at->polynomial : x,
                          .b_row    = at->columns,
                          .b_column = 1,
                          .d        = x,
                          .c        = next,
                          .work     = at->work};

    p.a_row = p.depth;
    at->kernels->multiply(&p);
}

const void *fsdpi_newton_schulz(const fsdpi_kernels *kernels, void *g, size_t rows, size_t columns, fsdp_dtype dtype,
                                double eps, void *scratch)
{
    const size_t    side = shorter(rows, columns);
    unsigned char  *next = (unsigned char *)scratch + FSDPI_PRODUCT_WORK_BYTES;
    unsigned char  *gram = next + matrix_bytes(rows, columns, dtype);
    const iteration at   = {.kernels    = kernels,
                            .rows       = rows,
                            .columns    = columns,
                            .dtype      = dtype,
                            .gram       = gram,
                            .polynomial = gram + matrix_bytes(side, side, dtype),
                            .work       = scratch};
    void           *x[2] = {g, next};

    normalise(kernels, g, rows * columns, dtype, eps);
    for (int i = 0; i < ITERATIONS; i++) {
        multiply_by_itself(&at, x[i % 2]);
        square(&at);
        improve(&at, x[i % 2], x[1 - i % 2]);
    }
    return next;
}
