/*
 * Every tensor begins at 64 bytes in the gathered view and in the gradient view, whatever its neighbours, its type, the strategy and
 * the granularity; and for that no gather copies more: every byte of a view is written once, by the rank that holds it.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "fsdp/fsdp.h"
#include "lib/context/context.h"
#include "shard/state/slices.h"
#include "tests/support/mpi_test.h"

enum { UNITS = 2, TENSORS = 7 };

/* Neighbours of odd lengths; one of another type, one that is frozen, one that the second unit uses too. */
static const fsdp_tensor ALL[UNITS][TENSORS] = {
    {{.name = "a.seven", .n_dims = 1, .shape = {7}, .dtype = FSDP_F32},
     {.name = "a.matrix", .n_dims = 2, .shape = {64, 64}, .dtype = FSDP_F32},
     {.name = "a.one", .n_dims = 0, .dtype = FSDP_F32},
     {.name = "a.odd", .n_dims = 2, .shape = {33, 17}, .dtype = FSDP_F32},
     {.name = "a.kept", .n_dims = 1, .shape = {3}, .dtype = FSDP_F32, .flags = FSDP_TENSOR_KEEP_DTYPE},
     {.name = "a.kept_too", .n_dims = 1, .shape = {5}, .dtype = FSDP_F32, .flags = FSDP_TENSOR_KEEP_DTYPE},
     {.name = "a.shared", .n_dims = 1, .shape = {129}, .dtype = FSDP_F32}},
    {{.name = "b.frozen", .n_dims = 1, .shape = {9}, .dtype = FSDP_F32, .flags = FSDP_TENSOR_FROZEN},
     {.name = "b.frozen_too", .n_dims = 1, .shape = {11}, .dtype = FSDP_F32, .flags = FSDP_TENSOR_FROZEN},
     {.name = "b.prime", .n_dims = 1, .shape = {1009}, .dtype = FSDP_F32},
     {.name = "b.next", .n_dims = 2, .shape = {5, 5}, .dtype = FSDP_F32},
     {.name = "b.tied", .n_dims = 1, .shape = {129}, .tied_to = "a.shared"},
     {.name = "b.two", .n_dims = 1, .shape = {2}, .dtype = FSDP_F32},
     {.name = "b.last", .n_dims = 2, .shape = {31, 3}, .dtype = FSDP_F32}},
};

typedef struct aligned {
    fsdp_model *model;
    fsdp_unit  *units[UNITS];
} aligned;

static void open_aligned(aligned *m, fsdp_context *ctx, const fsdp_model_options *options, size_t granularity)
{
    fsdp_model_group group = FSDP_MODEL_GROUP_DEFAULT;

    group.granularity = granularity;
    assert_int_equal(FSDP_OK, fsdp_model_create(ctx, options, &m->model));
    if (granularity != FSDP_GRANULARITY_FLAT) {
        assert_int_equal(FSDP_OK, fsdp_model_add_group(m->model, "*", &group));
    }
    assert_int_equal(FSDP_OK, fsdp_unit_add(m->model, "a", ALL[0], TENSORS, &m->units[0]));
    assert_int_equal(FSDP_OK, fsdp_unit_add(m->model, "b", ALL[1], TENSORS, &m->units[1]));
    assert_int_equal(FSDP_OK, fsdp_model_commit(m->model));
}

static void expect_aligned(const char *what, const void *memory, const char *name)
{
    if ((uintptr_t)memory % FSDP_TENSOR_ALIGNMENT != 0) {
        fail_msg("'%s': its %s begins at %zu mod 64", name, what, (size_t)((uintptr_t)memory % FSDP_TENSOR_ALIGNMENT));
    }
}

/* Where the library has it: a test on a GPU sees a copy. */
static void check_places(const fsdp_unit *unit, size_t i)
{
    const fsdpi_tensor *tensor  = &unit->tensors[i];
    const size_t        width   = fsdp_dtype_size(tensor->member->flat->dtype);
    const size_t        reduced = fsdp_dtype_size(unit->model->options.reduce_dtype);

    expect_aligned("place", tensor->member->view->memory + tensor->offset * width, tensor->name);
    if (tensor->member->gradient_view != NULL) {
        expect_aligned("gradient's place", tensor->member->gradient_view + tensor->offset * reduced, tensor->name);
    }
}

static void check_unit(fsdp_unit *unit)
{
    assert_int_equal(FSDP_OK, fsdp_unit_begin_backward(unit));
    for (size_t i = 0; i < TENSORS; i++) {
        check_places(unit, i);
#ifndef FSDP_TESTS_MODEL_ON_DEVICE_H
        expect_aligned("view", fsdp_unit_param(unit, i), unit->tensors[i].name);
        if ((unit->tensors[i].flags & FSDP_TENSOR_FROZEN) == 0) {
            expect_aligned("gradient", fsdp_unit_grad(unit, i), unit->tensors[i].name);
        }
#endif
    }
    assert_int_equal(FSDP_OK, fsdp_unit_end_backward(unit));
}

static void check_model(fsdp_context *ctx, const fsdp_model_options *options, size_t granularity)
{
    aligned m;

    open_aligned(&m, ctx, options, granularity);
    for (size_t u = 0; u < UNITS; u++) {
        assert_int_equal(FSDP_OK, fsdp_unit_begin_forward(m.units[u]));
        assert_int_equal(FSDP_OK, fsdp_unit_end_forward(m.units[u]));
    }
    check_unit(m.units[1]);
    check_unit(m.units[0]);
    fsdp_model_destroy(m.model);
}

static void tensors_begin_at_64_bytes_in_every_type_under_every_strategy(void **state)
{
    static const fsdp_dtype types[]         = {FSDP_F32, FSDP_BF16, FSDP_F16};
    static const size_t     granularities[] = {FSDP_GRANULARITY_FLAT, 3, FSDP_GRANULARITY_TENSOR};

    for (int strategy = 0; strategy < FSDP_N_STRATEGIES; strategy++) {
        for (int k = 0; k < 9; k++) {
            fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;

            options.strategy     = (fsdp_strategy)strategy;
            options.param_dtype  = types[k % 3];
            options.reduce_dtype = types[k / 3];
            check_model(*state, &options, granularities[(strategy + k) % 3]);
        }
    }
}

static void so_do_quantised_ones(void **state)
{
    for (int k = 0; k < 4; k++) {
        fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;

        options.quantized_params = 1;
        options.param_dtype      = k % 2 == 0 ? FSDP_F32 : FSDP_BF16;
        check_model(*state, &options, k < 2 ? FSDP_GRANULARITY_FLAT : 100);
    }
}

/* ---- padding ----------------------------------------------------------------------------------------------------- */

/* In ELEMENTS of the flat parameter, the same in every view: 15, 31 or 63 at most before each tensor. */
static void padding_is_shorter_than_64_bytes_of_the_narrowest_type(void **state)
{
    static const struct {
        fsdp_dtype param, reduce;
        int        quantized;
        size_t     most;
    } cases[] = {{FSDP_F32, FSDP_F32, 0, 15},
                 {FSDP_BF16, FSDP_F32, 0, 31},
                 {FSDP_F32, FSDP_F16, 0, 31},
                 {FSDP_F32, FSDP_F32, 1, 63}};

    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;
        aligned            m;

        options.param_dtype      = cases[c].param;
        options.reduce_dtype     = cases[c].reduce;
        options.quantized_params = cases[c].quantized;
        open_aligned(&m, *state, &options, FSDP_GRANULARITY_FLAT);
        const fsdpi_flat *flat = m.model->flats;
        size_t            end  = 0;
        assert_true(flat->n_tensors >= 3);
        for (size_t k = 0; k < flat->n_tensors; k++) {
            assert_in_range(flat->tensors[k]->offset - end, 0, cases[c].most);
            end = flat->tensors[k]->offset + flat->tensors[k]->count;
        }
        fsdp_model_destroy(m.model);
    }
}

#ifndef FSDP_TESTS_MODEL_ON_DEVICE_H
/* ---- copies ------------------------------------------------------------------------------------------------------ */

/* What is copied by memcpy(), in front of which the linker has put this, or by the kernel that copies long runs, into or out of
 * the memory between `begin` and `end`. */
static struct {
    const unsigned char *begin, *end;
    size_t               into, out_of;
} watched;

static bool is_watched(const void *memory)
{
    return (const unsigned char *)memory >= watched.begin && (const unsigned char *)memory < watched.end;
}

static void count(const void *to, const void *from, size_t bytes)
{
    watched.into += is_watched(to) ? bytes : 0;
    watched.out_of += is_watched(from) ? bytes : 0;
}

void *__real_memcpy(void *to, const void *from, size_t bytes);
void *__wrap_memcpy(void *to, const void *from, size_t bytes);

void *__wrap_memcpy(void *to, const void *from, size_t bytes)
{
    count(to, from, bytes);
    return __real_memcpy(to, from, bytes);
}

static const fsdpi_kernels *kernels;

static void stream(void *to, const void *from, size_t bytes)
{
    count(to, from, bytes);
    kernels->stream(to, from, bytes);
}

static void copy(void *to, const void *from, size_t bytes)
{
    count(to, from, bytes);
    kernels->copy(to, from, bytes);
}

/* The view of a flat parameter is written once, each byte by the rank that holds it, and read by nobody but the program. */
static void check_copies(fsdp_dtype dtype, size_t granularity)
{
    fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;
    fsdp_config        config;
    fsdp_context      *ctx;
    aligned            m;

    fsdp_config_init(&config);
    config.prefetch = 0;
    config.progress = FSDP_PROGRESS_INLINE;
    assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_WORLD, &config, &ctx));
    fsdpi_kernels counting = *ctx->kernels;
    kernels                = ctx->kernels;
    counting.stream        = stream;
    counting.copy          = copy;
    ctx->kernels           = &counting;
    options.param_dtype    = dtype;
    open_aligned(&m, ctx, &options, granularity);
    const size_t bytes = m.model->plan.views_bytes;
    watched.begin      = m.model->views;
    watched.end        = watched.begin + bytes;
    for (size_t u = 0; u < UNITS; u++) {
        size_t mine = 0;

        for (size_t k = 0; k < m.units[u]->n_members; k++) {
            const fsdpi_flat *flat = m.units[u]->members[k].flat;

            mine += fsdpi_held_elements(flat) * fsdp_dtype_size(flat->dtype);
        }
        watched.into = watched.out_of = 0;
        assert_int_equal(FSDP_OK, fsdp_unit_begin_forward(m.units[u]));
        if (watched.into != mine || watched.out_of != 0) {
            fail_msg("%zu bytes copied into the view of unit %zu and %zu out of it; this rank holds %zu of it",
                     watched.into, u, watched.out_of, mine);
        }
        assert_int_equal(FSDP_OK, fsdp_unit_end_forward(m.units[u]));
    }
    watched.begin = watched.end = NULL;
    fsdp_model_destroy(m.model);
    ctx->kernels = kernels;
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

static void a_gather_copies_each_byte_once(void **state)
{
    (void)state;
    check_copies(FSDP_F32, FSDP_GRANULARITY_FLAT);
    check_copies(FSDP_BF16, FSDP_GRANULARITY_FLAT);
    check_copies(FSDP_BF16, 100);
    check_copies(FSDP_BF16, FSDP_GRANULARITY_TENSOR);
}
#endif

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_begin_at_64_bytes_in_every_type_under_every_strategy),
        cmocka_unit_test(so_do_quantised_ones),
        cmocka_unit_test(padding_is_shorter_than_64_bytes_of_the_narrowest_type),
#ifndef FSDP_TESTS_MODEL_ON_DEVICE_H
        cmocka_unit_test(a_gather_copies_each_byte_once),
#endif
    };

    return fsdp_test_main(argc, argv, tests, fsdp_test_open_context, fsdp_test_close_context);
}
