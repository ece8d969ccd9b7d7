/*
 * Parameters that stay gathered between the passes of a step: how often they are gathered, what the budget says, and that no bit
 * of a result changes.
 */
#include <string.h>

#include "lib/context/context.h"
#include "shard/state/model.h"
#include "shard/state/strategy.h"
#include "tests/shard/loop.h"

enum { N_STEPS = 3, N_PASSES = 3 };

/* Whether the test was built for models on a GPU, of which only some have fixed addresses. */
#ifdef FSDP_TESTS_MODEL_ON_DEVICE_H
enum { ON_DEVICE = 1 };
#else
enum { ON_DEVICE = 0 };
#endif

static fsdp_model_options kept(int units)
{
    fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;

    options.kept_units = units;
    return options;
}

/* ---- bits -------------------------------------------------------------------------------------------------------- */

/* Steps whose micro-batches also come in other orders, with nested passes and recomputation. */
static void awkward_pass(small_model *m, int pass)
{
    loop_pass(m, ALL_UNITS, pass, true);
    assert_int_equal(FSDP_OK, loop_forward(m, UNIT_C));
    assert_int_equal(FSDP_OK, loop_forward(m, UNIT_A | UNIT_B));
    assert_int_equal(FSDP_OK, fsdp_unit_begin_backward(m->units[2]));
    assert_int_equal(FSDP_OK, loop_forward(m, UNIT_A));
    assert_int_equal(FSDP_OK, fsdp_unit_end_backward(m->units[2]));
    assert_int_equal(FSDP_OK, loop_backward(m, UNIT_A | UNIT_B, pass, true));
}

static uint64_t train(const loop_case *c, const fsdp_model_options *options)
{
    small_model m;
    uint64_t    hash;

    loop_open(&m, c, *options);
    fsdp_optimizer *adam = loop_optimizer(&m, FSDP_ADAMW);
    for (int step = 0; step < N_STEPS; step++) {
        for (int pass = 0; pass < N_PASSES; pass++) {
            if (options->kept_units > 0) {
                assert_int_equal(FSDP_OK, fsdp_model_keep_gathered(m.model, pass != 1 || step != 1));
            }
            awkward_pass(&m, step * N_PASSES + pass);
        }
        assert_int_equal(FSDP_OK, fsdp_optimizer_step(adam));
    }
    assert_int_equal(FSDP_OK, fsdp_model_hash(m.model, &hash));
    fsdp_model_destroy(m.model);
    return hash;
}

static void check_bits(const loop_case *c)
{
    for (int types = 0; types < 2; types++) {
        fsdp_model_options options = kept(0);

        options.param_dtype = types == 0 ? FSDP_F32 : FSDP_BF16;
        const uint64_t hash = train(c, &options);
        for (int units = 1; units <= N_UNITS; units++) {
            options.kept_units      = units;
            options.fixed_addresses = !ON_DEVICE && units % 2 != 0;
            assert_true(train(c, &options) == hash);
        }
    }
}

static void no_bit_of_a_result_changes(void **state)
{
    (void)state;
    loop_for_all(check_bits);
}

static void quantised_parameters_stay_too(void **state)
{
    const loop_case    c       = {loop_context(), FSDP_FULL_SHARD, 0, 0};
    fsdp_model_options options = kept(0);

    (void)state;
    options.quantized_params = 1;
    const uint64_t hash      = train(&c, &options);
    options.kept_units       = N_UNITS;
    assert_true(train(&c, &options) == hash);
}

/* ---- gathers ----------------------------------------------------------------------------------------------------- */

static size_t operations(const small_model *m)
{
    return (size_t)m->model->shards->queue.sequence;
}

/* With prefetching, forward passes issue nothing but gathers. */
static void check_gathers(const loop_case *c)
{
    small_model m;

    if (c->strategy != FSDP_FULL_SHARD && c->strategy != FSDP_HYBRID_SHARD) {
        return;
    }
    loop_open(&m, c, kept(N_UNITS));
    fsdp_optimizer *sgd = loop_optimizer(&m, FSDP_SGD);
    for (int step = 0; step < 2 && c->prefetch > 0; step++) {
        loop_pass(&m, ALL_UNITS, 0, true);
        const size_t before = operations(&m);
        assert_int_equal(FSDP_OK, loop_forward(&m, ALL_UNITS));
        assert_int_equal(FSDP_OK, loop_forward(&m, UNIT_B));
        assert_int_equal(before, operations(&m)); /* all of them had stayed */
        assert_int_equal(FSDP_OK, fsdp_model_keep_gathered(m.model, 0));
        assert_int_equal(FSDP_OK, loop_forward(&m, ALL_UNITS));
        assert_int_equal(FSDP_OK, loop_forward(&m, ALL_UNITS));
        assert_true(operations(&m) > before); /* they went with their passes */
        assert_int_equal(FSDP_OK, fsdp_model_keep_gathered(m.model, 1));
        assert_int_equal(FSDP_OK, fsdp_optimizer_step(sgd));
        for (size_t u = 0; u < N_UNITS; u++) {
            assert_null(m.units[u]->slot); /* and with the step */
        }
    }
    fsdp_model_destroy(m.model);
}

static void a_unit_that_has_stayed_is_not_gathered_again(void **state)
{
    (void)state;
    loop_for_all(check_gathers);
}

/* One place more than without: one unit stays, and what is open or comes next still has its own. */
static void check_one(const loop_case *c)
{
    small_model m;
    size_t      stayed = 0;

    if (c->strategy != FSDP_FULL_SHARD || c->prefetch > 0) {
        return;
    }
    loop_open(&m, c, kept(1));
    loop_pass(&m, ALL_UNITS, 0, true);
    for (size_t u = 0; u < N_UNITS; u++) {
        stayed += m.units[u]->slot != NULL;
    }
    assert_int_equal(1, stayed);
    fsdp_model_destroy(m.model);
}

static void no_more_stay_than_there_is_room_for(void **state)
{
    (void)state;
    loop_for_all(check_one);
}

/* ---- budgets ----------------------------------------------------------------------------------------------------- */

static void check_budget(const loop_case *c)
{
    fsdp_budget without, budget;
    fsdp_memory before, memory;

    for (int units = 0; units <= N_UNITS + 1; units++) {
        fsdp_model_options options = kept(units);
        small_model        m;

        options.recorded_passes = (size_t)units * 100;
        assert_int_equal(FSDP_OK, fsdp_memory_usage(c->ctx, &before));
        loop_open(&m, c, options);
        (void)loop_optimizer(&m, FSDP_ADAMW);
        assert_int_equal(FSDP_OK, fsdp_model_budget(m.model, c->strategy, 0, FSDP_ADAMW, &budget));
        assert_int_equal(FSDP_OK, fsdp_memory_usage(c->ctx, &memory));
        const size_t gathered = memory.current[FSDP_MEMORY_GATHERED] - before.current[FSDP_MEMORY_GATHERED];
        assert_int_equal(gathered, budget.bytes[FSDP_MEMORY_GATHERED]);
        without = units == 0 ? budget : without;
        if (fsdpi_keeps_views(c->strategy) || c->strategy == FSDP_NO_SHARD) {
            assert_int_equal(without.bytes[FSDP_MEMORY_GATHERED], gathered);
        }
        fsdp_model_destroy(m.model);
    }
}

static void their_places_are_in_the_budget(void **state)
{
    (void)state;
    loop_for_all(check_budget);
}

/* ---- errors ------------------------------------------------------------------------------------------------------ */

/* Rank 1 has let go of what the others keep, and the other way round. */
static void check_disagreement(const loop_case *c)
{
    const int       size = fsdp_size(c->ctx);
    static float    w[MOST_ELEMENTS], g[MOST_ELEMENTS];
    small_model     m;
    fsdp_optimizer *sgd;

    if (size == 1 || (c->strategy != FSDP_FULL_SHARD && c->strategy != FSDP_HYBRID_SHARD) || c->group_size == 1) {
        return;
    }
    loop_open(&m, c, kept(N_UNITS));
    sgd = loop_optimizer(&m, FSDP_SGD);
    copy_parameters(&m, w);
    for (int odd = 0; odd < 2; odd++) {
        const bool keeps = (fsdp_rank(m.ctx) == 1) == (odd == 0);

        assert_int_equal(FSDP_OK, fsdp_model_zero_grad(m.model));
        assert_int_equal(FSDP_OK, fsdp_model_keep_gathered(m.model, keeps));
        fsdp_status status = loop_forward(&m, ALL_UNITS);
        for (int pass = 0; pass < 3 && status == FSDP_OK; pass++) {
            status = loop_forward(&m, ALL_UNITS);
            status = status == FSDP_OK ? loop_backward(&m, ALL_UNITS, pass, true) : status;
        }
        status                      = status == FSDP_OK ? fsdp_optimizer_step(sgd) : status;
        const fsdp_status forgotten = fsdp_model_zero_grad(m.model);
        loop_expect_on_all(&m, FSDP_ERR_MISMATCH, status != FSDP_OK ? status : forgotten,
                           fsdp_strategy_name(c->strategy));
        assert_int_equal(FSDP_OK, fsdp_model_keep_gathered(m.model, 1));
        loop_pass(&m, ALL_UNITS, 9, true);
        assert_int_equal(FSDP_OK, fsdp_optimizer_step(sgd));
        loop_add_mean(g, ALL_UNITS, 9, size, size, true);
        for (size_t k = 0; k < MOST_ELEMENTS; k++) {
            w[k] -= g[k];
        }
        loop_expect_parameters(&m, w, "behind it");
    }
    fsdp_model_destroy(m.model);
}

static void ranks_that_keep_different_units_are_told(void **state)
{
    (void)state;
    loop_for_all(check_disagreement);
}

static void bad_calls_are_refused(void **state)
{
    const loop_case    c = {loop_context(), FSDP_FULL_SHARD, 0, 0};
    fsdp_model_options options;
    fsdp_model        *model;
    small_model        m;

    (void)state;
    options = kept(fsdp_rank(c.ctx) == fsdp_size(c.ctx) - 1 ? -1 : 1);
    assert_int_equal(FSDP_ERR_ARG, fsdp_model_create(c.ctx, &options, &model));
    assert_says(c.ctx, "kept_units is -1");
    assert_int_equal(FSDP_ERR_ARG, fsdp_model_keep_gathered(NULL, 1));
    small_model_create(&m, c.ctx, NULL);
    assert_int_equal(FSDP_ERR_STATE, fsdp_model_keep_gathered(m.model, 0));
    assert_int_equal(FSDP_OK, fsdp_model_commit(m.model));
    assert_int_equal(FSDP_OK, fsdp_model_keep_gathered(m.model, 0));
    assert_int_equal(FSDP_ERR_STATE, fsdp_model_keep_gathered(m.model, 1));
    assert_says(m.ctx, "kept_units");
    assert_int_equal(FSDP_OK, fsdp_unit_begin_forward(m.units[0]));
    assert_int_equal(FSDP_ERR_STATE, fsdp_model_keep_gathered(m.model, 0));
    assert_int_equal(FSDP_OK, fsdp_unit_end_forward(m.units[0]));
    fsdp_model_destroy(m.model);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_bit_of_a_result_changes),
        cmocka_unit_test(quantised_parameters_stay_too),
        cmocka_unit_test(a_unit_that_has_stayed_is_not_gathered_again),
        cmocka_unit_test(no_more_stay_than_there_is_room_for),
        cmocka_unit_test(their_places_are_in_the_budget),
        cmocka_unit_test(ranks_that_keep_different_units_are_told),
        cmocka_unit_test(bad_calls_are_refused),
    };

    return fsdp_test_main(argc, argv, tests, loop_open_contexts, loop_close_contexts);
}
