/*
 * Steps that go wrong: ranks that call passes in different orders, leave some out or call what cannot be, steps without
 * gradients. Each is an error on every rank, nothing hangs, and behind fsdp_model_zero_grad() on every rank training goes on,
 * bitwise as if it had not been. FSDP_TIMEOUT_S is there to fail these tests; none waits for it.
 */
#include <string.h>

#include "fsdp/optimizer.h"
#include "fsdp/tensor_io.h"
#include "shard/state/model.h"
#include "shard/state/strategy.h"
#include "tests/shard/small_model.h"

enum { MOST_PREFETCH = 2, BAD_PASS = 99 };

typedef enum ending { STEPS, FORGETS } ending;

/* What rank 1 does while the others do as always. */
typedef struct oddity {
    const char *forward, *backward; /* units in order: "abc"; '!' ends a backward pass that is not open */
    ending      end;
} oddity;

static const oddity AS_ALWAYS = {"abc", "cba", STEPS};

static const oddity ODDITIES[] = {
    {"abc", "bca", STEPS},   {"abc", "cab", STEPS},   {"abc", "ca", STEPS},  {"abc", "cb", STEPS},
    {"abc", "", STEPS},      {"abc", "cbaa", STEPS},  {"", "", STEPS},       {"abc", "c!ba", STEPS},
    {"!abc", "ca", STEPS},   {"abc", "cba", FORGETS}, {"abc", "c", FORGETS}, {"", "", FORGETS},
    {"bca", "bca", FORGETS},
};
enum { N_ODDITIES = sizeof ODDITIES / sizeof ODDITIES[0] };

static fsdp_context *contexts[MOST_PREFETCH + 1]; /* by prefetch */

/* ---- steps ------------------------------------------------------------------------------------------------------- */

static fsdp_status forward_pass(small_model *m, size_t u)
{
    const fsdp_status status = fsdp_unit_begin_forward(m->units[u]);

    return status == FSDP_OK ? fsdp_unit_end_forward(m->units[u]) : status;
}

static fsdp_status backward_pass(small_model *m, size_t u, int pass)
{
    const fsdp_status status = fsdp_unit_begin_backward(m->units[u]);

    for (size_t t = FIRST_TENSOR[u]; t < FIRST_TENSOR[u + 1] && status == FSDP_OK; t++) {
        const float *w = fsdp_unit_param(m->units[u], t - FIRST_TENSOR[u]);
        float       *g = fsdp_unit_grad(m->units[u], t - FIRST_TENSOR[u]);

        for (size_t i = 0; i < tensor_elements(t); i++) {
            g[i] += gradient_element(fsdp_rank(m->ctx), pass, t, i, w[i]);
        }
    }
    return status == FSDP_OK ? fsdp_unit_end_backward(m->units[u]) : status;
}

/* Up to the first error. */
static fsdp_status run_passes(small_model *m, oddity o, int pass)
{
    fsdp_status status = FSDP_OK;

    for (const char *u = o.forward; *u != '\0' && status == FSDP_OK; u++) {
        status = *u == '!' ? fsdp_unit_end_backward(m->units[0]) : forward_pass(m, (size_t)(*u - 'a'));
    }
    for (const char *u = o.backward; *u != '\0' && status == FSDP_OK; u++) {
        status = *u == '!' ? fsdp_unit_end_backward(m->units[0]) : backward_pass(m, (size_t)(*u - 'a'), pass);
    }
    return status;
}

static fsdp_status run_step(small_model *m, fsdp_optimizer *optimizer, oddity o, int pass)
{
    fsdp_status status = run_passes(m, o, pass);

    if (status == FSDP_OK && o.end == STEPS) {
        status = fsdp_clip_grad_norm(m->model, 1.0, NULL);
    }
    return status == FSDP_OK && o.end == STEPS ? fsdp_optimizer_step(optimizer) : status;
}

/* How a model is made; `prefetch` says in which context. */
typedef struct arrangement {
    fsdp_strategy strategy;
    int           group_size, prefetch;
} arrangement;

static fsdp_optimizer *open_training(small_model *m, arrangement a)
{
    fsdp_model_options     options = FSDP_MODEL_OPTIONS_DEFAULT;
    fsdp_optimizer_options o;
    fsdp_optimizer        *optimizer;

    options.strategy   = a.strategy;
    options.group_size = a.group_size;
    small_model_create(m, contexts[a.prefetch], &options);
    assert_int_equal(FSDP_OK, fsdp_model_commit(m->model));
    assert_int_equal(FSDP_OK, fsdp_optimizer_options_init(FSDP_ADAMW, &o));
    assert_int_equal(FSDP_OK, fsdp_optimizer_create(m->model, &o, &optimizer));
    return optimizer;
}

static uint64_t good_step(small_model *m, fsdp_optimizer *optimizer, int pass)
{
    uint64_t hash;

    assert_int_equal(FSDP_OK, run_step(m, optimizer, AS_ALWAYS, pass));
    assert_int_equal(FSDP_OK, fsdp_model_hash(m->model, &hash));
    return hash;
}

/* The parameters after each step of a run in which nothing goes wrong. */
static void run_undisturbed(arrangement a, uint64_t *hashes, int n)
{
    small_model     m;
    fsdp_optimizer *optimizer = open_training(&m, a);

    for (int step = 0; step < n; step++) {
        hashes[step] = good_step(&m, optimizer, step);
    }
    fsdp_model_destroy(m.model);
}

static void for_all(void (*check)(arrangement a))
{
    const int size = fsdp_size(contexts[0]);

    for (int prefetch = 0; prefetch <= MOST_PREFETCH; prefetch++) {
        for (int strategy = 0; strategy < FSDP_N_STRATEGIES; strategy++) {
            check((arrangement){(fsdp_strategy)strategy, 0, prefetch});
            if (fsdpi_is_hybrid((fsdp_strategy)strategy) && size > 1) {
                check((arrangement){(fsdp_strategy)strategy, size % 2 == 0 ? size / 2 : 1, prefetch});
            }
        }
    }
}

/* ---- ranks that do different things ------------------------------------------------------------------------------ */

static void fail_case(const small_model *m, arrangement a, oddity o, const char *what, fsdp_status status)
{
    fail_msg("%s, groups of %d, prefetch %d, '%s' and '%s' on rank 1: %s %s: %s", fsdp_strategy_name(a.strategy),
             a.group_size, a.prefetch, o.forward, o.backward, what, fsdp_status_name(status), fsdp_last_error(m->ctx));
}

/* Every rank is told, by a call of the step or else by this one. Returns the error. */
static fsdp_status forget(small_model *m, arrangement a, oddity o, fsdp_status status)
{
    const fsdp_status forgotten = fsdp_model_zero_grad(m->model);

    if (status != FSDP_OK && forgotten != FSDP_OK) {
        fail_case(m, a, o, "fsdp_model_zero_grad() returns", forgotten);
    }
    const fsdp_status again = fsdp_model_zero_grad(m->model);
    if (again != FSDP_OK) { /* all of them know */
        fail_case(m, a, o, "fsdp_model_zero_grad() again returns", again);
    }
    return status != FSDP_OK ? status : forgotten;
}

static void check_oddity(small_model *m, fsdp_optimizer *optimizer, arrangement a, oddity o)
{
    fsdp_status status = run_step(m, optimizer, fsdp_rank(m->ctx) == 1 ? o : AS_ALWAYS, BAD_PASS);

    if (status != FSDP_OK && strstr(fsdp_last_error(m->ctx), "rank 1") == NULL) {
        fail_case(m, a, o, "rank 1 is not named in", status);
    }
    status = forget(m, a, o, status);
    if (status != FSDP_ERR_MISMATCH && status != FSDP_ERR_STATE) {
        fail_case(m, a, o, "ends with", status);
    }
}

static void check_all_oddities(arrangement a)
{
    uint64_t        hashes[N_ODDITIES + 1];
    small_model     m;
    fsdp_optimizer *optimizer;

    run_undisturbed(a, hashes, N_ODDITIES + 1);
    optimizer = open_training(&m, a);
    assert_true(good_step(&m, optimizer, 0) == hashes[0]);
    for (int i = 0; i < N_ODDITIES; i++) {
        check_oddity(&m, optimizer, a, ODDITIES[i]);
        if (good_step(&m, optimizer, i + 1) != hashes[i + 1]) {
            fail_case(&m, a, ODDITIES[i], "other parameters behind", FSDP_OK);
        }
    }
    fsdp_model_destroy(m.model);
}

static void a_rank_that_goes_its_own_way_is_an_error_on_every_rank(void **state)
{
    (void)state;
    if (fsdp_size(contexts[0]) > 1) {
        for_all(check_all_oddities);
    }
}

/* Where forward passes move nothing, nobody else need know their order. */
static void check_forward_orders(arrangement a)
{
    static const char *const orders[] = {"acb", "bac", "ac", "ab", "abcc"};
    uint64_t                 hashes[sizeof orders / sizeof orders[0] + 1];
    small_model              m;
    fsdp_optimizer          *optimizer;

    run_undisturbed(a, hashes, sizeof orders / sizeof orders[0] + 1);
    optimizer = open_training(&m, a);
    assert_true(good_step(&m, optimizer, 0) == hashes[0]);
    for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++) {
        const oddity o    = {orders[i], "cba", FORGETS};
        fsdp_status  told = run_passes(&m, fsdp_rank(m.ctx) == 1 ? o : AS_ALWAYS, BAD_PASS);
        int          least, most;

        told  = forget(&m, a, o, told);
        least = most = told != FSDP_OK;
        MPI_Allreduce(MPI_IN_PLACE, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
        MPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        assert_int_equal(least, most);
        assert_int_equal(most, a.strategy != FSDP_NO_SHARD || a.prefetch == 0);
        assert_true(good_step(&m, optimizer, (int)i + 1) == hashes[i + 1]);
    }
    fsdp_model_destroy(m.model);
}

static void another_order_of_forward_passes_is_an_error_where_it_matters(void **state)
{
    (void)state;
    if (fsdp_size(contexts[0]) > 1) {
        for_all(check_forward_orders);
    }
}

static void check_destruction(arrangement a)
{
    small_model     m;
    fsdp_optimizer *optimizer = open_training(&m, a);
    const bool      odd       = fsdp_rank(m.ctx) == 1;
    uint64_t        hash;

    (void)good_step(&m, optimizer, 0);
    assert_int_not_equal(FSDP_OK, run_step(&m, optimizer, odd ? ODDITIES[0] : AS_ALWAYS, BAD_PASS));
    fsdp_model_destroy(m.model);
    optimizer = open_training(&m, a); /* in the same context */
    hash      = good_step(&m, optimizer, 0);
    assert_true(hash != 0);
    fsdp_model_destroy(m.model);
}

static void a_model_whose_step_has_failed_can_be_destroyed(void **state)
{
    (void)state;
    if (fsdp_size(contexts[0]) > 1) {
        for_all(check_destruction);
    }
}

/* ---- all ranks alike --------------------------------------------------------------------------------------------- */

static void check_missing_gradients(arrangement a)
{
    static const oddity without[] = {{"abc", "", STEPS}, {"abc", "cb", STEPS}};
    uint64_t            hashes[3];
    small_model         m;
    fsdp_optimizer     *optimizer;

    run_undisturbed(a, hashes, 3);
    optimizer = open_training(&m, a);
    assert_true(good_step(&m, optimizer, 0) == hashes[0]);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(FSDP_ERR_STATE, run_step(&m, optimizer, without[i], BAD_PASS));
        assert_says(m.ctx,
                    i == 0 ? "no gradients since the last step" : "unit 'a' has no gradient since the last step");
        assert_int_equal(FSDP_ERR_STATE, fsdp_optimizer_step(optimizer));
        assert_says(m.ctx, "has no gradient since the last step; run its backward pass first");
        assert_int_equal(FSDP_OK, fsdp_model_zero_grad(m.model));
        assert_true(good_step(&m, optimizer, i + 1) == hashes[i + 1]);
    }
    fsdp_model_destroy(m.model);
}

static void a_step_without_a_gradient_is_refused(void **state)
{
    (void)state;
    for_all(check_missing_gradients);
}

/* Behind a failed pass every call says so at once, with what was wrong at first; and open passes end. */
static void check_refusals(arrangement a)
{
    uint64_t        hashes[2], hash = 0;
    small_model     m;
    fsdp_optimizer *optimizer;
    float           value = 0.0F;

    run_undisturbed(a, hashes, 2);
    optimizer = open_training(&m, a);
    assert_true(good_step(&m, optimizer, 0) == hashes[0]);
    assert_int_equal(FSDP_OK, fsdp_unit_begin_backward(m.units[2]));
    assert_int_equal(FSDP_OK, fsdp_unit_begin_forward(m.units[1]));
    assert_int_equal(FSDP_ERR_STATE, fsdp_unit_begin_forward(m.units[1]));
    assert_says(m.ctx, "fsdp_unit_begin_forward: unit 'b' is in its forward pass already");
    assert_int_equal(FSDP_ERR_STATE, fsdp_unit_begin_forward(m.units[0]));
    assert_says(m.ctx, "this step has failed; call fsdp_model_zero_grad on every rank. It began with: ");
    assert_int_equal(FSDP_ERR_STATE, fsdp_unit_end_backward(m.units[2]));
    assert_int_equal(FSDP_ERR_STATE, fsdp_clip_grad_norm(m.model, 1.0, NULL));
    assert_int_equal(FSDP_ERR_STATE, fsdp_clip_grad_value(m.model, 1.0));
    assert_int_equal(FSDP_ERR_STATE, fsdp_optimizer_step(optimizer));
    assert_int_equal(FSDP_ERR_STATE, fsdp_model_hash(m.model, &hash));
    assert_int_equal(FSDP_ERR_STATE, fsdp_tensor_export(m.model, "a.scale", 0, &value, sizeof value));
    assert_says(m.ctx, "fsdp_tensor_export: this step has failed");
    assert_int_equal(FSDP_OK, fsdp_model_zero_grad(m.model));
    assert_null(fsdp_unit_param(m.units[1], 0));
    assert_true(good_step(&m, optimizer, 1) == hashes[1]);
    fsdp_model_destroy(m.model);
}

static void calls_behind_a_failed_pass_are_refused(void **state)
{
    (void)state;
    for_all(check_refusals);
}

/* ---- all together ------------------------------------------------------------------------------------------------ */

static int open_all(void **state)
{
    int failed = 0;

    (void)state;
    for (int prefetch = 0; prefetch <= MOST_PREFETCH; prefetch++) {
        fsdp_config config;

        fsdp_config_init(&config);
        config.prefetch  = prefetch;
        config.log_level = FSDP_LOG_OFF;
        failed |= fsdp_init(MPI_COMM_WORLD, &config, &contexts[prefetch]) != FSDP_OK;
    }
    return failed;
}

static int close_all(void **state)
{
    int failed = 0;

    (void)state;
    for (int prefetch = 0; prefetch <= MOST_PREFETCH; prefetch++) {
        failed |= fsdp_finalize(contexts[prefetch]) != FSDP_OK;
    }
    return failed;
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rank_that_goes_its_own_way_is_an_error_on_every_rank),
        cmocka_unit_test(another_order_of_forward_passes_is_an_error_where_it_matters),
        cmocka_unit_test(a_model_whose_step_has_failed_can_be_destroyed),
        cmocka_unit_test(a_step_without_a_gradient_is_refused),
        cmocka_unit_test(calls_behind_a_failed_pass_are_refused),
    };

    return fsdp_test_main(argc, argv, tests, open_all, close_all);
}
