/* What gradients are divided by, whether their sums overflow, and gradients that have not been summed. */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "fsdp/hook.h"
#include "fsdp/optimizer.h"
#include "tests/shard/small_model.h"

static fsdp_model_options options_of(fsdp_strategy strategy)
{
    fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;

    options.strategy = strategy;
    return options;
}

static void open_model(small_model *m, fsdp_context *ctx, const fsdp_model_options *options)
{
    small_model_create(m, ctx, options);
    assert_int_equal(FSDP_OK, fsdp_model_commit(m->model));
}

/* Of the gradients, which are left as they are. */
static double norm_of(small_model *m)
{
    double norm;

    assert_int_equal(FSDP_OK, fsdp_clip_grad_norm(m->model, 1e300, &norm));
    return norm;
}

/* After `passes` backward passes between two steps. */
static double norm_with_divisor(fsdp_context *ctx, fsdp_strategy strategy, double divisor, int passes)
{
    fsdp_model_options options = options_of(strategy);
    small_model        m;

    options.gradient_divisor = divisor;
    open_model(&m, ctx, &options);
    for (int pass = 0; pass < passes; pass++) {
        run_pass(&m, pass);
    }
    const double norm = norm_of(&m);
    fsdp_model_destroy(m.model);
    return norm;
}

static void a_divisor_takes_the_place_of_the_number_of_ranks(void **state)
{
    fsdp_context *ctx  = *state;
    const double  size = fsdp_size(ctx);

    for (int strategy = 0; strategy < FSDP_N_STRATEGIES; strategy++) {
        for (int passes = 1; passes <= 2; passes++) {
            const double mean  = norm_with_divisor(ctx, (fsdp_strategy)strategy, 0.0, passes);
            const double same  = norm_with_divisor(ctx, (fsdp_strategy)strategy, size, passes);
            const double eight = norm_with_divisor(ctx, (fsdp_strategy)strategy, size / 8.0, passes);

            assert_true(mean > 0.0 && same == mean);
            assert_true(eight == 8.0 * mean); /* a power of two: no rounding */
        }
    }
}

static void a_divisor_that_is_none_is_refused(void **state)
{
    static const double bad[] = {-1.0, NAN, INFINITY};
    fsdp_context       *ctx   = *state;
    const bool          last  = fsdp_rank(ctx) == fsdp_size(ctx) - 1;

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        fsdp_model_options options = options_of(FSDP_FULL_SHARD);
        fsdp_model        *model;

        options.gradient_divisor = last ? bad[i] : 2.0;
        assert_int_equal(FSDP_ERR_ARG, fsdp_model_create(ctx, &options, &model));
        assert_says(ctx, "gradient_divisor is");
    }
}

/* Gradients in f16 of which no two can be added. */
static void means_in_f16_do_not_overflow_on_the_way(void **state)
{
    fsdp_context *ctx = *state;

    for (int group = 1; group <= fsdp_size(ctx); group++) {
        fsdp_model_options options = options_of(FSDP_HYBRID_SHARD);
        small_model        m;

        if (fsdp_size(ctx) % group != 0) {
            continue;
        }
        options.group_size   = group;
        options.reduce_dtype = FSDP_F16;
        open_model(&m, ctx, &options);
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
        const double expected = 32768.0 * sqrt((double)all_elements());
        assert_true(fabs(norm_of(&m) - expected) < 1e-6 * expected);
        fsdp_model_destroy(m.model);
    }
}

static void gradients_that_only_one_rank_has_are_not_lost_silently(void **state)
{
    fsdp_context *ctx = *state;

    for (int strategy = 0; strategy < FSDP_N_STRATEGIES; strategy++) {
        fsdp_model_options     options = options_of((fsdp_strategy)strategy);
        fsdp_optimizer_options sgd;
        fsdp_optimizer        *optimizer;
        small_model            m;
        double                 norm;

        options.local_gradients = 1;
        open_model(&m, ctx, &options);
        assert_int_equal(FSDP_OK, fsdp_optimizer_options_init(FSDP_SGD, &sgd));
        assert_int_equal(FSDP_OK, fsdp_optimizer_create(m.model, &sgd, &optimizer));
        run_pass(&m, 0);
        assert_int_equal(FSDP_OK, fsdp_model_set_sync(m.model, 0));
        run_pass(&m, 1);
        assert_int_equal(FSDP_ERR_STATE, fsdp_optimizer_step(optimizer));
        assert_says(ctx, "has gradients that only this rank has");
        assert_int_equal(FSDP_ERR_STATE, fsdp_clip_grad_norm(m.model, 1.0, &norm));
        assert_int_equal(FSDP_OK, fsdp_model_set_sync(m.model, 1));
        run_pass(&m, 2);
        assert_int_equal(FSDP_OK, fsdp_optimizer_step(optimizer));
        fsdp_model_destroy(m.model);
    }
}

static void hooks_that_differ_between_ranks_are_told(void **state)
{
    fsdp_context            *ctx     = *state;
    const fsdp_model_options options = options_of(FSDP_NO_SHARD);
    fsdp_hook               *bf16, *f16;
    small_model              m;

    open_model(&m, ctx, &options);
    assert_int_equal(FSDP_OK, fsdp_hook_half(ctx, FSDP_BF16, &bf16));
    assert_int_equal(FSDP_OK, fsdp_hook_half(ctx, FSDP_F16, &f16));
    if (fsdp_size(ctx) > 1) {
        assert_int_equal(FSDP_ERR_MISMATCH, fsdp_model_set_hook(m.model, fsdp_rank(ctx) == 0 ? f16 : bf16));
        assert_says(ctx, "fsdp_model_set_hook");
    }
    assert_int_equal(FSDP_OK, fsdp_model_set_hook(m.model, bf16));
    run_pass(&m, 0);
    assert_true(norm_of(&m) > 0.0);
    fsdp_model_destroy(m.model);
    fsdp_hook_destroy(bf16);
    fsdp_hook_destroy(f16);
}

static int open_context(void **state)
{
    static fsdp_context *ctx;
    fsdp_config          config;

    fsdp_config_init(&config);
    config.log_level = FSDP_LOG_OFF;
    if (fsdp_init(MPI_COMM_WORLD, &config, &ctx) != FSDP_OK) {
        return -1;
    }
    *state = ctx;
    return 0;
}

static int close_context(void **state)
{
    return fsdp_finalize(*state) == FSDP_OK ? 0 : -1;
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_divisor_takes_the_place_of_the_number_of_ranks),
        cmocka_unit_test(a_divisor_that_is_none_is_refused),
        cmocka_unit_test(means_in_f16_do_not_overflow_on_the_way),
        cmocka_unit_test(gradients_that_only_one_rank_has_are_not_lost_silently),
        cmocka_unit_test(hooks_that_differ_between_ranks_are_told),
    };

    return fsdp_test_main(argc, argv, tests, open_context, close_context);
}
