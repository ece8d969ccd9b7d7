/*
 * Norms apart from clipping, of several models and of each tensor; clipping with a norm that is known, and scaling. Expected
 * norms are summed in quadruple precision from what each rank has added.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "shard/state/strategy.h"
#include "tests/shard/loop.h"

enum { MOST_TENSORS = 70 };

static float w[MOST_ELEMENTS], g[MOST_ELEMENTS];

/* Rounding in f64, of the sum and of its root; what the library computes is exact but for that. */
static void expect_norm(double found, long double squares, const char *what)
{
    const double expected = (double)sqrtl(squares);

    if (!(fabs(found - expected) <= 1e-15 * expected)) {
        fail_msg("%s: %.17g instead of %.17g", what, found, expected);
    }
}

static long double squares_of(const float *values, size_t n)
{
    long double sum = 0.0L;

    for (size_t k = 0; k < n; k++) {
        sum += (long double)values[k] * (long double)values[k];
    }
    return sum;
}

/* ---- one model --------------------------------------------------------------------------------------------------- */

static void check_one(const loop_case *c)
{
    const int   size = fsdp_size(c->ctx);
    small_model m;
    double      norm, clipped;

    loop_open(&m, c, (fsdp_model_options)FSDP_MODEL_OPTIONS_DEFAULT);
    fsdp_optimizer *sgd = loop_optimizer(&m, FSDP_SGD);
    copy_parameters(&m, w);
    loop_pass(&m, ALL_UNITS, 0, true);
    loop_add_mean(g, ALL_UNITS, 0, size, size, true);
    assert_int_equal(FSDP_OK, fsdp_grad_norm(&m.model, 1, &norm));
    expect_norm(norm, squares_of(g, MOST_ELEMENTS), fsdp_strategy_name(c->strategy));
    assert_int_equal(FSDP_OK, fsdp_clip_grad_norm(m.model, INFINITY, &clipped));
    assert_true(norm == clipped);
    assert_int_equal(FSDP_OK, fsdp_scale_grad(m.model, -0.3));
    assert_int_equal(FSDP_OK, fsdp_clip_grad_with_norm(m.model, 5.0, 4.0));      /* below it: nothing happens */
    assert_int_equal(FSDP_OK, fsdp_clip_grad_with_norm(m.model, 5.0, INFINITY)); /* nor now */
    assert_int_equal(FSDP_OK, fsdp_clip_grad_with_norm(m.model, 5.0, NAN));
    assert_int_equal(FSDP_OK, fsdp_clip_grad_with_norm(m.model, 5.0, 7.0));
    assert_int_equal(FSDP_OK, fsdp_optimizer_step(sgd));
    for (size_t k = 0; k < MOST_ELEMENTS; k++) {
        const volatile float scaled = g[k] * -0.3F, less = scaled * (float)(5.0 / (7.0 + 1e-6));

        w[k] -= less;
    }
    loop_expect_parameters(&m, w, fsdp_strategy_name(c->strategy));
    fsdp_model_destroy(m.model);
}

static void norms_and_scaling_are_calls_of_their_own(void **state)
{
    (void)state;
    loop_for_all(check_one);
}

/* ---- several models ---------------------------------------------------------------------------------------------- */

/* Of different strategies, in one context: the norm of all their parameters, the same bits for each. */
static void check_several(const loop_case *c)
{
    const loop_case whole = {c->ctx, FSDP_NO_SHARD, 0, c->prefetch};
    const int       size  = fsdp_size(c->ctx);
    small_model     m, other;
    double          norm, swapped;
    long double     squares;

    loop_open(&m, c, (fsdp_model_options)FSDP_MODEL_OPTIONS_DEFAULT);
    loop_open(&other, &whole, (fsdp_model_options)FSDP_MODEL_OPTIONS_DEFAULT);
    loop_pass(&m, ALL_UNITS, 0, true);
    loop_pass(&other, ALL_UNITS, 1, true);
    loop_add_mean(g, ALL_UNITS, 0, size, size, true);
    squares = squares_of(g, MOST_ELEMENTS);
    loop_add_mean(g, ALL_UNITS, 1, size, size, true);
    squares += squares_of(g, MOST_ELEMENTS);
    assert_int_equal(FSDP_OK, fsdp_grad_norm((fsdp_model *[]){m.model, other.model}, 2, &norm));
    assert_int_equal(FSDP_OK, fsdp_grad_norm((fsdp_model *[]){other.model, m.model}, 2, &swapped));
    expect_norm(norm, squares, fsdp_strategy_name(c->strategy));
    assert_true(norm == swapped);
    fsdp_model_destroy(m.model);
    fsdp_model_destroy(other.model);
}

static void a_norm_over_several_models_is_that_of_all_their_parameters(void **state)
{
    (void)state;
    loop_for_all(check_several);
}

static void models_of_other_contexts_or_twice_are_named(void **state)
{
    const loop_case c = {loop_context(), FSDP_FULL_SHARD, 0, 0};
    small_model     m, other;
    fsdp_context   *ctx;
    double          norm;

    (void)state;
    loop_open(&m, &c, (fsdp_model_options)FSDP_MODEL_OPTIONS_DEFAULT);
    assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_WORLD, NULL, &ctx));
    loop_open(&other, &(loop_case){ctx, FSDP_FULL_SHARD, 0, 0}, (fsdp_model_options)FSDP_MODEL_OPTIONS_DEFAULT);
    loop_pass(&m, ALL_UNITS, 0, true);
    loop_pass(&other, ALL_UNITS, 0, true);
    assert_int_equal(FSDP_ERR_ARG, fsdp_grad_norm((fsdp_model *[]){m.model, other.model}, 2, &norm));
    assert_says(m.ctx, "model 1 is one of another context");
    assert_int_equal(FSDP_ERR_ARG, fsdp_grad_norm((fsdp_model *[]){m.model, m.model}, 2, &norm));
    assert_says(m.ctx, "model 1 is model 0 again");
    assert_int_equal(FSDP_ERR_ARG, fsdp_grad_norm((fsdp_model *[]){m.model, NULL}, 2, &norm));
    assert_int_equal(FSDP_ERR_ARG, fsdp_grad_norm((fsdp_model *[]){NULL}, 1, &norm));
    assert_int_equal(FSDP_ERR_ARG, fsdp_grad_norm(NULL, 1, &norm));
    assert_int_equal(FSDP_ERR_ARG, fsdp_grad_norm(&m.model, 0, &norm));
    assert_int_equal(FSDP_ERR_ARG, fsdp_grad_norm(&m.model, 1, fsdp_rank(m.ctx) == 0 ? NULL : &norm));
    assert_int_equal(FSDP_OK, fsdp_grad_norm(&m.model, 1, &norm));
    fsdp_model_destroy(m.model);
    fsdp_model_destroy(other.model);
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

/* ---- tensors ----------------------------------------------------------------------------------------------------- */

static void check_tensors(const loop_case *c)
{
    fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;
    const int          size    = fsdp_size(c->ctx);
    fsdp_tensor_norm   norms[N_TENSORS + 1];
    small_model        m;
    size_t             n, at = 0;

    options.unused = FSDP_UNUSED_KEEP;
    loop_open(&m, c, options);
    loop_pass(&m, UNIT_A | UNIT_C, 0, true);
    memset(g, 0, sizeof g);
    loop_add_mean(g, UNIT_A | UNIT_C, 0, size, size, true);
    assert_int_equal(FSDP_OK, fsdp_grad_norm_per_tensor(m.model, norms, N_TENSORS, &n));
    assert_int_equal(N_TENSORS, n);
    for (size_t t = 0; t < N_TENSORS; at += tensor_elements(t), t++) {
        assert_string_equal(TENSORS[t].name, norms[t].name);
        expect_norm(norms[t].norm, squares_of(g + at, tensor_elements(t)), norms[t].name);
    }
    /* fewer places, a different number on each rank */
    norms[1].norm = -1.0;
    assert_int_equal(FSDP_OK, fsdp_grad_norm_per_tensor(m.model, norms, fsdp_rank(m.ctx) == 0 ? 1 : 0, &n));
    assert_int_equal(N_TENSORS, n);
    assert_true(norms[1].norm == -1.0);
    fsdp_model_destroy(m.model);
}

static void each_tensor_has_its_norm_on_all_ranks(void **state)
{
    (void)state;
    loop_for_all(check_tensors);
}

/* One rank's gradient of one element spoils the mean of its tensor: every rank learns of which. */
static void check_not_finite(const loop_case *c)
{
    fsdp_tensor_norm norms[N_TENSORS];
    small_model      m;
    size_t           n;

    loop_open(&m, c, (fsdp_model_options)FSDP_MODEL_OPTIONS_DEFAULT);
    loop_pass(&m, ALL_UNITS, 0, true);
    assert_int_equal(FSDP_OK, fsdp_unit_begin_backward(m.units[0]));
    if (fsdp_rank(m.ctx) == fsdp_size(m.ctx) - 1) {
        ((float *)fsdp_unit_grad(m.units[0], 1))[66] = INFINITY;
        ((float *)fsdp_unit_grad(m.units[0], 2))[0]  = NAN;
    }
    assert_int_equal(FSDP_OK, fsdp_unit_end_backward(m.units[0]));
    assert_int_equal(FSDP_OK, fsdp_grad_norm_per_tensor(m.model, norms, N_TENSORS, &n));
    assert_true(isfinite(norms[0].norm) && isinf(norms[1].norm) && isnan(norms[2].norm));
    assert_true(isfinite(norms[3].norm) && isfinite(norms[4].norm));
    fsdp_model_destroy(m.model);
}

static void tensors_that_are_not_finite_are_known_by_name(void **state)
{
    (void)state;
    loop_for_all(check_not_finite);
}

/* More than go into one reduction, and among them those that have no gradient of their own. */
static void check_many(const loop_case *c)
{
    static char             names[MOST_TENSORS][16];
    static fsdp_tensor      tensors[MOST_TENSORS];
    static fsdp_tensor_norm norms[MOST_TENSORS];
    fsdp_model_options      options = FSDP_MODEL_OPTIONS_DEFAULT;
    fsdp_unit              *unit;
    fsdp_model             *model;
    size_t                  n, found = 0;

    for (size_t t = 0; t < MOST_TENSORS; t++) {
        (void)snprintf(names[t], sizeof names[t], "t%zu", t);
        tensors[t] = (fsdp_tensor){.name = names[t], .n_dims = 1, .shape = {t % 5 + 1}, .dtype = FSDP_F32};
    }
    tensors[3].flags    = FSDP_TENSOR_FROZEN;
    tensors[7].flags    = FSDP_TENSOR_IGNORED;
    tensors[11].tied_to = "t1"; /* two elements, as it has */
    options.strategy    = c->strategy;
    options.group_size  = c->group_size;
    assert_int_equal(FSDP_OK, fsdp_model_create(c->ctx, &options, &model));
    assert_int_equal(FSDP_OK, fsdp_unit_add(model, "u", tensors, MOST_TENSORS, &unit));
    assert_int_equal(FSDP_OK, fsdp_model_commit(model));
    assert_int_equal(FSDP_OK, fsdp_unit_begin_backward(unit));
    for (size_t t = 0; t < MOST_TENSORS; t++) {
        float *gradient = t == 3 || t == 7 || t == 11 ? NULL : fsdp_unit_grad(unit, t);

        for (size_t i = 0; gradient != NULL && i < t % 5 + 1; i++) {
            gradient[i] = (float)t;
        }
    }
    assert_int_equal(FSDP_OK, fsdp_unit_end_backward(unit));
    assert_int_equal(FSDP_OK, fsdp_grad_norm_per_tensor(model, norms, MOST_TENSORS, &n));
    assert_int_equal(MOST_TENSORS - 3, n);
    for (size_t t = 0; t < MOST_TENSORS; t++) {
        if (t != 3 && t != 7 && t != 11) {
            assert_string_equal(names[t], norms[found].name);
            expect_norm(norms[found++].norm, (long double)(t * t) * (long double)(t % 5 + 1), names[t]);
        }
    }
    fsdp_model_destroy(model);
}

static void there_may_be_more_tensors_than_one_reduction_has_room_for(void **state)
{
    (void)state;
    loop_for_all(check_many);
}

/* ---- errors ------------------------------------------------------------------------------------------------------ */

static fsdp_status call(small_model *m, int which, bool odd)
{
    fsdp_tensor_norm norms[N_TENSORS];
    double           norm;

    switch (which) {
    case 0:
        return fsdp_scale_grad(m->model, odd ? 2.0 : 1.0);
    case 1:
        return fsdp_clip_grad_with_norm(m->model, 1.0, odd ? 2.0 : 0.5);
    case 2:
        return fsdp_clip_grad_with_norm(m->model, odd ? 2.0 : 1.0, 0.5);
    case 3:
        return odd ? fsdp_grad_norm_per_tensor(m->model, norms, N_TENSORS, NULL) : fsdp_grad_norm(&m->model, 1, &norm);
    default:
        return odd ? fsdp_clip_grad_norm(m->model, 1.0, NULL) : fsdp_grad_norm_per_tensor(m->model, norms, 1, NULL);
    }
}

static void check_disagreement(const loop_case *c)
{
    const int   size = fsdp_size(c->ctx);
    small_model m;

    loop_open(&m, c, (fsdp_model_options)FSDP_MODEL_OPTIONS_DEFAULT);
    fsdp_optimizer *sgd = loop_optimizer(&m, FSDP_SGD);
    copy_parameters(&m, w);
    loop_pass(&m, ALL_UNITS, 0, true);
    const int n = fsdpi_is_hybrid(c->strategy) ? 3 : 5; /* in groups, another function ends the step */
    for (int which = 0; which < n && size > 1; which++) {
        const fsdp_status status = call(&m, which, fsdp_rank(m.ctx) == size - 1);
        if (status != FSDP_ERR_MISMATCH) {
            fail_msg("%s, call %d: %s: %s", fsdp_strategy_name(c->strategy), which, fsdp_status_name(status),
                     fsdp_last_error(m.ctx));
        }
    }
    loop_add_mean(g, ALL_UNITS, 0, size, size, true);
    for (size_t k = 0; k < MOST_ELEMENTS; k++) {
        w[k] -= g[k];
    }
    assert_int_equal(FSDP_OK, fsdp_optimizer_step(sgd));
    loop_expect_parameters(&m, w, fsdp_strategy_name(c->strategy));
    fsdp_model_destroy(m.model);
}

static void ranks_that_disagree_are_told_and_nothing_has_changed(void **state)
{
    (void)state;
    loop_for_all(check_disagreement);
}

static void check_bad_calls(const loop_case *c)
{
    small_model m;
    double      norm;

    loop_open(&m, c, (fsdp_model_options)FSDP_MODEL_OPTIONS_DEFAULT);
    const bool last = fsdp_rank(m.ctx) == fsdp_size(m.ctx) - 1;
    assert_int_equal(FSDP_ERR_STATE, fsdp_grad_norm(&m.model, 1, &norm)); /* no gradients */
    assert_int_equal(FSDP_ERR_STATE, fsdp_scale_grad(m.model, 1.0));
    assert_int_equal(FSDP_ERR_STATE, fsdp_clip_grad_with_norm(m.model, 1.0, 1.0));
    assert_int_equal(FSDP_ERR_STATE, fsdp_grad_norm_per_tensor(m.model, NULL, 0, NULL));
    loop_pass(&m, ALL_UNITS, 0, true);
    assert_int_equal(FSDP_ERR_ARG, fsdp_scale_grad(m.model, last ? (double)INFINITY : 1.0));
    assert_int_equal(FSDP_ERR_ARG, fsdp_scale_grad(m.model, last ? (double)NAN : 1.0));
    assert_int_equal(FSDP_ERR_ARG, fsdp_clip_grad_with_norm(m.model, last ? 0.0 : 1.0, 1.0));
    assert_int_equal(FSDP_ERR_ARG, fsdp_clip_grad_with_norm(m.model, 1.0, last ? -1.0 : 1.0));
    assert_int_equal(FSDP_ERR_ARG, fsdp_grad_norm_per_tensor(m.model, NULL, last ? 1 : 0, NULL));
    assert_int_equal(FSDP_OK, fsdp_grad_norm_per_tensor(m.model, NULL, 0, NULL));
    fsdp_model_destroy(m.model);
}

static void bad_calls_are_refused_on_all_ranks(void **state)
{
    (void)state;
    assert_int_equal(FSDP_ERR_ARG, fsdp_scale_grad(NULL, 1.0));
    assert_int_equal(FSDP_ERR_ARG, fsdp_clip_grad_with_norm(NULL, 1.0, 1.0));
    assert_int_equal(FSDP_ERR_ARG, fsdp_grad_norm_per_tensor(NULL, NULL, 0, NULL));
    loop_for_all(check_bad_calls);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(norms_and_scaling_are_calls_of_their_own),
        cmocka_unit_test(a_norm_over_several_models_is_that_of_all_their_parameters),
        cmocka_unit_test(models_of_other_contexts_or_twice_are_named),
        cmocka_unit_test(each_tensor_has_its_norm_on_all_ranks),
        cmocka_unit_test(tensors_that_are_not_finite_are_known_by_name),
        cmocka_unit_test(there_may_be_more_tensors_than_one_reduction_has_room_for),
        cmocka_unit_test(ranks_that_disagree_are_told_and_nothing_has_changed),
        cmocka_unit_test(bad_calls_are_refused_on_all_ranks),
    };

    return fsdp_test_main(argc, argv, tests, loop_open_contexts, loop_close_contexts);
}
