/*
 * The loss scaler, against its rules applied by hand and against training without one: a scale that is a power of two
 * leaves no trace in the parameters.
 */
#include <math.h>

#include "fsdp/loss_scaler.h"
#include "shard/schedule/reduction.h"
#include "shard/state/model.h"
#include "shard/storage/compute.h"
#include "tests/shard/small_model.h"

/* As run_pass(), with the gradient times `scale`; on rank `bad_rank` one element of tensor `bad_tensor` is `bad`. */
static void run_scaled_pass(small_model *m, int pass, float scale, int bad_rank, size_t bad_tensor, float bad)
{
    for (size_t u = N_UNITS; u-- > 0;) {
        assert_int_equal(FSDP_OK, fsdp_unit_begin_backward(m->units[u]));
        for (size_t t = FIRST_TENSOR[u]; t < FIRST_TENSOR[u + 1]; t++) {
            const float *w = fsdp_unit_param(m->units[u], t - FIRST_TENSOR[u]);
            float       *g = fsdp_unit_grad(m->units[u], t - FIRST_TENSOR[u]);

            for (size_t i = 0; i < tensor_elements(t); i++) {
                g[i] = scale * gradient_element(fsdp_test_rank(), pass, t, i, w[i]);
            }
            if (fsdp_test_rank() == bad_rank && t == bad_tensor) {
                g[tensor_elements(t) / 2] = bad;
            }
        }
        assert_int_equal(FSDP_OK, fsdp_unit_end_backward(m->units[u]));
    }
}

static void run_clean_pass(small_model *m, int pass, const fsdp_loss_scaler *scaler)
{
    run_scaled_pass(m, pass, (float)fsdp_loss_scaler_scale(scaler), -1, 0, 0.0F);
}

static fsdp_optimizer *make_optimizer(small_model *m, fsdp_optimizer_kind kind)
{
    fsdp_optimizer_options o;
    fsdp_optimizer        *optimizer;

    assert_int_equal(FSDP_OK, fsdp_optimizer_options_init(kind, &o));
    assert_int_equal(FSDP_OK, fsdp_optimizer_create(m->model, &o, &optimizer));
    return optimizer;
}

static fsdp_loss_scaler_options default_options(void)
{
    fsdp_loss_scaler_options options = FSDP_LOSS_SCALER_OPTIONS_DEFAULT;

    options.allow_any_dtype = 1;
    return options;
}

static fsdp_loss_scaler *make_scaler(small_model *m, fsdp_loss_scaler_options options)
{
    fsdp_loss_scaler *scaler;

    assert_int_equal(FSDP_OK, fsdp_loss_scaler_create(m->model, &options, &scaler));
    return scaler;
}

static void assert_state(const fsdp_loss_scaler *scaler, double scale, size_t clean, size_t skipped)
{
    fsdp_loss_scaler_state state;

    assert_int_equal(FSDP_OK, fsdp_loss_scaler_get_state(scaler, &state));
    assert_true(state.scale == scale && scale == fsdp_loss_scaler_scale(scaler));
    assert_int_equal(clean, state.clean_steps);
    assert_int_equal(skipped, state.skipped_steps);
}

static uint64_t hash_of(small_model *m)
{
    uint64_t hash;

    assert_int_equal(FSDP_OK, fsdp_model_hash(m->model, &hash));
    return hash;
}

/* Trains with accumulation and clipping; with a scaler, or as it would be without one. */
static uint64_t train(fsdp_strategy strategy, int with_scaler)
{
    small_model       m;
    fsdp_loss_scaler *scaler = NULL;

    small_model_open(&m, NULL, strategy);
    fsdp_optimizer *optimizer = make_optimizer(&m, FSDP_ADAMW);
    if (with_scaler) {
        scaler = make_scaler(&m, default_options());
    }
    for (int step = 0; step < 4; step++) {
        int stepped = 0, finite = 0;

        run_scaled_pass(&m, 2 * step, with_scaler ? 65536.0F : 1.0F, -1, 0, 0.0F);
        run_scaled_pass(&m, 2 * step + 1, with_scaler ? 65536.0F : 1.0F, -1, 0, 0.0F);
        if (with_scaler && step % 2 == 0) { /* else step() unscales */
            assert_int_equal(FSDP_OK, fsdp_loss_scaler_unscale(scaler, &finite));
            assert_int_equal(1, finite);
        }
        if (step % 2 == 0) {
            assert_int_equal(FSDP_OK, fsdp_clip_grad_norm(m.model, 0.5, NULL));
        }
        assert_int_equal(FSDP_OK, with_scaler ? fsdp_loss_scaler_step(scaler, optimizer, &stepped)
                                              : fsdp_optimizer_step(optimizer));
        assert_int_equal(with_scaler, stepped);
    }
    assert_int_equal(4, fsdp_optimizer_steps(optimizer));
    if (with_scaler) {
        assert_state(scaler, 65536.0, 4, 0);
    }
    const uint64_t hash = hash_of(&m);
    small_model_close(&m);
    return hash;
}

static void clean_steps_give_the_bits_of_training_without_a_scaler(void **state)
{
    const uint64_t expected = train(FSDP_FULL_SHARD, 0);

    (void)state;
    for (int strategy = 0; strategy < FSDP_N_STRATEGIES; strategy++) {
        assert_true(expected == train((fsdp_strategy)strategy, 1));
    }
}

/* One element of one rank, at every rank in turn and in every unit: no rank steps, and nothing of it stays. */
static void an_overflow_on_any_rank_makes_all_skip_and_halves_the_scale(void **state)
{
    static const float bad[] = {INFINITY, -INFINITY, NAN};

    (void)state;
    for (int strategy = 0; strategy < FSDP_N_STRATEGIES; strategy++) {
        small_model m;
        double      scale   = 65536.0;
        size_t      skipped = 0;

        small_model_open(&m, NULL, (fsdp_strategy)strategy);
        fsdp_optimizer   *optimizer = make_optimizer(&m, FSDP_ADAMW);
        fsdp_loss_scaler *scaler    = make_scaler(&m, default_options());
        const uint64_t    before    = hash_of(&m);
        for (int rank = 0; rank < fsdp_test_size(); rank++) {
            int stepped = 1, finite = 1;

            run_scaled_pass(&m, 0, 1.0F, rank, (size_t)rank % N_TENSORS, bad[rank % 3]);
            if (rank % 2 == 0) {
                assert_int_equal(FSDP_OK, fsdp_loss_scaler_unscale(scaler, &finite));
                assert_int_equal(0, finite);
            }
            assert_int_equal(FSDP_OK, fsdp_loss_scaler_step(scaler, optimizer, &stepped));
            assert_int_equal(0, stepped);
            scale /= 2;
            assert_state(scaler, scale, 0, ++skipped);
            assert_int_equal(FSDP_ERR_STATE, fsdp_optimizer_step(optimizer)); /* gradients are forgotten */
        }
        assert_true(before == hash_of(&m));
        assert_int_equal(0, fsdp_optimizer_steps(optimizer));
        run_clean_pass(&m, 1, scaler);
        assert_int_equal(FSDP_OK, fsdp_loss_scaler_step(scaler, optimizer, NULL));
        assert_state(scaler, scale, 1, skipped);
        assert_true(before != hash_of(&m));
        small_model_close(&m);
    }
}

static float first_gradient(const fsdpi_flat *flat)
{
    float first;

    fsdpi_compute_read(flat->model, &first, FSDP_F32, flat->gradient, FSDP_F32, 1);
    return first;
}

static void unscaling_divides_once_and_leaves_what_is_not_finite(void **state)
{
    small_model m;
    int         finite = 0;
    double      scaled, unscaled;

    (void)state;
    small_model_open(&m, NULL, FSDP_FULL_SHARD);
    fsdp_optimizer   *optimizer = make_optimizer(&m, FSDP_SGD);
    fsdp_loss_scaler *scaler    = make_scaler(&m, default_options());
    run_clean_pass(&m, 0, scaler);
    assert_int_equal(FSDP_OK, fsdp_clip_grad_norm(m.model, (double)INFINITY, &scaled));
    assert_int_equal(FSDP_OK, fsdp_loss_scaler_unscale(scaler, &finite));
    assert_int_equal(1, finite);
    assert_int_equal(FSDP_OK, fsdp_clip_grad_norm(m.model, (double)INFINITY, &unscaled));
    assert_true(scaled == unscaled * 65536.0);
    assert_int_equal(FSDP_ERR_STATE, fsdp_loss_scaler_unscale(scaler, &finite));
    assert_says(m.ctx, "have been unscaled since the last step");
    assert_int_equal(FSDP_OK, fsdp_clip_grad_norm(m.model, (double)INFINITY, &unscaled));
    assert_true(scaled == unscaled * 65536.0);
    assert_int_equal(FSDP_OK, fsdp_loss_scaler_step(scaler, optimizer, NULL));

    run_scaled_pass(&m, 1, 1.0F, 0, 1, INFINITY);
    assert_int_equal(FSDP_OK, fsdp_clip_grad_norm_inf(m.model, 1.0, &scaled));
    assert_true(isinf(scaled));
    const float first = first_gradient(m.units[2]->members[0].flat);
    assert_int_equal(FSDP_OK, fsdp_loss_scaler_unscale(scaler, &finite));
    assert_int_equal(0, finite);
    const float after = first_gradient(m.units[2]->members[0].flat);
    assert_memory_equal(&first, &after, sizeof first);
    small_model_close(&m);
}

/* The largest finite gradients are finite, although their squares are far beyond f32. */
static void the_largest_finite_gradient_is_no_overflow(void **state)
{
    static float largest[MOST_ELEMENTS];
    small_model  m;
    int          finite = 0;

    (void)state;
    small_model_open(&m, NULL, FSDP_NO_SHARD);
    fsdp_loss_scaler *scaler = make_scaler(&m, default_options());
    fsdpi_flat       *flat   = m.units[0]->members[0].flat;
    run_clean_pass(&m, 0, scaler);
    assert_int_equal(FSDP_OK, fsdpi_gradients_settle(m.model, "test"));
    assert_true(flat->layout.elements <= MOST_ELEMENTS);
    for (size_t i = 0; i < flat->layout.elements; i++) {
        largest[i] = i % 2 == 0 ? 0x1.fffffep127F : -0x1.fffffep127F;
    }
    fsdpi_compute_write(m.model, flat->gradient, FSDP_F32, largest, FSDP_F32, flat->layout.elements);
    assert_int_equal(FSDP_OK, fsdp_loss_scaler_unscale(scaler, &finite));
    assert_int_equal(1, finite);
    assert_true(first_gradient(flat) == 0x1.fffffep111F);
    small_model_close(&m);
}

/* 60 steps, of which some overflow, beside the rule applied by hand. */
static void the_scale_follows_the_rule_between_floor_and_ceiling(void **state)
{
    fsdp_loss_scaler_options options = default_options();
    small_model              m;
    double                   scale = 16.0;
    size_t                   clean = 0, skipped = 0;

    (void)state;
    options.initial_scale   = 16.0;
    options.growth_interval = 3;
    options.min_scale       = 2.0;
    options.max_scale       = 64.0;
    small_model_open(&m, NULL, FSDP_FULL_SHARD);
    fsdp_optimizer   *optimizer = make_optimizer(&m, FSDP_SGD);
    fsdp_loss_scaler *scaler    = make_scaler(&m, options);
    int               at_floor = 0, at_ceiling = 0;
    for (int step = 0; step < 60; step++) {
        const int overflows = step % 13 == 5 || (step >= 30 && step < 38);
        int       stepped   = -1;

        run_scaled_pass(&m, step, (float)scale, overflows ? step % fsdp_test_size() : -1, 0, INFINITY);
        assert_int_equal(FSDP_OK, fsdp_loss_scaler_step(scaler, optimizer, &stepped));
        assert_int_equal(!overflows, stepped);
        if (overflows) {
            scale = scale == 2.0 ? 2.0 : scale / 2;
            clean = 0;
            skipped++;
        } else if (++clean == 3) {
            scale = scale == 64.0 ? 64.0 : scale * 2;
            clean = 0;
        }
        assert_state(scaler, scale, clean, skipped);
        at_floor += overflows && scale == 2.0;
        at_ceiling += !overflows && scale == 64.0 && clean == 0;
    }
    assert_true(at_floor > 1 && at_ceiling > 1);
    assert_int_equal(60 - skipped, fsdp_optimizer_steps(optimizer));
    small_model_close(&m);
}

static void the_defaults_double_after_2000_clean_steps(void **state)
{
    small_model            m;
    fsdp_loss_scaler_state kept = {.scale = 65536.0, .clean_steps = 1998, .skipped_steps = 7};

    (void)state;
    small_model_open(&m, NULL, FSDP_FULL_SHARD);
    fsdp_optimizer   *optimizer = make_optimizer(&m, FSDP_SGD);
    fsdp_loss_scaler *scaler    = make_scaler(&m, default_options());
    assert_state(scaler, 65536.0, 0, 0);
    assert_int_equal(FSDP_OK, fsdp_loss_scaler_set_state(scaler, &kept));
    run_clean_pass(&m, 0, scaler);
    assert_int_equal(FSDP_OK, fsdp_loss_scaler_step(scaler, optimizer, NULL));
    assert_state(scaler, 65536.0, 1999, 7);
    run_clean_pass(&m, 1, scaler);
    assert_int_equal(FSDP_OK, fsdp_loss_scaler_step(scaler, optimizer, NULL));
    assert_state(scaler, 131072.0, 0, 7);
    small_model_close(&m);
}

static void a_state_that_was_kept_must_fit_and_be_the_same_on_all_ranks(void **state)
{
    small_model            m;
    fsdp_loss_scaler_state kept = {.scale = 0.5};

    (void)state;
    small_model_open(&m, NULL, FSDP_FULL_SHARD);
    fsdp_optimizer   *optimizer = make_optimizer(&m, FSDP_SGD);
    fsdp_loss_scaler *scaler    = make_scaler(&m, default_options());
    assert_int_equal(FSDP_ERR_ARG, fsdp_loss_scaler_set_state(scaler, &kept));
    assert_says(m.ctx, "a scale of 0.5; this loss scaler's lie from 1 to");
    kept.scale = (double)NAN;
    assert_int_equal(FSDP_ERR_ARG, fsdp_loss_scaler_set_state(scaler, &kept));
    assert_state(scaler, 65536.0, 0, 0);
    kept.scale = fsdp_test_rank() == fsdp_test_size() - 1 ? 32.0 : 1024.0;
    assert_int_equal(FSDP_OK, fsdp_loss_scaler_set_state(scaler, &kept));
    run_clean_pass(&m, 0, scaler);
    assert_int_equal(FSDP_ERR_STATE, fsdp_loss_scaler_set_state(scaler, &kept));
    assert_says(m.ctx, "gradients were computed under a scale of");
    if (fsdp_test_size() > 1) {
        assert_int_equal(FSDP_ERR_MISMATCH, fsdp_loss_scaler_step(scaler, optimizer, NULL));
        assert_says(m.ctx, "scale 32,");
        assert_says(m.ctx, "scale 1024,");
    }
    assert_int_equal(FSDP_OK, fsdp_model_zero_grad(m.model));
    kept.scale = 1024.0;
    assert_int_equal(FSDP_OK, fsdp_loss_scaler_set_state(scaler, &kept));
    run_clean_pass(&m, 1, scaler);
    assert_int_equal(FSDP_OK, fsdp_loss_scaler_step(scaler, optimizer, NULL));
    small_model_close(&m);
}

static void calls_out_of_order_are_refused_and_the_model_stays_good(void **state)
{
    small_model m;

    (void)state;
    small_model_open(&m, NULL, FSDP_FULL_SHARD);
    fsdp_optimizer   *optimizer = make_optimizer(&m, FSDP_SGD);
    fsdp_loss_scaler *scaler    = make_scaler(&m, default_options());
    assert_int_equal(FSDP_ERR_STATE, fsdp_loss_scaler_unscale(scaler, NULL));
    assert_says(m.ctx, "fsdp_loss_scaler_unscale: there are no gradients");
    assert_int_equal(FSDP_ERR_STATE, fsdp_loss_scaler_step(scaler, optimizer, NULL));
    run_clean_pass(&m, 0, scaler);
    assert_int_equal(FSDP_OK, fsdp_unit_begin_forward(m.units[0]));
    assert_int_equal(FSDP_ERR_STATE, fsdp_loss_scaler_step(scaler, optimizer, NULL));
    assert_int_equal(FSDP_OK, fsdp_unit_end_forward(m.units[0]));
    assert_int_equal(FSDP_ERR_ARG, fsdp_loss_scaler_step(scaler, fsdp_test_rank() == 0 ? NULL : optimizer, NULL));
    assert_says(m.ctx, "the optimizer is NULL");

    assert_int_equal(FSDP_OK, fsdp_loss_scaler_unscale(scaler, NULL));
    run_clean_pass(&m, 1, scaler); /* adds scaled gradients to unscaled ones */
    assert_int_equal(FSDP_ERR_STATE, fsdp_loss_scaler_step(scaler, optimizer, NULL));
    assert_says(m.ctx, "were unscaled before the last backward pass");
    assert_int_equal(FSDP_ERR_STATE, fsdp_loss_scaler_unscale(scaler, NULL));
    assert_int_equal(FSDP_OK, fsdp_model_zero_grad(m.model));

    run_clean_pass(&m, 2, scaler);
    assert_int_equal(FSDP_OK, fsdp_loss_scaler_unscale(scaler, NULL));
    assert_int_equal(FSDP_OK, fsdp_model_zero_grad(m.model));
    run_clean_pass(&m, 3, scaler); /* new gradients, which are scaled again */
    assert_int_equal(FSDP_OK, fsdp_loss_scaler_unscale(scaler, NULL));
    assert_int_equal(FSDP_OK, fsdp_loss_scaler_step(scaler, optimizer, NULL));
    assert_state(scaler, 65536.0, 1, 0);
    small_model_close(&m);
}

/* Whatever the optimizer refuses, the step can be repeated and does not unscale twice. */
static void a_step_that_the_optimizer_refuses_can_be_repeated(void **state)
{
    small_model m;
    float       expected[MOST_ELEMENTS], found[MOST_ELEMENTS];

    (void)state;
    for (int refused = 0; refused <= 1; refused++) {
        small_model_open(&m, NULL, FSDP_FULL_SHARD);
        fsdp_optimizer   *optimizer = make_optimizer(&m, FSDP_SGD);
        fsdp_loss_scaler *scaler    = make_scaler(&m, default_options());
        run_clean_pass(&m, 0, scaler);
        if (refused && fsdp_test_size() > 1) {
            assert_int_equal(FSDP_OK, fsdp_optimizer_set_lr(optimizer, fsdp_test_rank() == 0 ? 0.5 : 0.01));
            assert_int_equal(FSDP_ERR_MISMATCH, fsdp_loss_scaler_step(scaler, optimizer, NULL));
            assert_state(scaler, 65536.0, 0, 0);
        }
        assert_int_equal(FSDP_OK, fsdp_optimizer_set_lr(optimizer, 0.01));
        assert_int_equal(FSDP_OK, fsdp_loss_scaler_step(scaler, optimizer, NULL));
        copy_parameters(&m, refused ? found : expected);
        small_model_close(&m);
    }
    assert_memory_equal(expected, found, sizeof expected);
}

static void check_refused(small_model *m, fsdp_loss_scaler_options options, fsdp_status status, const char *words)
{
    fsdp_loss_scaler *scaler;

    assert_int_equal(status, fsdp_loss_scaler_create(m->model, &options, &scaler));
    assert_says(m->ctx, words);
}

static void options_out_of_range_are_named(void **state)
{
    const fsdp_loss_scaler_options good = default_options();
    fsdp_loss_scaler_options       o;
    small_model                    m;
    fsdp_loss_scaler              *scaler, *second;

    (void)state;
    small_model_build(&m, MPI_COMM_WORLD, NULL, NULL);
    check_refused(&m, good, FSDP_ERR_STATE, "not committed");
    assert_int_equal(FSDP_OK, fsdp_model_commit(m.model));
    o = good, o.allow_any_dtype = 0;
    check_refused(&m, o, FSDP_ERR_UNSUPPORTED, "the model's lowest precision is f32");
    o = good, o.initial_scale = 0.5;
    check_refused(&m, o, FSDP_ERR_ARG, "initial_scale is 0.5; it must be from min_scale");
    o = good, o.min_scale = 0.0;
    check_refused(&m, o, FSDP_ERR_ARG, "min_scale is 0");
    o = good, o.max_scale = (double)INFINITY;
    check_refused(&m, o, FSDP_ERR_ARG, "max_scale is inf");
    o = good, o.growth_factor = 1.0;
    check_refused(&m, o, FSDP_ERR_ARG, "growth_factor is 1; it must be above 1");
    o = good, o.backoff_factor = fsdp_test_rank() == fsdp_test_size() - 1 ? 1.0 : 0.5;
    check_refused(&m, o, FSDP_ERR_ARG, "backoff_factor is 1");
    o = good, o.growth_interval = 0;
    check_refused(&m, o, FSDP_ERR_ARG, "growth_interval is 0");
    if (fsdp_test_size() > 1) {
        o = good, o.initial_scale = fsdp_test_rank() == 1 ? 4.0 : 8.0;
        check_refused(&m, o, FSDP_ERR_MISMATCH, "scale 4 in");
    }
    assert_int_equal(FSDP_ERR_UNSUPPORTED, fsdp_loss_scaler_create(m.model, NULL, &scaler)); /* the defaults */
    assert_int_equal(FSDP_ERR_ARG, fsdp_loss_scaler_create(m.model, &good, NULL));
    assert_int_equal(FSDP_ERR_ARG, fsdp_loss_scaler_create(NULL, &good, &scaler));
    assert_int_equal(FSDP_OK, fsdp_loss_scaler_create(m.model, &good, &scaler));
    assert_int_equal(FSDP_ERR_STATE, fsdp_loss_scaler_create(m.model, &good, &second));
    assert_says(m.ctx, "the model has a loss scaler");
    fsdp_loss_scaler_destroy(scaler);
    assert_int_equal(FSDP_OK, fsdp_loss_scaler_create(m.model, &good, &scaler)); /* released with the model */
    small_model_close(&m);
}

static void null_is_named(void **state)
{
    fsdp_loss_scaler_state kept = {0};

    (void)state;
    assert_true(fsdp_loss_scaler_scale(NULL) == 0.0);
    assert_int_equal(FSDP_ERR_ARG, fsdp_loss_scaler_unscale(NULL, NULL));
    assert_int_equal(FSDP_ERR_ARG, fsdp_loss_scaler_step(NULL, NULL, NULL));
    assert_int_equal(FSDP_ERR_ARG, fsdp_loss_scaler_get_state(NULL, &kept));
    assert_int_equal(FSDP_ERR_ARG, fsdp_loss_scaler_set_state(NULL, &kept));
    fsdp_loss_scaler_destroy(NULL);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(clean_steps_give_the_bits_of_training_without_a_scaler),
        cmocka_unit_test(an_overflow_on_any_rank_makes_all_skip_and_halves_the_scale),
        cmocka_unit_test(unscaling_divides_once_and_leaves_what_is_not_finite),
        cmocka_unit_test(the_largest_finite_gradient_is_no_overflow),
        cmocka_unit_test(the_scale_follows_the_rule_between_floor_and_ceiling),
        cmocka_unit_test(the_defaults_double_after_2000_clean_steps),
        cmocka_unit_test(a_state_that_was_kept_must_fit_and_be_the_same_on_all_ranks),
        cmocka_unit_test(calls_out_of_order_are_refused_and_the_model_stays_good),
        cmocka_unit_test(a_step_that_the_optimizer_refuses_can_be_repeated),
        cmocka_unit_test(options_out_of_range_are_named),
        cmocka_unit_test(null_is_named),
    };

    return fsdp_test_main(argc, argv, tests, NULL, NULL);
}
