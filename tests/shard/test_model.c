#include <string.h>

#include "fsdp/buffer.h"
#include "fsdp/collectives.h"
#include "fsdp/optimizer.h"
#include "shard/state/model.h"
#include "shard/state/strategy.h"
#include "tests/shard/small_model.h"

/* A model without units, on a context of its own. */
static void open_empty(small_model *m)
{
    assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_WORLD, NULL, &m->ctx));
    assert_int_equal(FSDP_OK, fsdp_model_create(m->ctx, NULL, &m->model));
}

static fsdp_status add_one(small_model *m, const char *unit, fsdp_tensor tensor)
{
    return fsdp_unit_add(m->model, unit, &tensor, 1, &m->units[0]);
}

static void tensors_that_make_no_sense_are_refused(void **state)
{
    static const struct {
        fsdp_tensor tensor;
        fsdp_status status;
        const char *words;
    } bad[] = {
        {{.name = "t", .n_dims = 2, .shape = {3, 0}, .dtype = FSDP_F32}, FSDP_ERR_ARG, "extent 1 is 0"},
        {{.name = NULL, .n_dims = 1, .shape = {3}, .dtype = FSDP_F32}, FSDP_ERR_ARG, "1 to 255 bytes"},
        {{.name = "", .n_dims = 1, .shape = {3}, .dtype = FSDP_F32}, FSDP_ERR_ARG, "1 to 255 bytes"},
        {{.name = "t", .n_dims = 9, .dtype = FSDP_F32}, FSDP_ERR_ARG, "9 dimensions; at most 8"},
        {{.name = "t", .n_dims = 2, .shape = {SIZE_MAX, 3}, .dtype = FSDP_F32}, FSDP_ERR_ARG, "overflows"},
        {{.name = "t", .n_dims = 1, .shape = {SIZE_MAX / 4}, .dtype = FSDP_F32}, FSDP_ERR_ARG, "overflows"},
        {{.name = "t", .dtype = (fsdp_dtype)77}, FSDP_ERR_ARG, "77 is no element type"},
        {{.name = "t", .dtype = FSDP_I32},
         FSDP_ERR_UNSUPPORTED,
         "dtype is i32; set it to FSDP_F32, FSDP_BF16 or FSDP_F16"},
        {{.name = "t", .dtype = FSDP_F32, .fill = (fsdp_fill)9}, FSDP_ERR_ARG, "fill 9"},
        {{.name = "t", .dtype = FSDP_F32, .flags = 0x80}, FSDP_ERR_ARG, "flags 0x80"},
        {{.name = "t", .dtype = FSDP_F32, .tied_to = "x"},
         FSDP_ERR_ARG,
         "tied to 'x', which is no tensor added before"},
        {{.name = "t", .dtype = FSDP_F32, .tied_to = "t"},
         FSDP_ERR_ARG,
         "tied to 't', which is no tensor added before"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        small_model m;
        open_empty(&m);
        assert_int_equal(bad[i].status, add_one(&m, "u", bad[i].tensor));
        assert_says(m.ctx, bad[i].words);
        assert_int_equal(bad[i].status, fsdp_model_commit(m.model));
        assert_says(m.ctx, bad[i].words);
        small_model_close(&m);
    }
}

static void names_are_unique_in_a_model(void **state)
{
    const fsdp_tensor twice[2] = {{.name = "t", .dtype = FSDP_F32}, {.name = "t", .dtype = FSDP_F32}};
    small_model       m;

    (void)state;
    open_empty(&m);
    assert_int_equal(FSDP_OK, add_one(&m, "u", twice[0]));
    assert_int_equal(FSDP_ERR_ARG, add_one(&m, "u", (fsdp_tensor){.name = "s", .dtype = FSDP_F32}));
    assert_says(m.ctx, "the name 'u' is taken");
    assert_int_equal(FSDP_ERR_ARG, add_one(&m, "v", twice[0]));
    assert_says(m.ctx, "tensor 't': the name is taken");
    assert_int_equal(FSDP_ERR_ARG, fsdp_unit_add(m.model, "w", twice, 2, &m.units[0]));
    small_model_close(&m);
}

static void units_need_tensors_and_models_need_units(void **state)
{
    small_model m;
    fsdp_tensor tensor = {.name = "t", .dtype = FSDP_F32};

    (void)state;
    open_empty(&m);
    assert_int_equal(FSDP_ERR_ARG, fsdp_model_commit(m.model));
    assert_says(m.ctx, "0 units");
    assert_int_equal(FSDP_ERR_ARG, fsdp_unit_add(m.model, "u", &tensor, 0, &m.units[0]));
    assert_says(m.ctx, "0 tensors");
    small_model_close(&m);
    assert_int_equal(FSDP_ERR_ARG, fsdp_unit_add(NULL, "u", &tensor, 1, &m.units[0]));
    assert_int_equal(FSDP_ERR_ARG, fsdp_model_commit(NULL));
    fsdp_model_destroy(NULL);
}

static void a_unit_that_one_rank_got_wrong_fails_the_commit_of_all(void **state)
{
    small_model m;
    fsdp_tensor tensor = {.name = "t", .n_dims = 1, .shape = {4}, .dtype = FSDP_F32};

    (void)state;
    open_empty(&m);
    tensor.shape[0] = fsdp_rank(m.ctx) == fsdp_size(m.ctx) - 1 ? 0 : 4;
    (void)add_one(&m, "u", tensor);
    assert_int_equal(FSDP_ERR_ARG, fsdp_model_commit(m.model));
    assert_says(m.ctx, "tensor 't': extent 0 is 0");
    small_model_close(&m);
}

static void ranks_that_add_different_units_are_told_which(void **state)
{
    small_model m;
    fsdp_tensor tensor = {.name = "t", .n_dims = 1, .shape = {4}, .dtype = FSDP_F32};

    (void)state;
    open_empty(&m);
    if (fsdp_size(m.ctx) > 1) {
        tensor.shape[0] = fsdp_rank(m.ctx) == 1 ? 5 : 4;
        assert_int_equal(FSDP_OK, add_one(&m, "u", tensor));
        assert_int_equal(FSDP_ERR_MISMATCH, fsdp_model_commit(m.model));
        assert_says(m.ctx, "unit 'u' with 1 tensor of 5 elements");
    }
    small_model_close(&m);
}

static void options_that_differ_are_refused(void **state)
{
    fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;
    fsdp_context      *ctx;
    fsdp_model        *model;

    (void)state;
    assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_WORLD, NULL, &ctx));
    options.strategy = (fsdp_strategy)9;
    assert_int_equal(FSDP_ERR_ARG, fsdp_model_create(ctx, &options, &model));
    assert_says(ctx, "9 is no strategy");
    options.strategy = FSDP_FULL_SHARD;
    if (fsdp_size(ctx) > 1) {
        options.seed = fsdp_rank(ctx) == 1 ? 8 : 9;
        assert_int_equal(FSDP_ERR_MISMATCH, fsdp_model_create(ctx, &options, &model));
        assert_says(ctx, "seed 8");
    }
    assert_int_equal(FSDP_ERR_ARG, fsdp_model_create(ctx, NULL, NULL));
    assert_int_equal(FSDP_ERR_ARG, fsdp_model_create(NULL, NULL, &model));
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

static void a_unit_after_commit_is_refused_and_the_model_stays_good(void **state)
{
    small_model m;
    fsdp_unit  *late;

    (void)state;
    small_model_open(&m, NULL, FSDP_FULL_SHARD);
    assert_int_equal(FSDP_ERR_STATE,
                     fsdp_unit_add(m.model, "late", &(fsdp_tensor){.name = "late", .dtype = FSDP_F32}, 1, &late));
    assert_says(m.ctx, "unit 'late' comes after fsdp_model_commit");
    assert_int_equal(FSDP_ERR_STATE, fsdp_model_commit(m.model));
    run_pass(&m, 0);
    small_model_close(&m);
}

static void passes_before_commit_are_refused(void **state)
{
    small_model m;

    (void)state;
    small_model_build(&m, MPI_COMM_WORLD, NULL, NULL);
    assert_int_equal(FSDP_ERR_STATE, fsdp_unit_begin_forward(m.units[0]));
    assert_says(m.ctx, "not committed");
    assert_null(fsdp_unit_param(m.units[0], 0));
    small_model_close(&m);
}

static void check_pass_errors(fsdp_strategy strategy)
{
    small_model m;

    small_model_open(&m, NULL, strategy);
    assert_null(fsdp_unit_param(m.units[0], 0));
    assert_says(m.ctx, "fsdp_unit_param: no pass of unit 'a' is open");
    assert_int_equal(FSDP_ERR_STATE, fsdp_unit_end_forward(m.units[0]));
    assert_says(m.ctx, "no forward pass of unit 'a' is open");
    assert_int_equal(FSDP_ERR_STATE, fsdp_unit_end_backward(m.units[0]));
    assert_says(m.ctx, "no backward pass of unit 'a' is open");
    assert_int_equal(FSDP_OK, fsdp_model_zero_grad(m.model));

    assert_int_equal(FSDP_OK, fsdp_unit_begin_forward(m.units[0]));
    assert_int_equal(FSDP_ERR_STATE, fsdp_unit_begin_forward(m.units[0]));
    assert_says(m.ctx, "unit 'a' is in its forward pass already; call fsdp_unit_end_forward first");
    assert_int_equal(FSDP_ERR_STATE, fsdp_unit_begin_backward(m.units[0]));
    assert_null(fsdp_unit_grad(m.units[0], 0));
    assert_says(m.ctx, "fsdp_unit_grad: no backward pass of unit 'a'");
    assert_null(fsdp_unit_param(m.units[0], 3));
    assert_says(m.ctx, "unit 'a' has no tensor 3; it has 0 to 2");
    assert_int_equal(FSDP_ERR_STATE, fsdp_unit_end_backward(m.units[0]));
    assert_int_equal(FSDP_OK, fsdp_unit_end_forward(m.units[0]));
    assert_int_equal(FSDP_OK, fsdp_model_zero_grad(m.model));
    run_pass(&m, 0);
    small_model_close(&m);
}

static void passes_out_of_order_are_refused_and_the_model_stays_good(void **state)
{
    (void)state;
    check_pass_errors(FSDP_FULL_SHARD);
    check_pass_errors(FSDP_NO_SHARD);
}

static void more_open_units_than_views_are_refused(void **state)
{
    small_model m;

    (void)state;
    small_model_open(&m, NULL, FSDP_FULL_SHARD);
    assert_int_equal(FSDP_OK, fsdp_unit_begin_forward(m.units[0]));
    assert_int_equal(FSDP_OK, fsdp_unit_begin_forward(m.units[1]));
    assert_int_equal(FSDP_ERR_STATE, fsdp_unit_begin_forward(m.units[2]));
    assert_says(m.ctx, "FSDP_VIEWS_IN_FLIGHT is 2");
    assert_int_equal(FSDP_OK, fsdp_model_zero_grad(m.model)); /* which ends both */
    assert_int_equal(FSDP_OK, fsdp_unit_begin_forward(m.units[0]));
    assert_int_equal(FSDP_OK, fsdp_unit_begin_forward(m.units[1]));
    assert_int_equal(FSDP_OK, fsdp_unit_end_forward(m.units[0])); /* not the order in which they were opened */
    assert_int_equal(FSDP_OK, fsdp_unit_begin_forward(m.units[2]));
    assert_non_null(fsdp_unit_param(m.units[1], 0));
    assert_int_equal(FSDP_OK, fsdp_unit_end_forward(m.units[1]));
    assert_int_equal(FSDP_OK, fsdp_unit_end_forward(m.units[2]));
    small_model_close(&m);
}

static void ranks_that_begin_different_units_are_told(void **state)
{
    fsdp_config config;
    small_model m;

    (void)state;
    fsdp_config_init(&config);
    config.prefetch = 0; /* else what needs no communication is not compared at once */
    for (int strategy = 0; strategy < FSDP_N_STRATEGIES; strategy++) {
        small_model_open(&m, &config, (fsdp_strategy)strategy);
        if (fsdp_size(m.ctx) > 1 && !fsdpi_is_hybrid((fsdp_strategy)strategy)) {
            assert_int_equal(FSDP_ERR_MISMATCH, fsdp_unit_begin_forward(m.units[fsdp_rank(m.ctx) == 1 ? 2 : 1]));
            assert_says(m.ctx, "rank 1 calls fsdp_unit_begin_forward");
            assert_int_equal(FSDP_ERR_STATE, fsdp_unit_end_forward(m.units[1]));
            assert_int_equal(FSDP_OK, fsdp_model_zero_grad(m.model));
        }
        run_pass(&m, 0);
        small_model_close(&m);
    }
}

static void steps_and_clips_in_the_middle_of_a_pass_are_refused(void **state)
{
    small_model            m;
    fsdp_optimizer        *optimizer;
    fsdp_optimizer_options o;

    (void)state;
    small_model_open(&m, NULL, FSDP_FULL_SHARD);
    assert_int_equal(FSDP_OK, fsdp_optimizer_options_init(FSDP_ADAMW, &o));
    assert_int_equal(FSDP_OK, fsdp_optimizer_create(m.model, &o, &optimizer));
    assert_int_equal(FSDP_ERR_STATE, fsdp_clip_grad_norm(m.model, 1.0, NULL));
    assert_says(m.ctx, "no gradients since the last step");
    run_pass(&m, 0);
    assert_int_equal(FSDP_ERR_ARG, fsdp_clip_grad_norm(m.model, 0.0, NULL));
    assert_says(m.ctx, "max_norm is 0");
    assert_int_equal(FSDP_OK, fsdp_unit_begin_forward(m.units[1]));
    assert_int_equal(FSDP_ERR_STATE, fsdp_optimizer_step(optimizer));
    assert_says(m.ctx, "a forward pass of unit 'b' is open");
    assert_int_equal(FSDP_ERR_STATE, fsdp_clip_grad_norm(m.model, 1.0, NULL));
    assert_int_equal(FSDP_OK, fsdp_unit_end_forward(m.units[1]));
    assert_int_equal(FSDP_OK, fsdp_optimizer_step(optimizer));
    small_model_close(&m);
}

static void optimizer_options_out_of_range_are_named(void **state)
{
    small_model            m;
    fsdp_optimizer        *optimizer;
    fsdp_optimizer_options good, o;

    (void)state;
    small_model_build(&m, MPI_COMM_WORLD, NULL, NULL);
    assert_int_equal(FSDP_OK, fsdp_optimizer_options_init(FSDP_ADAMW, &good));
    assert_int_equal(FSDP_ERR_STATE, fsdp_optimizer_create(m.model, &good, &optimizer));
    assert_int_equal(FSDP_OK, fsdp_model_commit(m.model));
    o = good, o.beta1 = 1.0;
    assert_int_equal(FSDP_ERR_ARG, fsdp_optimizer_create(m.model, &o, &optimizer));
    assert_says(m.ctx, "beta1 is 1");
    o = good, o.eps = 0.0;
    assert_int_equal(FSDP_ERR_ARG, fsdp_optimizer_create(m.model, &o, &optimizer));
    o = good, o.lr = -1.0;
    assert_int_equal(FSDP_ERR_ARG, fsdp_optimizer_create(m.model, &o, &optimizer));
    o = good, o.weight_decay = -0.5;
    assert_int_equal(FSDP_ERR_ARG, fsdp_optimizer_create(m.model, &o, &optimizer));
    o = good, o.kind = (fsdp_optimizer_kind)7;
    assert_int_equal(FSDP_ERR_ARG, fsdp_optimizer_create(m.model, &o, &optimizer));
    o = good, o.kind = FSDP_SGD_MOMENTUM, o.momentum = 1.0;
    assert_int_equal(FSDP_ERR_ARG, fsdp_optimizer_create(m.model, &o, &optimizer));
    assert_says(m.ctx, "momentum is 1");
    if (fsdp_size(m.ctx) > 1) {
        o = good, o.lr = fsdp_rank(m.ctx) == 1 ? 1e-4 : 1e-3;
        assert_int_equal(FSDP_ERR_MISMATCH, fsdp_optimizer_create(m.model, &o, &optimizer));
    }
    assert_int_equal(FSDP_OK, fsdp_optimizer_create(m.model, &good, &optimizer));
    fsdp_optimizer_destroy(optimizer);
    fsdp_optimizer_destroy(NULL);
    small_model_close(&m);
}

static void a_model_left_open_is_released_and_reported(void **state)
{
    small_model m;

    (void)state;
    small_model_open(&m, NULL, FSDP_FULL_SHARD);
    assert_int_equal(FSDP_ERR_LEAK, fsdp_finalize(m.ctx));
}

static void a_written_view_is_found_under_full_verification(void **state)
{
    fsdp_config config;

    (void)state;
    fsdp_config_init(&config);
    config.verify = FSDP_VERIFY_FULL;
    for (int strategy = 0; strategy < FSDP_N_STRATEGIES; strategy++) {
        small_model m;
        small_model_open(&m, &config, (fsdp_strategy)strategy);
        run_pass(&m, 0);
        assert_int_equal(FSDP_OK, fsdp_unit_begin_forward(m.units[2]));
        float *w = (float *)(uintptr_t)fsdp_unit_param(m.units[2], 0);
        if (fsdp_rank(m.ctx) == fsdp_size(m.ctx) - 1) { /* the view is the node's: the others would write over it */
            w[5] += 1.0F;
        }
        assert_int_equal(FSDP_ERR_STATE, fsdp_unit_end_forward(m.units[2]));
        assert_says(m.ctx, "the gathered view of unit 'c' was written to");
        small_model_close(&m);
    }
}

/* Destroying is local. ThreadSanitizer sees whether the progress thread meets what is taken away. */
static void a_model_can_be_destroyed_beside_an_operation(void **state)
{
    enum { ROUNDS = 5, ELEMENTS = 200003 };
    fsdp_context *ctx;
    void         *values;

    (void)state;
    assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_WORLD, NULL, &ctx));
    assert_int_equal(FSDP_OK, fsdp_buffer_alloc(ctx, FSDP_BUFFER_PER_RANK, ELEMENTS * sizeof(float), &values));
    memset(values, 0, ELEMENTS * sizeof(float));
    for (int i = 0; i < ROUNDS; i++) {
        small_model   m;
        fsdp_request *request;

        small_model_create(&m, ctx, NULL);
        assert_int_equal(FSDP_OK, fsdp_model_commit(m.model));
        assert_int_equal(FSDP_OK, fsdp_iallreduce(ctx, FSDP_IN_PLACE, values, ELEMENTS, FSDP_F32, FSDP_SUM, &request));
        fsdp_model_destroy(m.model);
        assert_int_equal(FSDP_OK, fsdp_wait(request));
    }
    assert_int_equal(FSDP_OK, fsdp_buffer_free(ctx, values));
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

/* Of what a model has taken, buffers above all, nothing is said: they are not the program's. */
static void a_model_left_open_is_named_and_nothing_else(void **state)
{
    small_model m;

    (void)state;
    small_model_open(&m, NULL, FSDP_FULL_SHARD);
    run_pass(&m, 0);
    fsdp_test_capture_stderr();
    const fsdp_status status  = fsdp_finalize(m.ctx);
    const int         printed = fsdp_test_times_printed("fsdp_finalize: a model is still open");
    assert_int_equal(FSDP_ERR_LEAK, status);
    assert_int_equal(fsdp_test_size(), printed);
}

/* The 100 elements of 'w' in 16 bits, as a model in bf16 gathers them. */
static void gather_in_bf16(fsdp_context *ctx, fsdp_dtype dtype, unsigned flags, uint16_t *values)
{
    const fsdp_tensor tensor = {
        .name = "w", .n_dims = 1, .shape = {100}, .dtype = dtype, .fill = FSDP_FILL_NORMAL, .b = 1.0, .flags = flags};
    fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;
    fsdp_model        *model;
    fsdp_unit         *unit;

    options.param_dtype = FSDP_BF16;
    assert_int_equal(FSDP_OK, fsdp_model_create(ctx, &options, &model));
    assert_int_equal(FSDP_OK, fsdp_unit_add(model, "u", &tensor, 1, &unit));
    assert_int_equal(FSDP_OK, fsdp_model_commit(model));
    assert_int_equal(FSDP_OK, fsdp_unit_begin_forward(unit));
    memcpy(values, fsdp_unit_param(unit, 0), 100 * sizeof *values);
    assert_int_equal(FSDP_OK, fsdp_unit_end_forward(unit));
    fsdp_model_destroy(model);
}

static void a_dtype_that_was_not_set_is_the_models_own(void **state)
{
    uint16_t      expected[100], found[100];
    fsdp_context *ctx;

    (void)state;
    assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_WORLD, NULL, &ctx));
    gather_in_bf16(ctx, FSDP_BF16, 0, expected);
    gather_in_bf16(ctx, (fsdp_dtype)0, 0, found);
    assert_memory_equal(expected, found, sizeof found);
    memset(found, 0, sizeof found);
    gather_in_bf16(ctx, FSDP_F64, FSDP_TENSOR_KEEP_DTYPE, found);
    assert_memory_equal(expected, found, sizeof found);
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

static void a_dtype_that_no_model_has_is_refused(void **state)
{
    const fsdp_tensor tensor = {.name = "w", .n_dims = 1, .shape = {100}, .dtype = FSDP_I32};
    fsdp_context     *ctx;
    fsdp_model       *model;
    fsdp_unit        *unit;

    (void)state;
    assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_WORLD, NULL, &ctx));
    assert_int_equal(FSDP_OK, fsdp_model_create(ctx, NULL, &model));
    assert_int_equal(FSDP_ERR_UNSUPPORTED, fsdp_unit_add(model, "u", &tensor, 1, &unit));
    assert_says(ctx, "tensor 'w': dtype is i32; set it to FSDP_F32");
    fsdp_model_destroy(model);
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

static void options_that_were_not_begun_with_defaults_are_told_to(void **state)
{
    const fsdp_optimizer_options options = {.size = sizeof options, .kind = FSDP_SGD, .lr = 0.1};
    fsdp_model_options           o       = FSDP_MODEL_OPTIONS_DEFAULT;
    fsdp_optimizer              *optimizer;
    fsdp_model                  *model;
    small_model                  m;

    (void)state;
    small_model_open(&m, NULL, FSDP_FULL_SHARD);
    assert_int_equal(FSDP_ERR_ARG, fsdp_optimizer_create(m.model, &options, &optimizer));
    assert_says(
        m.ctx,
        "moment_dtype is f64; use FSDP_F32 or FSDP_BF16, or FSDP_U8, and start from fsdp_optimizer_options_init");
    o.moment_dtype = FSDP_F64;
    assert_int_equal(FSDP_ERR_ARG, fsdp_model_create(m.ctx, &o, &model));
    assert_says(m.ctx, "and start from FSDP_MODEL_OPTIONS_DEFAULT");
    small_model_close(&m);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_that_make_no_sense_are_refused),
        cmocka_unit_test(names_are_unique_in_a_model),
        cmocka_unit_test(units_need_tensors_and_models_need_units),
        cmocka_unit_test(a_unit_that_one_rank_got_wrong_fails_the_commit_of_all),
        cmocka_unit_test(ranks_that_add_different_units_are_told_which),
        cmocka_unit_test(options_that_differ_are_refused),
        cmocka_unit_test(a_unit_after_commit_is_refused_and_the_model_stays_good),
        cmocka_unit_test(passes_before_commit_are_refused),
        cmocka_unit_test(passes_out_of_order_are_refused_and_the_model_stays_good),
        cmocka_unit_test(more_open_units_than_views_are_refused),
        cmocka_unit_test(a_model_left_open_is_named_and_nothing_else),
        cmocka_unit_test(a_dtype_that_was_not_set_is_the_models_own),
        cmocka_unit_test(a_dtype_that_no_model_has_is_refused),
        cmocka_unit_test(options_that_were_not_begun_with_defaults_are_told_to),
        cmocka_unit_test(ranks_that_begin_different_units_are_told),
        cmocka_unit_test(steps_and_clips_in_the_middle_of_a_pass_are_refused),
        cmocka_unit_test(optimizer_options_out_of_range_are_named),
        cmocka_unit_test(a_model_left_open_is_released_and_reported),
        cmocka_unit_test(a_written_view_is_found_under_full_verification),
        cmocka_unit_test(a_model_can_be_destroyed_beside_an_operation),
    };

    return fsdp_test_main(argc, argv, tests, NULL, NULL);
}
