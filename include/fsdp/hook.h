/**
 * @file
 * Gradient hooks: how a unit's gradient is averaged over the ranks. A hook compresses what is sent, or calls the program
 * before and after the reduction.
 *
 *     fsdp_power_sgd_options options = FSDP_POWER_SGD_OPTIONS_DEFAULT;
 *     fsdp_hook_power_sgd(ctx, &options, &hook);
 *
 * Common to all hooks:
 * - The result is bitwise the same on all ranks, and the same in every run.
 * - A hook serves one model: it keeps state per unit, keyed by the unit's name, on each rank. fsdp_checkpoint_load() into that
 *   model clears it, but for what was saved of fsdp_hook_int8(); when its loss scaler changes the scale, the state is rescaled
 *   too.
 * - It computes on the host. A gradient of a model on a GPU is copied to host memory, the host waits for it, and the mean is
 *   copied back: the bits are those of a model on the host. From fsdp_model_set_hook() on, such a model holds room for its
 *   longest gradient.
 * - With one rank nothing is sent, nothing is compressed, and the gradient stays as it is.
 * - If a gradient is infinite or NaN on any rank, so is the result, in that element or in more, so that a loss scaler finds
 *   it; the hook's state of that unit then stays as it was.
 *
 * Making a hook is collective over `ctx`: a wrong argument on one rank is FSDP_ERR_ARG on every rank, options that differ
 * are FSDP_ERR_MISMATCH, and FSDP_ERR_MEMORY, FSDP_ERR_MPI and FSDP_ERR_TIMEOUT are possible. After an error, `*hook` is NULL.
 */
#ifndef FSDP_HOOK_H
#define FSDP_HOOK_H

#include <stddef.h>
#include <stdint.h>

#include "fsdp/context.h"
#include "fsdp/dtype.h"
#include "fsdp/export.h"
#include "fsdp/model.h"
#include "fsdp/status.h"

typedef struct fsdp_hook fsdp_hook;

/** One tensor in a gradient. */
typedef struct fsdp_gradient_tensor {
    const char *name;
    size_t      offset; /**< of its first element in `values`; ELEMENTS */
    size_t      n_dims;
    size_t shape[FSDP_MAX_DIMS]; /**< row-major. If the rank has only a part of the tensor: its whole rows, and the rest
                                       before and after them, each as one dimension */
} fsdp_gradient_tensor;

/** What a hook sees of a unit's gradient. */
typedef struct fsdp_gradient {
    const char *unit;   /**< its name */
    float      *values; /**< `count` of them, on the host: this rank's before the reduction, then the mean */
    size_t      count;  /**< ELEMENTS of all tensors, and of padding, which is zero */
    size_t      n_tensors;
    const fsdp_gradient_tensor *tensors; /**< in order of their offsets; they do not overlap */
    int                         ranks;   /**< over which it is averaged */
} fsdp_gradient;

/**
 * What a program does before and after a reduction. Each function is called on every rank, in the order of the reductions,
 * while the library waits; it may change `values` and must call no collective. A status other than FSDP_OK on any rank ends
 * the reduction with that error on every rank.
 */
typedef struct fsdp_hook_callbacks {
    size_t size; /**< BYTES of this struct: fsdp_hook_callbacks_init() sets it */
    fsdp_status (*before)(void *state, const fsdp_gradient *gradient); /**< sees this rank's gradient; or NULL */
    fsdp_status (*after)(void *state, const fsdp_gradient *gradient);  /**< sees the mean; or NULL */
    void *state;                                                       /**< handed to both; stays the caller's */
} fsdp_hook_callbacks;

typedef struct fsdp_int8_options {
    size_t size;  /**< BYTES of this struct: FSDP_INT8_OPTIONS_DEFAULT or fsdp_int8_options_init() sets it */
    size_t block; /**< ELEMENTS that share a scale: 1 to 65536 */
} fsdp_int8_options;

#define FSDP_INT8_OPTIONS_DEFAULT                                                                                      \
    {                                                                                                                  \
        sizeof(fsdp_int8_options), 256                                                                                 \
    }

typedef struct fsdp_power_sgd_options {
    size_t   size; /**< BYTES of this struct: FSDP_POWER_SGD_OPTIONS_DEFAULT or fsdp_power_sgd_options_init() sets it */
    size_t   rank; /**< columns of the two factors: 1 to 65536 */
    double   min_ratio; /**< tensors that would shrink by less are sent as they are; 1 or more */
    uint64_t seed;      /**< of the first right factors */
} fsdp_power_sgd_options;

/** Rank 4, ratio 2, seed 0. */
#define FSDP_POWER_SGD_OPTIONS_DEFAULT                                                                                 \
    {                                                                                                                  \
        sizeof(fsdp_power_sgd_options), 4, 2.0, 0                                                                      \
    }

FSDP_EXTERN_C_BEGIN

/**
 * Sets all fields to FSDP_INT8_OPTIONS_DEFAULT. Local; `options` must not be NULL.
 *
 * fsdp_int8_options_init_size() is for other languages: it sets the first `size` BYTES, as far as the library knows them, and those
 * behind them to zero. `size` is above sizeof(size_t).
 */
FSDP_API void      fsdp_int8_options_init_size(fsdp_int8_options *options, size_t size);
static inline void fsdp_int8_options_init(fsdp_int8_options *options)
{
    fsdp_int8_options_init_size(options, sizeof *options);
}

/**
 * Sets all fields to FSDP_POWER_SGD_OPTIONS_DEFAULT. Local; `options` must not be NULL.
 *
 * fsdp_power_sgd_options_init_size() is for other languages: it sets the first `size` BYTES, as far as the library knows them, and those
 * behind them to zero. `size` is above sizeof(size_t).
 */
FSDP_API void      fsdp_power_sgd_options_init_size(fsdp_power_sgd_options *options, size_t size);
static inline void fsdp_power_sgd_options_init(fsdp_power_sgd_options *options)
{
    fsdp_power_sgd_options_init_size(options, sizeof *options);
}

/**
 * Sets all fields to NULL. Local; `options` must not be NULL.
 *
 * fsdp_hook_callbacks_init_size() is for other languages: it sets the first `size` BYTES, as far as the library knows them, and those
 * behind them to zero. `size` is above sizeof(size_t).
 */
FSDP_API void      fsdp_hook_callbacks_init_size(fsdp_hook_callbacks *options, size_t size);
static inline void fsdp_hook_callbacks_init(fsdp_hook_callbacks *options)
{
    fsdp_hook_callbacks_init_size(options, sizeof *options);
}

/**
 * Sends gradients as bf16 or f16: rounded once on each rank, averaged in f32, and rounded again as fsdp_allreduce() does.
 * f16 overflows to infinity above 65504. Holds 2 bytes per element of the largest unit. Collective.
 *
 * @param[in]  dtype  FSDP_BF16 or FSDP_F16
 * @param[out] hook   the caller releases it with fsdp_hook_destroy(), before fsdp_finalize()
 * @return FSDP_OK; errors as listed on top.
 */
FSDP_API fsdp_status fsdp_hook_half(fsdp_context *ctx, fsdp_dtype dtype, fsdp_hook **hook);

/**
 * Sends gradients as 8-bit integers with a scale per block, a quarter of the bytes of f32: each rank quantizes its gradient
 * for the rank that sums a part, which quantizes the mean for all. The rounding error is kept on the rank that rounded, and
 * added to the next gradient (error feedback: Seide et al., "1-bit stochastic gradient descent", Interspeech 2014;
 * Karimireddy et al., "Error feedback fixes SignSGD", ICML 2019), so that over many steps nothing is lost. A block with an
 * element that is not finite becomes NaN as a whole. Scales and codes are those of fsdp_model_options::quantized_params; each rank
 * sums an equal share of whole blocks, in rank order, divides by the number of ranks, and adds what was left of its last mean.
 * Holds 4 + 4 / size bytes per element, and during a reduction 2 more per element of the largest unit. Units so small that
 * this would send more than f32 are averaged in f32. What is kept is saved with the optimizer's state: set the hook before
 * fsdp_checkpoint_open(), which then allocates it. On as many ranks, with the same block, a resumed run has the same bits; on
 * others it begins at zero. Collective.
 *
 * @param[in] options  or NULL for FSDP_INT8_OPTIONS_DEFAULT; the same on all ranks; copied
 * @param[out] hook    as for fsdp_hook_half()
 * @return FSDP_OK; errors as listed on top.
 */
FSDP_API fsdp_status fsdp_hook_int8(fsdp_context *ctx, const fsdp_int8_options *options, fsdp_hook **hook);

/**
 * Sends matrices as products of two thin factors: one step of subspace iteration per reduction, starting from the right
 * factor of the last one, with error feedback (Vogels, Karimireddy and Jaggi, "PowerSGD", NeurIPS 2019, algorithms 1 and 2).
 * A tensor of two or more dimensions is a matrix of its first extent by the product of the others; it is compressed where
 * rank x (rows + columns) x min_ratio is at most rows x columns. Everything else is averaged in f32.
 * Holds 4 bytes per compressed element for the error, and 4 x rank x columns per matrix. Collective.
 *
 * @param[in] options  or NULL for FSDP_POWER_SGD_OPTIONS_DEFAULT; the same on all ranks; copied
 * @param[out] hook    as for fsdp_hook_half()
 * @return FSDP_OK; errors as listed on top.
 */
FSDP_API fsdp_status fsdp_hook_power_sgd(fsdp_context *ctx, const fsdp_power_sgd_options *options, fsdp_hook **hook);

/**
 * Averages gradients in f32 and calls the program before and after. Collective.
 *
 * @param[in] callbacks  copied; at least one must be set, and the same ones on all ranks
 * @param[out] hook      as for fsdp_hook_half()
 * @return FSDP_OK; errors as listed on top.
 */
FSDP_API fsdp_status fsdp_hook_custom(fsdp_context *ctx, const fsdp_hook_callbacks *callbacks, fsdp_hook **hook);

/**
 * Lets a hook average the gradients of a model from the next backward pass on; NULL: without a hook again. Under NO_SHARD it
 * averages each unit over all ranks; under HYBRID_SHARD the part of a unit that a rank holds, over the groups, after the plain
 * mean within the group. If one group has all ranks, nothing is reduced between groups and the hook has nothing to do: callbacks
 * are not called. With a hook, reductions do not overlap with the backward pass. Collective.
 *
 * @param[in] hook  made in the model's context; stays the caller's, and must outlive its use
 * @return FSDP_OK; FSDP_ERR_ARG: the model is NULL, the hook is another context's; FSDP_ERR_STATE: not committed, a pass is
 *         open, or there are gradients; FSDP_ERR_UNSUPPORTED: a strategy that sends no whole gradients (FULL_SHARD,
 *         SHARD_GRAD_OP, SHARD_OPTIM), a reduce_dtype other than f32, or masters in f64; FSDP_ERR_MISMATCH; FSDP_ERR_MEMORY.
 */
FSDP_API fsdp_status fsdp_model_set_hook(fsdp_model *model, fsdp_hook *hook);

/**
 * Adds to a budget what a hook will hold for a model once it has averaged each unit's gradient: its own bookkeeping, what it
 * keeps for each unit (counted as gradients), and its working memory (counted as staging buffers). All of it is private to the
 * rank and on the host. Local; after commit, before or after fsdp_model_set_hook(). Before the first reduction nothing is held,
 * except the room for a model on a GPU.
 *
 * @param[in]     hook    made in the model's context
 * @param[in,out] budget  as fsdp_model_budget() gave it for the model's own strategy and number of ranks
 * @return FSDP_OK; FSDP_ERR_ARG: a NULL pointer, a hook of another context; FSDP_ERR_STATE: not committed;
 *         FSDP_ERR_UNSUPPORTED: as for fsdp_model_set_hook(). After an error the budget is unchanged.
 */
FSDP_API fsdp_status fsdp_hook_budget(const fsdp_hook *hook, const fsdp_model *model, fsdp_budget *budget);

/** Releases a hook and its state. No model may be using it. Local. NULL does nothing. */
FSDP_API void fsdp_hook_destroy(fsdp_hook *hook);

/**
 * What this rank has sent through a hook so far, counted as an exchange between N ranks needs it, whatever the transport:
 * 2 (N - 1) / N times the bytes of what is averaged, rounded up, and N - 1 times a block that goes to each other rank. Local.
 *
 * @param[out] sent          BYTES
 * @param[out] uncompressed  BYTES that the same gradients would have taken in f32
 * @return FSDP_OK; FSDP_ERR_ARG: a pointer is NULL.
 */
FSDP_API fsdp_status fsdp_hook_bytes(const fsdp_hook *hook, uint64_t *sent, uint64_t *uncompressed);

FSDP_EXTERN_C_END

#endif
