/**
 * @file
 * The network: two blocks, each a convolution, batch normalization, ReLU and 2 x 2 max-pooling, and a linear layer. Pure
 * computation on parameters and gradients that the caller provides: nothing here knows about MPI. Batch normalization,
 * which needs the samples of all ranks, is the caller's, between the two halves of a block.
 *
 * Tensor names and shapes are PyTorch's. The convolutions have no bias: batch normalization would take it away again.
 */
#ifndef FASHION_MODEL_H
#define FASHION_MODEL_H

#include <stddef.h>

#include "fashion_math.h"
#include "mpi-examples/common/fashion_images.h"

#define FASHION_BLOCKS 2

/** The units of the network, in order of the forward pass: the blocks, then the head. */
enum { FASHION_HEAD = FASHION_BLOCKS, FASHION_N_UNITS };

/** The tensors of a block, and of the head. */
enum { FASHION_CONV_WEIGHT, FASHION_NORM_WEIGHT, FASHION_NORM_BIAS, FASHION_MOST_TENSORS };
enum { FASHION_FC_WEIGHT, FASHION_FC_BIAS };

/** What the program needs to know of a tensor. Initial values are drawn with mean `mean` and deviation `deviation`. */
typedef struct fashion_tensor {
    const char *name;
    size_t      n_dims, shape[4], elements;
    double      mean, deviation;
    int         decays; /* whether weight decay applies: matrices only */
} fashion_tensor;

/** How many tensors a unit has, and a description of one. */
size_t         fashion_unit_tensors(size_t unit);
fashion_tensor fashion_unit_tensor(size_t unit, size_t i);

/** The name of a unit. */
const char *fashion_unit_name(size_t unit);

/** How many parameters the network has. */
size_t fashion_parameters(void);

/** What a forward pass leaves for the backward pass, and the space that both work in. */
typedef struct fashion_activations fashion_activations;

/** BYTES that fashion_activations_create() takes; 0 if more than memory can address. */
size_t fashion_activations_bytes(size_t most_images);

/** Space for up to `most_images` images. @return NULL: out of memory. */
fashion_activations *fashion_activations_create(size_t most_images);
void                 fashion_activations_destroy(fashion_activations *a);

/** Says how many images the next pass works on; then image `i` of it can be written. */
void  fashion_set_images(fashion_activations *a, size_t n);
real *fashion_image(fashion_activations *a, size_t i);

/** What lies between the halves of a block: images x maps x pixels, to be normalized from `in` to `out`. */
typedef struct fashion_norm {
    size_t images, maps, pixels;
    real  *in, *out;
    real  *gradient; /* in the backward pass: that of `out`, to become that of `in` */
} fashion_norm;

fashion_norm fashion_norm_of(fashion_activations *a, size_t block);

/*
 * Forward: for each block convolve, (normalize), pool; head, loss. Backward: head; for each block, the last first, pool,
 * (normalize), convolve. `params` and `grads` are a unit's tensors in the order of the enumerations. Gradients are added to.
 */

void fashion_convolve(fashion_activations *a, size_t block, const real *const *params);
void fashion_pool(fashion_activations *a, size_t block);

/** Ends with the logits of every image. */
void fashion_head(fashion_activations *a, const real *const *params);

/** The class that the logits or probabilities of image `i` favour. */
size_t fashion_favourite(const fashion_activations *a, size_t i);

/** The sum of -ln(probability of the label) over the images. Logits become probabilities. */
double fashion_loss(fashion_activations *a, const unsigned char *labels);

/** The gradients are those of `weight` times the sum of the losses; follows fashion_loss(). */
void fashion_head_backward(fashion_activations *a, const unsigned char *labels, double weight,
                           const real *const *params, real *const *grads);
void fashion_pool_backward(fashion_activations *a, size_t block);
void fashion_convolve_backward(fashion_activations *a, size_t block, const real *const *params, real *const *grads);

#endif
