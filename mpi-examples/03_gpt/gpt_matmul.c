#include "gpt_matmul.h"

#include <cblas.h>

#define gemm _Generic((real)0, float : cblas_sgemm, double : cblas_dgemm)

void gpt_matmul(gpt_profile *profile, size_t m, size_t n, size_t k, real alpha, gpt_matrix a, gpt_matrix b, real beta,
                real *c, size_t stride)
{
    gemm(CblasRowMajor, a.transposed ? CblasTrans : CblasNoTrans, b.transposed ? CblasTrans : CblasNoTrans, (int)m,
         (int)n, (int)k, alpha, a.elements, (int)a.stride, b.elements, (int)b.stride, beta, c, (int)stride);
    gpt_profile_lap(profile, GPT_PART_MATMUL);
}
