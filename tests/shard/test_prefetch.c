/* Nothing is gathered ahead of a change of the masters, be it a step, an import or a load: it would have to be dropped. */
#include "fsdp/checkpoint.h"
#include "fsdp/optimizer.h"
#include "shard/state/model.h"
#include "tests/shard/checkpoint/saved_model.h"
#include "tests/shard/small_model.h"

enum { MOST_PREFETCH = 3, ROUNDS = 3 };

typedef enum change { STEP, IMPORTS, LOAD, N_CHANGES } change;

static const char *const change_names[N_CHANGES] = {"a step", "imports", "a load"};

typedef struct training {
    small_model     m;
    fsdp_optimizer *optimizer;
    char            path[FSDP_CHECKPOINT_PATH_BYTES]; /* of a checkpoint */
} training;

static void save(training *t)
{
    const fsdp_checkpoint_state state = {.step = 1};
    fsdp_checkpoint            *checkpoint;

    assert_int_equal(FSDP_OK, fsdp_checkpoint_open(t->m.model, NULL, saved_folder, NULL, &checkpoint));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_save(checkpoint, &state));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_close(checkpoint));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_latest(t->m.ctx, saved_folder, t->path, sizeof t->path));
}

static void open_training(training *t, fsdp_strategy strategy, int prefetch, change what)
{
    fsdp_config            config;
    fsdp_optimizer_options o;

    fsdp_config_init(&config);
    config.prefetch = prefetch;
    small_model_open(&t->m, &config, strategy);
    assert_int_equal(FSDP_OK, fsdp_optimizer_options_init(FSDP_SGD, &o));
    assert_int_equal(FSDP_OK, fsdp_optimizer_create(t->m.model, &o, &t->optimizer));
    if (what == LOAD) {
        save(t);
    }
}

static void import_all(training *t)
{
    static float values[MOST_ELEMENTS];

    for (size_t i = 0; i < N_TENSORS; i++) {
        assert_int_equal(
            FSDP_OK, fsdp_tensor_import(t->m.model, TENSORS[i].name, 0, values, tensor_elements(i) * sizeof *values));
    }
}

static void make_change(training *t, change what)
{
    switch (what) {
    case STEP:
        assert_int_equal(FSDP_OK, fsdp_optimizer_step(t->optimizer));
        return;
    case IMPORTS:
        import_all(t);
        return;
    case LOAD:
        assert_int_equal(FSDP_OK, fsdp_checkpoint_load(t->m.model, NULL, t->path, NULL, NULL));
        return;
    case N_CHANGES:
        return;
    }
}

/* Gathers that have been issued and that no pass has asked for yet. */
static size_t gathers_under_way(const training *t)
{
    size_t n = 0;

    for (size_t u = 0; u < N_UNITS; u++) {
        const fsdp_unit *unit = t->m.units[u];

        for (size_t i = 0; i < unit->n_members; i++) {
            n += unit->members[i].view->gathering != NULL;
        }
    }
    return n;
}

static size_t gathered_in_vain(training *t, change what)
{
    size_t n = 0;

    for (int round = 0; round < ROUNDS; round++) {
        run_pass(&t->m, round);
        if (what != STEP) {
            assert_int_equal(FSDP_OK, fsdp_model_zero_grad(t->m.model));
        }
        n += round > 0 ? gathers_under_way(t) : 0; /* the first time, nobody knows what comes */
        make_change(t, what);
    }
    return n;
}

static void check_all(change what)
{
    for (int strategy = 0; strategy < FSDP_N_STRATEGIES; strategy++) {
        for (int prefetch = 1; prefetch <= MOST_PREFETCH; prefetch++) {
            training t;

            open_training(&t, (fsdp_strategy)strategy, prefetch, what);
            const size_t n = gathered_in_vain(&t, what);
            if (n > 0) {
                fail_msg("%s, prefetch %d: %zu gathers under way before %s",
                         fsdp_strategy_name((fsdp_strategy)strategy), prefetch, n, change_names[what]);
            }
            small_model_close(&t.m);
        }
    }
}

static void nothing_is_gathered_ahead_of_a_step(void **state)
{
    (void)state;
    check_all(STEP);
}

static void nothing_is_gathered_ahead_of_imports(void **state)
{
    (void)state;
    check_all(IMPORTS);
}

static void nothing_is_gathered_ahead_of_a_load(void **state)
{
    (void)state;
    check_all(LOAD);
}

/* Imports of a whole model are one change: they do not push the order of the units out of what is remembered. */
static void the_order_of_units_is_known_behind_many_imports(void **state)
{
    training t;

    (void)state;
    open_training(&t, FSDP_FULL_SHARD, 1, IMPORTS);
    for (int round = 0; round < ROUNDS; round++) {
        run_pass(&t.m, round);
        assert_int_equal(FSDP_OK, fsdp_model_zero_grad(t.m.model));
        for (int i = 0; i < 10; i++) {
            import_all(&t);
        }
    }
    assert_int_equal(FSDP_OK, fsdp_unit_begin_forward(t.m.units[0]));
    assert_int_equal(1, gathers_under_way(&t)); /* of the unit behind this one */
    assert_int_equal(FSDP_OK, fsdp_unit_end_forward(t.m.units[0]));
    small_model_close(&t.m);
}

static bool is_gathered(const fsdp_unit *unit)
{
    return unit->n_members > 0 && unit->members[0].view->gathered;
}

/* It is the first of the backward pass, and would have to be gathered again. */
static void the_last_unit_of_the_forward_pass_stays(void **state)
{
    const bool divides = fsdp_test_size() > 1;

    (void)state;
    for (int prefetch = 0; prefetch <= MOST_PREFETCH; prefetch++) {
        training t;

        open_training(&t, FSDP_FULL_SHARD, prefetch, STEP);
        for (int round = 0; round < ROUNDS; round++) {
            run_pass(&t.m, round);
            make_change(&t, STEP);
        }
        for (size_t u = 0; u < N_UNITS; u++) {
            assert_int_equal(FSDP_OK, fsdp_unit_begin_forward(t.m.units[u]));
            assert_int_equal(FSDP_OK, fsdp_unit_end_forward(t.m.units[u]));
        }
        assert_int_equal(divides && prefetch > 0, is_gathered(t.m.units[N_UNITS - 1]));
        assert_int_equal(FSDP_OK, fsdp_unit_begin_backward(t.m.units[N_UNITS - 1]));
        assert_int_equal(divides, is_gathered(t.m.units[N_UNITS - 1]));
        assert_int_equal(FSDP_OK, fsdp_unit_end_backward(t.m.units[N_UNITS - 1]));
        small_model_close(&t.m);
    }
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_gathered_ahead_of_a_step),
        cmocka_unit_test(nothing_is_gathered_ahead_of_imports),
        cmocka_unit_test(nothing_is_gathered_ahead_of_a_load),
        cmocka_unit_test(the_order_of_units_is_known_behind_many_imports),
        cmocka_unit_test(the_last_unit_of_the_forward_pass_stays),
    };

    return fsdp_test_main(argc, argv, tests, saved_folder_make, saved_folder_remove);
}
