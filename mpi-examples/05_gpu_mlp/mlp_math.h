/**
 * @file
 * What the network is computed with: on the host (mlp_host.c) and on a GPU (mlp_kernels.cpp), by the same rules, so that
 * both give the same up to the last bits of exp(). All arrays are f32 and row-major, where the network is computed.
 */
#ifndef MLP_MATH_H
#define MLP_MATH_H

#include <stddef.h>

/** A matrix, or its transpose: element (r, c) is at data[r * row + c * column]. */
typedef struct mlp_matrix {
    const float *data;
    size_t       row, column;
} mlp_matrix;

/** out = a b: `rows` x `columns`, each a sum of `steps` products in their order. Without steps it is 0. */
typedef struct mlp_product {
    mlp_matrix   a, b;
    size_t       rows, columns, steps;
    float       *out;
    const float *bias;    /* added to each row; or NULL */
    int          rectify; /* what is below 0 becomes 0 */
    const float *gate;    /* as large as `out`: what is 0 there or less becomes 0; or NULL */
} mlp_product;

/** What a layer does with the sum of its parts: a bias is added to each row, and with `rectify` what is below 0 becomes 0. In place. */
typedef struct mlp_activation {
    float       *values;
    size_t       rows, columns;
    const float *bias;
    int          rectify;
} mlp_activation;

/** The columns of a matrix of `rows` x `columns` added up. */
typedef struct mlp_sum {
    const float *data;
    size_t       rows, columns;
    float       *out;
} mlp_sum;

/** Softmax and cross-entropy of rows of logits, which become `scale` times the gradient of the loss. */
typedef struct mlp_loss {
    float               *logits;
    const unsigned char *labels;
    size_t               rows, columns;
    float                scale;
    float               *losses; /* of each row */
    unsigned char       *found;  /* whether the largest logit of each row is that of its label */
} mlp_loss;

#endif
