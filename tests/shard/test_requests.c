/*
 * Budget against what is held, to the byte, after many steps of many units: with as many operations under way as strategies and
 * prefetching allow, in an order that changes.
 */
#include <stdio.h>

#include "fsdp/optimizer.h"
#include "shard/state/model.h"
#include "tests/support/mpi_test.h"

enum { UNITS = 48, ELEMENTS = 40, STEPS = 30, MOST_PREFETCH = 3 };

typedef struct wide_model {
    fsdp_context   *ctx;
    fsdp_model     *model;
    fsdp_optimizer *optimizer;
    fsdp_unit      *units[UNITS];
} wide_model;

static void open_context(wide_model *m, int prefetch)
{
    fsdp_config config;

    fsdp_config_init(&config);
    config.prefetch = prefetch;
    assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_WORLD, &config, &m->ctx));
}

/* Each unit is of two flat parameters, one of which is gathered in another type. */
static void open_model(wide_model *m, const fsdp_model_options *options)
{
    fsdp_optimizer_options o;

    assert_int_equal(FSDP_OK, fsdp_model_create(m->ctx, options, &m->model));
    for (int u = 0; u < UNITS; u++) {
        char        name[16], weight[32], norm[32];
        fsdp_tensor tensors[] = {{.name = weight, .n_dims = 1, .shape = {ELEMENTS}, .dtype = FSDP_F32},
                                 {.name = norm, .n_dims = 1, .shape = {4}, .dtype = FSDP_BF16}};

        (void)snprintf(name, sizeof name, "u%d", u);
        (void)snprintf(weight, sizeof weight, "u%d.weight", u);
        (void)snprintf(norm, sizeof norm, "u%d.norm", u);
        assert_int_equal(FSDP_OK, fsdp_unit_add(m->model, name, tensors, 2, &m->units[u]));
    }
    assert_int_equal(FSDP_OK, fsdp_model_commit(m->model));
    assert_int_equal(FSDP_OK, fsdp_optimizer_options_init(FSDP_SGD, &o));
    assert_int_equal(FSDP_OK, fsdp_optimizer_create(m->model, &o, &m->optimizer));
}

/* In every other step the units come the other way round, so that what was gathered ahead is not what comes. */
static void train(wide_model *m, int steps)
{
    for (int step = 0; step < steps; step++) {
        for (int i = 0; i < UNITS; i++) {
            fsdp_unit *unit = m->units[step % 2 == 0 ? i : UNITS - 1 - i];

            assert_int_equal(FSDP_OK, fsdp_unit_begin_forward(unit));
            assert_int_equal(FSDP_OK, fsdp_unit_end_forward(unit));
        }
        for (int i = 0; i < UNITS; i++) {
            fsdp_unit *unit = m->units[step % 3 == 0 ? i : UNITS - 1 - i];

            assert_int_equal(FSDP_OK, fsdp_unit_begin_backward(unit));
            assert_int_equal(FSDP_OK, fsdp_unit_end_backward(unit));
        }
        assert_int_equal(FSDP_OK, fsdp_optimizer_step(m->optimizer));
    }
}

static void expect_held(const wide_model *m, const fsdp_model_options *options, int prefetch)
{
    fsdp_budget budget;
    fsdp_memory held;

    assert_int_equal(FSDP_OK, fsdp_model_budget(m->model, options->strategy, 0, FSDP_SGD, &budget));
    assert_int_equal(FSDP_OK, fsdp_memory_usage(m->ctx, &held));
    for (int line = 0; line < FSDP_N_MEMORY_KINDS; line++) {
        if (budget.bytes[line] != held.current[line]) {
            fail_msg("%s%s, prefetch %d: %s: %zu bytes in the budget, %zu held", fsdp_strategy_name(options->strategy),
                     options->quantized_params ? ", quantised" : "", prefetch, fsdp_memory_name((fsdp_memory_kind)line),
                     budget.bytes[line], held.current[line]);
        }
    }
    if (budget.total != held.peak_total) {
        fail_msg("%s, prefetch %d: %zu bytes in the budget, %zu held at a time", fsdp_strategy_name(options->strategy),
                 prefetch, budget.total, held.peak_total);
    }
}

static void check(const fsdp_model_options *options, int prefetch, int steps)
{
    wide_model m;

    open_context(&m, prefetch);
    open_model(&m, options);
    train(&m, steps);
    expect_held(&m, options, prefetch);
    fsdp_model_destroy(m.model);
    assert_int_equal(FSDP_OK, fsdp_finalize(m.ctx));
}

static void the_budget_is_what_is_held_after_many_steps(void **state)
{
    (void)state;
    for (int strategy = 0; strategy < FSDP_N_STRATEGIES; strategy++) {
        for (int prefetch = 0; prefetch <= MOST_PREFETCH; prefetch++) {
            fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;

            options.strategy   = (fsdp_strategy)strategy;
            options.group_size = fsdp_test_size() % 2 == 0 ? fsdp_test_size() / 2 : 1;
            check(&options, prefetch, STEPS);
        }
    }
}

static void so_it_is_with_quantised_gathers(void **state)
{
    fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;

    (void)state;
    options.quantized_params = 1;
    for (int prefetch = 0; prefetch <= MOST_PREFETCH; prefetch++) {
        check(&options, prefetch, 10);
    }
}

/* Whichever model goes first: its requests lie among those of the others. */
static void models_give_back_what_they_have_reserved(void **state)
{
    fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;
    wide_model         a, b;
    fsdp_memory        before, after;

    (void)state;
    options.strategy = FSDP_SHARD_OPTIM;
    open_context(&a, 1);
    assert_int_equal(FSDP_OK, fsdp_memory_usage(a.ctx, &before));
    for (int round = 0; round < 2; round++) {
        b.ctx = a.ctx;
        open_model(&a, &options);
        open_model(&b, &options);
        train(&a, 2);
        train(&b, 1);
        fsdp_model_destroy(round == 0 ? a.model : b.model);
        train(round == 0 ? &b : &a, 1);
        fsdp_model_destroy(round == 0 ? b.model : a.model);
        assert_int_equal(FSDP_OK, fsdp_memory_usage(a.ctx, &after));
        assert_int_equal(before.current_total, after.current_total);
    }
    assert_int_equal(FSDP_OK, fsdp_finalize(a.ctx));
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_budget_is_what_is_held_after_many_steps),
        cmocka_unit_test(so_it_is_with_quantised_gathers),
        cmocka_unit_test(models_give_back_what_they_have_reserved),
    };

    return fsdp_test_main(argc, argv, tests, NULL, NULL);
}
