/*
 * The error feedback of the int8 hook in checkpoints: training goes on with the same bits on as many ranks, and from zeros on others.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/shard/checkpoint/saved_model.h"

enum { STEPS = 3, MORE_STEPS = 4, ELEMENTS = 5000 };

static const char *path_of(const char *name)
{
    static char path[512];

    (void)snprintf(path, sizeof path, "%s/%s", saved_folder, name);
    return path;
}

/* A model whose ranks have gradients of their own. */
typedef struct trained {
    MPI_Comm        comm;
    fsdp_context   *ctx;
    fsdp_model     *model;
    fsdp_unit      *unit;
    fsdp_optimizer *optimizer;
    fsdp_hook      *hook;
} trained;

static void open_on(trained *t, int size, fsdp_strategy strategy, bool with_hook)
{
    const fsdp_tensor      tensor  = {.name = "x", .n_dims = 1, .shape = {ELEMENTS}, .dtype = FSDP_F32};
    fsdp_model_options     options = FSDP_MODEL_OPTIONS_DEFAULT;
    fsdp_optimizer_options o;

    *t = (trained){.comm = MPI_COMM_NULL};
    MPI_Comm_split(MPI_COMM_WORLD, fsdp_test_rank() < size ? 0 : MPI_UNDEFINED, 0, &t->comm);
    if (t->comm == MPI_COMM_NULL) {
        return;
    }
    options.strategy   = strategy;
    options.group_size = size % 2 == 0 ? 2 : 1;
    assert_int_equal(FSDP_OK, fsdp_init(t->comm, NULL, &t->ctx));
    assert_int_equal(FSDP_OK, fsdp_model_create(t->ctx, &options, &t->model));
    assert_int_equal(FSDP_OK, fsdp_unit_add(t->model, "u", &tensor, 1, &t->unit));
    assert_int_equal(FSDP_OK, fsdp_model_commit(t->model));
    if (with_hook) {
        assert_int_equal(FSDP_OK, fsdp_hook_int8(t->ctx, NULL, &t->hook));
        assert_int_equal(FSDP_OK, fsdp_model_set_hook(t->model, t->hook));
    }
    assert_int_equal(FSDP_OK, fsdp_optimizer_options_init(FSDP_SGD_MOMENTUM, &o));
    o.lr = 0.01;
    assert_int_equal(FSDP_OK, fsdp_optimizer_create(t->model, &o, &t->optimizer));
}

static void close_it(trained *t)
{
    if (t->comm != MPI_COMM_NULL) {
        fsdp_model_destroy(t->model);
        fsdp_hook_destroy(t->hook);
        assert_int_equal(FSDP_OK, fsdp_finalize(t->ctx));
        MPI_Comm_free(&t->comm);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void train(trained *t, size_t first, size_t n)
{
    for (size_t step = first; step < first + n; step++) {
        assert_int_equal(FSDP_OK, fsdp_unit_begin_forward(t->unit));
        assert_int_equal(FSDP_OK, fsdp_unit_end_forward(t->unit));
        assert_int_equal(FSDP_OK, fsdp_unit_begin_backward(t->unit));
        float *g = fsdp_unit_grad(t->unit, 0);
        for (size_t i = 0; i < ELEMENTS; i++) {
            g[i] += (float)((i * 37 + step * 11 + (size_t)fsdp_test_rank() * 5) % 101) / 7.0F - 5.0F;
        }
        assert_int_equal(FSDP_OK, fsdp_unit_end_backward(t->unit));
        assert_int_equal(FSDP_OK, fsdp_optimizer_step(t->optimizer));
    }
}

static uint64_t hash_of(const trained *t)
{
    uint64_t hash = 0;

    assert_int_equal(FSDP_OK, fsdp_model_hash(t->model, &hash));
    return hash;
}

static void save(const trained *t, const char *name)
{
    const fsdp_checkpoint_state three = {.step = STEPS};
    fsdp_checkpoint            *checkpoint;

    assert_int_equal(FSDP_OK, fsdp_checkpoint_open(t->model, t->optimizer, path_of(name), NULL, &checkpoint));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_save(checkpoint, &three));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_close(checkpoint));
}

static void load(const trained *t, const char *name)
{
    assert_int_equal(FSDP_OK, fsdp_checkpoint_load(t->model, t->optimizer, path_of(name), NULL, NULL));
}

/* Both what was left undisturbed and what has loaded over a state of its own. */
static void training_goes_on_with_the_same_bits(void **state)
{
    static const fsdp_strategy strategies[] = {FSDP_NO_SHARD, FSDP_HYBRID_SHARD};

    (void)state;
    for (size_t s = 0; s < sizeof strategies / sizeof strategies[0]; s++) {
        char    name[32];
        trained t;

        (void)snprintf(name, sizeof name, "same-%zu", s);
        open_on(&t, fsdp_test_size(), strategies[s], true);
        train(&t, 0, STEPS);
        save(&t, name);
        train(&t, STEPS, MORE_STEPS);
        const uint64_t undisturbed = hash_of(&t);
        load(&t, name);
        train(&t, STEPS, MORE_STEPS);
        assert_true(undisturbed == hash_of(&t));
        close_it(&t);

        open_on(&t, fsdp_test_size(), strategies[s], true);
        load(&t, name);
        train(&t, STEPS, MORE_STEPS);
        assert_true(undisturbed == hash_of(&t));
        close_it(&t);
    }
}

/* That what is left of roundings counts: without it other bits come. */
static void without_what_was_left_there_are_other_bits(void **state)
{
    trained t;

    (void)state;
    open_on(&t, fsdp_test_size(), FSDP_NO_SHARD, true);
    train(&t, 0, STEPS);
    save(&t, "with");
    assert_int_equal(FSDP_OK, fsdp_model_set_hook(t.model, NULL));
    save(&t, "without");
    train(&t, STEPS, MORE_STEPS);
    close_it(&t);
    uint64_t hashes[2];
    for (int i = 0; i < 2; i++) {
        open_on(&t, fsdp_test_size(), FSDP_NO_SHARD, true);
        load(&t, i == 0 ? "with" : "without");
        train(&t, STEPS, MORE_STEPS);
        hashes[i] = hash_of(&t);
        close_it(&t);
    }
    assert_true(fsdp_test_size() == 1 || hashes[0] != hashes[1]);
}

static void other_numbers_of_ranks_and_models_without_the_hook_load_the_rest(void **state)
{
    trained t;

    (void)state;
    open_on(&t, fsdp_test_size(), FSDP_NO_SHARD, true);
    train(&t, 0, STEPS);
    const uint64_t saved = hash_of(&t);
    save(&t, "others");
    close_it(&t);
    for (int size = 1; size <= fsdp_test_size(); size++) {
        for (int hook = 0; hook < 2; hook++) {
            open_on(&t, size, FSDP_NO_SHARD, hook == 1);
            if (t.comm != MPI_COMM_NULL) {
                load(&t, "others");
                assert_true(saved == hash_of(&t));
                train(&t, STEPS, 1);
            }
            close_it(&t);
        }
    }
}

static void another_hook_than_at_open_is_refused(void **state)
{
    const fsdp_checkpoint_state three = {.step = STEPS};
    fsdp_checkpoint            *checkpoint;
    trained                     t;

    (void)state;
    open_on(&t, fsdp_test_size(), FSDP_NO_SHARD, true);
    train(&t, 0, 1);
    assert_int_equal(FSDP_OK, fsdp_checkpoint_open(t.model, t.optimizer, path_of("another"), NULL, &checkpoint));
    assert_int_equal(FSDP_OK, fsdp_model_set_hook(t.model, NULL));
    assert_int_equal(FSDP_ERR_STATE, fsdp_checkpoint_save(checkpoint, &three));
    assert_says(t.ctx, "gradient hook");
    assert_int_equal(FSDP_OK, fsdp_model_set_hook(t.model, t.hook));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_save(checkpoint, &three));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_close(checkpoint));
    close_it(&t);
}

static const struct CMUnitTest hook_state[] = {
    cmocka_unit_test(training_goes_on_with_the_same_bits),
    cmocka_unit_test(without_what_was_left_there_are_other_bits),
    cmocka_unit_test(other_numbers_of_ranks_and_models_without_the_hook_load_the_rest),
    cmocka_unit_test(another_hook_than_at_open_is_refused),
};

int main(int argc, char **argv)
{
    return fsdp_test_main(argc, argv, hook_state, saved_folder_make, saved_folder_remove);
}
