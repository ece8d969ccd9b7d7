/**
 * @file
 * Dynamic loss scaling, so that small gradients survive the narrow range of f16 (Micikevicius et al., "Mixed precision
 * training", 2018), with the semantics of PyTorch's GradScaler.
 *
 * The loss is multiplied by a scale, which makes gradients as much larger, and gradients are divided by it before the step.
 * A gradient that is not finite on any rank makes all ranks skip the step and halves the scale; after 2000 steps in a row
 * without one the scale is doubled.
 *
 *     fsdp_loss_scaler_create(model, NULL, &scaler);
 *     for each step:
 *         forward; loss gradient times fsdp_loss_scaler_scale(scaler); backward   (once or more)
 *         fsdp_loss_scaler_unscale(scaler, NULL);                                 (only needed for the next line)
 *         fsdp_clip_grad_norm(model, 1.0, &norm);
 *         fsdp_loss_scaler_step(scaler, optimizer, &stepped);                     (instead of fsdp_optimizer_step)
 *
 * Collective functions are like those of fsdp/model.h: errors are the same on all ranks and nothing has changed after one;
 * FSDP_ERR_MPI and FSDP_ERR_TIMEOUT can come from each of them.
 */
#ifndef FSDP_LOSS_SCALER_H
#define FSDP_LOSS_SCALER_H

#include <stddef.h>

#include "fsdp/export.h"
#include "fsdp/model.h"
#include "fsdp/optimizer.h"
#include "fsdp/status.h"

typedef struct fsdp_loss_scaler fsdp_loss_scaler;

/** Scales lie from 2^-126 to 2^126, so that they and their reciprocals are normal numbers of f32. */
typedef struct fsdp_loss_scaler_options {
    size_t
        size; /**< BYTES of this struct: FSDP_LOSS_SCALER_OPTIONS_DEFAULT or fsdp_loss_scaler_options_init() sets it */
    double initial_scale;   /**< min_scale to max_scale */
    double growth_factor;   /**< above 1; multiplies the scale after `growth_interval` clean steps */
    double backoff_factor;  /**< above 0, below 1; multiplies it after an overflow */
    size_t growth_interval; /**< at least 1 */
    double min_scale;       /**< the floor: overflows do not take the scale below it */
    double max_scale;       /**< the ceiling: growth does not take it above */
    int    allow_any_dtype; /**< 1: also for models that neither gather parameters nor reduce gradients in f16: for
                                 gradients that the caller computes in f16 itself */
} fsdp_loss_scaler_options;

/** PyTorch's: from 2^16, doubled after 2000 clean steps, halved on overflow; and from 1 to 2^24 in all. f16 only. */
#define FSDP_LOSS_SCALER_OPTIONS_DEFAULT                                                                               \
    {                                                                                                                  \
        sizeof(fsdp_loss_scaler_options), 65536.0, 2.0, 0.5, 2000, 1.0, 16777216.0, 0                                  \
    }

/** What a checkpoint must keep. */
typedef struct fsdp_loss_scaler_state {
    double scale;
    size_t clean_steps;   /**< in a row, since the scale last changed or an overflow */
    size_t skipped_steps; /**< in all */
} fsdp_loss_scaler_state;

FSDP_EXTERN_C_BEGIN

/**
 * Sets all fields to FSDP_LOSS_SCALER_OPTIONS_DEFAULT. Local; `options` must not be NULL.
 *
 * fsdp_loss_scaler_options_init_size() is for other languages: it sets the first `size` BYTES, as far as the library knows them, and those
 * behind them to zero. `size` is above sizeof(size_t).
 */
FSDP_API void      fsdp_loss_scaler_options_init_size(fsdp_loss_scaler_options *options, size_t size);
static inline void fsdp_loss_scaler_options_init(fsdp_loss_scaler_options *options)
{
    fsdp_loss_scaler_options_init_size(options, sizeof *options);
}

/**
 * Makes the loss scaler of a committed model; a model has at most one. Collective. Allocates nothing: its place is in
 * the model, and so in every budget.
 *
 * @param[in]  options  or NULL for FSDP_LOSS_SCALER_OPTIONS_DEFAULT; the same on all ranks; copied
 * @param[out] scaler   belongs to the model and is released with it, or before by fsdp_loss_scaler_destroy()
 * @return FSDP_OK; FSDP_ERR_ARG: a NULL pointer, an option out of range; FSDP_ERR_UNSUPPORTED: masters in f64, or the model
 *         uses no f16, and `allow_any_dtype` is 0; FSDP_ERR_STATE: the model is not committed or has a loss scaler; FSDP_ERR_MISMATCH:
 *         options differ between ranks.
 */
FSDP_API fsdp_status fsdp_loss_scaler_create(fsdp_model *model, const fsdp_loss_scaler_options *options,
                                             fsdp_loss_scaler **scaler);

/** Releases a loss scaler. Local. NULL does nothing. */
FSDP_API void fsdp_loss_scaler_destroy(fsdp_loss_scaler *scaler);

/** What to multiply the loss by, or rather its gradient, in this step; 0 if NULL. Local. */
FSDP_API double fsdp_loss_scaler_scale(const fsdp_loss_scaler *scaler);

/**
 * Divides the accumulated gradients by the scale, so that clipping works on true values. Collective. Call it after all
 * backward passes of a step. It multiplies by the reciprocal of the scale rounded to f32, as PyTorch does. For a power of
 * two, which all scales are unless options say otherwise, that is exact except for results below the normal range of f32.
 *
 * @param[out] finite  1; or 0, the same on all ranks, if a gradient on any rank is infinite or NaN: gradients are unchanged
 *                     then, and fsdp_loss_scaler_step() will skip the step. Or NULL.
 * @return FSDP_OK; FSDP_ERR_ARG: NULL; FSDP_ERR_STATE: a pass is open, there are no gradients since the last step, or they
 *         have been unscaled before; FSDP_ERR_MISMATCH: the scale differs between ranks.
 */
FSDP_API fsdp_status fsdp_loss_scaler_unscale(fsdp_loss_scaler *scaler, int *finite);

/**
 * Unscales the gradients unless that has been done, takes the optimizer's step if all of them are finite on all ranks,
 * otherwise only clears them on all ranks, and updates the scale. Collective. With several optimizers, call it once for each of
 * them, all in a row: the first call unscales the gradients of all, each clears those of its optimizer, and the one that leaves
 * none updates the scale.
 *
 * @param[in]  optimizer  of the same model
 * @param[out] stepped    1; or 0 if the step was skipped. Or NULL.
 * @return FSDP_OK; FSDP_ERR_ARG: NULL, the optimizer of another model; FSDP_ERR_STATE: a pass is open, there are no
 *         gradients since the last step, or a backward pass came after fsdp_loss_scaler_unscale() (clear the gradients
 *         with fsdp_model_zero_grad()); FSDP_ERR_MISMATCH: the scale differs between ranks; or what
 *         fsdp_optimizer_step() returned: the gradients have been unscaled then, and the call can be repeated.
 */
FSDP_API fsdp_status fsdp_loss_scaler_step(fsdp_loss_scaler *scaler, fsdp_optimizer *optimizer, int *stepped);

/** Fills in what a checkpoint must keep. Local. @return FSDP_OK; FSDP_ERR_ARG: NULL. */
FSDP_API fsdp_status fsdp_loss_scaler_get_state(const fsdp_loss_scaler *scaler, fsdp_loss_scaler_state *state);

/**
 * Resumes from a saved state. Local; it must be the same on all ranks, which the next unscaling checks.
 *
 * @return FSDP_OK; FSDP_ERR_ARG: NULL, or a scale outside of the options' floor and ceiling; FSDP_ERR_STATE: gradients
 *         have been accumulated under the present scale. The state is unchanged then.
 */
FSDP_API fsdp_status fsdp_loss_scaler_set_state(fsdp_loss_scaler *scaler, const fsdp_loss_scaler_state *state);

FSDP_EXTERN_C_END

#endif
