/*
 * Norms of tensors, one reduction for many of them: each rank adds up exactly what it holds of each.
 */
#include <math.h>
#include <stdio.h>

#include "fsdp/gradients.h"
#include "shard/schedule/between_passes.h"
#include "shard/schedule/divisor.h"
#include "shard/schedule/failed_step.h"
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

/* Of what this rank holds of it. */
static fsdp_status add_held(const fsdpi_tensor *tensor, squares *sums, size_t i)
{
    const fsdpi_flat *flat  = tensor->member->flat;
    const size_t      begin = fsdpi_held_begin(flat), end = begin + fsdpi_held_elements(flat);
    const size_t      first = tensor->offset, behind = first + tensor->count;
    const size_t      from = first > begin ? first : begin, to = behind < end ? behind : end;

    return flat->has_gradient && fsdpi_counts(flat) && from < to
               ? add_squares(flat->model, fsdpi_gradient_at(flat, from - begin), to - from, sums, i)
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

static fsdp_status join(fsdp_model *model, batch *b, fsdp_status status)
{
    const fsdpi_purpose purpose = {.name = per_tensor_name, .label = "sums", .status = status};
    const size_t        words   = is_wide(model) ? FSDPI_DOT_WORDS : FSDPI_SUM_WORDS;

    return model->divides && model->shards->size > 1
               ? fsdpi_allreduce(model->shards, &purpose, FSDP_IN_PLACE, &b->sums, b->n * words, FSDP_I64, FSDP_SUM)
               : status;
}

static fsdp_status norms_of_all(fsdp_model *model, fsdp_tensor_norm *norms, size_t room, size_t *n)
{
    walk  w = {.unit = model->first};
    batch b;

    *n = 0;
    do {
        FSDP_TRY(fsdpi_step_fail(model, join(model, &b, measure(&w, &b))));
        for (size_t i = 0; i < b.n; i++, (*n)++) {
            if (norms != NULL && *n < room) {
                norms[*n] = (fsdp_tensor_norm){b.tensors[i]->name, root(model, &b.sums, i)};
            }
        }
    } while (b.n == FSDP_TENSORS_PER_REDUCTION);
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
    if (fsdpi_has_undivided(model)) {
        FSDP_TRY(fsdpi_gradients_divide(model, per_tensor_name, status));
    }
    FSDP_TRY(fsdpi_step_agree(model, per_tensor_name, "norms of tensors", 0, status, false));
    FSDP_TRY(norms_of_all(model, norms, room, &found));
    if (n != NULL) {
        *n = found;
    }
    return FSDP_OK;
}
