/*
 * Units and tensors by their names; and initial values that the program computes.
 */
#include <stdio.h>
#include <string.h>

#include "fsdp/tensor_io.h"
#include "tests/shard/small_model.h"

enum { MANY = 300, LONG = 1031 };

/* Names of which many begin alike, in units of one to three tensors. */
static void add_many(fsdp_model *model, fsdp_unit **units)
{
    for (size_t u = 0; u < MANY; u++) {
        char         unit[32], names[3][48];
        fsdp_tensor  tensors[3];
        const size_t n = u % 3 + 1;

        (void)snprintf(unit, sizeof unit, "h.%zu", u);
        for (size_t t = 0; t < n; t++) {
            (void)snprintf(names[t], sizeof names[t], t == 2 ? "plain.%zu" : t == 1 ? "h.%zu.b" : "h.%zu.attn.w", u);
            tensors[t] = (fsdp_tensor){.name = names[t], .n_dims = 1, .shape = {3}, .dtype = FSDP_F32};
        }
        assert_int_equal(FSDP_OK, fsdp_unit_add(model, unit, tensors, n, &units[u]));
    }
}

static void check_many(fsdp_model *model, fsdp_unit *const *units)
{
    for (size_t u = 0; u < MANY; u++) {
        char         name[64];
        const size_t n = u % 3 + 1;

        (void)snprintf(name, sizeof name, "h.%zu", u);
        assert_ptr_equal(units[u], fsdp_model_unit(model, name));
        (void)snprintf(name, sizeof name, "h.%zu.attn.w", u);
        assert_int_equal(0, fsdp_unit_tensor(units[u], name));
        assert_int_equal(0, fsdp_unit_tensor(units[u], "attn.w"));
        assert_int_equal(n > 1 ? 1 : FSDP_NO_TENSOR, fsdp_unit_tensor(units[u], "b"));
        (void)snprintf(name, sizeof name, "plain.%zu", u);
        assert_int_equal(n > 2 ? 2 : FSDP_NO_TENSOR, fsdp_unit_tensor(units[u], name));
        assert_int_equal(FSDP_NO_TENSOR, fsdp_unit_tensor(units[(u + 3) % MANY], name));
    }
}

static void every_unit_and_tensor_is_found_by_its_name(void **state)
{
    fsdp_context *ctx = *state;
    fsdp_unit    *units[MANY];
    fsdp_model   *model;

    assert_int_equal(FSDP_OK, fsdp_model_create(ctx, NULL, &model));
    assert_null(fsdp_model_unit(model, "h.0"));
    assert_says(ctx, "has no unit 'h.0', as it has none; call fsdp_unit_add first");
    add_many(model, units);
    check_many(model, units);
    assert_int_equal(FSDP_OK, fsdp_model_commit(model));
    check_many(model, units);
    fsdp_model_destroy(model);
}

static void a_name_that_is_unknown_is_answered_with_the_nearest(void **state)
{
    fsdp_context     *ctx   = *state;
    const fsdp_tensor two[] = {{.name = "h.0.attn.weight", .n_dims = 1, .shape = {4}, .dtype = FSDP_F32},
                               {.name = "h.0.mlp.weight", .n_dims = 1, .shape = {4}, .dtype = FSDP_F32}};
    char              longer[400];
    fsdp_unit        *unit;
    fsdp_model       *model;

    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    assert_int_equal(FSDP_OK, fsdp_model_create(ctx, NULL, &model));
    assert_int_equal(FSDP_OK, fsdp_unit_add(model, "h.0", two, 2, &unit));
    assert_null(fsdp_model_unit(model, "h0"));
    assert_says(ctx, "fsdp_model_unit: the model has no unit 'h0'; the nearest that it has: 'h.0'");
    assert_int_equal(FSDP_NO_TENSOR, fsdp_unit_tensor(unit, "atn.weight"));
    assert_says(ctx, "unit 'h.0' has no tensor 'atn.weight'; the nearest that it has: 'attn.weight'");
    assert_int_equal(FSDP_NO_TENSOR, fsdp_unit_tensor(unit, "h.0.mlp.weights"));
    assert_says(ctx, "the nearest that it has: 'mlp.weight'");
    assert_int_equal(FSDP_NO_TENSOR, fsdp_unit_tensor(unit, "h.0"));
    assert_int_equal(FSDP_NO_TENSOR, fsdp_unit_tensor(unit, ""));
    assert_int_equal(FSDP_NO_TENSOR, fsdp_unit_tensor(unit, longer));
    assert_says(ctx, "longer than names can be");
    assert_null(fsdp_model_unit(model, longer));
    assert_int_equal(FSDP_NO_TENSOR, fsdp_unit_tensor(unit, NULL));
    assert_int_equal(FSDP_NO_TENSOR, fsdp_unit_tensor(NULL, "a"));
    assert_null(fsdp_model_unit(model, NULL));
    assert_null(fsdp_model_unit(NULL, "h.0"));
    assert_null(fsdp_unit_param(unit, fsdp_unit_tensor(unit, "no such")));
    fsdp_model_destroy(model);
}

/* The unit's own tensor of exactly that name comes before the longer one. */
static void a_whole_name_comes_before_one_without_its_unit(void **state)
{
    fsdp_context     *ctx   = *state;
    const fsdp_tensor two[] = {{.name = "a.w", .n_dims = 1, .shape = {4}, .dtype = FSDP_F32},
                               {.name = "w", .n_dims = 1, .shape = {4}, .dtype = FSDP_F32}};
    fsdp_unit        *unit;
    fsdp_model       *model;

    assert_int_equal(FSDP_OK, fsdp_model_create(ctx, NULL, &model));
    assert_int_equal(FSDP_OK, fsdp_unit_add(model, "a", two, 2, &unit));
    assert_int_equal(1, fsdp_unit_tensor(unit, "w"));
    assert_int_equal(0, fsdp_unit_tensor(unit, "a.w"));
    fsdp_model_destroy(model);
}

/* ---- initial values ---------------------------------------------------------------------------------------------- */

typedef struct filling {
    size_t      elements, calls;
    fsdp_status status;
} filling;

static float wanted(const char *tensor, size_t i)
{
    return (float)(strlen(tensor) * 4096 + i) * 0.25F;
}

static fsdp_status fill(void *state, const char *tensor, size_t first, size_t count, void *values, fsdp_dtype dtype)
{
    filling *f = state;

    f->calls++;
    f->elements += count;
    if (dtype != FSDP_F32 || count == 0 || first + count > LONG) {
        return FSDP_ERR_FORMAT;
    }
    for (size_t i = 0; i < count; i++) {
        ((float *)values)[i] = wanted(tensor, first + i);
    }
    return f->status;
}

static void describe(fsdp_tensor *tensors, filling *f)
{
    const fsdp_tensor some[] = {
        {.name = "whole", .n_dims = 1, .shape = {LONG}, .dtype = FSDP_F32, .fill = FSDP_FILL_CALLBACK},
        {.name = "drawn", .n_dims = 1, .shape = {77}, .dtype = FSDP_F32, .fill = FSDP_FILL_NORMAL, .b = 1.0},
        {.name = "small.one", .n_dims = 1, .shape = {5}, .dtype = FSDP_F32, .fill = FSDP_FILL_CALLBACK},
        {.name   = "ignored",
         .n_dims = 1,
         .shape  = {9},
         .dtype  = FSDP_F32,
         .fill   = FSDP_FILL_CALLBACK,
         .flags  = FSDP_TENSOR_IGNORED}};

    memcpy(tensors, some, sizeof some);
    for (size_t i = 0; i < 4; i++) {
        tensors[i].fill_values = tensors[i].fill == FSDP_FILL_CALLBACK ? fill : NULL;
        tensors[i].fill_state  = f;
    }
}

static void check_filled(fsdp_model *model, const fsdp_tensor *tensors)
{
    static float values[LONG];

    for (size_t t = 0; t < 4; t++) {
        if (tensors[t].fill == FSDP_FILL_CALLBACK) {
            assert_int_equal(FSDP_OK, fsdp_tensor_export_to_all(model, tensors[t].name, values,
                                                                tensors[t].shape[0] * sizeof(float)));
            for (size_t i = 0; i < tensors[t].shape[0]; i++) {
                assert_true(values[i] == wanted(tensors[t].name, i));
            }
        }
    }
}

static void the_program_computes_what_a_rank_holds_and_no_more(void **state)
{
    fsdp_context *ctx = *state;

    for (int s = 0; s < FSDP_N_STRATEGIES; s++) {
        fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;
        filling            f       = {0};
        fsdp_tensor        tensors[4];
        fsdp_unit         *unit;
        fsdp_model        *model;

        options.strategy = (fsdp_strategy)s;
        describe(tensors, &f);
        assert_int_equal(FSDP_OK, fsdp_model_create(ctx, &options, &model));
        assert_int_equal(FSDP_OK, fsdp_unit_add(model, "u", tensors, 4, &unit));
        assert_int_equal(0, f.calls);
        assert_int_equal(FSDP_OK, fsdp_model_commit(model));
        if (options.strategy == FSDP_NO_SHARD) {
            assert_int_equal(LONG + 5 + 9, f.elements);
        } else if (options.strategy == FSDP_FULL_SHARD && fsdp_size(ctx) > 1) {
            assert_true(f.elements < LONG + 5 + 9);
        }
        check_filled(model, tensors);
        fsdp_model_destroy(model);
    }
}

static void an_error_of_the_program_on_one_rank_fails_on_all(void **state)
{
    fsdp_context *ctx  = *state;
    const int     last = fsdp_rank(ctx) == fsdp_size(ctx) - 1;
    filling       f    = {.status = last ? FSDP_ERR_IO : FSDP_OK};
    fsdp_tensor   tensors[4];
    fsdp_memory   before, after;
    fsdp_unit    *unit;
    fsdp_model   *model;

    assert_int_equal(FSDP_OK, fsdp_memory_usage(ctx, &before));
    describe(tensors, &f);
    assert_int_equal(FSDP_OK, fsdp_model_create(ctx, NULL, &model));
    assert_int_equal(FSDP_OK, fsdp_unit_add(model, "u", tensors, 4, &unit));
    assert_int_equal(FSDP_ERR_IO, fsdp_model_commit(model));
    assert_says(ctx, "fill_values() returned 9 for");
    f.status = last ? (fsdp_status)-7 : FSDP_OK;
    assert_int_equal(FSDP_ERR_ARG, fsdp_model_commit(model));
    assert_says(ctx, "fill_values() returned -7 for");
    f.status = FSDP_OK; /* and the model is still usable */
    assert_int_equal(FSDP_OK, fsdp_model_commit(model));
    check_filled(model, tensors);
    fsdp_model_destroy(model);
    assert_int_equal(FSDP_OK, fsdp_memory_usage(ctx, &after));
    assert_int_equal(before.current_total, after.current_total);
}

static void a_function_and_a_fill_that_do_not_fit_are_refused(void **state)
{
    fsdp_context *ctx    = *state;
    filling       f      = {0};
    fsdp_tensor   tensor = {.name = "w", .n_dims = 1, .shape = {4}, .dtype = FSDP_F32, .fill = FSDP_FILL_CALLBACK};
    fsdp_unit    *unit;
    fsdp_model   *model;

    assert_int_equal(FSDP_OK, fsdp_model_create(ctx, NULL, &model));
    assert_int_equal(FSDP_ERR_ARG, fsdp_unit_add(model, "u", &tensor, 1, &unit));
    assert_says(ctx, "FSDP_FILL_CALLBACK without a function; set `fill_values`");
    tensor.fill        = FSDP_FILL_CONSTANT;
    tensor.fill_values = fill;
    tensor.fill_state  = &f;
    assert_int_equal(FSDP_ERR_ARG, fsdp_unit_add(model, "u", &tensor, 1, &unit));
    assert_says(ctx, "set `fill` to FSDP_FILL_CALLBACK");
    fsdp_model_destroy(model);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_unit_and_tensor_is_found_by_its_name),
        cmocka_unit_test(a_name_that_is_unknown_is_answered_with_the_nearest),
        cmocka_unit_test(a_whole_name_comes_before_one_without_its_unit),
        cmocka_unit_test(the_program_computes_what_a_rank_holds_and_no_more),
        cmocka_unit_test(an_error_of_the_program_on_one_rank_fails_on_all),
        cmocka_unit_test(a_function_and_a_fill_that_do_not_fit_are_refused),
    };

    return fsdp_test_main(argc, argv, tests, fsdp_test_open_context, fsdp_test_close_context);
}
