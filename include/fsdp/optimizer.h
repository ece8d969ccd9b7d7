/**
 * @file
 * Optimizers over master shards: each rank updates what it holds, nothing is communicated but an agreement.
 */
#ifndef FSDP_OPTIMIZER_H
#define FSDP_OPTIMIZER_H

#include <stddef.h>

#include "fsdp/export.h"
#include "fsdp/model.h"
#include "fsdp/status.h"

typedef struct fsdp_optimizer fsdp_optimizer;

/** Coefficients are used in f32. Fields that a kind does not use are ignored. */
typedef struct fsdp_optimizer_options {
    fsdp_optimizer_kind kind;
    double              lr;           /**< 0 or more */
    double              weight_decay; /**< 0 or more; AdamW: decoupled, SGD: added to the gradient */
    double              beta1, beta2; /**< AdamW: 0 up to, not including, 1 */
    double              eps;          /**< AdamW: above 0 */
    double              momentum;     /**< FSDP_SGD_MOMENTUM: above 0, below 1 */
    int                 nesterov;     /**< FSDP_SGD_MOMENTUM: 1 for Nesterov's form */
} fsdp_optimizer_options;

FSDP_EXTERN_C_BEGIN

/**
 * The defaults of a kind: AdamW lr 1e-3, betas 0.9 and 0.999, eps 1e-8, decay 0.01; SGD lr 1e-2, momentum 0.9 where it has
 * one, no decay. Local.
 * @return FSDP_OK; FSDP_ERR_ARG: a kind that is none, a NULL pointer.
 */
FSDP_API fsdp_status fsdp_optimizer_options_init(fsdp_optimizer_kind kind, fsdp_optimizer_options *options);

/**
 * Makes an optimizer for all parameters of a committed model; its state is zero. Collective.
 * AdamW is Loshchilov and Hutter, "Decoupled weight decay regularization" (2019), with bias correction as in Adam
 * (Kingma and Ba, 2015). SGD, momentum and Nesterov's form are PyTorch's, dampening 0.
 *
 * @param[in]  options    the same on all ranks; copied
 * @param[out] optimizer  belongs to the model and is released with it, or before by fsdp_optimizer_destroy()
 * @return FSDP_OK; FSDP_ERR_ARG: a coefficient out of range, a NULL pointer; FSDP_ERR_STATE: the model is not committed;
 *         FSDP_ERR_MISMATCH: options differ between ranks; FSDP_ERR_MEMORY.
 */
FSDP_API fsdp_status fsdp_optimizer_create(fsdp_model *model, const fsdp_optimizer_options *options,
                                           fsdp_optimizer **optimizer);

/** Releases an optimizer and its state. Local. NULL does nothing. */
FSDP_API void fsdp_optimizer_destroy(fsdp_optimizer *optimizer);

/**
 * Updates the parameters from the accumulated gradients, then forgets the gradients. Collective.
 *
 * @return FSDP_OK; FSDP_ERR_ARG; FSDP_ERR_STATE: a pass is open, or a unit has no gradient since the last step (names it);
 *         parameters are unchanged then.
 */
FSDP_API fsdp_status fsdp_optimizer_step(fsdp_optimizer *optimizer);

/**
 * The learning rate from the next step on. Local; must be the same on all ranks, which fsdp_optimizer_step() checks.
 * @return FSDP_OK; FSDP_ERR_ARG: NULL, negative or not finite; the rate is unchanged.
 */
FSDP_API fsdp_status fsdp_optimizer_set_lr(fsdp_optimizer *optimizer, double lr);

/** How many steps have been taken; 0 if NULL. Local. */
FSDP_API size_t fsdp_optimizer_steps(const fsdp_optimizer *optimizer);

FSDP_EXTERN_C_END

#endif
