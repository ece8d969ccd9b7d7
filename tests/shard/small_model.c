#include "tests/shard/small_model.h"

#include <math.h>
#include <string.h>

#include "fsdp/random.h"

/* A matrix that spans shards, a vector, a scalar; a unit with fewer elements than ranks; one that is a prime. */
const fsdp_tensor TENSORS[N_TENSORS] = {
    {.name = "a.weight", .n_dims = 2, .shape = {31, 67}, .dtype = FSDP_F32, .fill = FSDP_FILL_NORMAL, .b = 0.5},
    {.name   = "a.bias",
     .n_dims = 1,
     .shape  = {67},
     .dtype  = FSDP_F32,
     .fill   = FSDP_FILL_CONSTANT,
     .a      = 0.25,
     .flags  = FSDP_TENSOR_NO_WEIGHT_DECAY},
    {.name = "a.scale", .n_dims = 0, .dtype = FSDP_F32, .fill = FSDP_FILL_CONSTANT, .a = 1.0},
    {.name = "b.gain", .n_dims = 1, .shape = {2}, .dtype = FSDP_F32, .fill = FSDP_FILL_CONSTANT, .a = 2.0},
    {.name = "c.weight", .n_dims = 1, .shape = {1009}, .dtype = FSDP_F32, .fill = FSDP_FILL_UNIFORM, .a = -1, .b = 1},
};
const size_t FIRST_TENSOR[N_UNITS + 1] = {0, 3, 4, 5};

size_t tensor_elements(size_t tensor)
{
    size_t n = 1;

    for (size_t d = 0; d < TENSORS[tensor].n_dims; d++) {
        n *= TENSORS[tensor].shape[d];
    }
    return n;
}

size_t all_elements(void)
{
    size_t n = 0;

    for (size_t t = 0; t < N_TENSORS; t++) {
        n += tensor_elements(t);
    }
    return n;
}

void small_model_create(small_model *m, fsdp_context *ctx, const fsdp_model_options *options)
{
    static const char *const names[N_UNITS] = {"a", "b", "c"};

    m->ctx = ctx;
    assert_int_equal(FSDP_OK, fsdp_model_create(m->ctx, options, &m->model));
    for (size_t u = 0; u < N_UNITS; u++) {
        assert_int_equal(FSDP_OK, fsdp_unit_add(m->model, names[u], &TENSORS[FIRST_TENSOR[u]],
                                                FIRST_TENSOR[u + 1] - FIRST_TENSOR[u], &m->units[u]));
    }
}

void small_model_build(small_model *m, MPI_Comm comm, const fsdp_config *config, const fsdp_model_options *options)
{
    fsdp_context *ctx;

    assert_int_equal(FSDP_OK, fsdp_init(comm, config, &ctx));
    small_model_create(m, ctx, options);
}

static void open_model(small_model *m, MPI_Comm comm, const fsdp_config *config, fsdp_strategy strategy)
{
    fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;

    options.strategy = strategy;
    options.seed     = 1234;
    small_model_build(m, comm, config, &options);
    assert_int_equal(FSDP_OK, fsdp_model_commit(m->model));
}

void small_model_open(small_model *m, const fsdp_config *config, fsdp_strategy strategy)
{
    open_model(m, MPI_COMM_WORLD, config, strategy);
}

void small_model_open_on(small_model *m, MPI_Comm comm, fsdp_strategy strategy)
{
    open_model(m, comm, NULL, strategy);
}

void small_model_close(small_model *m)
{
    fsdp_model_destroy(m->model);
    assert_int_equal(FSDP_OK, fsdp_finalize(m->ctx));
}

void small_model_for_every_strategy(const fsdp_config *config, void (*check)(small_model *m))
{
    for (int strategy = 0; strategy < FSDP_N_STRATEGIES; strategy++) {
        small_model m;

        small_model_open(&m, config, (fsdp_strategy)strategy);
        check(&m);
        small_model_close(&m);
    }
}

float gradient_element(int rank, int pass, size_t tensor, size_t i, float w)
{
    const double noise = fsdp_random_uniform((uint64_t)rank, (uint64_t)pass, tensor * 10000 + i);

    return (float)(0.1 * (double)w + noise - 0.5);
}

void run_pass(small_model *m, int pass)
{
    for (size_t u = 0; u < N_UNITS; u++) {
        assert_int_equal(FSDP_OK, fsdp_unit_begin_forward(m->units[u]));
        assert_int_equal(FSDP_OK, fsdp_unit_end_forward(m->units[u]));
    }
    for (size_t u = N_UNITS; u-- > 0;) {
        assert_int_equal(FSDP_OK, fsdp_unit_begin_backward(m->units[u]));
        for (size_t t = FIRST_TENSOR[u]; t < FIRST_TENSOR[u + 1]; t++) {
            const float *w = fsdp_unit_param(m->units[u], t - FIRST_TENSOR[u]);
            float       *g = fsdp_unit_grad(m->units[u], t - FIRST_TENSOR[u]);
            for (size_t i = 0; i < tensor_elements(t); i++) {
                assert_true(g[i] == 0.0F);
                g[i] += gradient_element(fsdp_rank(m->ctx), pass, t, i, w[i]);
            }
        }
        assert_int_equal(FSDP_OK, fsdp_unit_end_backward(m->units[u]));
    }
}

float exact_gradient(int pass, size_t k)
{
    const double noise = fsdp_random_uniform(1, (uint64_t)pass, k);

    return k % 19 == 0 ? 0.0F : (float)(floor(1024.0 * noise) / 512.0 - 1.0);
}

void run_exact_pass(small_model *m, int pass)
{
    size_t k = 0;

    for (size_t u = 0; u < N_UNITS; u++) {
        assert_int_equal(FSDP_OK, fsdp_unit_begin_backward(m->units[u]));
        for (size_t t = FIRST_TENSOR[u]; t < FIRST_TENSOR[u + 1]; t++) {
            float *g = fsdp_unit_grad(m->units[u], t - FIRST_TENSOR[u]);

            for (size_t i = 0; i < tensor_elements(t); i++, k++) {
                g[i] = exact_gradient(pass, k);
            }
        }
        assert_int_equal(FSDP_OK, fsdp_unit_end_backward(m->units[u]));
    }
}

void copy_parameters(small_model *m, float *all)
{
    for (size_t u = 0; u < N_UNITS; u++) {
        assert_int_equal(FSDP_OK, fsdp_unit_begin_forward(m->units[u]));
        for (size_t t = FIRST_TENSOR[u]; t < FIRST_TENSOR[u + 1]; t++) {
            memcpy(all, fsdp_unit_param(m->units[u], t - FIRST_TENSOR[u]), tensor_elements(t) * sizeof *all);
            all += tensor_elements(t);
        }
        assert_int_equal(FSDP_OK, fsdp_unit_end_forward(m->units[u]));
    }
}
