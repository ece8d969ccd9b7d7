/*
 * Optimizers of the program's own, held to the serial recomputation to the bit. Every rank adds the same gradient of few bits, so
 * that its mean over any number of ranks is exact.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fsdp/checkpoint.h"
#include "fsdp/optimizer.h"
#include "fsdp/shard.h"
#include "lib/context/context.h"
#include "lib/device/gpu_device.h"
#include "tests/shard/serial_optimizer.h"

enum { STEPS = 4 };

/* ---- AdamW as a program would write it --------------------------------------------------------------------------- */

/* What a callback is to do, and what it has seen. */
typedef struct observer {
    fsdp_optimizer_options coefficients;
    const char            *fails_at; /* a tensor; NULL */
    size_t                 calls, elements;
    fsdp_context          *ctx;
} observer;

#ifdef FSDP_TESTS_MODEL_ON_DEVICE_H
/* By a kernel, in the stream that was handed over. */
static fsdp_status adamw_elements(const observer *seen, const fsdp_update *u)
{
    const fsdp_optimizer_options *o   = &seen->coefficients;
    fsdpi_gpu_device             *gpu = seen->ctx->gpu.device;
    const fsdpi_adam              c   = {.lr           = (float)u->lr,
                                         .beta1        = (float)o->beta1,
                                         .beta2        = (float)o->beta2,
                                         .rest1        = (float)(1.0 - o->beta1),
                                         .rest2        = (float)(1.0 - o->beta2),
                                         .eps          = (float)o->eps,
                                         .weight_decay = (float)u->weight_decay,
                                         .correction1  = (float)(1.0 - pow(o->beta1, (double)u->step)),
                                         .correction2  = (float)(1.0 - pow(o->beta2, (double)u->step))};

    return gpu->ops->compute->adamw(gpu, u->master, u->gradient, u->states[0], u->states[1], u->count, &c, u->stream);
}

static bool stream_is_right(const fsdp_update *u)
{
    return u->stream != NULL;
}
#else
static void adamw_element(const fsdp_optimizer_options *o, const fsdp_update *u, size_t e)
{
    float       *w = u->master, *m = u->states[0], *v = u->states[1];
    const float *g  = u->gradient;
    const float  c1 = (float)(1.0 - pow(o->beta1, (double)u->step)), c2 = (float)(1.0 - pow(o->beta2, (double)u->step));
    const float  lr = (float)u->lr, decay = lr * (float)u->weight_decay;
    const float  m_old = (float)o->beta1 * m[e], m_new = (float)(1.0 - o->beta1) * g[e];
    const float  square = g[e] * g[e];
    const float  v_old = (float)o->beta2 * v[e], v_new = (float)(1.0 - o->beta2) * square;

    m[e]                = m_old + m_new;
    v[e]                = v_old + v_new;
    const float shrink  = decay * w[e];
    const float decayed = w[e] - shrink;
    const float root    = sqrtf(v[e] / c2);
    const float scaled  = lr * (m[e] / c1);
    w[e]                = decayed - scaled / (root + (float)o->eps);
}

static fsdp_status adamw_elements(const observer *seen, const fsdp_update *u)
{
    for (size_t e = 0; e < u->count; e++) {
        adamw_element(&seen->coefficients, u, e);
    }
    return FSDP_OK;
}

static bool stream_is_right(const fsdp_update *u)
{
    return u->stream == NULL;
}
#endif

static const fsdp_tensor *find(const char *name)
{
    for (size_t t = 0; t < N_TENSORS; t++) {
        if (strcmp(TENSORS[t].name, name) == 0) {
            return &TENSORS[t];
        }
    }
    return NULL;
}

static fsdp_status adamw(void *state, const fsdp_update *u)
{
    observer          *seen   = state;
    const fsdp_tensor *tensor = find(u->tensor);

    seen->calls++;
    seen->elements += u->count;
    if (tensor == NULL || tensor->n_dims != u->n_dims ||
        memcmp(tensor->shape, u->shape, u->n_dims * sizeof(size_t)) != 0 || u->count == 0 ||
        u->begin + u->count > tensor_elements((size_t)(tensor - TENSORS)) || u->dtype != FSDP_F32 ||
        u->state_dtype != FSDP_F32 || u->n_states != 2 || !stream_is_right(u) || strncmp(u->tensor, u->unit, 1) != 0 ||
        &TENSORS[FIRST_TENSOR[u->unit[0] - 'a'] + u->index] != tensor) {
        return FSDP_ERR_ARG;
    }
    assert_int_equal(FSDP_OK, adamw_elements(seen, u));
    return seen->fails_at != NULL && strcmp(seen->fails_at, u->tensor) == 0 ? FSDP_ERR_UNSUPPORTED : FSDP_OK;
}

static const char *const NAMES[] = {"exp_avg", "exp_avg_sq"};

static fsdp_optimizer_options custom_options(observer *seen)
{
    fsdp_optimizer_options o;

    *seen = (observer){.calls = 0};
    assert_int_equal(FSDP_OK, fsdp_optimizer_options_init(FSDP_ADAMW, &seen->coefficients));
    seen->coefficients.lr           = 0.01;
    seen->coefficients.weight_decay = 0.1;
    assert_int_equal(FSDP_OK, fsdp_optimizer_options_init(FSDP_CUSTOM, &o));
    o.lr           = 0.01;
    o.weight_decay = 0.1;
    o.n_states     = 2;
    o.state_names  = NAMES;
    o.update       = adamw;
    o.update_state = seen;
    return o;
}

typedef struct run {
    small_model     m;
    serial_model    s;
    observer        seen;
    fsdp_optimizer *optimizer;
} run;

static void open_run(run *r, MPI_Comm comm, fsdp_strategy strategy)
{
    memset(&r->s, 0, sizeof r->s);
    const fsdp_optimizer_options o = custom_options(&r->seen);
    small_model_open_on(&r->m, comm, strategy);
    r->seen.ctx = r->m.ctx;
    assert_int_equal(FSDP_OK, fsdp_optimizer_create(r->m.model, &o, &r->optimizer));
    copy_parameters(&r->m, r->s.w);
}

static void step_both(run *r, int pass)
{
    run_exact_pass(&r->m, pass);
    serial_take_exact_gradient(&r->s, pass);
    assert_int_equal(FSDP_OK, fsdp_optimizer_step(r->optimizer));
    serial_step(&r->s, &r->seen.coefficients, NULL);
    assert_equal_parameters(&r->s, &r->m, pass);
}

static void adamw_by_a_callback_equals_the_serial_recomputation(void **state)
{
    static run r;

    (void)state;
    for (int strategy = 0; strategy < FSDP_N_STRATEGIES; strategy++) {
        open_run(&r, MPI_COMM_WORLD, (fsdp_strategy)strategy);
        for (int step = 0; step < STEPS; step++) {
            size_t elements = r.seen.elements;

            step_both(&r, step);
            elements = r.seen.elements - elements;
            assert_true(elements <= all_elements() && r.seen.calls <= (size_t)(step + 1) * N_TENSORS);
            if (strategy == FSDP_NO_SHARD) {
                assert_int_equal(all_elements(), elements);
            }
        }
        small_model_close(&r.m);
    }
}

static void rates_of_groups_are_handed_over(void **state)
{
    static run           r;
    fsdp_optimizer_group own = FSDP_OPTIMIZER_GROUP_DEFAULT;
    serial_rates         rates[N_TENSORS];

    (void)state;
    own.lr           = 0.5;
    own.weight_decay = 0.25;
    open_run(&r, MPI_COMM_WORLD, FSDP_FULL_SHARD);
    assert_int_equal(FSDP_OK, fsdp_optimizer_add_group(r.optimizer, "c.*", &own));
    for (size_t t = 0; t < N_TENSORS; t++) {
        rates[t] = t == 4 ? (serial_rates){0.5, 0.25} : (serial_rates){0.01, 0.1};
    }
    run_exact_pass(&r.m, 0);
    serial_take_exact_gradient(&r.s, 0);
    assert_int_equal(FSDP_OK, fsdp_optimizer_step(r.optimizer));
    serial_step(&r.s, &r.seen.coefficients, rates);
    assert_equal_parameters(&r.s, &r.m, 0);
    small_model_close(&r.m);
}

#ifndef FSDP_TESTS_MODEL_ON_DEVICE_H
/* ---- no states, and many ----------------------------------------------------------------------------------------- */

static fsdp_status count_in_states(void *state, const fsdp_update *u)
{
    (void)state;
    for (size_t k = 0; k < u->n_states; k++) {
        for (size_t e = 0; e < u->count; e++) {
            float *s = u->states[k];

            if (s[e] != (float)((u->step - 1) * (k + 1))) {
                return FSDP_ERR_ARG; /* it begins with zeros, and is kept */
            }
            s[e] += (float)(k + 1);
        }
    }
    return FSDP_OK;
}

static void check_budget(const small_model *m, fsdp_strategy strategy)
{
    fsdp_budget budget;
    fsdp_memory memory;

    assert_int_equal(FSDP_OK, fsdp_model_budget(m->model, strategy, 0, FSDP_CUSTOM, &budget));
    assert_int_equal(FSDP_OK, fsdp_memory_usage(m->ctx, &memory));
    for (int line = 0; line < FSDP_N_MEMORY_KINDS; line++) {
        assert_int_equal(memory.current[line], budget.bytes[line]);
    }
    assert_int_equal(budget.total, memory.peak_total);
}

static void states_may_be_none_or_eight_and_are_in_the_budget(void **state)
{
    (void)state;
    for (int which = 0; which < 4; which++) {
        fsdp_model_options     options = FSDP_MODEL_OPTIONS_DEFAULT;
        observer               seen;
        fsdp_optimizer_options o = custom_options(&seen);
        fsdp_optimizer        *optimizer;
        small_model            m;

        options.strategy = which % 2 == 0 ? FSDP_FULL_SHARD : FSDP_NO_SHARD;
        o.n_states = options.n_states = which < 2 ? 0 : 8;
        o.state_names                 = NULL;
        o.update                      = count_in_states;
        small_model_build(&m, MPI_COMM_WORLD, NULL, &options);
        assert_int_equal(FSDP_OK, fsdp_model_commit(m.model));
        assert_int_equal(FSDP_OK, fsdp_optimizer_create(m.model, &o, &optimizer));
        for (int step = 0; step < 3; step++) {
            run_exact_pass(&m, step);
            assert_int_equal(FSDP_OK, fsdp_optimizer_step(optimizer));
        }
        check_budget(&m, options.strategy);
        small_model_close(&m);
    }
}

#endif

/* ---- a callback that fails --------------------------------------------------------------------------------------- */

static int holds(run *r, size_t unit, size_t i)
{
    fsdp_shard shard;

    assert_int_equal(FSDP_OK, fsdp_unit_shard(r->m.units[unit], i, &shard));
    return shard.count > 0;
}

/* On the last rank that has elements of it. */
static void fail_at(run *r, size_t unit, size_t i, const char *tensor)
{
    int last = holds(r, unit, i) ? fsdp_rank(r->m.ctx) : -1;

    MPI_Allreduce(MPI_IN_PLACE, &last, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    r->seen.fails_at = fsdp_rank(r->m.ctx) == last ? tensor : NULL;
}

static void check_failure(run *r, size_t unit, size_t i, const char *tensor)
{
    char text[96];

    step_both(r, 0);
    run_exact_pass(&r->m, 1);
    fail_at(r, unit, i, tensor);
    assert_int_equal(FSDP_ERR_UNSUPPORTED, fsdp_optimizer_step(r->optimizer));
    (void)snprintf(text, sizeof text, "the update of tensor '%s' has failed on rank ", tensor);
    assert_says(r->m.ctx, text);
    assert_equal_parameters(&r->s, &r->m, 1); /* as before, on all ranks */
    assert_int_equal(1, fsdp_optimizer_steps(r->optimizer));
    r->seen.fails_at = NULL;
    run_exact_pass(&r->m, 1);
    assert_int_equal(FSDP_ERR_STATE, fsdp_optimizer_step(r->optimizer));
    assert_says(r->m.ctx, "fsdp_optimizer_reset");
    assert_int_equal(FSDP_OK, fsdp_model_zero_grad(r->m.model));
    assert_int_equal(FSDP_OK, fsdp_optimizer_reset(r->optimizer));
    assert_int_equal(0, fsdp_optimizer_steps(r->optimizer));
    memset(r->s.first, 0, sizeof r->s.first);
    memset(r->s.second, 0, sizeof r->s.second);
    r->s.steps = 0;
    step_both(r, 2);
    step_both(r, 3);
}

static void a_callback_that_fails_on_one_rank_leaves_parameters_as_they_were(void **state)
{
    static run r;

    (void)state;
    for (int strategy = 0; strategy < FSDP_N_STRATEGIES; strategy++) {
        for (size_t t = 0; t < N_TENSORS; t += 2) {
            const size_t unit = t < FIRST_TENSOR[1] ? 0 : 2;

            open_run(&r, MPI_COMM_WORLD, (fsdp_strategy)strategy);
            check_failure(&r, unit, t - FIRST_TENSOR[unit], TENSORS[t].name);
            small_model_close(&r.m);
        }
    }
}

/* ---- checkpoints ------------------------------------------------------------------------------------------------- */

static void load_alone(const run *saved, const char *folder, fsdp_strategy strategy)
{
    static run loaded;

    open_run(&loaded, MPI_COMM_SELF, strategy);
    assert_int_equal(FSDP_OK, fsdp_checkpoint_load(loaded.m.model, loaded.optimizer, folder, NULL, NULL));
    loaded.s = saved->s;
    assert_equal_parameters(&loaded.s, &loaded.m, 2);
    step_both(&loaded, 2);
    step_both(&loaded, 3);
    small_model_close(&loaded.m);
}

static void states_are_in_checkpoints_under_their_names(void **state)
{
    const fsdp_checkpoint_state at = {.step = 2};
    static run                  r;
    fsdp_checkpoint            *checkpoint;
    char                        folder[] = "/tmp/fsdp-custom-XXXXXX", path[64], command[128];

    (void)state;
    open_run(&r, MPI_COMM_WORLD, FSDP_FULL_SHARD);
    assert_true(fsdp_rank(r.m.ctx) != 0 || mkdtemp(folder) != NULL);
    MPI_Bcast(folder, sizeof folder, MPI_CHAR, 0, MPI_COMM_WORLD);
    step_both(&r, 0);
    step_both(&r, 1);
    (void)snprintf(path, sizeof path, "%s/run", folder);
    assert_int_equal(FSDP_OK, fsdp_checkpoint_open(r.m.model, r.optimizer, path, NULL, &checkpoint));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_save(checkpoint, &at));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_close(checkpoint));
    if (fsdp_rank(r.m.ctx) == 0) {
        (void)snprintf(command, sizeof command, "grep -aq '\"a.weight.exp_avg_sq\"' %s/step-*/optimizer.safetensors",
                       path);
        assert_int_equal(0, system(command));
    }
    load_alone(&r, path, FSDP_FULL_SHARD);
    load_alone(&r, path, FSDP_NO_SHARD);
    run_exact_pass(&r.m, 2); /* a load makes good what a callback has spoiled */
    fail_at(&r, 0, 0, "a.weight");
    assert_int_equal(FSDP_ERR_UNSUPPORTED, fsdp_optimizer_step(r.optimizer));
    r.seen.fails_at = NULL;
    assert_int_equal(FSDP_OK, fsdp_checkpoint_load(r.m.model, r.optimizer, path, NULL, NULL));
    step_both(&r, 2);
    MPI_Barrier(MPI_COMM_WORLD);
    if (fsdp_rank(r.m.ctx) == 0) {
        (void)snprintf(command, sizeof command, "rm -r %s", folder);
        assert_int_equal(0, system(command));
    }
    small_model_close(&r.m);
}

/* ---- what can be wrong ------------------------------------------------------------------------------------------- */

static void expect_refused(small_model *m, const fsdp_optimizer_options *o, const char *text)
{
    fsdp_optimizer *optimizer;

    assert_int_equal(FSDP_ERR_ARG, fsdp_optimizer_create(m->model, o, &optimizer));
    assert_says(m->ctx, text);
}

static void options_that_do_not_fit_are_refused(void **state)
{
    static const char *const TWICE[] = {"a", "a"}, *const EMPTY[] = {"a", ""}, *const DOTTED[] = {"a", "b.c"},
                             *const LONG[]   = {"a", "a-name-of-more-than-thirty-bytes"},
                             *const MASTER[] = {"a", "master"};
    observer                        seen;
    const fsdp_optimizer_options    good = custom_options(&seen);
    fsdp_optimizer_options          bad;
    small_model                     m;

    (void)state;
    small_model_open(&m, NULL, FSDP_FULL_SHARD);
    bad        = good;
    bad.update = NULL;
    expect_refused(&m, &bad, "update is NULL");
    bad          = good;
    bad.n_states = 9;
    expect_refused(&m, &bad, "n_states is 9");
    bad              = good;
    bad.moment_dtype = FSDP_BF16;
    expect_refused(&m, &bad, "moment_dtype is bf16");
    bad             = good;
    bad.state_names = TWICE;
    expect_refused(&m, &bad, "state_names[1] is 'a'");
    bad.state_names = EMPTY;
    expect_refused(&m, &bad, "state_names[1] is ''");
    bad.state_names = DOTTED;
    expect_refused(&m, &bad, "state_names[1] is 'b.c'");
    bad.state_names = LONG;
    expect_refused(&m, &bad, "state_names[1]");
    bad.state_names = MASTER;
    expect_refused(&m, &bad, "state_names[1] is 'master'");
    assert_int_equal(FSDP_ERR_ARG, fsdp_optimizer_reset(NULL));
    small_model_close(&m);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adamw_by_a_callback_equals_the_serial_recomputation),
        cmocka_unit_test(rates_of_groups_are_handed_over),
#ifndef FSDP_TESTS_MODEL_ON_DEVICE_H /* it looks at states in memory of the host */
        cmocka_unit_test(states_may_be_none_or_eight_and_are_in_the_budget),
#endif
        cmocka_unit_test(a_callback_that_fails_on_one_rank_leaves_parameters_as_they_were),
        cmocka_unit_test(states_are_in_checkpoints_under_their_names),
        cmocka_unit_test(options_that_do_not_fit_are_refused),
    };

    return fsdp_test_main(argc, argv, tests, NULL, NULL);
}
