/**
 * @file
 * Products of a matrix with thin factors. A matrix is row-major, `rows` x `columns`; a factor is its `rank` vectors, one
 * after the other. Local. Sums are taken in one fixed order; plain C, so the same bits on every processor. Nothing overlaps.
 */
#ifndef FSDPI_LOW_RANK_H
#define FSDPI_LOW_RANK_H

#include <stddef.h>

typedef struct fsdpi_matrix_shape {
    size_t rows, columns, rank;
} fsdpi_matrix_shape;

/** left = matrix x right: `rank` vectors of `rows`. */
void fsdpi_left_factor(fsdpi_matrix_shape shape, const float *matrix, const float *right, float *left);

/** right = transposed matrix x left: `rank` vectors of `columns`. */
void fsdpi_right_factor(fsdpi_matrix_shape shape, const float *matrix, const float *left, float *right);

/** product = left x transposed right. */
void fsdpi_multiply_factors(fsdpi_matrix_shape shape, const float *left, const float *right, float *product);

/** rest = matrix - left x transposed right. */
void fsdpi_subtract_factors(fsdpi_matrix_shape shape, const float *matrix, const float *left, const float *right,
                            float *rest);

/**
 * Makes `rank` vectors of `n` orthonormal, in order (Gram and Schmidt), each twice, since what is left of a nearly dependent
 * one is mostly rounding ("twice is enough": Giraud, Langou and Rozloznik, 2005). A vector of which nothing is left becomes 0.
 * Values that are not finite go through to all later vectors as NaN.
 */
void fsdpi_orthonormalise(float *vectors, size_t n, size_t rank);

/** out = x / its 2-norm. Leaves `out` as it is, where x is 0. May be in place. */
void fsdpi_normalise(const float *x, size_t n, float *out);

#endif
