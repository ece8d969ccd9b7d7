#include "gpt_math.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

/* Where the build has found that it works, each loop exists once per vector length and the loader picks. */
#ifdef GPT_HAVE_TARGET_CLONES
#define GPT_VECTORISED __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define GPT_VECTORISED
#endif

#define LAYERNORM_EPS ((real)1e-5)
#define GELU_SCALE    ((real)0.79788456080286535588) /* sqrt(2 / pi) */
#define GELU_CUBIC    ((real)0.044715)
#define LOWEST        ((real)-1e30)

#ifdef GPT_DOUBLE
static inline real exponential(real x)
{
    return exp(x);
}
#else
/* 2^n times the Taylor series of exp on [-ln 2 / 2, ln 2 / 2], relative error below 2e-7; x is clamped to where the result
 * is a normal number, and NaN stays NaN. Adding 1.5 x 2^23 rounds to an integer n and leaves it in the low bits. */
static inline real exponential(real x)
{
    const float round = 12582912.0f, high = 0.693359375f, low = -2.12194440e-4f;
    float       shifted, n, r, y;
    uint32_t    bits;

    x       = x < -87.0f ? -87.0f : x;
    x       = x > 88.0f ? 88.0f : x;
    shifted = x * 1.44269504f + round;
    n       = shifted - round;
    r       = (x - n * high) - n * low;
    y       = 1.0f / 5040;
    y       = y * r + 1.0f / 720;
    y       = y * r + 1.0f / 120;
    y       = y * r + 1.0f / 24;
    y       = y * r + 1.0f / 6;
    y       = y * r + 0.5f;
    y       = y * r + 1.0f;
    y       = y * r + 1.0f;
    memcpy(&bits, &shifted, sizeof bits);
    bits = (bits + 127u) << 23;
    memcpy(&n, &bits, sizeof n);
    return y * n;
}
#endif

/* The sum of the lanes, always in the same order. */
static inline real lanes_sum(const real *lanes)
{
    real   half[GPT_LANES];
    size_t n, i;

    memcpy(half, lanes, sizeof half);
    for (n = GPT_LANES / 2; n > 0; n /= 2) {
        for (i = 0; i < n; i++) {
            half[i] += half[i + n];
        }
    }
    return half[0];
}

static inline real sum(size_t n, const real *x)
{
    real   lanes[GPT_LANES] = {0};
    size_t i, k;

    for (i = 0; i + GPT_LANES <= n; i += GPT_LANES) {
        for (k = 0; k < GPT_LANES; k++) {
            lanes[k] += x[i + k];
        }
    }
    for (k = 0; i < n; i++, k++) {
        lanes[k] += x[i];
    }
    return lanes_sum(lanes);
}

static inline real dot(size_t n, const real *x, const real *y)
{
    real   lanes[GPT_LANES] = {0};
    size_t i, k;

    for (i = 0; i + GPT_LANES <= n; i += GPT_LANES) {
        for (k = 0; k < GPT_LANES; k++) {
            lanes[k] += x[i + k] * y[i + k];
        }
    }
    for (k = 0; i < n; i++, k++) {
        lanes[k] += x[i] * y[i];
    }
    return lanes_sum(lanes);
}

static inline real sum_of_squares_around(size_t n, const real *x, real centre)
{
    real   lanes[GPT_LANES] = {0};
    size_t i, k;

    for (i = 0; i + GPT_LANES <= n; i += GPT_LANES) {
        for (k = 0; k < GPT_LANES; k++) {
            lanes[k] += (x[i + k] - centre) * (x[i + k] - centre);
        }
    }
    for (k = 0; i < n; i++, k++) {
        lanes[k] += (x[i] - centre) * (x[i] - centre);
    }
    return lanes_sum(lanes);
}

static inline real largest(size_t n, const real *x)
{
    real   lanes[GPT_LANES], result;
    size_t i, k;

    for (k = 0; k < GPT_LANES; k++) {
        lanes[k] = LOWEST;
    }
    for (i = 0; i + GPT_LANES <= n; i += GPT_LANES) {
        for (k = 0; k < GPT_LANES; k++) {
            lanes[k] = lanes[k] < x[i + k] ? x[i + k] : lanes[k];
        }
    }
    for (k = 0; i < n; i++, k++) {
        lanes[k] = lanes[k] < x[i] ? x[i] : lanes[k];
    }
    result = lanes[0];
    for (k = 1; k < GPT_LANES; k++) {
        result = result < lanes[k] ? lanes[k] : result;
    }
    return result;
}

/* Replaces each x by exp(x - shift) and returns the sum. */
static inline real exponentials(size_t n, real *x, real shift)
{
    size_t i;

    for (i = 0; i < n; i++) {
        x[i] = exponential(x[i] - shift);
    }
    return sum(n, x);
}

static inline void multiply(size_t n, real *x, real factor)
{
    size_t i;

    for (i = 0; i < n; i++) {
        x[i] *= factor;
    }
}

GPT_VECTORISED
void gpt_add(size_t count, const real *restrict from, real *restrict to)
{
    size_t i;

    for (i = 0; i < count; i++) {
        to[i] += from[i];
    }
}

GPT_VECTORISED
void gpt_scale(size_t count, real factor, real *x)
{
    multiply(count, x, factor);
}

GPT_VECTORISED
void gpt_add_bias(size_t rows, size_t columns, const real *base, const real *restrict bias, real *restrict out)
{
    size_t r, j;

    for (r = 0; r < rows; r++, out += columns) {
        if (!base) {
            memcpy(out, bias, columns * sizeof *out);
            continue;
        }
        for (j = 0; j < columns; j++) {
            out[j] = base[r * columns + j] + bias[j];
        }
    }
}

GPT_VECTORISED
void gpt_add_columns(size_t rows, size_t columns, const real *restrict d, real *restrict d_bias)
{
    size_t r, j;

    for (r = 0; r < rows; r++) {
        for (j = 0; j < columns; j++) {
            d_bias[j] += d[r * columns + j];
        }
    }
}

GPT_VECTORISED
void gpt_layernorm(size_t rows, size_t columns, const real *restrict in, const real *restrict weight,
                   const real *restrict bias, real *restrict out, real *restrict mean, real *restrict scale)
{
    size_t r, j;

    for (r = 0; r < rows; r++, in += columns, out += columns) {
        const real m        = sum(columns, in) / (real)columns;
        const real variance = sum_of_squares_around(columns, in, m) / (real)columns;
        const real s        = 1 / (real)sqrt((double)(variance + LAYERNORM_EPS));

        for (j = 0; j < columns; j++) {
            out[j] = (in[j] - m) * s * weight[j] + bias[j];
        }
        mean[r]  = m;
        scale[r] = s;
    }
}

/* The means over a row of g = d_out * weight, and of g times the normalised row. */
static inline void layernorm_means(size_t n, const real *restrict d_out, const real *restrict in, real mean, real scale,
                                   const real *restrict weight, real *mean_g, real *mean_gx)
{
    real   lanes_g[GPT_LANES] = {0}, lanes_gx[GPT_LANES] = {0};
    size_t i, k;

    for (i = 0; i + GPT_LANES <= n; i += GPT_LANES) {
        for (k = 0; k < GPT_LANES; k++) {
            lanes_g[k] += d_out[i + k] * weight[i + k];
            lanes_gx[k] += d_out[i + k] * weight[i + k] * ((in[i + k] - mean) * scale);
        }
    }
    for (k = 0; i < n; i++, k++) {
        lanes_g[k] += d_out[i] * weight[i];
        lanes_gx[k] += d_out[i] * weight[i] * ((in[i] - mean) * scale);
    }
    *mean_g  = lanes_sum(lanes_g) / (real)n;
    *mean_gx = lanes_sum(lanes_gx) / (real)n;
}

/* With x the normalised row and g = d_out * weight: d_in = scale * (g - mean(g) - x * mean(g * x)). */
GPT_VECTORISED
void gpt_layernorm_backward(size_t rows, size_t columns, const real *restrict d_out, const real *restrict in,
                            const real *restrict mean, const real *restrict scale, const real *restrict weight,
                            real *restrict d_in, real *restrict d_weight, real *restrict d_bias)
{
    size_t r, j;

    for (r = 0; r < rows; r++, d_out += columns, in += columns, d_in += columns) {
        const real m = mean[r], s = scale[r];
        real       mean_g, mean_gx;

        layernorm_means(columns, d_out, in, m, s, weight, &mean_g, &mean_gx);
        for (j = 0; j < columns; j++) {
            const real x = (in[j] - m) * s;

            d_bias[j] += d_out[j];
            d_weight[j] += d_out[j] * x;
            d_in[j] += s * (d_out[j] * weight[j] - mean_g - x * mean_gx);
        }
    }
}

/* (1 + tanh(y)) / 2 = 1 / (1 + exp(-2 y)): one exponential, and accurate on both tails. */
GPT_VECTORISED
void gpt_gelu(size_t count, const real *restrict in, real *restrict out)
{
    size_t i;

    for (i = 0; i < count; i++) {
        const real x = in[i];
        const real y = GELU_SCALE * (x + GELU_CUBIC * x * x * x);

        out[i] = x / (1 + exponential(-2 * y));
    }
}

GPT_VECTORISED
void gpt_gelu_backward(size_t rows, size_t columns, const real *restrict in, real *restrict d, real *restrict d_bias)
{
    size_t r, j;

    for (r = 0; r < rows; r++, in += columns, d += columns) {
        for (j = 0; j < columns; j++) {
            const real x     = in[j];
            const real y     = GELU_SCALE * (x + GELU_CUBIC * x * x * x);
            const real slope = 2 * GELU_SCALE * (1 + 3 * GELU_CUBIC * x * x);
            const real e     = exponential(-2 * y);
            const real s     = 1 / (1 + e);

            d[j] *= s + x * slope * s * (e * s);
            d_bias[j] += d[j];
        }
    }
}

/* A row is worked on up to a whole number of lanes, masked by LOWEST: single elements cost as much as a whole vector. */
GPT_VECTORISED
void gpt_softmax_causal(size_t rows, size_t first, size_t columns, size_t stride, real *p)
{
    size_t r, j;

    for (r = 0; r < rows; r++, p += stride) {
        const size_t valid = first + r + 1;
        size_t       width = (valid + GPT_LANES - 1) / GPT_LANES * GPT_LANES;
        real         total;

        width = width < columns ? width : columns;
        for (j = valid; j < width; j++) {
            p[j] = LOWEST;
        }
        total = exponentials(width, p, largest(width, p));
        multiply(width, p, 1 / total);
        memset(p + valid, 0, (columns - valid) * sizeof *p);
    }
}

GPT_VECTORISED
void gpt_softmax_backward(size_t rows, size_t columns, size_t stride, const real *restrict p, real scale,
                          real *restrict d)
{
    size_t r, j;

    for (r = 0; r < rows; r++, p += stride, d += columns) {
        const real centre = dot(columns, p, d);

        for (j = 0; j < columns; j++) {
            d[j] = p[j] * (d[j] - centre) * scale;
        }
    }
}

GPT_VECTORISED
double gpt_softmax(size_t columns, real *row)
{
    const real shift = largest(columns, row);
    const real total = exponentials(columns, row, shift);

    multiply(columns, row, 1 / total);
    return (double)shift + log((double)total);
}
