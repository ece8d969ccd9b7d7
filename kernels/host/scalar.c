/**
 * @file
 * The reference: every kernel as its definition reads, one element after the other, no vector instructions asked for.
 */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "kernels/host/element.h"
#include "kernels/host/exact_sum.h"
#include "kernels/host/half.h"
#include "kernels/kernels.h"

/** Element `i` of an array of f32, bf16 or f16. */
static float load_f32(const void *x, size_t i, fsdp_dtype dtype)
{
    if (dtype == FSDP_BF16) {
        return fsdpi_bf16_to_f32(((const fsdpi_any_half *)x)[i]);
    }
    if (dtype == FSDP_F16) {
        return fsdpi_f16_to_f32(((const fsdpi_any_half *)x)[i]);
    }
    return ((const fsdpi_any_f32 *)x)[i];
}

static void store_f32(void *x, size_t i, fsdp_dtype dtype, float value)
{
    if (dtype == FSDP_BF16) {
        ((fsdpi_any_half *)x)[i] = fsdpi_f32_to_bf16(value);
    } else if (dtype == FSDP_F16) {
        ((fsdpi_any_half *)x)[i] = fsdpi_f32_to_f16(value);
    } else {
        ((fsdpi_any_f32 *)x)[i] = value;
    }
}

/** Element `i` of an array of f64, f32, bf16 or f16, which are all exact in f64. */
static double load_f64(const void *x, size_t i, fsdp_dtype dtype)
{
    return dtype == FSDP_F64 ? ((const fsdpi_any_f64 *)x)[i] : (double)load_f32(x, i, dtype);
}

static void store_f64(void *x, size_t i, fsdp_dtype dtype, double value)
{
    if (dtype == FSDP_F64) {
        ((fsdpi_any_f64 *)x)[i] = value;
    } else if (dtype == FSDP_BF16) {
        ((fsdpi_any_half *)x)[i] = fsdpi_f64_to_bf16(value);
    } else if (dtype == FSDP_F16) {
        ((fsdpi_any_half *)x)[i] = fsdpi_f64_to_f16(value);
    } else {
        ((fsdpi_any_f32 *)x)[i] = (float)value;
    }
}

static double combine_f64(double sum, double x, fsdp_redop op)
{
    switch (op) {
    case FSDP_SUM:
    case FSDP_AVG:
        return sum + x;
    case FSDP_MIN:
        return x < sum || isnan(x) ? x : sum;
    case FSDP_MAX:
        return x > sum || isnan(x) ? x : sum;
    case FSDP_PROD:
        return sum * x;
    }
    return sum;
}

static float combine_f32(float sum, float x, fsdp_redop op)
{
    switch (op) {
    case FSDP_SUM:
    case FSDP_AVG:
        return sum + x;
    case FSDP_MIN:
        return x < sum || isnan(x) ? x : sum;
    case FSDP_MAX:
        return x > sum || isnan(x) ? x : sum;
    case FSDP_PROD:
        return sum * x;
    }
    return sum;
}

/* Signed sums and products are taken unsigned, where overflow is defined to wrap. */

static int64_t combine_i64(int64_t sum, int64_t x, fsdp_redop op)
{
    switch (op) {
    case FSDP_SUM:
    case FSDP_AVG:
        return (int64_t)((uint64_t)sum + (uint64_t)x);
    case FSDP_MIN:
        return x < sum ? x : sum;
    case FSDP_MAX:
        return x > sum ? x : sum;
    case FSDP_PROD:
        return (int64_t)((uint64_t)sum * (uint64_t)x);
    }
    return sum;
}

static int32_t combine_i32(int32_t sum, int32_t x, fsdp_redop op)
{
    switch (op) {
    case FSDP_SUM:
    case FSDP_AVG:
        return (int32_t)((uint32_t)sum + (uint32_t)x);
    case FSDP_MIN:
        return x < sum ? x : sum;
    case FSDP_MAX:
        return x > sum ? x : sum;
    case FSDP_PROD:
        return (int32_t)((uint32_t)sum * (uint32_t)x);
    }
    return sum;
}

static uint8_t combine_u8(uint8_t sum, uint8_t x, fsdp_redop op)
{
    switch (op) {
    case FSDP_SUM:
    case FSDP_AVG:
        return (uint8_t)(sum + x);
    case FSDP_MIN:
        return x < sum ? x : sum;
    case FSDP_MAX:
        return x > sum ? x : sum;
    case FSDP_PROD:
        return (uint8_t)(sum * x);
    }
    return sum;
}

static void reduce_f64(fsdpi_any_f64 *out, const void *const *in, size_t n_in, size_t count, fsdp_redop op,
                       size_t divisor)
{
    for (size_t i = 0; i < count; i++) {
        double sum = ((const fsdpi_any_f64 *)in[0])[i];

        for (size_t r = 1; r < n_in; r++) {
            sum = combine_f64(sum, ((const fsdpi_any_f64 *)in[r])[i], op);
        }
        out[i] = op == FSDP_AVG ? sum / (double)divisor : sum;
    }
}

static void reduce_in_f32(void *out, const void *const *in, size_t n_in, size_t count, fsdp_dtype dtype, fsdp_redop op,
                          size_t divisor)
{
    for (size_t i = 0; i < count; i++) {
        float sum = load_f32(in[0], i, dtype);

        for (size_t r = 1; r < n_in; r++) {
            sum = combine_f32(sum, load_f32(in[r], i, dtype), op);
        }
        store_f32(out, i, dtype, op == FSDP_AVG ? sum / (float)divisor : sum);
    }
}

static void reduce_i64(fsdpi_any_i64 *out, const void *const *in, size_t n_in, size_t count, fsdp_redop op,
                       size_t divisor)
{
    for (size_t i = 0; i < count; i++) {
        int64_t sum = ((const fsdpi_any_i64 *)in[0])[i];

        for (size_t r = 1; r < n_in; r++) {
            sum = combine_i64(sum, ((const fsdpi_any_i64 *)in[r])[i], op);
        }
        out[i] = op == FSDP_AVG ? sum / (int64_t)divisor : sum;
    }
}

static void reduce_i32(fsdpi_any_i32 *out, const void *const *in, size_t n_in, size_t count, fsdp_redop op,
                       size_t divisor)
{
    for (size_t i = 0; i < count; i++) {
        int32_t sum = ((const fsdpi_any_i32 *)in[0])[i];

        for (size_t r = 1; r < n_in; r++) {
            sum = combine_i32(sum, ((const fsdpi_any_i32 *)in[r])[i], op);
        }
        out[i] = op == FSDP_AVG ? (int32_t)((int64_t)sum / (int64_t)divisor) : sum;
    }
}

static void reduce_u8(uint8_t *out, const void *const *in, size_t n_in, size_t count, fsdp_redop op, size_t divisor)
{
    for (size_t i = 0; i < count; i++) {
        uint8_t sum = ((const uint8_t *)in[0])[i];

        for (size_t r = 1; r < n_in; r++) {
            sum = combine_u8(sum, ((const uint8_t *)in[r])[i], op);
        }
        out[i] = (uint8_t)(op == FSDP_AVG ? sum / divisor : sum);
    }
}

static void reduce(void *out, const void *const *in, size_t n_in, size_t count, fsdp_dtype dtype, fsdp_redop op,
                   size_t divisor)
{
    switch (dtype) {
    case FSDP_F64:
        reduce_f64(out, in, n_in, count, op, divisor);
        break;
    case FSDP_F32:
    case FSDP_BF16:
    case FSDP_F16:
        reduce_in_f32(out, in, n_in, count, dtype, op, divisor);
        break;
    case FSDP_I64:
        reduce_i64(out, in, n_in, count, op, divisor);
        break;
    case FSDP_I32:
        reduce_i32(out, in, n_in, count, op, divisor);
        break;
    case FSDP_U8:
        reduce_u8(out, in, n_in, count, op, divisor);
        break;
    }
}

static void cast(void *out, fsdp_dtype out_dtype, const void *in, fsdp_dtype in_dtype, size_t count)
{
    if (count > 0 && out_dtype == in_dtype) {
        memcpy(out, in, count * fsdpi_element_bytes(in_dtype));
        return;
    }
    for (size_t i = 0; i < count; i++) {
        store_f64(out, i, out_dtype, load_f64(in, i, in_dtype));
    }
}

static void scale(void *x, double factor, size_t count, fsdp_dtype dtype)
{
    for (size_t i = 0; i < count; i++) {
        if (dtype == FSDP_F64) {
            ((fsdpi_any_f64 *)x)[i] *= factor;
        } else {
            store_f32(x, i, dtype, load_f32(x, i, dtype) * (float)factor);
        }
    }
}

static void accumulate(float *sum, bool fresh, const void *x, fsdp_dtype dtype, double factor, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const float term = load_f32(x, i, dtype) * (float)factor;

        sum[i] = fresh ? term : sum[i] + term;
    }
}

static void sum_squares(fsdpi_exact_sum *sum, const void *x, size_t count, fsdp_dtype dtype)
{
    for (size_t i = 0; i < count; i++) {
        fsdpi_exact_sum_add_square(sum, fsdpi_f32_bits(load_f32(x, i, dtype)));
        if (i % FSDPI_SUM_PIECE == FSDPI_SUM_PIECE - 1) {
            fsdpi_exact_sum_carry(sum);
        }
    }
    fsdpi_exact_sum_carry(sum);
}

static double absolute_maximum(const void *x, size_t count, fsdp_dtype dtype)
{
    double most = 0;

    for (size_t i = 0; i < count; i++) {
        double value = fabs(load_f64(x, i, dtype));

        most = value > most || isnan(value) ? value : most;
    }
    return most;
}

static double clamp_f64(double x, double limit)
{
    return x > limit ? limit : x < -limit ? -limit : x;
}

static float clamp_f32(float x, float limit)
{
    return x > limit ? limit : x < -limit ? -limit : x;
}

static void clamp(void *x, double limit, size_t count, fsdp_dtype dtype)
{
    for (size_t i = 0; i < count; i++) {
        if (dtype == FSDP_F64) {
            ((fsdpi_any_f64 *)x)[i] = clamp_f64(((fsdpi_any_f64 *)x)[i], limit);
        } else {
            store_f32(x, i, dtype, clamp_f32(load_f32(x, i, dtype), (float)limit));
        }
    }
}

/* Updates the moments by one gradient; returns what is to be taken off the weight. */
static float adam_step(float g, float *m, float *v, const fsdpi_adam *c)
{
    *m = c->beta1 * *m + c->rest1 * g;
    *v = c->beta2 * *v + c->rest2 * (g * g);
    return c->lr * (*m / c->correction1) / (sqrtf(*v / c->correction2) + c->eps);
}

static void adam(float *w, const float *g, float *m, float *v, size_t count, const fsdpi_adam *c)
{
    for (size_t i = 0; i < count; i++) {
        w[i] = w[i] - adam_step(g[i] + c->weight_decay * w[i], &m[i], &v[i], c);
    }
}

static void adamw(float *w, const float *g, float *m, float *v, size_t count, const fsdpi_adam *c)
{
    for (size_t i = 0; i < count; i++) {
        w[i] = w[i] - c->lr * c->weight_decay * w[i];
        w[i] = w[i] - adam_step(g[i], &m[i], &v[i], c);
    }
}

static float sign(float x)
{
    return x > 0 ? 1.0F : x < 0 ? -1.0F : x;
}

static void lion(float *w, const float *g, float *m, size_t count, const fsdpi_lion *c)
{
    for (size_t i = 0; i < count; i++) {
        const float direction = sign(c->beta1 * m[i] + (1 - c->beta1) * g[i]);

        m[i] = c->beta2 * m[i] + (1 - c->beta2) * g[i];
        w[i] = w[i] - c->lr * c->weight_decay * w[i] - c->lr * direction;
    }
}

static void sgd(float *w, const float *g, float *b, size_t count, const fsdpi_sgd *c)
{
    for (size_t i = 0; i < count; i++) {
        float d = g[i] + c->weight_decay * w[i];

        if (c->momentum != 0) {
            b[i] = c->first_step ? d : c->momentum * b[i] + d;
            d    = c->nesterov ? d + c->momentum * b[i] : b[i];
        }
        w[i] = w[i] - c->lr * d;
    }
}

static void reduce_into(void *const *out, size_t n_out, const void *const *in, size_t n_in, size_t count,
                        fsdp_dtype dtype, fsdp_redop op, size_t divisor, size_t n_past)
{
    (void)n_past;
    reduce(out[0], in, n_in, count, dtype, op, divisor);
    for (size_t o = 1; o < n_out && count > 0; o++) {
        memcpy(out[o], out[0], count * fsdpi_element_bytes(dtype));
    }
}

static void copy(void *out, const void *in, size_t bytes)
{
    if (bytes > 0) {
        memcpy(out, in, bytes);
    }
}

/* Element (i, j) of C, in f32 and in f64. */

static float product_f32(const fsdpi_product *p, size_t i, size_t j)
{
    const fsdpi_any_f32 *a = (const fsdpi_any_f32 *)p->a + i * p->a_row,
                        *b = (const fsdpi_any_f32 *)p->b + j * p->b_column;
    float c                = p->beta == 0 ? 0.0F : (float)p->beta * ((const fsdpi_any_f32 *)p->d)[i * p->columns + j];

    for (size_t begin = 0; begin < p->depth; begin += FSDPI_PRODUCT_DEPTH) {
        const size_t end = p->depth - begin < FSDPI_PRODUCT_DEPTH ? p->depth : begin + FSDPI_PRODUCT_DEPTH;
        float        sum = 0;

        for (size_t k = begin; k < end; k++) {
            sum = fmaf(a[k * p->a_column], b[k * p->b_row], sum);
        }
        c = fmaf((float)p->alpha, sum, c);
    }
    return c;
}

static double product_f64(const fsdpi_product *p, size_t i, size_t j)
{
    const fsdpi_any_f64 *a = (const fsdpi_any_f64 *)p->a + i * p->a_row,
                        *b = (const fsdpi_any_f64 *)p->b + j * p->b_column;
    double c               = p->beta == 0 ? 0.0 : p->beta * ((const fsdpi_any_f64 *)p->d)[i * p->columns + j];

    for (size_t begin = 0; begin < p->depth; begin += FSDPI_PRODUCT_DEPTH) {
        const size_t end = p->depth - begin < FSDPI_PRODUCT_DEPTH ? p->depth : begin + FSDPI_PRODUCT_DEPTH;
        double       sum = 0;

        for (size_t k = begin; k < end; k++) {
            sum = fma(a[k * p->a_column], b[k * p->b_row], sum);
        }
        c = fma(p->alpha, sum, c);
    }
    return c;
}

static void multiply(const fsdpi_product *p)
{
    for (size_t i = 0; i < p->rows; i++) {
        for (size_t j = p->symmetric ? i : 0; j < p->columns; j++) {
            const size_t at = i * p->columns + j, mirrored = p->symmetric ? j * p->columns + i : at;

            if (p->dtype == FSDP_F64) {
                ((fsdpi_any_f64 *)p->c)[at]       = product_f64(p, i, j);
                ((fsdpi_any_f64 *)p->c)[mirrored] = ((fsdpi_any_f64 *)p->c)[at];
            } else {
                ((fsdpi_any_f32 *)p->c)[at]       = product_f32(p, i, j);
                ((fsdpi_any_f32 *)p->c)[mirrored] = ((fsdpi_any_f32 *)p->c)[at];
            }
        }
    }
}

const fsdpi_kernels fsdpi_kernels_scalar = {
    .name             = "scalar",
    .reduce           = reduce,
    .reduce_into      = reduce_into,
    .copy             = copy,
    .stream           = copy,
    .cast             = cast,
    .scale            = scale,
    .accumulate       = accumulate,
    .sum_squares      = sum_squares,
    .absolute_maximum = absolute_maximum,
    .clamp            = clamp,
    .adam             = adam,
    .adamw            = adamw,
    .lion             = lion,
    .sgd              = sgd,
    .multiply         = multiply,
};
