/* What hooks see and keep of a model: means, whatever the strategy; and errors that fit the gradients to which they are added. */
#include <math.h>
#include <stdbool.h>

#include "fsdp/checkpoint.h"
#include "fsdp/hook.h"
#include "fsdp/loss_scaler.h"
#include "fsdp/optimizer.h"
#include "tests/shard/checkpoint/saved_model.h"
#include "tests/support/mpi_test.h"

enum { ELEMENTS = 4096 };

typedef struct hooked {
    fsdp_context *ctx;
    fsdp_model   *model;
    fsdp_unit    *unit;
    fsdp_hook    *hook;
} hooked;

static void open_hooked(hooked *h, fsdp_strategy strategy, int group)
{
    const fsdp_tensor  tensor  = {.name = "w", .n_dims = 1, .shape = {ELEMENTS}, .dtype = FSDP_F32};
    fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;

    options.strategy   = strategy;
    options.group_size = group;
    assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_WORLD, NULL, &h->ctx));
    assert_int_equal(FSDP_OK, fsdp_model_create(h->ctx, &options, &h->model));
    assert_int_equal(FSDP_OK, fsdp_unit_add(h->model, "u", &tensor, 1, &h->unit));
    assert_int_equal(FSDP_OK, fsdp_model_commit(h->model));
}

static void close_hooked(hooked *h)
{
    fsdp_model_destroy(h->model);
    fsdp_hook_destroy(h->hook);
    assert_int_equal(FSDP_OK, fsdp_finalize(h->ctx));
}

static void run_backward(hooked *h, float base, float slope)
{
    assert_int_equal(FSDP_OK, fsdp_unit_begin_backward(h->unit));
    float *g = fsdp_unit_grad(h->unit, 0);

    for (size_t i = 0; i < ELEMENTS; i++) {
        g[i] = base + slope * (float)i;
    }
    assert_int_equal(FSDP_OK, fsdp_unit_end_backward(h->unit));
}

static double norm_of(hooked *h)
{
    double norm;

    assert_int_equal(FSDP_OK, fsdp_clip_grad_norm(h->model, INFINITY, &norm));
    return norm;
}

/* ---- means ------------------------------------------------------------------------------------------------------- */

typedef struct sights {
    float before, after;
} sights;

static fsdp_status see_before(void *state, const fsdp_gradient *gradient)
{
    ((sights *)state)->before = gradient->values[0];
    return FSDP_OK;
}

static fsdp_status see_after(void *state, const fsdp_gradient *gradient)
{
    ((sights *)state)->after = gradient->values[0];
    return FSDP_OK;
}

/* Ranks 0 to n - 1 have gradients of 1 to n. */
static float mean_of_ranks(int first, int n)
{
    return (float)first + (float)(n + 1) / 2.0F;
}

static void callbacks_see_means_of_groups_and_the_mean(void **state)
{
    const int size = fsdp_test_size(), rank = fsdp_test_rank();

    (void)state;
    for (int group = 1; group < size; group++) {
        sights                    seen      = {0};
        const fsdp_hook_callbacks callbacks = {
            .size = sizeof callbacks, .before = see_before, .after = see_after, .state = &seen};
        hooked h;

        if (size % group != 0) {
            continue;
        }
        open_hooked(&h, FSDP_HYBRID_SHARD, group);
        assert_int_equal(FSDP_OK, fsdp_hook_custom(h.ctx, &callbacks, &h.hook));
        assert_int_equal(FSDP_OK, fsdp_model_set_hook(h.model, h.hook));
        run_backward(&h, (float)rank + 1.0F, 0.0F);
        const double mean = norm_of(&h) / sqrt((double)ELEMENTS);
        assert_true(seen.before == mean_of_ranks(rank / group * group, group));
        assert_true(seen.after == mean_of_ranks(0, size));
        assert_true(mean == (double)mean_of_ranks(0, size));
        close_hooked(&h);
    }
}

/* The largest number of f16 is 65504. */
static void f16_overflows_where_the_mean_does_and_not_where_sums_would(void **state)
{
    hooked h;

    (void)state;
    if (fsdp_test_size() < 4) {
        skip();
    }
    open_hooked(&h, FSDP_HYBRID_SHARD, fsdp_test_size() / 2);
    assert_int_equal(FSDP_OK, fsdp_hook_half(h.ctx, FSDP_F16, &h.hook));
    assert_int_equal(FSDP_OK, fsdp_model_set_hook(h.model, h.hook));
    run_backward(&h, 40000.0F, 0.0F);
    assert_true(norm_of(&h) == 40000.0 * sqrt((double)ELEMENTS));
    close_hooked(&h);
}

/* ---- errors that are kept ---------------------------------------------------------------------------------------- */

static void open_with_int8(hooked *h)
{
    open_hooked(h, FSDP_NO_SHARD, 0);
    assert_int_equal(FSDP_OK, fsdp_hook_int8(h->ctx, NULL, &h->hook));
    assert_int_equal(FSDP_OK, fsdp_model_set_hook(h->model, h->hook));
}

static void save(hooked *h, char *path)
{
    const fsdp_checkpoint_state state = {.step = 1};
    fsdp_checkpoint            *checkpoint;

    assert_int_equal(FSDP_OK, fsdp_checkpoint_open(h->model, NULL, saved_folder, NULL, &checkpoint));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_save(checkpoint, &state));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_close(checkpoint));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_latest(h->ctx, saved_folder, path, FSDP_CHECKPOINT_PATH_BYTES));
}

/* What a gradient of nothing comes to behind one that has left errors: these, unless there are none any more. */
static double norm_of_errors(hooked *h, const char *path)
{
    run_backward(h, 0.1F, 0.001F);
    (void)norm_of(h);
    assert_int_equal(FSDP_OK, fsdp_model_zero_grad(h->model));
    if (path != NULL) {
        assert_int_equal(FSDP_OK, fsdp_checkpoint_load(h->model, NULL, path, NULL, NULL));
    }
    run_backward(h, 0.0F, 0.0F);
    const double norm = norm_of(h);
    assert_int_equal(FSDP_OK, fsdp_model_zero_grad(h->model));
    return norm;
}

static void a_load_clears_what_a_hook_has_kept(void **state)
{
    char   path[FSDP_CHECKPOINT_PATH_BYTES];
    hooked h;

    (void)state;
    open_with_int8(&h);
    save(&h, path);
    if (fsdp_test_size() > 1) {
        assert_true(norm_of_errors(&h, NULL) > 0.0);
    }
    assert_true(norm_of_errors(&h, path) == 0.0);
    close_hooked(&h);
}

/* The same, unscaled, behind a step after which the scale has become another, if `overflows` or `grows` says so. */
static double norm_of_errors_under_scale(bool overflows, bool grows)
{
    fsdp_loss_scaler_options scaling = FSDP_LOSS_SCALER_OPTIONS_DEFAULT;
    fsdp_optimizer_options   o;
    fsdp_optimizer          *optimizer;
    fsdp_loss_scaler        *scaler;
    hooked                   h;
    int                      stepped = 1;

    open_with_int8(&h);
    scaling.allow_any_dtype = 1;
    scaling.initial_scale   = 1024.0;
    scaling.growth_interval = grows ? 1 : 1000;
    assert_int_equal(FSDP_OK, fsdp_loss_scaler_create(h.model, &scaling, &scaler));
    assert_int_equal(FSDP_OK, fsdp_optimizer_options_init(FSDP_SGD, &o));
    assert_int_equal(FSDP_OK, fsdp_optimizer_create(h.model, &o, &optimizer));
    run_backward(&h, 102.4F, 1.024F);
    assert_int_equal(FSDP_OK, fsdp_loss_scaler_step(scaler, optimizer, &stepped));
    if (overflows) {
        run_backward(&h, INFINITY, 0.0F);
        assert_int_equal(FSDP_OK, fsdp_loss_scaler_step(scaler, optimizer, &stepped));
        assert_false(stepped);
    }
    assert_true(fsdp_loss_scaler_scale(scaler) == (overflows ? 512.0 : grows ? 2048.0 : 1024.0));
    run_backward(&h, 0.0F, 0.0F);
    assert_int_equal(FSDP_OK, fsdp_loss_scaler_unscale(scaler, NULL));
    const double norm = norm_of(&h);
    close_hooked(&h);
    return norm;
}

static void errors_are_rescaled_with_the_loss_scale(void **state)
{
    const double norm = norm_of_errors_under_scale(false, false);

    (void)state;
    assert_true(fsdp_test_size() == 1 || norm > 0.0);
    assert_true(norm_of_errors_under_scale(true, false) == norm);
    assert_true(norm_of_errors_under_scale(false, true) == norm);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(callbacks_see_means_of_groups_and_the_mean),
        cmocka_unit_test(f16_overflows_where_the_mean_does_and_not_where_sums_would),
        cmocka_unit_test(a_load_clears_what_a_hook_has_kept),
        cmocka_unit_test(errors_are_rescaled_with_the_loss_scale),
    };

    return fsdp_test_main(argc, argv, tests, saved_folder_make, saved_folder_remove);
}
