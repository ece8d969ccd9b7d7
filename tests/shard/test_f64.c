/*
 * Models in f64: steps against optimizers written here once more, element by element; gradients of ranks with unequal shares; norms;
 * L-BFGS, Muon and a program's own optimizer; checkpoints; what they hold, and what is refused.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fsdp/fsdp.h"
#include "kernels/kernels.h"
#include "tests/shard/checkpoint/saved_model.h"
#include "tests/shard/small_model.h"

enum { STEPS = 3 };

static fsdp_model_options options_of(fsdp_strategy strategy)
{
    fsdp_model_options o = FSDP_MODEL_OPTIONS_DEFAULT;

    o.strategy     = strategy;
    o.seed         = 1234;
    o.param_dtype  = FSDP_F64;
    o.reduce_dtype = FSDP_F64;
    o.moment_dtype = FSDP_F64;
    return o;
}

static void open_model(small_model *m, fsdp_context *ctx, const fsdp_model_options *o)
{
    small_model_create(m, ctx, o);
    assert_int_equal(FSDP_OK, fsdp_model_commit(m->model));
}

/* Multiples of 2^-32 below 4, whose sums over ranks are exact. */
static double gradient_of(int rank, int pass, size_t k)
{
    const uint64_t mixed = ((uint64_t)rank * 40503u + (uint64_t)pass * 9973u + k * 131u + 7u) * 0x9e3779b97f4a7c15u;

    return ((double)(mixed >> 30) - 0x1p33) * 0x1p-32;
}

typedef double element_gradient(int rank, int pass, size_t k);

static void run_pass_with(small_model *m, int pass, element_gradient *gradient)
{
    size_t first[N_TENSORS + 1] = {0};

    for (size_t t = 0; t < N_TENSORS; t++) {
        first[t + 1] = first[t] + tensor_elements(t);
    }
    for (size_t u = 0; u < N_UNITS; u++) {
        assert_int_equal(FSDP_OK, fsdp_unit_begin_forward(m->units[u]));
        assert_int_equal(FSDP_OK, fsdp_unit_end_forward(m->units[u]));
    }
    for (size_t u = N_UNITS; u-- > 0;) {
        assert_int_equal(FSDP_OK, fsdp_unit_begin_backward(m->units[u]));
        for (size_t t = FIRST_TENSOR[u]; t < FIRST_TENSOR[u + 1]; t++) {
            double *g = fsdp_unit_grad(m->units[u], t - FIRST_TENSOR[u]);

            for (size_t i = 0; i < tensor_elements(t); i++) {
                g[i] += gradient(fsdp_rank(m->ctx), pass, first[t] + i);
            }
        }
        assert_int_equal(FSDP_OK, fsdp_unit_end_backward(m->units[u]));
    }
}

/* As passes see them. */
static void copy_views(small_model *m, double *all)
{
    for (size_t u = 0; u < N_UNITS; u++) {
        assert_int_equal(FSDP_OK, fsdp_unit_begin_forward(m->units[u]));
        for (size_t t = FIRST_TENSOR[u]; t < FIRST_TENSOR[u + 1]; t++) {
            memcpy(all, fsdp_unit_param(m->units[u], t - FIRST_TENSOR[u]), tensor_elements(t) * sizeof *all);
            all += tensor_elements(t);
        }
        assert_int_equal(FSDP_OK, fsdp_unit_end_forward(m->units[u]));
    }
}

static void expect_views(small_model *m, const double *expected, const char *what)
{
    static double found[MOST_ELEMENTS];

    copy_views(m, found);
    for (size_t k = 0; k < MOST_ELEMENTS; k++) {
        if (memcmp(&expected[k], &found[k], sizeof found[k]) != 0) {
            fail_msg("%s: element %zu is %a instead of %a", what, k, found[k], expected[k]);
        }
    }
}

/* ---- optimizers, once more --------------------------------------------------------------------------------------- */

static double w[MOST_ELEMENTS], g[MOST_ELEMENTS], first_moment[MOST_ELEMENTS], second_moment[MOST_ELEMENTS];

static double rounded(double x, fsdp_dtype dtype)
{
    double   wide;
    uint16_t half;

    if (dtype == FSDP_BF16) {
        fsdpi_kernels_scalar.cast(&half, FSDP_BF16, &x, FSDP_F64, 1);
        fsdpi_kernels_scalar.cast(&wide, FSDP_F64, &half, FSDP_BF16, 1);
        return wide;
    }
    return dtype == FSDP_F32 ? (double)(float)x : x;
}

static void serial_element(const fsdp_optimizer_options *o, size_t k, int step, double decay)
{
    double d = g[k];

    if (o->kind == FSDP_ADAM || o->kind == FSDP_ADAMW) {
        const double pull = decay * w[k], shrunk = w[k] - o->lr * decay * w[k];

        d                 = o->kind == FSDP_ADAM ? d + pull : d;
        first_moment[k]   = o->beta1 * first_moment[k] + (1.0 - o->beta1) * d;
        second_moment[k]  = o->beta2 * second_moment[k] + (1.0 - o->beta2) * (d * d);
        const double mean = first_moment[k] / (1.0 - pow(o->beta1, step));
        const double size = second_moment[k] / (1.0 - pow(o->beta2, step));
        w[k]              = (o->kind == FSDP_ADAM ? w[k] : shrunk) - o->lr * mean / (sqrt(size) + o->eps);
    } else if (o->kind == FSDP_LION) {
        const double way = o->beta1 * first_moment[k] + (1.0 - o->beta1) * d;

        first_moment[k] = o->beta2 * first_moment[k] + (1.0 - o->beta2) * d;
        w[k]            = w[k] - o->lr * decay * w[k];
        w[k]            = way > 0.0 ? w[k] - o->lr : way < 0.0 ? w[k] + o->lr : w[k];
    } else {
        d = d + decay * w[k];
        if (o->kind == FSDP_SGD_MOMENTUM) {
            first_moment[k] = step == 1 ? d : o->momentum * first_moment[k] + d;
            d               = o->nesterov ? d + o->momentum * first_moment[k] : first_moment[k];
        }
        w[k] = w[k] - o->lr * d;
    }
    first_moment[k]  = rounded(first_moment[k], o->moment_dtype);
    second_moment[k] = rounded(second_moment[k], o->moment_dtype);
}

static void serial_step(const fsdp_optimizer_options *o, int step)
{
    size_t k = 0;

    for (size_t t = 0; t < N_TENSORS; t++) {
        const double decay = (TENSORS[t].flags & FSDP_TENSOR_NO_WEIGHT_DECAY) != 0 ? 0.0 : o->weight_decay;

        for (size_t i = 0; i < tensor_elements(t); i++, k++) {
            serial_element(o, k, step, decay);
        }
    }
}

static void mean_of_ranks(int size, int pass)
{
    for (size_t k = 0; k < MOST_ELEMENTS; k++) {
        double sum = 0.0;

        for (int r = 0; r < size; r++) {
            sum += gradient_of(r, pass, k);
        }
        g[k] = sum / size;
    }
}

static fsdp_optimizer_options optimizer_of(fsdp_optimizer_kind kind)
{
    fsdp_optimizer_options o;

    assert_int_equal(FSDP_OK, fsdp_optimizer_options_init(kind, &o));
    o.weight_decay = 0.013;
    o.moment_dtype = FSDP_F64;
    o.nesterov     = kind == FSDP_SGD_MOMENTUM;
    return o;
}

static void check_steps(fsdp_context *ctx, fsdp_strategy strategy, const fsdp_optimizer_options *o)
{
    const fsdp_model_options options = options_of(strategy);
    small_model              m;
    fsdp_optimizer          *optimizer;

    open_model(&m, ctx, &options);
    assert_int_equal(FSDP_OK, fsdp_optimizer_create(m.model, o, &optimizer));
    copy_views(&m, w);
    memset(first_moment, 0, sizeof first_moment);
    memset(second_moment, 0, sizeof second_moment);
    for (int step = 1; step <= STEPS; step++) {
        run_pass_with(&m, step, gradient_of);
        assert_int_equal(FSDP_OK, fsdp_optimizer_step(optimizer));
        mean_of_ranks(fsdp_size(ctx), step);
        serial_step(o, step);
        expect_views(&m, w, fsdp_strategy_name(strategy));
    }
    fsdp_model_destroy(m.model);
}

static void steps_are_those_of_serial_optimizers_to_the_bit(void **state)
{
    for (int strategy = 0; strategy < FSDP_N_STRATEGIES; strategy++) {
        for (int kind = 0; kind < FSDP_CUSTOM; kind++) {
            const fsdp_optimizer_options o = optimizer_of((fsdp_optimizer_kind)kind);

            check_steps(*state, (fsdp_strategy)strategy, &o);
        }
    }
}

static void moments_may_be_narrower(void **state)
{
    static const fsdp_dtype types[] = {FSDP_F32, FSDP_BF16};

    for (int k = 0; k < 4; k++) {
        fsdp_optimizer_options o = optimizer_of(k < 2 ? FSDP_ADAMW : FSDP_LION);

        o.moment_dtype = types[k % 2];
        o.beta2        = 0.98;
        check_steps(*state, k % 2 == 0 ? FSDP_FULL_SHARD : FSDP_NO_SHARD, &o);
    }
}

/* AdamW, as a program would write it. */
static fsdp_status own_adamw(void *state, const fsdp_update *u)
{
    const fsdp_optimizer_options *o = state;
    double                       *x = u->master, *m = u->states[0], *v = u->states[1];
    const double                 *d = u->gradient, t = (double)u->step;

    if (u->dtype != FSDP_F64 || u->state_dtype != FSDP_F64) {
        return FSDP_ERR_ARG;
    }
    for (size_t i = 0; i < u->count; i++) {
        m[i] = o->beta1 * m[i] + (1.0 - o->beta1) * d[i];
        v[i] = o->beta2 * v[i] + (1.0 - o->beta2) * (d[i] * d[i]);
        x[i] = x[i] - u->lr * u->weight_decay * x[i] -
               u->lr * (m[i] / (1.0 - pow(o->beta1, t))) / (sqrt(v[i] / (1.0 - pow(o->beta2, t))) + o->eps);
    }
    return FSDP_OK;
}

static void an_optimizer_of_the_programs_own_has_the_bits_of_the_built_in_one(void **state)
{
    fsdp_optimizer_options adamw = optimizer_of(FSDP_ADAMW);

    for (int strategy = 0; strategy < FSDP_N_STRATEGIES; strategy++) {
        const fsdp_model_options options = options_of((fsdp_strategy)strategy);
        fsdp_optimizer_options   o       = optimizer_of(FSDP_CUSTOM);
        small_model              m;
        fsdp_optimizer          *optimizer;

        o.lr           = adamw.lr;
        o.n_states     = 2;
        o.update       = own_adamw;
        o.update_state = &adamw;
        open_model(&m, *state, &options);
        assert_int_equal(FSDP_OK, fsdp_optimizer_create(m.model, &o, &optimizer));
        copy_views(&m, w);
        memset(first_moment, 0, sizeof first_moment);
        memset(second_moment, 0, sizeof second_moment);
        for (int step = 1; step <= STEPS; step++) {
            run_pass_with(&m, step, gradient_of);
            assert_int_equal(FSDP_OK, fsdp_optimizer_step(optimizer));
            mean_of_ranks(fsdp_size(*state), step);
            serial_step(&adamw, step);
        }
        expect_views(&m, w, fsdp_strategy_name(options.strategy));
        fsdp_model_destroy(m.model);
    }
}

/* ---- unequal shares ---------------------------------------------------------------------------------------------- */

/* What one token adds. */
static double token_gradient(size_t token, size_t k)
{
    return sin(0.37 * (double)token + 0.011 * (double)k) * exp(0.001 * (double)k);
}

/* Rank r has 2 r + 1 tokens, behind those of the ranks before. */
static double shares_gradient(int rank, int pass, size_t k)
{
    double sum = 0.0;

    const size_t r = (size_t)rank;

    for (size_t token = r * r; token < (r + 1) * (r + 1); token++) {
        sum += token_gradient(token + (size_t)pass * 1000, k);
    }
    return sum;
}

/* Two passes, the first of them without communication where that is asked for. */
static void check_shares(fsdp_context *ctx, fsdp_strategy strategy, int local)
{
    fsdp_model_options     options = options_of(strategy);
    fsdp_optimizer_options o       = optimizer_of(FSDP_SGD);
    static double          found[MOST_ELEMENTS];
    const size_t           tokens = (size_t)fsdp_size(ctx) * (size_t)fsdp_size(ctx);
    small_model            m;
    fsdp_optimizer        *sgd;
    double                 error = 0.0, norm = 0.0, total = 0.0;

    options.local_gradients = local;
    o.lr                    = 1.0;
    o.weight_decay          = 0.0;
    open_model(&m, ctx, &options);
    assert_int_equal(FSDP_OK, fsdp_optimizer_create(m.model, &o, &sgd));
    copy_views(&m, w);
    assert_int_equal(FSDP_OK, fsdp_model_set_sync(m.model, local ? FSDP_SYNC_NONE : FSDP_SYNC_ALL));
    run_pass_with(&m, 0, shares_gradient);
    assert_int_equal(FSDP_OK, fsdp_model_set_sync(m.model, FSDP_SYNC_ALL));
    run_pass_with(&m, 1, shares_gradient);
    assert_int_equal(FSDP_OK, fsdp_model_sum_gradient_divisor(m.model, 2.0 * (2 * fsdp_rank(ctx) + 1), &total));
    assert_true(total == 2.0 * (double)tokens);
    assert_int_equal(FSDP_OK, fsdp_optimizer_step(sgd));
    copy_views(&m, found);
    for (size_t k = 0; k < MOST_ELEMENTS; k++) {
        double mean = 0.0;

        for (size_t token = 0; token < tokens; token++) {
            mean += (token_gradient(token, k) + token_gradient(token + 1000, k)) / total;
        }
        error += pow(w[k] - found[k] - mean, 2);
        norm += mean * mean;
    }
    assert_true(sqrt(error) <= 1e-14 * sqrt(norm));
    fsdp_model_destroy(m.model);
}

static void unequal_shares_give_the_gradient_of_the_whole_batch(void **state)
{
    for (int strategy = 0; strategy < FSDP_N_STRATEGIES; strategy++) {
        check_shares(*state, (fsdp_strategy)strategy, strategy % 2);
    }
}

/* ---- norms ------------------------------------------------------------------------------------------------------- */

static double huge_gradient(int rank, int pass, size_t k)
{
    return gradient_of(rank, pass, k) * 0x1p900; /* its square is beyond the range of f64 */
}

static void check_norms(fsdp_context *ctx, fsdp_strategy strategy)
{
    const fsdp_model_options options = options_of(strategy);
    fsdp_tensor_norm         norms[N_TENSORS];
    fsdpi_exact_dot          all = {.nans = 0}, own = {.nans = 0};
    small_model              m;
    double                   norm, several, huge, largest = 0.0, most = 0.0;
    size_t                   n;

    open_model(&m, ctx, &options);
    run_pass_with(&m, 5, gradient_of);
    mean_of_ranks(fsdp_size(ctx), 5);
    fsdpi_exact_dot_add(&all, g, g, MOST_ELEMENTS, FSDP_F64);
    fsdpi_exact_dot_add(&own, g, g, tensor_elements(0), FSDP_F64);
    for (size_t k = 0; k < MOST_ELEMENTS; k++) {
        largest = fmax(largest, fabs(g[k]));
    }
    assert_int_equal(FSDP_OK, fsdp_grad_norm(&m.model, 1, &several));
    assert_int_equal(FSDP_OK, fsdp_grad_norm_per_tensor(m.model, norms, N_TENSORS, &n));
    assert_int_equal(FSDP_OK, fsdp_clip_grad_norm_inf(m.model, (double)INFINITY, &most));
    assert_int_equal(FSDP_OK, fsdp_clip_grad_norm(m.model, 1.0, &norm));
    assert_true(norm == fsdpi_exact_dot_root(&all) && several == norm && most == largest);
    assert_true(n == N_TENSORS && norms[0].norm == fsdpi_exact_dot_root(&own));
    assert_int_equal(FSDP_OK, fsdp_clip_grad_norm(m.model, (double)INFINITY, &norm));
    assert_true(fabs(norm - 1.0) < 1e-5);
    assert_int_equal(FSDP_OK, fsdp_model_zero_grad(m.model));
    run_pass_with(&m, 5, huge_gradient);
    assert_int_equal(FSDP_OK, fsdp_clip_grad_norm(m.model, (double)INFINITY, &huge));
    assert_true(huge == several * 0x1p900);
    assert_int_equal(FSDP_OK, fsdp_clip_grad_value(m.model, 0x1.23456789abcdep900));
    assert_int_equal(FSDP_OK, fsdp_clip_grad_norm_inf(m.model, (double)INFINITY, &most));
    assert_true(most == fmin(0x1.23456789abcdep900, largest * 0x1p900));
    fsdp_model_destroy(m.model);
}

static void norms_are_exact_under_every_strategy(void **state)
{
    for (int strategy = 0; strategy < FSDP_N_STRATEGIES; strategy++) {
        check_norms(*state, (fsdp_strategy)strategy);
    }
}

/* The root of the sum over both models, one of them in f32. */
static void norms_of_models_of_both_types_are_joined(void **state)
{
    const fsdp_model_options wide = options_of(FSDP_FULL_SHARD);
    fsdp_model_options       o    = FSDP_MODEL_OPTIONS_DEFAULT;
    small_model              a, b;
    double                   both, one, other;

    o.seed = 1;
    open_model(&a, *state, &wide);
    open_model(&b, *state, &o);
    run_pass_with(&a, 1, gradient_of);
    run_pass(&b, 1);
    fsdp_model *models[] = {a.model, b.model};
    assert_int_equal(FSDP_OK, fsdp_grad_norm(models, 2, &both));
    assert_int_equal(FSDP_OK, fsdp_grad_norm(models, 1, &one));
    assert_int_equal(FSDP_OK, fsdp_grad_norm(models + 1, 1, &other));
    assert_true(one > 0.0 && other > 0.0 && fabs(both - hypot(one, other)) <= 1e-15 * both);
    fsdp_model_destroy(a.model);
    fsdp_model_destroy(b.model);
}

/* ---- L-BFGS ------------------------------------------------------------------------------------------------------ */

enum { N = 12, ITERATIONS = 50 };

typedef double problem(const double *x, double *gradient);

/* Curvatures from 1 to 16, minimum 0 at 1 / (i + 1). */
static double quadratic(const double *x, double *gradient)
{
    double f = 0.0;

    for (int i = 0; i < N; i++) {
        const double c = pow(16.0, i / (N - 1.0)), d = x[i] - 1.0 / (i + 1);

        f += 0.5 * c * d * d;
        gradient[i] = c * d;
    }
    return f;
}

/* Minimum 0 at ones. */
static double rosenbrock(const double *x, double *gradient)
{
    double f = 0.0;

    for (int i = 0; i < N; i += 2) {
        const double a = x[i + 1] - x[i] * x[i], b = 1.0 - x[i];

        f += 100.0 * a * a + b * b;
        gradient[i]     = -400.0 * x[i] * a - 2.0 * b;
        gradient[i + 1] = 200.0 * a;
    }
    return f;
}

typedef struct search {
    fsdp_context *ctx;
    fsdp_model   *model;
    fsdp_unit    *unit;
    fsdp_lbfgs   *lbfgs;
    problem      *f;
    double        x[N];
} search;

static fsdp_status draw_start(void *state, const char *tensor, size_t begin, size_t count, void *values,
                              fsdp_dtype dtype)
{
    (void)state;
    (void)tensor;
    for (size_t i = 0; i < count; i++) {
        ((double *)values)[i] = (begin + i) % 2 == 0 ? -1.2 : 1.0;
    }
    return dtype == FSDP_F64 ? FSDP_OK : FSDP_ERR_ARG;
}

/* 50 bits, of which sums of up to 8 equal ones and their means are exact. */
static double shortened(double x)
{
    uint64_t bits;

    memcpy(&bits, &x, sizeof bits);
    bits &= ~UINT64_C(7);
    memcpy(&x, &bits, sizeof x);
    return x;
}

static fsdp_status evaluate(void *state, double *loss)
{
    search *s = state;
    double  gradient[N];

    fsdp_status status = fsdp_unit_begin_forward(s->unit);
    if (status != FSDP_OK) {
        return status;
    }
    memcpy(s->x, fsdp_unit_param(s->unit, 0), sizeof s->x);
    *loss  = s->f(s->x, gradient);
    status = fsdp_unit_end_forward(s->unit);
    status = status == FSDP_OK ? fsdp_unit_begin_backward(s->unit) : status;
    if (status != FSDP_OK) {
        return status;
    }
    for (int i = 0; i < N; i++) {
        ((double *)fsdp_unit_grad(s->unit, 0))[i] = shortened(gradient[i]);
    }
    return fsdp_unit_end_backward(s->unit);
}

static void find_minimum(fsdp_context *ctx, fsdp_strategy strategy, problem *f, double *found)
{
    const fsdp_tensor tensor = {
        .name = "x", .n_dims = 1, .shape = {N}, .fill = FSDP_FILL_CALLBACK, .fill_values = draw_start};
    const fsdp_model_options options = options_of(strategy);
    fsdp_lbfgs_options       o       = FSDP_LBFGS_OPTIONS_DEFAULT;
    fsdp_lbfgs_result        result;
    search                   s = {.ctx = ctx, .f = f};

    o.max_iterations     = ITERATIONS;
    o.tolerance_gradient = 1e-11;
    o.tolerance_change   = 0.0;
    assert_int_equal(FSDP_OK, fsdp_model_create(ctx, &options, &s.model));
    assert_int_equal(FSDP_OK, fsdp_unit_add(s.model, "u", &tensor, 1, &s.unit));
    assert_int_equal(FSDP_OK, fsdp_model_commit(s.model));
    assert_int_equal(FSDP_OK, fsdp_lbfgs_create(s.model, &o, &s.lbfgs));
    assert_int_equal(FSDP_OK, fsdp_lbfgs_step(s.lbfgs, evaluate, &s, &result));
    assert_int_equal(FSDP_OK, fsdp_tensor_export_to_all(s.model, "x", found, N * sizeof *found));
    fsdp_model_destroy(s.model);
}

static void check_minimum(fsdp_context *ctx, problem *f)
{
    fsdp_context *alone;
    double        expected[N], found[N];

    assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_SELF, NULL, &alone));
    find_minimum(alone, FSDP_FULL_SHARD, f, expected);
    assert_int_equal(FSDP_OK, fsdp_finalize(alone));
    for (int i = 0; i < N; i++) {
        const double minimum = f == rosenbrock ? 1.0 : 1.0 / (i + 1);

        if (fabs(expected[i] - minimum) > 1e-8) {
            fail_msg("element %d is %.12g, and %.12g at the minimum", i, expected[i], minimum);
        }
    }
    for (int strategy = 0; strategy < FSDP_N_STRATEGIES; strategy++) {
        find_minimum(ctx, (fsdp_strategy)strategy, f, found);
        assert_memory_equal(expected, found, sizeof found);
    }
}

static void l_bfgs_finds_minima_to_1e_8_with_the_same_bits(void **state)
{
    check_minimum(*state, quadratic);
    check_minimum(*state, rosenbrock);
}

/* ---- Muon -------------------------------------------------------------------------------------------------------- */

enum { ROWS = 7, COLUMNS = 11, MATRIX = ROWS * COLUMNS, TALL = 2 };

/* Of rows x columns elements, with rows <= columns: five iterations, in long double. */
static void orthogonalise(long double *x)
{
    long double a[ROWS][ROWS], b[ROWS][ROWS], next[MATRIX], sum = 0;

    for (int i = 0; i < MATRIX; i++) {
        sum += x[i] * x[i];
    }
    for (int i = 0; i < MATRIX; i++) {
        x[i] /= sqrtl(sum) + 1e-7L;
    }
    for (int k = 0; k < 5; k++) {
        for (int i = 0; i < ROWS * ROWS; i++) {
            a[i / ROWS][i % ROWS] = 0;
            for (int c = 0; c < COLUMNS; c++) {
                a[i / ROWS][i % ROWS] += x[i / ROWS * COLUMNS + c] * x[i % ROWS * COLUMNS + c];
            }
        }
        for (int i = 0; i < ROWS * ROWS; i++) {
            b[i / ROWS][i % ROWS] = -4.7750L * a[i / ROWS][i % ROWS];
            for (int c = 0; c < ROWS; c++) {
                b[i / ROWS][i % ROWS] += 2.0315L * a[i / ROWS][c] * a[c][i % ROWS];
            }
        }
        for (int i = 0; i < MATRIX; i++) {
            next[i] = 3.4445L * x[i];
            for (int c = 0; c < ROWS; c++) {
                next[i] += b[i / COLUMNS][c] * x[c * COLUMNS + i % COLUMNS];
            }
        }
        memcpy(x, next, sizeof next);
    }
}

static double matrix_gradient(int step, int i)
{
    return gradient_of(3, step, (size_t)i);
}

/* Of tensor 0, which is wide; tensor 1 is its transpose. */
static void train_with_muon(fsdp_context *ctx, fsdp_strategy strategy, double found[TALL][MATRIX])
{
    static const fsdp_tensor tensors[TALL] = {{.name = "m.wide", .n_dims = 2, .shape = {ROWS, COLUMNS}, .a = 0.25},
                                              {.name = "m.tall", .n_dims = 2, .shape = {COLUMNS, ROWS}, .a = 0.25}};
    const fsdp_model_options options       = options_of(strategy);
    fsdp_model_group         group         = FSDP_MODEL_GROUP_DEFAULT;
    fsdp_optimizer_options   o             = optimizer_of(FSDP_MUON);
    fsdp_optimizer          *muon;
    fsdp_model              *model;
    fsdp_unit               *unit;

    o.group            = "m.*";
    o.nesterov         = 1;
    group.granularity  = FSDP_GRANULARITY_TENSOR;
    group.optimizer    = FSDP_MUON;
    group.moment_dtype = FSDP_F64;
    assert_int_equal(FSDP_OK, fsdp_model_create(ctx, &options, &model));
    assert_int_equal(FSDP_OK, fsdp_model_add_group(model, "m.*", &group));
    assert_int_equal(FSDP_OK, fsdp_unit_add(model, "m", tensors, TALL, &unit));
    assert_int_equal(FSDP_OK, fsdp_model_commit(model));
    assert_int_equal(FSDP_OK, fsdp_optimizer_create(model, &o, &muon));
    for (int step = 1; step <= 2; step++) {
        assert_int_equal(FSDP_OK, fsdp_unit_begin_backward(unit));
        for (int i = 0; i < MATRIX; i++) {
            ((double *)fsdp_unit_grad(unit, 0))[i]                                = matrix_gradient(step, i);
            ((double *)fsdp_unit_grad(unit, 1))[i % COLUMNS * ROWS + i / COLUMNS] = matrix_gradient(step, i);
        }
        assert_int_equal(FSDP_OK, fsdp_unit_end_backward(unit));
        assert_int_equal(FSDP_OK, fsdp_optimizer_step(muon));
    }
    for (int t = 0; t < TALL; t++) {
        assert_int_equal(FSDP_OK, fsdp_tensor_export_to_all(model, tensors[t].name, found[t], MATRIX * sizeof(double)));
    }
    fsdp_model_destroy(model);
}

static void expected_of_muon(double expected[TALL][MATRIX])
{
    const fsdp_optimizer_options o              = optimizer_of(FSDP_MUON);
    long double                  moment[MATRIX] = {0}, weight[MATRIX], way[MATRIX];

    for (int t = 0; t < TALL; t++) {
        const long double scale = t == 0 ? 1.0L : sqrtl((long double)COLUMNS / ROWS);

        memset(moment, 0, sizeof moment);
        for (int i = 0; i < MATRIX; i++) {
            weight[i] = 0.25L;
        }
        for (int step = 1; step <= 2; step++) {
            for (int i = 0; i < MATRIX; i++) {
                const long double d = matrix_gradient(step, i);

                moment[i] = (long double)o.momentum * moment[i] + d;
                way[i]    = (long double)o.momentum * moment[i] + d;
            }
            orthogonalise(way);
            for (int i = 0; i < MATRIX; i++) {
                weight[i] -= (long double)(o.lr * o.weight_decay) * weight[i] + (long double)o.lr * scale * way[i];
            }
        }
        for (int i = 0; i < MATRIX; i++) {
            expected[t][t == 0 ? i : i % COLUMNS * ROWS + i / COLUMNS] = (double)weight[i];
        }
    }
}

static void muon_updates_masters_in_f64(void **state)
{
    double        expected[TALL][MATRIX], one[TALL][MATRIX], found[TALL][MATRIX];
    fsdp_context *alone;

    expected_of_muon(expected);
    assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_SELF, NULL, &alone));
    train_with_muon(alone, FSDP_NO_SHARD, one);
    assert_int_equal(FSDP_OK, fsdp_finalize(alone));
    for (int t = 0; t < TALL; t++) {
        for (int i = 0; i < MATRIX; i++) {
            assert_true(fabs(one[t][i] - expected[t][i]) <= 1e-12);
        }
    }
    for (int strategy = 0; strategy < FSDP_N_STRATEGIES; strategy++) {
        train_with_muon(*state, (fsdp_strategy)strategy, found);
        assert_memory_equal(one, found, sizeof one);
    }
}

/* ---- checkpoints ------------------------------------------------------------------------------------------------- */

static fsdp_optimizer *with_adamw(small_model *m, fsdp_context *ctx, fsdp_strategy strategy)
{
    const fsdp_model_options     options = options_of(strategy);
    const fsdp_optimizer_options o       = optimizer_of(FSDP_ADAMW);
    fsdp_optimizer              *optimizer;

    open_model(m, ctx, &options);
    assert_int_equal(FSDP_OK, fsdp_optimizer_create(m->model, &o, &optimizer));
    return optimizer;
}

/* Alike on all ranks, so that their number does not show. */
static double equal_gradient(int rank, int pass, size_t k)
{
    (void)rank;
    return gradient_of(1, pass, k);
}

static void train(small_model *m, fsdp_optimizer *optimizer, int first, int n)
{
    for (int step = first; step < first + n; step++) {
        run_pass_with(m, step, equal_gradient);
        assert_int_equal(FSDP_OK, fsdp_optimizer_step(optimizer));
    }
}

/* By rank 0 alone: under one rank and as many as there are. `expected`: of one step more. */
static void save_alone(fsdp_dtype dtype, double *saved, double *expected)
{
    fsdp_checkpoint_options o     = FSDP_CHECKPOINT_OPTIONS_DEFAULT;
    fsdp_checkpoint_state   state = {.step = 2};
    fsdp_checkpoint        *checkpoint;
    fsdp_context           *alone;
    small_model             m;

    if (fsdp_test_rank() == 0) {
        o.dtype = dtype;
        assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_SELF, NULL, &alone));
        fsdp_optimizer *optimizer = with_adamw(&m, alone, FSDP_FULL_SHARD);
        train(&m, optimizer, 1, 2);
        assert_int_equal(FSDP_OK, fsdp_checkpoint_open(m.model, optimizer, saved_folder, &o, &checkpoint));
        assert_int_equal(FSDP_OK, fsdp_checkpoint_save(checkpoint, &state));
        assert_int_equal(FSDP_OK, fsdp_checkpoint_close(checkpoint));
        copy_views(&m, saved);
        train(&m, optimizer, 3, 1);
        copy_views(&m, expected);
        fsdp_model_destroy(m.model);
        assert_int_equal(FSDP_OK, fsdp_finalize(alone));
    }
    assert_int_equal(MPI_SUCCESS, MPI_Bcast(saved, MOST_ELEMENTS, MPI_DOUBLE, 0, MPI_COMM_WORLD));
    assert_int_equal(MPI_SUCCESS, MPI_Bcast(expected, MOST_ELEMENTS, MPI_DOUBLE, 0, MPI_COMM_WORLD));
}

static void a_checkpoint_goes_on_with_the_same_bits_on_other_ranks(void **state)
{
    static const fsdp_dtype types[] = {FSDP_F64, FSDP_F32, FSDP_BF16};
    static double           saved[MOST_ELEMENTS], expected[MOST_ELEMENTS];
    fsdp_checkpoint_state   known = {0};

    for (int k = 0; k < 3; k++) {
        save_alone(types[k], saved, expected);
        for (int strategy = 0; strategy < FSDP_N_STRATEGIES; strategy++) {
            small_model     m;
            fsdp_optimizer *optimizer = with_adamw(&m, *state, (fsdp_strategy)strategy);

            assert_int_equal(FSDP_OK, fsdp_checkpoint_load(m.model, optimizer, saved_folder, NULL, &known));
            train(&m, optimizer, 3, 1);
            expect_views(&m, expected, fsdp_dtype_name(types[k]));
            fsdp_model_destroy(m.model);
        }
    }
}

/* Values alone: rounded once where the model is narrower, and as they are where it is wider. */
static void models_of_one_type_load_values_of_the_other(void **state)
{
    static double            saved[MOST_ELEMENTS], more[MOST_ELEMENTS];
    static float             narrow[MOST_ELEMENTS];
    const fsdp_model_options wide  = options_of(FSDP_SHARD_GRAD_OP);
    fsdp_model_options       o     = FSDP_MODEL_OPTIONS_DEFAULT;
    fsdp_checkpoint_state    known = {0};
    fsdp_checkpoint         *checkpoint;
    small_model              m;

    save_alone(FSDP_F64, saved, more);
    o.strategy = FSDP_FULL_SHARD;
    open_model(&m, *state, &o);
    assert_int_equal(FSDP_OK, fsdp_checkpoint_load(m.model, NULL, saved_folder, NULL, &known));
    copy_parameters(&m, narrow);
    for (size_t k = 0; k < MOST_ELEMENTS; k++) {
        assert_true(narrow[k] == (float)saved[k]);
        more[k] = (double)narrow[k];
    }
    known.step = 7;
    assert_int_equal(FSDP_OK, fsdp_checkpoint_open(m.model, NULL, saved_folder, NULL, &checkpoint));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_save(checkpoint, &known));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_close(checkpoint));
    fsdp_model_destroy(m.model);
    open_model(&m, *state, &wide);
    assert_int_equal(FSDP_OK, fsdp_checkpoint_load(m.model, NULL, saved_folder, NULL, &known));
    expect_views(&m, more, "from f32");
    fsdp_model_destroy(m.model);
}

/* ---- what is held, and where ------------------------------------------------------------------------------------- */

static void check_budget(fsdp_strategy strategy, int kind, int64_t small_bytes)
{
    fsdp_model_options     options = options_of(strategy);
    fsdp_optimizer_options o       = optimizer_of((fsdp_optimizer_kind)kind);
    fsdp_optimizer        *optimizer;
    fsdp_config            config;
    fsdp_context          *ctx;
    fsdp_budget            budget;
    fsdp_memory            memory;
    small_model            m;

    fsdp_config_init(&config);
    config.small_bytes      = small_bytes;
    config.verify           = FSDP_VERIFY_FULL;
    options.buffer_dtype    = FSDP_F64;
    options.optimizer       = (fsdp_optimizer_kind)kind;
    options.moment_dtype    = kind == FSDP_SGD ? FSDP_F32 : FSDP_F64;
    o.moment_dtype          = options.moment_dtype;
    options.local_gradients = 1;
    assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_WORLD, &config, &ctx));
    open_model(&m, ctx, &options);
    assert_int_equal(FSDP_OK, fsdp_optimizer_create(m.model, &o, &optimizer));
    run_pass_with(&m, 0, gradient_of);
    assert_int_equal(FSDP_OK, fsdp_clip_grad_norm(m.model, 1.0, NULL));
    assert_int_equal(FSDP_OK, fsdp_optimizer_step(optimizer));
    assert_int_equal(FSDP_OK, fsdp_model_budget(m.model, strategy, 0, (fsdp_optimizer_kind)kind, &budget));
    assert_int_equal(FSDP_OK, fsdp_memory_usage(ctx, &memory));
    for (int line = 0; line < FSDP_N_MEMORY_KINDS; line++) {
        assert_int_equal(budget.bytes[line], memory.current[line]);
    }
    assert_int_equal(budget.total, memory.peak_total);
    assert_int_equal(budget.unsharded, MOST_ELEMENTS * (16 + 8 * (kind == FSDP_SGD ? 0 : kind == FSDP_ADAMW ? 2 : 1)));
    fsdp_model_destroy(m.model);
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

static void the_budget_is_what_is_held_to_the_byte(void **state)
{
    (void)state;
    for (int strategy = 0; strategy < FSDP_N_STRATEGIES; strategy++) {
        check_budget((fsdp_strategy)strategy, strategy % 3, strategy % 2 == 0 ? 0 : 200);
    }
}

/* Elements of one tensor of each type, on what each rank holds, and as passes see them. */
static void check_types(fsdp_context *ctx, fsdp_strategy strategy)
{
    static const struct {
        fsdp_dtype dtype, seen;
        unsigned   flags;
    } types[] = {{FSDP_F64, FSDP_F64, 0},
                 {FSDP_F32, FSDP_F64, 0},
                 {FSDP_F32, FSDP_F32, FSDP_TENSOR_KEEP_DTYPE},
                 {FSDP_BF16, FSDP_BF16, 0},
                 {FSDP_F16, FSDP_F16, FSDP_TENSOR_FROZEN}};
    enum { TYPES = 5, COUNT = 37 };
    fsdp_model_options options = options_of(strategy);
    fsdp_tensor        tensors[TYPES];
    char               names[TYPES][8];
    fsdp_model        *model;
    fsdp_unit         *unit;
    double             values[COUNT], back[COUNT], seen[COUNT];
    size_t             held = 0;

    memset(tensors, 0, sizeof tensors);
    for (int t = 0; t < TYPES; t++) {
        (void)snprintf(names[t], sizeof names[t], "t%d", t);
        tensors[t] = (fsdp_tensor){.name   = names[t],
                                   .n_dims = 1,
                                   .shape  = {COUNT},
                                   .dtype  = types[t].dtype,
                                   .flags  = types[t].flags,
                                   .fill   = FSDP_FILL_NORMAL,
                                   .b      = 1.0};
    }
    options.reduce_dtype = FSDP_F32;
    assert_int_equal(FSDP_OK, fsdp_model_create(ctx, &options, &model));
    assert_int_equal(FSDP_OK, fsdp_unit_add(model, "u", tensors, TYPES, &unit));
    assert_int_equal(FSDP_OK, fsdp_model_commit(model));
    for (int t = 0; t < TYPES; t++) {
        fsdp_shard shard;

        for (int i = 0; i < COUNT; i++) {
            values[i] = 1.0 / (3.0 + i + t);
        }
        assert_int_equal(FSDP_OK, fsdp_tensor_import(model, names[t], fsdp_size(ctx) - 1, values, sizeof values));
        assert_int_equal(FSDP_OK, fsdp_tensor_export_to_all(model, names[t], back, sizeof back));
        assert_memory_equal(values, back, sizeof back);
        assert_int_equal(FSDP_OK, fsdp_unit_shard(unit, (size_t)t, &shard));
        assert_int_equal(FSDP_F64, shard.dtype);
        if (shard.count > 0) {
            assert_memory_equal(values + shard.begin, shard.master, shard.count * sizeof *values);
        }
        held += shard.count;
        assert_int_equal(FSDP_OK, fsdp_unit_begin_forward(unit));
        fsdpi_kernels_scalar.cast(seen, FSDP_F64, fsdp_unit_param(unit, (size_t)t), types[t].seen, COUNT);
        assert_int_equal(FSDP_OK, fsdp_unit_end_forward(unit));
        fsdpi_kernels_scalar.cast(back, types[t].seen, values, FSDP_F64, COUNT);
        fsdpi_kernels_scalar.cast(values, FSDP_F64, back, types[t].seen, COUNT);
        assert_memory_equal(values, seen, sizeof seen);
    }
    assert_true(held <= (size_t)(TYPES * COUNT));
    fsdp_model_destroy(model);
}

static void masters_are_exact_whatever_a_tensor_is_gathered_in(void **state)
{
    for (int strategy = 0; strategy < FSDP_N_STRATEGIES; strategy++) {
        check_types(*state, (fsdp_strategy)strategy);
    }
}

/* Reduced in f32, added up and divided in f64. */
static void gradients_may_be_reduced_in_narrower_types(void **state)
{
    static const fsdp_dtype types[] = {FSDP_F32, FSDP_BF16, FSDP_F16};

    for (int k = 0; k < 6; k++) {
        fsdp_model_options     options = options_of((fsdp_strategy)k);
        fsdp_optimizer_options o       = optimizer_of(FSDP_SGD);
        fsdp_optimizer        *sgd;
        small_model            m;

        options.reduce_dtype     = types[k % 3];
        options.gradient_divisor = 3.0;
        o.weight_decay           = 0.0;
        open_model(&m, *state, &options);
        assert_int_equal(FSDP_OK, fsdp_optimizer_create(m.model, &o, &sgd));
        copy_views(&m, w);
        for (size_t u = 0; u < N_UNITS; u++) {
            assert_int_equal(FSDP_OK, fsdp_unit_begin_backward(m.units[u]));
            for (size_t t = FIRST_TENSOR[u]; t < FIRST_TENSOR[u + 1]; t++) {
                for (size_t i = 0; i < tensor_elements(t); i++) {
                    const double one = (double)(i % 7) - 3.0;

                    fsdpi_kernels_scalar.cast((unsigned char *)fsdp_unit_grad(m.units[u], t - FIRST_TENSOR[u]) +
                                                  i * fsdp_dtype_size(types[k % 3]),
                                              types[k % 3], &one, FSDP_F64, 1);
                }
            }
            assert_int_equal(FSDP_OK, fsdp_unit_end_backward(m.units[u]));
        }
        assert_int_equal(FSDP_OK, fsdp_optimizer_step(sgd));
        for (size_t t = 0, e = 0; t < N_TENSORS; t++) {
            for (size_t i = 0; i < tensor_elements(t); i++, e++) {
                w[e] = w[e] - o.lr * (((double)(i % 7) - 3.0) * (fsdp_size(*state) / 3.0));
            }
        }
        expect_views(&m, w, fsdp_dtype_name(types[k % 3]));
        fsdp_model_destroy(m.model);
    }
}

/* ---- refusals ---------------------------------------------------------------------------------------------------- */

static void expect_no_model(fsdp_context *ctx, const fsdp_model_options *o, fsdp_status status, const char *words)
{
    fsdp_model *none = NULL;

    assert_int_equal(status, fsdp_model_create(ctx, o, &none));
    assert_null(none);
    assert_says(ctx, words);
}

static void options_that_do_not_fit_are_refused(void **state)
{
    fsdp_model_options o = options_of(FSDP_FULL_SHARD), nothing = {.size = sizeof nothing}, narrow;

    expect_no_model(*state, &nothing, FSDP_ERR_ARG, "FSDP_MODEL_OPTIONS_DEFAULT");
    o.quantized_params = 1;
    expect_no_model(*state, &o, FSDP_ERR_UNSUPPORTED, "set quantized_params to 0");
    o              = options_of(FSDP_FULL_SHARD);
    o.moment_dtype = FSDP_U8;
    expect_no_model(*state, &o, FSDP_ERR_UNSUPPORTED, "moments in 8 bits with masters in f64");
    o.moment_dtype = FSDP_F16;
    expect_no_model(*state, &o, FSDP_ERR_ARG, "moment_dtype is f16; use FSDP_F64");
    narrow              = (fsdp_model_options)FSDP_MODEL_OPTIONS_DEFAULT;
    narrow.reduce_dtype = FSDP_F64;
    expect_no_model(*state, &narrow, FSDP_ERR_ARG, "reduce_dtype is f64");
    narrow.reduce_dtype = FSDP_F32;
    narrow.buffer_dtype = FSDP_F64;
    expect_no_model(*state, &narrow, FSDP_ERR_ARG, "buffer_dtype is f64");
    narrow.buffer_dtype = FSDP_F32;
    narrow.moment_dtype = FSDP_F64;
    expect_no_model(*state, &narrow, FSDP_ERR_ARG, "moment_dtype is f64");
    narrow.moment_dtype = FSDP_F32;
    if (fsdp_size(*state) > 1) {
        o              = options_of(FSDP_FULL_SHARD);
        o.reduce_dtype = fsdp_rank(*state) == 0 ? FSDP_F32 : FSDP_F64;
        expect_no_model(*state, &o, FSDP_ERR_MISMATCH, "f64");
    }
}

static void what_computes_in_f32_is_refused_with_the_remedy(void **state)
{
    fsdp_model_options       o       = options_of(FSDP_NO_SHARD);
    fsdp_optimizer_options   adamw   = optimizer_of(FSDP_ADAMW);
    fsdp_loss_scaler_options scaling = FSDP_LOSS_SCALER_OPTIONS_DEFAULT;
    fsdp_model_group         group   = FSDP_MODEL_GROUP_DEFAULT;
    fsdp_checkpoint_options  exact   = FSDP_CHECKPOINT_OPTIONS_DEFAULT;
    fsdp_loss_scaler        *scaler  = NULL;
    fsdp_checkpoint         *none    = NULL;
    fsdp_optimizer          *optimizer;
    fsdp_hook               *hook;
    small_model              m;

    open_model(&m, *state, &o);
    scaling.allow_any_dtype = 1;
    assert_int_equal(FSDP_ERR_UNSUPPORTED, fsdp_loss_scaler_create(m.model, &scaling, &scaler));
    assert_says(*state, "masters are in f64");
    assert_int_equal(FSDP_OK, fsdp_hook_half(*state, FSDP_BF16, &hook));
    assert_int_equal(FSDP_ERR_UNSUPPORTED, fsdp_model_set_hook(m.model, hook));
    assert_says(*state, "a hook serves gradients in f32");
    adamw.moment_dtype = FSDP_U8;
    assert_int_equal(FSDP_ERR_UNSUPPORTED, fsdp_optimizer_create(m.model, &adamw, &optimizer));
    assert_says(*state, "moments in 8 bits with masters in f64");
    adamw.moment_dtype = FSDP_BF16;
    adamw.beta2        = 0.99;
    assert_int_equal(FSDP_OK, fsdp_optimizer_create(m.model, &adamw, &optimizer));
    run_pass_with(&m, 0, gradient_of); /* and all go on */
    assert_int_equal(FSDP_OK, fsdp_optimizer_step(optimizer));
    fsdp_model_destroy(m.model);
    o.reduce_dtype = FSDP_F32; /* gradients are reduced in f32, and held in f64 */
    open_model(&m, *state, &o);
    assert_int_equal(FSDP_ERR_UNSUPPORTED, fsdp_model_set_hook(m.model, hook));
    fsdp_lbfgs *lbfgs = NULL;
    assert_int_equal(FSDP_ERR_UNSUPPORTED, fsdp_lbfgs_create(m.model, NULL, &lbfgs));
    assert_says(*state, "reduce_dtype to FSDP_F64");
    fsdp_model_destroy(m.model);
    fsdp_hook_destroy(hook);

    small_model_create(&m, *state, &o);
    group.moment_dtype = FSDP_U8;
    assert_int_equal(FSDP_ERR_UNSUPPORTED, fsdp_model_add_group(m.model, "*", &group));
    assert_says(*state, "moments in 8 bits with masters in f64");
    fsdp_model_destroy(m.model);

    o = (fsdp_model_options)FSDP_MODEL_OPTIONS_DEFAULT;
    open_model(&m, *state, &o);
    exact.dtype = FSDP_F64;
    assert_int_equal(FSDP_ERR_ARG, fsdp_checkpoint_open(m.model, NULL, saved_folder, &exact, &none));
    assert_says(*state, "f64 of a model in f64");
    fsdp_model_destroy(m.model);
}

static int setup(void **state)
{
    fsdp_config config;

    fsdp_config_init(&config);
    config.log_level = FSDP_LOG_OFF;
    return saved_folder_make(state) != 0 || fsdp_init(MPI_COMM_WORLD, &config, (fsdp_context **)state) != FSDP_OK;
}

static int teardown(void **state)
{
    return fsdp_finalize(*state) != FSDP_OK || saved_folder_remove(state) != 0;
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_are_those_of_serial_optimizers_to_the_bit),
        cmocka_unit_test(moments_may_be_narrower),
        cmocka_unit_test(an_optimizer_of_the_programs_own_has_the_bits_of_the_built_in_one),
        cmocka_unit_test(unequal_shares_give_the_gradient_of_the_whole_batch),
        cmocka_unit_test(norms_are_exact_under_every_strategy),
        cmocka_unit_test(norms_of_models_of_both_types_are_joined),
        cmocka_unit_test(l_bfgs_finds_minima_to_1e_8_with_the_same_bits),
        cmocka_unit_test(muon_updates_masters_in_f64),
        cmocka_unit_test(a_checkpoint_goes_on_with_the_same_bits_on_other_ranks),
        cmocka_unit_test(models_of_one_type_load_values_of_the_other),
        cmocka_unit_test(the_budget_is_what_is_held_to_the_byte),
        cmocka_unit_test(masters_are_exact_whatever_a_tensor_is_gathered_in),
        cmocka_unit_test(gradients_may_be_reduced_in_narrower_types),
        cmocka_unit_test(options_that_do_not_fit_are_refused),
        cmocka_unit_test(what_computes_in_f32_is_refused_with_the_remedy),
    };

    return fsdp_test_main(argc, argv, tests, setup, teardown);
}
