/**
 * @file
 * Fully sharded training state: a model is a list of units, a unit a list of tensors that are gathered and reduced
 * together, usually one layer.
 *
 * Each rank holds its shard of parameters, gradients and optimizer state. A unit's parameters are gathered for the time
 * between begin and end of its forward and of its backward pass; its gradients are reduced over the ranks at the end of
 * its backward pass. The scheme is ZeRO-3 (Rajbhandari et al., 2020) and PyTorch FSDP (Zhao et al., 2023).
 *
 *     fsdp_model_create(ctx, &options, &model);
 *     fsdp_unit_add(model, "h.0", tensors, n_tensors, &unit);    (once per layer)
 *     fsdp_model_commit(model);
 *     for each step:
 *         fsdp_unit_begin_forward(unit);  w = fsdp_unit_param(unit, i);  ...  fsdp_unit_end_forward(unit);
 *         fsdp_unit_begin_backward(unit); g = fsdp_unit_grad(unit, i);   ...  fsdp_unit_end_backward(unit);
 *         fsdp_clip_grad_norm(model, 1.0, &norm);
 *         fsdp_optimizer_step(optimizer);
 *
 * Common to all functions that are collective: every rank calls them in the same order with the same arguments; a wrong
 * argument or state on one rank, or ranks that disagree, is the same error on every rank with fsdp_last_error() naming
 * the value; nothing has changed then and the model is still usable. FSDP_ERR_MPI and FSDP_ERR_TIMEOUT can come from
 * each of them; after these the context can only be finalized.
 */
#ifndef FSDP_MODEL_H
#define FSDP_MODEL_H

#include <stddef.h>
#include <stdint.h>

#include "fsdp/context.h"
#include "fsdp/dtype.h"
#include "fsdp/export.h"
#include "fsdp/status.h"

/** Most dimensions of a tensor. */
#define FSDP_MAX_DIMS 8

typedef struct fsdp_model fsdp_model;
typedef struct fsdp_unit  fsdp_unit;

/** What is divided over the ranks: name, value, text. The names and their meaning are PyTorch's. */
#define FSDP_STRATEGY_LIST(X)                                                                                          \
    X(FSDP_FULL_SHARD, 0, "FULL_SHARD") /* parameters, gradients and optimizer state (ZeRO-3) */                       \
    X(FSDP_NO_SHARD, 1, "NO_SHARD")     /* nothing: every rank holds all, gradients are all-reduced (DDP) */

#define FSDP_STRATEGY_ENUMERATOR(name, value, text) name = (value),
typedef enum fsdp_strategy { FSDP_STRATEGY_LIST(FSDP_STRATEGY_ENUMERATOR) } fsdp_strategy;
#undef FSDP_STRATEGY_ENUMERATOR
#define FSDP_N_STRATEGIES 2

/** How an optimizer's state counts in a budget: see fsdp_model_budget(). */
typedef enum fsdp_optimizer_kind {
    FSDP_SGD          = 0, /**< no state */
    FSDP_SGD_MOMENTUM = 1, /**< one f32 per parameter */
    FSDP_ADAMW        = 2  /**< two f32 per parameter */
} fsdp_optimizer_kind;

/** How a tensor's initial values are drawn. */
typedef enum fsdp_fill {
    FSDP_FILL_CONSTANT = 0, /**< every element is `a` */
    FSDP_FILL_NORMAL   = 1, /**< mean `a`, standard deviation `b` */
    FSDP_FILL_UNIFORM  = 2  /**< from `a` up to `b` */
} fsdp_fill;

/** Flags of a tensor. */
#define FSDP_TENSOR_NO_WEIGHT_DECAY 1u /**< the optimizer's weight decay leaves it out (biases, norms) */

/**
 * One tensor of a unit. Initial values are a pure function of (model seed, name, element index): the same for every
 * number of ranks and every strategy.
 */
typedef struct fsdp_tensor {
    const char *name;                 /**< unique in the model, at most 255 bytes; copied */
    size_t      n_dims;               /**< 0 (a scalar) to FSDP_MAX_DIMS */
    size_t      shape[FSDP_MAX_DIMS]; /**< row-major, every extent at least 1 */
    fsdp_dtype  dtype;                /**< FSDP_F32 */
    fsdp_fill   fill;
    double      a, b;  /**< see fsdp_fill */
    unsigned    flags; /**< FSDP_TENSOR_* or 0 */
} fsdp_tensor;

typedef struct fsdp_model_options {
    fsdp_strategy       strategy;
    uint64_t            seed;         /**< of the initial values */
    size_t              memory_limit; /**< BYTES per rank that the budget may not exceed; 0: no limit */
    fsdp_optimizer_kind optimizer;    /**< the optimizer that the budget at commit counts with */
} fsdp_model_options;

/** FULL_SHARD, seed 0, no limit, AdamW. */
#define FSDP_MODEL_OPTIONS_DEFAULT                                                                                     \
    {                                                                                                                  \
        FSDP_FULL_SHARD, 0, 0, FSDP_ADAMW                                                                              \
    }

/** The BYTES that a model holds on one rank, known before anything is allocated. */
typedef struct fsdp_budget {
    size_t parameters;                 /**< number of parameters of the whole model, padding left out (not bytes) */
    size_t bytes[FSDP_N_MEMORY_KINDS]; /**< by fsdp_memory_kind */
    size_t total;                      /**< the sum of `bytes` */
    size_t
        unsharded; /**< the same state held whole: 4 bytes each for master, gradient and per state of the optimizer */
} fsdp_budget;

FSDP_EXTERN_C_BEGIN

/** "FULL_SHARD" and so on; "unknown" for a value that is none. Local; the text is static. */
FSDP_API const char *fsdp_strategy_name(fsdp_strategy strategy);

/**
 * The strategy of a name as fsdp_strategy_name() gives it. Local.
 * @return FSDP_OK; FSDP_ERR_ARG if it is none (fsdp_last_error(NULL) lists those known), `strategy` untouched.
 */
FSDP_API fsdp_status fsdp_strategy_parse(const char *name, fsdp_strategy *strategy);

/**
 * Makes an empty model. Collective. Allocates bookkeeping only.
 *
 * @param[in]  options  or NULL for FSDP_MODEL_OPTIONS_DEFAULT; the same on all ranks; copied
 * @param[out] model    the caller releases it with fsdp_model_destroy(), before fsdp_finalize()
 * @return FSDP_OK; FSDP_ERR_ARG, FSDP_ERR_MISMATCH, FSDP_ERR_MEMORY.
 */
FSDP_API fsdp_status fsdp_model_create(fsdp_context *ctx, const fsdp_model_options *options, fsdp_model **model);

/**
 * Adds a unit. Local: ranks are compared at fsdp_model_commit().
 *
 * @param[in]  name     unique in the model, at most 255 bytes; copied
 * @param[in]  tensors  `n_tensors` descriptions, at least one; copied
 * @param[out] unit     belongs to the model; valid until the model is destroyed
 * @return FSDP_OK; FSDP_ERR_ARG: a name that is missing, too long or taken, a tensor without elements or with too many,
 *         an unknown dtype or fill; FSDP_ERR_UNSUPPORTED: an element type other than f32; FSDP_ERR_STATE: the model is
 *         committed; FSDP_ERR_MEMORY. The model is unchanged, and its fsdp_model_commit() will fail with the same error on
 *         every rank, so that a rank that failed here cannot leave the others waiting.
 */
FSDP_API fsdp_status fsdp_unit_add(fsdp_model *model, const char *name, const fsdp_tensor *tensors, size_t n_tensors,
                                   fsdp_unit **unit);

/**
 * Fixes the layout, checks that all ranks added the same units, checks the budget against the limit, allocates, and
 * draws the initial values. Collective. Units can be used from here on, and no unit can be added any more.
 *
 * @return FSDP_OK; FSDP_ERR_ARG: no units, a budget above the limit (names both), or a failed fsdp_unit_add();
 *         FSDP_ERR_STATE: committed before; FSDP_ERR_MISMATCH: ranks added different units; FSDP_ERR_MEMORY. Nothing has
 *         been allocated then.
 */
FSDP_API fsdp_status fsdp_model_commit(fsdp_model *model);

/**
 * Releases a model with its units and optimizers. Local. NULL does nothing.
 */
FSDP_API void fsdp_model_destroy(fsdp_model *model);

/**
 * What a model would hold on one rank under any strategy, for any number of ranks. Local; before or after commit.
 *
 * @param[in] size       ranks, running or not; 0 stands for the size of the context
 * @param[in] optimizer  which optimizer's state to count
 * @return FSDP_OK; FSDP_ERR_ARG.
 */
FSDP_API fsdp_status fsdp_model_budget(const fsdp_model *model, fsdp_strategy strategy, int size,
                                       fsdp_optimizer_kind optimizer, fsdp_budget *budget);

/**
 * Gathers the unit's parameters: views are readable from here to fsdp_unit_end_forward(). Collective.
 * Views must not be written to (FSDP_VERIFY=full finds it at the end of the pass).
 *
 * @return FSDP_OK; FSDP_ERR_ARG: NULL; FSDP_ERR_STATE: the model is not committed, the unit is open already, or more
 *         units are open than `views_in_flight` allows; FSDP_ERR_MISMATCH: ranks begin different units.
 */
FSDP_API fsdp_status fsdp_unit_begin_forward(fsdp_unit *unit);

/**
 * Gives the parameters back: views are invalid from here on. Local.
 * @return FSDP_OK; FSDP_ERR_STATE: no forward pass of this unit is open; or, under FSDP_VERIFY=full where it is collective,
 *         the view was written to.
 */
FSDP_API fsdp_status fsdp_unit_end_forward(fsdp_unit *unit);

/**
 * Gathers the unit's parameters again and provides gradient views, which are zero. Collective. Errors as for
 * fsdp_unit_begin_forward().
 */
FSDP_API fsdp_status fsdp_unit_begin_backward(fsdp_unit *unit);

/**
 * Averages the gradient views over all ranks, adds the result to this rank's gradient shard and closes the views.
 * Collective. Gradients of several passes add up until fsdp_optimizer_step() or fsdp_model_zero_grad().
 *
 * @return FSDP_OK; FSDP_ERR_STATE: no backward pass of this unit is open, or a view was written to (FSDP_VERIFY=full).
 */
FSDP_API fsdp_status fsdp_unit_end_backward(fsdp_unit *unit);

/**
 * The gathered values of tensor `i`, in the order given to fsdp_unit_add(). Local.
 * @return the view, of the tensor's shape, row-major, in f32, valid until the pass ends; NULL with fsdp_last_error() where no
 *         pass of this unit is open or `i` is none of its tensors. Aligned to 4 bytes only: tensors follow without gaps.
 */
FSDP_API const void *fsdp_unit_param(fsdp_unit *unit, size_t i);

/**
 * The gradient view of tensor `i`: add to it or overwrite it. Local.
 * @return as for fsdp_unit_param(), within a backward pass.
 */
FSDP_API void *fsdp_unit_grad(fsdp_unit *unit, size_t i);

/** The name the unit was added under; "" if NULL. Local. */
FSDP_API const char *fsdp_unit_name(const fsdp_unit *unit);

/** Forgets the gradients that have been accumulated. Local. @return FSDP_OK; FSDP_ERR_ARG, FSDP_ERR_STATE: not committed. */
FSDP_API fsdp_status fsdp_model_zero_grad(fsdp_model *model);

/**
 * Scales all gradients so that their 2-norm is at most `max_norm`: by max_norm / (norm + 1e-6) where that is below 1, as
 * PyTorch does. Collective.
 * The norm is a sum over the slices that FULL_SHARD has, in rank order, under every strategy: bitwise the same for all.
 *
 * @param[in]  max_norm  above 0; INFINITY only computes the norm
 * @param[out] norm      the norm before scaling; or NULL. If it is not finite, gradients are left as they are.
 * @return FSDP_OK; FSDP_ERR_ARG; FSDP_ERR_STATE: not committed, a pass is open, or no gradients since the last step.
 */
FSDP_API fsdp_status fsdp_clip_grad_norm(fsdp_model *model, double max_norm, double *norm);

/**
 * A hash of all parameters, independent of the number of ranks and of the strategy: the same if and only if (but for
 * chance, 2^-64) every element of every tensor has the same bits. Collective.
 *
 * @return FSDP_OK; FSDP_ERR_ARG; FSDP_ERR_STATE: not committed.
 */
FSDP_API fsdp_status fsdp_model_hash(fsdp_model *model, uint64_t *hash);

FSDP_EXTERN_C_END

#endif
