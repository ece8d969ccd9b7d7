/*
 * L-BFGS over shards against one written here apart, in f64 on one vector; its bits over strategies and ranks; what it holds, what it
 * refuses, and closures that fail.
 */
#include <math.h>
#include <string.h>

#include "fsdp/hook.h"
#include "fsdp/lbfgs.h"
#include "fsdp/loss_scaler.h"
#include "fsdp/optimizer.h"
#include "fsdp/shard.h"
#include "fsdp/tensor_io.h"
#include "tests/shard/small_model.h"

/* Tensors in two units: 7, 1 and 12 elements. */
enum { N = 20, PARTS = 3, PAIRS = 10, MOST_EVALUATIONS = 25 };

static const size_t BEGIN[PARTS + 1] = {0, 7, 8, 20};

/* ---- problems ---------------------------------------------------------------------------------------------------- */

typedef double problem(const double *x, double *g);

/* Condition 1e4: curvatures from 1 to 1e4, minimum 0 at 1 / (i + 1). */
static double quadratic(const double *x, double *g)
{
    double f = 0.0;

    for (int i = 0; i < N; i++) {
        const double c = pow(10.0, 4.0 * i / (N - 1)), d = x[i] - 1.0 / (i + 1);

        f += 0.5 * c * d * d;
        g[i] = c * d;
    }
    return f;
}

/* Minimum 0 at ones; valleys along 10 parabolas. */
static double rosenbrock(const double *x, double *g)
{
    double f = 0.0;

    for (int i = 0; i < N; i += 2) {
        const double a = x[i + 1] - x[i] * x[i], b = 1.0 - x[i];

        f += 100.0 * a * a + b * b;
        g[i]     = -400.0 * x[i] * a - 2.0 * b;
        g[i + 1] = 200.0 * a;
    }
    return f;
}

static double start_of(int i)
{
    return i % 2 == 0 ? -1.2 : 1.0;
}

/* ---- a serial one, apart from the library ------------------------------------------------------------------------ */

typedef struct serial {
    problem *f;
    double   x[N], g[N], d[N], s[PAIRS][N], y[PAIRS][N], rho[PAIRS];
    int      n; /* steps taken; the last PAIRS pairs are at step % PAIRS */
    double   loss;
} serial;

static double inner(const double *a, const double *b)
{
    double sum = 0.0;

    for (int i = 0; i < N; i++) {
        sum += a[i] * b[i];
    }
    return sum;
}

static void serial_direction(serial *m)
{
    double    a[PAIRS];
    const int first = m->n > PAIRS ? m->n - PAIRS : 0;

    for (int i = 0; i < N; i++) {
        m->d[i] = -m->g[i];
    }
    for (int k = m->n - 1; k >= first; k--) {
        a[k % PAIRS] = m->rho[k % PAIRS] * inner(m->s[k % PAIRS], m->d);
        for (int i = 0; i < N; i++) {
            m->d[i] -= a[k % PAIRS] * m->y[k % PAIRS][i];
        }
    }
    if (m->n > 0) {
        const int    k = (m->n - 1) % PAIRS;
        const double h = inner(m->s[k], m->y[k]) / inner(m->y[k], m->y[k]);

        for (int i = 0; i < N; i++) {
            m->d[i] *= h;
        }
    }
    for (int k = first; k < m->n; k++) {
        const double b = m->rho[k % PAIRS] * inner(m->y[k % PAIRS], m->d);

        for (int i = 0; i < N; i++) {
            m->d[i] += (a[k % PAIRS] - b) * m->s[k % PAIRS][i];
        }
    }
}

typedef struct trial {
    double t, f, df;
} trial;

static trial try_at(const serial *m, double t, double *x, double *g)
{
    for (int i = 0; i < N; i++) {
        x[i] = m->x[i] + t * m->d[i];
    }
    const double f = m->f(x, g);
    return (trial){t, f, inner(g, m->d)};
}

static double cubic(trial a, trial b, double low, double high)
{
    const double d1 = a.df + b.df - 3.0 * (a.f - b.f) / (a.t - b.t);
    const double d2 = (b.t > a.t ? 1.0 : -1.0) * sqrt(d1 * d1 - a.df * b.df);
    const double t  = b.t - (b.t - a.t) * (b.df + d2 - d1) / (b.df - a.df + 2.0 * d2);

    return !isfinite(t) ? 0.5 * (low + high) : t < low ? low : t > high ? high : t;
}

/* The strong Wolfe search of Nocedal and Wright, as one loop over a bracket that is open at first. */
static trial serial_search(const serial *m, double first, double *x, double *g)
{
    const trial zero = {0.0, m->loss, inner(m->g, m->d)};
    trial       low = zero, high = zero, p = zero;
    int         closed = 0;
    double      t      = first;

    for (int k = 0; k < MOST_EVALUATIONS; k++) {
        p              = try_at(m, t, x, g);
        const int rise = p.f > zero.f + 1e-4 * t * zero.df || (low.t > 0.0 && p.f >= low.f) || (closed && p.f >= low.f);

        if (!rise && fabs(p.df) <= -0.9 * zero.df) {
            return p;
        }
        if (rise) {
            high   = p;
            closed = 1;
        } else if (closed) {
            high = p.df * (high.t - low.t) >= 0.0 ? low : high;
            low  = p;
        } else if (p.df >= 0.0) {
            high   = low;
            low    = p;
            closed = 1;
        } else {
            t   = cubic(low, p, 2.0 * t, 10.0 * t);
            low = p;
            continue;
        }
        const double begin = fmin(low.t, high.t), width = fabs(high.t - low.t);
        t = cubic(low, high, begin + 0.1 * width, begin + 0.9 * width);
    }
    return p;
}

static void serial_iterate(serial *m)
{
    double x[N], g[N];

    serial_direction(m);
    const trial p = serial_search(m, m->n > 0 ? 1.0 : 1.0 / fmax(1.0, sqrt(inner(m->g, m->g))), x, g);
    const int   k = m->n++ % PAIRS;

    for (int i = 0; i < N; i++) {
        m->s[k][i] = x[i] - m->x[i];
        m->y[k][i] = g[i] - m->g[i];
    }
    m->rho[k] = 1.0 / inner(m->s[k], m->y[k]);
    memcpy(m->x, x, sizeof x);
    memcpy(m->g, g, sizeof g);
    m->loss = p.f;
}

static void serial_begin(serial *m, problem *f)
{
    *m = (serial){.f = f};
    for (int i = 0; i < N; i++) {
        m->x[i] = (double)(float)start_of(i);
    }
    m->loss = f(m->x, m->g);
}

/* ---- the same in a model ----------------------------------------------------------------------------------------- */

typedef struct run {
    fsdp_context *ctx;
    fsdp_model   *model;
    fsdp_unit    *units[2];
    fsdp_lbfgs   *lbfgs;
    problem      *f;
    int           calls, fail_at, fail_early, differ_at; /* counted from 1; 0: never */
} run;

static const char *const NAMES[PARTS] = {"a.first", "a.one", "b.rest"};

static fsdp_unit *unit_of(const run *r, size_t part)
{
    return r->units[part / 2];
}

static void build_on(MPI_Comm comm, run *r, const fsdp_model_options *options, problem *f)
{
    fsdp_tensor tensors[PARTS];

    *r = (run){.f = f};
    for (size_t p = 0; p < PARTS; p++) {
        tensors[p] = (fsdp_tensor){
            .name = NAMES[p], .n_dims = 1, .shape = {BEGIN[p + 1] - BEGIN[p]}, .fill = FSDP_FILL_CONSTANT};
    }
    assert_int_equal(FSDP_OK, fsdp_init(comm, NULL, &r->ctx));
    assert_int_equal(FSDP_OK, fsdp_model_create(r->ctx, options, &r->model));
    assert_int_equal(FSDP_OK, fsdp_unit_add(r->model, "a", tensors, 2, &r->units[0]));
    assert_int_equal(FSDP_OK, fsdp_unit_add(r->model, "b", tensors + 2, 1, &r->units[1]));
    assert_int_equal(FSDP_OK, fsdp_model_commit(r->model));
    for (size_t p = 0; p < PARTS; p++) {
        fsdp_shard shard;

        assert_int_equal(FSDP_OK, fsdp_unit_shard(unit_of(r, p), p % 2, &shard));
        for (size_t i = 0; i < shard.count; i++) {
            ((float *)shard.master)[i] = (float)start_of((int)(BEGIN[p] + shard.begin + i));
        }
    }
    assert_int_equal(FSDP_OK, fsdp_model_shards_changed(r->model));
}

static void build(run *r, const fsdp_model_options *options, problem *f)
{
    build_on(MPI_COMM_WORLD, r, options, f);
}

static fsdp_model_options options_of(fsdp_strategy strategy)
{
    fsdp_model_options o = FSDP_MODEL_OPTIONS_DEFAULT;

    o.strategy   = strategy;
    o.optimizer  = FSDP_SGD;
    o.group_size = strategy == FSDP_HYBRID_SHARD_ZERO2 ? 1 : o.group_size; /* a copy on each rank */
    return o;
}

static void open_run(run *r, fsdp_strategy strategy, problem *f, const fsdp_lbfgs_options *options)
{
    const fsdp_model_options o = options_of(strategy);

    build(r, &o, f);
    assert_int_equal(FSDP_OK, fsdp_lbfgs_create(r->model, options, &r->lbfgs));
}

static void close_run(run *r)
{
    fsdp_model_destroy(r->model);
    assert_int_equal(FSDP_OK, fsdp_finalize(r->ctx));
}

static fsdp_status read_parameters(run *r, double *x)
{
    for (size_t u = 0; u < 2; u++) {
        const fsdp_status begun = fsdp_unit_begin_forward(r->units[u]);
        if (begun != FSDP_OK) {
            return begun;
        }
        for (size_t p = 2 * u; p < PARTS && p < 2 * u + 2; p++) {
            for (size_t i = BEGIN[p]; i < BEGIN[p + 1]; i++) {
                x[i] = (double)((const float *)fsdp_unit_param(r->units[u], p % 2))[i - BEGIN[p]];
            }
        }
        const fsdp_status ended = fsdp_unit_end_forward(r->units[u]);
        if (ended != FSDP_OK) {
            return ended;
        }
    }
    return FSDP_OK;
}

static fsdp_status write_gradients(run *r, const double *g)
{
    for (size_t u = 2; u-- > 0;) {
        const fsdp_status begun = fsdp_unit_begin_backward(r->units[u]);
        if (begun != FSDP_OK) {
            return begun;
        }
        for (size_t p = 2 * u; p < PARTS && p < 2 * u + 2; p++) {
            for (size_t i = BEGIN[p]; i < BEGIN[p + 1]; i++) {
                ((float *)fsdp_unit_grad(r->units[u], p % 2))[i - BEGIN[p]] = (float)g[i];
            }
        }
        const fsdp_status ended = fsdp_unit_end_backward(r->units[u]);
        if (ended != FSDP_OK) {
            return ended;
        }
    }
    return FSDP_OK;
}

/* Every rank has all of the data, so that means over ranks are what each has. */
static fsdp_status closure(void *state, double *loss)
{
    run   *r    = state;
    double x[N] = {0}, g[N];

    const int is_last = fsdp_rank(r->ctx) == fsdp_size(r->ctx) - 1;
    r->calls++;
    if (r->calls == r->fail_early && is_last) {
        return FSDP_ERR_IO;
    }
    const fsdp_status forward = read_parameters(r, x);
    if (forward != FSDP_OK) {
        return forward;
    }
    *loss                      = r->f(x, g) + (r->calls == r->differ_at && is_last ? 1e-12 : 0.0);
    const fsdp_status backward = write_gradients(r, g);
    return backward == FSDP_OK && r->calls == r->fail_at && is_last ? FSDP_ERR_IO : backward;
}

static void values_of(run *r, float *values)
{
    for (size_t p = 0; p < PARTS; p++) {
        assert_int_equal(FSDP_OK, fsdp_tensor_export_to_all(r->model, NAMES[p], values + BEGIN[p],
                                                            (BEGIN[p + 1] - BEGIN[p]) * sizeof *values));
    }
}

/* ---- against the serial one -------------------------------------------------------------------------------------- */

static fsdp_lbfgs_options exact_options(size_t iterations)
{
    fsdp_lbfgs_options o = FSDP_LBFGS_OPTIONS_DEFAULT;

    o.max_iterations     = iterations;
    o.tolerance_gradient = 0.0;
    o.tolerance_change   = 0.0;
    return o;
}

/* Rounding of masters and gradients to f32 grows from iteration to iteration: so the first ones. */
static void check_first_iterations(problem *f)
{
    const fsdp_lbfgs_options o = exact_options(1);
    fsdp_lbfgs_result        result;
    serial                   expected;
    run                      r;
    float                    values[N];

    serial_begin(&expected, f);
    open_run(&r, FSDP_FULL_SHARD, f, &o);
    for (int k = 0; k < 8; k++) {
        serial_iterate(&expected);
        assert_int_equal(FSDP_OK, fsdp_lbfgs_step(r.lbfgs, closure, &r, &result));
        assert_int_equal(1, result.iterations);
        assert_int_equal(FSDP_LBFGS_MORE, result.end);
        values_of(&r, values);
        for (int i = 0; i < N; i++) {
            if (!(fabs((double)values[i] - expected.x[i]) <= 1e-3)) {
                fail_msg("iteration %d, element %d: %.9g, and %.9g in f64", k + 1, i, (double)values[i], expected.x[i]);
            }
        }
        assert_true(fabs(result.loss - expected.loss) <= 1e-3 * (1.0 + expected.loss));
    }
    close_run(&r);
}

static void the_first_iterations_are_those_of_a_serial_one(void **state)
{
    (void)state;
    check_first_iterations(quadratic);
    check_first_iterations(rosenbrock);
}

/* As near as f32 comes to it: until no lower loss is found, or the gradient is 0. */
static void check_minimum(problem *f, fsdp_line_search search, int is_at_ones)
{
    fsdp_lbfgs_options o = exact_options(3000);
    fsdp_lbfgs_result  result;
    run                r;
    float              values[N];

    o.search = search;
    open_run(&r, FSDP_FULL_SHARD, f, &o);
    assert_int_equal(FSDP_OK, fsdp_lbfgs_step(r.lbfgs, closure, &r, &result));
    assert_int_equal(r.calls, result.evaluations);
    assert_true(result.end == FSDP_LBFGS_NO_PROGRESS || result.end == FSDP_LBFGS_GRADIENT);
    assert_true(result.gradient_norm <= 1e-4 && result.loss <= 1e-10);
    values_of(&r, values);
    for (int i = 0; i < N; i++) {
        const double expected = is_at_ones ? 1.0 : 1.0 / (i + 1);

        if (!(fabs((double)values[i] - expected) <= (is_at_ones ? 1e-5 : 1e-4) * expected)) {
            fail_msg("element %d is %.9g, not %.9g, after %zu iterations, end %d", i, (double)values[i], expected,
                     result.iterations, (int)result.end);
        }
    }
    close_run(&r);
}

static void minima_are_found_to_the_limit_of_f32(void **state)
{
    (void)state;
    check_minimum(quadratic, FSDP_STRONG_WOLFE, 0);
    check_minimum(quadratic, FSDP_ARMIJO, 0);
    check_minimum(rosenbrock, FSDP_STRONG_WOLFE, 1);
    check_minimum(rosenbrock, FSDP_ARMIJO, 1);
}

/* ---- ends -------------------------------------------------------------------------------------------------------- */

static double no_number(const double *x, double *g)
{
    return rosenbrock(x, g) + (double)NAN;
}

/* Infinite beyond 1, so that searches must come back. */
static double walled(const double *x, double *g)
{
    double f = quadratic(x, g);

    for (int i = 0; i < N; i++) {
        f = x[i] > 1.5 ? (double)INFINITY : f;
    }
    return f;
}

static void expect_end(problem *f, const fsdp_lbfgs_options *o, fsdp_lbfgs_end end, fsdp_lbfgs_result *result)
{
    run r;

    open_run(&r, FSDP_FULL_SHARD, f, o);
    assert_int_equal(FSDP_OK, fsdp_lbfgs_step(r.lbfgs, closure, &r, result));
    assert_int_equal(end, result->end);
    close_run(&r);
}

static void a_step_says_why_it_has_ended(void **state)
{
    fsdp_lbfgs_options o = exact_options(3000);
    fsdp_lbfgs_result  result;

    (void)state;
    expect_end(no_number, &o, FSDP_LBFGS_NOT_FINITE, &result);
    assert_int_equal(1, result.evaluations);
    expect_end(walled, &o, FSDP_LBFGS_NO_PROGRESS, &result);
    assert_true(result.loss <= 1e-10);
    o.tolerance_gradient = 1.0;
    expect_end(quadratic, &o, FSDP_LBFGS_GRADIENT, &result);
    assert_true(result.gradient_norm <= 1.0 && result.gradient_norm > 0.0);
    o.tolerance_gradient = 0.0;
    o.tolerance_change   = 1e-3;
    expect_end(quadratic, &o, FSDP_LBFGS_CHANGE, &result);
    o.max_iterations = 2;
    expect_end(rosenbrock, &o, FSDP_LBFGS_MORE, &result);
    assert_int_equal(2, result.iterations);
}

/* ---- bits -------------------------------------------------------------------------------------------------------- */

static void bits_after(fsdp_strategy strategy, problem *f, float *values)
{
    const fsdp_lbfgs_options o = exact_options(30);
    run                      r;

    open_run(&r, strategy, f, &o);
    assert_int_equal(FSDP_OK, fsdp_lbfgs_step(r.lbfgs, closure, &r, NULL));
    values_of(&r, values);
    close_run(&r);
}

/* One rank's bits, which a run of any number must have: the model is the same, and so are the gradients. */
static void bits_on_one_rank(problem *f, float *values)
{
    const fsdp_lbfgs_options o       = exact_options(30);
    const fsdp_model_options options = options_of(FSDP_NO_SHARD);
    run                      r;

    build_on(MPI_COMM_SELF, &r, &options, f);
    assert_int_equal(FSDP_OK, fsdp_lbfgs_create(r.model, &o, &r.lbfgs));
    assert_int_equal(FSDP_OK, fsdp_lbfgs_step(r.lbfgs, closure, &r, NULL));
    values_of(&r, values);
    close_run(&r);
}

/* Means over ranks of equal f32 gradients are these gradients, bit by bit, up to 8 ranks: sums in rank order of g, 2g, 3g round. So
 * gradients are of 16 significant bits. */
static double rounded_quadratic(const double *x, double *g)
{
    const double f = quadratic(x, g);

    for (int i = 0; i < N; i++) {
        int          e;
        const double m = frexp(g[i], &e);

        g[i] = ldexp(nearbyint(m * 65536.0), e - 16);
    }
    return f;
}

static void all_strategies_and_ranks_have_the_same_bits(void **state)
{
    float expected[N], values[N];

    (void)state;
    bits_on_one_rank(rounded_quadratic, expected);
    for (int s = 0; s < FSDP_N_STRATEGIES; s++) {
        bits_after((fsdp_strategy)s, rounded_quadratic, values);
        assert_memory_equal(expected, values, sizeof values);
    }
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static void the_budget_is_what_is_held(void **state)
{
    (void)state;
    for (int s = 0; s < FSDP_N_STRATEGIES; s++) {
        fsdp_lbfgs_options o = exact_options(12);
        fsdp_budget        budget;
        fsdp_memory        memory;
        run                r;

        o.history = 7;
        open_run(&r, (fsdp_strategy)s, rosenbrock, &o);
        assert_int_equal(FSDP_OK, fsdp_model_budget(r.model, (fsdp_strategy)s, 0, FSDP_SGD, &budget));
        assert_int_equal(FSDP_OK, fsdp_lbfgs_budget(r.model, &o, &budget));
        assert_int_equal(FSDP_OK, fsdp_lbfgs_step(r.lbfgs, closure, &r, NULL));
        assert_int_equal(FSDP_OK, fsdp_memory_usage(r.ctx, &memory));
        for (int line = 0; line < FSDP_N_MEMORY_KINDS; line++) {
            if (budget.bytes[line] != memory.current[line]) {
                fail_msg("%s: %s: %zu bytes in the budget, %zu held", fsdp_strategy_name((fsdp_strategy)s),
                         fsdp_memory_name((fsdp_memory_kind)line), budget.bytes[line], memory.current[line]);
            }
        }
        assert_int_equal(budget.total, memory.peak_total);
        fsdp_lbfgs_destroy(r.lbfgs);
        assert_int_equal(FSDP_OK, fsdp_memory_usage(r.ctx, &memory));
        assert_int_equal(0, memory.current[FSDP_MEMORY_OPTIMIZER]);
        close_run(&r);
    }
}

/* ---- failures ---------------------------------------------------------------------------------------------------- */

/* The closure fails in its `call`-th call; then all goes on. */
static void check_failing(fsdp_strategy strategy, int call, int early, int differ)
{
    const fsdp_lbfgs_options o = exact_options(5);
    fsdp_lbfgs_result        result, untouched;
    float                    before[N], values[N];
    run                      r;

    open_run(&r, strategy, rosenbrock, &o);
    assert_int_equal(FSDP_OK, fsdp_lbfgs_step(r.lbfgs, closure, &r, &result));
    values_of(&r, before);
    r.calls      = 0;
    r.fail_at    = early || differ ? 0 : call;
    r.fail_early = early ? call : 0;
    r.differ_at  = differ ? call : 0;
    memset(&untouched, 0x5a, sizeof untouched);
    result                   = untouched;
    const fsdp_status status = fsdp_lbfgs_step(r.lbfgs, closure, &r, &result);
    if (differ) {
        assert_int_equal(fsdp_size(r.ctx) > 1 ? FSDP_ERR_MISMATCH : FSDP_OK, status);
    } else if (early) {
        assert_int_not_equal(FSDP_OK, status);
    } else {
        assert_int_equal(FSDP_ERR_IO, status);
    }
    if (status != FSDP_OK) {
        assert_memory_equal(&untouched, &result, sizeof result);
        assert_int_equal(call, r.calls);
        values_of(&r, values);
        assert_memory_equal(before, values, sizeof values);
    }
    r.fail_at = r.fail_early = r.differ_at = 0;
    assert_int_equal(FSDP_OK, fsdp_lbfgs_step(r.lbfgs, closure, &r, &result));
    assert_true(result.iterations > 0);
    close_run(&r);
}

static void a_closure_that_fails_leaves_parameters_as_they_were(void **state)
{
    (void)state;
    for (int s = 0; s < FSDP_N_STRATEGIES; s++) {
        check_failing((fsdp_strategy)s, 1, 0, 0);
        check_failing((fsdp_strategy)s, 4, 0, 0);
    }
}

/* Before its passes, in which the others are: these fail too. */
static void a_closure_that_fails_before_its_passes_does_so_too(void **state)
{
    (void)state;
    for (int s = 0; s < FSDP_N_STRATEGIES; s++) {
        check_failing((fsdp_strategy)s, 3, 1, 0);
    }
}

static void losses_that_differ_are_found(void **state)
{
    (void)state;
    check_failing(FSDP_FULL_SHARD, 3, 0, 1);
    check_failing(FSDP_NO_SHARD, 1, 0, 1);
}

/* ---- refusals ---------------------------------------------------------------------------------------------------- */

static void expect_refused(run *r, fsdp_status status, const char *words)
{
    fsdp_lbfgs *none = NULL;

    assert_int_equal(status, fsdp_lbfgs_create(r->model, NULL, &none));
    assert_null(none);
    assert_says(r->ctx, words);
}

static void what_does_not_fit_is_refused_with_the_remedy(void **state)
{
    fsdp_loss_scaler_options scaling = FSDP_LOSS_SCALER_OPTIONS_DEFAULT;
    fsdp_optimizer_options   sgd;
    fsdp_model_options       o = options_of(FSDP_NO_SHARD);
    fsdp_optimizer          *optimizer;
    fsdp_loss_scaler        *scaler;
    fsdp_hook               *hook;
    run                      r;

    (void)state;
    scaling.allow_any_dtype = 1;
    assert_int_equal(FSDP_OK, fsdp_optimizer_options_init(FSDP_SGD, &sgd));
    build(&r, &o, quadratic);
    assert_int_equal(FSDP_OK, fsdp_hook_half(r.ctx, FSDP_BF16, &hook));
    assert_int_equal(FSDP_OK, fsdp_model_set_hook(r.model, hook));
    expect_refused(&r, FSDP_ERR_UNSUPPORTED, "fsdp_model_set_hook with NULL");
    assert_int_equal(FSDP_OK, fsdp_model_set_hook(r.model, NULL));
    assert_int_equal(FSDP_OK, fsdp_loss_scaler_create(r.model, &scaling, &scaler));
    expect_refused(&r, FSDP_ERR_UNSUPPORTED, "a loss scaler; destroy that first");
    fsdp_loss_scaler_destroy(scaler);
    assert_int_equal(FSDP_OK, fsdp_optimizer_create(r.model, &sgd, &optimizer));
    expect_refused(&r, FSDP_ERR_STATE, "has an optimizer already");
    fsdp_optimizer_destroy(optimizer);
    assert_int_equal(FSDP_OK, fsdp_lbfgs_create(r.model, NULL, &r.lbfgs)); /* and the other way round */
    expect_refused(&r, FSDP_ERR_STATE, "has an optimizer already");
    assert_int_equal(FSDP_ERR_STATE, fsdp_optimizer_create(r.model, &sgd, &optimizer));
    assert_says(r.ctx, "fsdp_lbfgs_destroy first");
    assert_int_equal(FSDP_ERR_UNSUPPORTED, fsdp_model_set_hook(r.model, hook));
    assert_int_equal(FSDP_ERR_UNSUPPORTED, fsdp_loss_scaler_create(r.model, &scaling, &scaler));
    assert_int_equal(FSDP_ERR_ARG, fsdp_lbfgs_step(r.lbfgs, NULL, NULL, NULL));
    fsdp_model_destroy(r.model);
    fsdp_hook_destroy(hook);
    assert_int_equal(FSDP_OK, fsdp_finalize(r.ctx));
    o.reduce_dtype = FSDP_BF16;
    build(&r, &o, quadratic);
    expect_refused(&r, FSDP_ERR_UNSUPPORTED, "fsdp_model_options.reduce_dtype");
    close_run(&r);
    o.reduce_dtype = FSDP_F32;
    o.param_dtype  = FSDP_BF16;
    build(&r, &o, quadratic);
    expect_refused(&r, FSDP_ERR_UNSUPPORTED, "fsdp_model_options.param_dtype");
    close_run(&r);
}

static void a_model_with_groups_or_quantised_parameters_is_refused(void **state)
{
    const fsdp_tensor      tensor = {.name = "w", .n_dims = 1, .shape = {300}, .dtype = FSDP_F32};
    const fsdp_model_group group  = FSDP_MODEL_GROUP_DEFAULT;
    fsdp_model_options     o      = options_of(FSDP_FULL_SHARD);
    run                    r;

    (void)state;
    o.quantized_params = 1;
    build(&r, &o, quadratic);
    expect_refused(&r, FSDP_ERR_UNSUPPORTED, "set fsdp_model_options.quantized_params to 0");
    close_run(&r);

    assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_WORLD, NULL, &r.ctx));
    assert_int_equal(FSDP_OK, fsdp_model_create(r.ctx, NULL, &r.model));
    assert_int_equal(FSDP_OK, fsdp_unit_add(r.model, "u", &tensor, 1, &r.units[0]));
    expect_refused(&r, FSDP_ERR_STATE, "call fsdp_model_commit first");
    assert_int_equal(FSDP_OK, fsdp_model_add_group(r.model, "w", &group));
    assert_int_equal(FSDP_OK, fsdp_model_commit(r.model));
    expect_refused(&r, FSDP_ERR_UNSUPPORTED, "leave fsdp_model_add_group out");
    close_run(&r);
}

static void options_out_of_range_are_refused(void **state)
{
    const fsdp_model_options model = options_of(FSDP_FULL_SHARD);
    fsdp_lbfgs_options       o     = FSDP_LBFGS_OPTIONS_DEFAULT;
    fsdp_lbfgs              *none  = NULL;
    run                      r;

    (void)state;
    build(&r, &model, quadratic);
    o.history = 0;
    assert_int_equal(FSDP_ERR_ARG, fsdp_lbfgs_create(r.model, &o, &none));
    assert_says(r.ctx, "fsdp_lbfgs_options.history is 0");
    o.history  = 1;
    o.decrease = 0.95;
    assert_int_equal(FSDP_ERR_ARG, fsdp_lbfgs_create(r.model, &o, &none));
    assert_says(r.ctx, "below curvature");
    o.decrease = 1e-4;
    o.lr       = fsdp_rank(r.ctx) == 0 ? 1.0 : 0.5;
    assert_int_equal(fsdp_size(r.ctx) > 1 ? FSDP_ERR_MISMATCH : FSDP_OK, fsdp_lbfgs_create(r.model, &o, &none));
    close_run(&r);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_iterations_are_those_of_a_serial_one),
        cmocka_unit_test(minima_are_found_to_the_limit_of_f32),
        cmocka_unit_test(a_step_says_why_it_has_ended),
        cmocka_unit_test(all_strategies_and_ranks_have_the_same_bits),
        cmocka_unit_test(the_budget_is_what_is_held),
        cmocka_unit_test(a_closure_that_fails_leaves_parameters_as_they_were),
        cmocka_unit_test(a_closure_that_fails_before_its_passes_does_so_too),
        cmocka_unit_test(losses_that_differ_are_found),
        cmocka_unit_test(what_does_not_fit_is_refused_with_the_remedy),
        cmocka_unit_test(a_model_with_groups_or_quantised_parameters_is_refused),
        cmocka_unit_test(options_out_of_range_are_refused),
    };

    return fsdp_test_main(argc, argv, tests, NULL, NULL);
}
