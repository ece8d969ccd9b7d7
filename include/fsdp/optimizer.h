/**
 * @file
 * Optimizers over master shards: each rank updates what it holds; only an agreement is communicated.
 *
 * FSDP_SGD, FSDP_SGD_MOMENTUM  PyTorch's SGD, momentum and Nesterov's form, dampening 0; weight decay is added to the
 *                              gradient.
 * FSDP_ADAM                    Kingma and Ba, "Adam: a method for stochastic optimization" (2015), bias-corrected; weight
 *                              decay is added to the gradient.
 * FSDP_ADAMW                   Loshchilov and Hutter, "Decoupled weight decay regularization" (2019): Adam, but weights
 *                              decay by rate x decay on their own.
 * FSDP_LION                    Chen et al., "Symbolic discovery of optimization algorithms" (2023): one moment, of which
 *                              only the sign moves the weights; decay as in AdamW.
 *
 * Tensors can be given a rate and a weight decay of their own, chosen by a pattern of their names:
 *
 *     fsdp_optimizer_group slow = FSDP_OPTIMIZER_GROUP_DEFAULT;
 *     slow.lr_scale = 0.1;
 *     fsdp_optimizer_add_group(optimizer, "embedding.*", &slow);
 *
 * A model may have several optimizers, each for tensors of its own: see fsdp_model_add_group(). A step of one of them updates its own
 * tensors and clears their gradients; those of the others stay, and go on adding up. Ranks take steps in the same order.
 */
#ifndef FSDP_OPTIMIZER_H
#define FSDP_OPTIMIZER_H

#include <stddef.h>

#include "fsdp/dtype.h"
#include "fsdp/export.h"
#include "fsdp/model.h"
#include "fsdp/status.h"

typedef struct fsdp_optimizer fsdp_optimizer;

/**
 * Coefficients are used in f32, to which they are rounded once; so are 1 - beta and its powers, but Lion's 1 - beta, which is
 * that of the rounded beta. Fields that a kind does not use are ignored.
 */
typedef struct fsdp_optimizer_options {
    size_t              size; /**< BYTES of this struct: fsdp_optimizer_options_init() sets it */
    fsdp_optimizer_kind kind;
    double              lr;           /**< 0 or more */
    double              weight_decay; /**< 0 or more; AdamW, Lion: decoupled; Adam, SGD: added to the gradient */
    double              beta1, beta2; /**< Adam, AdamW, Lion: 0 up to, not including, 1 */
    double              eps;          /**< Adam, AdamW: above 0 */
    double              momentum;     /**< FSDP_SGD_MOMENTUM: above 0, below 1 */
    int                 nesterov;     /**< FSDP_SGD_MOMENTUM: 1 for Nesterov's form */

    /**
     * The type of moments between steps: FSDP_F32; or FSDP_BF16, for half the memory. They are computed and used in f32 and
     * then rounded to nearest even. A change of a bf16 moment by less than 1/512 of it, and at times up to 1/256, is lost:
     * with Adam's and AdamW's default beta2 of 0.999 the second moment never falls, and fsdp_optimizer_create() warns.
     * Choose 0.99 or less.
     */
    fsdp_dtype moment_dtype;

    /** NULL: it updates the tensors of no group; else the pattern of the group of tensors that it updates, as it was given to
     * fsdp_model_add_group(). */
    const char *group;
} fsdp_optimizer_options;

/** For the rate or the weight decay of a group: use the optimizer's. */
#define FSDP_INHERIT (-1.0)

/** The settings of a group of tensors. Begin with FSDP_OPTIMIZER_GROUP_DEFAULT, which inherits everything. */
typedef struct fsdp_optimizer_group {
    size_t size;     /**< BYTES of this struct: FSDP_OPTIMIZER_GROUP_DEFAULT or fsdp_optimizer_group_init() sets it */
    double lr;       /**< 0 or more; FSDP_INHERIT: what fsdp_optimizer_set_lr() has set last */
    double lr_scale; /**< 0 or more: factor of this rate, whether inherited or not */
    double
        weight_decay; /**< 0 or more; FSDP_INHERIT. None for a tensor with FSDP_TENSOR_NO_WEIGHT_DECAY, in any group. */
} fsdp_optimizer_group;

#define FSDP_OPTIMIZER_GROUP_DEFAULT                                                                                   \
    {                                                                                                                  \
        sizeof(fsdp_optimizer_group), FSDP_INHERIT, 1.0, FSDP_INHERIT                                                  \
    }

FSDP_EXTERN_C_BEGIN

/**
 * Sets all fields to FSDP_OPTIMIZER_GROUP_DEFAULT. Local; `options` must not be NULL.
 *
 * fsdp_optimizer_group_init_size() is for other languages: it sets the first `size` BYTES, as far as the library knows them, and those
 * behind them to zero. `size` is above sizeof(size_t).
 */
FSDP_API void      fsdp_optimizer_group_init_size(fsdp_optimizer_group *options, size_t size);
static inline void fsdp_optimizer_group_init(fsdp_optimizer_group *options)
{
    fsdp_optimizer_group_init_size(options, sizeof *options);
}

/**
 * The defaults of a kind: Adam and AdamW lr 1e-3, betas 0.9 and 0.999, eps 1e-8, decay 0.01 for AdamW and none for Adam;
 * Lion a tenth of AdamW's rate and ten times its decay, betas 0.9 and 0.99; SGD lr 1e-2, momentum 0.9 where it has one, no
 * decay. Moments in f32. Local.
 *
 * fsdp_optimizer_options_init_size() is for other languages: it sets the first `size` BYTES, as far as the library knows them,
 * and those behind them to zero.
 *
 * @return FSDP_OK; FSDP_ERR_ARG: an unknown kind, a NULL pointer, a size of no more than sizeof(size_t).
 */
FSDP_API fsdp_status      fsdp_optimizer_options_init_size(fsdp_optimizer_kind kind, fsdp_optimizer_options *options,
                                                           size_t size);
static inline fsdp_status fsdp_optimizer_options_init(fsdp_optimizer_kind kind, fsdp_optimizer_options *options)
{
    return fsdp_optimizer_options_init_size(kind, options, sizeof *options);
}

/**
 * Makes an optimizer for the parameters of a group of a committed model, or for those of no group: in a model without groups, for
 * all. Its state is zero. Collective.
 *
 * @param[in]  options    the same on all ranks; copied
 * @param[out] optimizer  belongs to the model and is released with it, or before by fsdp_optimizer_destroy()
 * @return FSDP_OK; FSDP_ERR_ARG: a coefficient or moment type out of range, a group that the model does not have, a NULL pointer;
 *         FSDP_ERR_STATE: the model is not committed, or these parameters have an optimizer already (names the first);
 *         FSDP_ERR_MISMATCH: options differ between ranks; FSDP_ERR_MEMORY.
 */
FSDP_API fsdp_status fsdp_optimizer_create(fsdp_model *model, const fsdp_optimizer_options *options,
                                           fsdp_optimizer **optimizer);

/** Releases an optimizer and its state. Local. NULL does nothing. */
FSDP_API void fsdp_optimizer_destroy(fsdp_optimizer *optimizer);

/**
 * Gives the tensors of the optimizer whose names match a pattern a rate and a weight decay of their own, from the first step on.
 * Collective; before the first step. A tensor belongs to the first group added whose pattern it matches, or to none.
 * Takes no memory: the budget has room for as many groups as there are tensors.
 *
 * @param[in] pattern  a shell pattern as of fnmatch(3), on the whole name: "*.bias", "h.[0-3].*". `*` and `?` match a
 *                     period and a slash as well.
 * @param[in] group    copied
 * @return FSDP_OK; FSDP_ERR_ARG: a NULL pointer, a value out of range, or a pattern that matches no tensor, or only
 *         tensors of groups added before (names it); FSDP_ERR_STATE: a step has been taken; FSDP_ERR_MISMATCH: ranks add
 *         different groups, or the pattern matches other tensors there, as it may in another locale. After an error no tensor has
 *         joined a group.
 */
FSDP_API fsdp_status fsdp_optimizer_add_group(fsdp_optimizer *optimizer, const char *pattern,
                                              const fsdp_optimizer_group *group);

/**
 * Updates the optimizer's parameters from their accumulated gradients, then clears these, and those of tensors that no optimizer
 * updates. Collective.
 *
 * @return FSDP_OK; FSDP_ERR_ARG; FSDP_ERR_STATE: a pass is open, the step has failed, or a unit has no gradient for the optimizer
 *         since its last step (names it); FSDP_ERR_MISMATCH: ranks step different optimizers, rates differ between ranks, or the
 *         order in which they began passes. After an error parameters are unchanged.
 */
FSDP_API fsdp_status fsdp_optimizer_step(fsdp_optimizer *optimizer);

/**
 * The learning rate from the next step on. Local; must be the same on all ranks, which fsdp_optimizer_step() checks.
 * Groups that inherit their rate follow.
 * @return FSDP_OK; FSDP_ERR_ARG: NULL, negative or not finite; the rate is unchanged.
 */
FSDP_API fsdp_status fsdp_optimizer_set_lr(fsdp_optimizer *optimizer, double lr);

/**
 * The learning rate of a group from the next step on, before its `lr_scale`. Local, as fsdp_optimizer_set_lr().
 *
 * @param[in] pattern  as the group was added with
 * @param[in] lr       0 or more; FSDP_INHERIT: the optimizer's again
 * @return FSDP_OK; FSDP_ERR_ARG: NULL, no group of this pattern, a rate that is negative or not finite; the rate is
 *         unchanged.
 */
FSDP_API fsdp_status fsdp_optimizer_set_group_lr(fsdp_optimizer *optimizer, const char *pattern, double lr);

/** How many steps have been taken; 0 if NULL. Local. */
FSDP_API size_t fsdp_optimizer_steps(const fsdp_optimizer *optimizer);

FSDP_EXTERN_C_END

#endif
