/*
 * Norms of tensors, one reduction for many of them: each rank adds up exactly what it holds of each.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "fsdp/gradients.h"
#include "shard/schedule/between_passes.h"
#include "shard/schedule/divisor.h"
#include "shard/schedule/failed_step.h"
#include "shard/schedule/model_sum.h"
#include "shard/state/counted.h"
#include "shard/state/plane.h"
#include "shard/state/slices.h"
#include "shard/storage/compute.h"

static const char per_tensor_name[] = "fsdp_grad_norm_per_tensor";

/* ---- one tensor -------------------------------------------------------------------------------------------------- */

/* Of some tensors, whose gradients are in f32, or in f64. */
typedef union squares {
    fsdpi_exact_sum narrow[FSDP_TENSORS_PER_REDUCTION];
    fsdpi_exact_dot wide[FSDP_TENSORS_PER_REDUCTION];
} squares;

static bool is_wide(const fsdp_model *model)
{
    return model->master_dtype == FSDP_F64;
}

static fsdp_status add_squares(fsdp_model *model, const void *x, size_t count, squares *sums, size_t i)
{
    if (!is_wide(model)) {
        return fsdpi_add_squares(model, x, count, &sums->narrow[i]);
    }
    fsdpi_compute_dot(model, &sums->wide[i], x, x, count);
    return fsdpi_compute_status(model);
}

static double root(const fsdp_model *model, const squares *sums, size_t i)
{
    return is_wide(model) ? fsdpi_exact_dot_root(&sums->wide[i]) : sqrt(fsdpi_exact_sum_value(&sums->narrow[i]));
}

/* Of what this rank holds of it, and nothing where it is counted on another. */
static fsdp_status add_held(const fsdpi_tensor *tensor, squares *sums, size_t i)
{
    const fsdpi_flat   *flat = tensor->member->flat;
    const fsdpi_counted held = fsdpi_held_of(tensor);
    const bool          mine = tensor->tp_parts > 1 || flat->model->plane.tp_position == 0;

    return flat->has_gradient && fsdpi_counts(flat) && mine && held.count > 0
               ? add_squares(flat->model, fsdpi_gradient_at(flat, held.at), held.count, sums, i)
               : FSDP_OK;
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

/* A walk over the tensors that have a gradient of their own. */
typedef struct walk {
    const fsdp_unit *unit;
    size_t           next;
} walk;

static const fsdpi_tensor *next_tensor(walk *w)
{
    for (; w->unit != NULL; w->unit = w->unit->next, w->next = 0) {
        while (w->next < w->unit->n_tensors) {
            const fsdpi_tensor *tensor = &w->unit->tensors[w->next++];

            if (tensor->owner == tensor && tensor->member != NULL && !tensor->member->flat->frozen) {
                return tensor;
            }
        }
    }
    return NULL;
}

typedef struct batch {
    const fsdpi_tensor *tensors[FSDP_TENSORS_PER_REDUCTION];
    squares             sums;
    size_t              n;
} batch;

static fsdp_status measure(walk *w, batch *b)
{
    fsdp_status status = FSDP_OK;

    *b = (batch){0};
    while (b->n < FSDP_TENSORS_PER_REDUCTION && (b->tensors[b->n] = next_tensor(w)) != NULL) {
        const fsdp_status one = add_held(b->tensors[b->n], &b->sums, b->n);

        status = status != FSDP_OK ? status : one;
        b->n++;
    }
    return status;
}

/* Each stage of a pipeline has tensors of its own, for which all others add nothing. */
static fsdp_status join(fsdp_model *model, batch *b, fsdp_status status)
{
    const size_t words = b->n * (is_wide(model) ? FSDPI_DOT_WORDS : FSDPI_SUM_WORDS);
    batch        none;

    if (!fsdpi_has_plane(model)) {
        return fsdpi_model_is_spread(model)
                   ? fsdpi_model_reduce(model, per_tensor_name, "sums", status, &b->sums, words, FSDP_I64, FSDP_SUM)
                   : status;
    }
    for (int stage = 0; stage < model->plane.n_stages; stage++) {
        const bool mine = stage == model->plane.stage;

        memset(&none, 0, sizeof none);
        FSDP_TRY(fsdpi_model_reduce(model, per_tensor_name, "sums of a stage", status, mine ? &b->sums : &none.sums,
                                    sizeof b->sums / sizeof(int64_t), FSDP_I64, FSDP_SUM));
    }
    return FSDP_OK;
}

/* How often ranks meet: until the longest stage is through. */
static fsdp_status count_rounds(fsdp_model *model, uint64_t *rounds)
{
    walk     w = {.unit = model->first};
    uint64_t n = 0;

    while (next_tensor(&w) != NULL) {
        n++;
    }
    *rounds = n / FSDP_TENSORS_PER_REDUCTION + 1;
    return fsdpi_has_plane(model)
               ? fsdpi_model_reduce(model, per_tensor_name, "rounds", FSDP_OK, rounds, 1, FSDP_I64, FSDP_MAX)
               : FSDP_OK;
}

static fsdp_status norms_of_all(fsdp_model *model, fsdp_tensor_norm *norms, size_t room, size_t *n)
{
    walk     w      = {.unit = model->first};
    uint64_t rounds = 0;
    batch    b;

    *n = 0;
    FSDP_TRY(fsdpi_step_fail(model, count_rounds(model, &rounds)));
    for (uint64_t round = 0; round < rounds; round++) {
        FSDP_TRY(fsdpi_step_fail(model, join(model, &b, measure(&w, &b))));
        for (size_t i = 0; i < b.n; i++, (*n)++) {
            if (norms != NULL && *n < room) {
                norms[*n] = (fsdp_tensor_norm){b.tensors[i]->name, root(model, &b.sums, i)};
            }
        }
    }
    return FSDP_OK;
}

fsdp_status fsdp_grad_norm_per_tensor(fsdp_model *model, fsdp_tensor_norm *norms, size_t room, size_t *n)
{
    size_t found = 0;

    if (model == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "%s: the model is NULL; pass one from fsdp_model_create",
                          per_tensor_name);
    }
    fsdp_status status = fsdpi_check_gradients(model, per_tensor_name);
    if (status == FSDP_OK && norms == NULL && room > 0) {
        status = fsdpi_fail(model->ctx, FSDP_ERR_ARG, "%s: the place for %zu norms is NULL", per_tensor_name, room);
    }
    if (!fsdpi_gradients_divide_first(model, per_tensor_name, &status)) {
        return status;
    }
    FSDP_TRY(fsdpi_model_agree(model, per_tensor_name, "norms of tensors", 0, status, false));
    FSDP_TRY(norms_of_all(model, norms, room, &found));
    if (n != NULL) {
        *n = found;
    }
    return FSDP_OK;
}
