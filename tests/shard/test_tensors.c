/*
 * Tensors that are not all alike: frozen, ignored, tied inside a unit and across units, of several types in one unit; units
 * with nothing to gather or nothing to reduce. Trained by plain SGD beside a serial recomputation. Gradients are small
 * integers, so that their sums are exact in any order, and results are compared bit by bit under every strategy.
 */
#include <math.h>
#include <string.h>

#include "fsdp/optimizer.h"
#include "fsdp/tensor_io.h"
#include "kernels/kernels.h"
#include "tests/support/mpi_test.h"

enum { N = 11, N_UNITS = 5, MOST = 13 * 7, STEPS = 3 };

static const fsdp_tensor TENSORS[N] = {
    {.name = "wte", .n_dims = 2, .shape = {13, 7}, .dtype = FSDP_F32, .fill = FSDP_FILL_NORMAL, .b = 1},
    {.name   = "wpe",
     .n_dims = 2,
     .shape  = {5, 7},
     .dtype  = FSDP_F32,
     .fill   = FSDP_FILL_NORMAL,
     .b      = 1,
     .flags  = FSDP_TENSOR_FROZEN},
    {.name = "wte.bias", .n_dims = 1, .shape = {7}, .dtype = FSDP_F32, .a = 0.5},
    {.name = "w", .n_dims = 2, .shape = {9, 9}, .dtype = FSDP_BF16, .fill = FSDP_FILL_UNIFORM, .a = -1, .b = 1},
    {.name = "norm", .n_dims = 1, .shape = {9}, .dtype = FSDP_F32, .a = 1.001, .flags = FSDP_TENSOR_KEEP_DTYPE},
    {.name = "running", .n_dims = 1, .shape = {9}, .dtype = FSDP_F32, .a = 3, .flags = FSDP_TENSOR_IGNORED},
    {.name = "norm.twin", .n_dims = 1, .shape = {9}, .tied_to = "norm"},
    {.name = "table", .n_dims = 1, .shape = {3}, .dtype = FSDP_F16, .a = 2.0 / 3, .flags = FSDP_TENSOR_FROZEN},
    {.name = "count", .n_dims = 0, .dtype = FSDP_F16, .a = 1, .flags = FSDP_TENSOR_IGNORED},
    {.name = "head.weight", .n_dims = 2, .shape = {13, 7}, .dtype = FSDP_F32, .tied_to = "wte"},
    {.name = "head.scale", .n_dims = 0, .dtype = FSDP_F32, .a = 1},
};
/* What the last two are tied to, and themselves. */
static const size_t OWNER[N]           = {0, 1, 2, 3, 4, 5, 4, 7, 8, 0, 10};
static const size_t FIRST[N_UNITS + 1] = {0, 3, 7, 8, 9, 11};

typedef struct trained {
    fsdp_context   *ctx;
    fsdp_model     *model;
    fsdp_unit      *units[N_UNITS];
    fsdp_optimizer *optimizer;
    fsdp_dtype      param_dtype;
    int             quantized;
    float expected[N][MOST]; /* masters, of tied tensors the owner's; ignored ones as this rank has set them */
} trained;

static size_t elements(size_t t)
{
    size_t n = 1;

    for (size_t d = 0; d < TENSORS[t].n_dims; d++) {
        n *= TENSORS[t].shape[d];
    }
    return n;
}

static int has_flag(size_t t, unsigned flag)
{
    return (TENSORS[OWNER[t]].flags & flag) != 0;
}

/* The type in which a tensor is seen. */
static fsdp_dtype seen_dtype(const trained *m, size_t t)
{
    const fsdp_tensor *tensor = &TENSORS[OWNER[t]];

    if (tensor->dtype != FSDP_F32 || has_flag(t, FSDP_TENSOR_KEEP_DTYPE)) {
        return tensor->dtype;
    }
    return has_flag(t, FSDP_TENSOR_IGNORED) ? FSDP_F32 : m->param_dtype;
}

static float value_of(const void *array, size_t i, fsdp_dtype dtype)
{
    const size_t width = fsdp_dtype_size(dtype);
    float        value;

    fsdpi_kernels_scalar.cast(&value, FSDP_F32, (const unsigned char *)array + i * width, dtype, 1);
    return value;
}

static float rounded(float x, fsdp_dtype dtype)
{
    double room;

    fsdpi_kernels_scalar.cast(&room, dtype, &x, FSDP_F32, 1);
    return value_of(&room, 0, dtype);
}

/* ---- opening --------------------------------------------------------------------------------------------------------- */

static void export_all(const trained *m, float (*all)[MOST])
{
    for (size_t t = 0; t < N; t++) {
        for (int root = 0; root < fsdp_size(m->ctx); root++) {
            assert_int_equal(FSDP_OK,
                             fsdp_tensor_export(m->model, TENSORS[t].name, root, all[t], elements(t) * sizeof(float)));
        }
    }
}

static void open_tensors(trained *m, const fsdp_model_options *options, int prefetch)
{
    static const char *const names[N_UNITS] = {"embed", "block", "table", "count", "head"};
    fsdp_optimizer_options   sgd;
    fsdp_config              config;

    fsdp_config_init(&config);
    config.prefetch  = prefetch;
    config.node_size = 0;
    m->param_dtype   = options->param_dtype;
    m->quantized     = options->quantized_params;
    assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_WORLD, &config, &m->ctx));
    assert_int_equal(FSDP_OK, fsdp_model_create(m->ctx, options, &m->model));
    for (size_t u = 0; u < N_UNITS; u++) {
        assert_int_equal(FSDP_OK,
                         fsdp_unit_add(m->model, names[u], &TENSORS[FIRST[u]], FIRST[u + 1] - FIRST[u], &m->units[u]));
    }
    assert_int_equal(FSDP_OK, fsdp_model_commit(m->model));
    assert_int_equal(FSDP_OK, fsdp_optimizer_options_init(FSDP_SGD, &sgd));
    sgd.lr = 0.5;
    assert_int_equal(FSDP_OK, fsdp_optimizer_create(m->model, &sgd, &m->optimizer));
    export_all(m, m->expected);
}

static void close_tensors(trained *m)
{
    fsdp_model_destroy(m->model);
    assert_int_equal(FSDP_OK, fsdp_finalize(m->ctx));
}

/* ---- quantised views ------------------------------------------------------------------------------------------------- */

/* What is read back of a value whose block of `n` begins at `x`. */
static float read_back(const float *x, size_t n, size_t i)
{
    float largest = 0.0F;

    for (size_t k = 0; k < n; k++) {
        largest = fmaxf(largest, fabsf(x[k]));
    }
    const float scale = largest / 127.0F;
    return scale * nearbyintf(x[i] * (1.0F / scale));
}

/* All that are, are in a flat parameter of their own, and so in one block. */
static int is_quantized(const trained *m, size_t t)
{
    return m->quantized && TENSORS[OWNER[t]].dtype == FSDP_F32 &&
           !has_flag(t, FSDP_TENSOR_KEEP_DTYPE | FSDP_TENSOR_IGNORED);
}

static float seen_value(const trained *m, size_t t, size_t i)
{
    const float *master = m->expected[OWNER[t]];

    return rounded(is_quantized(m, t) ? read_back(master, elements(t), i) : master[i], seen_dtype(m, t));
}

/* ---- training -------------------------------------------------------------------------------------------------------- */

static float gradient_of(int rank, int pass, size_t t, size_t i)
{
    return (float)((rank * 7 + pass * 5 + (int)t * 3 + (int)i) % 17 - 8);
}

static void check_view(const trained *m, size_t u, size_t t)
{
    const fsdp_dtype dtype = seen_dtype(m, t);
    const void      *view  = fsdp_unit_param(m->units[u], t - FIRST[u]);

    assert_non_null(view);
    for (size_t i = 0; i < elements(t); i++) {
        assert_true(value_of(view, i, dtype) == seen_value(m, t, i));
    }
}

static void add_gradient(const trained *m, size_t u, size_t t, int pass)
{
    float *g = fsdp_unit_grad(m->units[u], t - FIRST[u]);

    if (has_flag(t, FSDP_TENSOR_FROZEN | FSDP_TENSOR_IGNORED)) {
        assert_null(g);
        return;
    }
    for (size_t i = 0; i < elements(t); i++) {
        g[i] += gradient_of(fsdp_rank(m->ctx), pass, t, i);
    }
}

static void run_passes(const trained *m, int pass)
{
    for (size_t u = 0; u < N_UNITS; u++) {
        assert_int_equal(FSDP_OK, fsdp_unit_begin_forward(m->units[u]));
        for (size_t t = FIRST[u]; t < FIRST[u + 1]; t++) {
            check_view(m, u, t);
        }
        assert_int_equal(FSDP_OK, fsdp_unit_end_forward(m->units[u]));
    }
    for (size_t u = N_UNITS; u-- > 0;) {
        assert_int_equal(FSDP_OK, fsdp_unit_begin_backward(m->units[u]));
        for (size_t t = FIRST[u]; t < FIRST[u + 1]; t++) {
            check_view(m, u, t);
            add_gradient(m, u, t, pass);
        }
        assert_int_equal(FSDP_OK, fsdp_unit_end_backward(m->units[u]));
    }
}

/* The mean over ranks of one name's, added up over `passes` and over names in the order in which they are reduced: the last
 * unit's first. With `local` all of one rank's are added up before the mean is taken; within a unit always. */
static float mean_gradient(const trained *m, size_t owner, size_t i, int first_pass, int passes, int local)
{
    const int size  = fsdp_size(m->ctx);
    float     total = 0.0F, sum = 0.0F;

    for (int p = first_pass; p < first_pass + passes; p++) {
        for (size_t u = N_UNITS; u-- > 0;) {
            int used = 0;

            for (size_t t = FIRST[u]; t < FIRST[u + 1]; t++) {
                for (int r = 0; r < size && OWNER[t] == owner; r++) {
                    sum += gradient_of(r, p, t, i);
                    used = 1;
                }
            }
            /* kept on each rank up to the first reduction of the last pass */
            if (used && (!local || p == first_pass + passes - 1)) {
                total += sum / (float)size;
                sum = 0.0F;
            }
        }
    }
    return total;
}

static double step_serially(trained *m, int first_pass, int passes, int local)
{
    double squares = 0.0;

    for (size_t t = 0; t < N; t++) {
        for (size_t i = 0; i < elements(t) && OWNER[t] == t; i++) {
            if (!has_flag(t, FSDP_TENSOR_FROZEN | FSDP_TENSOR_IGNORED)) {
                const float g = mean_gradient(m, t, i, first_pass, passes, local);

                squares += (double)g * (double)g;
                m->expected[t][i] -= 0.5F * g;
            }
        }
    }
    return sqrt(squares);
}

static void check_masters(const trained *m)
{
    static float all[N][MOST];

    export_all(m, all);
    for (size_t t = 0; t < N; t++) {
        assert_memory_equal(all[t], m->expected[OWNER[t]], elements(t) * sizeof(float));
    }
}

/* Where this rank puts its own numbers; the others' stay theirs. */
static void write_buffers(trained *m)
{
    float    *running = fsdp_unit_buffer(m->units[1], 2);
    uint16_t *count   = fsdp_unit_buffer(m->units[3], 0);

    assert_null(fsdp_unit_buffer(m->units[1], 0));
    for (size_t i = 0; i < elements(5); i++) {
        running[i] = m->expected[5][i] = (float)(fsdp_rank(m->ctx) + 1) * 0.37F + (float)i;
    }
    m->expected[8][0] = (float)fsdp_rank(m->ctx);
    fsdpi_kernels_scalar.cast(count, FSDP_F16, &m->expected[8][0], FSDP_F32, 1);
}

static void check_held(const trained *m, fsdp_strategy strategy)
{
    fsdp_budget budget;
    fsdp_memory memory;

    assert_int_equal(FSDP_OK, fsdp_model_budget(m->model, strategy, 0, FSDP_SGD, &budget));
    assert_int_equal(FSDP_OK, fsdp_memory_usage(m->ctx, &memory));
    for (int kind = 0; kind < FSDP_N_MEMORY_KINDS; kind++) {
        assert_int_equal(budget.bytes[kind], memory.current[kind]);
    }
    assert_int_equal(13 * 7 + 5 * 7 + 7 + 81 + 9 + 3 + 1, budget.parameters);
}

static void train(const fsdp_model_options *options, int prefetch, int passes)
{
    static trained m;
    double         norm;

    open_tensors(&m, options, prefetch);
    write_buffers(&m);
    for (int step = 0; step < STEPS; step++) {
        for (int p = 0; p < passes; p++) {
            if (options->local_gradients) {
                assert_int_equal(FSDP_OK, fsdp_model_set_sync(m.model, p == passes - 1));
            }
            run_passes(&m, step * passes + p);
        }
        const double expected = step_serially(&m, step * passes, passes, options->local_gradients);
        assert_int_equal(FSDP_OK, fsdp_clip_grad_norm(m.model, (double)INFINITY, &norm));
        assert_true(fabs(norm - expected) <= 1e-6 * expected);
        assert_int_equal(FSDP_OK, fsdp_optimizer_step(m.optimizer));
        check_masters(&m);
    }
    check_held(&m, options->strategy);
    close_tensors(&m);
}

static void train_every_strategy(fsdp_dtype param_dtype, int prefetch, int passes, int local)
{
    for (int strategy = 0; strategy < FSDP_N_STRATEGIES; strategy++) {
        fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;

        options.strategy        = (fsdp_strategy)strategy;
        options.optimizer       = FSDP_SGD;
        options.param_dtype     = param_dtype;
        options.local_gradients = local;
        train(&options, prefetch, passes);
    }
}

static void all_kinds_train_as_a_serial_program_would(void **state)
{
    (void)state;
    train_every_strategy(FSDP_F32, 1, 1, 0);
    train_every_strategy(FSDP_F32, 0, 2, 0);
}

static void types_can_differ_from_the_models(void **state)
{
    (void)state;
    train_every_strategy(FSDP_BF16, 2, 1, 0);
    train_every_strategy(FSDP_F16, 1, 1, 0);
}

static void quantised_parameters_train_too(void **state)
{
    fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;

    (void)state;
    options.optimizer        = FSDP_SGD;
    options.quantized_params = 1;
    train(&options, 1, 1);
    train(&options, 0, 2);
    options.param_dtype = FSDP_BF16;
    train(&options, 2, 1);
}

/* Tied, frozen and ignored tensors, of several types, quantised or not. */
static void fixed_addresses_change_nothing(void **state)
{
    (void)state;
    for (int variant = 0; variant < 2 * FSDP_N_STRATEGIES; variant++) {
        fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;

        options.strategy         = (fsdp_strategy)(variant / 2);
        options.optimizer        = FSDP_SGD;
        options.param_dtype      = variant % 2 == 0 ? FSDP_F32 : FSDP_BF16;
        options.quantized_params = variant % 2 == 1 && options.strategy == FSDP_FULL_SHARD;
        options.fixed_addresses  = 1;
        train(&options, 1 + variant % 2, 1 + variant % 2);
    }
}

/* Blocks of 256 elements, counted from the first of the unit, whatever the ranks. */
static void quantised_views_are_blocks_of_8_bits(void **state)
{
    enum { MANY = 20011, BLOCK = 256 };
    const fsdp_tensor large = {
        .name = "t", .n_dims = 1, .shape = {MANY}, .dtype = FSDP_F32, .fill = FSDP_FILL_NORMAL, .b = 1};
    fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;
    static float       x[MANY + BLOCK];
    fsdp_context      *ctx;
    fsdp_model        *model;
    fsdp_unit         *unit;

    (void)state;
    options.quantized_params = 1;
    assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_WORLD, NULL, &ctx));
    assert_int_equal(FSDP_OK, fsdp_model_create(ctx, &options, &model));
    assert_int_equal(FSDP_OK, fsdp_unit_add(model, "u", &large, 1, &unit));
    assert_int_equal(FSDP_OK, fsdp_model_commit(model));
    for (int root = 0; root < fsdp_size(ctx); root++) {
        assert_int_equal(FSDP_OK, fsdp_tensor_export(model, "t", root, x, MANY * sizeof(float)));
    }
    assert_int_equal(FSDP_OK, fsdp_unit_begin_forward(unit));
    const float *view = fsdp_unit_param(unit, 0);
    for (size_t i = 0; i < MANY; i++) {
        assert_true(view[i] == read_back(x + i / BLOCK * BLOCK, BLOCK, i % BLOCK));
    }
    assert_int_equal(FSDP_OK, fsdp_unit_end_forward(unit));
    fsdp_model_destroy(model);
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

static void only_full_shard_gathers_quantised_parameters(void **state)
{
    fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;
    fsdp_context      *ctx;
    fsdp_model        *model;

    (void)state;
    options.quantized_params = 1;
    options.strategy         = FSDP_SHARD_GRAD_OP;
    assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_WORLD, NULL, &ctx));
    assert_int_equal(FSDP_ERR_UNSUPPORTED, fsdp_model_create(ctx, &options, &model));
    assert_non_null(strstr(fsdp_last_error(ctx), "quantized_params with SHARD_GRAD_OP"));
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

static void passes_without_communication_add_up(void **state)
{
    (void)state;
    train_every_strategy(FSDP_F32, 1, 3, 1);
}

/* Two units with the tied tensor at once: the tensor is seen in both, and the pass of one does not disturb the other's. */
static void units_with_a_tensor_in_common_can_be_open_together(void **state)
{
    (void)state;
    for (int strategy = 0; strategy < FSDP_N_STRATEGIES; strategy++) {
        fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;
        static trained     m;

        options.strategy = (fsdp_strategy)strategy;
        open_tensors(&m, &options, 1);
        assert_int_equal(FSDP_OK, fsdp_unit_begin_backward(m.units[0]));
        assert_int_equal(FSDP_OK, fsdp_unit_begin_backward(m.units[4]));
        add_gradient(&m, 0, 0, 0);
        add_gradient(&m, 0, 2, 0);
        add_gradient(&m, 4, 9, 0);
        add_gradient(&m, 4, 10, 0);
        check_view(&m, 0, 0);
        assert_int_equal(FSDP_OK, fsdp_unit_end_backward(m.units[4]));
        check_view(&m, 0, 0);
        assert_int_equal(FSDP_OK, fsdp_unit_end_backward(m.units[0]));
        assert_int_equal(FSDP_OK, fsdp_unit_begin_backward(m.units[1]));
        add_gradient(&m, 1, 3, 0);
        add_gradient(&m, 1, 4, 0);
        add_gradient(&m, 1, 6, 0);
        assert_int_equal(FSDP_OK, fsdp_unit_end_backward(m.units[1]));
        assert_int_equal(FSDP_OK, fsdp_optimizer_step(m.optimizer));
        (void)step_serially(&m, 0, 1, 0);
        check_masters(&m);
        close_tensors(&m);
    }
}

static void tied_names_see_one_tensor(void **state)
{
    fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;
    float              values[MOST];
    static trained     m;

    (void)state;
    open_tensors(&m, &options, 1);
    for (size_t i = 0; i < MOST; i++) {
        values[i] = m.expected[0][i] = (float)i + 0.25F;
    }
    assert_int_equal(FSDP_OK, fsdp_tensor_import(m.model, "head.weight", 0, values, sizeof values));
    check_masters(&m);
    assert_int_equal(FSDP_OK, fsdp_unit_begin_backward(m.units[1]));
    assert_ptr_equal(fsdp_unit_param(m.units[1], 1), fsdp_unit_param(m.units[1], 3));
    assert_ptr_equal(fsdp_unit_grad(m.units[1], 1), fsdp_unit_grad(m.units[1], 3));
    assert_int_equal(FSDP_OK, fsdp_unit_end_backward(m.units[1]));
    close_tensors(&m);
}

static void an_import_sets_an_ignored_tensor_on_every_rank(void **state)
{
    const float        values[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9.5F};
    fsdp_model_options options   = FSDP_MODEL_OPTIONS_DEFAULT;
    uint64_t           before, after;
    static trained     m;

    (void)state;
    options.buffer_dtype = FSDP_BF16;
    open_tensors(&m, &options, 1);
    const int last = fsdp_size(m.ctx) - 1;
    assert_int_equal(FSDP_OK, fsdp_model_hash(m.model, &before));
    assert_int_equal(
        FSDP_OK, fsdp_tensor_import(m.model, "running", last, fsdp_rank(m.ctx) == last ? values : NULL, sizeof values));
    for (size_t i = 0; i < 9; i++) {
        assert_true(value_of(fsdp_unit_buffer(m.units[1], 2), i, FSDP_BF16) == values[i]);
    }
    assert_int_equal(FSDP_OK, fsdp_model_hash(m.model, &after));
    assert_true(before == after);
    close_tensors(&m);
}

static void a_tie_to_another_shape_is_refused_on_all_ranks(void **state)
{
    const fsdp_tensor  turned  = {.name = "t", .n_dims = 2, .shape = {7, 13}, .dtype = FSDP_F32, .tied_to = "wte"};
    fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;
    fsdp_context      *ctx;
    fsdp_model        *model;
    fsdp_unit         *unit;

    (void)state;
    assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_WORLD, NULL, &ctx));
    assert_int_equal(FSDP_OK, fsdp_model_create(ctx, &options, &model));
    assert_int_equal(FSDP_OK, fsdp_unit_add(model, "a", TENSORS, 1, &unit));
    if (fsdp_rank(ctx) == fsdp_size(ctx) - 1) {
        assert_int_equal(FSDP_ERR_ARG, fsdp_unit_add(model, "b", &turned, 1, &unit));
    }
    assert_int_equal(FSDP_ERR_ARG, fsdp_model_commit(model));
    assert_non_null(strstr(fsdp_last_error(ctx), "its shape is not that of 'wte'"));
    fsdp_model_destroy(model);
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

static const struct CMUnitTest tensors[] = {
    cmocka_unit_test(all_kinds_train_as_a_serial_program_would),
    cmocka_unit_test(types_can_differ_from_the_models),
    cmocka_unit_test(quantised_parameters_train_too),
    cmocka_unit_test(quantised_views_are_blocks_of_8_bits),
    cmocka_unit_test(only_full_shard_gathers_quantised_parameters),
    cmocka_unit_test(passes_without_communication_add_up),
    cmocka_unit_test(units_with_a_tensor_in_common_can_be_open_together),
    cmocka_unit_test(tied_names_see_one_tensor),
    cmocka_unit_test(an_import_sets_an_ignored_tensor_on_every_rank),
    cmocka_unit_test(a_tie_to_another_shape_is_refused_on_all_ranks),
};

static const struct CMUnitTest tensors_at_fixed_addresses[] = {
    cmocka_unit_test(fixed_addresses_change_nothing),
};

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "fixed_addresses") == 0) {
        return fsdp_test_main(argc, argv, tensors_at_fixed_addresses, NULL, NULL);
    }
    return fsdp_test_main(argc, argv, tensors, NULL, NULL);
}
