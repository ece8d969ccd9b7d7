/*
 * FSDP_SYNC_GROUP: gradients that are reduced within the group and wait there for the last micro-batch. Sums are exact here, so
 * what comes out is the whole sum, rounded once.
 */
#include <math.h>
#include <string.h>

#include "tests/shard/loop.h"

static float w[MOST_ELEMENTS], g[MOST_ELEMENTS];

/* The sum over all ranks of passes `begin` up to `end`, over the number of ranks; added to `g`, for some units. */
static void add_whole_sum(unsigned units, int begin, int end, int size)
{
    LOOP_ELEMENTS(u, t, i, k)
    {
        double sum = 0.0;

        for (int pass = begin; pass < end && (units >> u & 1u) != 0; pass++) {
            for (int r = 0; r < size; r++) {
                sum += (double)loop_gradient(r, pass, t, i);
            }
        }
        g[k] += (float)sum / (float)size;
    }
}

static void step_and_compare(small_model *m, fsdp_optimizer *sgd, const char *what)
{
    assert_int_equal(FSDP_OK, fsdp_optimizer_step(sgd));
    for (size_t k = 0; k < MOST_ELEMENTS; k++) {
        w[k] -= g[k];
    }
    loop_expect_parameters(m, w, what);
    memset(g, 0, sizeof g);
}

static void passes(small_model *m, int sync, unsigned units, int begin, int end)
{
    assert_int_equal(FSDP_OK, fsdp_model_set_sync(m->model, sync));
    for (int pass = begin; pass < end; pass++) {
        loop_pass(m, units, pass, true);
    }
}

/* ---- bits -------------------------------------------------------------------------------------------------------- */

static void check_sums(const loop_case *c)
{
    fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;
    const int          size    = fsdp_size(c->ctx);
    small_model        m;

    options.local_gradients = 1;
    loop_open(&m, c, options);
    fsdp_optimizer *sgd = loop_optimizer(&m, FSDP_SGD);
    copy_parameters(&m, w);
    memset(g, 0, sizeof g);

    passes(&m, FSDP_SYNC_GROUP, ALL_UNITS, 0, 3);
    passes(&m, FSDP_SYNC_ALL, ALL_UNITS, 3, 4);
    add_whole_sum(ALL_UNITS, 0, 4, size);
    step_and_compare(&m, sgd, "three in the group");

    passes(&m, FSDP_SYNC_NONE, ALL_UNITS, 0, 1); /* with others that stay on the rank */
    passes(&m, FSDP_SYNC_GROUP, ALL_UNITS, 1, 2);
    passes(&m, FSDP_SYNC_NONE, UNIT_B | UNIT_C, 2, 3);
    passes(&m, FSDP_SYNC_ALL, ALL_UNITS, 3, 4);
    LOOP_ELEMENTS(u, t, i, k)
    {
        double sum = 0.0;
        for (int pass = 0; pass < 4; pass++) {
            for (int r = 0; r < size && (pass != 2 || u != 0); r++) {
                sum += (double)loop_gradient(r, pass, t, i);
            }
        }
        g[k] = (float)sum / (float)size;
    }
    step_and_compare(&m, sgd, "with passes without communication");

    passes(&m, FSDP_SYNC_GROUP, UNIT_A, 0, 2); /* a unit at a time */
    passes(&m, FSDP_SYNC_ALL, UNIT_B, 0, 1);
    passes(&m, FSDP_SYNC_ALL, UNIT_A | UNIT_C, 2, 3);
    add_whole_sum(UNIT_A, 0, 3, size);
    add_whole_sum(UNIT_B, 0, 1, size);
    add_whole_sum(UNIT_C, 2, 3, size);
    step_and_compare(&m, sgd, "a unit at a time");
    fsdp_model_destroy(m.model);
}

static void passes_within_the_group_add_up_and_are_reduced_by_the_last(void **state)
{
    (void)state;
    loop_for_groups(check_sums);
}

/* Where there are no replicas, it is a pass like any other. */
static void check_without(const loop_case *c)
{
    const int   size = fsdp_size(c->ctx);
    small_model m;

    if (c->group_size > 0) {
        return;
    }
    loop_open(&m, c, (fsdp_model_options)FSDP_MODEL_OPTIONS_DEFAULT);
    fsdp_optimizer *sgd = loop_optimizer(&m, FSDP_SGD);
    copy_parameters(&m, w);
    passes(&m, FSDP_SYNC_ALL, ALL_UNITS, 0, 1);
    passes(&m, FSDP_SYNC_GROUP, ALL_UNITS, 1, 2);
    loop_add_mean(g, ALL_UNITS, 0, size, size, true);
    loop_add_mean(g, ALL_UNITS, 1, size, size, false);
    step_and_compare(&m, sgd, fsdp_strategy_name(c->strategy));
    fsdp_model_destroy(m.model);
}

static void without_replicas_it_is_as_ever(void **state)
{
    (void)state;
    loop_for_all(check_without);
}

/* Rounded once, behind the sum over passes: gradients of 1 in bf16, of which 256 and one more would be 256. */
static void check_bf16(const loop_case *c)
{
    fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;
    const int          passes  = 300 / fsdp_size(c->ctx);
    small_model        m;
    double             norm;

    options.reduce_dtype = FSDP_BF16;
    loop_open(&m, c, options);
    for (int pass = 0; pass < passes; pass++) {
        assert_int_equal(FSDP_OK, fsdp_model_set_sync(m.model, pass + 1 < passes ? FSDP_SYNC_GROUP : FSDP_SYNC_ALL));
        assert_int_equal(FSDP_OK, fsdp_unit_begin_backward(m.units[1]));
        ((uint16_t *)fsdp_unit_grad(m.units[1], 0))[0] = 0x3f80;
        assert_int_equal(FSDP_OK, fsdp_unit_end_backward(m.units[1]));
    }
    assert_int_equal(FSDP_OK, fsdp_clip_grad_norm(m.model, INFINITY, &norm));
    const double sum = passes, least = sum * (1.0 - 1.0 / 128), most = sum * (1.0 + 1.0 / 128);
    assert_true(norm >= least && norm <= most);
    fsdp_model_destroy(m.model);
}

static void sums_of_passes_are_not_rounded_to_16_bits(void **state)
{
    (void)state;
    loop_for_groups(check_bf16);
}

/* ---- what else looks at them ------------------------------------------------------------------------------------- */

static size_t n_calls;

static fsdp_status count_call(void *state, const fsdp_gradient *gradient)
{
    (void)state;
    (void)gradient;
    n_calls++;
    return FSDP_OK;
}

static void check_hook(const loop_case *c)
{
    fsdp_hook_callbacks callbacks = {.size = sizeof callbacks, .after = count_call};
    const int           size      = fsdp_size(c->ctx);
    fsdp_hook          *hook;
    small_model         m;

    loop_open(&m, c, (fsdp_model_options)FSDP_MODEL_OPTIONS_DEFAULT);
    fsdp_optimizer *sgd = loop_optimizer(&m, FSDP_SGD);
    assert_int_equal(FSDP_OK, fsdp_hook_custom(m.ctx, &callbacks, &hook));
    assert_int_equal(FSDP_OK, fsdp_model_set_hook(m.model, hook));
    n_calls = 0;
    copy_parameters(&m, w);
    passes(&m, FSDP_SYNC_GROUP, ALL_UNITS, 0, 2);
    passes(&m, FSDP_SYNC_ALL, ALL_UNITS, 2, 3);
    memset(g, 0, sizeof g);
    LOOP_ELEMENTS(u, t, i, k)
    {
        const int n   = size / c->group_size;
        float     all = 0.0F;
        for (int at = 0; at < n; at++) {
            float sum = 0.0F;
            for (int r = at * c->group_size; r < (at + 1) * c->group_size; r++) {
                for (int pass = 0; pass < 3; pass++) {
                    sum += loop_gradient(r, pass, t, i);
                }
            }
            all += sum / (float)c->group_size; /* a hook sees the mean of a group */
        }
        g[k] = all / (float)n;
    }
    step_and_compare(&m, sgd, "with a hook");
    assert_int_equal(N_UNITS, n_calls);
    fsdp_model_destroy(m.model);
    fsdp_hook_destroy(hook);
}

static void a_hook_sees_the_sum_of_passes_once(void **state)
{
    (void)state;
    loop_for_groups(check_hook);
}

static void check_not_lost(const loop_case *c)
{
    fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;
    const int          size    = fsdp_size(c->ctx);
    small_model        m;

    options.unused = FSDP_UNUSED_KEEP; /* forgives nothing here */
    loop_open(&m, c, options);
    fsdp_optimizer *sgd = loop_optimizer(&m, FSDP_SGD);
    copy_parameters(&m, w);
    memset(g, 0, sizeof g);
    passes(&m, FSDP_SYNC_GROUP, ALL_UNITS, 0, 1);
    passes(&m, FSDP_SYNC_ALL, UNIT_A | UNIT_C, 1, 2);
    assert_int_equal(FSDP_ERR_STATE, fsdp_optimizer_step(sgd));
    assert_says(m.ctx, "unit 'b' has gradients that were reduced within the group only");
    assert_int_equal(FSDP_ERR_STATE, fsdp_clip_grad_norm(m.model, 1.0, NULL));
    passes(&m, FSDP_SYNC_ALL, UNIT_B, 1, 2);
    add_whole_sum(ALL_UNITS, 0, 2, size);
    step_and_compare(&m, sgd, "behind the error");
    passes(&m, FSDP_SYNC_GROUP, ALL_UNITS, 0, 1);
    assert_int_equal(FSDP_OK, fsdp_model_zero_grad(m.model));
    passes(&m, FSDP_SYNC_ALL, ALL_UNITS, 1, 2);
    add_whole_sum(ALL_UNITS, 1, 2, size);
    step_and_compare(&m, sgd, "what was cleared is gone");
    fsdp_model_destroy(m.model);
}

static void gradients_of_the_group_alone_are_not_lost_silently(void **state)
{
    (void)state;
    loop_for_groups(check_not_lost);
}

/* ---- errors ------------------------------------------------------------------------------------------------------ */

static void check_order(const loop_case *c)
{
    const int   size = fsdp_size(c->ctx);
    small_model m;

    loop_open(&m, c, (fsdp_model_options)FSDP_MODEL_OPTIONS_DEFAULT);
    fsdp_optimizer *sgd = loop_optimizer(&m, FSDP_SGD);
    copy_parameters(&m, w);
    memset(g, 0, sizeof g);
    passes(&m, FSDP_SYNC_ALL, ALL_UNITS, 0, 1);
    assert_int_equal(FSDP_OK, fsdp_model_set_sync(m.model, FSDP_SYNC_GROUP));
    assert_int_equal(FSDP_OK, loop_forward(&m, ALL_UNITS));
    loop_expect_on_all(&m, FSDP_ERR_STATE, loop_backward(&m, ALL_UNITS, 1, true), "over all ranks before");
    assert_int_equal(FSDP_OK, fsdp_model_zero_grad(m.model));
    passes(&m, FSDP_SYNC_ALL, ALL_UNITS, 2, 3);
    add_whole_sum(ALL_UNITS, 2, 3, size);
    step_and_compare(&m, sgd, "behind the error");
    fsdp_model_destroy(m.model);
}

static void a_pass_within_the_group_behind_one_over_all_ranks_is_an_error(void **state)
{
    (void)state;
    loop_for_groups(check_order);
}

/* Rank 1 reduces over all ranks where the others do not, and the other way round. */
static void check_disagreement(const loop_case *c)
{
    const int   size = fsdp_size(c->ctx);
    small_model m;

    loop_open(&m, c, (fsdp_model_options)FSDP_MODEL_OPTIONS_DEFAULT);
    fsdp_optimizer *sgd = loop_optimizer(&m, FSDP_SGD);
    copy_parameters(&m, w);
    memset(g, 0, sizeof g);
    for (int odd = 0; odd < 2; odd++) {
        const bool  group  = (fsdp_rank(m.ctx) == 1) == (odd == 0);
        fsdp_status status = fsdp_model_set_sync(m.model, group ? FSDP_SYNC_GROUP : FSDP_SYNC_ALL);

        status = status == FSDP_OK ? loop_forward(&m, ALL_UNITS) : status;
        status = status == FSDP_OK ? loop_backward(&m, ALL_UNITS, 0, true) : status;
        (void)fsdp_model_set_sync(m.model, FSDP_SYNC_ALL); /* fails where a pass is open */
        status                      = status == FSDP_OK ? loop_backward(&m, ALL_UNITS, 1, true) : status;
        status                      = status == FSDP_OK ? fsdp_optimizer_step(sgd) : status;
        const fsdp_status forgotten = fsdp_model_zero_grad(m.model);
        loop_expect_on_all(&m, FSDP_ERR_MISMATCH, status != FSDP_OK ? status : forgotten, "ranks disagree");
        passes(&m, FSDP_SYNC_ALL, ALL_UNITS, 2, 3);
        add_whole_sum(ALL_UNITS, 2, 3, size);
        step_and_compare(&m, sgd, "behind it");
    }
    fsdp_model_destroy(m.model);
}

static void ranks_that_reduce_differently_far_are_told(void **state)
{
    (void)state;
    loop_for_groups(check_disagreement);
}

static void a_level_that_is_none_is_refused(void **state)
{
    const loop_case c = {loop_context(), FSDP_FULL_SHARD, 0, 0};
    small_model     m;

    (void)state;
    assert_int_equal(FSDP_ERR_ARG, fsdp_model_set_sync(NULL, FSDP_SYNC_ALL));
    small_model_create(&m, c.ctx, NULL);
    assert_int_equal(FSDP_ERR_STATE, fsdp_model_set_sync(m.model, FSDP_SYNC_ALL));
    assert_int_equal(FSDP_OK, fsdp_model_commit(m.model));
    assert_int_equal(FSDP_ERR_ARG, fsdp_model_set_sync(m.model, 3));
    assert_int_equal(FSDP_ERR_ARG, fsdp_model_set_sync(m.model, -1));
    assert_int_equal(FSDP_ERR_STATE, fsdp_model_set_sync(m.model, FSDP_SYNC_NONE));
    assert_says(m.ctx, "local_gradients");
    assert_int_equal(FSDP_OK, fsdp_unit_begin_forward(m.units[0]));
    assert_int_equal(FSDP_ERR_STATE, fsdp_model_set_sync(m.model, FSDP_SYNC_GROUP));
    assert_int_equal(FSDP_OK, fsdp_unit_end_forward(m.units[0]));
    assert_int_equal(FSDP_OK, fsdp_model_set_sync(m.model, FSDP_SYNC_GROUP));
    fsdp_model_destroy(m.model);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(passes_within_the_group_add_up_and_are_reduced_by_the_last),
        cmocka_unit_test(without_replicas_it_is_as_ever),
        cmocka_unit_test(sums_of_passes_are_not_rounded_to_16_bits),
        cmocka_unit_test(a_hook_sees_the_sum_of_passes_once),
        cmocka_unit_test(gradients_of_the_group_alone_are_not_lost_silently),
        cmocka_unit_test(a_pass_within_the_group_behind_one_over_all_ranks_is_an_error),
        cmocka_unit_test(ranks_that_reduce_differently_far_are_told),
        cmocka_unit_test(a_level_that_is_none_is_refused),
    };

    return fsdp_test_main(argc, argv, tests, loop_open_contexts, loop_close_contexts);
}
