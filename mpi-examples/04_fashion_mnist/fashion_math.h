/**
 * @file
 * What a convolutional network does between its matrix products, forward and backward. Images are channels first, square,
 * row-major; kernels are FASHION_KERNEL wide and keep the size of an image, around which there are zeros.
 */
#ifndef FASHION_MATH_H
#define FASHION_MATH_H

#include <stddef.h>

/** The type of all weights and activations. The gradient test compiles the same source with double. */
#ifdef FASHION_DOUBLE
typedef double real;
#else
typedef float real;
#endif

#define FASHION_KERNEL 5

/**
 * Lays out an image of `maps` x size x size so that a convolution becomes a matrix product: row (map, ky, kx) of `columns`
 * is the map shifted by the place of (ky, kx) in the kernel, size x size elements.
 */
void fashion_im2col(size_t maps, size_t size, const real *image, real *columns);

/** The gradient of that: each element of the image becomes the sum of its copies. */
void fashion_col2im(size_t maps, size_t size, const real *columns, real *image);

/**
 * ReLU, and then the largest of each 2 x 2, of `planes` planes of size x size, an even size.
 * @param[out] chosen  which of the four it was, 0 to 3; 4 where none was above 0
 */
void fashion_relu_pool(size_t planes, size_t size, const real *in, real *out, unsigned char *chosen);

/** The gradient of that by `in`, all of which is set. */
void fashion_relu_pool_backward(size_t planes, size_t size, const real *d_out, const unsigned char *chosen, real *d_in);

/** Turns `n` logits into probabilities and returns the logarithm of the sum of their exponentials. */
double fashion_softmax(size_t n, real *logits);

#endif
