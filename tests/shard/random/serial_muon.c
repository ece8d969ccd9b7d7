/*
 * Muon, from the formulas of fsdp/optimizer.h. Bits follow from three rules: what is not a product of matrices is computed in f64 and
 * rounded to f32 once; a product's elements are sums in order of the inner index, each term added with one rounding, and every
 * DEPTH terms such a sum joins what is there; a Gram matrix is computed from the diagonal up, and mirrored.
 */
#include <math.h>
#include <stdlib.h>

#include "tests/shard/random/serial.h"

enum { DEPTH = 256, ITERATIONS = 5 };

/* Row-major; or the transpose of one, seen as a matrix. */
typedef struct matrix {
    float *x;
    size_t rows, columns;
    bool   turned;
} matrix;

static float at(const matrix *m, size_t i, size_t j)
{
    return m->turned ? m->x[j * m->rows + i] : m->x[i * m->columns + j];
}

static matrix transpose_of(const matrix *m)
{
    return (matrix){m->x, m->columns, m->rows, !m->turned};
}

/* One element of `factor` D + `alpha` A B, where D's is `d`. */
static float element_of(float alpha, const matrix *a, const matrix *b, float factor, float d, size_t i, size_t j)
{
    float c = factor * d;

    for (size_t begin = 0; begin < a->columns; begin += DEPTH) {
        float sum = 0.0F;

        for (size_t k = begin; k < a->columns && k < begin + DEPTH; k++) {
            sum = fmaf(at(a, i, k), at(b, k, j), sum);
        }
        c = fmaf(alpha, sum, c);
    }
    return c;
}

static void multiply_symmetric(float alpha, const matrix *a, const matrix *b, float factor, const float *d, float *c)
{
    const size_t n = a->rows;

    for (size_t i = 0; i < n; i++) {
        for (size_t j = i; j < n; j++) {
            c[i * n + j] = c[j * n + i] = element_of(alpha, a, b, factor, d != NULL ? d[i * n + j] : 0.0F, i, j);
        }
    }
}

/* From the middle: with as many rows as X has at least in one direction, the polynomial is of the shorter side. */
static void improve(const matrix *x, float *gram, float *polynomial, float *next)
{
    const matrix turned = transpose_of(x);
    const bool   tall   = x->rows > x->columns;
    const size_t side   = tall ? x->columns : x->rows;
    const matrix a = {gram, side, side, false}, b = {polynomial, side, side, false};

    multiply_symmetric(1.0F, tall ? &turned : x, tall ? x : &turned, 0.0F, NULL, gram);
    multiply_symmetric((float)2.0315, &a, &a, (float)-4.7750, gram, polynomial);
    for (size_t i = 0; i < x->rows; i++) {
        for (size_t j = 0; j < x->columns; j++) {
            next[i * x->columns + j] = element_of(1.0F, tall ? x : &b, tall ? &b : x, (float)3.4445, at(x, i, j), i, j);
        }
    }
}

/* Squares of values scaled by a power of two, so that none is too large or small. */
static double frobenius(const float *x, size_t n)
{
    double largest = 0.0, sum = 0.0;

    for (size_t i = 0; i < n; i++) {
        if (!isfinite(x[i])) {
            return NAN;
        }
        largest = fmax(largest, fabs((double)x[i]));
    }
    const int exponent = largest > 0.0 ? ilogb(largest) : 0;
    for (size_t i = 0; i < n; i++) {
        const double scaled = ldexp((double)x[i], -exponent);

        sum = fma(scaled, scaled, sum);
    }
    return ldexp(sqrt(sum), exponent);
}

static void orthogonalise(float *memory, size_t rows, size_t columns, double eps)
{
    const size_t n = rows * columns, side = rows < columns ? rows : columns;
    float       *x = memory, *next = x + n, *gram = next + n, *polynomial = gram + side * side;
    const double norm = frobenius(x, n) + eps;

    for (size_t i = 0; i < n; i++) {
        x[i] = (float)((double)x[i] / norm);
    }
    for (int k = 0; k < ITERATIONS; k++) {
        const matrix from = {x, rows, columns, false};

        improve(&from, gram, polynomial, next);
        for (size_t i = 0; i < n; i++) {
            x[i] = next[i];
        }
    }
}

void serial_update_matrix(const fsdp_optimizer_options *o, const planned_tensor *shape, const serial_tensor *tensor,
                          double lr, double decay)
{
    const size_t n = shape->count, rows = shape->shape[0], columns = n / rows;
    const double ratio = (double)rows / (double)columns, longer = (double)(rows > columns ? rows : columns);
    const double scale = o->muon_scale > 0.0 ? o->muon_scale * sqrt(longer) : sqrt(fmax(1.0, ratio));
    float       *x     = calloc(4 * n, sizeof *x);

    for (size_t i = 0; i < n && x != NULL; i++) {
        const double g = (double)tensor->gradient[i];

        tensor->first[i] = (float)fma(o->momentum, (double)tensor->first[i], g);
        x[i]             = o->nesterov ? (float)fma(o->momentum, (double)tensor->first[i], g) : tensor->first[i];
    }
    if (x != NULL) {
        orthogonalise(x, rows, columns, o->eps);
    }
    for (size_t i = 0; i < n && x != NULL; i++) {
        const double w = (double)tensor->master[i];

        tensor->master[i] = (float)fma(-(lr * scale), (double)x[i], fma(-(lr * decay), w, w));
    }
    free(x);
}
