/*
 * Each matrix is on one rank, or on every rank that holds a copy of it, as a whole. The direction is worked out where the gradient
 * is, which is of no use afterwards.
 *
 * Arithmetic is in f64 or with one rounding for a product and a sum, so that its bits depend on no compiler.
 */
#include "shard/optimizer/muon.h"

#include <math.h>

#include "shard/optimizer/newton_schulz.h"
#include "shard/optimizer/optimizer_groups.h"
#include "shard/state/slices.h"
#include "shard/state/tensor.h"
#include "shard/state/tensor_groups.h"
#include "shard/storage/model_gpu.h"

/* ---- which tensors ----------------------------------------------------------------------------------------------- */

/* The first extent is that of rows. */
static size_t columns_of(const fsdpi_tensor *tensor)
{
    return tensor->count / tensor->shape[0];
}

/* Whether the group's optimizer updates it: an owner, divided. */
static bool is_updated(const fsdpi_tensor *tensor, const fsdpi_tensor_group *group)
{
    return tensor->group == group && tensor->owner == tensor && fsdpi_is_divided(tensor) &&
           (tensor->flags & FSDP_TENSOR_FROZEN) == 0;
}

size_t fsdpi_muon_scratch(const fsdp_model *model, const fsdpi_tensor_group *group)
{
    size_t most = 0;

    for (const fsdp_unit *unit = model->first; unit != NULL; unit = unit->next) {
        for (size_t i = 0; i < unit->n_tensors; i++) {
            const fsdpi_tensor *tensor = &unit->tensors[i];

            if (is_updated(tensor, group) && tensor->n_dims >= 2) {
                const size_t bytes =
                    fsdpi_newton_schulz_bytes(tensor->shape[0], columns_of(tensor), model->master_dtype);

                most = bytes > most ? bytes : most;
            }
        }
    }
    return most;
}

static fsdp_status check_shapes(const fsdp_model *model, const fsdpi_tensor_group *group)
{
    for (const fsdp_unit *unit = model->first; unit != NULL; unit = unit->next) {
        for (size_t i = 0; i < unit->n_tensors; i++) {
            const fsdpi_tensor *tensor = &unit->tensors[i];

            if (is_updated(tensor, group) && tensor->n_dims < 2) {
                return fsdpi_fail_together(model->ctx, FSDP_ERR_ARG,
                                           "fsdp_optimizer_create: FSDP_MUON for tensor '%.100s', which has %zu "
                                           "dimension%s and is no matrix; leave it out of the group '%.60s', for AdamW",
                                           tensor->name, tensor->n_dims, tensor->n_dims == 1 ? "" : "s",
                                           group->pattern);
            }
        }
    }
    return FSDP_OK;
}

fsdp_status fsdpi_muon_check(const fsdp_model *model, const fsdpi_tensor_group *group,
                             const fsdp_optimizer_options *options)
{
    if (group == NULL || fsdpi_granularity(model, group) != FSDP_GRANULARITY_TENSOR) {
        return fsdpi_fail_together(model->ctx, FSDP_ERR_ARG,
                                   "fsdp_optimizer_create: FSDP_MUON needs whole matrices; put them into a group with "
                                   "FSDP_GRANULARITY_TENSOR by fsdp_model_add_group, and name it in "
                                   "fsdp_optimizer_options.group");
    }
    if (fsdpi_is_on_device(model)) {
        return fsdpi_fail_together(model->ctx, FSDP_ERR_UNSUPPORTED,
                                   "fsdp_optimizer_create: FSDP_MUON in a model on a GPU; use FSDP_ON_HOST, or "
                                   "FSDP_CUSTOM with kernels of your own");
    }
    if (options->moment_dtype != model->master_dtype) {
        return fsdpi_fail_together(model->ctx, FSDP_ERR_ARG,
                                   "fsdp_optimizer_create: FSDP_MUON with moments in %s; use the masters' type, %s",
                                   fsdp_dtype_name(options->moment_dtype), fsdp_dtype_name(model->master_dtype));
    }
    return check_shapes(model, group);
}

/* ---- a step ------------------------------------------------------------------------------------------------------ */

/* One matrix, all of which this rank holds. */
typedef struct matrix {
    const fsdp_optimizer *optimizer;
    void                 *master, *gradient, *moment;
    size_t                rows, columns;
    double                lr, decay;
} matrix;

/* b = mu b + g, and into g what is to be orthogonalised: b, or g + mu b. */
static void gather_momentum(const matrix *m, fsdp_dtype dtype)
{
    const fsdp_optimizer_options *o  = &m->optimizer->options;
    const double                  mu = o->momentum;

    for (size_t i = 0; i < m->rows * m->columns; i++) {
        if (dtype == FSDP_F64) {
            double *b = (double *)m->moment + i, *g = (double *)m->gradient + i;

            *b = fma(mu, *b, *g);
            *g = o->nesterov != 0 ? fma(mu, *b, *g) : *b;
        } else {
            float *b = (float *)m->moment + i, *g = (float *)m->gradient + i;

            *b = (float)fma(mu, (double)*b, (double)*g);
            *g = o->nesterov != 0 ? (float)fma(mu, (double)*b, (double)*g) : *b;
        }
    }
}

static double scale_of(const matrix *m)
{
    const double rows = (double)m->rows, columns = (double)m->columns, own = m->optimizer->options.muon_scale;

    return own > 0.0 ? own * sqrt(fmax(rows, columns)) : sqrt(fmax(1.0, rows / columns));
}

/* w = (w - lr decay w) - lr scale x */
static void move(const matrix *m, const void *x, fsdp_dtype dtype)
{
    const double kept = -(m->lr * m->decay), moved = -(m->lr * scale_of(m));

    for (size_t i = 0; i < m->rows * m->columns; i++) {
        if (dtype == FSDP_F64) {
            double *w = (double *)m->master + i;

            *w = fma(moved, ((const double *)x)[i], fma(kept, *w, *w));
        } else {
            float *w = (float *)m->master + i;

            *w = (float)fma(moved, (double)((const float *)x)[i], fma(kept, (double)*w, (double)*w));
        }
    }
}

static void update_matrix(const matrix *m)
{
    const fsdp_model *model = m->optimizer->model;

    gather_momentum(m, model->master_dtype);
    move(m,
         fsdpi_newton_schulz(model->ctx->kernels, m->gradient, m->rows, m->columns, model->master_dtype,
                             m->optimizer->options.eps, m->optimizer->scratch),
         model->master_dtype);
}

static void update_flat(const fsdp_optimizer *optimizer, const fsdpi_flat *flat, const fsdpi_flat_state *state)
{
    const size_t begin = fsdpi_held_begin(flat), end = begin + fsdpi_held_elements(flat);

    for (size_t t = 0; t < flat->n_tensors; t++) {
        const fsdpi_tensor *tensor = flat->tensors[t];
        const bool          decays = (tensor->flags & FSDP_TENSOR_NO_WEIGHT_DECAY) == 0;

        if (tensor->offset >= begin && tensor->offset < end) {
            const size_t at = tensor->offset - begin;
            const matrix m  = {.optimizer = optimizer,
                               .master    = fsdpi_master_at(flat, at),
                               .gradient  = fsdpi_gradient_at(flat, at),
                               .moment    = fsdpi_at(flat->model, state->moments[0], at),
                               .rows      = tensor->shape[0],
                               .columns   = columns_of(tensor),
                               .lr        = fsdpi_group_lr(optimizer, state->group[t]),
                               .decay     = decays ? fsdpi_group_weight_decay(optimizer, state->group[t]) : 0.0};

            update_matrix(&m);
        }
    }
}

void fsdpi_muon_update(fsdp_optimizer *optimizer)
{
    size_t u = 0;

    for (const fsdpi_flat *flat = optimizer->model->flats; flat != NULL; flat = flat->next, u++) {
        if (flat->has_gradient && fsdpi_updates(optimizer, flat)) {
            update_flat(optimizer, flat, &optimizer->flats[u]);
        }
    }
}
