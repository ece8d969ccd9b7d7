/**
 * @file
 * Element-wise compute, and products of matrices, on host memory. One table of functions per instruction set, all with bitwise the same results
 * (no fused multiply-add but where it is said, one order of summation), so that which one runs never shows in a result. There is one
 * exception: where arithmetic yields NaN, all tables yield NaN, but its sign and payload are not specified. A cast has
 * no exception.
 *
 * A pointer to void may have any alignment, whatever its elements; others have that of their type. Counts are ELEMENTS;
 * 0 is allowed and does nothing. Nothing here fails, allocates or communicates, or reads or writes outside the arrays.
 * Rounding is to nearest even, as C starts a thread; subnormals are exact unless the processor was told to flush them.
 */
#ifndef FSDPI_KERNELS_H
#define FSDPI_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fsdp/dtype.h"

/**
 * Coefficients of one step of Adam or AdamW. What the caller has computed of the betas is computed in f64 and rounded once:
 * 1 - beta of the rounded beta would be off by 7e-6 of itself at 0.999, and by 1% at 0.999999.
 */
typedef struct fsdpi_adam {
    float lr;
    float beta1;
    float beta2;
    float rest1; /* 1 - beta1 */
    float rest2; /* 1 - beta2 */
    float eps;
    float weight_decay; /* 0 for elements that do not decay */
    float correction1;  /* 1 - beta1^t, in step t */
    float correction2;  /* 1 - beta2^t */
} fsdpi_adam;

/** Coefficients of one Lion step. */
typedef struct fsdpi_lion {
    float lr;
    float beta1;        /* of the direction */
    float beta2;        /* of the moment */
    float weight_decay; /* 0 for elements that do not decay */
} fsdpi_lion;

/** Coefficients of one SGD step in PyTorch's definition (weight decay added to the gradient, dampening 0). */
typedef struct fsdpi_sgd {
    float lr;
    float momentum;
    float weight_decay;
    int   nesterov;
    int   first_step; /* the momentum buffer is set to d below instead of being decayed */
} fsdpi_sgd;

/** Coefficients of one step in f64, of whichever optimizer: see fsdpi_adam, fsdpi_lion and fsdpi_sgd. */
typedef struct fsdpi_update_f64 {
    double lr, weight_decay;
    double beta1, beta2, rest1, rest2; /* the rests are 1 - beta */
    double eps, correction1, correction2;
    double momentum; /* 0: none */
    bool   nesterov, first_step;
} fsdpi_update_f64;

enum { FSDPI_SUM_DIGITS = 20 };

/**
 * A sum of squares of f32, bf16 and f16 that nothing has been rounded off: the sum over k of digits[k] 2^(32 k - 298), since all
 * squares are multiples of 2^-298; and the number of elements that are infinite or NaN, which the sum leaves out. All words are
 * integers, so that sums are joined by adding them word by word, in any order: those of 2^30 ranks still fit. All zero is a sum
 * of nothing. It holds 2^44 elements.
 */
typedef struct fsdpi_exact_sum {
    int64_t digits[FSDPI_SUM_DIGITS];
    int64_t infinities, nans;
} fsdpi_exact_sum;

/** An fsdpi_exact_sum as int64_t. */
enum { FSDPI_SUM_WORDS = FSDPI_SUM_DIGITS + 2 };

/** The sum in f64, rounded once, to nearest even; NaN where an element was, otherwise infinity where one was. */
double fsdpi_exact_sum_value(const fsdpi_exact_sum *sum);

/** ELEMENTS of the depth of a product of matrices that are summed before the sum joins what is there. */
enum { FSDPI_PRODUCT_DEPTH = 256 };

/** BYTES that a product needs to work in, of whatever size, type and instruction set. */
enum { FSDPI_PRODUCT_WORK_BYTES = FSDPI_PRODUCT_DEPTH * (96 * 8 + 512 * 4) };

/**
 * A product of matrices, C = alpha A B + beta D. Steps are from a row or a column to the next, in ELEMENTS, so that a transposed
 * matrix is one with its steps exchanged.
 */
typedef struct fsdpi_product {
    fsdp_dtype  dtype;                /* of all of them: FSDP_F32 or FSDP_F64 */
    size_t      rows, columns, depth; /* A is rows x depth, B depth x columns, C and D rows x columns */
    double      alpha, beta;          /* rounded to f32 in f32 */
    const void *a;
    size_t      a_row, a_column;
    const void *b;
    size_t      b_row, b_column;
    const void *d;   /* row-major, without gaps; may be C, and is not read where beta is 0 */
    void       *c;   /* the same; overlaps neither A nor B */
    bool  symmetric; /* only what is on the diagonal and above is computed, and mirrored: C is known to be symmetric */
    void *work;      /* FSDPI_PRODUCT_WORK_BYTES, which overlap none of the matrices */
} fsdpi_product;

enum { FSDPI_DOT_DIGITS = 134 };

/**
 * A sum of products of f64 that nothing has been rounded off, after Kulisch: the sum over k of digits[k] 2^(32 k - 2154), since all
 * products are multiples of 2^-2148; and the number of products that are infinite, of either sign, or NaN, which the sum leaves out.
 * As with an fsdpi_exact_sum, sums are joined by adding them word by word, in any order. It holds 2^44 products.
 */
typedef struct fsdpi_exact_dot {
    int64_t digits[FSDPI_DOT_DIGITS];
    int64_t infinities, minus_infinities, nans;
} fsdpi_exact_dot;

/** An fsdpi_exact_dot as int64_t. */
enum { FSDPI_DOT_WORDS = FSDPI_DOT_DIGITS + 3 };

/** Adds a[i] b[i] of f64, f32, bf16 or f16 to `dot`, exactly; its digits but the last are in 0 .. 2^32 - 1 afterwards. The arrays may be
 *  one. Subnormals count whatever the processor was told. */
void fsdpi_exact_dot_add(fsdpi_exact_dot *dot, const void *a, const void *b, size_t count, fsdp_dtype dtype);

/** Adds a sum of squares to `dot`. */
void fsdpi_exact_dot_add_sum(fsdpi_exact_dot *dot, const fsdpi_exact_sum *sum);

/**
 * The sum in f64, rounded once, to nearest even, infinite where it is beyond the range of f64; NaN where a product was or where
 * there are infinities of both signs, otherwise infinite where one was. A sum of 0 is +0.
 */
double fsdpi_exact_dot_value(const fsdpi_exact_dot *dot);

/** The square root of a sum that is not negative, rounded once, to nearest even: also where the sum itself is beyond the range of f64. */
double fsdpi_exact_dot_root(const fsdpi_exact_dot *dot);

/**
 * values[i] = exp(values[i] - shift), where no difference is above 0, and their sum in f64, in eight interleaved sums. The same for every
 * instruction set. f32 is within 2 units in the last place, and 0 below exp(-87); f64 is the C library's.
 */
double fsdpi_exponentials_f32(float *values, size_t count, float shift);
double fsdpi_exponentials_f64(double *values, size_t count, double shift);

/**
 * As the functions of fsdpi_kernels that are called so, in f64, each operation rounded on its own: the same for every instruction
 * set. The arrays have the alignment of their type, and do not overlap.
 */
void fsdpi_accumulate_f64(double *sum, bool fresh, const double *x, double factor, size_t count);
void fsdpi_adam_f64(double *w, const double *g, double *m, double *v, size_t count, const fsdpi_update_f64 *c);
void fsdpi_adamw_f64(double *w, const double *g, double *m, double *v, size_t count, const fsdpi_update_f64 *c);
void fsdpi_lion_f64(double *w, const double *g, double *m, size_t count, const fsdpi_update_f64 *c);
void fsdpi_sgd_f64(double *w, const double *g, double *b, size_t count, const fsdpi_update_f64 *c);

typedef struct fsdpi_kernels {
    const char *name; /* "scalar", "avx2", "avx512", "neon" */

    /**
     * out[i] = in[0][i] op in[1][i] op ... in[n_in - 1][i], accumulated strictly in that order (bf16 and f16 in f32,
     * one rounding to nearest even at the end). FSDP_AVG divides by `divisor` before that rounding; of integers, the
     * wrapped sum. Other reductions ignore `divisor`. FSDP_MIN and FSDP_MAX yield the first of equal operands, which shows in
     * the sign of zero. `out` may be one of the inputs, and else overlaps none. n_in >= 1.
     */
    void (*reduce)(void *out, const void *const *in, size_t n_in, size_t count, fsdp_dtype dtype, fsdp_redop op,
                   size_t divisor);

    /**
     * The same into several outputs, each of which may be one of the inputs. The first `n_past` go past the caches: for
     * what nobody reads before it would have left them. All are complete, for other processors too, when it returns.
     */
    void (*reduce_into)(void *const *out, size_t n_out, const void *const *in, size_t n_in, size_t count,
                        fsdp_dtype dtype, fsdp_redop op, size_t divisor, size_t n_past);

    /** Copies `bytes` through the caches, as memcpy(); on some processors faster, where the input is in no cache. No overlap. */
    void (*copy)(void *out, const void *in, size_t bytes);

    /** Copies `bytes` past the caches: for what nobody reads before it would have left them. No overlap. Complete, for other
     *  processors too, when it returns. */
    void (*stream)(void *out, const void *in, size_t bytes);

    /**
     * out[i] = in[i] in another of f64, f32, bf16, f16: rounded once, to nearest even, overflow to infinity. NaN keeps
     * its sign and the leading bits of its payload and becomes quiet. To the same type it copies the bits, whatever
     * they are. `out` and `in` do not overlap.
     */
    void (*cast)(void *out, fsdp_dtype out_dtype, const void *in, fsdp_dtype in_dtype, size_t count);

    /** x[i] *= factor, in f64; of f32, bf16 and f16 in f32, with `factor` rounded to f32, and then rounded. */
    void (*scale)(void *x, double factor, size_t count, fsdp_dtype dtype);

    /**
     * sum[i] += factor x[i] of f32, bf16 or f16, in f32, with `factor` rounded to f32 and the product rounded before it is
     * added; `fresh`: sum[i] = factor x[i]. The arrays do not overlap.
     */
    void (*accumulate)(float *sum, bool fresh, const void *x, fsdp_dtype dtype, double factor, size_t count);

    /**
     * Adds x[i]^2 of f32, bf16 or f16 to `sum`, exactly; its digits but the last are in 0 .. 2^32 - 1 afterwards. Subnormals count
     * whatever the processor was told.
     */
    void (*sum_squares)(fsdpi_exact_sum *sum, const void *x, size_t count, fsdp_dtype dtype);

    /** The largest of |x[i]|, or NaN where any element is; 0 for no elements. Exact. f64, f32, bf16, f16. */
    double (*absolute_maximum)(const void *x, size_t count, fsdp_dtype dtype);

    /**
     * x[i] = -limit where that is larger, `limit` where that is smaller, and x[i] else; so is NaN, which stays NaN. In
     * f64; of f32, bf16 and f16 in f32, with `limit` rounded to f32, and then rounded. limit >= 0.
     */
    void (*clamp)(void *x, double limit, size_t count, fsdp_dtype dtype);

    /**
     * One Adam step (Kingma and Ba, 2015) on f32 arrays, weight decay added to the gradient: d = g + wd * w;
     * m = b1 m + r1 d; v = b2 v + r2 (d d); w = w - (lr * (m / c1)) / (sqrt(v / c2) + eps), each operation
     * rounded to f32 on its own, in the order of the brackets. The arrays do not overlap.
     */
    void (*adam)(float *w, const float *g, float *m, float *v, size_t count, const fsdpi_adam *c);

    /**
     * One AdamW step (Loshchilov and Hutter, 2019) on f32 arrays: m = b1 m + r1 g; v = b2 v + r2 (g g);
     * w = (w - (lr * wd) * w) - (lr * (m / c1)) / (sqrt(v / c2) + eps), each operation rounded to f32 on its own, in
     * the order of the brackets. The arrays do not overlap.
     */
    void (*adamw)(float *w, const float *g, float *m, float *v, size_t count, const fsdpi_adam *c);

    /**
     * One Lion step (Chen et al., 2023) on f32 arrays: u = sign(b1 m + (1 - b1) g); m = b2 m + (1 - b2) g;
     * w = (w - (lr * wd) * w) - lr * u, each operation rounded on its own, in the order of the brackets. The sign of what
     * is above 0 is 1, of what is below -1; a zero and a NaN are their own. The arrays do not overlap.
     */
    void (*lion)(float *w, const float *g, float *m, size_t count, const fsdpi_lion *c);

    /**
     * One SGD step on f32 arrays: d = g + wd * w; with momentum: b = first ? d : mu * b + d, d = nesterov ? d + mu * b
     * : b; then w = w - lr * d. Each operation is rounded on its own. Where momentum is 0, `b` may be NULL and is not
     * touched, and `nesterov` is ignored. The arrays do not overlap.
     */
    void (*sgd)(float *w, const float *g, float *b, size_t count, const fsdpi_sgd *c);

    /**
     * A product of matrices. Each element of C is c = beta d, rounded, or 0 where beta is 0; then for every FSDPI_PRODUCT_DEPTH
     * columns of A, the last ones fewer, in their order: s = 0; s = s + a b for each of them in order; c = c + alpha s. Sum and
     * product are rounded once, together (fused): here alone, since half of the speed depends on it, and every instruction set
     * has it. The blocks that fit caches and registers change no bit.
     */
    void (*multiply)(const fsdpi_product *product);
} fsdpi_kernels;

/** The plain reference: what the others are held against, and what runs where nothing better is known. */
extern const fsdpi_kernels fsdpi_kernels_scalar;

/**
 * The table of an instruction set: "scalar", "avx2", "avx512" or "neon"; "auto" is the best that this processor has.
 * @return NULL if the name is none, or if this build or this processor lacks that instruction set.
 */
const fsdpi_kernels *fsdpi_kernels_find(const char *name);

/** Whether on this processor what no cache of this core holds is best written past the caches, however little it is. */
bool fsdpi_kernels_favour_past(void);

#endif
