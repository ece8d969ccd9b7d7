/*
 * Training held to a serial recomputation: one process that knows every rank's gradient, averages them in rank order and
 * applies the update as its paper writes it, element by element, in plain C. Everything must be equal to the bit.
 */
#include <math.h>
#include <string.h>

#include "fsdp/optimizer.h"
#include "tests/shard/serial_training.h"

enum { STEPS = 6 };

static void for_every_strategy(const fsdp_optimizer_options *o)
{
    for (int strategy = 0; strategy < FSDP_N_STRATEGIES; strategy++) {
        train_and_compare((fsdp_strategy)strategy, o, STEPS, 1);
        train_and_compare((fsdp_strategy)strategy, o, STEPS, 3);
    }
}

static void adamw_equals_the_serial_recomputation(void **state)
{
    fsdp_optimizer_options o;

    (void)state;
    assert_int_equal(FSDP_OK, fsdp_optimizer_options_init(FSDP_ADAMW, &o));
    o.lr           = 0.01;
    o.weight_decay = 0.1;
    for_every_strategy(&o);
}

static void plain_sgd_equals_the_serial_recomputation(void **state)
{
    fsdp_optimizer_options o;

    (void)state;
    assert_int_equal(FSDP_OK, fsdp_optimizer_options_init(FSDP_SGD, &o));
    o.weight_decay = 0.01;
    for_every_strategy(&o);
}

static void momentum_and_nesterov_equal_the_serial_recomputation(void **state)
{
    fsdp_optimizer_options o;

    (void)state;
    assert_int_equal(FSDP_OK, fsdp_optimizer_options_init(FSDP_SGD_MOMENTUM, &o));
    for (o.nesterov = 0; o.nesterov <= 1; o.nesterov++) {
        for_every_strategy(&o);
    }
}

/* The norm of the mean gradient, in double, serially. */
static double serial_norm(const serial_model *s)
{
    double sum = 0.0;

    for (size_t k = 0; k < all_elements(); k++) {
        sum += (double)s->g[k] * (double)s->g[k];
    }
    return sqrt(sum);
}

static void clipping_scales_to_the_norm_and_is_the_same_for_every_strategy(void **state)
{
    static serial_model s;
    double              norm[FSDP_N_STRATEGIES], clipped[FSDP_N_STRATEGIES];

    (void)state;
    for (int strategy = 0; strategy < FSDP_N_STRATEGIES; strategy++) {
        small_model m;
        small_model_open(&m, NULL, (fsdp_strategy)strategy);
        note_nodes(m.ctx);
        s = (serial_model){.fresh = 1};
        copy_parameters(&m, s.w);
        run_pass(&m, 0);
        serial_pass(&s, m.ctx, 0);
        assert_int_equal(FSDP_OK, fsdp_clip_grad_norm(m.model, 0.5, &norm[strategy]));
        assert_int_equal(FSDP_OK, fsdp_clip_grad_norm(m.model, (double)INFINITY, &clipped[strategy]));
        assert_true(fabs(norm[strategy] - serial_norm(&s)) <= 1e-12 * serial_norm(&s));
        assert_true(fabs(clipped[strategy] - 0.5) < 1e-5);
        assert_int_equal(FSDP_OK, fsdp_clip_grad_norm(m.model, 0.5, NULL));
        small_model_close(&m);
    }
    assert_memory_equal(&norm[0], &norm[1], sizeof norm[0]);
    assert_memory_equal(&clipped[0], &clipped[1], sizeof clipped[0]);
}

static void gradients_that_were_forgotten_do_not_count(void **state)
{
    small_model            m;
    fsdp_optimizer        *optimizer;
    fsdp_optimizer_options o;
    uint64_t               before, after;

    (void)state;
    small_model_open(&m, NULL, FSDP_FULL_SHARD);
    assert_int_equal(FSDP_OK, fsdp_optimizer_options_init(FSDP_SGD, &o));
    assert_int_equal(FSDP_OK, fsdp_optimizer_create(m.model, &o, &optimizer));
    run_pass(&m, 0);
    assert_int_equal(FSDP_OK, fsdp_model_zero_grad(m.model));
    assert_int_equal(FSDP_OK, fsdp_model_hash(m.model, &before));
    assert_int_equal(FSDP_ERR_STATE, fsdp_optimizer_step(optimizer));
    assert_non_null(strstr(fsdp_last_error(m.ctx), "unit 'a' has no gradient"));
    assert_int_equal(FSDP_OK, fsdp_model_hash(m.model, &after));
    assert_true(before == after);
    small_model_close(&m);
}

static void the_rate_can_change_between_steps(void **state)
{
    small_model            m;
    fsdp_optimizer        *optimizer;
    fsdp_optimizer_options o;
    uint64_t               before, after;

    (void)state;
    small_model_open(&m, NULL, FSDP_NO_SHARD);
    assert_int_equal(FSDP_OK, fsdp_optimizer_options_init(FSDP_ADAMW, &o));
    assert_int_equal(FSDP_OK, fsdp_optimizer_create(m.model, &o, &optimizer));
    assert_int_equal(FSDP_OK, fsdp_model_hash(m.model, &before));
    assert_int_equal(FSDP_OK, fsdp_optimizer_set_lr(optimizer, 0.0));
    run_pass(&m, 0);
    assert_int_equal(FSDP_OK, fsdp_optimizer_step(optimizer));
    assert_int_equal(FSDP_OK, fsdp_model_hash(m.model, &after));
    assert_true(before == after); /* a rate of 0 moves nothing */
    assert_int_equal(FSDP_ERR_ARG, fsdp_optimizer_set_lr(optimizer, -1.0));
    assert_int_equal(FSDP_ERR_ARG, fsdp_optimizer_set_lr(optimizer, (double)NAN));

    if (fsdp_size(m.ctx) > 1) { /* ranks must not drift apart */
        run_pass(&m, 1);
        assert_int_equal(FSDP_OK, fsdp_optimizer_set_lr(optimizer, fsdp_rank(m.ctx) == 1 ? 0.5 : 0.25));
        assert_int_equal(FSDP_ERR_MISMATCH, fsdp_optimizer_step(optimizer));
        assert_non_null(strstr(fsdp_last_error(m.ctx), "lr 0.25"));
        assert_non_null(strstr(fsdp_last_error(m.ctx), "lr 0.5"));
    }
    small_model_close(&m);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(adamw_equals_the_serial_recomputation),
        cmocka_unit_test(plain_sgd_equals_the_serial_recomputation),
        cmocka_unit_test(momentum_and_nesterov_equal_the_serial_recomputation),
        cmocka_unit_test(clipping_scales_to_the_norm_and_is_the_same_for_every_strategy),
        cmocka_unit_test(gradients_that_were_forgotten_do_not_count),
        cmocka_unit_test(the_rate_can_change_between_steps),
    };

    return fsdp_test_main(argc, argv, tests, NULL, NULL);
}
