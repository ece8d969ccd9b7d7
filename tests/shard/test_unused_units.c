/*
 * Units without work in a step: an error, parameters that stay what they are, or gradients of zero, as the model's options say; and
 * ranks that do not agree on which units those are.
 */
#include <math.h>
#include <string.h>

#include "tests/shard/loop.h"
#include "tests/shard/serial_optimizer.h"

enum { N_STEPS = 4 };

/* Which units are used in each step, in passes one after the other; 0: none. */
static const unsigned USED[N_STEPS][2] = {
    {ALL_UNITS, UNIT_B}, {UNIT_A | UNIT_C, UNIT_C}, {UNIT_B, 0}, {ALL_UNITS, ALL_UNITS}};

/* ---- a serial step ----------------------------------------------------------------------------------------------- */

static serial_model serial, before;

static void keep_unused(unsigned used)
{
    LOOP_ELEMENTS(u, t, i, k)
    {
        if ((used >> u & 1u) == 0) {
            serial.w[k]      = before.w[k];
            serial.first[k]  = before.first[k];
            serial.second[k] = before.second[k];
        }
    }
}

static void step_of_reference(const unsigned *units, int pass, fsdp_unused unused, const fsdp_optimizer_options *o,
                              int size)
{
    unsigned used = 0;

    memset(serial.g, 0, sizeof serial.g);
    for (int k = 0; k < 2; k++) {
        loop_add_mean(serial.g, units[k], pass + k, size, size, false);
        used |= units[k];
    }
    before = serial;
    serial_step(&serial, o, NULL);
    if (unused == FSDP_UNUSED_KEEP) {
        keep_unused(used);
    }
}

static void train(const loop_case *c, fsdp_unused unused, fsdp_optimizer_kind kind)
{
    fsdp_model_options     options = FSDP_MODEL_OPTIONS_DEFAULT;
    fsdp_optimizer_options o;
    fsdp_optimizer        *optimizer;
    small_model            m;

    options.unused = unused;
    loop_open(&m, c, options);
    assert_int_equal(FSDP_OK, fsdp_optimizer_options_init(kind, &o));
    o.lr = 0.01;
    assert_int_equal(FSDP_OK, fsdp_optimizer_create(m.model, &o, &optimizer));
    memset(&serial, 0, sizeof serial);
    copy_parameters(&m, serial.w);
    for (int step = 0; step < N_STEPS; step++) {
        loop_pass(&m, USED[step][0], 2 * step, true);
        loop_pass(&m, USED[step][1], 2 * step + 1, true);
        assert_int_equal(FSDP_OK, fsdp_optimizer_step(optimizer));
        step_of_reference(USED[step], 2 * step, unused, &o, fsdp_size(m.ctx));
        loop_expect_parameters(&m, serial.w, fsdp_strategy_name(c->strategy));
    }
    fsdp_model_destroy(m.model);
}

static void train_both_ways(const loop_case *c)
{
    train(c, FSDP_UNUSED_KEEP, FSDP_ADAMW);
    train(c, FSDP_UNUSED_ZERO, FSDP_ADAMW);
    train(c, FSDP_UNUSED_KEEP, FSDP_SGD_MOMENTUM);
    train(c, FSDP_UNUSED_ZERO, FSDP_LION);
}

static void unused_parameters_keep_their_values_or_count_as_zero_gradients(void **state)
{
    (void)state;
    loop_for_all(train_both_ways);
}

/* ---- norms and scaling ------------------------------------------------------------------------------------------- */

static double norm_of_reference(unsigned units, int size)
{
    static float g[MOST_ELEMENTS];
    long double  sum = 0.0L;

    memset(g, 0, sizeof g);
    loop_add_mean(g, units, 0, size, size, true);
    for (size_t k = 0; k < MOST_ELEMENTS; k++) {
        sum += (long double)g[k] * (long double)g[k];
    }
    return (double)sqrtl(sum);
}

static void check_norm(const loop_case *c)
{
    fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;
    const unsigned     units[] = {UNIT_A | UNIT_B, UNIT_C, 0};
    small_model        m;
    double             norm;

    options.unused = FSDP_UNUSED_KEEP;
    loop_open(&m, c, options);
    for (size_t i = 0; i < 3; i++) {
        loop_pass(&m, units[i], 0, true);
        assert_int_equal(FSDP_OK, fsdp_clip_grad_norm(m.model, INFINITY, &norm));
        const double expected = norm_of_reference(units[i], fsdp_size(m.ctx));
        assert_true(fabs(norm - expected) <= 1e-12 * expected);
        assert_int_equal(FSDP_OK, fsdp_model_zero_grad(m.model));
    }
    fsdp_model_destroy(m.model);
}

static void a_norm_is_that_of_the_units_that_were_used(void **state)
{
    (void)state;
    loop_for_all(check_norm);
}

/* The step that overflows and the one without work both leave the parameters as they are, and only the former is skipped. */
static void check_scaler(const loop_case *c)
{
    fsdp_model_options       options = FSDP_MODEL_OPTIONS_DEFAULT;
    fsdp_loss_scaler_options so      = FSDP_LOSS_SCALER_OPTIONS_DEFAULT;
    static float             w[MOST_ELEMENTS], g[MOST_ELEMENTS];
    fsdp_loss_scaler        *scaler;
    small_model              m;
    int                      stepped = 0;

    options.unused     = FSDP_UNUSED_KEEP;
    so.allow_any_dtype = 1;
    so.initial_scale   = 4.0;
    loop_open(&m, c, options);
    fsdp_optimizer *sgd = loop_optimizer(&m, FSDP_SGD);
    assert_int_equal(FSDP_OK, fsdp_loss_scaler_create(m.model, &so, &scaler));
    copy_parameters(&m, w);
    assert_int_equal(FSDP_OK, fsdp_loss_scaler_step(scaler, sgd, &stepped));
    assert_true(stepped);
    loop_expect_parameters(&m, w, "no work");
    loop_pass(&m, UNIT_A, 0, true);
    assert_int_equal(FSDP_OK, fsdp_loss_scaler_step(scaler, sgd, &stepped));
    assert_true(stepped);
    memset(g, 0, sizeof g);
    loop_add_mean(g, UNIT_A, 0, fsdp_size(m.ctx), fsdp_size(m.ctx), true);
    LOOP_ELEMENTS(u, t, i, k)
    {
        w[k] = w[k] - g[k] * 0.25F;
    }
    loop_expect_parameters(&m, w, "one unit");
    fsdp_model_destroy(m.model);
}

static void a_loss_scaler_unscales_what_there_is(void **state)
{
    (void)state;
    loop_for_all(check_scaler);
}

/* ---- hooks ------------------------------------------------------------------------------------------------------- */

static size_t calls_of[N_UNITS];

static fsdp_status count_call(void *state, const fsdp_gradient *gradient)
{
    (void)state;
    calls_of[gradient->unit[0] - 'a']++;
    return FSDP_OK;
}

static void check_hook(const loop_case *c)
{
    fsdp_model_options  options   = FSDP_MODEL_OPTIONS_DEFAULT;
    fsdp_hook_callbacks callbacks = {.size = sizeof callbacks, .before = count_call};
    fsdp_hook          *hook;
    small_model         m;

    if (c->strategy != FSDP_NO_SHARD && c->group_size == 0) {
        return; /* has no use for one */
    }
    options.unused = FSDP_UNUSED_ZERO;
    loop_open(&m, c, options);
    fsdp_optimizer *sgd = loop_optimizer(&m, FSDP_SGD);
    assert_int_equal(FSDP_OK, fsdp_hook_custom(m.ctx, &callbacks, &hook));
    assert_int_equal(FSDP_OK, fsdp_model_set_hook(m.model, hook));
    memset(calls_of, 0, sizeof calls_of);
    loop_pass(&m, UNIT_A | UNIT_C, 0, true);
    assert_int_equal(FSDP_OK, fsdp_optimizer_step(sgd));
    assert_int_equal(1, calls_of[0]);
    assert_int_equal(0, calls_of[1]);
    assert_int_equal(1, calls_of[2]);
    fsdp_model_destroy(m.model);
    fsdp_hook_destroy(hook);
}

static void a_hook_does_not_see_units_that_were_not_used(void **state)
{
    (void)state;
    loop_for_all(check_hook);
}

/* ---- errors ------------------------------------------------------------------------------------------------------ */

static void check_error(const loop_case *c)
{
    fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;
    small_model        m;

    loop_open(&m, c, options);
    fsdp_optimizer *sgd = loop_optimizer(&m, FSDP_SGD);
    loop_pass(&m, UNIT_A | UNIT_C, 0, true);
    assert_int_equal(FSDP_ERR_STATE, fsdp_optimizer_step(sgd));
    assert_says(m.ctx, "'b'");
    assert_says(m.ctx, "fsdp_model_options.unused");
    loop_pass(&m, UNIT_B, 1, true);
    assert_int_equal(FSDP_OK, fsdp_optimizer_step(sgd));
    fsdp_model_destroy(m.model);
}

static void without_the_option_a_unit_that_was_not_used_is_named(void **state)
{
    (void)state;
    loop_for_all(check_error);
}

static fsdp_status run_step(small_model *m, fsdp_optimizer *optimizer, unsigned units, int pass)
{
    fsdp_status status = loop_forward(m, units);

    status = status == FSDP_OK ? loop_backward(m, units, pass, true) : status;
    return status == FSDP_OK ? fsdp_optimizer_step(optimizer) : status;
}

/* Rank 1 uses others than the rest; behind it, all goes on. */
static void check_disagreement(const loop_case *c)
{
    static const unsigned odd[]   = {UNIT_A | UNIT_B, UNIT_A, 0, ALL_UNITS, UNIT_B | UNIT_C};
    fsdp_model_options    options = FSDP_MODEL_OPTIONS_DEFAULT;
    static float          w[MOST_ELEMENTS], g[MOST_ELEMENTS];
    small_model           m;

    options.unused = FSDP_UNUSED_KEEP;
    loop_open(&m, c, options);
    fsdp_optimizer *sgd  = loop_optimizer(&m, FSDP_SGD);
    const int       size = fsdp_size(m.ctx);
    copy_parameters(&m, w);
    for (size_t i = 0; i < sizeof odd / sizeof odd[0] && size > 1; i++) {
        fsdp_status       status    = run_step(&m, sgd, fsdp_rank(m.ctx) == 1 ? odd[i] : UNIT_A | UNIT_C, 7);
        const bool        is_named  = status == FSDP_OK || strstr(fsdp_last_error(m.ctx), "rank") != NULL;
        const fsdp_status forgotten = fsdp_model_zero_grad(m.model);

        status = status != FSDP_OK ? status : forgotten;
        loop_expect_on_all(&m, FSDP_ERR_MISMATCH, status, fsdp_strategy_name(c->strategy));
        assert_true(is_named);
        assert_int_equal(FSDP_OK, run_step(&m, sgd, UNIT_A, (int)i));
        loop_add_mean(g, UNIT_A, (int)i, size, size, true);
        for (size_t k = 0; k < MOST_ELEMENTS; k++) {
            w[k] -= g[k];
        }
        loop_expect_parameters(&m, w, "behind it");
    }
    fsdp_model_destroy(m.model);
}

static void ranks_that_use_different_units_are_told_and_go_on(void **state)
{
    (void)state;
    loop_for_all(check_disagreement);
}

static void an_option_that_is_none_is_refused(void **state)
{
    fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;
    fsdp_context      *ctx     = loop_context();
    fsdp_model        *model;

    (void)state;
    options.unused = fsdp_rank(ctx) == fsdp_size(ctx) - 1 ? (fsdp_unused)3 : FSDP_UNUSED_ZERO;
    assert_int_equal(FSDP_ERR_ARG, fsdp_model_create(ctx, &options, &model));
    assert_says(ctx, "unused is 3");
    options.unused = fsdp_rank(ctx) == 0 ? FSDP_UNUSED_KEEP : FSDP_UNUSED_ZERO;
    if (fsdp_size(ctx) > 1) {
        assert_int_equal(FSDP_ERR_MISMATCH, fsdp_model_create(ctx, &options, &model));
    }
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(unused_parameters_keep_their_values_or_count_as_zero_gradients),
        cmocka_unit_test(a_norm_is_that_of_the_units_that_were_used),
        cmocka_unit_test(a_loss_scaler_unscales_what_there_is),
        cmocka_unit_test(a_hook_does_not_see_units_that_were_not_used),
        cmocka_unit_test(without_the_option_a_unit_that_was_not_used_is_named),
        cmocka_unit_test(ranks_that_use_different_units_are_told_and_go_on),
        cmocka_unit_test(an_option_that_is_none_is_refused),
    };

    return fsdp_test_main(argc, argv, tests, loop_open_contexts, loop_close_contexts);
}
