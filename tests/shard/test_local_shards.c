/*
 * What this rank holds, in the program's hands. Every rank adds the same gradient of few bits, so that its mean over any number of
 * ranks is exact.
 */
#include "fsdp/shard.h"

#include <string.h>

#include "fsdp/tensor_io.h"
#include "tests/shard/serial_optimizer.h"

enum { STEPS = 3 };

/* The shards of all tensors, with the index of each tensor's first element among all. */
static void for_each_shard(small_model *m, void (*look)(const fsdp_shard *shard, size_t first, void *what), void *what)
{
    size_t first = 0;

    for (size_t u = 0; u < N_UNITS; u++) {
        for (size_t t = FIRST_TENSOR[u]; t < FIRST_TENSOR[u + 1]; t++) {
            fsdp_shard shard;

            assert_int_equal(FSDP_OK, fsdp_unit_shard(m->units[u], t - FIRST_TENSOR[u], &shard));
            assert_int_equal(FSDP_F32, shard.dtype);
            assert_true(shard.begin + shard.count <= tensor_elements(t));
            look(&shard, first, what);
            first += tensor_elements(t);
        }
    }
}

/* How many ranks hold each element. */
static void count_held(const fsdp_shard *shard, size_t first, void *what)
{
    for (size_t e = 0; e < shard->count; e++) {
        ((int *)what)[first + shard->begin + e]++;
    }
}

static void compare_masters(const fsdp_shard *shard, size_t first, void *what)
{
    assert_memory_equal((float *)what + first + shard->begin, shard->master, shard->count * sizeof(float));
}

static void compare_gradients(const fsdp_shard *shard, size_t first, void *what)
{
    const float *g = shard->gradient;

    assert_non_null(g);
    for (size_t e = 0; e < shard->count; e++) {
        assert_true(g[e] == exact_gradient(*(int *)what, first + shard->begin + e));
    }
}

static void expect_no_gradient(const fsdp_shard *shard, size_t first, void *what)
{
    (void)first;
    (void)what;
    assert_null(shard->gradient);
}

static void check_shards(small_model *m)
{
    static float all[MOST_ELEMENTS];
    int          held[MOST_ELEMENTS] = {0}, pass = 5;

    copy_parameters(m, all);
    for_each_shard(m, compare_masters, all);
    for_each_shard(m, expect_no_gradient, NULL);
    for_each_shard(m, count_held, held);
    MPI_Allreduce(MPI_IN_PLACE, held, MOST_ELEMENTS, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (size_t k = 0; k < all_elements(); k++) {
        assert_true(held[k] > 0 && held[k] == held[0]); /* once in each copy */
    }
    run_exact_pass(m, pass); /* which is still being reduced */
    for_each_shard(m, compare_gradients, &pass);
    assert_int_equal(FSDP_OK, fsdp_model_zero_grad(m->model));
    for_each_shard(m, expect_no_gradient, NULL);
}

static void shards_tile_tensors_and_hold_masters_and_gradients(void **state)
{
    (void)state;
    small_model_for_every_strategy(NULL, check_shards);
}

static void update_by_hand(const fsdp_shard *shard, size_t first, void *what)
{
    float       *w = shard->master;
    const float *g = shard->gradient;

    (void)first;
    (void)what;
    for (size_t e = 0; e < shard->count; e++) {
        const float moved = 0.01F * g[e];

        w[e] -= moved;
    }
}

static void train_by_hand(fsdp_model_options *options)
{
    static serial_model    s;
    fsdp_optimizer_options o;
    small_model            m;

    memset(&s, 0, sizeof s);
    assert_int_equal(FSDP_OK, fsdp_optimizer_options_init(FSDP_SGD, &o));
    small_model_build(&m, MPI_COMM_WORLD, NULL, options);
    assert_int_equal(FSDP_OK, fsdp_model_commit(m.model));
    if (options->param_dtype == FSDP_F32) {
        copy_parameters(&m, s.w);
    }
    for (int step = 0; step < STEPS; step++) {
        run_exact_pass(&m, step);
        for_each_shard(&m, update_by_hand, NULL);
        assert_int_equal(FSDP_OK, fsdp_model_shards_changed(m.model));
        assert_int_equal(FSDP_OK, fsdp_model_zero_grad(m.model));
        serial_take_exact_gradient(&s, step);
        serial_step(&s, &o, NULL);
        if (options->param_dtype == FSDP_F32) {
            assert_equal_parameters(&s, &m, step);
        }
    }
    small_model_close(&m);
}

static void an_optimizer_by_hand_equals_the_serial_recomputation(void **state)
{
    fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;

    (void)state;
    for (int strategy = 0; strategy < FSDP_N_STRATEGIES; strategy++) {
        options.strategy = (fsdp_strategy)strategy;
        train_by_hand(&options);
    }
}

static void set_to_three(const fsdp_shard *shard, size_t first, void *what)
{
    (void)first;
    (void)what;
    for (size_t e = 0; e < shard->count; e++) {
        ((float *)shard->master)[e] = 3.0F;
    }
}

/* In bf16 too, and in 8 bits, where what is gathered is kept beside the masters. */
static void what_is_gathered_follows_a_change(void **state)
{
    (void)state;
    for (int which = 0; which < FSDP_N_STRATEGIES + 1; which++) {
        fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;
        small_model        m;

        options.strategy         = which < FSDP_N_STRATEGIES ? (fsdp_strategy)which : FSDP_FULL_SHARD;
        options.quantized_params = which == FSDP_N_STRATEGIES;
        options.param_dtype      = FSDP_BF16;
        small_model_build(&m, MPI_COMM_WORLD, NULL, &options);
        assert_int_equal(FSDP_OK, fsdp_model_commit(m.model));
        for_each_shard(&m, set_to_three, NULL);
        assert_int_equal(FSDP_OK, fsdp_model_shards_changed(m.model));
        for (size_t u = 0; u < N_UNITS; u++) {
            assert_int_equal(FSDP_OK, fsdp_unit_begin_forward(m.units[u]));
            const uint16_t *w = fsdp_unit_param(m.units[u], 0);
            for (size_t i = 0; i < tensor_elements(FIRST_TENSOR[u]); i++) {
                assert_int_equal(0x4040, w[i]); /* 3 in bf16 */
            }
            assert_int_equal(FSDP_OK, fsdp_unit_end_forward(m.units[u]));
        }
        small_model_close(&m);
    }
}

static void states_of_an_optimizer_are_where_the_shard_is(void **state)
{
    static serial_model s;

    (void)state;
    for (int strategy = 0; strategy < FSDP_N_STRATEGIES; strategy++) {
        fsdp_optimizer_options o;
        fsdp_optimizer        *optimizer;
        small_model            m;
        size_t                 first = 0;

        memset(&s, 0, sizeof s);
        assert_int_equal(FSDP_OK, fsdp_optimizer_options_init(FSDP_ADAMW, &o));
        small_model_open(&m, NULL, (fsdp_strategy)strategy);
        assert_int_equal(FSDP_OK, fsdp_optimizer_create(m.model, &o, &optimizer));
        copy_parameters(&m, s.w);
        run_exact_pass(&m, 0);
        serial_take_exact_gradient(&s, 0);
        assert_int_equal(FSDP_OK, fsdp_optimizer_step(optimizer));
        serial_step(&s, &o, NULL);
        for (size_t u = 0; u < N_UNITS; u++) {
            for (size_t t = FIRST_TENSOR[u]; t < FIRST_TENSOR[u + 1]; t++) {
                fsdp_shard   shard;
                const size_t i = t - FIRST_TENSOR[u];

                assert_int_equal(FSDP_OK, fsdp_unit_shard(m.units[u], i, &shard));
                float *exp_avg    = fsdp_optimizer_state(optimizer, m.units[u], i, 0);
                float *exp_avg_sq = fsdp_optimizer_state(optimizer, m.units[u], i, 1);
                assert_non_null(exp_avg);
                assert_non_null(exp_avg_sq);
                assert_memory_equal(s.first + first + shard.begin, exp_avg, shard.count * sizeof(float));
                assert_memory_equal(s.second + first + shard.begin, exp_avg_sq, shard.count * sizeof(float));
                first += tensor_elements(t);
            }
        }
        assert_null(fsdp_optimizer_state(optimizer, m.units[1], 0, 2));
        assert_says(m.ctx, "state 2 of tensor 'b.gain'; the optimizer has 2");
        assert_null(fsdp_optimizer_state(NULL, m.units[1], 0, 0));
        small_model_close(&m);
    }
}

/* ---- tensors of all kinds ---------------------------------------------------------------------------------------- */

static void tied_frozen_and_ignored_tensors_have_what_is_theirs(void **state)
{
    const fsdp_tensor tensors[] = {
        {.name = "w", .n_dims = 1, .shape = {37}, .dtype = FSDP_F32, .fill = FSDP_FILL_CONSTANT, .a = 1.0},
        {.name = "tied", .n_dims = 1, .shape = {37}, .tied_to = "w"},
        {.name   = "frozen",
         .n_dims = 1,
         .shape  = {5},
         .dtype  = FSDP_F32,
         .fill   = FSDP_FILL_CONSTANT,
         .a      = 2.0,
         .flags  = FSDP_TENSOR_FROZEN},
        {.name = "ignored", .n_dims = 1, .shape = {3}, .dtype = FSDP_F32, .flags = FSDP_TENSOR_IGNORED},
    };
    fsdp_context          *ctx = *state;
    fsdp_optimizer_options o;
    fsdp_optimizer        *optimizer;
    fsdp_shard             owner, tied, frozen, untouched = {.count = 99};
    fsdp_model            *model;
    fsdp_unit             *unit;
    float                  value[5];

    assert_int_equal(FSDP_OK, fsdp_model_create(ctx, NULL, &model));
    assert_int_equal(FSDP_OK, fsdp_unit_add(model, "u", tensors, 4, &unit));
    assert_int_equal(FSDP_ERR_STATE, fsdp_unit_shard(unit, 0, &owner));
    assert_int_equal(FSDP_OK, fsdp_model_commit(model));
    assert_int_equal(FSDP_OK, fsdp_optimizer_options_init(FSDP_ADAMW, &o));
    assert_int_equal(FSDP_OK, fsdp_optimizer_create(model, &o, &optimizer));
    assert_int_equal(FSDP_OK, fsdp_unit_shard(unit, 0, &owner));
    assert_int_equal(FSDP_OK, fsdp_unit_shard(unit, 1, &tied));
    assert_ptr_equal(owner.master, tied.master);
    assert_true(owner.begin == tied.begin && owner.count == tied.count);
    assert_int_equal(FSDP_OK, fsdp_unit_shard(unit, 2, &frozen));
    assert_null(frozen.gradient);
    for (size_t e = 0; e < frozen.count; e++) {
        ((float *)frozen.master)[e] = 7.0F;
    }
    assert_int_equal(FSDP_OK, fsdp_model_shards_changed(model));
    assert_int_equal(FSDP_OK, fsdp_tensor_export_to_all(model, "frozen", value, sizeof value));
    assert_true(value[0] == 7.0F && value[4] == 7.0F);
    assert_null(fsdp_optimizer_state(optimizer, unit, 2, 0));
    assert_says(ctx, "tensor 'frozen', which is frozen");
    assert_int_equal(FSDP_ERR_UNSUPPORTED, fsdp_unit_shard(unit, 3, &untouched));
    assert_says(ctx, "tensor 'ignored' is ignored");
    assert_int_equal(FSDP_ERR_ARG, fsdp_unit_shard(unit, 4, &untouched));
    assert_says(ctx, "no tensor 4");
    assert_int_equal(99, untouched.count);
    assert_int_equal(FSDP_ERR_ARG, fsdp_unit_shard(unit, 0, NULL));
    assert_int_equal(FSDP_ERR_ARG, fsdp_unit_shard(NULL, 0, &untouched));
    assert_int_equal(FSDP_ERR_ARG, fsdp_model_shards_changed(NULL));
    fsdp_model_destroy(model);
}

/* ---- what can be wrong ------------------------------------------------------------------------------------------- */

static void check_during_a_pass(small_model *m)
{
    fsdp_shard shard;

    assert_int_equal(FSDP_OK, fsdp_unit_begin_forward(m->units[1]));
    assert_int_equal(FSDP_ERR_STATE, fsdp_unit_shard(m->units[0], 0, &shard));
    assert_says(m->ctx, "a forward pass of unit 'b' is open");
    assert_int_equal(FSDP_ERR_STATE, fsdp_model_shards_changed(m->model));
    assert_int_equal(FSDP_OK, fsdp_unit_end_forward(m->units[1]));
    assert_int_equal(FSDP_OK, fsdp_unit_shard(m->units[0], 0, &shard));
}

static void a_shard_asked_for_during_a_pass_is_refused(void **state)
{
    (void)state;
    small_model_for_every_strategy(NULL, check_during_a_pass);
}

static void open_full(small_model *m, fsdp_strategy strategy)
{
    fsdp_config config;

    fsdp_config_init(&config);
    config.verify = FSDP_VERIFY_FULL;
    small_model_open(m, &config, strategy);
}

/* One element, on one rank that has one; returns where it was. */
static float *spoil(small_model *m, float *was)
{
    fsdp_shard shard;

    assert_int_equal(FSDP_OK, fsdp_unit_shard(m->units[2], 0, &shard));
    if (fsdp_rank(m->ctx) != 0) {
        return NULL;
    }
    assert_true(shard.count > 0);
    *was = ((float *)shard.master)[0];
    ((float *)shard.master)[0] += 1.0F;
    return shard.master;
}

static void masters_that_change_unsaid_are_found_by_the_next_pass_and_step(void **state)
{
    (void)state;
    for (int strategy = 0; strategy < FSDP_N_STRATEGIES; strategy++) {
        fsdp_optimizer_options o;
        fsdp_optimizer        *optimizer;
        small_model            m;
        float                  was = 0.0F;

        open_full(&m, (fsdp_strategy)strategy);
        assert_int_equal(FSDP_OK, fsdp_optimizer_options_init(FSDP_ADAMW, &o));
        assert_int_equal(FSDP_OK, fsdp_optimizer_create(m.model, &o, &optimizer));
        run_exact_pass(&m, 0);
        float *kept = spoil(&m, &was);
        assert_int_equal(FSDP_ERR_STATE, fsdp_optimizer_step(optimizer));
        assert_says(m.ctx, "masters of unit 'c', of tensor 'c.weight'");
        if (kept != NULL) {
            *kept = was;
        }
        assert_int_equal(FSDP_OK, fsdp_model_shards_changed(m.model));
        assert_int_equal(FSDP_OK, fsdp_optimizer_step(optimizer));
        if (kept != NULL) { /* a pointer that was kept over the step */
            was = *kept;
            *kept += 1.0F;
        }
        assert_int_equal(FSDP_OK, fsdp_unit_begin_forward(m.units[0]));
        assert_int_equal(FSDP_OK, fsdp_unit_end_forward(m.units[0]));
        assert_int_equal(FSDP_ERR_STATE, fsdp_unit_begin_forward(m.units[2]));
        (void)fsdp_model_zero_grad(m.model);
        if (kept != NULL) {
            *kept = was;
        }
        assert_int_equal(FSDP_OK, fsdp_model_shards_changed(m.model));
        run_exact_pass(&m, 1);
        assert_int_equal(FSDP_OK, fsdp_optimizer_step(optimizer));
        small_model_close(&m);
    }
}

static void copies_that_differ_are_found(void **state)
{
    small_model m;
    float       was = 0.0F;

    (void)state;
    open_full(&m, FSDP_NO_SHARD);
    float *at = spoil(&m, &was);
    assert_int_equal(fsdp_size(m.ctx) > 1 ? FSDP_ERR_MISMATCH : FSDP_OK, fsdp_model_shards_changed(m.model));
    if (at != NULL) {
        *at = was;
    }
    assert_int_equal(FSDP_OK, fsdp_model_shards_changed(m.model));
    small_model_close(&m);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shards_tile_tensors_and_hold_masters_and_gradients),
        cmocka_unit_test(an_optimizer_by_hand_equals_the_serial_recomputation),
        cmocka_unit_test(what_is_gathered_follows_a_change),
        cmocka_unit_test(states_of_an_optimizer_are_where_the_shard_is),
        cmocka_unit_test(tied_frozen_and_ignored_tensors_have_what_is_theirs),
        cmocka_unit_test(a_shard_asked_for_during_a_pass_is_refused),
        cmocka_unit_test(masters_that_change_unsaid_are_found_by_the_next_pass_and_step),
        cmocka_unit_test(copies_that_differ_are_found),
    };

    return fsdp_test_main(argc, argv, tests, fsdp_test_open_context, fsdp_test_close_context);
}
