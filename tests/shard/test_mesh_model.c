/*
 * A model on a mesh against the same on one rank: initial values, norms, clipping, the loss scaler and steps, bit by bit; and what is
 * refused, on every rank.
 */
#include <math.h>
#include <string.h>

#include "tests/shard/mesh_axes.h"
#include "tests/shard/mesh_net.h"

static void ok(fsdp_status status)
{
    assert_int_equal(FSDP_OK, status);
}

static void for_each_shape(void (*check)(mesh_net *net, mesh_net *alone))
{
    static const fsdp_strategy strategies[] = {FSDP_FULL_SHARD, FSDP_NO_SHARD, FSDP_SHARD_GRAD_OP, FSDP_FULL_SHARD};
    size_t                     n;
    const mesh_shape          *shapes = mesh_shapes(fsdp_test_size(), &n);

    for (size_t i = 0; i < n; i++) {
        fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;
        mesh_net           net, alone;

        options.strategy = strategies[i % 4];
        if (shapes[i].dp % 2 == 0) {
            options.strategy   = FSDP_HYBRID_SHARD;
            options.group_size = shapes[i].dp / 2;
        }
        if (mesh_net_open(&net, shapes[i], &options)) {
            options.strategy = FSDP_FULL_SHARD;
            mesh_net_open_alone(&alone, &options);
            check(&net, &alone);
            mesh_net_close(&alone);
            mesh_net_close(&net);
        }
    }
}

/* ---- bit by bit --------------------------------------------------------------------------------------------------- */

static void train(mesh_net *net, mesh_net *alone)
{
    uint64_t hash, hash_alone;

    mesh_net_check(net, alone); /* initial values */
    for (int step = 0; step < 3; step++) {
        const double one = mesh_net_train(alone, step), all = mesh_net_train(net, step);

        if (memcmp(&one, &all, sizeof one) != 0) {
            fail_msg("%s: a norm of %.17g, and %.17g on one rank", mesh_shape_text(net->shape), all, one);
        }
    }
    mesh_net_check(net, alone);
    ok(fsdp_model_hash(net->model, &hash));
    ok(fsdp_model_hash(alone->model, &hash_alone));
    assert_int_equal(hash_alone, hash);
}

static void training_has_the_bits_of_one_rank(void **state)
{
    (void)state;
    for_each_shape(train);
}

static double norm_of(const fsdp_tensor_norm *norms, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(norms[i].name, name) == 0) {
            return norms[i].norm;
        }
    }
    return -1.0;
}

/* Of each tensor, of the stage of this rank; and others that are of the whole model. */
static void compare_norms(mesh_net *net, mesh_net *alone)
{
    fsdp_tensor_norm mine[64], theirs[64];
    double           one, all;
    size_t           n, n_alone;

    mesh_net_backward(net, 7);
    mesh_net_backward(alone, 7);
    ok(fsdp_grad_norm(&net->model, 1, &all));
    ok(fsdp_grad_norm(&alone->model, 1, &one));
    assert_memory_equal(&one, &all, sizeof one);
    ok(fsdp_grad_norm_per_tensor(net->model, mine, 64, &n));
    ok(fsdp_grad_norm_per_tensor(alone->model, theirs, 64, &n_alone));
    assert_in_range(n, 1, n_alone);
    for (size_t i = 0; i < n; i++) {
        const double expected = norm_of(theirs, n_alone, mine[i].name);

        assert_memory_equal(&expected, &mine[i].norm, sizeof expected);
    }
    ok(fsdp_clip_grad_norm_inf(net->model, 0.5, &all));
    ok(fsdp_clip_grad_norm_inf(alone->model, 0.5, &one));
    assert_memory_equal(&one, &all, sizeof one);
    ok(fsdp_clip_grad_value(net->model, 0.25));
    ok(fsdp_clip_grad_value(alone->model, 0.25));
    ok(fsdp_clip_grad_norm(net->model, INFINITY, &all));
    ok(fsdp_clip_grad_norm(alone->model, INFINITY, &one));
    assert_memory_equal(&one, &all, sizeof one);
    ok(fsdp_model_zero_grad(net->model));
    ok(fsdp_model_zero_grad(alone->model));
}

static void norms_count_each_element_once(void **state)
{
    (void)state;
    for_each_shape(compare_norms);
}

/* The last rank's last unit overflows: all skip the step. */
static void overflow(mesh_net *net, mesh_net *alone)
{
    fsdp_loss_scaler_options options = FSDP_LOSS_SCALER_OPTIONS_DEFAULT;
    fsdp_loss_scaler        *scaler;
    int                      stepped = 1;

    options.allow_any_dtype = 1;
    ok(fsdp_loss_scaler_create(net->model, &options, &scaler));
    mesh_net_backward(net, 0);
    for (int u = 0; u < MESH_UNITS; u++) {
        const mesh_unit *unit = &net->units[u];
        fsdp_shard       shard;

        for (size_t i = 0; unit->unit != NULL && i < 4 && i < unit->n; i++) { /* none is frozen or ignored */
            ok(fsdp_unit_shard(unit->unit, i, &shard));
            if (fsdp_rank(net->ctx) == fsdp_size(net->ctx) - 1 && shard.count > 0) {
                ((float *)shard.gradient)[0] = INFINITY;
            }
        }
    }
    ok(fsdp_loss_scaler_step(scaler, net->optimizer, &stepped));
    assert_int_equal(0, stepped);
    assert_true(fsdp_loss_scaler_scale(scaler) == options.initial_scale * options.backoff_factor);
    mesh_net_check(net, alone);
    fsdp_loss_scaler_destroy(scaler);
}

static void an_overflow_anywhere_skips_the_step_everywhere(void **state)
{
    (void)state;
    for_each_shape(overflow);
}

/* A rank without gradients: nobody steps, and behind fsdp_model_zero_grad() all do. */
static void forget(mesh_net *net, mesh_net *alone)
{
    double norm;

    if (net->stage == 0 && net->tp_position == 0) {
        mesh_net_backward(net, 0);
    }
    if (net->shape.tp * net->shape.pp > 1) {
        assert_int_not_equal(FSDP_OK, fsdp_optimizer_step(net->optimizer));
        assert_says(net->dp, "has no gradient since the last step");
        assert_int_equal(FSDP_ERR_STATE, fsdp_clip_grad_norm(net->model, 1.0, &norm));
    }
    ok(fsdp_model_zero_grad(net->model));
    mesh_net_check(net, alone);
    const double all = mesh_net_train(net, 1), one = mesh_net_train(alone, 1);
    assert_memory_equal(&one, &all, sizeof one);
    mesh_net_check(net, alone);
}

static void a_rank_without_gradients_stops_the_step_everywhere(void **state)
{
    (void)state;
    for_each_shape(forget);
}

/* ---- memory -------------------------------------------------------------------------------------------------------- */

static void compare_budget(mesh_net *net, mesh_net *alone)
{
    fsdp_budget budget;
    fsdp_memory held;

    (void)alone;
    if (net->dp == net->ctx) { /* which holds the mesh too */
        return;
    }
    (void)mesh_net_train(net, 0);
    ok(fsdp_model_budget(net->model, net->strategy, 0, FSDP_ADAMW, &budget));
    ok(fsdp_memory_usage(net->dp, &held));
    for (int line = 0; line < FSDP_N_MEMORY_KINDS; line++) {
        if (budget.bytes[line] != held.current[line]) {
            fail_msg("%s: %s: %zu bytes in the budget, %zu held", mesh_shape_text(net->shape),
                     fsdp_memory_name((fsdp_memory_kind)line), budget.bytes[line], held.current[line]);
        }
    }
    assert_int_equal(budget.device, held.device);
}

static void the_budget_is_what_is_held_to_the_byte(void **state)
{
    (void)state;
    for_each_shape(compare_budget);
}

/* ---- what is not the same on all positions ------------------------------------------------------------------------- */

static void diverge(mesh_net *net, mesh_net *alone)
{
    const bool odd = net->shape.tp > 1 ? net->tp_position > 0 : net->stage > 0;
    uint64_t   hash;
    fsdp_shard shard;

    (void)alone;
    if (net->shape.tp * net->shape.pp == 1) {
        return;
    }
    for (int u = 0; u < MESH_UNITS; u++) {
        const mesh_unit *unit = &net->units[u];

        for (size_t i = 0; unit->unit != NULL && i < unit->n; i++) {
            const bool copied = net->shape.tp > 1 ? u == 1 && i == 1 : strcmp(unit->tensors[i].name, "table") == 0;

            if (copied && odd) {
                ok(fsdp_unit_shard(unit->unit, i, &shard));
                for (size_t e = 0; e < shard.count; e++) {
                    ((float *)shard.master)[e] += 1.0F;
                }
            }
        }
    }
    ok(fsdp_model_shards_changed(net->model));
    assert_int_equal(FSDP_ERR_MISMATCH, fsdp_model_hash(net->model, &hash));
}

static void a_hash_finds_copies_that_differ(void **state)
{
    (void)state;
    for_each_shape(diverge);
}

/* ---- what is refused ------------------------------------------------------------------------------------------------ */

typedef struct refused {
    mesh_net           net;
    fsdp_model_options options;
} refused;

static bool open_for_refusal(refused *r, int tp, int pp)
{
    const mesh_shape shape = {fsdp_test_size() / (tp * pp), tp, pp, false};
    MPI_Comm         comm;

    if (fsdp_test_size() % (tp * pp) != 0) {
        return false;
    }
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    mesh_net_open_mesh(&r->net, comm, shape, NULL);
    r->options             = (fsdp_model_options)FSDP_MODEL_OPTIONS_DEFAULT;
    r->options.mesh        = r->net.mesh;
    r->options.tensor_axis = "tp";
    r->options.stage_axis  = "pp";
    return true;
}

static void create_refused(refused *r, const char *words)
{
    fsdp_model *model;

    assert_int_equal(FSDP_ERR_ARG, fsdp_model_create(r->net.dp, &r->options, &model));
    assert_says(r->net.dp, words);
}

static void axes_that_do_not_fit_are_refused(void **state)
{
    refused       r;
    fsdp_context *all;

    (void)state;
    if (!open_for_refusal(&r, fsdp_test_size() % 2 == 0 ? 2 : fsdp_test_size(), 1)) {
        return;
    }
    r.options.tensor_axis = "sp";
    create_refused(&r, "\"sp\" does not name axes");
    r.options.tensor_axis = "dp";
    if (fsdp_size(r.net.dp) > 1) {
        create_refused(&r, "the context is one along axis \"dp\" too");
    }
    r.options.tensor_axis = "tp";
    r.options.stage_axis  = "tp";
    create_refused(&r, "use two axes");
    r.options.stage_axis = "pp";
    if (fsdp_test_size() > 1) {
        r.options.mesh = fsdp_test_rank() == 0 ? NULL : r.net.mesh;
        create_refused(&r, "fsdp_model_options.mesh is NULL on rank 0");
        r.options.tensor_axis = fsdp_test_rank() == 0 ? NULL : "tp";
        r.options.mesh        = r.net.mesh;
        fsdp_model *model;
        assert_int_equal(FSDP_ERR_MISMATCH, fsdp_model_create(r.net.dp, &r.options, &model));
        r.options.tensor_axis = "tp";
        ok(fsdp_mesh_context(r.net.mesh, "dp+tp", &all));
        fsdp_context *dp = r.net.dp;
        r.net.dp         = all;
        create_refused(&r, "the context is one along axis \"tp\" too");
        r.net.dp = dp;
    }
    r.options.mesh = NULL;
    create_refused(&r, "mesh is NULL");
    mesh_net_close(&r.net);
}

static fsdp_tensor plain(const char *name, size_t rows, size_t columns)
{
    return (fsdp_tensor){.name = name, .n_dims = 2, .shape = {rows, columns}, .fill = FSDP_FILL_CONSTANT};
}

/* Adding may succeed on some ranks: all of them are told by the commit. */
static void commit_refused(refused *r, fsdp_status status, const fsdp_tensor *tensors, size_t n, const char *words)
{
    fsdp_model_options options = r->options;
    char               axis[]  = "tp";
    fsdp_model        *model;
    fsdp_unit         *unit;

    options.tensor_axis = axis;
    ok(fsdp_model_create(r->net.dp, &options, &model));
    memset(axis, '?', sizeof axis); /* read by that call alone */
    if (n > 0) {
        (void)fsdp_unit_add(model, "unit", tensors, n, &unit);
    }
    assert_int_equal(status, fsdp_model_commit(model));
    assert_says(r->net.dp, words);
    fsdp_model_destroy(model);
}

static void divisions_that_do_not_fit_are_refused(void **state)
{
    const int   tp = fsdp_test_size() % 2 == 0 ? 2 : fsdp_test_size();
    refused     r;
    fsdp_tensor t = plain("w", 3, 7);

    (void)state;
    if (tp == 1 || !open_for_refusal(&r, tp, 1)) {
        return;
    }
    t.tp_dim = 1;
    commit_refused(&r, FSDP_ERR_ARG, &t, 1, "without FSDP_TENSOR_TP");
    t.flags    = FSDP_TENSOR_TP;
    t.shape[1] = 3 * (size_t)tp + 1;
    commit_refused(&r, FSDP_ERR_ARG, &t, 1, "tensor 'w': dimension 1 is");
    t.shape[1]  = (size_t)tp;
    t.tp_blocks = 3;
    commit_refused(&r, FSDP_ERR_ARG, &t, 1, "in 3 blocks");
    t.tp_blocks = 0;
    t.tp_dim    = 2;
    commit_refused(&r, FSDP_ERR_ARG, &t, 1, "tp_dim is 2, and it has 2 dimensions");
    t.tp_dim = 1;
    t.flags  = r.net.tp_position == 0 ? FSDP_TENSOR_TP : 0;
    t.tp_dim = r.net.tp_position == 0 ? 1 : 0;
    commit_refused(&r, FSDP_ERR_MISMATCH, &t, 1, "is another one on other positions of axis \"tp\"");
    t          = plain("w", 3, 4);
    t.shape[0] = r.net.tp_position == 0 ? 3 : 0;
    commit_refused(&r, FSDP_ERR_ARG, &t, 1, "extent 0 is 0");
    mesh_net_close(&r.net);
}

static void stages_that_do_not_fit_are_refused(void **state)
{
    const int   pp = fsdp_test_size() % 2 == 0 ? 2 : fsdp_test_size();
    refused     r;
    fsdp_tensor t = plain("w", 3, 7);
    fsdp_model *model;
    fsdp_unit  *unit;

    (void)state;
    if (pp == 1 || !open_for_refusal(&r, 1, pp)) {
        return;
    }
    commit_refused(&r, FSDP_ERR_ARG, &t, r.net.stage == 1 ? 0 : 1, "has 0 units");
    t.shape[1] = r.net.stage == 0 ? 7 : 8;
    commit_refused(&r, FSDP_ERR_MISMATCH, &t, 1, "tensor 'w' is another one in stage");

    t = plain("w", 3, 7);
    ok(fsdp_model_create(r.net.dp, &r.options, &model));
    ok(fsdp_unit_add(model, "unit", &t, 1, &unit));
    const fsdp_model_group group = FSDP_MODEL_GROUP_DEFAULT;
    ok(fsdp_model_add_group(model, "x*", &group));
    assert_int_equal(FSDP_ERR_ARG, fsdp_model_commit(model));
    assert_says(r.net.dp, "matches no tensor of any stage");
    fsdp_model_destroy(model);
    mesh_net_close(&r.net);
}

static void what_needs_one_rank_for_all_parameters_is_refused(void **state)
{
    refused     r;
    fsdp_lbfgs *lbfgs;

    (void)state;
    if (fsdp_test_size() == 1 || !open_for_refusal(&r, fsdp_test_size(), 1)) {
        return;
    }
    fsdp_tensor t = plain("w", 3, 7);
    fsdp_model *model;
    fsdp_unit  *unit;
    ok(fsdp_model_create(r.net.dp, &r.options, &model));
    ok(fsdp_unit_add(model, "unit", &t, 1, &unit));
    ok(fsdp_model_commit(model));
    assert_int_equal(FSDP_ERR_STATE, fsdp_unit_set_place(unit, 1));
    assert_int_equal(FSDP_ERR_ARG, fsdp_unit_set_place(NULL, 1));
    size_t shape[FSDP_MAX_DIMS];
    assert_true(fsdp_unit_shape(unit, 1, shape) == FSDP_NO_TENSOR);
    assert_true(fsdp_unit_shape(unit, 0, NULL) == FSDP_NO_TENSOR);
    assert_true(fsdp_unit_shape(NULL, 0, shape) == FSDP_NO_TENSOR);
    assert_int_equal(FSDP_ERR_UNSUPPORTED, fsdp_lbfgs_create(model, NULL, &lbfgs));
    fsdp_model_destroy(model);
    mesh_net_close(&r.net);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(training_has_the_bits_of_one_rank),
        cmocka_unit_test(norms_count_each_element_once),
        cmocka_unit_test(an_overflow_anywhere_skips_the_step_everywhere),
        cmocka_unit_test(a_rank_without_gradients_stops_the_step_everywhere),
        cmocka_unit_test(the_budget_is_what_is_held_to_the_byte),
        cmocka_unit_test(a_hash_finds_copies_that_differ),
        cmocka_unit_test(axes_with_strategies_have_the_bits_of_one_rank),
        cmocka_unit_test(and_those_of_the_strategy_that_they_come_to),
        cmocka_unit_test(units_have_strategies_of_their_own_beside_those_of_axes),
        cmocka_unit_test(groups_are_along_axes_where_nodes_are_not),
        cmocka_unit_test(strategies_of_axes_that_do_not_fit_are_refused),
        cmocka_unit_test(combinations_that_there_are_not_are_refused),
        cmocka_unit_test(ranks_with_other_strategies_of_axes_learn_of_it),
        cmocka_unit_test(axes_that_do_not_fit_are_refused),
        cmocka_unit_test(divisions_that_do_not_fit_are_refused),
        cmocka_unit_test(stages_that_do_not_fit_are_refused),
        cmocka_unit_test(what_needs_one_rank_for_all_parameters_is_refused),
    };

    return fsdp_test_main(argc, argv, tests, NULL, NULL);
}
