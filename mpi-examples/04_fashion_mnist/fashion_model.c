#include "fashion_model.h"

#include <cblas.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Every buffer begins on a multiple of this many bytes. */
#define ALIGNMENT 64

#define TAPS (FASHION_KERNEL * FASHION_KERNEL)

#define gemm _Generic((real)0, float : cblas_sgemm, double : cblas_dgemm)

/* A block takes maps_in maps of size x size and gives maps_out of half the size. */
static const struct {
    size_t      maps_in, maps_out, size;
    const char *unit, *names[FASHION_MOST_TENSORS];
} blocks[FASHION_BLOCKS] = {
    {1, 16, FASHION_SIZE, "conv1", {"conv1.weight", "bn1.weight", "bn1.bias"}},
    {16, 32, FASHION_SIZE / 2, "conv2", {"conv2.weight", "bn2.weight", "bn2.bias"}},
};

enum { HEAD_IN = 32 * (FASHION_SIZE / 4) * (FASHION_SIZE / 4) }; /* what the last block gives, per image */

/* What the backward pass of a block needs of its forward pass; n images. */
typedef struct block_activations {
    real          *convolved;  /* n x maps_out x size x size */
    real          *normalized; /* the same */
    real          *pooled;     /* n x maps_out x half x half */
    unsigned char *chosen;     /* as many */
} block_activations;

struct fashion_activations {
    size_t            n;
    unsigned char    *storage;
    real             *images; /* n x 1 x size x size */
    block_activations blocks[FASHION_BLOCKS];
    real             *logits;   /* n x FASHION_CLASSES: then probabilities, then their gradients */
    real             *columns;  /* of one image: maps_in TAPS x size x size */
    real             *d_pooled; /* the gradient of a block's result */
    real             *d_normalized;
};

size_t fashion_unit_tensors(size_t unit)
{
    return unit == FASHION_HEAD ? 2 : FASHION_MOST_TENSORS;
}

const char *fashion_unit_name(size_t unit)
{
    return unit == FASHION_HEAD ? "fc" : blocks[unit].unit;
}

/* Deviations are those of He et al., "Delving deep into rectifiers" (2015), for the convolutions. */
static fashion_tensor block_tensor(size_t block, size_t i)
{
    const size_t in = blocks[block].maps_in, out = blocks[block].maps_out;

    if (i == FASHION_CONV_WEIGHT) {
        return (fashion_tensor){.name      = blocks[block].names[i],
                                .n_dims    = 4,
                                .shape     = {out, in, FASHION_KERNEL, FASHION_KERNEL},
                                .elements  = out * in * TAPS,
                                .deviation = sqrt(2.0 / (double)(in * TAPS)),
                                .decays    = 1};
    }
    return (fashion_tensor){.name     = blocks[block].names[i],
                            .n_dims   = 1,
                            .shape    = {out},
                            .elements = out,
                            .mean     = i == FASHION_NORM_WEIGHT ? 1 : 0};
}

fashion_tensor fashion_unit_tensor(size_t unit, size_t i)
{
    if (unit < FASHION_HEAD) {
        return block_tensor(unit, i);
    }
    return i == FASHION_FC_WEIGHT
               ? (fashion_tensor){.name      = "fc.weight",
                                  .n_dims    = 2,
                                  .shape     = {FASHION_CLASSES, HEAD_IN},
                                  .elements  = (size_t)FASHION_CLASSES * HEAD_IN,
                                  .deviation = sqrt(1 / (double)HEAD_IN),
                                  .decays    = 1}
               : (fashion_tensor){
                     .name = "fc.bias", .n_dims = 1, .shape = {FASHION_CLASSES}, .elements = FASHION_CLASSES};
}

static size_t unit_elements(size_t unit)
{
    size_t elements = 0, i;

    for (i = 0; i < fashion_unit_tensors(unit); i++) {
        elements += fashion_unit_tensor(unit, i).elements;
    }
    return elements;
}

size_t fashion_parameters(void)
{
    size_t elements = 0, unit;

    for (unit = 0; unit < FASHION_N_UNITS; unit++) {
        elements += unit_elements(unit);
    }
    return elements;
}

static size_t pixels_of(size_t block)
{
    return blocks[block].size * blocks[block].size;
}

/* Cuts the next buffer off the storage; with no storage yet, only counts. */
static void *cut(unsigned char *storage, size_t *used, size_t count, size_t size)
{
    void *buffer = storage ? storage + *used : NULL;

    *used += (count * size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return buffer;
}

/* Lays all buffers for n images out and returns how many bytes they take. */
static size_t cut_all(fashion_activations *a, unsigned char *storage, size_t n)
{
    size_t used = 0, columns = 0, widest = 0, block;

    a->images = cut(storage, &used, n * FASHION_PIXELS, sizeof(real));
    for (block = 0; block < FASHION_BLOCKS; block++) {
        block_activations *b    = &a->blocks[block];
        const size_t       wide = blocks[block].maps_out * pixels_of(block);
        const size_t       rows = blocks[block].maps_in * TAPS * pixels_of(block);

        b->convolved  = cut(storage, &used, n * wide, sizeof(real));
        b->normalized = cut(storage, &used, n * wide, sizeof(real));
        b->pooled     = cut(storage, &used, n * wide / 4, sizeof(real));
        b->chosen     = cut(storage, &used, n * wide / 4, 1);
        columns       = rows > columns ? rows : columns;
        widest        = wide > widest ? wide : widest;
    }
    a->logits       = cut(storage, &used, n * FASHION_CLASSES, sizeof(real));
    a->columns      = cut(storage, &used, columns, sizeof(real));
    a->d_pooled     = cut(storage, &used, n * widest / 4, sizeof(real));
    a->d_normalized = cut(storage, &used, n * widest, sizeof(real));
    return used;
}

size_t fashion_activations_bytes(size_t most_images)
{
    fashion_activations a;
    const size_t        one = cut_all(&a, NULL, 1);

    return most_images < PTRDIFF_MAX / one ? cut_all(&a, NULL, most_images) : 0;
}

fashion_activations *fashion_activations_create(size_t most_images)
{
    const size_t         bytes = fashion_activations_bytes(most_images);
    fashion_activations *a     = bytes ? calloc(1, sizeof *a) : NULL;

    if (!a) {
        return NULL;
    }
    a->storage = aligned_alloc(ALIGNMENT, bytes);
    if (!a->storage) {
        fashion_activations_destroy(a);
        return NULL;
    }
    (void)cut_all(a, a->storage, most_images);
    return a;
}

void fashion_activations_destroy(fashion_activations *a)
{
    if (!a) {
        return;
    }
    free(a->storage);
    free(a);
}

void fashion_set_images(fashion_activations *a, size_t n)
{
    a->n = n;
}

real *fashion_image(fashion_activations *a, size_t i)
{
    return a->images + i * FASHION_PIXELS;
}

fashion_norm fashion_norm_of(fashion_activations *a, size_t block)
{
    return (fashion_norm){.images   = a->n,
                          .maps     = blocks[block].maps_out,
                          .pixels   = pixels_of(block),
                          .in       = a->blocks[block].convolved,
                          .out      = a->blocks[block].normalized,
                          .gradient = a->d_normalized};
}

/* c = a b + beta c, with c of m x n, and a or b transposed where asked for. No matrix has gaps between its rows. */
static void matmul(int transpose_a, int transpose_b, size_t m, size_t n, size_t k, const real *a, const real *b,
                   real beta, real *c)
{
    if (m == 0 || n == 0) {
        return;
    }
    gemm(CblasRowMajor, transpose_a ? CblasTrans : CblasNoTrans, transpose_b ? CblasTrans : CblasNoTrans, (int)m,
         (int)n, (int)k, 1, a, (int)(transpose_a ? m : k), b, (int)(transpose_b ? k : n), beta, c, (int)n);
}

/* Image `i` as a block takes it. */
static const real *block_in(const fashion_activations *a, size_t block, size_t i)
{
    const real *in = block == 0 ? a->images : a->blocks[block - 1].pooled;

    return in + i * blocks[block].maps_in * pixels_of(block);
}

void fashion_convolve(fashion_activations *a, size_t block, const real *const *params)
{
    const size_t pixels = pixels_of(block), rows = blocks[block].maps_in * TAPS, maps = blocks[block].maps_out;
    size_t       i;

    for (i = 0; i < a->n; i++) {
        fashion_im2col(blocks[block].maps_in, blocks[block].size, block_in(a, block, i), a->columns);
        matmul(0, 0, maps, pixels, rows, params[FASHION_CONV_WEIGHT], a->columns, 0,
               a->blocks[block].convolved + i * maps * pixels);
    }
}

void fashion_pool(fashion_activations *a, size_t block)
{
    block_activations *b = &a->blocks[block];

    fashion_relu_pool(a->n * blocks[block].maps_out, blocks[block].size, b->normalized, b->pooled, b->chosen);
}

void fashion_head(fashion_activations *a, const real *const *params)
{
    size_t i;

    for (i = 0; i < a->n; i++) {
        memcpy(a->logits + i * FASHION_CLASSES, params[FASHION_FC_BIAS], FASHION_CLASSES * sizeof(real));
    }
    matmul(0, 1, a->n, FASHION_CLASSES, HEAD_IN, a->blocks[FASHION_BLOCKS - 1].pooled, params[FASHION_FC_WEIGHT], 1,
           a->logits);
}

size_t fashion_favourite(const fashion_activations *a, size_t i)
{
    const real *logits = a->logits + i * FASHION_CLASSES;
    size_t      best   = 0, c;

    for (c = 1; c < FASHION_CLASSES; c++) {
        best = logits[c] > logits[best] ? c : best;
    }
    return best;
}

double fashion_loss(fashion_activations *a, const unsigned char *labels)
{
    double loss = 0;
    size_t i;

    for (i = 0; i < a->n; i++) {
        real        *logits = a->logits + i * FASHION_CLASSES;
        const double label  = (double)logits[labels[i]];

        loss += fashion_softmax(FASHION_CLASSES, logits) - label;
    }
    return loss;
}

/* The gradient of the loss by the logits: weight (probability - [is the label]). */
static void loss_backward(fashion_activations *a, const unsigned char *labels, double weight)
{
    size_t i;

    for (i = 0; i < a->n; i++) {
        a->logits[i * FASHION_CLASSES + labels[i]] -= 1;
    }
    for (i = 0; i < a->n * FASHION_CLASSES; i++) {
        a->logits[i] *= (real)weight;
    }
}

void fashion_head_backward(fashion_activations *a, const unsigned char *labels, double weight,
                           const real *const *params, real *const *grads)
{
    size_t i, c;

    loss_backward(a, labels, weight);
    for (i = 0; i < a->n; i++) {
        for (c = 0; c < FASHION_CLASSES; c++) {
            grads[FASHION_FC_BIAS][c] += a->logits[i * FASHION_CLASSES + c];
        }
    }
    if (a->n == 0) {
        return;
    }
    matmul(1, 0, FASHION_CLASSES, HEAD_IN, a->n, a->logits, a->blocks[FASHION_BLOCKS - 1].pooled, 1,
           grads[FASHION_FC_WEIGHT]);
    matmul(0, 0, a->n, HEAD_IN, FASHION_CLASSES, a->logits, params[FASHION_FC_WEIGHT], 0, a->d_pooled);
}

void fashion_pool_backward(fashion_activations *a, size_t block)
{
    fashion_relu_pool_backward(a->n * blocks[block].maps_out, blocks[block].size, a->d_pooled, a->blocks[block].chosen,
                               a->d_normalized);
}

/* The columns are laid out again: to keep those of all images would take 25 times the memory of the images. The first
 * block's images need no gradient. */
void fashion_convolve_backward(fashion_activations *a, size_t block, const real *const *params, real *const *grads)
{
    const size_t pixels = pixels_of(block), rows = blocks[block].maps_in * TAPS, maps = blocks[block].maps_out;
    size_t       i;

    for (i = 0; i < a->n; i++) {
        const real *d = a->d_normalized + i * maps * pixels;

        fashion_im2col(blocks[block].maps_in, blocks[block].size, block_in(a, block, i), a->columns);
        matmul(0, 1, maps, rows, pixels, d, a->columns, 1, grads[FASHION_CONV_WEIGHT]);
        if (block > 0) {
            matmul(1, 0, rows, pixels, maps, params[FASHION_CONV_WEIGHT], d, 0, a->columns);
            fashion_col2im(blocks[block].maps_in, blocks[block].size, a->columns,
                           a->d_pooled + i * blocks[block].maps_in * pixels);
        }
    }
}
