/*
 * Every strategy with every type, prefetch and way to accumulate, held to a serial recomputation by the hash of all
 * parameters: one process that knows all ranks' gradients, rounds them where the model does, and takes the steps in plain C.
 */
#include <math.h>
#include <string.h>

#include "fsdp/hook.h"
#include "fsdp/optimizer.h"
#include "fsdp/random.h"
#include "kernels/kernels.h"
#include "shard/model/hash.h"
#include "shard/state/model.h"
#include "tests/shard/serial_optimizer.h"

enum { STEPS = 3 };

typedef struct variant {
    fsdp_strategy strategy;
    fsdp_dtype    param_dtype, reduce_dtype;
    int           accumulate, local, prefetch, group;
} variant;

static float rounded(float x, fsdp_dtype dtype)
{
    uint16_t half;

    if (dtype == FSDP_F32) {
        return x;
    }
    fsdpi_kernels_scalar.cast(&half, dtype, &x, FSDP_F32, 1);
    fsdpi_kernels_scalar.cast(&x, FSDP_F32, &half, dtype, 1);
    return x;
}

/* ---- the library's side -------------------------------------------------------------------------------------------- */

static fsdp_context *open_context(int prefetch)
{
    fsdp_context *ctx;
    fsdp_config   config;

    fsdp_config_init(&config);
    config.prefetch  = prefetch;
    config.node_size = 0; /* the serial side adds up as on one node */
    assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_WORLD, &config, &ctx));
    return ctx;
}

static void create_variant(small_model *m, fsdp_context *ctx, const variant *v)
{
    fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;

    options.strategy        = v->strategy;
    options.seed            = 99;
    options.param_dtype     = v->param_dtype;
    options.reduce_dtype    = v->reduce_dtype;
    options.local_gradients = v->local;
    options.group_size      = v->group;
    small_model_create(m, ctx, &options);
    assert_int_equal(FSDP_OK, fsdp_model_commit(m->model));
}

static void open_variant(small_model *m, const variant *v)
{
    create_variant(m, open_context(v->prefetch), v);
}

static void fill_gradient(small_model *m, size_t u, size_t t, int pass)
{
    const fsdp_model_options *o = &m->model->options;
    const size_t              n = tensor_elements(t);
    static float              w[MOST_ELEMENTS], g[MOST_ELEMENTS];

    fsdpi_kernels_scalar.cast(w, FSDP_F32, fsdp_unit_param(m->units[u], t - FIRST_TENSOR[u]), o->param_dtype, n);
    for (size_t i = 0; i < n; i++) {
        g[i] = gradient_element(fsdp_rank(m->ctx), pass, t, i, w[i]);
    }
    fsdpi_kernels_scalar.cast(fsdp_unit_grad(m->units[u], t - FIRST_TENSOR[u]), o->reduce_dtype, g, FSDP_F32, n);
}

static void run_typed_pass(small_model *m, int pass)
{
    for (size_t u = 0; u < N_UNITS; u++) {
        assert_int_equal(FSDP_OK, fsdp_unit_begin_forward(m->units[u]));
        assert_int_equal(FSDP_OK, fsdp_unit_end_forward(m->units[u]));
    }
    for (size_t u = N_UNITS; u-- > 0;) {
        assert_int_equal(FSDP_OK, fsdp_unit_begin_backward(m->units[u]));
        for (size_t t = FIRST_TENSOR[u]; t < FIRST_TENSOR[u + 1]; t++) {
            fill_gradient(m, u, t, pass);
        }
        assert_int_equal(FSDP_OK, fsdp_unit_end_backward(m->units[u]));
    }
}

/* ---- the serial side ------------------------------------------------------------------------------------------------ */

/* What rank `r` gives to the reduction: of one pass, or of several that it has added up itself. */
static float given(const variant *v, int r, int first, int n, size_t t, size_t i, float w)
{
    float sum = 0.0F;

    for (int k = 0; k < n; k++) {
        const float g = rounded(gradient_element(r, first + k, t, i, rounded(w, v->param_dtype)), v->reduce_dtype);
        sum           = k == 0 ? g : sum + g;
    }
    return n > 1 ? rounded(sum, v->reduce_dtype) : sum;
}

static float mean(const variant *v, int size, int first, int n, size_t t, size_t i, float w)
{
    float sum = given(v, 0, first, n, t, i, w);

    for (int r = 1; r < size; r++) {
        sum += given(v, r, first, n, t, i, w);
    }
    return rounded(sum / (float)size, v->reduce_dtype);
}

static void serial_passes(serial_model *s, const variant *v, int size, int first, int n)
{
    size_t k = 0;

    for (size_t t = 0; t < N_TENSORS; t++) {
        for (size_t i = 0; i < tensor_elements(t); i++, k++) {
            const float g = mean(v, size, first, n, t, i, s->w[k]);
            s->g[k]       = s->fresh ? g : s->g[k] + g;
        }
    }
    s->fresh = 0;
}

static uint64_t serial_hash(const serial_model *s)
{
    uint64_t sum = 0;
    size_t   k   = 0;

    for (size_t t = 0; t < N_TENSORS; t++) {
        sum += fsdpi_hash_elements(fsdp_random_stream(TENSORS[t].name), 0, s->w + k, tensor_elements(t), FSDP_F32);
        k += tensor_elements(t);
    }
    return sum;
}

static void start_serial(serial_model *s)
{
    size_t k = 0;

    *s = (serial_model){.fresh = 1};
    for (size_t t = 0; t < N_TENSORS; t++) {
        for (size_t i = 0; i < tensor_elements(t); i++, k++) {
            const uint64_t stream = fsdp_random_stream(TENSORS[t].name);
            const double   a = TENSORS[t].a, b = TENSORS[t].b;

            s->w[k] = TENSORS[t].fill == FSDP_FILL_NORMAL    ? (float)(a + b * fsdp_random_normal(99, stream, i))
                      : TENSORS[t].fill == FSDP_FILL_UNIFORM ? (float)(a + (b - a) * fsdp_random_uniform(99, stream, i))
                                                             : (float)a;
        }
    }
}

/* ---- both --------------------------------------------------------------------------------------------------------- */

static void run_micro_batches(small_model *m, serial_model *s, const variant *v, int first)
{
    const int size = fsdp_size(m->ctx);

    for (int k = 0; k < v->accumulate; k++) {
        if (v->local) {
            assert_int_equal(FSDP_OK, fsdp_model_set_sync(m->model, k + 1 == v->accumulate));
        } else {
            serial_passes(s, v, size, first + k, 1);
        }
        run_typed_pass(m, first + k);
    }
    if (v->local) {
        serial_passes(s, v, size, first, v->accumulate);
    }
}

static void check(fsdp_context *ctx, const variant *v)
{
    static serial_model    s;
    fsdp_optimizer_options o;
    fsdp_optimizer        *optimizer;
    small_model            m;

    create_variant(&m, ctx, v);
    assert_int_equal(FSDP_OK, fsdp_optimizer_options_init(FSDP_ADAMW, &o));
    assert_int_equal(FSDP_OK, fsdp_optimizer_create(m.model, &o, &optimizer));
    start_serial(&s);
    for (int step = 0; step < STEPS; step++) {
        uint64_t hash;

        run_micro_batches(&m, &s, v, step * v->accumulate);
        assert_int_equal(FSDP_OK, fsdp_optimizer_step(optimizer));
        serial_step(&s, &o, NULL);
        assert_int_equal(FSDP_OK, fsdp_model_hash(m.model, &hash));
        if (hash != serial_hash(&s)) {
            fail_msg("%s, %s parameters, %s reduced, accumulate %d%s, prefetch %d: step %d differs",
                     fsdp_strategy_name(v->strategy), fsdp_dtype_name(v->param_dtype), fsdp_dtype_name(v->reduce_dtype),
                     v->accumulate, v->local ? " locally" : "", v->prefetch, step);
        }
    }
    fsdp_model_destroy(m.model);
}

static void for_all_strategies(fsdp_context *ctx, variant v)
{
    for (int strategy = 0; strategy < FSDP_N_STRATEGIES; strategy++) {
        v.strategy   = (fsdp_strategy)strategy;
        v.accumulate = 1;
        v.local      = 0;
        check(ctx, &v);
        v.accumulate = 4;
        check(ctx, &v);
        v.local = 1;
        check(ctx, &v);
    }
}

static void for_all(fsdp_dtype param_dtype, fsdp_dtype reduce_dtype)
{
    for (int prefetch = 0; prefetch <= 2; prefetch++) {
        fsdp_context *ctx = open_context(prefetch);

        if (fsdp_node_count(ctx) == 1) { /* sums over nodes round more often */
            for_all_strategies(
                ctx, (variant){.param_dtype = param_dtype, .reduce_dtype = reduce_dtype, .prefetch = prefetch});
        }
        assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
    }
}

static void all_in_f32(void **state)
{
    (void)state;
    for_all(FSDP_F32, FSDP_F32);
}

static void parameters_in_bf16(void **state)
{
    (void)state;
    for_all(FSDP_BF16, FSDP_F32);
}

static void all_in_bf16(void **state)
{
    (void)state;
    for_all(FSDP_BF16, FSDP_BF16);
}

static void all_in_f16(void **state)
{
    (void)state;
    for_all(FSDP_F16, FSDP_F16);
}

/* Groups that are no nodes add up in another order: near, not equal. Replicas must be equal to the bit, as the hash checks. */
static void groups_of_any_size_come_near(void **state)
{
    static serial_model s;
    static float        all[MOST_ELEMENTS];

    (void)state;
    for (int group = 1; group <= fsdp_test_size(); group++) {
        variant                v = {.strategy = FSDP_HYBRID_SHARD, .prefetch = 1, .accumulate = 2, .group = group};
        fsdp_optimizer_options o;
        fsdp_optimizer        *optimizer;
        small_model            m;
        uint64_t               hash;

        if (fsdp_test_size() % group != 0) {
            continue;
        }
        v.param_dtype  = FSDP_F32;
        v.reduce_dtype = FSDP_F32;
        open_variant(&m, &v);
        assert_int_equal(FSDP_OK, fsdp_optimizer_options_init(FSDP_SGD, &o));
        assert_int_equal(FSDP_OK, fsdp_optimizer_create(m.model, &o, &optimizer));
        start_serial(&s);
        for (int step = 0; step < STEPS; step++) {
            double norm;

            run_micro_batches(&m, &s, &v, 2 * step);
            assert_int_equal(FSDP_OK, fsdp_clip_grad_norm(m.model, (double)INFINITY, &norm));
            assert_int_equal(FSDP_OK, fsdp_optimizer_step(optimizer));
            serial_step(&s, &o, NULL);
        }
        assert_int_equal(FSDP_OK, fsdp_model_hash(m.model, &hash));
        copy_parameters(&m, all);
        for (size_t k = 0; k < all_elements(); k++) {
            assert_true(fabsf(all[k] - s.w[k]) <= 1e-6F * (1.0F + fabsf(s.w[k])));
        }
        small_model_close(&m);
    }
}

static void a_group_that_does_not_divide_is_refused(void **state)
{
    fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;
    fsdp_context      *ctx;
    fsdp_model        *model;

    (void)state;
    assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_WORLD, NULL, &ctx));
    options.strategy   = FSDP_HYBRID_SHARD;
    options.group_size = fsdp_size(ctx) + 1;
    assert_int_equal(FSDP_ERR_ARG, fsdp_model_create(ctx, &options, &model));
    assert_non_null(strstr(fsdp_last_error(ctx), "which does not divide"));
    options             = (fsdp_model_options)FSDP_MODEL_OPTIONS_DEFAULT;
    options.param_dtype = FSDP_I32;
    assert_int_equal(FSDP_ERR_ARG, fsdp_model_create(ctx, &options, &model));
    assert_non_null(strstr(fsdp_last_error(ctx), "param_dtype is i32"));
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

/* What all ranks find alike is printed once in all. */
static void uneven_nodes_are_refused_once(void **state)
{
    fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;
    fsdp_config        config;
    fsdp_context      *ctx;
    fsdp_model        *model;
    char               all[32];

    (void)state;
    if (fsdp_test_size() % 2 == 0 || fsdp_test_size() == 1) {
        skip();
    }
    fsdp_config_init(&config);
    config.node_size = 2;
    assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_WORLD, &config, &ctx));
    options.strategy = FSDP_HYBRID_SHARD;
    fsdp_test_capture_stderr();
    fsdp_status status = fsdp_model_create(ctx, &options, &model);
    assert_int_equal(1, fsdp_test_times_printed("needs nodes of equal size"));
    assert_int_equal(FSDP_ERR_ARG, status);
    options.group_size = fsdp_size(ctx) + 1;
    fsdp_test_capture_stderr();
    status = fsdp_model_create(ctx, &options, &model);
    assert_int_equal(1, fsdp_test_times_printed("which does not divide"));
    assert_int_equal(FSDP_ERR_ARG, status);
    (void)snprintf(all, sizeof all, "all %d ranks: ", fsdp_test_size());
    assert_says(ctx, all);
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

/* Units in another order than before, and passes without a backward one: slower, never wrong. */
static void a_changed_order_is_served(void **state)
{
    static const size_t orders[][N_UNITS] = {{0, 1, 2}, {0, 1, 2}, {2, 0, 1}, {1, 0, 2}, {1, 2, 0}};
    uint64_t            hashes[2];

    (void)state;
    for (int prefetch = 0; prefetch <= 1; prefetch++) {
        variant                v = {.strategy = FSDP_FULL_SHARD, .prefetch = 2 * prefetch, .accumulate = 1};
        fsdp_optimizer_options o;
        fsdp_optimizer        *optimizer;
        small_model            m;

        v.param_dtype  = FSDP_F32;
        v.reduce_dtype = FSDP_F32;
        open_variant(&m, &v);
        assert_int_equal(FSDP_OK, fsdp_optimizer_options_init(FSDP_SGD, &o));
        assert_int_equal(FSDP_OK, fsdp_optimizer_create(m.model, &o, &optimizer));
        for (int step = 0; step < 5; step++) {
            run_typed_pass(&m, step);
            for (size_t u = 0; u < N_UNITS; u++) {
                assert_int_equal(FSDP_OK, fsdp_unit_begin_forward(m.units[orders[step][u]]));
                assert_int_equal(FSDP_OK, fsdp_unit_end_forward(m.units[orders[step][u]]));
            }
            assert_int_equal(FSDP_OK, fsdp_optimizer_step(optimizer));
        }
        assert_int_equal(FSDP_OK, fsdp_model_hash(m.model, &hashes[prefetch]));
        small_model_close(&m);
    }
    assert_true(hashes[0] == hashes[1]);
}

static void local_gradients_have_to_be_asked_for(void **state)
{
    small_model m;

    (void)state;
    small_model_open(&m, NULL, FSDP_FULL_SHARD);
    assert_int_equal(FSDP_ERR_STATE, fsdp_model_set_sync(m.model, 0));
    assert_non_null(strstr(fsdp_last_error(m.ctx), "local_gradients"));
    assert_int_equal(FSDP_ERR_ARG, fsdp_model_set_sync(NULL, 0));
    small_model_close(&m);
}

/* ---- hooks --------------------------------------------------------------------------------------------------------- */

static fsdp_status count_call(void *calls, const fsdp_gradient *gradient)
{
    ++*(int *)calls;
    return gradient->count > 0 ? FSDP_OK : FSDP_ERR_ARG;
}

static void train_with_hook(fsdp_strategy strategy, int group, void *calls, uint64_t *hash)
{
    variant                v         = {.strategy = strategy, .prefetch = 1, .accumulate = 1, .group = group};
    fsdp_hook_callbacks    callbacks = {.size = sizeof callbacks, .before = count_call, .state = calls};
    fsdp_optimizer_options o;
    fsdp_optimizer        *optimizer;
    fsdp_hook             *hook;
    small_model            m;

    v.param_dtype  = FSDP_F32;
    v.reduce_dtype = FSDP_F32;
    open_variant(&m, &v);
    assert_int_equal(FSDP_OK, fsdp_hook_custom(m.ctx, &callbacks, &hook));
    if (calls != NULL) {
        assert_int_equal(FSDP_OK, fsdp_model_set_hook(m.model, hook));
    }
    assert_int_equal(FSDP_OK, fsdp_optimizer_options_init(FSDP_SGD, &o));
    assert_int_equal(FSDP_OK, fsdp_optimizer_create(m.model, &o, &optimizer));
    for (int step = 0; step < STEPS; step++) {
        run_typed_pass(&m, step);
        if (calls != NULL && step == 0) {
            assert_int_equal(FSDP_ERR_STATE, fsdp_model_set_hook(m.model, NULL)); /* gradients are there */
        }
        assert_int_equal(FSDP_OK, fsdp_optimizer_step(optimizer));
    }
    assert_int_equal(FSDP_OK, fsdp_model_hash(m.model, hash));
    fsdp_model_destroy(m.model);
    fsdp_hook_destroy(hook);
    assert_int_equal(FSDP_OK, fsdp_finalize(m.ctx));
}

static void a_hook_is_called_once_per_unit_and_changes_nothing_by_itself(void **state)
{
    uint64_t plain, hooked;
    int      calls = 0;

    (void)state;
    train_with_hook(FSDP_NO_SHARD, 0, NULL, &plain);
    train_with_hook(FSDP_NO_SHARD, 0, &calls, &hooked);
    assert_true(plain == hooked);
    assert_int_equal(STEPS * N_UNITS, calls);
    calls = 0;
    train_with_hook(FSDP_HYBRID_SHARD, 1, &calls, &hooked); /* groups of one: all of it goes through the hook */
    assert_int_equal(fsdp_test_size() > 1 ? STEPS * N_UNITS : 0, calls); /* alone, there are no other groups */
}

static void a_hook_is_refused_where_it_cannot_serve(void **state)
{
    fsdp_hook  *hook;
    small_model m;

    (void)state;
    small_model_open(&m, NULL, FSDP_FULL_SHARD);
    assert_int_equal(FSDP_OK, fsdp_hook_half(m.ctx, FSDP_BF16, &hook));
    assert_int_equal(FSDP_ERR_UNSUPPORTED, fsdp_model_set_hook(m.model, hook));
    assert_non_null(strstr(fsdp_last_error(m.ctx), "a hook serves NO_SHARD and HYBRID_SHARD"));
    assert_int_equal(FSDP_ERR_ARG, fsdp_model_set_hook(NULL, hook));
    run_pass(&m, 0);
    fsdp_hook_destroy(hook);
    small_model_close(&m);
}

/* With an argument: the half of the table in which gradients are reduced in 16 bits, so that CTest can run it by itself. */
int main(int argc, char **argv)
{
    static const struct CMUnitTest tests_in_16_bits[] = {
        cmocka_unit_test(all_in_bf16),
        cmocka_unit_test(all_in_f16),
    };
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_in_f32),
        cmocka_unit_test(parameters_in_bf16),
        cmocka_unit_test(groups_of_any_size_come_near),
        cmocka_unit_test(a_group_that_does_not_divide_is_refused),
        cmocka_unit_test(uneven_nodes_are_refused_once),
        cmocka_unit_test(a_changed_order_is_served),
        cmocka_unit_test(local_gradients_have_to_be_asked_for),
        cmocka_unit_test(a_hook_is_called_once_per_unit_and_changes_nothing_by_itself),
        cmocka_unit_test(a_hook_is_refused_where_it_cannot_serve),
    };

    if (argc > 1) {
        return fsdp_test_main(argc, argv, tests_in_16_bits, NULL, NULL);
    }
    return fsdp_test_main(argc, argv, tests, NULL, NULL);
}
