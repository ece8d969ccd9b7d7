/*
 * Muon: one step and another against the definition in long double, on one rank; then the same bits for any number of ranks and every
 * strategy, beside AdamW for vectors of the same units.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fsdp/fsdp.h"
#include "kernels/kernels.h"
#include "shard/optimizer/newton_schulz.h"
#include "tests/shard/checkpoint/saved_model.h"
#include "tests/support/mpi_test.h"

enum {
    UNITS          = 2,
    TENSORS_OF_ALL = 7,
    MOST_ROWS      = 40,
    MOST_ELEMENTS  = 1200,
    ALL_ELEMENTS   = 4096,
    MATRICES       = 5,
    STEPS          = 3
};

#define MATRICES_PATTERN "*.weight*"
#define FILL             .dtype = FSDP_F32, .fill = FSDP_FILL_CONSTANT

/* Wide, tall, square, and flattened; a matrix of one column; and vectors between them. */
static const fsdp_tensor ALL[TENSORS_OF_ALL] = {
    {.name = "a.weight", .n_dims = 2, .shape = {10, 40}, FILL},
    {.name = "a.bias", .n_dims = 1, .shape = {10}, FILL},
    {.name = "a.weight_tall", .n_dims = 2, .shape = {40, 13}, FILL},
    {.name = "b.weight", .n_dims = 2, .shape = {31, 31}, FILL},
    {.name = "b.scale", .n_dims = 0, FILL},
    {.name = "b.weight_cube", .n_dims = 3, .shape = {6, 5, 7}, FILL},
    {.name = "b.weight_one", .n_dims = 2, .shape = {9, 1}, FILL},
};
static const size_t FIRST[UNITS + 1] = {0, 3, TENSORS_OF_ALL};

typedef struct job {
    fsdp_context   *ctx;
    fsdp_model     *model;
    fsdp_unit      *units[UNITS];
    fsdp_optimizer *muon, *adamw;
    int             low_rank; /* gradients of rank 8 at most */
} job;

static size_t elements(size_t t)
{
    size_t n = 1;

    for (size_t d = 0; d < ALL[t].n_dims; d++) {
        n *= ALL[t].shape[d];
    }
    return n;
}

static size_t columns(size_t t)
{
    return ALL[t].n_dims > 0 ? elements(t) / ALL[t].shape[0] : 1;
}

static int is_matrix(size_t t)
{
    return ALL[t].n_dims >= 2;
}

/* ---- the job ----------------------------------------------------------------------------------------------------- */

static fsdp_optimizer_options muon_options(void)
{
    fsdp_optimizer_options o;

    assert_int_equal(FSDP_OK, fsdp_optimizer_options_init(FSDP_MUON, &o));
    o.group = MATRICES_PATTERN;
    return o;
}

static void build(job *j, fsdp_context *ctx, fsdp_strategy strategy, double value)
{
    fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;
    fsdp_model_group   group   = FSDP_MODEL_GROUP_DEFAULT;
    fsdp_tensor        tensors[TENSORS_OF_ALL];

    *j                = (job){.ctx = ctx};
    options.strategy  = strategy;
    group.granularity = FSDP_GRANULARITY_TENSOR;
    group.optimizer   = FSDP_MUON;
    memcpy(tensors, ALL, sizeof tensors);
    for (size_t t = 0; t < TENSORS_OF_ALL; t++) {
        tensors[t].a = value;
    }
    assert_int_equal(FSDP_OK, fsdp_model_create(ctx, &options, &j->model));
    assert_int_equal(FSDP_OK, fsdp_model_add_group(j->model, MATRICES_PATTERN, &group));
    for (size_t u = 0; u < UNITS; u++) {
        assert_int_equal(FSDP_OK, fsdp_unit_add(j->model, u == 0 ? "a" : "b", &tensors[FIRST[u]],
                                                FIRST[u + 1] - FIRST[u], &j->units[u]));
    }
    assert_int_equal(FSDP_OK, fsdp_model_commit(j->model));
}

static void open_job(job *j, fsdp_context *ctx, fsdp_strategy strategy, double value, const fsdp_optimizer_options *o)
{
    fsdp_optimizer_options rest;

    build(j, ctx, strategy, value);
    assert_int_equal(FSDP_OK, fsdp_optimizer_create(j->model, o, &j->muon));
    assert_int_equal(FSDP_OK, fsdp_optimizer_options_init(FSDP_ADAMW, &rest));
    assert_int_equal(FSDP_OK, fsdp_optimizer_create(j->model, &rest, &j->adamw));
}

/* Small integers by 1/64, the same on every rank, so that their mean over the ranks is exact; of rank 8 if asked for. */
static float gradient_of(const job *j, size_t step, size_t t, size_t i)
{
    const size_t row = i / columns(t), column = i % columns(t);
    double       sum = 0.0;

    if (!j->low_rank) {
        return (float)(floor(2048.0 * fsdp_random_uniform(7 + step, t, i)) - 1024.0) / 64.0F;
    }
    for (size_t k = 0; k < 8; k++) {
        const double left  = floor(7.0 * fsdp_random_uniform(11 + step, t, 8 * row + k)) - 3.0;
        const double right = floor(7.0 * fsdp_random_uniform(19 + step, t, 8 * column + k)) - 3.0;

        sum += left * right;
    }
    return (float)sum / 64.0F;
}

static void run_pass(const job *j, size_t step)
{
    for (size_t u = 0; u < UNITS; u++) {
        assert_int_equal(FSDP_OK, fsdp_unit_begin_forward(j->units[u]));
        assert_int_equal(FSDP_OK, fsdp_unit_end_forward(j->units[u]));
    }
    for (size_t u = UNITS; u-- > 0;) {
        assert_int_equal(FSDP_OK, fsdp_unit_begin_backward(j->units[u]));
        for (size_t t = FIRST[u]; t < FIRST[u + 1]; t++) {
            float *g = fsdp_unit_grad(j->units[u], t - FIRST[u]);

            for (size_t i = 0; i < elements(t); i++) {
                g[i] = gradient_of(j, step, t, i);
            }
        }
        assert_int_equal(FSDP_OK, fsdp_unit_end_backward(j->units[u]));
    }
}

static void train(const job *j, size_t first, size_t n)
{
    for (size_t step = first; step < first + n; step++) {
        run_pass(j, step);
        assert_int_equal(FSDP_OK, fsdp_optimizer_step(j->muon));
        assert_int_equal(FSDP_OK, fsdp_optimizer_step(j->adamw));
    }
}

/* All tensors, one after the other. */
static void copy_all(const job *j, float all[ALL_ELEMENTS])
{
    size_t at = 0;

    memset(all, 0, ALL_ELEMENTS * sizeof *all);
    for (size_t u = 0; u < UNITS; u++) {
        assert_int_equal(FSDP_OK, fsdp_unit_begin_forward(j->units[u]));
        for (size_t t = FIRST[u]; t < FIRST[u + 1]; t++) {
            memcpy(&all[at], fsdp_unit_param(j->units[u], t - FIRST[u]), elements(t) * sizeof *all);
            at += elements(t);
        }
        assert_int_equal(FSDP_OK, fsdp_unit_end_forward(j->units[u]));
    }
}

static void close_job(job *j)
{
    fsdp_model_destroy(j->model);
}

/* ---- the definition ---------------------------------------------------------------------------------------------- */

/* c = x y, of n x k and k x m. */
static void multiply(const long double *x, const long double *y, size_t n, size_t k, size_t m, long double *c)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < m; j++) {
            long double sum = 0;

            for (size_t l = 0; l < k; l++) {
                sum += x[i * k + l] * y[l * m + j];
            }
            c[i * m + j] = sum;
        }
    }
}

static void transpose(const long double *x, size_t n, size_t m, long double *y)
{
    for (size_t i = 0; i < n * m; i++) {
        y[(i % m) * n + i / m] = x[i];
    }
}

/* Of a matrix of n x m, at most as many rows as columns. */
static void orthogonalise_wide(long double *x, size_t n, size_t m)
{
    static long double turned[MOST_ELEMENTS], gram[MOST_ROWS * MOST_ROWS], square[MOST_ROWS * MOST_ROWS];
    static long double next[MOST_ELEMENTS];

    for (int k = 0; k < 5; k++) {
        transpose(x, n, m, turned);
        multiply(x, turned, n, m, n, gram);
        multiply(gram, gram, n, n, n, square);
        for (size_t i = 0; i < n * n; i++) {
            square[i] = -4.7750L * gram[i] + 2.0315L * square[i];
        }
        multiply(square, x, n, n, m, next);
        for (size_t i = 0; i < n * m; i++) {
            x[i] = 3.4445L * x[i] + next[i];
        }
    }
}

static void orthogonalise(long double *x, size_t n, size_t m, long double eps)
{
    static long double turned[MOST_ELEMENTS];
    long double        sum = 0;

    for (size_t i = 0; i < n * m; i++) {
        sum += x[i] * x[i];
    }
    for (size_t i = 0; i < n * m; i++) {
        x[i] /= sqrtl(sum) + eps;
    }
    if (n <= m) {
        orthogonalise_wide(x, n, m);
        return;
    }
    transpose(x, n, m, turned);
    orthogonalise_wide(turned, m, n);
    transpose(turned, m, n, x);
}

/* All steps up to `steps` of one matrix. */
static void by_definition(const job *j, const fsdp_optimizer_options *o, size_t t, size_t steps, double start,
                          long double *w)
{
    static long double b[MOST_ELEMENTS], x[MOST_ELEMENTS];
    const size_t       n = ALL[t].shape[0], m = columns(t);
    const long double  mu = (long double)o->momentum, lr = (long double)o->lr, decay = (long double)o->weight_decay;
    const long double  own   = (long double)o->muon_scale;
    const long double  ratio = (long double)n / (long double)m;
    const long double  scale = own > 0 ? own * sqrtl((long double)(n > m ? n : m)) : sqrtl(ratio > 1 ? ratio : 1.0L);

    for (size_t i = 0; i < n * m; i++) {
        b[i] = 0, w[i] = (long double)start;
    }
    for (size_t step = 0; step < steps; step++) {
        for (size_t i = 0; i < n * m; i++) {
            const long double g = (long double)gradient_of(j, step, t, i);

            b[i] = mu * b[i] + g;
            x[i] = o->nesterov != 0 ? g + mu * b[i] : b[i];
        }
        orthogonalise(x, n, m, (long double)o->eps);
        for (size_t i = 0; i < n * m; i++) {
            w[i] = w[i] - lr * decay * w[i] - lr * scale * x[i];
        }
    }
}

static void assert_near_the_definition(const job *j, const fsdp_optimizer_options *o, size_t steps, double start)
{
    static float       all[ALL_ELEMENTS];
    static long double w[MOST_ELEMENTS];
    const float       *found = all;

    copy_all(j, all);
    for (size_t t = 0; t < TENSORS_OF_ALL; found += elements(t), t++) {
        long double off = 0, size = 0;

        if (!is_matrix(t)) {
            continue;
        }
        by_definition(j, o, t, steps, start, w);
        for (size_t i = 0; i < elements(t); i++) {
            const long double e = (long double)found[i] - w[i];

            off += e * e, size += w[i] * w[i];
        }
        if (!(sqrtl(off / size) <= 1e-4L)) {
            fail_msg("%s is off by %Lg of its size after %zu steps", ALL[t].name, sqrtl(off / size), steps);
        }
    }
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

/* From zeros, at a rate of 1: what is compared is the update. */
static void check_updates(fsdp_context *ctx, int low_rank, fsdp_optimizer_options o, double start)
{
    job j;

    open_job(&j, ctx, FSDP_FULL_SHARD, start, &o);
    j.low_rank = low_rank;
    for (size_t step = 0; step < 2; step++) {
        train(&j, step, 1);
        assert_near_the_definition(&j, &o, step + 1, start);
    }
    close_job(&j);
}

static void updates_are_those_of_the_definition(void **state)
{
    fsdp_optimizer_options o = muon_options();

    o.lr = 1.0;
    check_updates(*state, 0, o, 0.0);
    o.nesterov   = 0;
    o.muon_scale = 0.2;
    check_updates(*state, 0, o, 0.0);
    o.lr           = 0.02;
    o.weight_decay = 0.1;
    check_updates(*state, 0, o, 1.0);
}

static void updates_from_a_gradient_of_rank_8_are_those_of_the_definition(void **state)
{
    fsdp_optimizer_options o = muon_options();

    o.lr = 1.0;
    check_updates(*state, 1, o, 0.0);
}

/* Row-major, of n x m; of rank 8 where asked for. */
static void fill_f64(double *x, size_t n, size_t m, int low_rank)
{
    for (size_t i = 0; i < n * m; i++) {
        x[i] = low_rank ? 0.0 : fsdp_random_uniform(3, 1, i) - 0.5;
        for (size_t k = 0; k < 8 && low_rank; k++) {
            x[i] +=
                (fsdp_random_uniform(3, 2, 8 * (i / m) + k) - 0.5) * (fsdp_random_uniform(3, 3, 8 * (i % m) + k) - 0.5);
        }
    }
}

/* The same bits by all tables of kernels. */
static void check_orthogonal_f64(size_t n, size_t m, int low_rank)
{
    static const char *const tables[] = {"scalar", "avx2", "avx512", "neon"};
    static double            g[MOST_ELEMENTS], first[MOST_ELEMENTS];
    static long double       exact[MOST_ELEMENTS];
    const fsdpi_kernels     *kernels;
    const size_t             bytes   = fsdpi_newton_schulz_bytes(n, m, FSDP_F64);
    void                    *scratch = malloc(bytes);
    long double              off = 0, size = 0;

    assert_non_null(scratch);
    for (size_t k = 0; k < 4; k++) {
        kernels = fsdpi_kernels_find(tables[k]);
        if (kernels != NULL) {
            fill_f64(g, n, m, low_rank);
            const double *x = fsdpi_newton_schulz(kernels, g, n, m, FSDP_F64, 1e-7, scratch);

            if (k == 0) {
                memcpy(first, x, n * m * sizeof *x);
            }
            assert_memory_equal(first, x, n * m * sizeof *x);
        }
    }
    fill_f64(g, n, m, low_rank);
    for (size_t i = 0; i < n * m; i++) {
        exact[i] = (long double)g[i];
    }
    orthogonalise(exact, n, m, 1e-7L);
    for (size_t i = 0; i < n * m; i++) {
        const long double e = (long double)first[i] - exact[i];

        off += e * e, size += exact[i] * exact[i];
    }
    free(scratch);
    if (!(sqrtl(off / size) <= 1e-10L)) {
        fail_msg("%zu x %zu is off by %Lg", n, m, sqrtl(off / size));
    }
}

static void matrices_of_f64_are_orthogonalised_to_1e_10(void **state)
{
    (void)state;
    for (int low_rank = 0; low_rank <= 1; low_rank++) {
        check_orthogonal_f64(1, 1, low_rank);
        check_orthogonal_f64(1, 31, low_rank);
        check_orthogonal_f64(37, 29, low_rank);
        check_orthogonal_f64(20, 60, low_rank);
    }
}

static void gradients_near_the_end_of_the_range_do_not_overflow(void **state)
{
    float g[2][4] = {{1e38F, 0.0F, 0.0F, -1e38F}, {1e-38F, 0.0F, 0.0F, -1e-38F}}, nan[4] = {1.0F, INFINITY, 0.0F, 1.0F};
    void *scratch = malloc(fsdpi_newton_schulz_bytes(2, 2, FSDP_F32));

    (void)state;
    assert_non_null(scratch);
    for (size_t k = 0; k < 2; k++) {
        const float *x = fsdpi_newton_schulz(fsdpi_kernels_find("auto"), g[k], 2, 2, FSDP_F32, 1e-45, scratch);

        assert_true(x[0] > 0.6F && x[0] < 1.3F && x[1] == 0.0F && x[2] == 0.0F && x[3] == -x[0]);
    }
    const float *x = fsdpi_newton_schulz(fsdpi_kernels_find("auto"), nan, 2, 2, FSDP_F32, 1e-7, scratch);
    assert_true(isnan(x[0]) && isnan(x[1]) && isnan(x[2]) && isnan(x[3]));
    free(scratch);
}

static void all_strategies_and_numbers_of_ranks_give_the_same_bits(void **state)
{
    static float           expected[ALL_ELEMENTS], found[ALL_ELEMENTS];
    fsdp_optimizer_options o = muon_options();
    fsdp_context          *alone;
    job                    j;

    o.weight_decay = 0.01;
    assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_SELF, NULL, &alone));
    open_job(&j, alone, FSDP_FULL_SHARD, 0.5, &o);
    train(&j, 0, STEPS);
    copy_all(&j, expected);
    close_job(&j);
    assert_int_equal(FSDP_OK, fsdp_finalize(alone));
    for (int strategy = 0; strategy < FSDP_N_STRATEGIES; strategy++) {
        open_job(&j, *state, (fsdp_strategy)strategy, 0.5, &o);
        train(&j, 0, STEPS);
        copy_all(&j, found);
        close_job(&j);
        assert_memory_equal(expected, found, sizeof expected);
    }
}

/* The largest rank holds what the budget says. */
static void the_budget_is_what_is_held(void **state)
{
    const fsdp_optimizer_options o = muon_options();

    (void)state;
    for (int strategy = 0; strategy < FSDP_N_STRATEGIES; strategy++) {
        fsdp_context *ctx;
        fsdp_budget   budget;
        fsdp_memory   memory;
        job           j;

        assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_WORLD, NULL, &ctx));
        open_job(&j, ctx, (fsdp_strategy)strategy, 0.0, &o);
        assert_int_equal(FSDP_OK, fsdp_model_budget(j.model, (fsdp_strategy)strategy, 0, FSDP_ADAMW, &budget));
        assert_int_equal(FSDP_OK, fsdp_memory_usage(ctx, &memory));
        unsigned long long held = memory.current_total, most = 0;

        assert_int_equal(MPI_SUCCESS, MPI_Allreduce(&held, &most, 1, MPI_UNSIGNED_LONG_LONG, MPI_MAX, MPI_COMM_WORLD));
        close_job(&j);
        assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
        assert_int_equal(budget.total, most);
    }
}

static void a_checkpoint_goes_on_with_the_same_bits(void **state)
{
    static float                 expected[ALL_ELEMENTS], found[ALL_ELEMENTS];
    const fsdp_optimizer_options o     = muon_options();
    fsdp_checkpoint_state        known = {0};
    fsdp_checkpoint             *checkpoint;
    job                          j;

    open_job(&j, *state, FSDP_FULL_SHARD, 0.5, &o);
    train(&j, 0, 2);
    assert_int_equal(FSDP_OK, fsdp_checkpoint_open(j.model, j.muon, saved_folder, NULL, &checkpoint));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_save(checkpoint, &known));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_close(checkpoint));
    train(&j, 2, 1);
    copy_all(&j, expected);
    close_job(&j);
    open_job(&j, *state, FSDP_SHARD_GRAD_OP, 0.0, &o);
    assert_int_equal(FSDP_OK, fsdp_checkpoint_load(j.model, j.muon, saved_folder, NULL, &known));
    train(&j, 2, 1);
    copy_all(&j, found);
    assert_memory_equal(expected, found, sizeof expected);
    close_job(&j);
}

static void assert_not_made(const job *j, const fsdp_optimizer_options *o, fsdp_status status, const char *words)
{
    fsdp_optimizer *none = NULL;

    assert_int_equal(status, fsdp_optimizer_create(j->model, o, &none));
    assert_null(none);
    assert_says(j->ctx, words);
}

static void what_muon_cannot_do_is_refused_by_name(void **state)
{
    fsdp_optimizer_options o     = muon_options();
    fsdp_model_group       group = FSDP_MODEL_GROUP_DEFAULT;
    fsdp_context          *ctx;
    fsdp_config            config;
    fsdp_model            *model;
    job                    j;

    (void)state;
    fsdp_config_init(&config);
    config.log_level = FSDP_LOG_OFF;
    assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_WORLD, &config, &ctx));
    build(&j, ctx, FSDP_FULL_SHARD, 0.0);
    o.group = NULL;
    assert_not_made(&j, &o, FSDP_ERR_ARG, "FSDP_GRANULARITY_TENSOR");
    o              = muon_options();
    o.moment_dtype = FSDP_BF16;
    assert_not_made(&j, &o, FSDP_ERR_ARG, "moment_dtype");
    o          = muon_options();
    o.momentum = 1.0;
    assert_not_made(&j, &o, FSDP_ERR_ARG, "momentum");
    o            = muon_options();
    o.muon_scale = -1.0;
    assert_not_made(&j, &o, FSDP_ERR_ARG, "muon_scale");
    o     = muon_options();
    o.eps = 0.0;
    assert_not_made(&j, &o, FSDP_ERR_ARG, "eps");
    close_job(&j);

    assert_int_equal(FSDP_OK, fsdp_model_create(ctx, NULL, &model));
    group.optimizer = FSDP_MUON;
    assert_int_equal(FSDP_ERR_ARG, fsdp_model_add_group(model, "*", &group));
    assert_says(ctx, "FSDP_GRANULARITY_TENSOR");
    fsdp_model_destroy(model);

    assert_int_equal(FSDP_OK, fsdp_model_create(ctx, NULL, &model));
    j                 = (job){.ctx = ctx, .model = model};
    group.granularity = FSDP_GRANULARITY_TENSOR;
    assert_int_equal(FSDP_OK, fsdp_model_add_group(model, "*", &group));
    assert_int_equal(FSDP_OK, fsdp_unit_add(model, "a", ALL, 3, &j.units[0]));
    assert_int_equal(FSDP_OK, fsdp_model_commit(model));
    o       = muon_options();
    o.group = "*";
    assert_not_made(&j, &o, FSDP_ERR_ARG, "a.bias");
    fsdp_model_destroy(model);
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

/* A group that was meant for another optimizer, whose matrices may be on several ranks. */
static void a_group_without_whole_tensors_is_refused(void **state)
{
    static const size_t    granularities[] = {FSDP_GRANULARITY_FLAT, 1, 64};
    fsdp_optimizer_options o               = muon_options();
    fsdp_context          *ctx;
    fsdp_config            config;

    (void)state;
    fsdp_config_init(&config);
    config.log_level = FSDP_LOG_OFF;
    assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_WORLD, &config, &ctx));
    for (size_t k = 0; k < sizeof granularities / sizeof granularities[0]; k++) {
        fsdp_model_group group = FSDP_MODEL_GROUP_DEFAULT;
        job              j     = {.ctx = ctx};

        group.granularity = granularities[k];
        o.group           = "a.weight*";
        assert_int_equal(FSDP_OK, fsdp_model_create(ctx, NULL, &j.model));
        assert_int_equal(FSDP_OK, fsdp_model_add_group(j.model, o.group, &group));
        assert_int_equal(FSDP_OK, fsdp_unit_add(j.model, "a", ALL, 3, &j.units[0]));
        assert_int_equal(FSDP_OK, fsdp_model_commit(j.model));
        assert_not_made(&j, &o, FSDP_ERR_ARG, "FSDP_MUON needs whole matrices");
        close_job(&j);
    }
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

static int setup(void **state)
{
    return saved_folder_make(state) != 0 || fsdp_test_open_context(state) != 0;
}

static int teardown(void **state)
{
    return fsdp_test_close_context(state) != 0 || saved_folder_remove(state) != 0;
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(updates_are_those_of_the_definition),
        cmocka_unit_test(updates_from_a_gradient_of_rank_8_are_those_of_the_definition),
        cmocka_unit_test(matrices_of_f64_are_orthogonalised_to_1e_10),
        cmocka_unit_test(gradients_near_the_end_of_the_range_do_not_overflow),
        cmocka_unit_test(all_strategies_and_numbers_of_ranks_give_the_same_bits),
        cmocka_unit_test(the_budget_is_what_is_held),
        cmocka_unit_test(a_checkpoint_goes_on_with_the_same_bits),
        cmocka_unit_test(what_muon_cannot_do_is_refused_by_name),
        cmocka_unit_test(a_group_without_whole_tensors_is_refused),
    };

    return fsdp_test_main(argc, argv, tests, setup, teardown);
}
