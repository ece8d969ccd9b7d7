/*
 * Ranks that have no more samples and repeat the last step's passes with gradients of zero, beside ranks that compute.
 */
#include <math.h>
#include <string.h>

#include "tests/shard/loop.h"

enum { ROOM = 64 };

static float w[MOST_ELEMENTS], g[MOST_ELEMENTS];

static fsdp_model_options recorded(size_t passes)
{
    fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;

    options.recorded_passes = passes;
    options.local_gradients = 1;
    options.kept_units      = 1;
    return options;
}

static void take_away(void)
{
    for (size_t k = 0; k < MOST_ELEMENTS; k++) {
        w[k] -= g[k];
    }
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

/* A micro-batch with a nested pass, a recomputation, and unit B used once more. */
static fsdp_status micro_batch(small_model *m, int pass)
{
    fsdp_status status = loop_forward(m, ALL_UNITS);

    status = status == FSDP_OK ? fsdp_unit_begin_backward(m->units[2]) : status;
    status = status == FSDP_OK ? loop_forward(m, UNIT_A) : status;
    for (size_t i = 0; i < tensor_elements(4) && status == FSDP_OK; i++) {
        ((float *)fsdp_unit_grad(m->units[2], 0))[i] += loop_gradient(fsdp_rank(m->ctx), pass, 4, i);
    }
    status = status == FSDP_OK ? fsdp_unit_end_backward(m->units[2]) : status;
    status = status == FSDP_OK ? loop_backward(m, UNIT_A | UNIT_B, pass, true) : status;
    return status == FSDP_OK ? loop_backward(m, UNIT_B, pass + 100, true) : status;
}

static const int SYNCS[3] = {FSDP_SYNC_NONE, FSDP_SYNC_GROUP, FSDP_SYNC_ALL};

/* Three micro-batches, of which this rank has samples for some; the rest is repeated from the record. */
static fsdp_status step(small_model *m, fsdp_optimizer *sgd, int samples, int first)
{
    fsdp_status status = FSDP_OK;

    for (int k = 0; k < 3 && k < samples && status == FSDP_OK; k++) {
        status = fsdp_model_set_sync(m->model, SYNCS[k]);
        status = status == FSDP_OK ? fsdp_model_keep_gathered(m->model, k != 1) : status;
        status = status == FSDP_OK ? micro_batch(m, first + k) : status;
    }
    if (status == FSDP_OK && samples < 3) {
        status = fsdp_model_replay(m->model);
    }
    status = status == FSDP_OK ? fsdp_model_set_gradient_divisor(m->model, 6.0) : status;
    return status == FSDP_OK ? fsdp_optimizer_step(sgd) : status;
}

/* How many of the three micro-batches rank `r` has samples for in a step. */
static int samples_of(int r, int step)
{
    return step == 0 ? 3 : (r + 2 * step) % 4;
}

/* What ranks that compute nothing add is zero. Local sums, sums of groups and of all are exact: one rounding for each
 * division and sum over passes, as the library does it for this strategy. */
static void expect_step(const loop_case *c, int number, int first)
{
    const int  size   = fsdp_size(c->ctx);
    const bool groups = c->group_size > 0;

    LOOP_ELEMENTS(u, t, i, k)
    {
        float sums[4]   = {0.0F, 0.0F, 0.0F, 0.0F}; /* of three micro-batches; and B's second passes apart */
        float second[3] = {0.0F, 0.0F, 0.0F};

        for (int r = 0; r < size; r++) {
            for (int pass = 0; pass < samples_of(r, number); pass++) {
                sums[pass] += loop_gradient(r, first + pass, t, i);
                second[pass] += u == 1 ? loop_gradient(r, first + pass + 100, t, i) : 0.0F;
            }
        }
        if (u == 1) { /* local: both passes of the first; then they come one by one */
            const float head = sums[0] + second[0] + sums[1];
            g[k]             = groups ? (head + second[1] + sums[2]) / (float)size + second[2] / (float)size
                                      : ((head / (float)size + second[1] / (float)size) + sums[2] / (float)size) +
                                second[2] / (float)size;
        } else {
            g[k] = groups ? (sums[0] + sums[1] + sums[2]) / (float)size
                          : (sums[0] + sums[1]) / (float)size + sums[2] / (float)size;
        }
        g[k] *= (float)(size / 6.0);
    }
}

static void check_steps(const loop_case *c)
{
    small_model m;

    loop_open(&m, c, recorded(ROOM));
    fsdp_optimizer *sgd = loop_optimizer(&m, FSDP_SGD);
    copy_parameters(&m, w);
    assert_int_equal(FSDP_OK, fsdp_model_zero_grad(m.model)); /* those passes are not part of a step */
    for (int number = 0; number < 6; number++) {
        const fsdp_status status = step(&m, sgd, samples_of(fsdp_rank(m.ctx), number), number * 3);
        if (status != FSDP_OK) {
            fail_msg("%s, step %d: %s", fsdp_strategy_name(c->strategy), number, fsdp_last_error(m.ctx));
        }
        expect_step(c, number, number * 3);
        take_away();
        loop_expect_parameters(&m, w, fsdp_strategy_name(c->strategy));
        assert_int_equal(FSDP_OK, fsdp_model_zero_grad(m.model));
    }
    fsdp_model_destroy(m.model);
}

static void ranks_without_samples_take_part_in_all_passes(void **state)
{
    (void)state;
    loop_for_all(check_steps);
}

/* A step that the loss scaler skips is one, too. */
static void a_skipped_step_is_recorded(void **state)
{
    fsdp_loss_scaler_options so = FSDP_LOSS_SCALER_OPTIONS_DEFAULT;
    const loop_case          c  = {loop_context(), FSDP_FULL_SHARD, 0, 0};
    fsdp_loss_scaler        *scaler;
    small_model              m;
    int                      stepped;

    (void)state;
    so.allow_any_dtype = 1;
    loop_open(&m, &c, recorded(ROOM));
    fsdp_optimizer *sgd = loop_optimizer(&m, FSDP_SGD);
    assert_int_equal(FSDP_OK, fsdp_loss_scaler_create(m.model, &so, &scaler));
    loop_pass(&m, ALL_UNITS, 0, true);
    assert_int_equal(FSDP_OK, fsdp_unit_begin_backward(m.units[1]));
    ((float *)fsdp_unit_grad(m.units[1], 0))[1] = INFINITY;
    assert_int_equal(FSDP_OK, fsdp_unit_end_backward(m.units[1]));
    assert_int_equal(FSDP_OK, fsdp_loss_scaler_step(scaler, sgd, &stepped));
    assert_false(stepped);
    assert_int_equal(FSDP_OK, fsdp_model_replay(m.model));
    assert_int_equal(FSDP_OK, fsdp_loss_scaler_step(scaler, sgd, &stepped));
    assert_true(stepped);
    fsdp_model_destroy(m.model);
}

/* ---- errors ------------------------------------------------------------------------------------------------------ */

static void go_on(small_model *m, fsdp_optimizer *sgd)
{
    const int size = fsdp_size(m->ctx);

    (void)fsdp_model_zero_grad(m->model);
    loop_pass(m, ALL_UNITS, 50, true);
    assert_int_equal(FSDP_OK, fsdp_optimizer_step(sgd));
    loop_add_mean(g, ALL_UNITS, 50, size, size, true);
    take_away();
    loop_expect_parameters(m, w, "behind an error");
    assert_int_equal(FSDP_OK, fsdp_model_zero_grad(m->model));
}

/* The last rank repeats where it cannot, or where the others do something else. */
static void expect_error(small_model *m, fsdp_optimizer *sgd, fsdp_status own, unsigned others, const char *what)
{
    const bool  last   = fsdp_rank(m->ctx) == fsdp_size(m->ctx) - 1;
    fsdp_status status = last ? fsdp_model_replay(m->model) : loop_forward(m, others);

    if (last && own != FSDP_ERR_MISMATCH && status != own) {
        fail_msg("%s: %s instead of %s: %s", what, fsdp_status_name(status), fsdp_status_name(own),
                 fsdp_last_error(m->ctx));
    }
    status                      = status == FSDP_OK && !last ? loop_backward(m, others, 7, true) : status;
    status                      = status == FSDP_OK ? fsdp_optimizer_step(sgd) : status;
    const fsdp_status forgotten = fsdp_model_zero_grad(m->model);
    loop_expect_on_all(m, FSDP_ERR_MISMATCH, status != FSDP_OK ? status : forgotten, what);
    go_on(m, sgd);
}

static void check_errors(const loop_case *c)
{
    fsdp_model_options options = recorded(ROOM);
    small_model        m;

    options.unused = FSDP_UNUSED_KEEP;
    loop_open(&m, c, options);
    fsdp_optimizer *sgd = loop_optimizer(&m, FSDP_SGD);
    copy_parameters(&m, w);
    assert_int_equal(FSDP_OK, fsdp_model_zero_grad(m.model));
    expect_error(&m, sgd, FSDP_ERR_STATE, ALL_UNITS, "nothing is recorded");
    if (fsdp_size(m.ctx) > 1) {
        expect_error(&m, sgd, FSDP_ERR_MISMATCH, UNIT_A | UNIT_C, "the others leave one out");
        expect_error(&m, sgd, FSDP_ERR_MISMATCH, UNIT_B, "the others have one unit");
    }
    assert_int_equal(FSDP_OK, loop_forward(&m, UNIT_B)); /* is not how the recorded step begins */
    expect_error(&m, sgd, FSDP_ERR_STATE, ALL_UNITS, "another beginning");
    assert_int_equal(FSDP_OK, fsdp_unit_begin_forward(m.units[0]));
    assert_int_equal(FSDP_ERR_STATE, fsdp_model_replay(m.model));
    assert_says(m.ctx, "a pass is open");
    go_on(&m, sgd);
    fsdp_model_destroy(m.model);
}

static void what_cannot_be_repeated_is_an_error_on_every_rank(void **state)
{
    (void)state;
    loop_for_all(check_errors);
}

static void check_room(const loop_case *c)
{
    small_model m;

    loop_open(&m, c, recorded(5)); /* one less than three units take */
    fsdp_optimizer *sgd = loop_optimizer(&m, FSDP_SGD);
    copy_parameters(&m, w);
    go_on(&m, sgd);
    assert_int_equal(FSDP_ERR_STATE, fsdp_model_replay(m.model));
    assert_says(m.ctx, "had 6 passes, and `recorded_passes` is 5");
    go_on(&m, sgd);
    fsdp_model_destroy(m.model);
    loop_open(&m, c, recorded(6));
    sgd = loop_optimizer(&m, FSDP_SGD);
    copy_parameters(&m, w);
    go_on(&m, sgd);
    assert_int_equal(FSDP_OK, fsdp_model_replay(m.model));
    assert_int_equal(FSDP_OK, fsdp_model_replay(m.model)); /* has nothing left to do */
    assert_int_equal(FSDP_OK, fsdp_optimizer_step(sgd));
    fsdp_model_destroy(m.model);
}

static void a_record_that_was_too_short_says_how_long_it_must_be(void **state)
{
    (void)state;
    loop_for_all(check_room);
}

static void bad_calls_are_refused(void **state)
{
    fsdp_context      *ctx     = loop_context();
    fsdp_model_options options = recorded(((size_t)1 << 24) + 1);
    fsdp_model        *model;
    small_model        m;

    (void)state;
    assert_int_equal(FSDP_ERR_ARG, fsdp_model_create(ctx, &options, &model));
    assert_says(ctx, "recorded_passes is");
    assert_int_equal(FSDP_ERR_ARG, fsdp_model_replay(NULL));
    small_model_create(&m, ctx, NULL);
    assert_int_equal(FSDP_ERR_STATE, fsdp_model_replay(m.model));
    assert_int_equal(FSDP_OK, fsdp_model_commit(m.model));
    assert_int_equal(FSDP_ERR_STATE, fsdp_model_replay(m.model));
    assert_says(ctx, "made without `recorded_passes`");
    fsdp_model_destroy(m.model);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_without_samples_take_part_in_all_passes),
        cmocka_unit_test(a_skipped_step_is_recorded),
        cmocka_unit_test(what_cannot_be_repeated_is_an_error_on_every_rank),
        cmocka_unit_test(a_record_that_was_too_short_says_how_long_it_must_be),
        cmocka_unit_test(bad_calls_are_refused),
    };

    return fsdp_test_main(argc, argv, tests, loop_open_contexts, loop_close_contexts);
}
