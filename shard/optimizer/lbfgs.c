#include "shard/optimizer/lbfgs.h"

#include <math.h>
#include <stdio.h>

#include "collectives/collectives.h"
#include "lib/base/options.h"
#include "lib/device/memory.h"
#include "shard/optimizer/optimizer.h"
#include "shard/schedule/between_passes.h"
#include "shard/schedule/failed_step.h"
#include "shard/state/plane.h"
#include "shard/storage/model_gpu.h"

enum { MOST_PAIRS = 1000 };

static const char create_name[] = "fsdp_lbfgs_create", step_name[] = "fsdp_lbfgs_step";

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static size_t struct_bytes(const fsdp_lbfgs_options *options)
{
    return sizeof(fsdp_lbfgs) + 2 * options->history * sizeof(double);
}

static size_t vector_bytes(const fsdp_model *model, const fsdp_lbfgs_options *options)
{
    return (FSDPI_LBFGS_OWN + 2 * options->history) * fsdpi_lbfgs_elements(model) * fsdpi_master_width(model);
}

static void release(fsdp_model *model, fsdp_lbfgs *lbfgs)
{
    if (lbfgs != NULL) {
        fsdpi_free(model->ctx, FSDP_MEMORY_OPTIMIZER, lbfgs->vectors, vector_bytes(model, &lbfgs->options));
        fsdpi_free(model->ctx, FSDP_MEMORY_BOOKKEEPING, lbfgs, struct_bytes(&lbfgs->options));
    }
}

/* NULL, with nothing held, where memory is short. */
static fsdp_lbfgs *allocate(fsdp_model *model, const fsdp_lbfgs_options *options)
{
    fsdp_lbfgs *made = fsdpi_alloc(model->ctx, FSDP_MEMORY_BOOKKEEPING, struct_bytes(options));

    if (made == NULL) {
        return NULL;
    }
    made->model    = model;
    made->options  = *options;
    made->elements = fsdpi_lbfgs_elements(model);
    made->vectors  = fsdpi_alloc(model->ctx, FSDP_MEMORY_OPTIMIZER, vector_bytes(model, options));
    if (made->vectors == NULL && made->elements > 0) {
        release(model, made);
        return NULL;
    }
    return made;
}

/* ---- creation ---------------------------------------------------------------------------------------------------- */

static fsdp_status out_of_range(fsdp_context *ctx, const char *field, double value, const char *range)
{
    return fsdpi_fail_together(ctx, FSDP_ERR_ARG, "fsdp_lbfgs_options.%s is %g; it must be %s", field, value, range);
}

static fsdp_status check_options(fsdp_context *ctx, const fsdp_lbfgs_options *o)
{
    if (o->history < 1 || o->history > MOST_PAIRS) {
        return out_of_range(ctx, "history", (double)o->history, "1 to 1000");
    }
    if (o->max_iterations < 1) {
        return out_of_range(ctx, "max_iterations", 0.0, "at least 1");
    }
    if (o->max_evaluations < 1) {
        return out_of_range(ctx, "max_evaluations", 0.0, "at least 1");
    }
    if (!(isfinite(o->lr) && o->lr > 0.0)) {
        return out_of_range(ctx, "lr", o->lr, "above 0");
    }
    if (!(o->tolerance_gradient >= 0.0)) {
        return out_of_range(ctx, "tolerance_gradient", o->tolerance_gradient, "0 or more");
    }
    if (!(o->tolerance_change >= 0.0)) {
        return out_of_range(ctx, "tolerance_change", o->tolerance_change, "0 or more");
    }
    if (!(o->curvature > 0.0 && o->curvature < 1.0)) {
        return out_of_range(ctx, "curvature", o->curvature, "above 0 and below 1");
    }
    if (!(o->decrease > 0.0 && o->decrease < o->curvature)) {
        return out_of_range(ctx, "decrease", o->decrease, "above 0 and below curvature");
    }
    return o->search == FSDP_STRONG_WOLFE || o->search == FSDP_ARMIJO
               ? FSDP_OK
               : out_of_range(ctx, "search", (double)(int)o->search, "one of fsdp_line_search");
}

static fsdp_status refuse(const fsdp_model *model, const char *function, const char *what)
{
    return fsdpi_fail_together(model->ctx, FSDP_ERR_UNSUPPORTED, "%s: L-BFGS and %s", function, what);
}

/* Differences of gradients are of use only where these are those of the masters, not rounded or compressed. */
static fsdp_status check_types(const fsdp_model *model, const char *function)
{
    const bool wide = model->master_dtype == FSDP_F64;

    if (model->options.reduce_dtype != model->master_dtype) {
        return refuse(
            model, function,
            wide ? "gradients reduced in another type than f64; set fsdp_model_options.reduce_dtype to FSDP_F64"
                 : "gradients reduced in 16 bits; set fsdp_model_options.reduce_dtype to FSDP_F32");
    }
    for (const fsdpi_flat *flat = model->flats; flat != NULL; flat = flat->next) {
        if (!flat->frozen && flat->dtype != model->master_dtype) {
            return refuse(
                model, function,
                wide ? "trainable tensors of another type than f64; leave their dtype 0"
                     : "trainable parameters in 16 bits; set fsdp_model_options.param_dtype to FSDP_F32, and the type "
                       "of each tensor");
        }
        if (!flat->frozen && flat->quantized) {
            return refuse(model, function, "quantised parameters; set fsdp_model_options.quantized_params to 0");
        }
    }
    return FSDP_OK;
}

static fsdp_status check_model(const fsdp_model *model, const char *function)
{
    if (!model->committed) {
        return fsdpi_fail_together(model->ctx, FSDP_ERR_STATE,
                                   "%s: the model is not committed; call fsdp_model_commit first", function);
    }
    if (fsdpi_is_on_device(model)) {
        return refuse(model, function, "a model on a GPU; set fsdp_model_options.placement to FSDP_ON_HOST");
    }
    if (model->tensor_groups != NULL) {
        return refuse(model, function, "groups of tensors; leave fsdp_model_add_group out: it updates them all");
    }
    if (model->hook != NULL) {
        return refuse(model, function, "a gradient hook; take it off by fsdp_model_set_hook with NULL");
    }
    if (model->loss_scaler != NULL) {
        return refuse(model, function, "a loss scaler; destroy that first: f32 and f64 need none");
    }
    return check_types(model, function);
}

static fsdp_status check_creation(const fsdp_model *model, const fsdp_lbfgs_options *options, fsdp_lbfgs *const *lbfgs)
{
    if (lbfgs == NULL) {
        return fsdpi_fail_together(model->ctx, FSDP_ERR_ARG, "%s: the place for the L-BFGS is NULL", create_name);
    }
    FSDP_TRY(check_options(model->ctx, options));
    FSDP_TRY(check_model(model, create_name));
    if (fsdpi_has_plane(model)) {
        return fsdpi_fail_together(
            model->ctx, FSDP_ERR_UNSUPPORTED,
            "%s: the model is divided over axes \"%s\" and \"%s\" of a mesh; use an optimizer of "
            "fsdp/optimizer.h",
            create_name, model->plane.tensor_text, model->plane.stage_text);
    }
    if (model->lbfgs != NULL || model->optimizers != NULL) {
        return fsdpi_fail_together(model->ctx, FSDP_ERR_STATE,
                                   "%s: the model has an optimizer already; destroy that first: L-BFGS updates all "
                                   "trainable tensors",
                                   create_name);
    }
    return FSDP_OK;
}

void fsdp_lbfgs_options_init_size(fsdp_lbfgs_options *options, size_t size)
{
    static const fsdp_lbfgs_options defaults = FSDP_LBFGS_OPTIONS_DEFAULT;

    fsdpi_options_give(&defaults, sizeof defaults, options, size);
}

static void describe_options(const fsdp_lbfgs_options *o, char *text, size_t size)
{
    (void)snprintf(text, size,
                   "history %zu, iterations %zu, evaluations %zu, lr %.17g, tolerances %.9g %.9g, decrease %.9g, "
                   "curvature %.9g, search %d",
                   o->history, o->max_iterations, o->max_evaluations, o->lr, o->tolerance_gradient, o->tolerance_change,
                   o->decrease, o->curvature, (int)o->search);
}

fsdp_status fsdp_lbfgs_create(fsdp_model *model, const fsdp_lbfgs_options *options, fsdp_lbfgs **lbfgs)
{
    fsdp_lbfgs_options chosen = FSDP_LBFGS_OPTIONS_DEFAULT;
    char               label[FSDPI_DETAIL_BYTES];
    fsdp_lbfgs        *made = NULL;

    if (model == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "%s: the model is NULL; pass one from fsdp_model_create", create_name);
    }
    fsdp_status status = fsdpi_options_take(model->ctx, "fsdp_lbfgs_options", options, &chosen, sizeof chosen);
    status             = status == FSDP_OK ? check_creation(model, &chosen, lbfgs) : status;
    if (status == FSDP_OK) {
        *lbfgs = NULL;
        made   = allocate(model, &chosen);
        status = made != NULL ? FSDP_OK : FSDP_ERR_MEMORY;
    }
    describe_options(&chosen, label, sizeof label);
    status = fsdpi_agree(model->ctx, create_name, label, 0, status, false);
    if (status != FSDP_OK || made == NULL) {
        release(model, made);
        return status;
    }
    model->lbfgs = made;
    *lbfgs       = made;
    return FSDP_OK;
}

void fsdp_lbfgs_destroy(fsdp_lbfgs *lbfgs)
{
    if (lbfgs != NULL) {
        lbfgs->model->lbfgs = NULL;
        release(lbfgs->model, lbfgs);
    }
}

void fsdp_lbfgs_reset(fsdp_lbfgs *lbfgs)
{
    if (lbfgs != NULL) {
        lbfgs->pairs = 0;
    }
}

fsdp_status fsdp_lbfgs_budget(const fsdp_model *model, const fsdp_lbfgs_options *options, fsdp_budget *budget)
{
    static const char  function[] = "fsdp_lbfgs_budget";
    fsdp_lbfgs_options chosen     = FSDP_LBFGS_OPTIONS_DEFAULT;

    if (model == NULL || budget == NULL) {
        return fsdpi_fail(model != NULL ? model->ctx : NULL, FSDP_ERR_ARG, "%s: the %s is NULL", function,
                          model == NULL ? "model" : "budget");
    }
    fsdp_status status = fsdpi_options_take(model->ctx, "fsdp_lbfgs_options", options, &chosen, sizeof chosen);
    status             = status == FSDP_OK ? check_options(model->ctx, &chosen) : status;
    status             = status == FSDP_OK ? check_model(model, function) : status;
    if (status != FSDP_OK) {
        fsdpi_error_print(model->ctx, status);
        return status;
    }
    const size_t vectors = fsdpi_alloc_size(vector_bytes(model, &chosen));
    const size_t own = fsdpi_alloc_size(struct_bytes(&chosen)), other = fsdpi_optimizer_bookkeeping(&model->plan);

    budget->bytes[FSDP_MEMORY_OPTIMIZER] += vectors;
    budget->bytes[FSDP_MEMORY_BOOKKEEPING] += own - other; /* instead of that of another optimizer */
    budget->total += vectors + own - other;
    budget->mean_total += vectors + own - other;
    return FSDP_OK;
}

/* ---- the direction ----------------------------------------------------------------------------------------------- */

/* Where the `i`-th pair is, from the oldest on. */
static size_t place_of(const fsdp_lbfgs *lbfgs, size_t i)
{
    return (lbfgs->oldest + i) % lbfgs->options.history;
}

static fsdp_status dot(fsdp_lbfgs *lbfgs, int a, int b, double *product)
{
    const int pair[][2] = {{a, b}};

    return fsdpi_lbfgs_dots(lbfgs, 1, pair, product);
}

/* The length of a step of Newton's along the last change: what the recursion takes for the inverse Hessian in the middle. */
static fsdp_status find_scale(fsdp_lbfgs *lbfgs, double *factor)
{
    const size_t last = place_of(lbfgs, lbfgs->pairs - 1);
    double       square;

    FSDP_TRY(dot(lbfgs, fsdpi_lbfgs_gradient_change(last), fsdpi_lbfgs_gradient_change(last), &square));
    *factor = 1.0 / (lbfgs->curvatures[last] * square);
    return FSDP_OK;
}

/* The two-loop recursion, on minus the gradient. */
static fsdp_status recurse(fsdp_lbfgs *lbfgs)
{
    double *factors = lbfgs->curvatures + lbfgs->options.history, scale, product;

    for (size_t i = lbfgs->pairs; i-- > 0;) {
        const size_t k = place_of(lbfgs, i);

        FSDP_TRY(dot(lbfgs, fsdpi_lbfgs_change(k), FSDPI_LBFGS_DIRECTION, &product));
        factors[k] = lbfgs->curvatures[k] * product;
        fsdpi_lbfgs_combine(lbfgs, FSDPI_LBFGS_DIRECTION, -factors[k], fsdpi_lbfgs_gradient_change(k),
                            FSDPI_LBFGS_DIRECTION);
    }
    FSDP_TRY(find_scale(lbfgs, &scale));
    fsdpi_lbfgs_scale(lbfgs, FSDPI_LBFGS_DIRECTION, scale, FSDPI_LBFGS_DIRECTION);
    for (size_t i = 0; i < lbfgs->pairs; i++) {
        const size_t k = place_of(lbfgs, i);

        FSDP_TRY(dot(lbfgs, fsdpi_lbfgs_gradient_change(k), FSDPI_LBFGS_DIRECTION, &product));
        fsdpi_lbfgs_combine(lbfgs, FSDPI_LBFGS_DIRECTION, factors[k] - lbfgs->curvatures[k] * product,
                            fsdpi_lbfgs_change(k), FSDPI_LBFGS_DIRECTION);
    }
    return FSDP_OK;
}

/* And its slope: minus the gradient itself, without a history or where the recursion does not lead down. */
static fsdp_status find_direction(fsdp_lbfgs *lbfgs, double *slope)
{
    fsdpi_lbfgs_scale(lbfgs, FSDPI_LBFGS_DIRECTION, -1.0, FSDPI_LBFGS_SLOPE);
    if (lbfgs->pairs > 0) {
        FSDP_TRY(recurse(lbfgs));
    }
    FSDP_TRY(dot(lbfgs, FSDPI_LBFGS_SLOPE, FSDPI_LBFGS_DIRECTION, slope));
    if (lbfgs->pairs == 0 || (isfinite(*slope) && *slope < 0.0)) {
        return FSDP_OK;
    }
    lbfgs->pairs = 0;
    return find_direction(lbfgs, slope);
}

/* The pair of the step from the origin to here, in place of the oldest one where there is no room; `change`: the square of the step. */
static fsdp_status remember(fsdp_lbfgs *lbfgs, double *change)
{
    const bool   is_full = lbfgs->pairs == lbfgs->options.history;
    const size_t k       = is_full ? lbfgs->oldest : place_of(lbfgs, lbfgs->pairs);
    const int    s = fsdpi_lbfgs_change(k), y = fsdpi_lbfgs_gradient_change(k);
    const int    pairs[][2] = {{y, s}, {y, y}, {s, s}};
    double       products[3];

    fsdpi_lbfgs_combine(lbfgs, s, -1.0, FSDPI_LBFGS_ORIGIN, FSDPI_LBFGS_MASTER);
    fsdpi_lbfgs_combine(lbfgs, y, -1.0, FSDPI_LBFGS_SLOPE, FSDPI_LBFGS_GRADIENT);
    FSDP_TRY(fsdpi_lbfgs_dots(lbfgs, 3, pairs, products));
    *change = sqrt(products[2]);
    if (isfinite(1.0 / products[0]) && products[0] > 1e-10 * sqrt(products[1]) * sqrt(products[2])) {
        lbfgs->curvatures[k] = 1.0 / products[0];
        lbfgs->oldest        = is_full ? place_of(lbfgs, 1) : lbfgs->oldest;
        lbfgs->pairs += !is_full;
    } else if (is_full) { /* it lay where the oldest was */
        lbfgs->oldest = place_of(lbfgs, 1);
        lbfgs->pairs--;
    }
    return FSDP_OK;
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

static fsdp_status check_step(fsdp_lbfgs *lbfgs, fsdp_lbfgs_closure closure)
{
    fsdp_model *model = lbfgs->model;

    FSDP_TRY(fsdpi_between_passes(model, step_name));
    if (closure == NULL) {
        return fsdpi_fail_together(model->ctx, FSDP_ERR_ARG, "%s: the closure is NULL", step_name);
    }
    return fsdpi_has_gradients(model)
               ? fsdpi_fail_together(model->ctx, FSDP_ERR_STATE,
                                     "%s: there are gradients already; call fsdp_model_zero_grad first: the closure "
                                     "makes them",
                                     step_name)
               : FSDP_OK;
}

/* One direction and a search along it. `here`: where it begins, and ends. */
static fsdp_status iterate(fsdp_lbfgs *lbfgs, fsdpi_lbfgs_point *here, fsdp_lbfgs_result *result)
{
    double change;

    FSDP_TRY(find_direction(lbfgs, &here->slope));
    const double      first = lbfgs->options.lr / (lbfgs->pairs > 0 ? 1.0 : fmax(1.0, result->gradient_norm));
    fsdpi_lbfgs_point found;
    FSDP_TRY(fsdpi_lbfgs_search(lbfgs, here, first, &found));
    if (found.t == 0.0) {
        result->end  = lbfgs->pairs > 0 ? FSDP_LBFGS_MORE : FSDP_LBFGS_NO_PROGRESS; /* once more, along the gradient */
        lbfgs->pairs = 0;
        return FSDP_OK;
    }
    FSDP_TRY(remember(lbfgs, &change));
    const double tolerance = lbfgs->options.tolerance_change;
    result->iterations++;
    result->end =
        change <= tolerance || fabs(found.loss - here->loss) <= tolerance ? FSDP_LBFGS_CHANGE : FSDP_LBFGS_MORE;
    *here = (fsdpi_lbfgs_point){.loss = found.loss};
    return FSDP_OK;
}

/* At a new origin: the model's gradients are those there. */
static fsdp_status arrive(fsdp_lbfgs *lbfgs, const fsdpi_lbfgs_point *here, fsdp_lbfgs_result *result)
{
    double square;

    fsdpi_lbfgs_copy(lbfgs, FSDPI_LBFGS_ORIGIN, FSDPI_LBFGS_MASTER);
    fsdpi_lbfgs_copy(lbfgs, FSDPI_LBFGS_SLOPE, FSDPI_LBFGS_GRADIENT);
    FSDP_TRY(dot(lbfgs, FSDPI_LBFGS_SLOPE, FSDPI_LBFGS_SLOPE, &square));
    result->loss          = here->loss;
    result->gradient_norm = sqrt(square);
    if (!isfinite(here->loss) || !isfinite(square)) {
        result->end = FSDP_LBFGS_NOT_FINITE;
    } else if (result->gradient_norm <= lbfgs->options.tolerance_gradient) {
        result->end = FSDP_LBFGS_GRADIENT;
    }
    return FSDP_OK;
}

static fsdp_status minimise(fsdp_lbfgs *lbfgs, fsdp_lbfgs_result *result)
{
    fsdpi_lbfgs_point here = {.t = 0.0};

    FSDP_TRY(fsdpi_lbfgs_evaluate(lbfgs, &here.loss));
    FSDP_TRY(arrive(lbfgs, &here, result));
    while (result->end == FSDP_LBFGS_MORE && result->iterations < lbfgs->options.max_iterations) {
        const size_t before = result->iterations;

        FSDP_TRY(iterate(lbfgs, &here, result));
        if (result->iterations > before) {
            FSDP_TRY(arrive(lbfgs, &here, result));
        }
    }
    return FSDP_OK;
}

/* All ranks come here with an error each. */
static void take_back(fsdp_lbfgs *lbfgs)
{
    fsdp_model *model = lbfgs->model;

    (void)fsdp_model_zero_grad(model);
    fsdpi_lbfgs_copy(lbfgs, FSDPI_LBFGS_MASTER, FSDPI_LBFGS_START);
    lbfgs->pairs = 0;
    (void)fsdpi_lbfgs_moved(lbfgs);
}

fsdp_status fsdp_lbfgs_step(fsdp_lbfgs *lbfgs, fsdp_lbfgs_closure closure, void *state, fsdp_lbfgs_result *result)
{
    fsdp_lbfgs_result own = {.end = FSDP_LBFGS_MORE};
    char              label[96];

    if (lbfgs == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "%s: the L-BFGS is NULL; pass one from fsdp_lbfgs_create", step_name);
    }
    (void)snprintf(label, sizeof label, "%zu pairs in the history", lbfgs->pairs);
    FSDP_TRY(fsdpi_step_agree(lbfgs->model, step_name, label, 0, check_step(lbfgs, closure), true));
    lbfgs->closure     = closure;
    lbfgs->state       = state;
    lbfgs->evaluations = 0;
    fsdpi_lbfgs_copy(lbfgs, FSDPI_LBFGS_START, FSDPI_LBFGS_MASTER);
    const fsdp_status status = minimise(lbfgs, &own);
    if (status != FSDP_OK) {
        take_back(lbfgs);
        return status;
    }
    own.evaluations = lbfgs->evaluations;
    if (result != NULL) {
        *result = own;
    }
    return FSDP_OK;
}
