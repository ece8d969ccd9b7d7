/**
 * @file
 * Batch normalization over the samples of all ranks, like PyTorch's SyncBatchNorm: every rank normalizes with the mean and
 * the variance of the whole batch, however it is divided.
 *
 * The method is Ioffe and Szegedy, "Batch normalization: accelerating deep network training by reducing internal covariate
 * shift" (2015). Each pass exchanges once: the forward pass gathers count, mean and sum of squared deviations of each rank
 * and merges them in rank order (Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample
 * variances", 1979), weighted by the counts, which may differ and be 0; the backward pass reduces two sums per channel.
 * Sums run in f64 in a fixed order: statistics are bitwise the same on all ranks and in every run.
 *
 *     fsdp_batch_norm_options bn = FSDP_BATCH_NORM_OPTIONS_DEFAULT;
 *     fsdp_batch_norm_forward(ctx, &shape, &bn, x, weight, bias, &running, y, &saved);
 *     fsdp_batch_norm_backward(ctx, &shape, x, weight, &saved, dy, dx, d_weight, d_bias);
 *     fsdp_batch_norm_evaluate(ctx, &shape, &bn, x, weight, bias, &running, y);       (local)
 *
 * Weight and bias are usually tensors of a unit, d_weight and d_bias their gradient views: gradients over this rank's
 * samples, which fsdp_unit_end_backward() reduces like all others.
 *
 * Errors, the same on every rank for the collective functions: FSDP_ERR_ARG: a NULL pointer, no channels, a size in bytes that
 * overflows, an eps or momentum out of range; FSDP_ERR_MISMATCH: ranks differ in channels, eps, momentum or what was saved;
 * FSDP_ERR_MEMORY. In these cases nothing has been written, and the context is still good. FSDP_ERR_MPI, FSDP_ERR_TIMEOUT: the context
 * can only be finalized.
 */
#ifndef FSDP_BATCH_NORM_H
#define FSDP_BATCH_NORM_H

#include <stddef.h>

#include "fsdp/export.h"
#include "fsdp/status.h"

/** A rank's part of a batch: f32, samples x channels x pixels, row-major (PyTorch's N x C x H x W, N x C x L or N x C). */
typedef struct fsdp_batch_norm_shape {
    size_t samples;  /**< of this rank; may differ between ranks and be 0, where tensors may be NULL */
    size_t channels; /**< at least 1, the same on all ranks */
    size_t pixels;   /**< per sample and channel: height x width, or 1; may differ between ranks */
} fsdp_batch_norm_shape;

/** The same on all ranks. */
typedef struct fsdp_batch_norm_options {
    size_t size; /**< BYTES of this struct: FSDP_BATCH_NORM_OPTIONS_DEFAULT or fsdp_batch_norm_options_init() sets it */
    double eps;  /**< added to the variance; above 0 */
    double momentum; /**< 0 to 1: how far running statistics move towards those of each batch */
} fsdp_batch_norm_options;

/** PyTorch's. */
#define FSDP_BATCH_NORM_OPTIONS_DEFAULT                                                                                \
    {                                                                                                                  \
        sizeof(fsdp_batch_norm_options), 1e-5, 0.1                                                                     \
    }

/** Statistics for use after training: `channels` elements each, the caller's; set to 0 and 1 before the first step. */
typedef struct fsdp_batch_norm_running {
    float *mean;
    float *variance; /**< the unbiased estimate: sums divided by count - 1 */
} fsdp_batch_norm_running;

/** What a forward pass saves for its backward pass. The two arrays are the caller's, `channels` elements each. */
typedef struct fsdp_batch_norm_saved {
    double *mean;  /**< over all ranks */
    double *scale; /**< 1 / sqrt(variance + eps), with the variance of the batch: sums divided by count */
    double  count; /**< elements per channel over all ranks; set by the forward pass */
} fsdp_batch_norm_saved;

FSDP_EXTERN_C_BEGIN

/**
 * Sets all fields to FSDP_BATCH_NORM_OPTIONS_DEFAULT. Local; `options` must not be NULL.
 *
 * fsdp_batch_norm_options_init_size() is for other languages: it sets the first `size` BYTES, as far as the library knows them, and those
 * behind them to zero. `size` is above sizeof(size_t).
 */
FSDP_API void      fsdp_batch_norm_options_init_size(fsdp_batch_norm_options *options, size_t size);
static inline void fsdp_batch_norm_options_init(fsdp_batch_norm_options *options)
{
    fsdp_batch_norm_options_init_size(options, sizeof *options);
}

/**
 * y = (x - mean) / sqrt(variance + eps) * weight + bias, with mean and variance over the samples and pixels of all ranks.
 * Collective over the context. Blocking. Meanwhile holds size x (2 channels + 1) f64 of bookkeeping.
 *
 * @param[in]     x        as `shape` says
 * @param[in]     weight   `channels` elements, as `bias`
 * @param[in,out] running  running += momentum x (that of the batch - running); or NULL
 * @param[out]    y        as `x`, which it does not overlap: the backward pass reads x again
 * @param[out]    saved    for the backward pass
 * @return as listed on top; also FSDP_ERR_ARG where all ranks together have fewer than 2 elements per channel.
 */
FSDP_API fsdp_status fsdp_batch_norm_forward(fsdp_context *ctx, const fsdp_batch_norm_shape *shape,
                                             const fsdp_batch_norm_options *options, const float *x,
                                             const float *weight, const float *bias, fsdp_batch_norm_running *running,
                                             float *y, fsdp_batch_norm_saved *saved);

/**
 * The gradients of a forward pass. Collective over the context. Blocking. Meanwhile holds 4 x channels f64 of bookkeeping.
 *
 * @param[in]     x         as in the forward pass; likewise `shape` and `weight`
 * @param[in]     saved     from the forward pass
 * @param[in]     dy        the gradient with respect to y
 * @param[out]    dx        the gradient with respect to x, which depends on the samples of all ranks; may be `dy`
 * @param[in,out] d_weight  the gradient over this rank's samples is added to it; likewise `d_bias`
 * @return as listed on top.
 */
FSDP_API fsdp_status fsdp_batch_norm_backward(fsdp_context *ctx, const fsdp_batch_norm_shape *shape, const float *x,
                                              const float *weight, const fsdp_batch_norm_saved *saved, const float *dy,
                                              float *dx, float *d_weight, float *d_bias);

/**
 * Normalizes with running statistics: y = (x - mean) / sqrt(variance + eps) * weight + bias. Local.
 *
 * @param[in]  options  only eps is used
 * @param[out] y        as `x`; may be `x`
 * @return FSDP_OK; FSDP_ERR_ARG.
 */
FSDP_API fsdp_status fsdp_batch_norm_evaluate(fsdp_context *ctx, const fsdp_batch_norm_shape *shape,
                                              const fsdp_batch_norm_options *options, const float *x,
                                              const float *weight, const float *bias,
                                              const fsdp_batch_norm_running *running, float *y);

FSDP_EXTERN_C_END

#endif
