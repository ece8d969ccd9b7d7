/*
 * Clipping by the infinity norm and by value, against a serial recomputation from the gradients themselves. What the
 * gradients are after it is read from what a step of plain SGD at a rate of 1 takes away.
 */
#include <math.h>
#include <string.h>

#include "fsdp/optimizer.h"
#include "shard/schedule/reduction.h"
#include "shard/state/slices.h"
#include "shard/storage/compute.h"
#include "tests/shard/small_model.h"

/* A backward pass in which every rank has the same gradient: so short numbers that their mean over ranks is exact. */
static void run_backward(small_model *m, const float *gradient)
{
    for (size_t u = 0; u < N_UNITS; u++) {
        assert_int_equal(FSDP_OK, fsdp_unit_begin_backward(m->units[u]));
        for (size_t t = FIRST_TENSOR[u]; t < FIRST_TENSOR[u + 1]; t++) {
            memcpy(fsdp_unit_grad(m->units[u], t - FIRST_TENSOR[u]), gradient, tensor_elements(t) * sizeof *gradient);
            gradient += tensor_elements(t);
        }
        assert_int_equal(FSDP_OK, fsdp_unit_end_backward(m->units[u]));
    }
}

/* Multiples of 1/64 up to 8 in magnitude. */
static void fill_gradient(float *gradient)
{
    for (size_t i = 0; i < MOST_ELEMENTS; i++) {
        gradient[i] = (float)((i * 2654435761u) % 1009) / 64.0F - 8.0F;
    }
}

static fsdp_optimizer *plain_sgd(small_model *m)
{
    fsdp_optimizer_options o;
    fsdp_optimizer        *optimizer;

    assert_int_equal(FSDP_OK, fsdp_optimizer_options_init(FSDP_SGD, &o));
    o.lr = 1.0;
    assert_int_equal(FSDP_OK, fsdp_optimizer_create(m->model, &o, &optimizer));
    return optimizer;
}

/* Takes a step and compares with a step by hand from what `expected` says the gradients are. */
static void assert_step_takes_away(small_model *m, fsdp_optimizer *optimizer, const float *expected)
{
    static float before[MOST_ELEMENTS], after[MOST_ELEMENTS];

    copy_parameters(m, before);
    assert_int_equal(FSDP_OK, fsdp_optimizer_step(optimizer));
    copy_parameters(m, after);
    for (size_t i = 0; i < MOST_ELEMENTS; i++) {
        const float value = before[i] - expected[i];

        if (memcmp(&value, &after[i], sizeof value) != 0 && !(isnan(value) && isnan(after[i]))) {
            fail_msg("element %zu: %a instead of %a", i, (double)after[i], (double)value);
        }
    }
}

static void check_norm(small_model *m)
{
    static float    gradient[MOST_ELEMENTS];
    fsdp_optimizer *optimizer = plain_sgd(m);
    double          norm      = 0.0;

    fill_gradient(gradient);
    gradient[2500] = -19.0F; /* in the last unit; its sign must not matter */
    run_backward(m, gradient);
    assert_int_equal(FSDP_OK, fsdp_clip_grad_norm_inf(m->model, (double)INFINITY, &norm));
    assert_true(norm == 19.0);
    assert_int_equal(FSDP_OK, fsdp_clip_grad_norm_inf(m->model, 20.0, NULL)); /* nothing changes */
    assert_int_equal(FSDP_OK, fsdp_clip_grad_norm_inf(m->model, 2.5, &norm));
    assert_true(norm == 19.0);
    for (size_t i = 0; i < MOST_ELEMENTS; i++) {
        gradient[i] = gradient[i] * (float)(2.5 / (19.0 + 1e-6));
    }
    assert_step_takes_away(m, optimizer, gradient);
}

static void the_infinity_norm_is_the_largest_magnitude_and_scales(void **state)
{
    (void)state;
    small_model_for_every_strategy(NULL, check_norm);
}

/* What this rank holds of it. */
static void read_gradient(const fsdpi_flat *flat, float *gradient)
{
    const size_t n = fsdpi_held_elements(flat);

    fsdpi_compute_read(flat->model, gradient, FSDP_F32, flat->gradient, FSDP_F32,
                       n < MOST_ELEMENTS ? n : MOST_ELEMENTS);
}

static void check_not_finite(small_model *m)
{
    static float gradient[MOST_ELEMENTS], kept[MOST_ELEMENTS], found[MOST_ELEMENTS];
    fsdpi_flat  *flat = m->units[0]->members[0].flat;
    double       norm = 0.0;

    fill_gradient(gradient);
    gradient[700] = INFINITY;
    run_backward(m, gradient);
    assert_int_equal(FSDP_OK, fsdpi_gradients_settle(m->model, "test"));
    read_gradient(flat, kept);
    assert_int_equal(FSDP_OK, fsdp_clip_grad_norm_inf(m->model, 1.0, &norm));
    assert_true(isinf(norm) && norm > 0);
    read_gradient(flat, found);
    assert_memory_equal(kept, found, sizeof kept);

    assert_int_equal(FSDP_OK, fsdp_model_zero_grad(m->model));
    gradient[3000] = NAN; /* beside the infinity, mostly on another rank */
    run_backward(m, gradient);
    assert_int_equal(FSDP_OK, fsdp_clip_grad_norm_inf(m->model, 1.0, &norm));
    assert_true(isnan(norm));
    read_gradient(flat, found);
    assert_memory_equal(kept, found, sizeof kept);
}

static void a_norm_that_is_not_finite_is_the_same_on_all_ranks_and_changes_nothing(void **state)
{
    (void)state;
    small_model_for_every_strategy(NULL, check_not_finite);
}

static void check_value(small_model *m)
{
    static float    gradient[MOST_ELEMENTS];
    fsdp_optimizer *optimizer = plain_sgd(m);

    fill_gradient(gradient);
    gradient[0]    = INFINITY;
    gradient[1500] = NAN;
    gradient[2148] = -INFINITY;
    run_backward(m, gradient);
    assert_int_equal(FSDP_OK, fsdp_clip_grad_value(m->model, 0.7));
    for (size_t i = 0; i < MOST_ELEMENTS; i++) {
        gradient[i] = isnan(gradient[i]) ? gradient[i] : fminf(fmaxf(gradient[i], -0.7F), 0.7F);
    }
    assert_step_takes_away(m, optimizer, gradient);
}

static void clipping_by_value_limits_each_element_and_leaves_nan(void **state)
{
    (void)state;
    small_model_for_every_strategy(NULL, check_value);
}

/* Gradients that differ from rank to rank, as they do in training: the bits must not depend on the strategy. */
static void all_strategies_come_to_the_same_bits(void **state)
{
    double   norm[FSDP_N_STRATEGIES];
    uint64_t hash[FSDP_N_STRATEGIES];

    (void)state;
    for (int strategy = 0; strategy < FSDP_N_STRATEGIES; strategy++) {
        small_model m;

        small_model_open(&m, NULL, (fsdp_strategy)strategy);
        fsdp_optimizer *optimizer = plain_sgd(&m);
        run_pass(&m, 0);
        run_pass(&m, 1);
        assert_int_equal(FSDP_OK, fsdp_clip_grad_value(m.model, 0.05));
        assert_int_equal(FSDP_OK, fsdp_clip_grad_norm_inf(m.model, 0.01, &norm[strategy]));
        assert_true(norm[strategy] == (double)0.05F);
        assert_int_equal(FSDP_OK, fsdp_clip_grad_norm_inf(m.model, 1.0, &norm[strategy]));
        assert_int_equal(FSDP_OK, fsdp_optimizer_step(optimizer));
        assert_int_equal(FSDP_OK, fsdp_model_hash(m.model, &hash[strategy]));
        small_model_close(&m);
        assert_memory_equal(&norm[0], &norm[strategy], sizeof norm[0]);
        assert_memory_equal(&hash[0], &hash[strategy], sizeof hash[0]);
    }
}

static void check_errors(small_model *m)
{
    const int    last = fsdp_test_rank() == fsdp_test_size() - 1;
    static float gradient[MOST_ELEMENTS];

    assert_int_equal(FSDP_ERR_STATE, fsdp_clip_grad_norm_inf(m->model, 1.0, NULL));
    assert_says(m->ctx, "fsdp_clip_grad_norm_inf: there are no gradients");
    assert_int_equal(FSDP_ERR_STATE, fsdp_clip_grad_value(m->model, 1.0));
    assert_says(m->ctx, "fsdp_clip_grad_value: there are no gradients");
    fill_gradient(gradient);
    run_backward(m, gradient);
    assert_int_equal(FSDP_ERR_ARG, fsdp_clip_grad_norm_inf(m->model, last ? -1.0 : 1.0, NULL));
    assert_says(m->ctx, "max_norm is -1");
    assert_int_equal(FSDP_ERR_ARG, fsdp_clip_grad_value(m->model, last ? (double)NAN : 1.0));
    assert_says(m->ctx, "the limit is");
    if (fsdp_test_size() > 1) {
        assert_int_equal(FSDP_ERR_MISMATCH, fsdp_clip_grad_norm(m->model, last ? 2.0 : 1.0, NULL));
        assert_says(m->ctx, "max_norm 2");
        assert_int_equal(FSDP_ERR_MISMATCH, fsdp_clip_grad_norm_inf(m->model, last ? 2.0 : 1.0, NULL));
        assert_int_equal(FSDP_ERR_MISMATCH, fsdp_clip_grad_value(m->model, last ? 2.0 : 1.0));
        assert_says(m->ctx, "limit 2");
    }
    assert_int_equal(FSDP_OK, fsdp_unit_begin_forward(m->units[0]));
    assert_int_equal(FSDP_ERR_STATE, fsdp_clip_grad_value(m->model, 1.0));
    assert_int_equal(FSDP_OK, fsdp_unit_end_forward(m->units[0]));
    assert_int_equal(FSDP_ERR_ARG, fsdp_clip_grad_norm_inf(NULL, 1.0, NULL));
    assert_int_equal(FSDP_ERR_ARG, fsdp_clip_grad_value(NULL, 1.0));
    assert_int_equal(FSDP_OK, fsdp_clip_grad_value(m->model, 0.0));
    for (size_t i = 0; i < MOST_ELEMENTS; i++) {
        gradient[i] = 0.0F;
    }
    assert_step_takes_away(m, plain_sgd(m), gradient);
}

static void bad_arguments_on_one_rank_fail_all_and_the_model_stays_good(void **state)
{
    (void)state;
    small_model_for_every_strategy(NULL, check_errors);
}

/* A loop that trains any model runs with one of which nothing is trained. */
static void a_frozen_model_has_a_norm_of_0(void **state)
{
    const fsdp_tensor tensor = {.name   = "w",
                                .n_dims = 1,
                                .shape  = {100},
                                .dtype  = FSDP_F32,
                                .fill   = FSDP_FILL_NORMAL,
                                .b      = 1.0,
                                .flags  = FSDP_TENSOR_FROZEN};
    fsdp_context     *ctx;
    fsdp_unit        *unit;
    small_model       m;
    double            norm = 1.0;
    uint64_t          before, after;

    (void)state;
    assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_WORLD, NULL, &ctx));
    assert_int_equal(FSDP_OK, fsdp_model_create(ctx, NULL, &m.model));
    assert_int_equal(FSDP_OK, fsdp_unit_add(m.model, "u", &tensor, 1, &unit));
    assert_int_equal(FSDP_OK, fsdp_model_commit(m.model));
    fsdp_optimizer *optimizer = plain_sgd(&m);
    assert_int_equal(FSDP_OK, fsdp_model_hash(m.model, &before));
    assert_int_equal(FSDP_OK, fsdp_unit_begin_backward(unit));
    assert_int_equal(FSDP_OK, fsdp_unit_end_backward(unit));
    assert_int_equal(FSDP_OK, fsdp_clip_grad_norm(m.model, 1.0, &norm));
    assert_true(norm == 0.0);
    norm = 1.0;
    assert_int_equal(FSDP_OK, fsdp_clip_grad_norm_inf(m.model, 1.0, &norm));
    assert_true(norm == 0.0);
    assert_int_equal(FSDP_OK, fsdp_clip_grad_value(m.model, 1.0));
    assert_int_equal(FSDP_OK, fsdp_optimizer_step(optimizer));
    assert_int_equal(FSDP_OK, fsdp_model_hash(m.model, &after));
    assert_true(before == after);
    fsdp_model_destroy(m.model);
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_infinity_norm_is_the_largest_magnitude_and_scales),
        cmocka_unit_test(a_norm_that_is_not_finite_is_the_same_on_all_ranks_and_changes_nothing),
        cmocka_unit_test(clipping_by_value_limits_each_element_and_leaves_nan),
        cmocka_unit_test(all_strategies_come_to_the_same_bits),
        cmocka_unit_test(bad_arguments_on_one_rank_fail_all_and_the_model_stays_good),
        cmocka_unit_test(a_frozen_model_has_a_norm_of_0),
    };

    return fsdp_test_main(argc, argv, tests, NULL, NULL);
}
