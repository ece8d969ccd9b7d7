#include "tests/shard/loop.h"

#include <string.h>

#include "shard/state/strategy.h"

enum { MOST_PREFETCH = 2 };

static fsdp_context *contexts[MOST_PREFETCH + 1]; /* by prefetch */

int loop_open_contexts(void **state)
{
    (void)state;
    for (int prefetch = 0; prefetch <= MOST_PREFETCH; prefetch++) {
        fsdp_config config;

        fsdp_config_init(&config);
        config.prefetch  = prefetch;
        config.log_level = FSDP_LOG_OFF;
        config.timeout_s = 60;
        if (fsdp_init(MPI_COMM_WORLD, &config, &contexts[prefetch]) != FSDP_OK) {
            return -1;
        }
    }
    return 0;
}

int loop_close_contexts(void **state)
{
    fsdp_status status = FSDP_OK;

    (void)state;
    for (int prefetch = 0; prefetch <= MOST_PREFETCH; prefetch++) {
        status = fsdp_finalize(contexts[prefetch]) != FSDP_OK ? FSDP_ERR_STATE : status;
    }
    return status == FSDP_OK ? 0 : -1;
}

fsdp_context *loop_context(void)
{
    return contexts[0];
}

/* ---- cases ------------------------------------------------------------------------------------------------------- */

static void with_groups(fsdp_strategy strategy, int prefetch, void (*check)(const loop_case *c))
{
    fsdp_context *ctx = contexts[prefetch];

    for (int group = 1; group < fsdp_size(ctx) && fsdpi_is_hybrid(strategy); group++) {
        if (fsdp_size(ctx) % group == 0) {
            check(&(loop_case){ctx, strategy, group, prefetch});
        }
    }
}

void loop_for_all(void (*check)(const loop_case *c))
{
    for (int prefetch = 0; prefetch <= MOST_PREFETCH; prefetch++) {
        for (int strategy = 0; strategy < FSDP_N_STRATEGIES; strategy++) {
            check(&(loop_case){contexts[prefetch], (fsdp_strategy)strategy, 0, prefetch});
            with_groups((fsdp_strategy)strategy, prefetch, check);
        }
    }
}

void loop_for_groups(void (*check)(const loop_case *c))
{
    for (int prefetch = 0; prefetch <= MOST_PREFETCH; prefetch++) {
        for (int strategy = 0; strategy < FSDP_N_STRATEGIES; strategy++) {
            with_groups((fsdp_strategy)strategy, prefetch, check);
        }
    }
}

void loop_open(small_model *m, const loop_case *c, fsdp_model_options options)
{
    options.strategy   = c->strategy;
    options.group_size = c->group_size;
    options.seed       = 1234;
    small_model_create(m, c->ctx, &options);
    assert_int_equal(FSDP_OK, fsdp_model_commit(m->model));
}

fsdp_optimizer *loop_optimizer(small_model *m, fsdp_optimizer_kind kind)
{
    fsdp_optimizer_options o;
    fsdp_optimizer        *optimizer;

    assert_int_equal(FSDP_OK, fsdp_optimizer_options_init(kind, &o));
    o.lr = kind == FSDP_SGD ? 1.0 : o.lr;
    assert_int_equal(FSDP_OK, fsdp_optimizer_create(m->model, &o, &optimizer));
    return optimizer;
}

/* ---- passes ------------------------------------------------------------------------------------------------------ */

float loop_gradient(int rank, int pass, size_t tensor, size_t i)
{
    const uint32_t mixed =
        ((uint32_t)rank * 40503u + (uint32_t)pass * 9973u + (uint32_t)tensor * 131u + (uint32_t)i) * 2654435761u;

    return (float)(mixed % 1009u) / 64.0F - 7.875F;
}

fsdp_status loop_forward(small_model *m, unsigned units)
{
    for (size_t u = 0; u < N_UNITS; u++) {
        if ((units >> u & 1u) == 0) {
            continue;
        }
        fsdp_status status = fsdp_unit_begin_forward(m->units[u]);
        status             = status == FSDP_OK ? fsdp_unit_end_forward(m->units[u]) : status;
        if (status != FSDP_OK) {
            return status;
        }
    }
    return FSDP_OK;
}

static void add_gradients(small_model *m, size_t u, int pass)
{
    for (size_t t = FIRST_TENSOR[u]; t < FIRST_TENSOR[u + 1]; t++) {
        float *g = fsdp_unit_grad(m->units[u], t - FIRST_TENSOR[u]);

        for (size_t i = 0; i < tensor_elements(t); i++) {
            g[i] += loop_gradient(fsdp_rank(m->ctx), pass, t, i);
        }
    }
}

fsdp_status loop_backward(small_model *m, unsigned units, int pass, bool computes)
{
    for (size_t u = N_UNITS; u-- > 0;) {
        if ((units >> u & 1u) == 0) {
            continue;
        }
        fsdp_status status = fsdp_unit_begin_backward(m->units[u]);
        if (status == FSDP_OK && computes) {
            add_gradients(m, u, pass);
        }
        status = status == FSDP_OK ? fsdp_unit_end_backward(m->units[u]) : status;
        if (status != FSDP_OK) {
            return status;
        }
    }
    return FSDP_OK;
}

void loop_pass(small_model *m, unsigned units, int pass, bool computes)
{
    fsdp_status status = loop_forward(m, units);

    status = status == FSDP_OK ? loop_backward(m, units, pass, computes) : status;
    if (status != FSDP_OK) {
        fail_msg("pass %d fails: %s", pass, fsdp_last_error(m->ctx));
    }
}

/* ---- what is expected -------------------------------------------------------------------------------------------- */

void loop_add_mean(float *g, unsigned units, int pass, int ranks, int size, bool fresh)
{
    LOOP_ELEMENTS(u, t, i, k)
    {
        float sum = 0.0F;

        for (int r = 0; r < ranks; r++) {
            sum += loop_gradient(r, pass, t, i);
        }
        if ((units >> u & 1u) != 0) {
            g[k] = fresh ? sum / (float)size : g[k] + sum / (float)size;
        }
    }
}

void loop_expect_parameters(small_model *m, const float *expected, const char *what)
{
    static float found[MOST_ELEMENTS];

    copy_parameters(m, found);
    LOOP_ELEMENTS(u, t, i, k)
    {
        if (memcmp(&expected[k], &found[k], sizeof found[k]) != 0) {
            fail_msg("%s: element %zu of '%s' is %a instead of %a", what, i, TENSORS[t].name, (double)found[k],
                     (double)expected[k]);
        }
    }
}

void loop_expect_on_all(const small_model *m, fsdp_status expected, fsdp_status status, const char *what)
{
    const int right = expected == FSDP_ERR_MISMATCH ? status != FSDP_OK : status == expected;
    int       all;

    MPI_Allreduce(&right, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (!all) {
        fail_msg("%s: %s instead of %s on this rank or another: %s", what, fsdp_status_name(status),
                 fsdp_status_name(expected), fsdp_last_error(m->ctx));
    }
}
