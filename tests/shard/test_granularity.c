/*
 * How finely tensors are divided between ranks shows in no bit: parameters, norms, files and exported tensors are those of a model
 * whose slices end anywhere. What differs is who holds what, which budgets say.
 */
#include <fnmatch.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fsdp/fsdp.h"
#include "shard/state/slices.h"
#include "tests/shard/checkpoint/saved_model.h"
#include "tests/support/mpi_test.h"

enum { UNITS = 3, TENSORS_OF_ALL = 10, MOST_OF_UNIT = 5, STEPS = 3, CHOICES = 4 };

static const size_t GRANULARITIES[CHOICES] = {FSDP_GRANULARITY_FLAT, 64, 100, FSDP_GRANULARITY_TENSOR};

#define MATRIX(rows, columns)                                                                                          \
    .n_dims = 2, .shape = {rows, columns}, .dtype = FSDP_F32, .fill = FSDP_FILL_NORMAL, .b = 0.1
#define VECTOR(count) .n_dims = 1, .shape = {count}, .dtype = FSDP_F32, .fill = FSDP_FILL_UNIFORM, .a = -1, .b = 1

/* Odd sizes; one that units share, one that is frozen, one without dimensions, and one gathered as it is. */
static const fsdp_tensor ALL[TENSORS_OF_ALL] = {
    {.name = "u0.weight", MATRIX(31, 67)},
    {.name = "u0.bias", VECTOR(67), .flags = FSDP_TENSOR_NO_WEIGHT_DECAY},
    {.name = "u0.scale", .n_dims = 0, .dtype = FSDP_F32, .fill = FSDP_FILL_CONSTANT, .a = 1.0},
    {.name = "u0.embedding", MATRIX(13, 50)},
    {.name = "u1.weight", MATRIX(17, 129)},
    {.name = "u1.frozen", VECTOR(333), .flags = FSDP_TENSOR_FROZEN},
    {.name = "u1.gain", VECTOR(5), .flags = FSDP_TENSOR_KEEP_DTYPE},
    {.name = "u1.cube", .n_dims = 3, .shape = {3, 5, 7}, .dtype = FSDP_F32, .fill = FSDP_FILL_NORMAL, .b = 1},
    {.name = "u2.weight", MATRIX(101, 3)},
    {.name = "u2.tied", .n_dims = 2, .shape = {13, 50}, .tied_to = "u0.embedding"},
};
static const size_t FIRST[UNITS + 1] = {0, 4, 8, TENSORS_OF_ALL};

typedef struct divided {
    fsdp_context   *ctx;
    fsdp_model     *model;
    fsdp_unit      *units[UNITS];
    fsdp_optimizer *optimizer, *rest;
} divided;

static size_t elements(size_t t)
{
    size_t n = 1;

    for (size_t d = 0; d < ALL[t].n_dims; d++) {
        n *= ALL[t].shape[d];
    }
    return n;
}

/* All tensors but the vectors are in the group. */
static void build(divided *m, fsdp_context *ctx, const fsdp_model_options *options, size_t granularity)
{
    fsdp_model_group group = FSDP_MODEL_GROUP_DEFAULT;

    *m                 = (divided){.ctx = ctx};
    group.granularity  = granularity;
    group.moment_dtype = options->moment_dtype;
    assert_int_equal(FSDP_OK, fsdp_model_create(ctx, options, &m->model));
    assert_int_equal(FSDP_OK, fsdp_model_add_group(m->model, "u?.[!bfg]*", &group));
    for (size_t u = 0; u < UNITS; u++) {
        char name[8];

        (void)snprintf(name, sizeof name, "u%zu", u);
        assert_int_equal(FSDP_OK, fsdp_unit_add(m->model, name, &ALL[FIRST[u]], FIRST[u + 1] - FIRST[u], &m->units[u]));
    }
}

static fsdp_optimizer *make_optimizer(divided *m, const char *group)
{
    fsdp_optimizer_options o;
    fsdp_optimizer        *optimizer;

    assert_int_equal(FSDP_OK, fsdp_optimizer_options_init(FSDP_ADAMW, &o));
    o.lr           = 0.01;
    o.weight_decay = 0.1;
    o.beta2        = 0.98;
    o.moment_dtype = m->model->options.moment_dtype;
    o.group        = group;
    assert_int_equal(FSDP_OK, fsdp_optimizer_create(m->model, &o, &optimizer));
    return optimizer;
}

static void open_divided(divided *m, fsdp_context *ctx, const fsdp_model_options *options, size_t granularity)
{
    build(m, ctx, options, granularity);
    assert_int_equal(FSDP_OK, fsdp_model_commit(m->model));
    m->optimizer = make_optimizer(m, "u?.[!bfg]*");
    m->rest      = make_optimizer(m, NULL);
}

/* Multiples of 1/512, which differ between ranks. */
static float gradient_of(int rank, size_t pass, size_t t, size_t i)
{
    return (float)(floor(1024.0 * fsdp_random_uniform((uint64_t)rank + 1, pass * TENSORS_OF_ALL + t, i)) / 512.0 - 1.0);
}

static void write_gradient(const divided *m, size_t u, size_t t, size_t pass)
{
    void *g = fsdp_unit_grad(m->units[u], t - FIRST[u]);

    for (size_t i = 0; i < elements(t); i++) {
        const float value = gradient_of(fsdp_test_rank(), pass, t, i);

        if (m->model->options.reduce_dtype == FSDP_F32) {
            ((float *)g)[i] = value;
        } else { /* of bf16, which is the upper half */
            uint32_t bits;

            memcpy(&bits, &value, sizeof bits);
            ((uint16_t *)g)[i] = (uint16_t)(bits >> 16);
        }
    }
}

static void run_pass(const divided *m, size_t pass)
{
    for (size_t u = 0; u < UNITS; u++) {
        assert_int_equal(FSDP_OK, fsdp_unit_begin_forward(m->units[u]));
        assert_int_equal(FSDP_OK, fsdp_unit_end_forward(m->units[u]));
    }
    for (size_t u = UNITS; u-- > 0;) {
        assert_int_equal(FSDP_OK, fsdp_unit_begin_backward(m->units[u]));
        for (size_t t = FIRST[u]; t < FIRST[u + 1]; t++) {
            if ((ALL[t].flags & FSDP_TENSOR_FROZEN) == 0) {
                write_gradient(m, u, t, pass);
            }
        }
        assert_int_equal(FSDP_OK, fsdp_unit_end_backward(m->units[u]));
    }
}

/* Two micro-batches a step. Returns the last norm. */
static double train(const divided *m, size_t first, size_t n)
{
    double norm = 0.0;

    for (size_t step = first; step < first + n; step++) {
        run_pass(m, 2 * step);
        run_pass(m, 2 * step + 1);
        assert_int_equal(FSDP_OK, fsdp_clip_grad_norm(m->model, 1.0, &norm));
        assert_int_equal(FSDP_OK, fsdp_clip_grad_value(m->model, 0.5));
        assert_int_equal(FSDP_OK, fsdp_optimizer_step(m->optimizer));
        assert_int_equal(FSDP_OK, fsdp_optimizer_step(m->rest));
    }
    return norm;
}

static uint64_t hash_of(const divided *m)
{
    uint64_t hash = 0;

    assert_int_equal(FSDP_OK, fsdp_model_hash(m->model, &hash));
    return hash;
}

static fsdp_model_options options_of(fsdp_strategy strategy, int group_size, int narrow)
{
    fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;

    options.strategy   = strategy;
    options.group_size = group_size;
    options.seed       = 77;
    if (narrow) {
        options.param_dtype  = FSDP_BF16;
        options.reduce_dtype = FSDP_BF16;
        options.moment_dtype = FSDP_BF16;
    }
    return options;
}

/* Calls `check` for each strategy, and those with groups for each size of these. */
static void for_each_strategy(fsdp_context *ctx, void (*check)(fsdp_context *ctx, const fsdp_model_options *options))
{
    for (int strategy = 0; strategy < FSDP_N_STRATEGIES; strategy++) {
        const bool hybrid = strategy == FSDP_HYBRID_SHARD || strategy == FSDP_HYBRID_SHARD_ZERO2;

        for (int group = hybrid ? 1 : 0; group <= (hybrid ? fsdp_test_size() : 0); group++) {
            for (int narrow = 0; narrow < 2 && (group == 0 || fsdp_test_size() % group == 0); narrow++) {
                const fsdp_model_options options = options_of((fsdp_strategy)strategy, group, narrow);

                check(ctx, &options);
            }
        }
    }
}

/* ---- training ---------------------------------------------------------------------------------------------------- */

static void check_training(fsdp_context *ctx, const fsdp_model_options *options)
{
    uint64_t initial[CHOICES], trained[CHOICES];
    double   norms[CHOICES];

    for (int c = 0; c < CHOICES; c++) {
        divided m;

        open_divided(&m, ctx, options, GRANULARITIES[c]);
        initial[c] = hash_of(&m);
        norms[c]   = train(&m, 0, STEPS);
        trained[c] = hash_of(&m);
        fsdp_model_destroy(m.model);
        if (initial[c] != initial[0] || trained[c] != trained[0] || memcmp(&norms[c], &norms[0], sizeof(double)) != 0) {
            fail_msg(
                "%s in groups of %d, %s, granularity %zu: hashes %llx and %llx, norm %a; flat: %llx and %llx, norm %a",
                fsdp_strategy_name(options->strategy), options->group_size, fsdp_dtype_name(options->param_dtype),
                GRANULARITIES[c], (unsigned long long)initial[c], (unsigned long long)trained[c], norms[c],
                (unsigned long long)initial[0], (unsigned long long)trained[0], norms[0]);
        }
    }
}

static void training_has_the_same_bits_in_every_granularity(void **state)
{
    for_each_strategy(*state, check_training);
}

/* ---- layouts ----------------------------------------------------------------------------------------------------- */

/* Of all ranks, each element of a dealt tensor is on the same one. */
static void whole_tensors_are_on_one_rank(void **state)
{
    const fsdp_model_options options = options_of(FSDP_FULL_SHARD, 0, 0);
    divided                  m;

    open_divided(&m, *state, &options, FSDP_GRANULARITY_TENSOR);
    for (size_t u = 0; u < UNITS; u++) {
        for (size_t i = 0; i < m.units[u]->n_tensors; i++) {
            const fsdpi_tensor *tensor = &m.units[u]->tensors[i];
            const fsdpi_flat   *flat   = tensor->owner->member->flat;

            assert_true((flat->owners != NULL) == (fnmatch("u?.[!bfg]*", tensor->owner->name, 0) == 0));
            if (flat->owners == NULL) {
                continue;
            }
            int holders = 0;
            for (int slice = 0; slice < fsdp_test_size(); slice++) {
                const size_t begin = fsdpi_slice_begin(flat, slice), end = begin + fsdpi_slice_count(flat, slice);

                assert_true(tensor->offset >= end || tensor->offset + tensor->count <= begin ||
                            (tensor->offset >= begin && tensor->offset + tensor->count <= end));
                holders += tensor->offset >= begin && tensor->offset < end;
            }
            assert_int_equal(1, holders);
        }
    }
    fsdp_model_destroy(m.model);
}

static void blocks_are_never_divided(void **state)
{
    const fsdp_model_options options = options_of(FSDP_FULL_SHARD, 0, 1);
    divided                  m;

    open_divided(&m, *state, &options, 100);
    for (const fsdpi_flat *flat = m.model->flats; flat != NULL; flat = flat->next) {
        for (size_t k = 0; k < flat->n_tensors && flat->group != NULL; k++) {
            assert_int_equal(0, flat->tensors[k]->offset % 100);
            assert_int_equal(0, flat->layout.shard % 100);
        }
    }
    fsdp_model_destroy(m.model);
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* The largest rank holds what the budget says, no rank holds more, and the mean is what the budget says of it. */
static void check_budget(fsdp_context *given, const fsdp_model_options *options)
{
    (void)given;
    for (int c = 0; c < CHOICES; c++) {
        fsdp_context *ctx;
        divided       m;
        fsdp_budget   budget;
        fsdp_memory   memory;

        assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_WORLD, NULL, &ctx));
        open_divided(&m, ctx, options, GRANULARITIES[c]);
        (void)train(&m, 0, 1);
        assert_int_equal(FSDP_OK, fsdp_model_budget(m.model, options->strategy, 0, FSDP_ADAMW, &budget));
        assert_int_equal(FSDP_OK, fsdp_memory_usage(ctx, &memory));
        uint64_t most = memory.current_total, sum = memory.current_total;
        assert_int_equal(MPI_SUCCESS, MPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD));
        assert_int_equal(MPI_SUCCESS, MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD));
        if (memory.current_total > budget.total || most != budget.total) {
            fail_msg("%s, granularity %zu: the budget is %zu, and a rank holds %zu, the largest %zu",
                     fsdp_strategy_name(options->strategy), GRANULARITIES[c], budget.total, memory.current_total,
                     (size_t)most);
        }
        const double mean = (double)sum / fsdp_test_size();
        if (fabs(mean - (double)budget.mean_total) > 2048.0 || budget.mean_total > budget.total) {
            fail_msg("%s, granularity %zu: the mean rank holds %g, and the budget says %zu of %zu",
                     fsdp_strategy_name(options->strategy), GRANULARITIES[c], mean, budget.mean_total, budget.total);
        }
        fsdp_model_destroy(m.model);
        assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
    }
}

static void the_budget_is_that_of_the_largest_rank_and_tells_the_mean(void **state)
{
    for_each_strategy(*state, check_budget);
}

/* On any rank of many: the largest of a million has one tensor, and the mean next to nothing of it. */
static void budgets_of_a_million_ranks_need_none_of_them(void **state)
{
    const fsdp_model_options options = options_of(FSDP_FULL_SHARD, 0, 0);
    divided                  m;
    fsdp_budget              budget;

    build(&m, *state, &options, FSDP_GRANULARITY_TENSOR);
    assert_int_equal(FSDP_OK, fsdp_model_budget(m.model, FSDP_FULL_SHARD, 1000000, FSDP_ADAMW, &budget));
    assert_true(budget.bytes[FSDP_MEMORY_OPTIMIZER] >= 8 * 17 * 129);
    assert_true(budget.total - budget.mean_total >= 16 * 17 * 129 - 4096);
    fsdp_model_destroy(m.model);
}

static void a_limit_below_a_whole_tensor_names_it_and_its_rank(void **state)
{
    fsdp_model_options options = options_of(FSDP_FULL_SHARD, 0, 0);
    fsdp_config        config;
    fsdp_context      *ctx;
    divided            m;

    (void)state;
    fsdp_config_init(&config);
    config.log_level = FSDP_LOG_OFF;
    assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_WORLD, &config, &ctx));
    options.memory_limit = 1000;
    build(&m, ctx, &options, FSDP_GRANULARITY_TENSOR);
    assert_int_equal(FSDP_ERR_ARG, fsdp_model_commit(m.model));
    assert_says(ctx, fsdp_test_size() == 2 ? "; rank 1 has whole tensor 'u0.weight' of 2077 elements"
                                           : "; rank 0 has whole tensor 'u");
    fsdp_model_destroy(m.model);
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

static void a_node_without_room_for_a_whole_tensor_names_it_and_its_rank(void **state)
{
    const fsdp_model_options options = options_of(FSDP_FULL_SHARD, 0, 0);
    fsdp_config              config;
    fsdp_context            *ctx;
    divided                  m;

    (void)state;
    fsdp_config_init(&config);
    config.log_level   = FSDP_LOG_OFF;
    config.node_memory = 1000;
    assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_WORLD, &config, &ctx));
    build(&m, ctx, &options, FSDP_GRANULARITY_TENSOR);
    assert_int_equal(FSDP_ERR_MEMORY, fsdp_model_commit(m.model));
    assert_says(ctx, "; rank 0 has whole tensor 'u1.weight' of 2193 elements");
    fsdp_model_destroy(m.model);
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

static void whole_tensors_are_not_quantised(void **state)
{
    fsdp_model_options options = options_of(FSDP_FULL_SHARD, 0, 0);
    fsdp_model_group   group   = FSDP_MODEL_GROUP_DEFAULT;
    fsdp_config        config;
    fsdp_context      *ctx;
    fsdp_model        *model;

    (void)state;
    fsdp_config_init(&config);
    config.log_level = FSDP_LOG_OFF;
    assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_WORLD, &config, &ctx));
    options.quantized_params = 1;
    group.granularity        = FSDP_GRANULARITY_TENSOR;
    assert_int_equal(FSDP_OK, fsdp_model_create(ctx, &options, &model));
    assert_int_equal(FSDP_ERR_UNSUPPORTED, fsdp_model_add_group(model, "*.weight", &group));
    assert_says(ctx, "'*.weight': whole tensors cannot be gathered quantised");
    fsdp_model_destroy(model);
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

/* ---- files and single tensors ------------------------------------------------------------------------------------ */

/* Saved by one after two steps, loaded into the other, which ends where the first would have. */
static void check_files(fsdp_context *ctx, size_t saver, size_t loader, fsdp_strategy from, fsdp_strategy to)
{
    const fsdp_model_options first = options_of(from, 0, 0), second = options_of(to, 0, 0);
    fsdp_checkpoint_options  o     = FSDP_CHECKPOINT_OPTIONS_DEFAULT;
    fsdp_checkpoint_state    known = {0};
    fsdp_checkpoint         *checkpoint;
    divided                  a, b;

    open_divided(&a, ctx, &first, saver);
    (void)train(&a, 0, 2);
    assert_int_equal(FSDP_OK, fsdp_checkpoint_open(a.model, a.optimizer, saved_folder, &o, &checkpoint));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_save(checkpoint, &known));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_close(checkpoint));
    (void)train(&a, 2, 1);
    const uint64_t expected = hash_of(&a);
    fsdp_model_destroy(a.model);

    open_divided(&b, ctx, &second, loader);
    assert_int_equal(FSDP_OK, fsdp_checkpoint_load(b.model, b.optimizer, saved_folder, NULL, &known));
    (void)train(&b, 2, 1);
    if (hash_of(&b) != expected) {
        fail_msg("saved with granularity %zu, loaded with %zu: other parameters", saver, loader);
    }
    fsdp_model_destroy(b.model);
}

static void files_do_not_depend_on_granularity(void **state)
{
    for (int a = 0; a < CHOICES; a++) {
        for (int b = 0; b < CHOICES; b++) {
            check_files(*state, GRANULARITIES[a], GRANULARITIES[b], FSDP_FULL_SHARD,
                        b % 2 == 0 ? FSDP_SHARD_GRAD_OP : FSDP_NO_SHARD);
        }
    }
}

static void check_transfer(fsdp_context *ctx, const fsdp_model_options *options)
{
    const int root = fsdp_test_size() - 1;
    divided   plain, whole;

    open_divided(&plain, ctx, options, FSDP_GRANULARITY_FLAT);
    open_divided(&whole, ctx, options, FSDP_GRANULARITY_TENSOR);
    for (size_t t = 0; t < TENSORS_OF_ALL; t++) {
        const size_t bytes = elements(t) * sizeof(float);
        float       *one = malloc(bytes), *other = malloc(bytes);

        assert_int_equal(FSDP_OK, fsdp_tensor_export_to_all(plain.model, ALL[t].name, one, bytes));
        assert_int_equal(FSDP_OK, fsdp_tensor_export_to_all(whole.model, ALL[t].name, other, bytes));
        assert_memory_equal(one, other, bytes);
        for (size_t i = 0; i < elements(t); i++) {
            one[i] = (float)i;
        }
        assert_int_equal(FSDP_OK, fsdp_tensor_import(plain.model, ALL[t].name, root, one, bytes)); /* it may be tied */
        assert_int_equal(FSDP_OK, fsdp_tensor_import(whole.model, ALL[t].name, root, one, bytes));
        memset(other, 0, bytes);
        assert_int_equal(FSDP_OK, fsdp_tensor_export(whole.model, ALL[t].name, 0, other, bytes));
        if (fsdp_test_rank() == 0) {
            assert_memory_equal(one, other, bytes);
        }
        free(one);
        free(other);
    }
    fsdp_model_destroy(plain.model);
    fsdp_model_destroy(whole.model);
}

static void single_tensors_are_exported_and_imported(void **state)
{
    for_each_strategy(*state, check_transfer);
}

/* ---- hooks ------------------------------------------------------------------------------------------------------- */

/* fsdp_model_hash() is an error where replicas differ. What a hook rounds is near what is not rounded: it was trained. */
static void check_hook(fsdp_context *ctx, int which, int group_size)
{
    const fsdp_power_sgd_options rank_2 = {.size = sizeof rank_2, .rank = 2, .min_ratio = 1.0, .seed = 1};
    const fsdp_model_options options    = options_of(group_size > 0 ? FSDP_HYBRID_SHARD : FSDP_NO_SHARD, group_size, 0);
    fsdp_hook               *hook;
    divided                  m;

    assert_int_equal(FSDP_OK, which == 0 ? fsdp_hook_int8(ctx, NULL, &hook) : fsdp_hook_power_sgd(ctx, &rank_2, &hook));
    open_divided(&m, ctx, &options, FSDP_GRANULARITY_TENSOR);
    const uint64_t before = hash_of(&m);
    assert_int_equal(FSDP_OK, fsdp_model_set_hook(m.model, hook));
    const double norm = train(&m, 0, STEPS);
    assert_true(isfinite(norm) && norm > 0.0);
    assert_true(hash_of(&m) != before);
    fsdp_model_destroy(m.model);
    fsdp_hook_destroy(hook);
}

static void hooks_see_whole_tensors(void **state)
{
    for (int which = 0; which < 2; which++) {
        for (int group = 0; group <= fsdp_test_size(); group++) {
            if (group == 0 || fsdp_test_size() % group == 0) {
                check_hook(*state, which, group);
            }
        }
    }
}

/* ---- bad calls --------------------------------------------------------------------------------------------------- */

/* The rank that calls too early tells the others, although what they hold differs. */
static void a_bad_pass_on_one_rank_fails_on_every_rank(void **state)
{
    const fsdp_model_options options = options_of(FSDP_FULL_SHARD, 0, 0);
    fsdp_config              config;
    fsdp_context            *ctx;
    divided                  m;

    (void)state;
    fsdp_config_init(&config);
    config.log_level = FSDP_LOG_OFF;
    assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_WORLD, &config, &ctx));
    open_divided(&m, ctx, &options, FSDP_GRANULARITY_TENSOR);
    assert_int_equal(FSDP_OK, fsdp_unit_begin_backward(m.units[0]));
    for (size_t t = FIRST[0]; t < FIRST[1]; t++) {
        write_gradient(&m, 0, t, 0);
    }
    if (fsdp_test_rank() == 0) {
        assert_int_equal(FSDP_OK, fsdp_unit_end_backward(m.units[0]));
        (void)fsdp_unit_begin_forward(m.units[0]);
        const fsdp_status status = fsdp_unit_begin_forward(m.units[0]); /* open already */
        assert_int_equal(FSDP_ERR_STATE, status);
    } else {
        assert_int_equal(FSDP_OK, fsdp_unit_end_backward(m.units[0]));
        (void)fsdp_unit_begin_forward(m.units[0]);
        (void)fsdp_unit_end_forward(m.units[0]);
        assert_int_equal(FSDP_ERR_STATE, fsdp_unit_begin_forward(m.units[0]));
    }
    fsdp_model_destroy(m.model);
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

/* ---- small and quantised ------------------------------------------------------------------------------------------- */

/* What the first unit's views show, as every rank sees them. */
static void read_quantised(int64_t small_bytes, size_t granularity, float *values)
{
    fsdp_model_options options = options_of(FSDP_FULL_SHARD, 0, 0);
    fsdp_config        config;
    fsdp_context      *ctx;
    divided            m;

    fsdp_config_init(&config);
    config.small_bytes       = small_bytes;
    options.quantized_params = 1;
    assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_WORLD, &config, &ctx));
    open_divided(&m, ctx, &options, granularity);
    assert_int_equal(FSDP_OK, fsdp_unit_begin_forward(m.units[0]));
    for (size_t t = FIRST[0]; t < FIRST[1]; t++) {
        memcpy(values, fsdp_unit_param(m.units[0], t - FIRST[0]), elements(t) * sizeof *values);
        values += elements(t);
    }
    assert_int_equal(FSDP_OK, fsdp_unit_end_forward(m.units[0]));
    fsdp_model_destroy(m.model);
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

/* Scales are those of the same elements, wherever slices end. */
static void quantised_values_do_not_depend_on_the_threshold(void **state)
{
    enum { MOST = 4096 };
    static float sliced[MOST], whole[MOST];

    (void)state;
    for (int c = 0; GRANULARITIES[c] != FSDP_GRANULARITY_TENSOR; c++) {
        read_quantised(0, GRANULARITIES[c], sliced);
        read_quantised((int64_t)1 << 40, GRANULARITIES[c], whole);
        assert_memory_equal(sliced, whole, sizeof sliced);
    }
}

static int setup(void **state)
{
    return saved_folder_make(state) != 0 || fsdp_test_open_context(state) != 0;
}

static int teardown(void **state)
{
    return fsdp_test_close_context(state) != 0 || saved_folder_remove(state) != 0;
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(training_has_the_same_bits_in_every_granularity),
        cmocka_unit_test(whole_tensors_are_on_one_rank),
        cmocka_unit_test(blocks_are_never_divided),
        cmocka_unit_test(the_budget_is_that_of_the_largest_rank_and_tells_the_mean),
        cmocka_unit_test(budgets_of_a_million_ranks_need_none_of_them),
        cmocka_unit_test(a_limit_below_a_whole_tensor_names_it_and_its_rank),
        cmocka_unit_test(a_node_without_room_for_a_whole_tensor_names_it_and_its_rank),
        cmocka_unit_test(whole_tensors_are_not_quantised),
        cmocka_unit_test(files_do_not_depend_on_granularity),
        cmocka_unit_test(single_tensors_are_exported_and_imported),
        cmocka_unit_test(quantised_values_do_not_depend_on_the_threshold),
        cmocka_unit_test(hooks_see_whole_tensors),
        cmocka_unit_test(a_bad_pass_on_one_rank_fails_on_every_rank),
    };

    return fsdp_test_main(argc, argv, tests, setup, teardown);
}
