/**
 * @file
 * Models on device memory against the same models on the host: every strategy, type, prefetch, way to accumulate and
 * optimizer, on the GPU and offloaded, with the same bits of losses, norms and parameters after some steps.
 */
#include <hip/hip_runtime_api.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "fsdp/checkpoint.h"
#include "fsdp/device.h"
#include "fsdp/hook.h"
#include "fsdp/loss_scaler.h"
#include "fsdp/optimizer.h"
#include "fsdp/tensor_io.h"
#include "kernels/kernels.h"
#include "tests/doubles/hip/double.h"
#include "tests/doubles/hip/job.h"
#include "tests/shard/checkpoint/saved_model.h"
#include "tests/shard/small_model.h"

enum { MOST_STEPS = 3, N_PREFETCH = 2, MOST_LOSSES = 16 };

/* Pieces of 256 elements, so that small models go through several. */
enum { STAGING = 16384 };

static const int     prefetch_of[N_PREFETCH] = {0, 2};
static fsdp_context *host, *device[N_PREFETCH];
static hipStream_t   stream;

static fsdp_context *open_context(fsdp_device_use use, int prefetch)
{
    fsdp_context *ctx;
    fsdp_config   config;

    fsdp_config_init(&config);
    config.device        = use;
    config.prefetch      = prefetch;
    config.staging_bytes = STAGING;
    assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_WORLD, &config, &ctx));
    return ctx;
}

static int open_all(void **state)
{
    if (hip_double_join_job(state) != 0) {
        return -1;
    }
    host = open_context(FSDP_DEVICE_HOST, 1);
    assert_int_equal(hipSuccess, hipStreamCreateWithPriority(&stream, hipStreamNonBlocking, 0));
    for (int i = 0; i < N_PREFETCH; i++) {
        device[i] = open_context(FSDP_DEVICE_GPU, prefetch_of[i]);
        assert_int_equal(FSDP_OK, fsdp_stream_set(device[i], stream));
    }
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    for (int i = 0; i < N_PREFETCH; i++) {
        assert_int_equal(FSDP_OK, fsdp_finalize(device[i]));
    }
    assert_int_equal(FSDP_OK, fsdp_finalize(host));
    return hipStreamDestroy(stream) == hipSuccess ? 0 : -1;
}

/* ---- the program's own compute: by the host, on what a stream brings and takes --------------------------------------- */

static fsdp_placement placed; /* the model that is computed with */

static void move(void *to, const void *from, size_t bytes)
{
    if (placed == FSDP_ON_HOST) {
        memcpy(to, from, bytes);
    } else {
        assert_int_equal(hipSuccess, hipMemcpyAsync(to, from, bytes, hipMemcpyDefault, stream));
    }
}

static void finish(void)
{
    assert_int_equal(hipSuccess, hipStreamSynchronize(stream));
}

/* Values of one tensor, of a type, as they are in a view. */
typedef union values {
    float    f32[MOST_ELEMENTS];
    uint16_t half[MOST_ELEMENTS];
} values;

static values seen[N_TENSORS], given[N_TENSORS]; /* the latter until the stream has taken them */

static void look(small_model *m, size_t u, fsdp_dtype dtype)
{
    for (size_t t = FIRST_TENSOR[u]; t < FIRST_TENSOR[u + 1]; t++) {
        move(&seen[t], fsdp_unit_param(m->units[u], t - FIRST_TENSOR[u]), tensor_elements(t) * fsdp_dtype_size(dtype));
    }
}

static double loss_of(fsdp_dtype dtype)
{
    double loss = 0.0;

    finish();
    for (size_t t = 0; t < N_TENSORS; t++) {
        fsdpi_exact_sum sum = {0};

        fsdpi_kernels_scalar.sum_squares(&sum, &seen[t], tensor_elements(t), dtype);
        loss += fsdpi_exact_sum_value(&sum);
    }
    return loss;
}

static void give_gradients(small_model *m, size_t u, int pass, double scale, const fsdp_model_options *o)
{
    static float w[MOST_ELEMENTS], g[MOST_ELEMENTS];

    look(m, u, o->param_dtype);
    finish();
    for (size_t t = FIRST_TENSOR[u]; t < FIRST_TENSOR[u + 1]; t++) {
        const size_t n = tensor_elements(t);

        fsdpi_kernels_scalar.cast(w, FSDP_F32, &seen[t], o->param_dtype, n);
        for (size_t i = 0; i < n; i++) {
            g[i] = (float)scale * gradient_element(fsdp_rank(m->ctx), pass, t, i, w[i]);
        }
        fsdpi_kernels_scalar.cast(&given[t], o->reduce_dtype, g, FSDP_F32, n);
        move(fsdp_unit_grad(m->units[u], t - FIRST_TENSOR[u]), &given[t], n * fsdp_dtype_size(o->reduce_dtype));
    }
}

/* One forward and one backward pass of all units; returns the loss. */
static double train(small_model *m, int pass, double scale, const fsdp_model_options *o)
{
    for (size_t u = 0; u < N_UNITS; u++) {
        assert_int_equal(FSDP_OK, fsdp_unit_begin_forward(m->units[u]));
        look(m, u, o->param_dtype);
        assert_int_equal(FSDP_OK, fsdp_unit_end_forward(m->units[u]));
    }
    const double loss = loss_of(o->param_dtype);
    for (size_t u = N_UNITS; u-- > 0;) {
        assert_int_equal(FSDP_OK, fsdp_unit_begin_backward(m->units[u]));
        give_gradients(m, u, pass, scale, o);
        assert_int_equal(FSDP_OK, fsdp_unit_end_backward(m->units[u]));
    }
    return loss;
}

/* ---- both sides ------------------------------------------------------------------------------------------------------ */

typedef struct variant {
    fsdp_model_options  options;
    int                 accumulate;
    fsdp_optimizer_kind kind;
    fsdp_dtype          moment_dtype;
    int                 clips, scales; /* by norm and value; by a loss scaler */
    int                 hook;          /* number of one; 0: none */
} variant;

typedef struct outcome {
    double   losses[MOST_LOSSES];
    double   norms[2 * MOST_STEPS];
    uint64_t hash;
} outcome;

static variant usual(void)
{
    const variant v = {
        .options = FSDP_MODEL_OPTIONS_DEFAULT, .accumulate = 1, .kind = FSDP_ADAMW, .moment_dtype = FSDP_F32};

    return v;
}

static void clip(small_model *m, int step, outcome *found)
{
    assert_int_equal(FSDP_OK, fsdp_clip_grad_norm(m->model, 1.0, &found->norms[2 * step]));
    assert_int_equal(FSDP_OK, fsdp_clip_grad_norm_inf(m->model, 0.02, &found->norms[2 * step + 1]));
    assert_int_equal(FSDP_OK, fsdp_clip_grad_value(m->model, 0.01));
}

static void take_step(small_model *m, const variant *v, int step, fsdp_optimizer *optimizer, fsdp_loss_scaler *scaler,
                      outcome *found)
{
    int finite = 1;

    if (v->scales) {
        assert_int_equal(FSDP_OK, fsdp_loss_scaler_unscale(scaler, &finite));
        assert_int_equal(step != 1, finite);
    }
    if (v->clips && finite) {
        clip(m, step, found);
    }
    assert_int_equal(FSDP_OK,
                     v->scales ? fsdp_loss_scaler_step(scaler, optimizer, NULL) : fsdp_optimizer_step(optimizer));
}

static void run_steps(small_model *m, const variant *v, outcome *found)
{
    fsdp_loss_scaler_options scaling = FSDP_LOSS_SCALER_OPTIONS_DEFAULT;
    fsdp_loss_scaler        *scaler  = NULL;
    fsdp_optimizer_options   o;
    fsdp_optimizer          *optimizer;
    int                      pass = 0;

    assert_int_equal(FSDP_OK, fsdp_optimizer_options_init(v->kind, &o));
    o.beta2        = 0.99;
    o.moment_dtype = v->moment_dtype;
    assert_int_equal(FSDP_OK, fsdp_optimizer_create(m->model, &o, &optimizer));
    scaling.allow_any_dtype = 1;
    scaling.initial_scale   = 8.0;
    if (v->scales) {
        assert_int_equal(FSDP_OK, fsdp_loss_scaler_create(m->model, &scaling, &scaler));
    }
    for (int step = 0; step < (v->scales ? MOST_STEPS : 2); step++) {
        const double scale = v->scales && step == 1 ? (double)INFINITY : fsdp_loss_scaler_scale(scaler);

        for (int k = 0; k < v->accumulate; k++, pass++) {
            if (v->options.local_gradients) {
                assert_int_equal(FSDP_OK, fsdp_model_set_sync(m->model, k + 1 == v->accumulate));
            }
            found->losses[pass] = train(m, pass, v->scales ? scale : 1.0, &v->options);
        }
        take_step(m, v, step, optimizer, scaler, found);
    }
}

/* ---- hooks --------------------------------------------------------------------------------------------------------------- */

enum { N_HOOKS = 4 };

static fsdp_status halve(void *state, const fsdp_gradient *gradient)
{
    (void)state;
    for (size_t i = 0; i < gradient->count; i++) {
        gradient->values[i] *= 0.5F;
    }
    return FSDP_OK;
}

static fsdp_status add_to_all(void *term, const fsdp_gradient *gradient)
{
    for (size_t i = 0; i < gradient->count; i++) {
        gradient->values[i] += *(const float *)term;
    }
    return FSDP_OK;
}

/* From number 1; NULL for 0. */
static fsdp_hook *set_hook(small_model *m, int number)
{
    static float                        term      = 0.125F;
    static const fsdp_power_sgd_options rank_2    = {.size = sizeof rank_2, .rank = 2, .min_ratio = 1.0, .seed = 1};
    const fsdp_hook_callbacks           callbacks = {
                  .size = sizeof callbacks, .before = halve, .after = add_to_all, .state = &term};
    fsdp_hook *hook = NULL;

    if (number == 0) {
        return NULL;
    }
    assert_int_equal(FSDP_OK, number == 1   ? fsdp_hook_half(m->ctx, FSDP_BF16, &hook)
                              : number == 2 ? fsdp_hook_int8(m->ctx, NULL, &hook)
                              : number == 3 ? fsdp_hook_power_sgd(m->ctx, &rank_2, &hook)
                                            : fsdp_hook_custom(m->ctx, &callbacks, &hook));
    assert_int_equal(FSDP_OK, fsdp_model_set_hook(m->model, hook));
    return hook;
}

static void run(fsdp_context *ctx, const variant *v, fsdp_placement placement, outcome *found)
{
    fsdp_model_options options = v->options;
    small_model        m;

    *found            = (outcome){.hash = 0};
    placed            = placement;
    options.placement = placement;
    options.seed      = 77;
    small_model_create(&m, ctx, &options);
    assert_int_equal(FSDP_OK, fsdp_model_commit(m.model));
    fsdp_hook *hook = set_hook(&m, v->hook);
    run_steps(&m, v, found);
    assert_int_equal(FSDP_OK, fsdp_model_hash(m.model, &found->hash));
    fsdp_model_destroy(m.model);
    fsdp_hook_destroy(hook);
}

static void expect_same(const variant *v, int prefetch, fsdp_placement placement, const outcome *expected,
                        const outcome *found)
{
    if (memcmp(expected, found, sizeof *found) != 0) {
        const fsdp_model_options *o = &v->options;

        fail_msg("%s, %s parameters, %s reduced, accumulate %d%s, prefetch %d, placement %d, optimizer %d, hook %d: %s "
                 "differ",
                 fsdp_strategy_name(o->strategy), fsdp_dtype_name(o->param_dtype), fsdp_dtype_name(o->reduce_dtype),
                 v->accumulate, o->local_gradients ? " locally" : "", prefetch, (int)placement, (int)v->kind, v->hook,
                 expected->hash != found->hash ? "parameters" : "losses or norms");
    }
}

enum { N_PLACES = 2 * N_PREFETCH };

/* With one prefetch and placement; over N_PLACES numbers in a row with all. */
static void compare(const variant *v, int number)
{
    const int            i         = number / 2 % N_PREFETCH;
    const fsdp_placement placement = number % 2 == 0 ? FSDP_ON_DEVICE : FSDP_ON_DEVICE_OFFLOADED;
    outcome              expected, found;

    run(host, v, FSDP_ON_HOST, &expected);
    run(device[i], v, placement, &found);
    expect_same(v, prefetch_of[i], placement, &expected, &found);
}

/* Groups that divide the ranks. */
static void set_strategy(variant *v, int strategy)
{
    const bool equal = fsdp_size(host) == fsdp_node_count(host) * fsdp_node_size(host);

    v->options.strategy   = (fsdp_strategy)strategy;
    v->options.group_size = equal && fsdp_size(host) % fsdp_node_count(host) == 0 ? 0 : 1;
}

/* Programs on one more rank do the same with another prefetch and placement. */
static void compare_strategies(fsdp_dtype param_dtype, fsdp_dtype reduce_dtype, int number)
{
    variant v = usual();

    number += fsdp_test_size() + fsdp_node_count(host);
    v.options.param_dtype  = param_dtype;
    v.options.reduce_dtype = reduce_dtype;
    for (int strategy = 0; strategy < FSDP_N_STRATEGIES; strategy++) {
        set_strategy(&v, strategy);
        v.accumulate              = 1;
        v.options.local_gradients = 0;
        compare(&v, number++);
        v.accumulate = 2;
        compare(&v, number++);
        v.options.local_gradients = 1;
        compare(&v, number++);
    }
}

/* ---- tests ----------------------------------------------------------------------------------------------------------- */

static void every_strategy_in_f32(void **state)
{
    (void)state;
    compare_strategies(FSDP_F32, FSDP_F32, 0);
}

static void every_strategy_with_parameters_in_bf16(void **state)
{
    (void)state;
    compare_strategies(FSDP_BF16, FSDP_F32, 1);
}

static void every_strategy_in_16_bits(void **state)
{
    (void)state;
    compare_strategies(FSDP_BF16, FSDP_BF16, 2);
    compare_strategies(FSDP_F16, FSDP_F16, 3);
}

static void parameters_quantised_in_every_place(void **state)
{
    static const fsdp_dtype dtypes[] = {FSDP_F32, FSDP_BF16, FSDP_F16};
    variant                 v        = usual();

    (void)state;
    v.options.strategy         = FSDP_FULL_SHARD;
    v.options.quantized_params = 1;
    for (int number = 0; number < N_PLACES; number++) {
        v.options.param_dtype = dtypes[number % 3];
        v.accumulate          = 1 + number % 2;
        compare(&v, number);
    }
}

static void every_optimizer_in_every_place(void **state)
{
    variant v = usual();

    (void)state;
    for (int kind = 0; kind < FSDP_CUSTOM; kind++) {
        v.kind = (fsdp_optimizer_kind)kind;
        for (int number = 0; number < N_PLACES; number++) {
            v.moment_dtype = number % 4 == 1 || number % 4 == 2 ? FSDP_BF16 : FSDP_F32;
            compare(&v, number);
        }
    }
}

static void clipping_loss_scaling_and_divisors(void **state)
{
    variant v = usual();

    (void)state;
    v.clips                    = 1;
    v.scales                   = 1;
    v.options.gradient_divisor = 13.0;
    for (int strategy = 0; strategy < FSDP_N_STRATEGIES; strategy++) {
        set_strategy(&v, strategy);
        compare(&v, strategy);
    }
}

static void every_hook_gives_the_bits_of_the_host(void **state)
{
    variant v = usual();

    (void)state;
    v.options.group_size = 1; /* so that all of a gradient goes through the hook */
    for (v.hook = 1; v.hook <= N_HOOKS; v.hook++) {
        v.options.strategy = FSDP_NO_SHARD;
        v.accumulate       = 1;
        compare(&v, v.hook);
        v.options.strategy = FSDP_HYBRID_SHARD;
        v.accumulate       = 2;
        compare(&v, v.hook + 1);
    }
}

/* ---- one tensor after the other ---------------------------------------------------------------------------------------- */

static void values_go_in_and_out(fsdp_context *ctx, fsdp_placement placement, int strategy)
{
    const size_t       n    = tensor_elements(0);
    const int          root = fsdp_test_size() - 1;
    static float       sent[MOST_ELEMENTS], found[MOST_ELEMENTS];
    fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;
    variant            v       = usual();
    small_model        m;

    for (size_t i = 0; i < n; i++) {
        sent[i] = (float)i + 0.5F;
    }
    placed            = placement;
    options.placement = placement;
    set_strategy(&v, strategy);
    options.strategy   = v.options.strategy;
    options.group_size = v.options.group_size;
    small_model_create(&m, ctx, &options);
    assert_int_equal(FSDP_OK, fsdp_model_commit(m.model));
    assert_int_equal(FSDP_OK, fsdp_tensor_import(m.model, "a.weight", 0, sent, n * sizeof(float)));
    memset(found, 0, sizeof found);
    assert_int_equal(FSDP_OK, fsdp_tensor_export(m.model, "a.weight", root, found, n * sizeof(float)));
    if (fsdp_test_rank() == root) {
        assert_memory_equal(sent, found, n * sizeof(float));
    }
    assert_int_equal(FSDP_OK, fsdp_unit_begin_forward(m.units[0]));
    move(found, fsdp_unit_param(m.units[0], 0), n * sizeof(float));
    assert_int_equal(FSDP_OK, fsdp_unit_end_forward(m.units[0]));
    finish();
    assert_memory_equal(sent, found, n * sizeof(float));
    fsdp_model_destroy(m.model);
}

static void tensors_are_imported_and_exported(void **state)
{
    (void)state;
    for (int strategy = 0; strategy < FSDP_N_STRATEGIES; strategy++) {
        values_go_in_and_out(device[1], strategy % 2 == 0 ? FSDP_ON_DEVICE : FSDP_ON_DEVICE_OFFLOADED, strategy);
    }
}

enum { WIDE = 300 };

/* Frozen, of its own type, ignored, ordinary, and tied to the last. */
static fsdp_model *commit_mixed_model(fsdp_context *ctx, fsdp_placement placement, fsdp_unit *units[2])
{
    static const fsdp_tensor first[] = {
        {.name   = "frozen",
         .dtype  = FSDP_F32,
         .n_dims = 1,
         .shape  = {WIDE},
         .fill   = FSDP_FILL_NORMAL,
         .b      = 1,
         .flags  = FSDP_TENSOR_FROZEN},
        {.name   = "kept",
         .dtype  = FSDP_F32,
         .n_dims = 1,
         .shape  = {WIDE},
         .fill   = FSDP_FILL_NORMAL,
         .b      = 1,
         .flags  = FSDP_TENSOR_KEEP_DTYPE},
        {.name   = "table",
         .dtype  = FSDP_F32,
         .n_dims = 1,
         .shape  = {WIDE},
         .fill   = FSDP_FILL_UNIFORM,
         .b      = 1,
         .flags  = FSDP_TENSOR_IGNORED},
        {.name = "plain", .dtype = FSDP_F32, .n_dims = 1, .shape = {WIDE}, .fill = FSDP_FILL_NORMAL, .b = 1}};
    static const fsdp_tensor second  = {.name = "again", .n_dims = 1, .shape = {WIDE}, .tied_to = "plain"};
    fsdp_model_options       options = FSDP_MODEL_OPTIONS_DEFAULT;
    fsdp_model              *model;

    placed               = placement;
    options.placement    = placement;
    options.param_dtype  = FSDP_BF16;
    options.buffer_dtype = FSDP_F16;
    assert_int_equal(FSDP_OK, fsdp_model_create(ctx, &options, &model));
    assert_int_equal(FSDP_OK, fsdp_unit_add(model, "first", first, 4, &units[0]));
    assert_int_equal(FSDP_OK, fsdp_unit_add(model, "second", &second, 1, &units[1]));
    assert_int_equal(FSDP_OK, fsdp_model_commit(model));
    return model;
}

static void give_ones(fsdp_unit *unit, size_t i)
{
    static float ones[WIDE];

    for (size_t k = 0; k < WIDE; k++) {
        ones[k] = 1.0F;
    }
    move(fsdp_unit_grad(unit, i), ones, sizeof ones);
}

static void train_mixed_model(fsdp_unit *units[2])
{
    for (int u = 1; u >= 0; u--) {
        assert_int_equal(FSDP_OK, fsdp_unit_begin_backward(units[u]));
        give_ones(units[u], u == 0 ? 1 : 0);
        if (u == 0) {
            assert_null(fsdp_unit_grad(units[0], 0));
            give_ones(units[0], 3);
        }
        assert_int_equal(FSDP_OK, fsdp_unit_end_backward(units[u]));
    }
}

static uint64_t mixed_model_after_a_step(fsdp_context *ctx, fsdp_placement placement, uint16_t *table)
{
    fsdp_unit             *units[2];
    fsdp_model            *model = commit_mixed_model(ctx, placement, units);
    fsdp_optimizer_options o;
    fsdp_optimizer        *optimizer;
    uint64_t               hash;

    assert_int_equal(FSDP_OK, fsdp_optimizer_options_init(FSDP_ADAMW, &o));
    assert_int_equal(FSDP_OK, fsdp_optimizer_create(model, &o, &optimizer));
    train_mixed_model(units);
    assert_int_equal(FSDP_OK, fsdp_optimizer_step(optimizer));
    assert_int_equal(FSDP_OK, fsdp_model_hash(model, &hash));
    move(table, fsdp_unit_buffer(units[0], 2), WIDE * sizeof *table);
    finish();
    fsdp_model_destroy(model);
    return hash;
}

static void tensors_of_all_kinds(void **state)
{
    uint16_t       expected[WIDE], found[WIDE];
    const uint64_t hash = mixed_model_after_a_step(host, FSDP_ON_HOST, expected);

    (void)state;
    for (int placement = FSDP_ON_DEVICE; placement < FSDP_N_PLACEMENTS; placement++) {
        assert_true(hash == mixed_model_after_a_step(device[1], (fsdp_placement)placement, found));
        assert_memory_equal(expected, found, sizeof found);
    }
}

/* ---- one piece --------------------------------------------------------------------------------------------------------- */

enum { SHORT = 40 };

/* All of it is in one piece, so that nothing but its own waits keeps a step, or what reads after it, from coming too soon. */
static fsdp_model *commit_short_model(fsdp_context *ctx, fsdp_placement placement, fsdp_unit **unit)
{
    static const fsdp_tensor only = {
        .name = "only", .dtype = FSDP_F32, .n_dims = 1, .shape = {SHORT}, .fill = FSDP_FILL_NORMAL, .b = 1};
    fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;
    fsdp_model        *model;

    placed            = placement;
    options.placement = placement;
    assert_int_equal(FSDP_OK, fsdp_model_create(ctx, &options, &model));
    assert_int_equal(FSDP_OK, fsdp_unit_add(model, "short", &only, 1, unit));
    assert_int_equal(FSDP_OK, fsdp_model_commit(model));
    return model;
}

static void train_short_model(fsdp_unit *unit, fsdp_optimizer *optimizer, int steps)
{
    static float ones[SHORT];

    for (size_t k = 0; k < SHORT; k++) {
        ones[k] = 1.0F;
    }
    for (int step = 0; step < steps; step++) {
        assert_int_equal(FSDP_OK, fsdp_unit_begin_backward(unit));
        move(fsdp_unit_grad(unit, 0), ones, sizeof ones);
        assert_int_equal(FSDP_OK, fsdp_unit_end_backward(unit));
        assert_int_equal(FSDP_OK, fsdp_optimizer_step(optimizer));
    }
}

static void short_model_after(fsdp_context *ctx, fsdp_placement placement, int steps, float *found)
{
    const size_t           bytes = SHORT * sizeof *found;
    fsdp_unit             *unit;
    fsdp_model            *model = commit_short_model(ctx, placement, &unit);
    fsdp_optimizer_options o;
    fsdp_optimizer        *optimizer;

    assert_int_equal(FSDP_OK, fsdp_optimizer_options_init(FSDP_ADAMW, &o));
    assert_int_equal(FSDP_OK, fsdp_optimizer_create(model, &o, &optimizer));
    train_short_model(unit, optimizer, steps);
    assert_int_equal(FSDP_OK, fsdp_tensor_export(model, "only", 0, found, bytes));
    fsdp_model_destroy(model);
}

static void steps_of_one_piece_come_after_each_other(void **state)
{
    float expected[SHORT] = {0}, found[SHORT] = {0};

    (void)state;
    for (int steps = 1; steps <= 3; steps++) {
        short_model_after(host, FSDP_ON_HOST, steps, expected);
        for (int placement = FSDP_ON_DEVICE; placement < FSDP_N_PLACEMENTS; placement++) {
            short_model_after(device[0], (fsdp_placement)placement, steps, found);
            assert_memory_equal(expected, found, sizeof found);
        }
    }
}

/* ---- checkpoints ------------------------------------------------------------------------------------------------------- */

typedef struct trained {
    small_model     m;
    fsdp_optimizer *optimizer;
} trained;

static void open_trained(trained *t, fsdp_context *ctx, fsdp_placement placement, int passes)
{
    fsdp_model_options     options = FSDP_MODEL_OPTIONS_DEFAULT;
    fsdp_optimizer_options o;

    placed            = placement;
    options.placement = placement;
    small_model_create(&t->m, ctx, &options);
    assert_int_equal(FSDP_OK, fsdp_model_commit(t->m.model));
    assert_int_equal(FSDP_OK, fsdp_optimizer_options_init(FSDP_ADAMW, &o));
    assert_int_equal(FSDP_OK, fsdp_optimizer_create(t->m.model, &o, &t->optimizer));
    for (int pass = 0; pass < passes; pass++) {
        (void)train(&t->m, pass, 1.0, &options);
        assert_int_equal(FSDP_OK, fsdp_optimizer_step(t->optimizer));
    }
}

/* One more step, with the moments that there are. */
static uint64_t close_trained(trained *t, fsdp_placement placement)
{
    const fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;
    uint64_t                 hash;

    placed = placement;
    (void)train(&t->m, 9, 1.0, &options);
    assert_int_equal(FSDP_OK, fsdp_optimizer_step(t->optimizer));
    assert_int_equal(FSDP_OK, fsdp_model_hash(t->m.model, &hash));
    fsdp_model_destroy(t->m.model);
    return hash;
}

static void save(trained *t, int behind)
{
    fsdp_checkpoint_options options = FSDP_CHECKPOINT_OPTIONS_DEFAULT;
    fsdp_checkpoint_state   state   = {.step = 2};
    fsdp_checkpoint        *checkpoint;

    options.asynchronous = behind;
    options.dtype        = behind ? FSDP_BF16 : FSDP_F32;
    assert_int_equal(FSDP_OK, fsdp_checkpoint_open(t->m.model, t->optimizer, saved_folder, &options, &checkpoint));
    assert_int_equal(FSDP_OK, behind ? fsdp_checkpoint_save_async(checkpoint, &state)
                                     : fsdp_checkpoint_save(checkpoint, &state));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_close(checkpoint));
}

static void load(trained *t)
{
    fsdp_checkpoint_state state;
    char                  path[FSDP_CHECKPOINT_PATH_BYTES];

    assert_int_equal(FSDP_OK, fsdp_checkpoint_latest(t->m.ctx, saved_folder, path, sizeof path));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_load(t->m.model, t->optimizer, path, NULL, &state));
    assert_int_equal(2, state.step);
}

static void any_placement_loads_what_any_other_wrote(void **state)
{
    for (int from = 0; from < FSDP_N_PLACEMENTS; from++) {
        const fsdp_placement to = (fsdp_placement)((from + 1) % FSDP_N_PLACEMENTS);
        trained              a, b;

        assert_int_equal(0, saved_folder_make(state));
        open_trained(&a, from == FSDP_ON_HOST ? host : device[1], (fsdp_placement)from, 2);
        save(&a, from % 2);
        open_trained(&b, to == FSDP_ON_HOST ? host : device[1], to, 0);
        load(&b);
        assert_true(close_trained(&a, (fsdp_placement)from) == close_trained(&b, to));
        assert_int_equal(0, saved_folder_remove(state));
    }
}

/* ---- memory ------------------------------------------------------------------------------------------------------------ */

static void check_budget(const variant *v, fsdp_placement placement)
{
    fsdp_model_options options = v->options;
    fsdp_context      *ctx     = open_context(FSDP_DEVICE_GPU, 1);
    outcome            found;
    fsdp_budget        budget;
    fsdp_memory        memory;
    small_model        m;

    placed               = placement;
    options.placement    = placement;
    options.moment_dtype = v->moment_dtype;
    assert_int_equal(FSDP_OK, fsdp_stream_set(ctx, stream));
    small_model_create(&m, ctx, &options);
    assert_int_equal(FSDP_OK, fsdp_model_commit(m.model));
    fsdp_hook *hook = set_hook(&m, v->hook);
    run_steps(&m, v, &found);
    assert_int_equal(FSDP_OK, fsdp_model_budget(m.model, options.strategy, 0, v->kind, &budget));
    if (hook != NULL) {
        assert_int_equal(FSDP_OK, fsdp_hook_budget(hook, m.model, &budget));
    }
    assert_int_equal(FSDP_OK, fsdp_memory_usage(ctx, &memory));
    for (int line = 0; line < FSDP_N_MEMORY_KINDS; line++) {
        if (budget.bytes[line] != memory.current[line]) {
            fail_msg("%s, placement %d: %s: %zu bytes in the budget, %zu held", fsdp_strategy_name(options.strategy),
                     (int)placement, fsdp_memory_name((fsdp_memory_kind)line), budget.bytes[line],
                     memory.current[line]);
        }
    }
    assert_int_equal(budget.device, memory.device);
    assert_int_equal(budget.total, memory.peak_total);
    fsdp_model_destroy(m.model);
    fsdp_hook_destroy(hook);
    assert_int_equal(FSDP_OK, fsdp_memory_usage(ctx, &memory));
    assert_int_equal(memory.current[FSDP_MEMORY_STAGING] + memory.current[FSDP_MEMORY_BOOKKEEPING],
                     memory.current_total);
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

static void the_budget_is_what_is_held_to_the_byte(void **state)
{
    variant v = usual();

    (void)state;
    for (int strategy = 0; strategy < FSDP_N_STRATEGIES; strategy++) {
        set_strategy(&v, strategy);
        v.options.local_gradients = strategy % 2;
        v.options.param_dtype     = strategy % 3 == 0 ? FSDP_BF16 : FSDP_F32;
        v.moment_dtype            = strategy % 2 == 0 ? FSDP_BF16 : FSDP_F32;
        check_budget(&v, strategy / 2 % 2 == 0 ? FSDP_ON_DEVICE : FSDP_ON_DEVICE_OFFLOADED);
    }
    v                          = usual();
    v.options.quantized_params = 1;
    check_budget(&v, FSDP_ON_DEVICE);
    check_budget(&v, FSDP_ON_DEVICE_OFFLOADED);
    v                    = usual();
    v.options.strategy   = FSDP_NO_SHARD;
    v.options.group_size = 1;
    for (v.hook = 1; v.hook <= N_HOOKS; v.hook++) {
        check_budget(&v, v.hook % 2 == 0 ? FSDP_ON_DEVICE : FSDP_ON_DEVICE_OFFLOADED);
    }
}

static void offloading_takes_masters_and_moments_off_the_device(void **state)
{
    fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;
    fsdp_budget        whole, offloaded, none;
    small_model        m;

    (void)state;
    options.param_dtype = FSDP_BF16;
    options.placement   = FSDP_ON_DEVICE;
    small_model_create(&m, device[0], &options);
    assert_int_equal(FSDP_OK, fsdp_model_budget(m.model, FSDP_NO_SHARD, 1, FSDP_ADAMW, &whole));
    assert_int_equal(FSDP_OK, fsdp_model_budget(m.model, FSDP_NO_SHARD, 1, FSDP_SGD, &none));
    fsdp_model_destroy(m.model);
    options.placement = FSDP_ON_DEVICE_OFFLOADED;
    small_model_create(&m, device[0], &options);
    assert_int_equal(FSDP_OK, fsdp_model_budget(m.model, FSDP_NO_SHARD, 1, FSDP_ADAMW, &offloaded));
    fsdp_model_destroy(m.model);
    assert_int_equal(whole.bytes[FSDP_MEMORY_OPTIMIZER], whole.device - none.device);
    const size_t pieces = offloaded.bytes[FSDP_MEMORY_OPTIMIZER] - whole.bytes[FSDP_MEMORY_OPTIMIZER];
    assert_int_equal(2 * 3 * STAGING / 4, pieces);
    assert_int_equal(whole.device + pieces - whole.bytes[FSDP_MEMORY_OPTIMIZER] * 3 / 2, offloaded.device);
}

/* ---- what is refused --------------------------------------------------------------------------------------------------- */

static void create_fails(fsdp_context *ctx, const fsdp_model_options *options, fsdp_status status, const char *words)
{
    fsdp_model *model;

    assert_int_equal(status, fsdp_model_create(ctx, options, &model));
    assert_says(ctx, words);
}

static void what_is_not_served_is_named(void **state)
{
    fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;

    (void)state;
    options.placement = (fsdp_placement)FSDP_N_PLACEMENTS;
    create_fails(device[1], &options, FSDP_ERR_ARG, "3 is no placement");
    options.placement = FSDP_ON_DEVICE;
    create_fails(host, &options, FSDP_ERR_UNSUPPORTED, "this context uses none (FSDP_DEVICE is 'host')");
    options.quantized_params = 1;
    options.strategy         = FSDP_SHARD_GRAD_OP;
    create_fails(device[1], &options, FSDP_ERR_UNSUPPORTED, "only FULL_SHARD gathers quantised parameters");
    options.quantized_params = 0;
    options.fixed_addresses  = 1;
    options.strategy         = FSDP_FULL_SHARD;
    create_fails(device[1], &options, FSDP_ERR_UNSUPPORTED, "fixed_addresses with FULL_SHARD on a GPU");
    options.strategy = FSDP_HYBRID_SHARD;
    create_fails(device[1], &options, FSDP_ERR_UNSUPPORTED, "fixed_addresses with HYBRID_SHARD on a GPU");
    options             = (fsdp_model_options)FSDP_MODEL_OPTIONS_DEFAULT;
    options.placement   = FSDP_ON_DEVICE;
    options.param_dtype = FSDP_F64;
    create_fails(device[1], &options, FSDP_ERR_UNSUPPORTED, "param_dtype is f64 in a model on a GPU; use FSDP_ON_HOST");
    options.placement = FSDP_ON_DEVICE_OFFLOADED;
    create_fails(device[1], &options, FSDP_ERR_UNSUPPORTED, "param_dtype is f64 in a model on a GPU; use FSDP_ON_HOST");
}

static void make_nothing(const small_model *m, const fsdp_optimizer_options *o, const char *words)
{
    fsdp_optimizer *none = NULL;

    assert_int_equal(FSDP_ERR_UNSUPPORTED, fsdp_optimizer_create(m->model, o, &none));
    assert_null(none);
    assert_says(m->ctx, words);
}

static void optimizers_that_no_gpu_has_are_named(void **state)
{
    (void)state;
    for (int placement = FSDP_ON_DEVICE; placement < FSDP_N_PLACEMENTS; placement++) {
        fsdp_model_options     options = FSDP_MODEL_OPTIONS_DEFAULT;
        fsdp_model_group       group   = FSDP_MODEL_GROUP_DEFAULT;
        fsdp_lbfgs            *none    = NULL;
        fsdp_optimizer_options muon;
        small_model            m;

        options.placement = (fsdp_placement)placement;
        group.optimizer   = FSDP_MUON;
        group.granularity = FSDP_GRANULARITY_TENSOR;
        assert_int_equal(FSDP_OK, fsdp_optimizer_options_init(FSDP_MUON, &muon));
        muon.group = "a.weight";
        small_model_create(&m, device[1], &options);
        assert_int_equal(FSDP_OK, fsdp_model_add_group(m.model, muon.group, &group));
        assert_int_equal(FSDP_OK, fsdp_model_commit(m.model));
        make_nothing(&m, &muon, "FSDP_MUON in a model on a GPU; use FSDP_ON_HOST");
        assert_int_equal(FSDP_ERR_UNSUPPORTED, fsdp_lbfgs_create(m.model, NULL, &none));
        assert_null(none);
        assert_says(m.ctx, "a model on a GPU; set fsdp_model_options.placement to FSDP_ON_HOST");
        fsdp_model_destroy(m.model);
    }
}

/* Also where one rank alone asks for it; nothing is lost. */
static void keeping_parameters_on_the_node_is_refused_on_every_rank(void **state)
{
    static const fsdp_placement placements[] = {FSDP_ON_DEVICE, FSDP_ON_DEVICE_OFFLOADED};

    (void)state;
    for (size_t k = 0; k < 2; k++) {
        fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;
        small_model        m;

        options.placement    = placements[k];
        options.keep_on_node = 1;
        create_fails(device[k], &options, FSDP_ERR_UNSUPPORTED,
                     "keep_on_node for a model on a GPU; leave it 0 and use HYBRID_SHARD");
        options.keep_on_node = fsdp_test_rank() == fsdp_test_size() - 1;
        create_fails(device[k], &options, FSDP_ERR_UNSUPPORTED, "keep_on_node for a model on a GPU");
        options.keep_on_node = 0;
        small_model_create(&m, device[k], &options);
        assert_int_equal(FSDP_OK, fsdp_model_commit(m.model));
        fsdp_model_destroy(m.model);
    }
}

static void ranks_that_differ_in_placement_are_told(void **state)
{
    fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;

    (void)state;
    options.placement = fsdp_test_rank() == 0 ? FSDP_ON_HOST : FSDP_ON_DEVICE;
    if (fsdp_test_size() > 1) {
        create_fails(device[1], &options, FSDP_ERR_MISMATCH, "placement");
    }
}

static void commit_fails(small_model *m, const char *words)
{
    assert_int_equal(FSDP_ERR_MEMORY, fsdp_model_commit(m->model));
    assert_says(m->ctx, words);
    fsdp_model_destroy(m->model);
}

static void a_model_beyond_the_device_is_refused_with_need_and_free(void **state)
{
    const fsdp_tensor  large   = {.name = "large", .n_dims = 1, .shape = {(size_t)1 << 31}, .dtype = FSDP_F32};
    fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;
    small_model        m;
    fsdp_unit         *unit;

    (void)state;
    options.placement = FSDP_ON_DEVICE;
    small_model_create(&m, device[1], &options);
    assert_int_equal(FSDP_OK, fsdp_unit_add(m.model, "large", &large, 1, &unit));
    commit_fails(&m, "are free; use more GPUs, FULL_SHARD or FSDP_ON_DEVICE_OFFLOADED");
}

static void an_allocation_that_fails_on_one_rank_fails_on_all(void **state)
{
    fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;
    variant            v       = usual();
    outcome            expected, found;

    (void)state;
    options.placement = FSDP_ON_DEVICE;
    for (int nth = 1; nth <= 5; nth += 2) {
        small_model m;

        small_model_create(&m, device[1], &options);
        if (fsdp_test_rank() == fsdp_test_size() - 1) {
            hip_double_fail("hipMalloc", nth, hipErrorOutOfMemory);
        }
        commit_fails(&m, "out of device memory");
        hip_double_fail("hipMalloc", 0, hipSuccess);
    }
    run(host, &v, FSDP_ON_HOST, &expected);
    run(device[1], &v, FSDP_ON_DEVICE, &found);
    expect_same(&v, prefetch_of[1], FSDP_ON_DEVICE, &expected, &found);
}

/* The rank says so, the others are told in the end, and the parameters are those from before. */
static void a_kernel_that_fails_in_a_pass_fails_the_step(void **state)
{
    fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;
    small_model        m;
    uint64_t           before, after;

    (void)state;
    placed                  = FSDP_ON_DEVICE;
    options.placement       = FSDP_ON_DEVICE;
    options.local_gradients = 1;
    small_model_create(&m, device[1], &options);
    assert_int_equal(FSDP_OK, fsdp_model_commit(m.model));
    assert_int_equal(FSDP_OK, fsdp_model_hash(m.model, &before));
    assert_int_equal(FSDP_OK, fsdp_model_set_sync(m.model, 0));
    assert_int_equal(FSDP_OK, fsdp_unit_begin_backward(m.units[0]));
    if (fsdp_test_rank() == 0) {
        hip_double_fail("hipLaunchKernel", 1, hipErrorUnknown);
    }
    const fsdp_status status = fsdp_unit_end_backward(m.units[0]);
    hip_double_fail("hipLaunchKernel", 0, hipSuccess);
    assert_int_equal(fsdp_test_rank() == 0 ? FSDP_ERR_DEVICE : FSDP_OK, status);
    assert_int_equal(fsdp_test_rank() == 0 ? FSDP_OK : FSDP_ERR_DEVICE, fsdp_model_zero_grad(m.model));
    assert_int_equal(FSDP_OK, fsdp_model_hash(m.model, &after));
    assert_true(before == after);
    assert_int_equal(FSDP_OK, fsdp_model_set_sync(m.model, 1));
    (void)train(&m, 0, 1.0, &options);
    assert_int_equal(FSDP_OK, fsdp_clip_grad_norm(m.model, 1.0, NULL));
    fsdp_model_destroy(m.model);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_strategy_in_f32),
        cmocka_unit_test(every_strategy_with_parameters_in_bf16),
        cmocka_unit_test(every_strategy_in_16_bits),
        cmocka_unit_test(parameters_quantised_in_every_place),
        cmocka_unit_test(every_optimizer_in_every_place),
        cmocka_unit_test(clipping_loss_scaling_and_divisors),
        cmocka_unit_test(every_hook_gives_the_bits_of_the_host),
        cmocka_unit_test(tensors_are_imported_and_exported),
        cmocka_unit_test(tensors_of_all_kinds),
        cmocka_unit_test(steps_of_one_piece_come_after_each_other),
        cmocka_unit_test(any_placement_loads_what_any_other_wrote),
        cmocka_unit_test(the_budget_is_what_is_held_to_the_byte),
        cmocka_unit_test(offloading_takes_masters_and_moments_off_the_device),
        cmocka_unit_test(what_is_not_served_is_named),
        cmocka_unit_test(optimizers_that_no_gpu_has_are_named),
        cmocka_unit_test(keeping_parameters_on_the_node_is_refused_on_every_rank),
        cmocka_unit_test(ranks_that_differ_in_placement_are_told),
        cmocka_unit_test(a_model_beyond_the_device_is_refused_with_need_and_free),
        cmocka_unit_test(an_allocation_that_fails_on_one_rank_fails_on_all),
        cmocka_unit_test(a_kernel_that_fails_in_a_pass_fails_the_step),
    };

    return fsdp_test_main(argc, argv, tests, open_all, close_all);
}
