/*
 * Flat parameters with strategies of their own: small ones that every rank holds whole, and units whose strategy is not the
 * model's. Bits are those of a model in which nothing is special, and so are files; budgets say what is held.
 */
#include <string.h>

#include "fsdp/cast.h"
#include "fsdp/checkpoint.h"
#include "fsdp/hook.h"
#include "fsdp/optimizer.h"
#include "fsdp/tensor_io.h"
#include "shard/state/model.h"
#include "tests/shard/checkpoint/saved_model.h"
#include "tests/shard/small_model.h"

enum { STEPS = 3, UNSET = -1 };

typedef struct variant {
    fsdp_strategy strategy;
    int           own[N_UNITS]; /* strategies; UNSET: the model's */
    int64_t       small_bytes;
    int           group, prefetch, local, node_size;
    fsdp_dtype    param_dtype, reduce_dtype;
    int           quantized, fixed_addresses;
} variant;

typedef struct result {
    uint64_t hash;
    double   norm, largest;
    float    parameters[MOST_ELEMENTS];
} result;

static bool is_hybrid(int strategy)
{
    return strategy == FSDP_HYBRID_SHARD || strategy == FSDP_HYBRID_SHARD_ZERO2;
}

static void build(small_model *m, const variant *v)
{
    fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;
    fsdp_config        config;

    fsdp_config_init(&config);
    config.small_bytes       = v->small_bytes;
    config.prefetch          = v->prefetch;
    config.node_size         = v->node_size;
    options.strategy         = v->strategy;
    options.seed             = 7;
    options.group_size       = v->group;
    options.param_dtype      = v->param_dtype;
    options.reduce_dtype     = v->reduce_dtype;
    options.local_gradients  = v->local;
    options.quantized_params = v->quantized;
    options.fixed_addresses  = v->fixed_addresses;
    small_model_build(m, MPI_COMM_WORLD, &config, &options);
    for (size_t u = 0; u < N_UNITS; u++) {
        if (v->own[u] != UNSET) {
            assert_int_equal(FSDP_OK, fsdp_unit_set_strategy(m->units[u], (fsdp_strategy)v->own[u]));
        }
    }
}

static fsdp_optimizer *make_optimizer(small_model *m)
{
    fsdp_optimizer_options o;
    fsdp_optimizer        *optimizer;

    assert_int_equal(FSDP_OK, fsdp_optimizer_options_init(FSDP_ADAMW, &o));
    assert_int_equal(FSDP_OK, fsdp_optimizer_create(m->model, &o, &optimizer));
    return optimizer;
}

/* A pass whose gradients depend on parameters as they are seen, in any type; local where that is wanted. */
static void pass(small_model *m, int number)
{
    const fsdp_model_options *o = &m->model->options;
    static float              w[MOST_ELEMENTS], g[MOST_ELEMENTS];

    for (size_t u = 0; u < N_UNITS; u++) {
        assert_int_equal(FSDP_OK, fsdp_unit_begin_forward(m->units[u]));
        assert_int_equal(FSDP_OK, fsdp_unit_end_forward(m->units[u]));
    }
    for (size_t u = N_UNITS; u-- > 0;) {
        assert_int_equal(FSDP_OK, fsdp_unit_begin_backward(m->units[u]));
        for (size_t t = FIRST_TENSOR[u]; t < FIRST_TENSOR[u + 1]; t++) {
            const size_t n = tensor_elements(t), k = t - FIRST_TENSOR[u];

            assert_int_equal(FSDP_OK,
                             fsdp_cast(m->ctx, w, FSDP_F32, fsdp_unit_param(m->units[u], k), o->param_dtype, n));
            for (size_t i = 0; i < n; i++) {
                g[i] = gradient_element(fsdp_rank(m->ctx), number, t, i, w[i]);
            }
            assert_int_equal(FSDP_OK,
                             fsdp_cast(m->ctx, fsdp_unit_grad(m->units[u], k), o->reduce_dtype, g, FSDP_F32, n));
        }
        assert_int_equal(FSDP_OK, fsdp_unit_end_backward(m->units[u]));
    }
}

static void read_parameters(small_model *m, float *all)
{
    for (size_t t = 0; t < N_TENSORS; t++) {
        const size_t bytes = tensor_elements(t) * sizeof(float);

        assert_int_equal(FSDP_OK, fsdp_tensor_export_to_all(m->model, TENSORS[t].name, all, bytes));
        all += tensor_elements(t);
    }
}

static void step(small_model *m, fsdp_optimizer *optimizer, int number, result *r)
{
    if (m->model->options.local_gradients) {
        assert_int_equal(FSDP_OK, fsdp_model_set_sync(m->model, 0));
        pass(m, 100 + number);
        assert_int_equal(FSDP_OK, fsdp_model_set_sync(m->model, 1));
    }
    pass(m, 200 + number);
    pass(m, number);
    assert_int_equal(FSDP_OK, fsdp_clip_grad_norm_inf(m->model, 0.75, &r->largest));
    assert_int_equal(FSDP_OK, fsdp_clip_grad_norm(m->model, 0.5, &r->norm));
    assert_int_equal(FSDP_OK, fsdp_optimizer_step(optimizer));
}

static void train(const variant *v, result *r)
{
    small_model m;

    memset(r, 0, sizeof *r);
    build(&m, v);
    assert_int_equal(FSDP_OK, fsdp_model_commit(m.model));
    fsdp_optimizer *optimizer = make_optimizer(&m);
    for (int k = 0; k < STEPS; k++) {
        step(&m, optimizer, k, r);
    }
    assert_int_equal(FSDP_OK, fsdp_model_hash(m.model, &r->hash));
    read_parameters(&m, r->parameters);
    small_model_close(&m);
}

static void expect_same(const result *expected, const result *found)
{
    assert_memory_equal(expected->parameters, found->parameters, sizeof expected->parameters);
    assert_true(expected->hash == found->hash);
    assert_true(expected->norm > 0.0 && expected->norm == found->norm);
    assert_true(expected->largest > 0.0 && expected->largest == found->largest);
}

/* Of the three units: none, "b" alone, "b" and "c", and all are below these, in f32 as in 16 bits. */
static const int64_t THRESHOLDS[] = {0, 9, 4200, (int64_t)1 << 40};
enum { N_THRESHOLDS = sizeof THRESHOLDS / sizeof THRESHOLDS[0] };

static variant plain(int strategy)
{
    return (variant){.strategy     = (fsdp_strategy)strategy,
                     .own          = {UNSET, UNSET, UNSET},
                     .prefetch     = 1,
                     .param_dtype  = FSDP_F32,
                     .reduce_dtype = FSDP_F32};
}

static void compare_thresholds(variant v)
{
    static result expected, found;

    v.small_bytes = 0;
    train(&v, &expected);
    for (int k = 1; k < N_THRESHOLDS; k++) {
        v.small_bytes = THRESHOLDS[k];
        train(&v, &found);
        expect_same(&expected, &found);
    }
}

static void small_parameters_held_whole_change_no_bit(void **state)
{
    (void)state;
    for (int s = 0; s < FSDP_N_STRATEGIES; s++) {
        variant v = plain(s);

        v.group = is_hybrid(s) ? fsdp_test_size() : 0;
        compare_thresholds(v);
        v.local    = 1;
        v.prefetch = s % 2;
        compare_thresholds(v);
        v.param_dtype  = FSDP_BF16;
        v.reduce_dtype = s % 2 == 0 ? FSDP_BF16 : FSDP_F16;
        compare_thresholds(v);
        v.fixed_addresses = 1;
        compare_thresholds(v);
    }
}

static void nor_in_groups_whatever_the_nodes(void **state)
{
    static const fsdp_dtype dtypes[] = {FSDP_F32, FSDP_BF16, FSDP_F16};

    (void)state;
    for (int group = 1; group <= fsdp_test_size(); group++) {
        for (int node_size = 0; node_size <= 2 && fsdp_test_size() % group == 0; node_size++) {
            variant v = plain(group % 2 == 0 ? FSDP_HYBRID_SHARD : FSDP_HYBRID_SHARD_ZERO2);

            v.group        = group;
            v.node_size    = node_size;
            v.reduce_dtype = dtypes[(group + node_size) % 3];
            compare_thresholds(v);
        }
    }
}

static void nor_what_quantised_gathers_bring(void **state)
{
    (void)state;
    for (int k = 0; k < 2; k++) {
        variant v = plain(FSDP_FULL_SHARD);

        v.quantized   = 1;
        v.param_dtype = k == 0 ? FSDP_F32 : FSDP_BF16;
        compare_thresholds(v);
    }
}

/* Of the model's family all three ways to mix, with and without a threshold. */
static void units_with_strategies_of_their_own_change_no_bit(void **state)
{
    static const int families[2][4] = {{FSDP_FULL_SHARD, FSDP_NO_SHARD, FSDP_SHARD_GRAD_OP, FSDP_SHARD_OPTIM},
                                       {FSDP_HYBRID_SHARD, FSDP_NO_SHARD, FSDP_HYBRID_SHARD_ZERO2, UNSET}};
    static result    expected, found;

    (void)state;
    for (int hybrid = 0; hybrid < 2; hybrid++) {
        variant v = plain(families[hybrid][0]);

        v.group = hybrid ? 1 + (fsdp_test_size() % 2 == 0) : 0;
        v.local = 1;
        train(&v, &expected);
        for (int k = 0; k < 8; k++) {
            for (int u = 0; u < (int)N_UNITS; u++) {
                v.own[u] = families[hybrid][(k + u * (1 + k / 4)) % 4];
            }
            v.strategy    = (fsdp_strategy)(hybrid ? families[1][k % 2 * 2] : families[0][(k + 3) % 4]);
            v.small_bytes = THRESHOLDS[k % 2];
            v.prefetch    = k % 3;
            train(&v, &found);
            expect_same(&expected, &found);
        }
    }
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static void expect_held(const small_model *m, const fsdp_budget *budget)
{
    fsdp_memory memory;

    assert_int_equal(FSDP_OK, fsdp_memory_usage(m->ctx, &memory));
    for (int line = 0; line < FSDP_N_MEMORY_KINDS; line++) {
        if (budget->bytes[line] != memory.current[line]) {
            fail_msg("%s: %zu bytes in the budget, %zu held", fsdp_memory_name((fsdp_memory_kind)line),
                     budget->bytes[line], memory.current[line]);
        }
    }
    assert_int_equal(budget->total, memory.peak_total);
}

static void check_budget(const variant *v)
{
    small_model m;
    result      r;
    fsdp_budget budget;

    build(&m, v);
    assert_int_equal(FSDP_OK, fsdp_model_budget(m.model, v->strategy, 0, FSDP_ADAMW, &budget));
    assert_int_equal(FSDP_OK, fsdp_model_commit(m.model));
    fsdp_optimizer *optimizer = make_optimizer(&m);
    step(&m, optimizer, 0, &r);
    step(&m, optimizer, 1, &r);
    expect_held(&m, &budget);
    small_model_close(&m);
}

static void the_budget_counts_them_to_the_byte(void **state)
{
    (void)state;
    for (int s = 0; s < FSDP_N_STRATEGIES; s++) {
        for (int k = 0; k < N_THRESHOLDS; k++) {
            variant v = plain(s);

            v.group       = is_hybrid(s) ? 1 + (fsdp_test_size() % 2 == 0) : 0;
            v.small_bytes = THRESHOLDS[k];
            check_budget(&v);
            v.local           = 1;
            v.param_dtype     = FSDP_BF16;
            v.fixed_addresses = 1;
            check_budget(&v);
            v.own[0] = is_hybrid(s) ? FSDP_HYBRID_SHARD : FSDP_FULL_SHARD;
            v.own[1] = FSDP_NO_SHARD;
            v.own[2] = is_hybrid(s) ? FSDP_HYBRID_SHARD_ZERO2 : FSDP_SHARD_OPTIM;
            check_budget(&v);
            v             = plain(FSDP_FULL_SHARD);
            v.quantized   = 1;
            v.small_bytes = THRESHOLDS[k];
            check_budget(&v);
        }
    }
}

/* Nothing is gathered; the same state without ranks. */
static void a_small_unit_costs_what_its_elements_say(void **state)
{
    enum { RANKS = 1024 };
    variant     v = plain(FSDP_FULL_SHARD);
    small_model m;
    fsdp_budget divided, whole;

    (void)state;
    build(&m, &v);
    assert_int_equal(FSDP_OK, fsdp_model_budget(m.model, v.strategy, RANKS, FSDP_ADAMW, &divided));
    small_model_close(&m);
    v.small_bytes = (int64_t)1 << 40;
    build(&m, &v);
    assert_int_equal(FSDP_OK, fsdp_model_budget(m.model, v.strategy, RANKS, FSDP_ADAMW, &whole));
    small_model_close(&m);
    assert_true(divided.bytes[FSDP_MEMORY_GATHERED] > 0);
    assert_int_equal(0, whole.bytes[FSDP_MEMORY_GATHERED]);
    assert_int_equal((2304 + 256 + 1024) * sizeof(float), whole.bytes[FSDP_MEMORY_PARAMETERS]); /* in steps of 256 */
    assert_int_equal(whole.bytes[FSDP_MEMORY_PARAMETERS], whole.bytes[FSDP_MEMORY_GRADIENTS]);
    assert_int_equal(2 * whole.bytes[FSDP_MEMORY_PARAMETERS], whole.bytes[FSDP_MEMORY_OPTIMIZER]);
    assert_int_equal(divided.unsharded, whole.unsharded);
    assert_int_equal(divided.parameters, whole.parameters);
}

/* ---- checkpoints ------------------------------------------------------------------------------------------------- */

static void save(const small_model *m, fsdp_optimizer *optimizer)
{
    const fsdp_checkpoint_state state = {.step = 1};
    fsdp_checkpoint            *checkpoint;

    assert_int_equal(FSDP_OK, fsdp_checkpoint_open(m->model, optimizer, saved_folder, NULL, &checkpoint));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_save(checkpoint, &state));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_close(checkpoint));
}

/* Half of the steps under one, and the others under another that has loaded what the first has saved. */
static void train_in_two_parts(const variant *first, const variant *second, result *r)
{
    fsdp_checkpoint_state state;
    small_model           m;

    memset(r, 0, sizeof *r);
    build(&m, first);
    assert_int_equal(FSDP_OK, fsdp_model_commit(m.model));
    fsdp_optimizer *optimizer = make_optimizer(&m);
    step(&m, optimizer, 0, r);
    save(&m, optimizer);
    small_model_close(&m);
    build(&m, second);
    assert_int_equal(FSDP_OK, fsdp_model_commit(m.model));
    optimizer = make_optimizer(&m);
    assert_int_equal(FSDP_OK, fsdp_checkpoint_load(m.model, optimizer, saved_folder, NULL, &state));
    for (int k = 1; k < STEPS; k++) {
        step(&m, optimizer, k, r);
    }
    assert_int_equal(FSDP_OK, fsdp_model_hash(m.model, &r->hash));
    read_parameters(&m, r->parameters);
    small_model_close(&m);
}

static void checkpoints_do_not_show_them(void **state)
{
    static result expected, found;
    variant       a = plain(FSDP_FULL_SHARD), b = plain(FSDP_SHARD_GRAD_OP);

    (void)state;
    train(&a, &expected);
    a.small_bytes = THRESHOLDS[2];
    b.own[2]      = FSDP_NO_SHARD;
    train_in_two_parts(&a, &b, &found);
    expect_same(&expected, &found);
    train_in_two_parts(&b, &a, &found);
    expect_same(&expected, &found);
}

static void values_can_be_set_from_outside(void **state)
{
    static float values[MOST_ELEMENTS], found[MOST_ELEMENTS];

    (void)state;
    for (int s = 0; s < FSDP_N_STRATEGIES; s++) {
        variant     v = plain(s);
        small_model m;
        float      *at = values;

        v.group       = is_hybrid(s) ? fsdp_test_size() : 0;
        v.small_bytes = THRESHOLDS[2];
        build(&m, &v);
        assert_int_equal(FSDP_OK, fsdp_model_commit(m.model));
        for (size_t i = 0; i < MOST_ELEMENTS; i++) {
            values[i] = (float)i;
        }
        for (size_t t = 0; t < N_TENSORS; t++) {
            assert_int_equal(FSDP_OK, fsdp_tensor_import(m.model, TENSORS[t].name, fsdp_test_size() - 1, at,
                                                         tensor_elements(t) * sizeof(float)));
            at += tensor_elements(t);
        }
        copy_parameters(&m, found);
        assert_memory_equal(values, found, (size_t)(at - values) * sizeof(float));
        small_model_close(&m);
    }
}

/* ---- bad input --------------------------------------------------------------------------------------------------- */

static void expect_refused(const variant *v, int own, fsdp_status status, const char *words)
{
    small_model m;

    build(&m, v);
    assert_int_equal(status, fsdp_unit_set_strategy(m.units[1], (fsdp_strategy)own));
    assert_non_null(strstr(fsdp_last_error(m.ctx), words));
    assert_int_equal(status, fsdp_model_commit(m.model)); /* so that the other ranks learn of it */
    small_model_close(&m);
}

static void a_strategy_that_does_not_go_with_the_models_is_refused(void **state)
{
    variant v = plain(FSDP_FULL_SHARD);

    (void)state;
    assert_int_equal(FSDP_ERR_ARG, fsdp_unit_set_strategy(NULL, FSDP_NO_SHARD));
    expect_refused(&v, 17, FSDP_ERR_ARG, "unit 'b': 17 is no strategy");
    expect_refused(&v, FSDP_HYBRID_SHARD, FSDP_ERR_UNSUPPORTED,
                   "unit 'b' with HYBRID_SHARD in a model with FULL_SHARD");
    v.quantized = 1;
    expect_refused(&v, FSDP_SHARD_OPTIM, FSDP_ERR_UNSUPPORTED,
                   "unit 'b' with SHARD_OPTIM in a model with quantized_params");
    v       = plain(FSDP_HYBRID_SHARD);
    v.group = fsdp_test_size();
    expect_refused(&v, FSDP_FULL_SHARD, FSDP_ERR_UNSUPPORTED, "use NO_SHARD, or one of the hybrid strategies");
}

static void a_strategy_comes_before_commit(void **state)
{
    const variant v = plain(FSDP_FULL_SHARD);
    small_model   m;

    (void)state;
    build(&m, &v);
    assert_int_equal(FSDP_OK, fsdp_model_commit(m.model));
    assert_int_equal(FSDP_ERR_STATE, fsdp_unit_set_strategy(m.units[0], FSDP_NO_SHARD));
    run_pass(&m, 0);
    small_model_close(&m);
}

static void ranks_that_disagree_on_a_unit_learn_of_it(void **state)
{
    variant     v = plain(FSDP_FULL_SHARD);
    small_model m;

    (void)state;
    v.own[2] = fsdp_test_rank() == 0 ? FSDP_NO_SHARD : FSDP_SHARD_OPTIM;
    build(&m, &v);
    if (fsdp_test_size() > 1) {
        assert_int_equal(FSDP_ERR_MISMATCH, fsdp_model_commit(m.model));
        assert_non_null(strstr(fsdp_last_error(m.ctx), "unit 'c'"));
        assert_int_equal(FSDP_OK, fsdp_unit_set_strategy(m.units[2], FSDP_NO_SHARD));
    }
    assert_int_equal(FSDP_OK, fsdp_model_commit(m.model));
    run_pass(&m, 0);
    small_model_close(&m);
}

static void a_hook_needs_all_gradients_whole(void **state)
{
    variant     v = plain(FSDP_NO_SHARD);
    small_model m;
    fsdp_hook  *hook;

    (void)state;
    v.own[2] = FSDP_FULL_SHARD;
    build(&m, &v);
    assert_int_equal(FSDP_OK, fsdp_hook_half(m.ctx, FSDP_BF16, &hook));
    assert_int_equal(FSDP_OK, fsdp_model_commit(m.model));
    assert_int_equal(FSDP_ERR_UNSUPPORTED, fsdp_model_set_hook(m.model, hook));
    assert_non_null(strstr(fsdp_last_error(m.ctx), "unit 'c' of this model is FULL_SHARD"));
    fsdp_hook_destroy(hook);
    small_model_close(&m);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_parameters_held_whole_change_no_bit),
        cmocka_unit_test(nor_in_groups_whatever_the_nodes),
        cmocka_unit_test(nor_what_quantised_gathers_bring),
        cmocka_unit_test(units_with_strategies_of_their_own_change_no_bit),
        cmocka_unit_test(the_budget_counts_them_to_the_byte),
        cmocka_unit_test(a_small_unit_costs_what_its_elements_say),
        cmocka_unit_test_setup_teardown(checkpoints_do_not_show_them, saved_folder_make, saved_folder_remove),
        cmocka_unit_test(values_can_be_set_from_outside),
        cmocka_unit_test(a_strategy_that_does_not_go_with_the_models_is_refused),
        cmocka_unit_test(a_strategy_comes_before_commit),
        cmocka_unit_test(ranks_that_disagree_on_a_unit_learn_of_it),
        cmocka_unit_test(a_hook_needs_all_gradients_whole),
    };

    return fsdp_test_main(argc, argv, tests, NULL, NULL);
}
