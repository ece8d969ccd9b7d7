#include "bench/training/step_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/base/values.h"
#include "bench/job/open.h"

enum { BLOCK = 1024, FIRST_VALUE = 100, MOST_MEAN = 4, BF16_INTEGERS = 256 };

/* ---- opening and closing ----------------------------------------------------------------------------------------- */

static fsdp_status add_units(bench_step_model *m)
{
    const bench_options *o = m->options;

    for (size_t u = 0; u < o->units; u++) {
        char        name[32];
        fsdp_tensor tensor = {.name = name, .n_dims = 1, .dtype = FSDP_F32, .fill = FSDP_FILL_CONSTANT};

        (void)snprintf(name, sizeof name, "unit.%zu", u);
        tensor.shape[0] = o->unit_params;
        tensor.a        = FIRST_VALUE;
        BENCH_TRY(fsdp_unit_add(m->model, name, &tensor, 1, &m->units[u]));
    }
    return FSDP_OK;
}

static fsdp_status make_model(bench_step_model *m, fsdp_optimizer_kind kind)
{
    const bench_options   *o       = m->options;
    fsdp_model_options     options = FSDP_MODEL_OPTIONS_DEFAULT;
    fsdp_optimizer_options chosen;

    options.strategy        = o->strategy;
    options.optimizer       = kind;
    options.param_dtype     = o->dtype;
    options.reduce_dtype    = o->dtype;
    options.fixed_addresses = o->fixed_addresses;
    BENCH_TRY(fsdp_model_create(m->world.ctx, &options, &m->model));
    BENCH_TRY(add_units(m));
    BENCH_TRY(fsdp_model_commit(m->model));
    BENCH_TRY(fsdp_optimizer_options_init(kind, &chosen));
    chosen.lr = 1;
    return fsdp_optimizer_create(m->model, &chosen, &m->optimizer);
}

fsdp_status bench_step_model_open(bench_step_model *m, const bench_world *world, const bench_options *options,
                                  fsdp_optimizer_kind kind, fsdp_config *config)
{
    *m           = (bench_step_model){.options = options, .world = *world};
    m->world.ctx = NULL;
    m->units     = calloc(options->units, sizeof(fsdp_unit *));
    BENCH_TRY(bench_agree(world, m->units != NULL, "no memory for the units; use fewer --units"));
    BENCH_TRY(bench_context_open(&m->world, options, config));
    return make_model(m, kind);
}

fsdp_status bench_step_model_close(bench_step_model *m)
{
    fsdp_model_destroy(m->model);
    free(m->units);
    return fsdp_finalize(m->world.ctx);
}

/* ---- a step ------------------------------------------------------------------------------------------------------ */

static void compute(const bench_work *work, int times)
{
    for (int i = 0; i < times && work; i++) {
        bench_work_do(work);
    }
}

fsdp_status bench_step_do(bench_step_model *m, const bench_work *work)
{
    for (size_t u = 0; u < m->options->units; u++) {
        BENCH_TRY(fsdp_unit_begin_forward(m->units[u]));
        compute(work, 1);
        BENCH_TRY(fsdp_unit_end_forward(m->units[u]));
    }
    for (size_t u = m->options->units; u-- > 0;) {
        BENCH_TRY(fsdp_unit_begin_backward(m->units[u]));
        compute(work, BENCH_STEP_BACKWARD);
        BENCH_TRY(fsdp_unit_end_backward(m->units[u]));
    }
    return fsdp_optimizer_step(m->optimizer);
}

/* ---- checking ---------------------------------------------------------------------------------------------------- */

int bench_step_can_check(const bench_step_model *m)
{
    return m->options->dtype != FSDP_BF16 || m->world.size * MOST_MEAN < BF16_INTEGERS;
}

/* The mean over all ranks of an element's gradient: 1 to MOST_MEAN. */
static int32_t mean_gradient(size_t unit, size_t i, unsigned pattern)
{
    const uint64_t mixed = (i + 1) * 0x9e3779b97f4a7c15u ^ (unit * 31 + pattern) * 0xff51afd7ed558ccdu;

    return 1 + (int32_t)((mixed ^ mixed >> 29) * 0x94d049bb133111ebu >> 62);
}

/* Ranks differ from the mean by 1, in pairs; the last one of an odd number does not. */
static int32_t gradient_of(const bench_step_model *m, size_t unit, size_t i)
{
    const int rank = m->world.rank;

    return mean_gradient(unit, i, m->pattern) + (rank % 2 ? -1 : rank + 1 < m->world.size ? 1 : 0);
}

static int32_t value_of(const bench_step_model *m, size_t unit, size_t i)
{
    int32_t value = FIRST_VALUE;

    for (unsigned p = 1; p <= m->pattern; p++) {
        value -= mean_gradient(unit, i, p);
    }
    return value;
}

/* ELEMENTS of a gathered view that are wrong. */
static size_t count_wrong(const bench_step_model *m, size_t unit)
{
    const size_t         n = m->options->unit_params, bytes = fsdp_dtype_size(m->options->dtype);
    const unsigned char *view  = fsdp_unit_param(m->units[unit], 0);
    size_t               wrong = 0;

    for (size_t begin = 0; begin < n; begin += BLOCK) {
        const size_t  length = n - begin < BLOCK ? n - begin : BLOCK;
        int32_t       values[BLOCK];
        unsigned char expected[BLOCK * sizeof(float)];

        for (size_t i = 0; i < length; i++) {
            values[i] = value_of(m, unit, begin + i);
        }
        bench_values_store(m->options->dtype, values, length, 1, expected);
        for (size_t i = 0; i < length; i++) {
            wrong += memcmp(expected + i * bytes, view + (begin + i) * bytes, bytes) != 0;
        }
    }
    return wrong;
}

static void fill_gradient(const bench_step_model *m, size_t unit)
{
    const size_t   n    = m->options->unit_params;
    unsigned char *view = fsdp_unit_grad(m->units[unit], 0);

    for (size_t begin = 0; begin < n; begin += BLOCK) {
        const size_t length = n - begin < BLOCK ? n - begin : BLOCK;
        int32_t      values[BLOCK];

        for (size_t i = 0; i < length; i++) {
            values[i] = gradient_of(m, unit, begin + i);
        }
        bench_values_store(m->options->dtype, values, length, 1, view + begin * fsdp_dtype_size(m->options->dtype));
    }
}

static fsdp_status check_forward(bench_step_model *m, size_t *wrong)
{
    for (size_t u = 0; u < m->options->units; u++) {
        BENCH_TRY(fsdp_unit_begin_forward(m->units[u]));
        *wrong += count_wrong(m, u);
        BENCH_TRY(fsdp_unit_end_forward(m->units[u]));
    }
    return FSDP_OK;
}

/* The gradients are those of the next pattern; the values are still those of the last one. */
static fsdp_status check_backward(bench_step_model *m, size_t *wrong)
{
    for (size_t u = m->options->units; u-- > 0;) {
        BENCH_TRY(fsdp_unit_begin_backward(m->units[u]));
        *wrong += count_wrong(m, u);
        m->pattern++;
        fill_gradient(m, u);
        m->pattern--;
        BENCH_TRY(fsdp_unit_end_backward(m->units[u]));
    }
    m->pattern++;
    return fsdp_optimizer_step(m->optimizer);
}

fsdp_status bench_step_check(bench_step_model *m, size_t *wrong)
{
    size_t mine = 0;

    BENCH_TRY(check_forward(m, &mine));
    BENCH_TRY(check_backward(m, &mine));
    BENCH_TRY(check_forward(m, &mine)); /* what the step has made of the parameters */
    MPI_Allreduce(MPI_IN_PLACE, &mine, 1, MPI_UINT64_T, MPI_SUM, m->world.comm);
    *wrong += mine;
    return FSDP_OK;
}
