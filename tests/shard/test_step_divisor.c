/*
 * A gradient divisor for one step: whenever it is set, with accumulation, clipping, loss scaling and 16-bit reductions; and ranks
 * with different numbers of tokens.
 */
#include <math.h>
#include <string.h>

#include "tests/shard/loop.h"

/* ---- bits -------------------------------------------------------------------------------------------------------- */

static float w[MOST_ELEMENTS], g[MOST_ELEMENTS];

static void multiply(float factor)
{
    for (size_t k = 0; k < MOST_ELEMENTS; k++) {
        g[k] *= factor;
    }
}

static void take_away(void)
{
    for (size_t k = 0; k < MOST_ELEMENTS; k++) {
        w[k] -= g[k];
    }
}

/* Set before the first, between, during, or behind the passes of a step: the same. */
static void check_when(const loop_case *c)
{
    const int       size = fsdp_size(c->ctx);
    small_model     m;
    fsdp_optimizer *sgd;

    loop_open(&m, c, (fsdp_model_options)FSDP_MODEL_OPTIONS_DEFAULT);
    sgd = loop_optimizer(&m, FSDP_SGD);
    copy_parameters(&m, w);
    for (int when = 0; when < 4; when++) {
        for (int pass = 0; pass < 3; pass++) {
            if (when == pass) {
                assert_int_equal(FSDP_OK, fsdp_model_set_gradient_divisor(m.model, 7.0));
            }
            loop_pass(&m, ALL_UNITS, pass, true);
            loop_add_mean(g, ALL_UNITS, pass, size, size, pass == 0);
        }
        if (when == 3) {
            assert_int_equal(FSDP_OK, fsdp_model_set_gradient_divisor(m.model, 9.0));
            assert_int_equal(FSDP_OK, fsdp_model_set_gradient_divisor(m.model, 7.0)); /* the last one counts */
        }
        assert_int_equal(FSDP_OK, fsdp_optimizer_step(sgd));
        multiply((float)(size / 7.0));
        take_away();
        loop_expect_parameters(&m, w, fsdp_strategy_name(c->strategy));
    }
    loop_pass(&m, ALL_UNITS, 0, true); /* and the next step is as the options say */
    loop_add_mean(g, ALL_UNITS, 0, size, size, true);
    assert_int_equal(FSDP_OK, fsdp_optimizer_step(sgd));
    take_away();
    loop_expect_parameters(&m, w, "the options' divisor again");
    fsdp_model_destroy(m.model);
}

static void a_divisor_may_be_set_at_any_time_before_the_step(void **state)
{
    (void)state;
    loop_for_all(check_when);
}

/* What has been looked at is divided, what comes behind it is divided as it comes. */
static void check_passes_behind(const loop_case *c)
{
    const int       size   = fsdp_size(c->ctx);
    const float     factor = (float)(size / 5.0);
    static float    more[MOST_ELEMENTS];
    small_model     m;
    fsdp_optimizer *sgd;

    loop_open(&m, c, (fsdp_model_options)FSDP_MODEL_OPTIONS_DEFAULT);
    sgd = loop_optimizer(&m, FSDP_SGD);
    copy_parameters(&m, w);
    assert_int_equal(FSDP_OK, fsdp_model_set_gradient_divisor(m.model, 5.0));
    loop_pass(&m, UNIT_A | UNIT_B, 0, true);
    assert_int_equal(FSDP_OK, fsdp_clip_grad_norm(m.model, INFINITY, NULL));
    assert_int_equal(FSDP_ERR_STATE, fsdp_model_set_gradient_divisor(m.model, 6.0));
    assert_says(m.ctx, "divided by 5 already");
    assert_int_equal(FSDP_ERR_STATE, fsdp_model_sum_gradient_divisor(m.model, 6.0, NULL));
    loop_pass(&m, ALL_UNITS, 1, true);
    assert_int_equal(FSDP_OK, fsdp_optimizer_step(sgd));
    memset(g, 0, sizeof g);
    loop_add_mean(g, UNIT_A | UNIT_B, 0, size, size, true);
    loop_add_mean(more, ALL_UNITS, 1, size, size, true);
    for (size_t k = 0; k < MOST_ELEMENTS; k++) {
        const volatile float one = g[k] * factor, other = more[k] * factor;

        w[k] -= one + other;
    }
    loop_expect_parameters(&m, w, fsdp_strategy_name(c->strategy));
    fsdp_model_destroy(m.model);
}

static void passes_behind_a_norm_are_divided_as_they_come(void **state)
{
    (void)state;
    loop_for_all(check_passes_behind);
}

/* It replaces that of the options, and zero brings that back. */
static void check_options(const loop_case *c)
{
    fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;
    const int          size    = fsdp_size(c->ctx);
    small_model        m;
    double             mean, same, other;

    options.gradient_divisor = size / 4.0;
    loop_open(&m, c, options);
    loop_pass(&m, ALL_UNITS, 0, true);
    assert_int_equal(FSDP_OK, fsdp_model_set_gradient_divisor(m.model, size));
    assert_int_equal(FSDP_OK, fsdp_model_set_gradient_divisor(m.model, 0.0));
    assert_int_equal(FSDP_OK, fsdp_clip_grad_norm(m.model, INFINITY, &mean));
    assert_int_equal(FSDP_OK, fsdp_model_set_gradient_divisor(m.model, size / 4.0));
    assert_int_equal(FSDP_OK, fsdp_clip_grad_norm(m.model, INFINITY, &same));
    assert_true(same == mean);
    assert_int_equal(FSDP_OK, fsdp_model_zero_grad(m.model));
    loop_pass(&m, ALL_UNITS, 0, true);
    assert_int_equal(FSDP_OK, fsdp_model_set_gradient_divisor(m.model, size));
    assert_int_equal(FSDP_OK, fsdp_clip_grad_norm_inf(m.model, INFINITY, NULL));
    assert_int_equal(FSDP_OK, fsdp_clip_grad_norm(m.model, INFINITY, &other));
    assert_true(mean == 4.0 * other); /* powers of two: no rounding */
    fsdp_model_destroy(m.model);
}

static void it_takes_the_place_of_the_options_divisor_for_one_step(void **state)
{
    (void)state;
    loop_for_all(check_options);
}

/* Divided first, and then unscaled or limited. */
static void check_order(const loop_case *c)
{
    fsdp_model_options       options = FSDP_MODEL_OPTIONS_DEFAULT;
    fsdp_loss_scaler_options so      = FSDP_LOSS_SCALER_OPTIONS_DEFAULT;
    const int                size    = fsdp_size(c->ctx);
    fsdp_loss_scaler        *scaler;
    small_model              m;

    so.allow_any_dtype = 1;
    so.initial_scale   = 8.0;
    loop_open(&m, c, options);
    fsdp_optimizer *sgd = loop_optimizer(&m, FSDP_SGD);
    assert_int_equal(FSDP_OK, fsdp_loss_scaler_create(m.model, &so, &scaler));
    copy_parameters(&m, w);
    loop_pass(&m, ALL_UNITS, 0, true);
    loop_add_mean(g, ALL_UNITS, 0, size, size, true);
    assert_int_equal(FSDP_OK, fsdp_model_set_gradient_divisor(m.model, 3.0));
    assert_int_equal(FSDP_OK, fsdp_loss_scaler_unscale(scaler, NULL));
    multiply((float)(size / 3.0));
    multiply(0.125F);
    assert_int_equal(FSDP_OK, fsdp_scale_grad(m.model, 0.5));
    multiply(0.5F);
    assert_int_equal(FSDP_OK, fsdp_clip_grad_value(m.model, 0.1));
    for (size_t k = 0; k < MOST_ELEMENTS; k++) {
        g[k] = fminf(fmaxf(g[k], -0.1F), 0.1F);
    }
    assert_int_equal(FSDP_OK, fsdp_loss_scaler_step(scaler, sgd, NULL));
    take_away();
    loop_expect_parameters(&m, w, fsdp_strategy_name(c->strategy));
    fsdp_model_destroy(m.model);
}

static void gradients_are_divided_before_they_are_unscaled_or_limited(void **state)
{
    (void)state;
    loop_for_all(check_order);
}

/* ---- 16 bits ----------------------------------------------------------------------------------------------------- */

/* A divisor of one sample asks for sums that f16 does not have: means are reduced, and multiplied in f32. */
static void sums_beyond_the_range_of_f16_are_no_problem(void **state)
{
    fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;
    const loop_case    c       = {loop_context(), FSDP_FULL_SHARD, 0, 0};
    small_model        m;
    double             norm;

    (void)state;
    options.reduce_dtype = FSDP_F16;
    loop_open(&m, &c, options);
    for (size_t u = 0; u < N_UNITS; u++) {
        assert_int_equal(FSDP_OK, fsdp_unit_begin_backward(m.units[u]));
        for (size_t t = FIRST_TENSOR[u]; t < FIRST_TENSOR[u + 1]; t++) {
            uint16_t *gradient = fsdp_unit_grad(m.units[u], t - FIRST_TENSOR[u]);
            for (size_t i = 0; i < tensor_elements(t); i++) {
                gradient[i] = 0x7800; /* 32768 */
            }
        }
        assert_int_equal(FSDP_OK, fsdp_unit_end_backward(m.units[u]));
    }
    assert_int_equal(FSDP_OK, fsdp_model_set_gradient_divisor(m.model, 0.125));
    assert_int_equal(FSDP_OK, fsdp_clip_grad_norm(m.model, INFINITY, &norm));
    const double expected = 32768.0 * 8.0 * fsdp_size(m.ctx) * sqrt((double)all_elements());
    assert_true(fabs(norm - expected) < 1e-6 * expected);
    fsdp_model_destroy(m.model);
}

/* ---- tokens ------------------------------------------------------------------------------------------------------ */

enum { MOST_TOKENS = 40 };

/* A rank's micro-batch has its own number of tokens; every third rank has none in the second one. */
static int tokens_of(int rank, int pass)
{
    return pass == 1 && rank % 3 == 2 ? 0 : (rank * 7 + pass * 11 + 5) % MOST_TOKENS;
}

/* That of one token, which depends on the parameters. */
static double token_gradient(int rank, int pass, int token, size_t k, float value)
{
    return sin((double)(rank * 1009 + pass * 131 + token * 17) + (double)k) + 0.1 * (double)value;
}

/* The loss is the sum over tokens. */
static void compute(small_model *m, int pass)
{
    assert_int_equal(FSDP_OK, loop_forward(m, ALL_UNITS));
    size_t base[N_UNITS] = {0};
    LOOP_ELEMENTS(u, t, i, k)
    {
        base[u] = i == 0 && t == FIRST_TENSOR[u] ? k : base[u];
    }
    for (size_t u = N_UNITS; u-- > 0;) {
        assert_int_equal(FSDP_OK, fsdp_unit_begin_backward(m->units[u]));
        for (size_t t = FIRST_TENSOR[u], k = base[u]; t < FIRST_TENSOR[u + 1]; t++) {
            const float *values   = fsdp_unit_param(m->units[u], t - FIRST_TENSOR[u]);
            float       *gradient = fsdp_unit_grad(m->units[u], t - FIRST_TENSOR[u]);

            for (size_t i = 0; i < tensor_elements(t); i++, k++) {
                double sum = 0.0;
                for (int token = 0; token < tokens_of(fsdp_rank(m->ctx), pass); token++) {
                    sum += token_gradient(fsdp_rank(m->ctx), pass, token, k, values[i]);
                }
                gradient[i] += (float)sum;
            }
        }
        assert_int_equal(FSDP_OK, fsdp_unit_end_backward(m->units[u]));
    }
}

static double whole_batch(size_t k, int size)
{
    double sum = 0.0;
    int    n   = 0;

    for (int r = 0; r < size; r++) {
        for (int pass = 0; pass < 2; pass++) {
            for (int token = 0; token < tokens_of(r, pass); token++, n++) {
                sum += token_gradient(r, pass, token, k, w[k]);
            }
        }
    }
    return sum / n;
}

static void check_tokens(const loop_case *c)
{
    static float after[MOST_ELEMENTS];
    small_model  m;
    double       tokens, error = 0.0, norm = 0.0;
    int          all = 0;

    loop_open(&m, c, (fsdp_model_options)FSDP_MODEL_OPTIONS_DEFAULT);
    fsdp_optimizer *sgd = loop_optimizer(&m, FSDP_SGD);
    copy_parameters(&m, w);
    compute(&m, 0);
    compute(&m, 1);
    for (int r = 0; r < fsdp_size(m.ctx); r++) {
        all += tokens_of(r, 0) + tokens_of(r, 1);
    }
    const int mine = tokens_of(fsdp_rank(m.ctx), 0) + tokens_of(fsdp_rank(m.ctx), 1);
    assert_int_equal(FSDP_OK, fsdp_model_sum_gradient_divisor(m.model, mine, &tokens));
    assert_true(tokens == all);
    assert_int_equal(FSDP_OK, fsdp_scale_grad(m.model, 0x1p20)); /* so that a step's rounding does not hide it */
    assert_int_equal(FSDP_OK, fsdp_optimizer_step(sgd));
    copy_parameters(&m, after);
    for (size_t k = 0; k < MOST_ELEMENTS; k++) {
        const double expected = whole_batch(k, fsdp_size(m.ctx));
        const double found    = ((double)w[k] - (double)after[k]) * 0x1p-20;

        error += (found - expected) * (found - expected);
        norm += expected * expected;
    }
    assert_true(sqrt(error) <= 1e-6 * sqrt(norm));
    fsdp_model_destroy(m.model);
}

static void token_counts_that_differ_by_rank_give_the_gradient_of_the_whole_batch(void **state)
{
    (void)state;
    loop_for_all(check_tokens);
}

static void nobody_has_anything(void **state)
{
    const loop_case c = {loop_context(), FSDP_FULL_SHARD, 0, 0};
    small_model     m;
    double          sum = 1.0;

    (void)state;
    loop_open(&m, &c, (fsdp_model_options)FSDP_MODEL_OPTIONS_DEFAULT);
    assert_int_equal(FSDP_OK, fsdp_model_sum_gradient_divisor(m.model, 0.0, &sum));
    assert_true(sum == 0.0);
    fsdp_model_destroy(m.model);
}

/* ---- errors ------------------------------------------------------------------------------------------------------ */

static void bad_divisors_and_shares_are_refused(void **state)
{
    static const double bad[] = {-1.0, NAN, INFINITY};
    const loop_case     c     = {loop_context(), FSDP_HYBRID_SHARD, 0, 0};
    fsdp_model         *model;
    small_model         m;

    (void)state;
    assert_int_equal(FSDP_ERR_ARG, fsdp_model_set_gradient_divisor(NULL, 1.0));
    assert_int_equal(FSDP_ERR_ARG, fsdp_model_sum_gradient_divisor(NULL, 1.0, NULL));
    assert_int_equal(FSDP_OK, fsdp_model_create(c.ctx, NULL, &model));
    assert_int_equal(FSDP_ERR_STATE, fsdp_model_set_gradient_divisor(model, 1.0));
    assert_int_equal(FSDP_ERR_STATE, fsdp_model_sum_gradient_divisor(model, 1.0, NULL));
    fsdp_model_destroy(model);
    loop_open(&m, &c, (fsdp_model_options)FSDP_MODEL_OPTIONS_DEFAULT);
    const bool last = fsdp_rank(m.ctx) == fsdp_size(m.ctx) - 1;
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(FSDP_ERR_ARG, fsdp_model_set_gradient_divisor(m.model, bad[i]));
        assert_int_equal(FSDP_ERR_ARG, fsdp_model_sum_gradient_divisor(m.model, last ? bad[i] : 3.0, NULL));
        assert_says(m.ctx, "share is");
    }
    assert_int_equal(FSDP_OK, fsdp_unit_begin_forward(m.units[0]));
    assert_int_equal(FSDP_ERR_STATE, fsdp_model_sum_gradient_divisor(m.model, 1.0, NULL));
    assert_int_equal(FSDP_OK, fsdp_unit_end_forward(m.units[0]));
    fsdp_model_destroy(m.model);
}

/* Rank 1 has set another one than the others, or none: all are told, and nothing has changed. */
static void check_disagreement(const loop_case *c)
{
    const int   size = fsdp_size(c->ctx), rank = fsdp_rank(c->ctx);
    small_model m;

    loop_open(&m, c, (fsdp_model_options)FSDP_MODEL_OPTIONS_DEFAULT);
    fsdp_optimizer *sgd = loop_optimizer(&m, FSDP_SGD);
    copy_parameters(&m, w);
    for (int odd = 0; odd < 3 && size > 1; odd++) {
        for (int by = 0; by < 2; by++) {
            loop_pass(&m, ALL_UNITS, odd, true);
            assert_int_equal(FSDP_OK, fsdp_model_set_gradient_divisor(m.model, odd == 2 ? 0.0 : 5.0));
            if (rank == 1) {
                assert_int_equal(FSDP_OK, fsdp_model_set_gradient_divisor(m.model, odd == 0   ? 6.0
                                                                                   : odd == 1 ? 0.0
                                                                                              : 6.0));
            }
            assert_int_equal(FSDP_ERR_MISMATCH,
                             by == 0 ? fsdp_clip_grad_norm(m.model, 0.5, NULL) : fsdp_optimizer_step(sgd));
            assert_int_equal(FSDP_OK, fsdp_model_set_gradient_divisor(m.model, size));
            assert_int_equal(FSDP_OK, fsdp_optimizer_step(sgd));
            loop_add_mean(g, ALL_UNITS, odd, size, size, true);
            take_away();
            loop_expect_parameters(&m, w, fsdp_strategy_name(c->strategy));
        }
    }
    fsdp_model_destroy(m.model);
}

static void ranks_with_different_divisors_are_told_and_nothing_has_changed(void **state)
{
    (void)state;
    loop_for_all(check_disagreement);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_divisor_may_be_set_at_any_time_before_the_step),
        cmocka_unit_test(passes_behind_a_norm_are_divided_as_they_come),
        cmocka_unit_test(it_takes_the_place_of_the_options_divisor_for_one_step),
        cmocka_unit_test(gradients_are_divided_before_they_are_unscaled_or_limited),
        cmocka_unit_test(sums_beyond_the_range_of_f16_are_no_problem),
        cmocka_unit_test(token_counts_that_differ_by_rank_give_the_gradient_of_the_whole_batch),
        cmocka_unit_test(nobody_has_anything),
        cmocka_unit_test(bad_divisors_and_shares_are_refused),
        cmocka_unit_test(ranks_with_different_divisors_are_told_and_nothing_has_changed),
    };

    return fsdp_test_main(argc, argv, tests, loop_open_contexts, loop_close_contexts);
}
