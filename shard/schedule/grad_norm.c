#include "shard/schedule/grad_norm.h"

#include <math.h>
#include <stdio.h>

#include "fsdp/gradients.h"
#include "shard/schedule/between_passes.h"
#include "shard/schedule/divisor.h"
#include "shard/schedule/failed_step.h"
#include "shard/schedule/model_sum.h"
#include "shard/schedule/reduction.h"
#include "shard/schedule/shard_dot.h"
#include "shard/state/counted.h"
#include "shard/state/plane.h"
#include "shard/state/slices.h"
#include "shard/storage/compute.h"

/* ---- clipping by a norm ------------------------------------------------------------------------------------------ */

/* Of gradients in f32 the first, of those in f64 the second; or the largest magnitude. */
typedef struct norm_parts {
    fsdpi_exact_sum squares;
    fsdpi_exact_dot wide;
    bool            is_wide; /* some gradients are in f64 */
    double          largest;
} norm_parts;

/* What a norm is made of: of the gradients that this rank holds, of those of all ranks that share a copy, and at last in f64. */
typedef struct norm_kind {
    const char *function;
    fsdp_status (*measure)(fsdp_model *model, norm_parts *norm);
    fsdp_status (*join)(fsdp_model *model, const char *function, const char *label, fsdp_status status,
                        norm_parts *norm);
    double (*value)(const norm_parts *norm);
} norm_kind;

static fsdp_status sum_wide_squares(fsdp_model *model, norm_parts *norm)
{
    for (fsdpi_flat *flat = model->flats; flat != NULL; flat = flat->next) {
        if (flat->has_gradient) {
            fsdpi_shard_dot_add(flat, flat->gradient, flat->gradient, &norm->wide);
        }
    }
    return fsdpi_compute_status(model);
}

/* Of what counts on this rank. */
static fsdp_status add_counted(fsdp_model *model, fsdpi_exact_sum *sum)
{
    for (const fsdpi_flat *flat = model->flats; flat != NULL; flat = flat->next) {
        fsdpi_counted run;

        for (size_t t = 0; flat->has_gradient && fsdpi_counted_next(flat, &t, &run);) {
            FSDP_TRY(fsdpi_add_squares(model, fsdpi_gradient_at(flat, run.at), run.count, sum));
        }
    }
    return FSDP_OK;
}

static fsdp_status sum_squares(fsdp_model *model, norm_parts *norm)
{
    if (norm->is_wide) {
        return sum_wide_squares(model, norm);
    }
    return fsdpi_has_plane(model) ? add_counted(model, &norm->squares) : fsdpi_sum_squares(model, &norm->squares);
}

/* Words of integers, so that neither who holds which elements nor the order of ranks shows in a bit. */
static fsdp_status join_sums(fsdp_model *model, const char *function, const char *label, fsdp_status status,
                             norm_parts *norm)
{
    return norm->is_wide ? fsdpi_model_sum(model, function, label, status, false, &norm->wide, FSDPI_DOT_WORDS,
                                           FSDP_I64, FSDP_SUM)
                         : fsdpi_model_sum(model, function, label, status, false, &norm->squares, FSDPI_SUM_WORDS,
                                           FSDP_I64, FSDP_SUM);
}

/* Squares in f64 may be beyond its range where their root is not. */
static double root(const norm_parts *norm)
{
    fsdpi_exact_dot all = norm->wide;

    if (!norm->is_wide) {
        return sqrt(fsdpi_exact_sum_value(&norm->squares));
    }
    fsdpi_exact_dot_add_sum(&all, &norm->squares);
    return fsdpi_exact_dot_root(&all);
}

static fsdp_status find_largest(fsdp_model *model, norm_parts *norm)
{
    return fsdpi_absolute_maximum(model, &norm->largest);
}

static fsdp_status join_largest(fsdp_model *model, const char *function, const char *label, fsdp_status status,
                                norm_parts *norm)
{
    return fsdpi_model_sum(model, function, label, status, false, &norm->largest, 1, FSDP_F64, FSDP_MAX);
}

static double largest(const norm_parts *norm)
{
    return norm->largest;
}

static const norm_kind NORM_2   = {"fsdp_clip_grad_norm", sum_squares, join_sums, root};
static const norm_kind NORM_INF = {"fsdp_clip_grad_norm_inf", find_largest, join_largest, largest};

static fsdp_status check_clip(fsdp_model *model, const norm_kind *kind, double max_norm)
{
    FSDP_TRY(fsdpi_gradients_settle(model, kind->function)); /* before a bad argument ends it on this rank alone */
    if (!(max_norm > 0.0)) {
        return fsdpi_fail(model->ctx, FSDP_ERR_ARG, "%s: max_norm is %g; it must be above 0", kind->function, max_norm);
    }
    return fsdpi_check_gradients(model, kind->function);
}

/* Over the ranks that hold one copy, where there are several. A `status` that is not FSDP_OK only goes to the other ranks. */
static fsdp_status norm_of_model(fsdp_model *model, const norm_kind *kind, const char *label, fsdp_status status,
                                 norm_parts *norm)
{
    if (!fsdpi_gradients_divide_first(model, kind->function, &status)) {
        return status;
    }
    norm->is_wide = model->master_dtype == FSDP_F64; /* what is joined has this form, whatever has gone wrong here */
    status        = status == FSDP_OK ? kind->measure(model, norm) : status;
    return kind->join(model, kind->function, label, status, norm);
}

void fsdpi_scale_gradients(fsdp_model *model, double factor)
{
    for (const fsdpi_flat *flat = model->flats; flat != NULL; flat = flat->next) {
        if (flat->has_gradient) {
            fsdpi_compute_scale(model, flat->gradient, factor, fsdpi_held_elements(flat));
        }
    }
}

void fsdpi_clip_to(fsdp_model *model, double max_norm, double norm)
{
    const double factor = max_norm / (norm + 1e-6);

    if (isfinite(norm) && factor < 1.0) {
        fsdpi_scale_gradients(model, factor);
    }
}

static fsdp_status clip(fsdp_model *model, const norm_kind *kind, double max_norm, double *norm)
{
    char       label[64];
    norm_parts parts = {0};

    if (model == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "%s: the model is NULL; pass one from fsdp_model_create", kind->function);
    }
    (void)snprintf(label, sizeof label, "max_norm %.17g", max_norm);
    FSDP_TRY(norm_of_model(model, kind, label, check_clip(model, kind, max_norm), &parts));

    const double total = kind->value(&parts);
    fsdpi_clip_to(model, max_norm, total);
    if (norm != NULL) {
        *norm = total;
    }
    return fsdpi_step_fail(model, fsdpi_compute_status(model));
}

fsdp_status fsdp_clip_grad_norm(fsdp_model *model, double max_norm, double *norm)
{
    return clip(model, &NORM_2, max_norm, norm);
}

fsdp_status fsdp_clip_grad_norm_inf(fsdp_model *model, double max_norm, double *norm)
{
    return clip(model, &NORM_INF, max_norm, norm);
}

/* ---- the norm of several models ---------------------------------------------------------------------------------- */

static const norm_kind NORM_OF_SEVERAL = {"fsdp_grad_norm", sum_squares, join_sums, root};

/* What is wrong with the `i`-th one. The first one is there. */
static fsdp_status check_one_of(fsdp_model *const *models, size_t i)
{
    fsdp_context *ctx = models[0]->ctx;

    if (models[i] == NULL) {
        return fsdpi_fail(ctx, FSDP_ERR_ARG, "fsdp_grad_norm: model %zu is NULL; pass one from fsdp_model_create", i);
    }
    if (models[i]->ctx != ctx) {
        return fsdpi_fail(
            ctx, FSDP_ERR_ARG,
            "fsdp_grad_norm: model %zu is one of another context than model 0; combine the norms of different "
            "contexts yourself",
            i);
    }
    for (size_t k = 0; k < i; k++) {
        if (models[k] == models[i]) {
            return fsdpi_fail(ctx, FSDP_ERR_ARG, "fsdp_grad_norm: model %zu is model %zu again; pass each once", i, k);
        }
    }
    return FSDP_OK;
}

static fsdp_status check_several(fsdp_model *const *models, size_t n, const double *norm)
{
    const fsdp_model *first = models[0];

    FSDP_TRY(fsdpi_gradients_settle(models[0], NORM_OF_SEVERAL.function));
    if (norm == NULL) {
        return fsdpi_fail(first->ctx, FSDP_ERR_ARG, "fsdp_grad_norm: the place for the norm is NULL");
    }
    for (size_t i = 1; i < n; i++) {
        FSDP_TRY(check_one_of(models, i));
    }
    return FSDP_OK;
}

static void add_words(void *sum, const void *other, size_t n)
{
    int64_t       *words = sum;
    const int64_t *more  = other;

    for (size_t i = 0; i < n; i++) {
        words[i] += more[i];
    }
}

static void add_parts(norm_parts *sum, const norm_parts *other)
{
    add_words(&sum->squares, &other->squares, FSDPI_SUM_WORDS);
    add_words(&sum->wide, &other->wide, FSDPI_DOT_WORDS);
    sum->is_wide = sum->is_wide || other->is_wide;
}

fsdp_status fsdp_grad_norm(fsdp_model *const *models, size_t n_models, double *norm)
{
    norm_parts sum = {0};
    char       label[64];

    if (models == NULL || n_models == 0 || models[0] == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "fsdp_grad_norm: %s",
                          models == NULL  ? "the list of models is NULL"
                          : n_models == 0 ? "0 models; pass at least one"
                                          : "model 0 is NULL");
    }
    fsdp_status status = check_several(models, n_models, norm);
    for (size_t i = 0; i < n_models; i++) {
        norm_parts one = {0};

        status = status == FSDP_OK ? fsdpi_check_gradients(models[i], NORM_OF_SEVERAL.function) : status;
        (void)snprintf(label, sizeof label, "model %zu of %zu", i, n_models);
        FSDP_TRY(norm_of_model(models[i], &NORM_OF_SEVERAL, label, status, &one));
        add_parts(&sum, &one);
    }
    *norm = root(&sum);
    return FSDP_OK;
}

/* ---- clipping by value ------------------------------------------------------------------------------------------- */

static fsdp_status check_limit(fsdp_model *model, double limit)
{
    FSDP_TRY(fsdpi_gradients_settle(model, "fsdp_clip_grad_value"));
    if (!(limit >= 0.0)) {
        return fsdpi_fail(model->ctx, FSDP_ERR_ARG, "fsdp_clip_grad_value: the limit is %g; it must be 0 or more",
                          limit);
    }
    return fsdpi_check_gradients(model, "fsdp_clip_grad_value");
}

static void clamp_held(const fsdpi_flat *flat, double limit)
{
    const fsdpi_held held = fsdpi_held_slices(flat);

    for (int i = 0; i < held.n; i++) {
        fsdpi_compute_clamp(flat->model, fsdpi_slice_in(flat, flat->gradient, i), limit,
                            fsdpi_held_slice_count(flat, i));
    }
}

fsdp_status fsdp_clip_grad_value(fsdp_model *model, double limit)
{
    char label[64];

    if (model == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG,
                          "fsdp_clip_grad_value: the model is NULL; pass one from fsdp_model_create");
    }
    (void)snprintf(label, sizeof label, "limit %.17g", limit);
    fsdp_status status = check_limit(model, limit);
    if (!fsdpi_gradients_divide_first(model, "fsdp_clip_grad_value", &status)) {
        return status;
    }
    FSDP_TRY(fsdpi_model_agree(model, "fsdp_clip_grad_value", label, 0, status, false));
    for (const fsdpi_flat *flat = model->flats; flat != NULL; flat = flat->next) {
        if (flat->has_gradient) {
            clamp_held(flat, limit);
        }
    }
    return fsdpi_step_fail(model, fsdpi_compute_status(model));
}
