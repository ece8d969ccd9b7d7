/**
 * @file
 * L-BFGS over master shards, for small models whose loss is no sample of something: physics-informed networks, fits, inverse
 * problems. Liu and Nocedal, "On the limited memory BFGS method for large scale optimization" (1989): the two-loop recursion over the
 * last pairs of changes, with a line search that satisfies the strong Wolfe conditions (Nocedal and Wright, "Numerical optimization",
 * 2nd ed., algorithms 3.5 and 3.6), or one that only steps back until the loss falls enough (Armijo).
 *
 *     fsdp_lbfgs *lbfgs;
 *     fsdp_lbfgs_create(model, NULL, &lbfgs);
 *     do {
 *         fsdp_lbfgs_step(lbfgs, run_passes, &my_state, &result);
 *     } while (result.end == FSDP_LBFGS_MORE);
 *
 * It updates all trainable tensors of a model, and is the model's only optimizer. All dot products over shards are exact before they are
 * rounded to f64 once, so that for the same gradients results have the same bits for any number of ranks and every strategy.
 *
 * It holds 2 `history` + 4 vectors in the masters' type, each as long as what the rank holds of the trainable parameters: see
 * fsdp_lbfgs_budget(). Its history is not in checkpoints: behind a load call fsdp_lbfgs_reset(), and it begins anew.
 */
#ifndef FSDP_LBFGS_H
#define FSDP_LBFGS_H

#include <stddef.h>

#include "fsdp/context.h"
#include "fsdp/export.h"
#include "fsdp/model.h"
#include "fsdp/status.h"

typedef struct fsdp_lbfgs fsdp_lbfgs;

typedef enum fsdp_line_search {
    FSDP_STRONG_WOLFE = 0, /**< enough decrease, and a slope of at most `curvature` times the first one */
    FSDP_ARMIJO       = 1  /**< enough decrease */
} fsdp_line_search;

typedef struct fsdp_lbfgs_options {
    size_t size;           /**< BYTES of this struct: FSDP_LBFGS_OPTIONS_DEFAULT or fsdp_lbfgs_options_init() sets it */
    size_t history;        /**< pairs of changes: 1 to 1000 */
    size_t max_iterations; /**< of one fsdp_lbfgs_step(): at least 1 */
    size_t max_evaluations; /**< of the loss, in one line search: at least 1 */
    double lr;              /**< above 0: the length along a direction that is tried first. 1 is that of a quasi-Newton
                                    method; without a history it is divided by max(1, norm of the gradient) */
    double tolerance_gradient; /**< 0 or more: the end, where the 2-norm of the gradient is not above it */
    double
        tolerance_change; /**< 0 or more: the end, where the 2-norm of an iteration's change, or that of the loss, is not
                                    above it */
    double           decrease;  /**< above 0, below `curvature`: Armijo's constant, c1 */
    double           curvature; /**< below 1: c2 */
    fsdp_line_search search;
} fsdp_lbfgs_options;

#define FSDP_LBFGS_OPTIONS_DEFAULT                                                                                     \
    {                                                                                                                  \
        sizeof(fsdp_lbfgs_options), 10, 20, 25, 1.0, 1e-7, 1e-9, 1e-4, 0.9, FSDP_STRONG_WOLFE                          \
    }

/** Why fsdp_lbfgs_step() has come back. */
typedef enum fsdp_lbfgs_end {
    FSDP_LBFGS_MORE     = 0, /**< after max_iterations: call it again */
    FSDP_LBFGS_GRADIENT = 1, /**< the gradient is within its tolerance */
    FSDP_LBFGS_CHANGE   = 2, /**< the last change is within its tolerance */
    FSDP_LBFGS_NO_PROGRESS =
        3, /**< not even along the gradient has a lower loss been found: as at the limit of the masters' type */
    FSDP_LBFGS_NOT_FINITE = 4 /**< the loss or the gradient where the call began is infinite or NaN */
} fsdp_lbfgs_end;

/** The same on all ranks. */
typedef struct fsdp_lbfgs_result {
    double         loss;          /**< of the parameters as they are now */
    double         gradient_norm; /**< 2-norm, likewise */
    size_t         iterations;    /**< of this call */
    size_t         evaluations;   /**< calls of the closure, of this call */
    fsdp_lbfgs_end end;
} fsdp_lbfgs_result;

/**
 * Runs forward and backward passes of the model, and says what the loss is. fsdp_lbfgs_step() calls it in the calling thread, on every
 * rank, several times, with other parameters each time. The loss must be a function of the parameters alone, the same number
 * on all ranks (add up what ranks have, by fsdp_allreduce()), and gradients must be those of it: with data that is divided among ranks,
 * the mean over ranks of what they compute. Passes may accumulate; there are no gradients when it begins. It may clip nothing and take
 * no steps.
 *
 * @param[in]  state  as given to fsdp_lbfgs_step()
 * @return FSDP_OK; else fsdp_lbfgs_step() fails with this status on all ranks.
 */
typedef fsdp_status (*fsdp_lbfgs_closure)(void *state, double *loss);

FSDP_EXTERN_C_BEGIN

/**
 * Sets all fields to FSDP_LBFGS_OPTIONS_DEFAULT. Local; `options` must not be NULL.
 *
 * fsdp_lbfgs_options_init_size() is for other languages: it sets the first `size` BYTES, as far as the library knows them, and those
 * behind them to zero. `size` is above sizeof(size_t).
 */
FSDP_API void      fsdp_lbfgs_options_init_size(fsdp_lbfgs_options *options, size_t size);
static inline void fsdp_lbfgs_options_init(fsdp_lbfgs_options *options)
{
    fsdp_lbfgs_options_init_size(options, sizeof *options);
}

/**
 * Makes the L-BFGS of a committed model, without a history. Collective.
 *
 * @param[in]  options  or NULL for FSDP_LBFGS_OPTIONS_DEFAULT; the same on all ranks; copied
 * @param[out] lbfgs    belongs to the model and is released with it, or before by fsdp_lbfgs_destroy()
 * @return FSDP_OK; FSDP_ERR_ARG: an option out of range, a NULL pointer; FSDP_ERR_UNSUPPORTED: a model on a GPU, with trainable
 *         parameters or reductions in another type than the masters' or quantised, with groups of tensors, a gradient hook or a
 *         loss scaler; FSDP_ERR_STATE: the model is not committed, or has an optimizer; FSDP_ERR_MISMATCH: options differ
 *         between ranks; FSDP_ERR_MEMORY. While it is there, hooks, loss scalers and other optimizers of the model are refused.
 */
FSDP_API fsdp_status fsdp_lbfgs_create(fsdp_model *model, const fsdp_lbfgs_options *options, fsdp_lbfgs **lbfgs);

/**
 * Moves the parameters towards a minimum: up to `max_iterations` iterations, each of a direction and a search along it. Calls the
 * closure first with the parameters as they are. Collective. An iteration costs up to 2 `history` + 5 reductions of 1096 bytes,
 * beside the closure's passes.
 *
 * @param[in]  state   handed to the closure
 * @param[out] result  or NULL; untouched after an error
 * @return FSDP_OK, whatever the end is; FSDP_ERR_ARG: NULL; FSDP_ERR_STATE: a pass is open, the step has failed, or there are gradients
 *         (call fsdp_model_zero_grad()); or behind a closure, a unit without a gradient (names it; see
 *         fsdp_model_options.unused: else it counts as zero) or an open pass; FSDP_ERR_MISMATCH: losses differ between ranks (says
 *         them), or what ranks did; or what the closure has returned on any rank (on a rank whose passes that one has left alone, their
 *         error). After an error parameters are as before the call
 *         on all ranks, there are no gradients, the history is forgotten, and it may be called again.
 */
FSDP_API fsdp_status fsdp_lbfgs_step(fsdp_lbfgs *lbfgs, fsdp_lbfgs_closure closure, void *state,
                                     fsdp_lbfgs_result *result);

/** Forgets the history: when parameters or the loss have become others. Local; call it on every rank, which the next step checks. NULL
 * does nothing. */
FSDP_API void fsdp_lbfgs_reset(fsdp_lbfgs *lbfgs);

/** Releases it and its history. Local. NULL does nothing. */
FSDP_API void fsdp_lbfgs_destroy(fsdp_lbfgs *lbfgs);

/**
 * Makes the budget of a committed model, as fsdp_model_budget() fills it in for its own strategy and ranks and FSDP_SGD, one with L-BFGS
 * in that optimizer's place. Local.
 *
 * @param[in]     options  as for fsdp_lbfgs_create()
 * @param[in,out] budget   its bookkeeping and optimizer lines and totals change
 * @return FSDP_OK; FSDP_ERR_ARG: NULL, an option out of range; FSDP_ERR_STATE: not committed; FSDP_ERR_UNSUPPORTED: as for
 *         fsdp_lbfgs_create().
 */
FSDP_API fsdp_status fsdp_lbfgs_budget(const fsdp_model *model, const fsdp_lbfgs_options *options, fsdp_budget *budget);

FSDP_EXTERN_C_END

#endif
