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
 * FSDP_MUON                    Jordan et al., "Muon: an optimizer for hidden layers in neural networks" (2024), for matrices: the
 *                              momentum buffer is B = mu B + G, and the direction G + mu B (Nesterov) or B is made nearly orthogonal:
 *                              X = D / (|D| + eps), with the Frobenius norm, and five times X = a X + (b A + c A A) X, A = X X^T,
 *                              with a = 3.4445, b = -4.7750, c = 2.0315 (X^T X on the right where there are more rows than columns).
 *                              Then W = W - rate decay W - rate scale X: see fsdp_optimizer_options::muon_scale. A tensor of more
 *                              than two dimensions is the matrix of its first extent and all others. Computed in the masters'
 *                              type, each matrix by the rank that holds it.
 * FSDP_CUSTOM                  the program's own function, called for what this rank holds of each tensor: see
 *                              fsdp_update_function.
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

/** What a function of the program's own updates: elements `begin` up to `begin` + `count` of one tensor, all of which this rank
 * holds. Pointers are valid during the call. */
typedef struct fsdp_update {
    const char   *unit;   /**< its name */
    const char   *tensor; /**< its name; of a tied tensor the owner's */
    size_t        index;  /**< of the tensor in the unit, as fsdp_unit_param() takes it */
    size_t        n_dims;
    const size_t *shape;       /**< `n_dims` extents */
    size_t        begin;       /**< index of the first element in the tensor, row-major */
    size_t        count;       /**< ELEMENTS, at least 1 */
    fsdp_dtype    dtype;       /**< of masters and gradients */
    fsdp_dtype    state_dtype; /**< of the states: the optimizer's `moment_dtype` */
    void         *master;      /**< `count` elements, to be updated */
    const void   *gradient;    /**< `count` elements: the mean over the ranks, clipped and scaled */
    size_t        n_states;
    void *const  *states; /**< `n_states` arrays of `count` elements, to be updated; zeros before the first step */
    double        lr;     /**< of the tensor's group, or the optimizer's */
    double        weight_decay; /**< likewise; 0 for a tensor with FSDP_TENSOR_NO_WEIGHT_DECAY */
    size_t        step;         /**< counted from 1 */
    void         *stream;       /**< of a model on a GPU: where kernels are to be put; else NULL */
} fsdp_update;

/**
 * Updates masters and states of some elements of one tensor. fsdp_optimizer_step() calls it, in the calling thread, for what this
 * rank holds of each tensor, in the order of the tensors: in calls of at most 65536 elements (of whole blocks, where the group's
 * granularity is that of blocks; a tensor at a time, where it is FSDP_GRANULARITY_TENSOR). Several ranks may hold the same elements,
 * and must give them the same values. If what an element becomes follows from its own values alone, results have the same bits for
 * any number of ranks and every strategy. It must not call the library.
 *
 * On a GPU pointers are the device's, and the work is to be put into `stream`; offloaded masters and states come to the device for
 * the call.
 *
 * @param[in] state  fsdp_optimizer_options::update_state
 * @return FSDP_OK; else fsdp_optimizer_step() fails with this status on all ranks, the text names tensor and rank, and parameters
 *         are as before the step on every rank.
 */
typedef fsdp_status (*fsdp_update_function)(void *state, const fsdp_update *update);

/**
 * Coefficients are used in f32, to which they are rounded once; so are 1 - beta and its powers, but Lion's 1 - beta, which is
 * that of the rounded beta. Where masters are in f64, all are used in f64, as they are. Fields that a kind does not use are ignored.
 */
typedef struct fsdp_optimizer_options {
    size_t              size; /**< BYTES of this struct: fsdp_optimizer_options_init() sets it */
    fsdp_optimizer_kind kind;
    double              lr;           /**< 0 or more */
    double              weight_decay; /**< 0 or more; AdamW, Lion: decoupled; Adam, SGD: added to the gradient */
    double              beta1, beta2; /**< Adam, AdamW, Lion: 0 up to, not including, 1 */
    double              eps;          /**< Adam, AdamW, Muon: above 0 */
    double              momentum;     /**< FSDP_SGD_MOMENTUM: above 0, below 1; FSDP_MUON: 0 or more, below 1 */
    int                 nesterov;     /**< FSDP_SGD_MOMENTUM, FSDP_MUON: 1 for Nesterov's form */

    /**
     * The type of moments between steps: FSDP_F32; or FSDP_BF16, for half the memory. They are computed and used in f32 and
     * then rounded to nearest even. A change of a bf16 moment by less than 1/512 of it, and at times up to 1/256, is lost:
     * with Adam's and AdamW's default beta2 of 0.999 the second moment never falls, and fsdp_optimizer_create() warns.
     * Choose 0.99 or less. FSDP_CUSTOM has states in FSDP_F32 or the type of masters,
     * FSDP_MUON in the type of masters.
     *
     * Where masters are in f64: FSDP_F64; or FSDP_F32 or FSDP_BF16, to which moments are rounded after they have been computed and used
     * in f64.
     *
     * Or FSDP_U8, for about a quarter: 8-bit codes, and one f32 scale for every 256 elements of a tensor (Dettmers et al., "8-bit
     * optimizers via block-wise quantization", 2022). Moments are computed and used in f32 and then quantised: first moments to the
     * nearest code; second moments up or down, so that the mean is kept, since to the nearest one they would not fade. What is
     * above 0 there never becomes 0. A hash of the value, its place and the step decides. No block is divided between ranks, so results have the same bits for any number of them. The model must have
     * been laid out for it: set `moment_dtype` of fsdp_model_options, or of the fsdp_model_group, to FSDP_U8 too. A tensor's last block
     * is padded to 256 elements, in all that is held of it. Checkpoints hold the values in f32, from which a load makes the same
     * codes, and other moment types can be read. Models on the host, with masters in f32, only.
     */
    fsdp_dtype moment_dtype;

    /** NULL: it updates the tensors of no group; else the pattern of the group of tensors that it updates, as it was given to
     * fsdp_model_add_group(). */
    const char *group;

    /* of FSDP_CUSTOM; the other kinds have 0 and NULL */
    size_t               n_states; /**< arrays of one value per parameter in `moment_dtype`: 0 to FSDP_MAX_STATES */
    fsdp_update_function update;
    void                *update_state; /**< handed to it; stays the caller's */
    /** `n_states` names, by which checkpoints know the states: 1 to 30 letters, digits, `_` and `-`, all different, none "master".
     * Copied. NULL: "state_0" and so on. */
    const char *const *state_names;

    /** FSDP_MUON: by what an orthogonal matrix is scaled. 0: the root of max(1, rows / columns), as Jordan et al. do; above 0: this
     * times the root of max(rows, columns). 0.2 gives updates the size of AdamW's, whose rate and decay then serve both (Liu et al.,
     * "Muon is scalable for LLM training", 2025). */
    double muon_scale;
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
 * decay; Muon lr 0.02, momentum 0.95 in Nesterov's form, eps 1e-7, no decay. Moments in f32. Local.
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
 *         or FSDP_MUON for tensors whose group has not FSDP_GRANULARITY_TENSOR, or that have fewer than two dimensions (names one);
 *         FSDP_ERR_UNSUPPORTED: FSDP_CUSTOM for a group with a granularity, in a model that is offloaded; FSDP_MUON on a GPU;
 *         FSDP_ERR_STATE: the model is not committed, or these parameters have an optimizer already (names the first);
 *         FSDP_ERR_MISMATCH: options differ between ranks; FSDP_ERR_MEMORY.
 */
FSDP_API fsdp_status fsdp_optimizer_create(fsdp_model *model, const fsdp_optimizer_options *options,
                                           fsdp_optimizer **optimizer);

/**
 * Begins anew: states become zero, and so does the number of steps. Collective, between passes. Rates and groups stay.
 * @return FSDP_OK; FSDP_ERR_ARG: NULL; FSDP_ERR_STATE: a pass is open, or the step has failed.
 */
FSDP_API fsdp_status fsdp_optimizer_reset(fsdp_optimizer *optimizer);

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
 *         With FSDP_CUSTOM, what a function has returned on any rank. Parameters are then as before on all ranks, the gradients are
 *         gone, and the states are undefined: further steps return FSDP_ERR_STATE until a checkpoint is loaded into the optimizer, or
 *         fsdp_optimizer_reset(). For this such a step costs one more agreement, and room for as many masters as a call can have.
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
