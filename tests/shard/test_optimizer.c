/*
 * Optimizers, groups and moments in bf16, held to the serial recomputation to the bit. Every rank adds the same gradient of
 * few bits, so that its mean over any number of ranks is exact: how gradients are averaged is shard.training's matter.
 */
#include "fsdp/optimizer.h"

#include <math.h>
#include <string.h>

#include "fsdp/tensor_io.h"
#include "tests/shard/serial_optimizer.h"

enum { STEPS = 6 };

static void run_pass_of_ones(small_model *m)
{
    for (size_t u = 0; u < N_UNITS; u++) {
        assert_int_equal(FSDP_OK, fsdp_unit_begin_backward(m->units[u]));
        for (size_t t = FIRST_TENSOR[u]; t < FIRST_TENSOR[u + 1]; t++) {
            float *g = fsdp_unit_grad(m->units[u], t - FIRST_TENSOR[u]);

            for (size_t i = 0; i < tensor_elements(t); i++) {
                g[i] = 1.0F;
            }
        }
        assert_int_equal(FSDP_OK, fsdp_unit_end_backward(m->units[u]));
    }
}

typedef struct run {
    small_model            m;
    serial_model           s;
    fsdp_optimizer        *optimizer;
    fsdp_optimizer_options o;
} run;

static void open_run(run *r, fsdp_strategy strategy, const fsdp_optimizer_options *o)
{
    memset(&r->s, 0, sizeof r->s);
    r->o = *o;
    small_model_open(&r->m, NULL, strategy);
    assert_int_equal(FSDP_OK, fsdp_optimizer_create(r->m.model, o, &r->optimizer));
    copy_parameters(&r->m, r->s.w);
}

static void step_both(run *r, const serial_rates rates[N_TENSORS])
{
    const int step = (int)r->s.steps;

    run_exact_pass(&r->m, step);
    serial_take_exact_gradient(&r->s, step);
    assert_int_equal(FSDP_OK, fsdp_optimizer_step(r->optimizer));
    serial_step(&r->s, &r->o, rates);
    assert_equal_parameters(&r->s, &r->m, step);
}

static void train_under_every_strategy(const fsdp_optimizer_options *o)
{
    static run r;

    for (int strategy = 0; strategy < FSDP_N_STRATEGIES; strategy++) {
        open_run(&r, (fsdp_strategy)strategy, o);
        for (int step = 0; step < STEPS; step++) {
            step_both(&r, NULL);
        }
        small_model_close(&r.m);
    }
}

static fsdp_optimizer_options options_of(fsdp_optimizer_kind kind)
{
    fsdp_optimizer_options o;

    assert_int_equal(FSDP_OK, fsdp_optimizer_options_init(kind, &o));
    assert_int_equal(kind, o.kind);
    assert_int_equal(FSDP_F32, o.moment_dtype);
    o.lr           = 0.01;
    o.weight_decay = 0.1;
    o.beta2        = 0.97;
    return o;
}

static void every_kind_equals_the_serial_recomputation(void **state)
{
    (void)state;
    for (int kind = 0; kind < FSDP_CUSTOM; kind++) {
        const fsdp_optimizer_options o = options_of((fsdp_optimizer_kind)kind);
        train_under_every_strategy(&o);
    }
}

static void moments_in_bf16_equal_the_serial_recomputation(void **state)
{
    (void)state;
    for (int kind = 0; kind < FSDP_CUSTOM; kind++) {
        fsdp_optimizer_options o = options_of((fsdp_optimizer_kind)kind);
        o.moment_dtype           = FSDP_BF16;
        o.nesterov               = 1;
        train_under_every_strategy(&o);
    }
}

/* What is inherited, scaled, replaced; the first pattern wins; a flag of the tensor wins over all. */
static void groups_have_their_own_rates(void **state)
{
    static run           r;
    fsdp_optimizer_group gains = FSDP_OPTIMIZER_GROUP_DEFAULT, a = gains, weights = gains;

    (void)state;
    gains.lr           = 0.125;
    gains.lr_scale     = 0.5;
    a.lr_scale         = 0.25;
    a.weight_decay     = 0.5;
    weights.lr         = 0.0;
    weights.lr_scale   = 2.0;
    const double decay = 0.1;
    for (int kind = 0; kind < FSDP_CUSTOM; kind++) {
        for (int strategy = 0; strategy < FSDP_N_STRATEGIES; strategy++) {
            const fsdp_optimizer_options o = options_of((fsdp_optimizer_kind)kind);
            /* a.weight, a.bias, a.scale, b.gain, c.weight */
            serial_rates rates[N_TENSORS] = {
                {0.0025, 0.5}, {0.0025, 0.5}, {0.0025, 0.5}, {0.0625, decay}, {0.0, decay}};

            open_run(&r, (fsdp_strategy)strategy, &o);
            assert_int_equal(FSDP_OK, fsdp_optimizer_add_group(r.optimizer, "?.gain", &gains));
            assert_int_equal(FSDP_OK, fsdp_optimizer_add_group(r.optimizer, "a.*", &a));
            assert_int_equal(FSDP_OK, fsdp_optimizer_add_group(r.optimizer, "*.weight", &weights));
            step_both(&r, rates);
            assert_int_equal(FSDP_OK, fsdp_optimizer_set_lr(r.optimizer, 0.02));
            rates[0].lr = rates[1].lr = rates[2].lr = 0.25 * 0.02;
            step_both(&r, rates);
            assert_int_equal(FSDP_OK, fsdp_optimizer_set_group_lr(r.optimizer, "*.weight", FSDP_INHERIT));
            assert_int_equal(FSDP_OK, fsdp_optimizer_set_group_lr(r.optimizer, "a.*", 0.5));
            rates[4].lr = 2.0 * 0.02;
            rates[0].lr = rates[1].lr = rates[2].lr = 0.125;
            step_both(&r, rates);
            small_model_close(&r.m);
        }
    }
}

static void tensors_without_a_group_keep_the_options(void **state)
{
    static run                   r;
    const fsdp_optimizer_options o    = options_of(FSDP_ADAMW);
    fsdp_optimizer_group         last = FSDP_OPTIMIZER_GROUP_DEFAULT;
    serial_rates                 rates[N_TENSORS];

    (void)state;
    for (size_t t = 0; t < N_TENSORS; t++) {
        rates[t] = (serial_rates){o.lr, o.weight_decay};
    }
    last.weight_decay     = 0.0;
    rates[4].weight_decay = 0.0;
    open_run(&r, FSDP_FULL_SHARD, &o);
    assert_int_equal(FSDP_OK, fsdp_optimizer_add_group(r.optimizer, "[!ab].weight", &last));
    for (int step = 0; step < STEPS; step++) {
        step_both(&r, rates);
    }
    small_model_close(&r.m);
}

static void bad_groups_are_refused_on_every_rank(void **state)
{
    static run                   r;
    const fsdp_optimizer_options o    = options_of(FSDP_ADAM);
    const fsdp_optimizer_group   good = FSDP_OPTIMIZER_GROUP_DEFAULT;
    fsdp_optimizer_group         bad;

    (void)state;
    open_run(&r, FSDP_FULL_SHARD, &o);
    const fsdp_context *ctx    = r.m.ctx;
    const int           others = fsdp_rank(ctx) != fsdp_size(ctx) - 1;

    assert_int_equal(FSDP_ERR_ARG, fsdp_optimizer_add_group(NULL, "*", &good));
    assert_int_equal(FSDP_ERR_ARG, fsdp_optimizer_add_group(r.optimizer, others ? "*" : NULL, &good));
    assert_says(ctx, "the pattern is NULL");
    assert_int_equal(FSDP_ERR_ARG, fsdp_optimizer_add_group(r.optimizer, "*", others ? &good : NULL));
    assert_says(ctx, "the group is NULL");
    assert_int_equal(FSDP_ERR_ARG, fsdp_optimizer_add_group(r.optimizer, others ? "a.*" : "a.nothing*", &good));
    assert_says(ctx, "'a.nothing*' matches no tensor");
    bad = good, bad.lr = -2.0;
    assert_int_equal(FSDP_ERR_ARG, fsdp_optimizer_add_group(r.optimizer, "*", others ? &good : &bad));
    assert_says(ctx, "lr is -2");
    bad = good, bad.lr_scale = FSDP_INHERIT;
    assert_int_equal(FSDP_ERR_ARG, fsdp_optimizer_add_group(r.optimizer, "*", &bad));
    assert_says(ctx, "lr_scale is -1");
    bad = good, bad.weight_decay = (double)NAN;
    assert_int_equal(FSDP_ERR_ARG, fsdp_optimizer_add_group(r.optimizer, "*", &bad));
    assert_says(ctx, "weight_decay is nan");

    if (fsdp_size(ctx) > 1) { /* ranks that differ in the pattern, in what it matches, in a value */
        bad = good, bad.lr_scale = nextafter(1.0, 2.0);
        assert_int_equal(FSDP_ERR_MISMATCH, fsdp_optimizer_add_group(r.optimizer, others ? "a.*" : "b.*", &good));
        assert_says(ctx, "'a.*'");
        assert_says(ctx, "'b.*'");
        assert_int_equal(FSDP_ERR_MISMATCH, fsdp_optimizer_add_group(r.optimizer, "a.*", others ? &good : &bad));
    }

    /* none of them left a trace */
    step_both(&r, NULL);
    assert_int_equal(FSDP_ERR_STATE, fsdp_optimizer_add_group(r.optimizer, "*", &good));
    assert_says(ctx, "'*' comes after 1 step;");
    step_both(&r, NULL);
    small_model_close(&r.m);
}

static void a_group_that_others_leave_nothing_for_is_refused(void **state)
{
    static run                   r;
    const fsdp_optimizer_options o    = options_of(FSDP_LION);
    const fsdp_optimizer_group   same = FSDP_OPTIMIZER_GROUP_DEFAULT;

    (void)state;
    open_run(&r, FSDP_NO_SHARD, &o);
    for (size_t t = 0; t < N_TENSORS; t++) { /* as many groups as there can be */
        assert_int_equal(FSDP_OK, fsdp_optimizer_add_group(r.optimizer, TENSORS[t].name, &same));
    }
    assert_int_equal(FSDP_ERR_ARG, fsdp_optimizer_add_group(r.optimizer, "a.*", &same));
    assert_says(r.m.ctx, "the 3 tensors that 'a.*' matches are in groups added before");
    step_both(&r, NULL);
    small_model_close(&r.m);
}

static void rates_of_groups_are_checked(void **state)
{
    static run                   r;
    const fsdp_optimizer_options o     = options_of(FSDP_SGD);
    const fsdp_optimizer_group   group = FSDP_OPTIMIZER_GROUP_DEFAULT;

    (void)state;
    open_run(&r, FSDP_FULL_SHARD, &o);
    assert_int_equal(FSDP_OK, fsdp_optimizer_add_group(r.optimizer, "c.*", &group));
    assert_int_equal(FSDP_ERR_ARG, fsdp_optimizer_set_group_lr(NULL, "c.*", 0.5));
    assert_int_equal(FSDP_ERR_ARG, fsdp_optimizer_set_group_lr(r.optimizer, NULL, 0.5));
    assert_int_equal(FSDP_ERR_ARG, fsdp_optimizer_set_group_lr(r.optimizer, "c.weight", 0.5));
    assert_says(r.m.ctx, "'c.weight' is none of the 1 groups");
    assert_int_equal(FSDP_ERR_ARG, fsdp_optimizer_set_group_lr(r.optimizer, "c.*", -0.5));
    assert_int_equal(FSDP_ERR_ARG, fsdp_optimizer_set_group_lr(r.optimizer, "c.*", (double)INFINITY));
    step_both(&r, NULL);

    if (fsdp_size(r.m.ctx) > 1) { /* ranks must not drift apart */
        run_exact_pass(&r.m, 1);
        assert_int_equal(FSDP_OK,
                         fsdp_optimizer_set_group_lr(r.optimizer, "c.*", fsdp_rank(r.m.ctx) == 1 ? 0.5 : 0.25));
        assert_int_equal(FSDP_ERR_MISMATCH, fsdp_optimizer_step(r.optimizer));
        assert_says(r.m.ctx, "of groups 0.25");
        assert_says(r.m.ctx, "of groups 0.5");
        assert_int_equal(FSDP_OK, fsdp_optimizer_set_group_lr(r.optimizer, "c.*",
                                                              fsdp_rank(r.m.ctx) == 1 ? 0.5 : nextafter(0.5, 1.0)));
        assert_int_equal(FSDP_ERR_MISMATCH, fsdp_optimizer_step(r.optimizer));
        assert_equal_parameters(&r.s, &r.m, 1);
    }
    small_model_close(&r.m);
}

static void moments_are_f32_or_bf16(void **state)
{
    fsdp_model_options     model = FSDP_MODEL_OPTIONS_DEFAULT;
    fsdp_optimizer_options o     = options_of(FSDP_ADAMW);
    fsdp_optimizer        *optimizer;
    fsdp_model            *unmade;
    small_model            m;

    (void)state;
    small_model_open(&m, NULL, FSDP_FULL_SHARD);
    o.moment_dtype = FSDP_F16;
    assert_int_equal(FSDP_ERR_ARG, fsdp_optimizer_create(m.model, &o, &optimizer));
    assert_says(m.ctx, "moment_dtype is f16");
    if (fsdp_size(m.ctx) > 1) {
        o.moment_dtype = fsdp_rank(m.ctx) == 1 ? FSDP_BF16 : FSDP_F32;
        assert_int_equal(FSDP_ERR_MISMATCH, fsdp_optimizer_create(m.model, &o, &optimizer));
        assert_says(m.ctx, "moments bf16");
    }
    model.moment_dtype = FSDP_I32;
    assert_int_equal(FSDP_ERR_ARG, fsdp_model_create(m.ctx, &model, &unmade));
    assert_says(m.ctx, "moment_dtype is i32");
    model.moment_dtype = FSDP_F32;
    model.optimizer    = (fsdp_optimizer_kind)FSDP_N_OPTIMIZER_KINDS;
    assert_int_equal(FSDP_ERR_ARG, fsdp_model_create(m.ctx, &model, &unmade));
    assert_says(m.ctx, "is no optimizer");
    small_model_close(&m);
}

/* By how much the first element of c.weight, set to 0, is moved by a step with gradients of 1 and a learning rate of 1. */
static double move_of_step(run *r)
{
    static const float zeros[MOST_ELEMENTS];
    static float       after[MOST_ELEMENTS];
    const size_t       bytes = tensor_elements(N_TENSORS - 1) * sizeof *after;
    const char        *name  = TENSORS[N_TENSORS - 1].name;

    assert_int_equal(FSDP_OK, fsdp_tensor_import(r->m.model, name, 0, zeros, bytes));
    run_pass_of_ones(&r->m);
    assert_int_equal(FSDP_OK, fsdp_optimizer_step(r->optimizer));
    assert_int_equal(FSDP_OK, fsdp_tensor_export(r->m.model, name, 0, after, bytes));
    return -(double)after[0];
}

/* However near to 1 a beta is: what a step adds to a moment and what the bias correction divides by fit together. */
static void bias_corrections_fit_the_moments(void **state)
{
    static const double betas[] = {0.9, 0.99, 0.999, 0.9999, 0.99999, 0.999999};

    (void)state;
    for (size_t i = 0; i < sizeof betas / sizeof betas[0]; i++) {
        fsdp_optimizer_options o;
        run                    r;

        assert_int_equal(FSDP_OK, fsdp_optimizer_options_init(i % 2 == 0 ? FSDP_ADAM : FSDP_ADAMW, &o));
        o.lr           = 1.0;
        o.weight_decay = 0.0;
        o.beta2        = betas[i];
        o.eps          = 1e-30;
        open_run(&r, FSDP_FULL_SHARD, &o);
        for (int step = 1; step <= 100; step++) {
            const double move = move_of_step(&r);

            if (fsdp_test_rank() == 0 && fabs(move - 1.0) > 3e-6) {
                fail_msg("beta2 %g, step %d: moved by %.9f instead of 1", betas[i], step, move);
            }
        }
        small_model_close(&r.m);
    }
}

static void coefficients_out_of_range_are_named(void **state)
{
    static const struct {
        fsdp_optimizer_kind kind;
        double              beta1, beta2, eps;
        const char         *words;
    } bad[] = {
        {FSDP_ADAM, 1.0, 0.9, 1e-8, "beta1 is 1"},
        {FSDP_ADAM, 0.9, -0.1, 1e-8, "beta2 is -0.1"},
        {FSDP_ADAM, 0.9, 0.9, 0.0, "eps is 0"},
        {FSDP_LION, -0.5, 0.9, 0.0, "beta1 is -0.5"},
        {FSDP_LION, 0.9, (double)NAN, 0.0, "beta2 is nan"},
    };
    fsdp_optimizer *optimizer;
    small_model     m;

    (void)state;
    small_model_open(&m, NULL, FSDP_FULL_SHARD);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        fsdp_optimizer_options o = options_of(bad[i].kind);

        o.beta1 = bad[i].beta1;
        o.beta2 = bad[i].beta2;
        o.eps   = bad[i].eps;
        assert_int_equal(FSDP_ERR_ARG, fsdp_optimizer_create(m.model, &o, &optimizer));
        assert_says(m.ctx, bad[i].words);
    }
    assert_int_equal(FSDP_ERR_ARG, fsdp_optimizer_options_init((fsdp_optimizer_kind)FSDP_N_OPTIMIZER_KINDS,
                                                               &(fsdp_optimizer_options){0}));
    small_model_close(&m);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_equals_the_serial_recomputation),
        cmocka_unit_test(moments_in_bf16_equal_the_serial_recomputation),
        cmocka_unit_test(groups_have_their_own_rates),
        cmocka_unit_test(tensors_without_a_group_keep_the_options),
        cmocka_unit_test(bad_groups_are_refused_on_every_rank),
        cmocka_unit_test(a_group_that_others_leave_nothing_for_is_refused),
        cmocka_unit_test(rates_of_groups_are_checked),
        cmocka_unit_test(moments_are_f32_or_bf16),
        cmocka_unit_test(bias_corrections_fit_the_moments),
        cmocka_unit_test(coefficients_out_of_range_are_named),
    };

    return fsdp_test_main(argc, argv, tests, NULL, NULL);
}
