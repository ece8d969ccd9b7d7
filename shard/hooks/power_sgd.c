/*
 * PowerSGD (Vogels, Karimireddy and Jaggi, 2019). For each matrix M (n x m: gradient + what is left of the last one) and its
 * right factor Q (m x r) from the last time:
 *   1. P = M Q, averaged over the ranks; its columns are made orthonormal;
 *   2. Q' = transposed M P, averaged over the ranks;
 *   3. the mean is P x transposed Q'. What is left is M - P x transposed (this rank's Q').
 * All P of a gradient go in one allreduce, together with what is not compressed, and all Q' in another.
 * Sends 2 (N - 1) / N x 4 r (n + m) bytes per matrix; 6 r n m multiplications and additions each.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "fsdp/random.h"
#include "lib/base/options.h"
#include "shard/hooks/hook.h"
#include "shard/hooks/low_rank.h"

enum { MOST_RANK = 65536 };

static fsdpi_matrix_shape shape_of(const fsdp_hook *hook, const fsdp_gradient_tensor *tensor)
{
    fsdpi_matrix_shape shape = {
        .rows = tensor->n_dims > 0 ? tensor->shape[0] : 1, .columns = 1, .rank = hook->options.power_sgd.rank};

    for (size_t d = 1; d < tensor->n_dims; d++) {
        shape.columns *= tensor->shape[d];
    }
    return shape;
}

/* Compared in f64: the product of extents that do not pay may be too large for a size_t. */
static bool pays(const fsdp_hook *hook, fsdpi_matrix_shape shape)
{
    const double rows = (double)shape.rows, columns = (double)shape.columns;

    return (double)shape.rank * (rows + columns) * hook->options.power_sgd.min_ratio <= rows * columns;
}

/* One compressed matrix of a gradient, and where its parts begin in the arrays that hold those of all. */
typedef struct matrix {
    const fsdp_gradient_tensor *tensor;
    fsdpi_matrix_shape          shape;
    size_t                      number;              /* of the tensor */
    size_t                      values, left, right; /* ELEMENTS of those before it; at the end, of all */
} matrix;

static size_t elements(fsdpi_matrix_shape shape)
{
    return shape.rows * shape.columns;
}

/* The first compressed matrix from `m->number` on. */
static bool find_matrix(const fsdp_hook *hook, const fsdp_gradient *gradient, matrix *m)
{
    for (; m->number < gradient->n_tensors; m->number++) {
        m->tensor = &gradient->tensors[m->number];
        m->shape  = shape_of(hook, m->tensor);
        if (pays(hook, m->shape)) {
            return true;
        }
    }
    return false;
}

static matrix first_matrix(void)
{
    return (matrix){.number = 0};
}

static void step_over(matrix *m)
{
    m->values += elements(m->shape);
    m->left += m->shape.rank * m->shape.rows;
    m->right += m->shape.rank * m->shape.columns;
    m->number++;
}

#define FOR_EACH_MATRIX(m, hook, gradient)                                                                             \
    for (matrix m = first_matrix(); find_matrix((hook), (gradient), &(m)); step_over(&(m)))

/* Their elements in all. */
static matrix totals(const fsdp_hook *hook, const fsdp_gradient *gradient)
{
    matrix all = first_matrix();

    while (find_matrix(hook, gradient, &all)) {
        step_over(&all);
    }
    return all;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static bool applies(const fsdp_hook *hook, const fsdp_gradient *gradient)
{
    return gradient->ranks > 1 && totals(hook, gradient).values > 0;
}

/* What is left of all matrices, and their right factors. */
static size_t state_elements(const fsdp_hook *hook, const fsdp_gradient *gradient)
{
    const matrix all = totals(hook, gradient);

    return all.values + all.right;
}

/* Left factors with what is not compressed behind them, and this rank's and the mean right factors. */
static size_t scratch_bytes(const fsdp_hook *hook, const fsdp_gradient *gradient)
{
    const matrix all = totals(hook, gradient);

    return (all.left + (gradient->count - all.values) + 2 * all.right) * sizeof(float);
}

/* Right factors are the same on all ranks, whatever their number. */
static void start(const fsdp_hook *hook, const fsdp_gradient *gradient, float *state)
{
    float *right = state + totals(hook, gradient).values;

    FOR_EACH_MATRIX(m, hook, gradient)
    {
        const uint64_t stream = fsdp_random_stream(m.tensor->name);

        for (size_t i = 0; i < m.shape.rank * m.shape.columns; i++) {
            right[m.right + i] = (float)fsdp_random_normal(hook->options.power_sgd.seed, stream, i);
        }
    }
}

/* ---- reduction --------------------------------------------------------------------------------------------------- */

typedef struct power_reduction {
    const fsdpi_reduction *common;
    matrix                 all;
    size_t                 n_plain; /* ELEMENTS that are not compressed */
    float                 *rest;    /* state: what is left */
    float                 *warm;    /* state: right factors of the last time */
    float                 *left, *plain;
    float                 *own, *right; /* right factors of this rank, and their mean */
} power_reduction;

static power_reduction begin(const fsdpi_reduction *reduction)
{
    power_reduction r = {.common = reduction,
                         .all    = totals(reduction->hook, reduction->gradient),
                         .rest   = reduction->state,
                         .left   = reduction->scratch};

    r.n_plain = reduction->gradient->count - r.all.values;
    r.warm    = r.rest + r.all.values;
    r.plain   = r.left + r.all.left;
    r.own     = r.plain + r.n_plain;
    r.right   = r.own + r.all.right;
    return r;
}

/* Moves the elements from `begin` up to `end` to behind those `moved` before, or back. Returns how many that makes. */
static size_t move_range(const power_reduction *r, bool back, size_t begin, size_t end, size_t moved)
{
    float *const values = r->common->gradient->values + begin;
    float *const plain  = r->plain + moved;

    r->common->ctx->device->copy(back ? values : plain, back ? plain : values, (end - begin) * sizeof(float));
    return moved + (end - begin);
}

/* What lies between the matrices, before the first and behind the last goes to `plain`, or comes back from there. */
static void move_plain(const power_reduction *r, bool back)
{
    size_t at = 0, moved = 0;

    FOR_EACH_MATRIX(m, r->common->hook, r->common->gradient)
    {
        moved = move_range(r, back, at, m.tensor->offset, moved);
        at    = m.tensor->offset + elements(m.shape);
    }
    (void)move_range(r, back, at, r->common->gradient->count, moved);
}

static void compute_left_factors(const power_reduction *r)
{
    const fsdpi_kernels *kernels = r->common->ctx->kernels;

    FOR_EACH_MATRIX(m, r->common->hook, r->common->gradient)
    {
        float            *values  = r->common->gradient->values + m.tensor->offset;
        const void *const terms[] = {values, r->rest + m.values};

        kernels->reduce(values, terms, 2, elements(m.shape), FSDP_F32, FSDP_SUM, 1);
        fsdpi_left_factor(m.shape, values, r->warm + m.right, r->left + m.left);
    }
}

static void compute_right_factors(const power_reduction *r)
{
    FOR_EACH_MATRIX(m, r->common->hook, r->common->gradient)
    {
        fsdpi_orthonormalise(r->left + m.left, m.shape.rows, m.shape.rank);
        fsdpi_right_factor(m.shape, r->common->gradient->values + m.tensor->offset, r->left + m.left, r->own + m.right);
    }
}

/* Of what all ranks hold the same, so that they decide alike. */
static bool is_finite(const power_reduction *r)
{
    const fsdpi_kernels *kernels = r->common->ctx->kernels;

    return isfinite(kernels->absolute_maximum(r->plain, r->n_plain, FSDP_F32)) &&
           isfinite(kernels->absolute_maximum(r->right, r->all.right, FSDP_F32));
}

/*
 * What is left on this rank, and the right factors to start from: their columns span what they did, but are neither so small
 * nor so large that the next product could not be taken. Where a column is 0 the last one stays.
 */
static void keep_state(const power_reduction *r, const matrix *m)
{
    fsdpi_subtract_factors(m->shape, r->common->gradient->values + m->tensor->offset, r->left + m->left,
                           r->own + m->right, r->rest + m->values);
    for (size_t k = 0; k < m->shape.rank; k++) {
        const size_t column = m->right + k * m->shape.columns;

        fsdpi_normalise(r->right + column, m->shape.columns, r->warm + column);
    }
}

static void decompress(const power_reduction *r, bool keep)
{
    FOR_EACH_MATRIX(m, r->common->hook, r->common->gradient)
    {
        if (keep) {
            keep_state(r, &m);
        }
        fsdpi_multiply_factors(m.shape, r->left + m.left, r->right + m.right,
                               r->common->gradient->values + m.tensor->offset);
    }
}

static fsdp_status reduce(const fsdpi_reduction *reduction)
{
    const power_reduction r = begin(reduction);

    compute_left_factors(&r);
    move_plain(&r, false);
    FSDP_TRY(fsdpi_hook_average(reduction, FSDP_IN_PLACE, r.left, r.all.left + r.n_plain, FSDP_F32));
    compute_right_factors(&r);
    FSDP_TRY(fsdpi_hook_average(reduction, r.own, r.right, r.all.right, FSDP_F32));
    decompress(&r, is_finite(&r));
    move_plain(&r, true);
    return FSDP_OK;
}

const fsdpi_hook_method fsdpi_power_sgd_method = {.applies        = applies,
                                                  .state_elements = state_elements,
                                                  .scratch_bytes  = scratch_bytes,
                                                  .start          = start,
                                                  .reduce         = reduce};

/* ---- making ------------------------------------------------------------------------------------------------------ */

static fsdp_status check(fsdp_context *ctx, const char *function, const fsdp_power_sgd_options *options)
{
    if (options->rank < 1 || options->rank > MOST_RANK) {
        return fsdpi_fail_together(ctx, FSDP_ERR_ARG, "%s: rank is %zu; it must be 1 to %d", function, options->rank,
                                   MOST_RANK);
    }
    if (!(isfinite(options->min_ratio) && options->min_ratio >= 1.0)) {
        return fsdpi_fail_together(ctx, FSDP_ERR_ARG, "%s: min_ratio is %g; it must be 1 or more", function,
                                   options->min_ratio);
    }
    return FSDP_OK;
}

void fsdp_power_sgd_options_init_size(fsdp_power_sgd_options *options, size_t size)
{
    static const fsdp_power_sgd_options defaults = FSDP_POWER_SGD_OPTIONS_DEFAULT;

    fsdpi_options_give(&defaults, sizeof defaults, options, size);
}

fsdp_status fsdp_hook_power_sgd(fsdp_context *ctx, const fsdp_power_sgd_options *options, fsdp_hook **hook)
{
    static const char function[] = "fsdp_hook_power_sgd";
    fsdp_hook         plan = {.method = &fsdpi_power_sgd_method, .options.power_sgd = FSDP_POWER_SGD_OPTIONS_DEFAULT};
    char              label[96];

    fsdp_power_sgd_options *chosen = &plan.options.power_sgd;

    if (ctx == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "%s: the context is NULL; pass one from fsdp_init", function);
    }
    fsdp_status status = fsdpi_options_take(ctx, "fsdp_power_sgd_options", options, chosen, sizeof *chosen);
    status             = status == FSDP_OK ? check(ctx, function, chosen) : status;
    (void)snprintf(label, sizeof label, "rank %zu, min_ratio %.9g, seed %llu", chosen->rank, chosen->min_ratio,
                   (unsigned long long)chosen->seed);
    return fsdpi_hook_make(ctx, function, &plan, label, status, hook);
}
