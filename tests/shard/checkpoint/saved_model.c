#include "tests/shard/checkpoint/saved_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const fsdp_tensor SAVED_TENSORS[N_SAVED_TENSORS] = {
    {.name = "a.weight", .n_dims = 2, .shape = {31, 67}, .dtype = FSDP_F32, .fill = FSDP_FILL_NORMAL, .b = 0.5},
    {.name   = "a.bias",
     .n_dims = 1,
     .shape  = {67},
     .dtype  = FSDP_F32,
     .fill   = FSDP_FILL_CONSTANT,
     .a      = 0.25,
     .flags  = FSDP_TENSOR_NO_WEIGHT_DECAY},
    {.name = "a.scale", .n_dims = 0, .dtype = FSDP_F32, .fill = FSDP_FILL_CONSTANT, .a = 1.0},
    {.name   = "b.frozen",
     .n_dims = 1,
     .shape  = {300},
     .dtype  = FSDP_F32,
     .fill   = FSDP_FILL_NORMAL,
     .b      = 1.0,
     .flags  = FSDP_TENSOR_FROZEN},
    {.name   = "b.table",
     .n_dims = 2,
     .shape  = {5, 3},
     .dtype  = FSDP_F32,
     .fill   = FSDP_FILL_UNIFORM,
     .b      = 1.0,
     .flags  = FSDP_TENSOR_IGNORED},
    {.name = "b.half", .n_dims = 3, .shape = {3, 1, 43}, .dtype = FSDP_BF16, .fill = FSDP_FILL_NORMAL, .b = 0.1},
    {.name = "b.gain", .n_dims = 1, .shape = {2}, .dtype = FSDP_F32, .fill = FSDP_FILL_CONSTANT, .a = 2.0},
    {.name = "c.tied", .n_dims = 2, .shape = {31, 67}, .dtype = FSDP_F32, .tied_to = "a.weight"},
    {.name = "c.weight", .n_dims = 1, .shape = {1009}, .dtype = FSDP_F32, .fill = FSDP_FILL_UNIFORM, .a = -1, .b = 1},
};
static const size_t first_tensor[N_SAVED_UNITS + 1] = {0, 3, 7, 9};

size_t saved_elements(size_t tensor)
{
    size_t n = 1;

    for (size_t d = 0; d < SAVED_TENSORS[tensor].n_dims; d++) {
        n *= SAVED_TENSORS[tensor].shape[d];
    }
    return n;
}

static void make_grouped(saved_model *m, const fsdp_model_options *options, fsdp_optimizer_kind kind,
                         const size_t first[N_SAVED_UNITS + 1])
{
    static const char *const names[N_SAVED_UNITS] = {"a", "b", "c"};
    fsdp_optimizer_options   o;

    assert_int_equal(FSDP_OK, fsdp_model_create(m->ctx, options, &m->model));
    for (size_t u = 0; u < N_SAVED_UNITS; u++) {
        assert_int_equal(FSDP_OK, fsdp_unit_add(m->model, names[u], &SAVED_TENSORS[first[u]], first[u + 1] - first[u],
                                                &m->units[u]));
    }
    assert_int_equal(FSDP_OK, fsdp_model_commit(m->model));
    assert_int_equal(FSDP_OK, fsdp_optimizer_options_init(kind, &o));
    o.moment_dtype = options->moment_dtype;
    assert_int_equal(FSDP_OK, fsdp_optimizer_create(m->model, &o, &m->optimizer));
}

void saved_model_open_grouped(saved_model *m, const fsdp_model_options *options, fsdp_optimizer_kind kind,
                              const size_t first[N_SAVED_UNITS + 1])
{
    assert_int_equal(FSDP_OK, fsdp_init(m->comm, NULL, &m->ctx));
    make_grouped(m, options, kind, first);
}

void saved_model_make(saved_model *m, fsdp_context *ctx, const fsdp_model_options *options, fsdp_optimizer_kind kind)
{
    *m = (saved_model){.comm = MPI_COMM_NULL, .ctx = ctx};
    make_grouped(m, options, kind, first_tensor);
}

void saved_model_open_on(saved_model *m, const fsdp_model_options *options, fsdp_optimizer_kind kind)
{
    saved_model_open_grouped(m, options, kind, first_tensor);
}

int saved_model_open(saved_model *m, int size, const fsdp_model_options *options, fsdp_optimizer_kind kind)
{
    const int inside = fsdp_test_rank() < size;

    memset(m, 0, sizeof *m);
    MPI_Comm_split(MPI_COMM_WORLD, inside ? 0 : MPI_UNDEFINED, 0, &m->comm);
    if (inside) {
        saved_model_open_on(m, options, kind);
    }
    return inside;
}

void saved_model_close(saved_model *m)
{
    fsdp_model_destroy(m->model);
    assert_int_equal(FSDP_OK, fsdp_finalize(m->ctx));
    MPI_Comm_free(&m->comm);
}

static float gradient(size_t step, size_t tensor, size_t i)
{
    return (float)((int)((step * 5 + tensor * 13 + i * 7) % 31) - 15) / 16.0F;
}

/* Gradient views are in f32 here; of a tensor that is tied each pass adds its part. */
static void fill_gradients(saved_model *m, size_t u, size_t step)
{
    for (size_t t = first_tensor[u]; t < first_tensor[u + 1]; t++) {
        const unsigned none = FSDP_TENSOR_FROZEN | FSDP_TENSOR_IGNORED;
        float *g = (SAVED_TENSORS[t].flags & none) == 0 ? fsdp_unit_grad(m->units[u], t - first_tensor[u]) : NULL;

        for (size_t i = 0; g != NULL && i < saved_elements(t); i++) {
            g[i] += gradient(step, t, i);
        }
    }
}

static void take_step(saved_model *m, size_t step)
{
    for (size_t u = 0; u < N_SAVED_UNITS; u++) {
        assert_int_equal(FSDP_OK, fsdp_unit_begin_forward(m->units[u]));
        assert_int_equal(FSDP_OK, fsdp_unit_end_forward(m->units[u]));
    }
    for (size_t u = N_SAVED_UNITS; u-- > 0;) {
        assert_int_equal(FSDP_OK, fsdp_unit_begin_backward(m->units[u]));
        fill_gradients(m, u, step);
        assert_int_equal(FSDP_OK, fsdp_unit_end_backward(m->units[u]));
    }
    assert_int_equal(FSDP_OK, fsdp_optimizer_step(m->optimizer));
}

void saved_model_train(saved_model *m, size_t first, size_t n)
{
    for (size_t step = first; step < first + n; step++) {
        float *table = fsdp_unit_buffer(m->units[1], 1);

        take_step(m, step);
        table[step % 15] += 1.0F;
    }
}

char saved_folder[256];

int saved_folder_make(void **state)
{
    (void)state;
    if (fsdp_test_rank() == 0) {
        const char *parent = getenv("TMPDIR");

        (void)snprintf(saved_folder, sizeof saved_folder, "%s/fsdp-checkpoint-XXXXXX",
                       parent != NULL ? parent : "/tmp");
        assert_non_null(mkdtemp(saved_folder));
    }
    MPI_Bcast(saved_folder, (int)sizeof saved_folder, MPI_CHAR, 0, MPI_COMM_WORLD);
    return 0;
}

int saved_folder_remove(void **state)
{
    char command[1200];

    (void)state;
    MPI_Barrier(MPI_COMM_WORLD);
    if (fsdp_test_rank() == 0) {
        (void)snprintf(command, sizeof command, "rm -rf '%s'", saved_folder);
        assert_int_equal(0, system(command));
    }
    return 0;
}
