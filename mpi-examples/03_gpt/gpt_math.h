/**
 * @file
 * The element-wise half of GPT-2: everything between the matrix products, forward and backward.
 *
 * Plain loops in the shape that a compiler vectorises: exponentials are a polynomial, and sums run in GPT_LANES separate
 * lanes that are added up in a fixed order. Results therefore do not depend on the vector length, and the same input gives
 * the same bits in every run. All matrices are row-major; "adds" means that the output is accumulated into.
 */
#ifndef GPT_MATH_H
#define GPT_MATH_H

#include <stddef.h>

/** The type of all weights and activations. The gradient test compiles the same source with double. */
#ifdef GPT_DOUBLE
typedef double real;
#else
typedef float real;
#endif

/** Partial sums per sum: one register of AVX-512 in f32. */
#define GPT_LANES 16

/** out[r] = base[r] + bias for each row; `base` NULL counts as zero. */
void gpt_add_bias(size_t rows, size_t columns, const real *base, const real *bias, real *out);

/** Adds each column's sum over the rows of `d` to d_bias. */
void gpt_add_columns(size_t rows, size_t columns, const real *d, real *d_bias);

/** Normalises each row to mean 0 and variance 1, then scales and shifts. `mean` and `scale` (1 / deviation): one per row. */
void gpt_layernorm(size_t rows, size_t columns, const real *in, const real *weight, const real *bias, real *out,
                   real *mean, real *scale);

/** Adds to d_in, d_weight and d_bias, given d_out and what the forward pass had. */
void gpt_layernorm_backward(size_t rows, size_t columns, const real *d_out, const real *in, const real *mean,
                            const real *scale, const real *weight, real *d_in, real *d_weight, real *d_bias);

/** GELU in the tanh approximation that GPT-2 was trained with. */
void gpt_gelu(size_t count, const real *in, real *out);

/** Turns d (of the output) into that of the input, in place, and adds its column sums to d_bias. */
void gpt_gelu_backward(size_t rows, size_t columns, const real *in, real *d, real *d_bias);

/**
 * Softmax of rows `first` to `first` + rows - 1 of a causal attention matrix, in place: row t keeps its columns 0 to t, the
 * rest of its `columns` becomes 0. Rows are `stride` apart.
 */
void gpt_softmax_causal(size_t rows, size_t first, size_t columns, size_t stride, real *p);

/** Turns d (of the probabilities p) into `scale` times that of the scores, in place. Rows of d are `columns` apart. */
void gpt_softmax_backward(size_t rows, size_t columns, size_t stride, const real *p, real scale, real *d);

/** Turns one row of logits into probabilities and returns the logarithm of the sum of their exponentials. */
double gpt_softmax(size_t columns, real *row);

/** x[i] *= factor */
void gpt_scale(size_t count, real factor, real *x);

/** to[i] += from[i] */
void gpt_add(size_t count, const real *from, real *to);

#endif
