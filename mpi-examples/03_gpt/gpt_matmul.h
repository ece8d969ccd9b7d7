/**
 * @file
 * The matrix product, by CBLAS.
 */
#ifndef GPT_MATMUL_H
#define GPT_MATMUL_H

#include <stddef.h>

#include "gpt_math.h"
#include "gpt_profile.h"

/** A matrix as it lies in memory: its elements, and how many from one row to the next. */
typedef struct gpt_matrix {
    const real *elements;
    size_t      stride;
    int         transposed; /* what is multiplied is its transpose */
} gpt_matrix;

/** c = alpha a b + beta c, with c of m x n and k summands for each element. Its time is a lap of `profile`. */
void gpt_matmul(gpt_profile *profile, size_t m, size_t n, size_t k, real alpha, gpt_matrix a, gpt_matrix b, real beta,
                real *c, size_t stride);

/** A matrix whose rows follow each other without gaps. */
static inline gpt_matrix gpt_rows(const real *elements, size_t columns)
{
    return (gpt_matrix){elements, columns, 0};
}

static inline gpt_matrix gpt_transposed(const real *elements, size_t columns)
{
    return (gpt_matrix){elements, columns, 1};
}

#endif
