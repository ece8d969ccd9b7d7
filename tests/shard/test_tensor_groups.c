/*
 * Groups of tensors with optimizers of their own, held to the serial recomputation to the bit. Every rank adds the same gradient of
 * few bits, so that its mean over any number of ranks is exact.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fsdp/checkpoint.h"
#include "fsdp/loss_scaler.h"
#include "fsdp/optimizer.h"
#include "tests/shard/serial_optimizer.h"

enum { STEPS = 6 };

static void run_scaled_pass(small_model *m, int pass, float scale)
{
    size_t k = 0;

    for (size_t u = 0; u < N_UNITS; u++) {
        assert_int_equal(FSDP_OK, fsdp_unit_begin_backward(m->units[u]));
        for (size_t t = FIRST_TENSOR[u]; t < FIRST_TENSOR[u + 1]; t++) {
            float *g = fsdp_unit_grad(m->units[u], t - FIRST_TENSOR[u]);
            for (size_t i = 0; i < tensor_elements(t); i++, k++) {
                g[i] = scale * exact_gradient(pass, k);
            }
        }
        assert_int_equal(FSDP_OK, fsdp_unit_end_backward(m->units[u]));
    }
}

/* Two groups: matrices and vectors called weight, with momentum; gain and bias, with Lion; of the rest, AdamW. */
enum { WEIGHTS, GAINS, REST, N_OPTIMIZERS };

static const char *const PATTERNS[N_OPTIMIZERS]  = {"*.weight", "*.[gb]*", NULL};
static const int         OPTIMIZER_OF[N_TENSORS] = {WEIGHTS, GAINS, REST, GAINS, WEIGHTS};

static fsdp_optimizer_options options_of(int which)
{
    static const fsdp_optimizer_kind KINDS[N_OPTIMIZERS] = {FSDP_SGD_MOMENTUM, FSDP_LION, FSDP_ADAMW};
    fsdp_optimizer_options           o;

    assert_int_equal(FSDP_OK, fsdp_optimizer_options_init(KINDS[which], &o));
    assert_null(o.group);
    o.lr           = 0.01;
    o.weight_decay = 0.1;
    o.beta2        = 0.97;
    o.group        = PATTERNS[which];
    return o;
}

static fsdp_model_group group_of(int which)
{
    fsdp_model_group group = FSDP_MODEL_GROUP_DEFAULT;

    group.optimizer = options_of(which).kind;
    return group;
}

static void build(small_model *m, MPI_Comm comm, const fsdp_model_options *options)
{
    small_model_build(m, comm, NULL, options);
    for (int which = WEIGHTS; which <= GAINS; which++) {
        const fsdp_model_group group = group_of(which);

        assert_int_equal(FSDP_OK, fsdp_model_add_group(m->model, PATTERNS[which], &group));
    }
}

typedef struct run {
    small_model     m;
    serial_model    s[N_OPTIMIZERS]; /* all of the model by each of them; what counts is what is theirs */
    fsdp_optimizer *optimizers[N_OPTIMIZERS];
} run;

static void open_run_on(run *r, MPI_Comm comm, fsdp_strategy strategy)
{
    fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;

    memset(r, 0, sizeof *r);
    options.strategy = strategy;
    options.seed     = 1234;
    build(&r->m, comm, &options);
    assert_int_equal(FSDP_OK, fsdp_model_commit(r->m.model));
    for (int which = 0; which < N_OPTIMIZERS; which++) {
        const fsdp_optimizer_options o = options_of(which);

        assert_int_equal(FSDP_OK, fsdp_optimizer_create(r->m.model, &o, &r->optimizers[which]));
        copy_parameters(&r->m, r->s[which].w);
    }
}

static void open_run(run *r, fsdp_strategy strategy)
{
    open_run_on(r, MPI_COMM_WORLD, strategy);
}

static void pass_both(run *r, int pass)
{
    run_exact_pass(&r->m, pass);
    for (int which = 0; which < N_OPTIMIZERS; which++) {
        for (size_t k = 0; k < all_elements(); k++) {
            r->s[which].g[k] = (r->s[which].fresh ? 0.0F : r->s[which].g[k]) + exact_gradient(pass, k);
        }
        r->s[which].fresh = 0;
    }
}

static void step_both(run *r, int which)
{
    const fsdp_optimizer_options o = options_of(which);

    assert_int_equal(FSDP_OK, fsdp_optimizer_step(r->optimizers[which]));
    serial_step(&r->s[which], &o, NULL);
}

static void compare(run *r, int step)
{
    serial_model merged = r->s[0];
    size_t       k      = 0;

    for (size_t t = 0; t < N_TENSORS; t++) {
        for (size_t i = 0; i < tensor_elements(t); i++, k++) {
            merged.w[k] = r->s[OPTIMIZER_OF[t]].w[k];
        }
    }
    assert_equal_parameters(&merged, &r->m, step);
}

static void several_optimizers_equal_the_serial_recomputation(void **state)
{
    static run r;

    (void)state;
    for (int strategy = 0; strategy < FSDP_N_STRATEGIES; strategy++) {
        open_run(&r, (fsdp_strategy)strategy);
        for (int step = 0; step < STEPS; step++) {
            pass_both(&r, step);
            for (int which = 0; which < N_OPTIMIZERS; which++) {
                step_both(&r, which);
                compare(&r, step);
            }
        }
        small_model_close(&r.m);
    }
}

/* One steps three times, one twice and one once in six passes; what has not been used adds up. */
static void gradients_of_an_optimizer_wait_for_its_step(void **state)
{
    static run r;

    (void)state;
    for (int strategy = 0; strategy < FSDP_N_STRATEGIES; strategy++) {
        open_run(&r, (fsdp_strategy)strategy);
        for (int pass = 0; pass < STEPS; pass++) {
            pass_both(&r, pass);
            for (int which = N_OPTIMIZERS; which-- > 0;) {
                if ((pass + 1) % (which + 1) == 0) {
                    step_both(&r, which);
                    compare(&r, pass);
                }
            }
        }
        assert_int_equal(6, fsdp_optimizer_steps(r.optimizers[WEIGHTS]));
        assert_int_equal(2, fsdp_optimizer_steps(r.optimizers[REST]));
        small_model_close(&r.m);
    }
}

static void an_optimizer_cannot_step_twice_on_one_gradient(void **state)
{
    static run r;

    (void)state;
    open_run(&r, FSDP_FULL_SHARD);
    pass_both(&r, 0);
    step_both(&r, GAINS);
    assert_int_equal(FSDP_ERR_STATE, fsdp_optimizer_step(r.optimizers[GAINS]));
    assert_says(r.m.ctx, "unit 'a");
    step_both(&r, WEIGHTS);
    step_both(&r, REST);
    compare(&r, 0);
    small_model_close(&r.m);
}

/* Its tensors stay, and its gradients do not add up. */
static void a_group_may_be_without_an_optimizer(void **state)
{
    static run r;

    (void)state;
    for (int strategy = 0; strategy < FSDP_N_STRATEGIES; strategy++) {
        open_run(&r, (fsdp_strategy)strategy);
        fsdp_optimizer_destroy(r.optimizers[GAINS]);
        for (int step = 0; step < 3; step++) {
            pass_both(&r, step);
            step_both(&r, REST);
            step_both(&r, WEIGHTS);
            compare(&r, step);
        }
        double norm = 0.0;
        assert_int_equal(FSDP_ERR_STATE, fsdp_clip_grad_norm(r.m.model, INFINITY, &norm));
        assert_says(r.m.ctx, "no gradients");
        small_model_close(&r.m);
    }
}

static double norm_of(const serial_model *s, int first, int last)
{
    double sum = 0.0;
    size_t k   = 0;

    for (size_t t = 0; t < N_TENSORS; t++) {
        for (size_t i = 0; i < tensor_elements(t); i++, k++) {
            if (OPTIMIZER_OF[t] >= first && OPTIMIZER_OF[t] <= last) {
                sum += (double)s->g[k] * (double)s->g[k];
            }
        }
    }
    return sqrt(sum);
}

static void a_norm_is_that_of_the_gradients_that_wait(void **state)
{
    static run r;
    double     norm;

    (void)state;
    open_run(&r, FSDP_FULL_SHARD);
    pass_both(&r, 0);
    assert_int_equal(FSDP_OK, fsdp_clip_grad_norm(r.m.model, INFINITY, &norm));
    assert_true(norm == norm_of(&r.s[0], WEIGHTS, REST)); /* squares of few bits: exact */
    step_both(&r, WEIGHTS);
    assert_int_equal(FSDP_OK, fsdp_clip_grad_norm(r.m.model, INFINITY, &norm));
    assert_true(norm == norm_of(&r.s[0], GAINS, REST));
    small_model_close(&r.m);
}

/* ---- the loss scaler --------------------------------------------------------------------------------------------- */

static fsdp_loss_scaler *open_scaler(run *r)
{
    fsdp_loss_scaler_options options = FSDP_LOSS_SCALER_OPTIONS_DEFAULT;
    fsdp_loss_scaler        *scaler;

    options.allow_any_dtype = 1;
    options.growth_interval = 1;
    options.initial_scale   = 4.0;
    assert_int_equal(FSDP_OK, fsdp_loss_scaler_create(r->m.model, &options, &scaler));
    return scaler;
}

static void step_scaled(run *r, fsdp_loss_scaler *scaler, int expected)
{
    for (int which = 0; which < N_OPTIMIZERS; which++) {
        const double scale   = fsdp_loss_scaler_scale(scaler);
        int          stepped = -1;

        assert_int_equal(FSDP_OK, fsdp_loss_scaler_step(scaler, r->optimizers[which], &stepped));
        assert_int_equal(expected, stepped);
        if (which + 1 < N_OPTIMIZERS) {
            assert_true(scale == fsdp_loss_scaler_scale(scaler)); /* until the last has stepped */
        }
    }
}

static void a_loss_scaler_serves_several_optimizers(void **state)
{
    static run r;

    (void)state;
    open_run(&r, FSDP_FULL_SHARD);
    fsdp_loss_scaler *scaler = open_scaler(&r);
    for (int step = 0; step < 2; step++) {
        run_scaled_pass(&r.m, step, (float)fsdp_loss_scaler_scale(scaler));
        step_scaled(&r, scaler, 1);
        for (int which = 0; which < N_OPTIMIZERS; which++) {
            const fsdp_optimizer_options o = options_of(which);

            for (size_t k = 0; k < all_elements(); k++) {
                r.s[which].g[k] = exact_gradient(step, k);
            }
            serial_step(&r.s[which], &o, NULL);
        }
        compare(&r, step);
    }
    assert_true(fsdp_loss_scaler_scale(scaler) == 16.0);
    run_scaled_pass(&r.m, 2, fsdp_rank(r.m.ctx) == 0 ? INFINITY : 1.0F);
    step_scaled(&r, scaler, 0);
    assert_true(fsdp_loss_scaler_scale(scaler) == 8.0);
    compare(&r, 2);
    small_model_close(&r.m);
}

/* ---- what is held ------------------------------------------------------------------------------------------------ */

static void a_budget_counts_the_optimizer_of_each_group(void **state)
{
    static run  r;
    fsdp_budget budget;
    fsdp_memory memory;

    (void)state;
    for (int strategy = 0; strategy < FSDP_N_STRATEGIES; strategy++) {
        open_run(&r, (fsdp_strategy)strategy);
        pass_both(&r, 0);
        for (int which = 0; which < N_OPTIMIZERS; which++) {
            step_both(&r, which);
        }
        assert_int_equal(FSDP_OK, fsdp_model_budget(r.m.model, (fsdp_strategy)strategy, 0, FSDP_ADAMW, &budget));
        assert_int_equal(FSDP_OK, fsdp_memory_usage(r.m.ctx, &memory));
        for (int line = 0; line < FSDP_N_MEMORY_KINDS; line++) {
            assert_int_equal(memory.current[line], budget.bytes[line]);
        }
        /* master and gradient of all; momentum of weights, Lion's of gain and bias, two of one scale */
        assert_int_equal(8 * all_elements() + 4 * (all_elements() - 1) + 8, budget.unsharded);
        small_model_close(&r.m);
    }
}

/* ---- checkpoints ------------------------------------------------------------------------------------------------- */

/* One step of the last optimizer ahead of the others. */
static void train_a_while(run *r, int first)
{
    for (int step = first; step < first + 2; step++) {
        pass_both(r, step);
        for (int which = 0; which < N_OPTIMIZERS; which++) {
            step_both(r, which);
        }
    }
}

static void save(run *r, const char *folder)
{
    const fsdp_checkpoint_state state = {.step = 2};
    fsdp_checkpoint            *checkpoint;

    assert_int_equal(FSDP_OK, fsdp_checkpoint_open(r->m.model, r->optimizers[GAINS], folder, NULL, &checkpoint));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_save(checkpoint, &state));
    fsdp_optimizer_destroy(r->optimizers[REST]);
    assert_int_equal(FSDP_ERR_STATE, fsdp_checkpoint_save(checkpoint, &state));
    assert_says(r->m.ctx, "2 optimizers, and had 3");
    assert_int_equal(FSDP_OK, fsdp_checkpoint_close(checkpoint));
}

static void load_and_train(const run *saved, const char *folder, fsdp_strategy strategy)
{
    static run loaded;

    open_run_on(&loaded, MPI_COMM_SELF, strategy);
    memcpy(loaded.s, saved->s, sizeof loaded.s);
    assert_int_equal(FSDP_OK, fsdp_checkpoint_load(loaded.m.model, loaded.optimizers[REST], folder, NULL, NULL));
    assert_int_equal(2, fsdp_optimizer_steps(loaded.optimizers[REST]));
    assert_int_equal(3, fsdp_optimizer_steps(loaded.optimizers[WEIGHTS]));
    compare(&loaded, 3);
    train_a_while(&loaded, 3);
    compare(&loaded, 5);
    fsdp_optimizer_destroy(loaded.optimizers[GAINS]);
    fsdp_optimizer_options o = options_of(GAINS);
    o.kind                   = FSDP_ADAM;
    o.eps                    = 1e-8;
    assert_int_equal(FSDP_OK, fsdp_optimizer_create(loaded.m.model, &o, &loaded.optimizers[GAINS]));
    assert_int_equal(FSDP_ERR_ARG, fsdp_checkpoint_load(loaded.m.model, loaded.optimizers[REST], folder, NULL, NULL));
    assert_says(loaded.m.ctx, "has the state of optimizer lion of group '*.[gb]*', and this one is adam");
    small_model_close(&loaded.m);
}

/* Saved by all ranks, each loads it alone, and trains on as if nothing had happened. */
static void a_checkpoint_holds_all_optimizers(void **state)
{
    static run r;
    char       folder[] = "/tmp/fsdp-groups-XXXXXX", path[64];

    (void)state;
    open_run(&r, FSDP_FULL_SHARD);
    assert_true(fsdp_rank(r.m.ctx) != 0 || mkdtemp(folder) != NULL);
    MPI_Bcast(folder, sizeof folder, MPI_CHAR, 0, MPI_COMM_WORLD);
    train_a_while(&r, 0);
    pass_both(&r, 2);
    step_both(&r, WEIGHTS);
    step_both(&r, GAINS);
    assert_int_equal(FSDP_OK, fsdp_model_zero_grad(r.m.model));
    r.s[REST].fresh = 1;
    (void)snprintf(path, sizeof path, "%s/run", folder);
    save(&r, path);
    load_and_train(&r, path, FSDP_NO_SHARD);
    load_and_train(&r, path, FSDP_SHARD_OPTIM);
    MPI_Barrier(MPI_COMM_WORLD);
    if (fsdp_rank(r.m.ctx) == 0) {
        char command[96];

        (void)snprintf(command, sizeof command, "rm -r %s", folder);
        assert_int_equal(0, system(command));
    }
    small_model_close(&r.m);
}

/* ---- what can be wrong ------------------------------------------------------------------------------------------- */

static void expect_no_group(fsdp_status expected, const char *pattern, const fsdp_model_group *group, const char *text)
{
    small_model m;

    small_model_build(&m, MPI_COMM_WORLD, NULL, NULL);
    assert_int_equal(expected, fsdp_model_add_group(m.model, pattern, group));
    assert_says(m.ctx, text);
    assert_int_equal(expected, fsdp_model_commit(m.model));
    assert_says(m.ctx, text);
    small_model_close(&m);
}

static void a_bad_group_is_refused_and_so_is_its_commit(void **state)
{
    const fsdp_model_group good = FSDP_MODEL_GROUP_DEFAULT;
    fsdp_model_group       bad;
    char                   longest[300];

    (void)state;
    memset(longest, 'x', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    expect_no_group(FSDP_ERR_ARG, NULL, &good, "the pattern is NULL");
    expect_no_group(FSDP_ERR_ARG, "", &good, "the pattern is empty");
    expect_no_group(FSDP_ERR_ARG, longest, &good, "the pattern is too long");
    expect_no_group(FSDP_ERR_ARG, "*", NULL, "'*' is NULL");
    bad           = good;
    bad.optimizer = (fsdp_optimizer_kind)77;
    expect_no_group(FSDP_ERR_ARG, "a.*", &bad, "'a.*': 77 is no optimizer");
    bad              = good;
    bad.moment_dtype = FSDP_I32;
    expect_no_group(FSDP_ERR_ARG, "a.*", &bad, "'a.*': moment_dtype is i32");
    assert_int_equal(FSDP_ERR_ARG, fsdp_model_add_group(NULL, "*", &good));
}

static void a_group_without_tensors_is_refused_at_commit(void **state)
{
    const fsdp_model_group group = FSDP_MODEL_GROUP_DEFAULT;
    small_model            m;

    (void)state;
    small_model_build(&m, MPI_COMM_WORLD, NULL, NULL);
    assert_int_equal(FSDP_OK, fsdp_model_add_group(m.model, "z.*", &group));
    assert_int_equal(FSDP_ERR_ARG, fsdp_model_commit(m.model));
    assert_says(m.ctx, "the group 'z.*' matches no tensor");
    small_model_close(&m);

    small_model_build(&m, MPI_COMM_WORLD, NULL, NULL);
    assert_int_equal(FSDP_OK, fsdp_model_add_group(m.model, "a.*", &group));
    assert_int_equal(FSDP_OK, fsdp_model_add_group(m.model, "a.bias", &group));
    assert_int_equal(FSDP_ERR_ARG, fsdp_model_commit(m.model));
    assert_says(m.ctx, "the 1 tensors that the group 'a.bias' matches belong to groups added before");
    small_model_close(&m);

    small_model_build(&m, MPI_COMM_WORLD, NULL, NULL);
    assert_int_equal(FSDP_OK, fsdp_model_add_group(m.model, "a.*", &group));
    assert_int_equal(FSDP_ERR_ARG, fsdp_model_add_group(m.model, "a.*", &group));
    assert_says(m.ctx, "a group 'a.*' already");
    small_model_close(&m);
}

static void groups_that_differ_between_ranks_are_found(void **state)
{
    fsdp_model_group group = FSDP_MODEL_GROUP_DEFAULT;

    (void)state;
    for (int which = 0; which < 3; which++) {
        small_model m;
        small_model_build(&m, MPI_COMM_WORLD, NULL, NULL);
        const int last = fsdp_rank(m.ctx) == fsdp_size(m.ctx) - 1 && fsdp_size(m.ctx) > 1;

        group.moment_dtype = which == 1 && last ? FSDP_BF16 : FSDP_F32;
        assert_int_equal(FSDP_OK, fsdp_model_add_group(m.model, which == 0 && last ? "a.w*" : "a.*", &group));
        if (which == 2 && last) {
            assert_int_equal(FSDP_OK, fsdp_model_add_group(m.model, "b.*", &group));
        }
        assert_int_equal(fsdp_size(m.ctx) > 1 ? FSDP_ERR_MISMATCH : FSDP_OK, fsdp_model_commit(m.model));
        small_model_close(&m);
    }
}

static void expect_no_optimizer(run *r, fsdp_status expected, const char *group, const char *text)
{
    fsdp_optimizer_options o = options_of(REST);
    fsdp_optimizer        *made;

    o.group = group;
    assert_int_equal(expected, fsdp_optimizer_create(r->m.model, &o, &made));
    assert_says(r->m.ctx, text);
}

static void two_optimizers_cannot_claim_one_tensor(void **state)
{
    static run r;

    (void)state;
    open_run(&r, FSDP_FULL_SHARD);
    expect_no_optimizer(&r, FSDP_ERR_STATE, "*.weight", "tensor 'a.weight' has an optimizer already");
    expect_no_optimizer(&r, FSDP_ERR_STATE, NULL, "tensor 'a.scale' has an optimizer already");
    expect_no_optimizer(&r, FSDP_ERR_ARG, "*.weigh", "'*.weigh', which is no group of the model");
    fsdp_optimizer_destroy(r.optimizers[REST]);
    const fsdp_optimizer_options o = options_of(REST);
    assert_int_equal(FSDP_OK, fsdp_optimizer_create(r.m.model, &o, &r.optimizers[REST]));
    pass_both(&r, 0);
    for (int which = 0; which < N_OPTIMIZERS; which++) {
        step_both(&r, which);
    }
    compare(&r, 0);
    small_model_close(&r.m);
}

static void an_optimizer_without_tensors_is_refused(void **state)
{
    const fsdp_model_group group = FSDP_MODEL_GROUP_DEFAULT;
    static run             r;

    (void)state;
    small_model_build(&r.m, MPI_COMM_WORLD, NULL, NULL);
    assert_int_equal(FSDP_OK, fsdp_model_add_group(r.m.model, "*", &group));
    assert_int_equal(FSDP_OK, fsdp_model_commit(r.m.model));
    expect_no_optimizer(&r, FSDP_ERR_ARG, NULL, "every trainable tensor belongs to a group");
    assert_int_equal(FSDP_ERR_STATE, fsdp_model_add_group(r.m.model, "a*", &group));
    assert_says(r.m.ctx, "comes after fsdp_model_commit");
    small_model_close(&r.m);
}

static void ranks_that_step_different_optimizers_are_told(void **state)
{
    static run r;

    (void)state;
    open_run(&r, FSDP_FULL_SHARD);
    if (fsdp_size(r.m.ctx) > 1) {
        pass_both(&r, 0);
        assert_int_equal(FSDP_ERR_MISMATCH,
                         fsdp_optimizer_step(r.optimizers[fsdp_rank(r.m.ctx) == 0 ? WEIGHTS : GAINS]));
        for (int which = 0; which < N_OPTIMIZERS; which++) {
            step_both(&r, which);
        }
        compare(&r, 0);
    }
    small_model_close(&r.m);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(several_optimizers_equal_the_serial_recomputation),
        cmocka_unit_test(gradients_of_an_optimizer_wait_for_its_step),
        cmocka_unit_test(an_optimizer_cannot_step_twice_on_one_gradient),
        cmocka_unit_test(a_group_may_be_without_an_optimizer),
        cmocka_unit_test(a_norm_is_that_of_the_gradients_that_wait),
        cmocka_unit_test(a_loss_scaler_serves_several_optimizers),
        cmocka_unit_test(a_budget_counts_the_optimizer_of_each_group),
        cmocka_unit_test(a_checkpoint_holds_all_optimizers),
        cmocka_unit_test(a_bad_group_is_refused_and_so_is_its_commit),
        cmocka_unit_test(a_group_without_tensors_is_refused_at_commit),
        cmocka_unit_test(groups_that_differ_between_ranks_are_found),
        cmocka_unit_test(two_optimizers_cannot_claim_one_tensor),
        cmocka_unit_test(an_optimizer_without_tensors_is_refused),
        cmocka_unit_test(ranks_that_step_different_optimizers_are_told),
    };

    return fsdp_test_main(argc, argv, tests, NULL, NULL);
}
