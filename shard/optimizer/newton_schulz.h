/**
 * @file
 * Matrices made orthogonal, nearly: Newton and Schulz's iteration as Jordan et al. (2024) use it.
 */
#ifndef FSDPI_NEWTON_SCHULZ_H
#define FSDPI_NEWTON_SCHULZ_H

#include <stddef.h>

#include "kernels/kernels.h"

/** BYTES of scratch for a matrix of this shape. */
size_t fsdpi_newton_schulz_bytes(size_t rows, size_t columns, fsdp_dtype dtype);

/**
 * Of a matrix G: X = G / (|G| + eps), |G| being the root of the sum of squares; then five times A = X X^T, B = b A + c A A, X = a X +
 * B X with a = 3.4445, b = -4.7750, c = 2.0315. Of a matrix with more rows than columns, A = X^T X and X = a X + X B, which is the
 * same as transposing it before and behind. The singular values become 0.7 to 1.2, but those that are tiny beside the largest.
 *
 * In f32 or f64, with the same bits for every instruction set. |G| does not overflow; X is NaN where G has a NaN or an infinity.
 *
 * @param[in,out] g        row-major; its values are lost
 * @param[in]     scratch  fsdpi_newton_schulz_bytes()
 * @return X, which is in `scratch`
 */
const void *fsdpi_newton_schulz(const fsdpi_kernels *kernels, void *g, size_t rows, size_t columns, fsdp_dtype dtype,
                                double eps, void *scratch);

#endif
