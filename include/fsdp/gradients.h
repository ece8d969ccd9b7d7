/**
 * @file
 * Gradients between the last backward pass of a step and its optimizer: what they are divided by, their norms, and scaling.
 *
 *     fsdp_model_sum_gradient_divisor(model, my_tokens, &tokens);    (ranks have unequal shares of a batch)
 *     fsdp_grad_norm(models, 2, &norm);                              (one norm over an encoder and a decoder)
 *     fsdp_clip_grad_with_norm(models[0], 1.0, norm);
 *     fsdp_clip_grad_with_norm(models[1], 1.0, norm);
 *
 * Functions are collective as fsdp/model.h says, which also has fsdp_clip_grad_norm() and its kin. Gradients here are those that
 * have been reduced: means over the ranks, or sums over the gradient divisor.
 */
#ifndef FSDP_GRADIENTS_H
#define FSDP_GRADIENTS_H

#include <stddef.h>

#include "fsdp/export.h"
#include "fsdp/model.h"
#include "fsdp/status.h"

FSDP_EXTERN_C_BEGIN

/**
 * What the sum of all ranks' gradients is divided by in this step, instead of `gradient_divisor` in the model's options: samples or
 * tokens of the step over all ranks and micro-batches, where each rank sums the losses of its own. Local, between or during
 * passes, but must be called alike on all ranks: they are compared where it is applied.
 *
 * It is applied behind the passes, by the first call that looks at gradients (norms, clipping, scaling, unscaling, the step): one
 * multiplication in the masters' type of what the passes have added up, by ranks / divisor. So it may be set at any time before that
 * call, when the last micro-batch is known. Gradients of passes behind that call are multiplied as they are added. It holds
 * until the step or fsdp_model_zero_grad().
 *
 * @param[in] divisor  above 0; or 0 for that of the model's options
 * @return FSDP_OK; FSDP_ERR_ARG; FSDP_ERR_STATE: not committed, or gradients of this step have been divided already.
 *         Ranks that disagree are FSDP_ERR_MISMATCH in the call that applies it, and nothing has changed.
 */
FSDP_API fsdp_status fsdp_model_set_gradient_divisor(fsdp_model *model, double divisor);

/**
 * The same for the sum of all ranks' shares. Collective, between passes: one reduction of 8 bytes.
 *
 * @param[in]  share  what this rank has used in the whole step, such as tokens: 0 or more, may differ between ranks
 * @param[out] sum    over all ranks, the divisor; 0 if no rank had anything, and the model's options then hold as before. Or NULL.
 * @return as above; FSDP_ERR_STATE also where a pass is open or the step has failed.
 */
FSDP_API fsdp_status fsdp_model_sum_gradient_divisor(fsdp_model *model, double share, double *sum);

/**
 * The 2-norm of all gradients of several models, without clipping. Collective: a reduction of 176 bytes for each model. The squares
 * of all models are summed exactly, so the result is that of one model with all their parameters, bit by bit: see
 * fsdp_clip_grad_norm() for what it does not depend on.
 *
 * @param[in]  models    `n_models` of one context, each once, in the same order on all ranks
 * @param[in]  n_models  at least 1
 * @param[out] norm      infinite or NaN only where a gradient is
 * @return FSDP_OK; FSDP_ERR_ARG: NULL or 0, a model twice, or models of different contexts (says which); FSDP_ERR_STATE: as for
 *         fsdp_clip_grad_norm(), for one of them; FSDP_ERR_MISMATCH: ranks pass different numbers of models.
 */
FSDP_API fsdp_status fsdp_grad_norm(fsdp_model *const *models, size_t n_models, double *norm);

/**
 * fsdp_clip_grad_norm() with a norm that is known: scales by max_norm / (norm + 1e-6) where that is below 1 (PyTorch's
 * clip_grads_with_norm_). Collective: one agreement.
 *
 * @param[in] max_norm  above 0
 * @param[in] norm      0 or more; gradients are left as they are if it is not finite
 * @return FSDP_OK; FSDP_ERR_ARG; FSDP_ERR_STATE: as for fsdp_clip_grad_norm(); FSDP_ERR_MISMATCH: ranks pass different numbers.
 */
FSDP_API fsdp_status fsdp_clip_grad_with_norm(fsdp_model *model, double max_norm, double norm);

/**
 * Multiplies all gradients by a factor. Collective: one agreement.
 * @param[in] factor  finite; rounded to the masters' type
 * @return FSDP_OK; FSDP_ERR_ARG; FSDP_ERR_STATE: as for fsdp_clip_grad_norm(); FSDP_ERR_MISMATCH: `factor` differs between ranks.
 */
FSDP_API fsdp_status fsdp_scale_grad(fsdp_model *model, double factor);

/** The gradient of one tensor. */
typedef struct fsdp_tensor_norm {
    const char *name; /**< the tensor's, valid until the model is destroyed */
    double
        norm; /**< the 2-norm, as exact as the whole; 0 where no pass has used it; infinite or NaN where an element is */
} fsdp_tensor_norm;

/**
 * The 2-norm of each tensor's gradient, and so the names of those that are not finite: for finding out where training goes wrong.
 * The same answers on all ranks. Collective: one agreement, and a reduction for every FSDP_TENSORS_PER_REDUCTION tensors.
 *
 * @param[out] norms  room for `room` of them; the first ones are filled in, in the order in which units and tensors were
 *                    added. Tensors that are frozen, ignored or tied to another one are left out.
 * @param[in]  room   may differ between ranks
 * @param[out] n      how many tensors there are, whatever `room` is; or NULL
 * @return FSDP_OK; FSDP_ERR_ARG: NULL; FSDP_ERR_STATE: as for fsdp_clip_grad_norm().
 */
FSDP_API fsdp_status fsdp_grad_norm_per_tensor(fsdp_model *model, fsdp_tensor_norm *norms, size_t room, size_t *n);
#define FSDP_TENSORS_PER_REDUCTION 32

FSDP_EXTERN_C_END

#endif
