/*
 * What is divided over which data axis of a mesh: the bits of one rank and of the plain strategy, budgets to the byte, who holds what on
 * nodes that are not along the axes, and what is refused.
 */
#include "tests/shard/mesh_axes.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shard/state/model.h"
#include "tests/shard/mesh_net.h"

enum { MOST_RANKS = 8, STEPS = 3 };

static void ok(fsdp_status status)
{
    assert_int_equal(FSDP_OK, status);
}

/* ---- combinations -------------------------------------------------------------------------------------------------- */

/* What a text comes to, on nodes of so many ranks of the data axes; 0: one node. */
typedef struct combination {
    int           rack, node, gpu, tp, pp, node_size;
    const char   *text;
    fsdp_strategy strategy;
    int           group;
    bool          keeps;
} combination;

static const combination COMBINATIONS[] = {
    {1, 2, 2, 1, 1, 2, "node=FULL_SHARD,gpu=FULL_SHARD", FSDP_FULL_SHARD, 4, false},
    {1, 2, 2, 1, 1, 2, "node=SHARD_GRAD_OP,gpu=SHARD_GRAD_OP", FSDP_SHARD_GRAD_OP, 4, false},
    {1, 2, 2, 1, 1, 1, "node=SHARD_OPTIM,gpu=SHARD_OPTIM", FSDP_SHARD_OPTIM, 4, false},
    {1, 2, 2, 1, 1, 2, "gpu=NO_SHARD,node=NO_SHARD", FSDP_NO_SHARD, 1, false},
    {1, 2, 2, 1, 1, 2, "gpu=FULL_SHARD,node=NO_SHARD,rack=FULL_SHARD", FSDP_HYBRID_SHARD, 2, false},
    {1, 2, 2, 1, 1, 1, "node=NO_SHARD,gpu=FULL_SHARD", FSDP_HYBRID_SHARD, 2, false},
    {1, 2, 2, 1, 1, 2, "node=NO_SHARD,gpu=SHARD_GRAD_OP", FSDP_HYBRID_SHARD_ZERO2, 2, false},
    {1, 2, 2, 1, 1, 2, "node=SHARD_GRAD_OP,gpu=FULL_SHARD", FSDP_FULL_SHARD, 4, true},
    {1, 2, 2, 1, 1, 0, "node=SHARD_GRAD_OP,gpu=FULL_SHARD", FSDP_FULL_SHARD, 4, false},
    {1, 2, 1, 2, 1, 1, "node=NO_SHARD,gpu=FULL_SHARD", FSDP_NO_SHARD, 1, false},
    {1, 1, 2, 1, 2, 0, "node=NO_SHARD,gpu=SHARD_GRAD_OP", FSDP_SHARD_GRAD_OP, 2, false},
    {1, 1, 1, 4, 1, 0, "node=NO_SHARD,gpu=SHARD_OPTIM", FSDP_SHARD_OPTIM, 1, false},
    {1, 3, 1, 1, 1, 0, "node=SHARD_GRAD_OP", FSDP_SHARD_GRAD_OP, 3, false},
    {1, 3, 2, 1, 1, 2, "node=NO_SHARD,gpu=FULL_SHARD", FSDP_HYBRID_SHARD, 2, false},
    {1, 3, 2, 1, 1, 2, "node=SHARD_GRAD_OP,gpu=FULL_SHARD", FSDP_FULL_SHARD, 6, true},
    {1, 2, 2, 2, 1, 2, "node=NO_SHARD,gpu=FULL_SHARD", FSDP_HYBRID_SHARD, 2, false},
    {1, 2, 2, 2, 1, 2, "node=NO_SHARD,gpu=SHARD_GRAD_OP", FSDP_HYBRID_SHARD_ZERO2, 2, false},
    {1, 2, 2, 2, 1, 2, "node=SHARD_GRAD_OP,gpu=FULL_SHARD", FSDP_FULL_SHARD, 4, true},
    {1, 2, 2, 1, 2, 2, "node=NO_SHARD,gpu=FULL_SHARD", FSDP_HYBRID_SHARD, 2, false},
    {1, 2, 2, 1, 2, 2, "node=SHARD_GRAD_OP,gpu=FULL_SHARD", FSDP_FULL_SHARD, 4, true},
    {2, 2, 2, 1, 1, 2, "rack=NO_SHARD,node=NO_SHARD,gpu=FULL_SHARD", FSDP_HYBRID_SHARD, 2, false},
    {2, 2, 2, 1, 1, 2, "rack=NO_SHARD,node=FULL_SHARD,gpu=FULL_SHARD", FSDP_HYBRID_SHARD, 4, false},
    {2, 2, 2, 1, 1, 2, "rack=SHARD_GRAD_OP,node=SHARD_GRAD_OP,gpu=FULL_SHARD", FSDP_FULL_SHARD, 8, true},
    {2, 2, 2, 1, 1, 4, "rack=SHARD_GRAD_OP,node=FULL_SHARD,gpu=FULL_SHARD", FSDP_FULL_SHARD, 8, true},
    {2, 2, 2, 1, 1, 2, "rack=NO_SHARD,node=SHARD_GRAD_OP,gpu=FULL_SHARD", FSDP_HYBRID_SHARD, 4, true},
    {2, 2, 2, 1, 1, 4, "rack=NO_SHARD,node=SHARD_GRAD_OP,gpu=FULL_SHARD", FSDP_HYBRID_SHARD, 4, false},
    {2, 2, 2, 1, 1, 2, "rack=NO_SHARD,node=SHARD_GRAD_OP,gpu=SHARD_GRAD_OP", FSDP_HYBRID_SHARD_ZERO2, 4, false},
};

static mesh_shape shape_of(const combination *c)
{
    return (mesh_shape){c->rack * c->node * c->gpu, c->tp, c->pp, false};
}

/* Ranks are laid out backwards, so that the data ranks have a context of their own, whose memory is that of the model alone. */
static void open_combination(mesh_net *net, const combination *c, const fsdp_model_options *options)
{
    int         order[MOST_RANKS];
    fsdp_config config;
    mesh_data   data = {c->rack, c->node, c->gpu, order, &config};

    fsdp_config_init(&config);
    config.node_size = c->node_size;
    for (int r = 0; r < fsdp_test_size(); r++) {
        order[r] = fsdp_test_size() - 1 - r;
    }
    assert_true(mesh_net_open_over(net, shape_of(c), &data, options));
    net->factor = 0.0F;
}

static fsdp_model_options options_of(const combination *c)
{
    fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;

    options.axis_strategies = c->text;
    return options;
}

static bool has_groups(const combination *c)
{
    return c->strategy == FSDP_HYBRID_SHARD || c->strategy == FSDP_HYBRID_SHARD_ZERO2;
}

/* GPUs keep nothing between passes: what they refuse is tested on hosts, as are all other refusals. */
#ifdef FSDP_TESTS_MODEL_ON_DEVICE_H
enum { ON_GPUS = 1 };
#else
enum { ON_GPUS = 0 };
#endif

static bool is_for_hosts(const combination *c)
{
    return strstr(c->text, "=SHARD_GRAD_OP") != NULL && strstr(c->text, "=FULL_SHARD") != NULL;
}

static void for_each_combination(void (*check)(const combination *c, void *with), void *with)
{
    for (size_t i = 0; i < sizeof COMBINATIONS / sizeof *COMBINATIONS; i++) {
        const combination *c = &COMBINATIONS[i];

        if (c->rack * c->node * c->gpu * c->tp * c->pp == fsdp_test_size() && !(ON_GPUS && is_for_hosts(c))) {
            check(c, with);
        }
    }
}

/* ---- bit by bit, and to the byte ----------------------------------------------------------------------------------- */

typedef struct trained {
    mesh_net alone;
    double   norms[STEPS];
    uint64_t hash;
} trained;

static void train_alone(trained *t)
{
    mesh_net_open_alone(&t->alone, NULL);
    for (int step = 0; step < STEPS; step++) {
        t->norms[step] = mesh_net_train(&t->alone, step);
    }
    ok(fsdp_model_hash(t->alone.model, &t->hash));
}

/* With the same norms and parameters, bit by bit. */
static void train_as(mesh_net *net, trained *t)
{
    for (int step = 0; step < STEPS; step++) {
        const double norm = mesh_net_train(net, step);

        assert_memory_equal(&t->norms[step], &norm, sizeof norm);
    }
    mesh_net_check(net, &t->alone);
}

static void check_budget(const mesh_net *net, const combination *c)
{
    fsdp_strategy strategy = FSDP_NO_SHARD;
    int           group    = 0;
    fsdp_budget   budget;
    fsdp_memory   memory;

    ok(fsdp_model_strategy(net->model, &strategy, &group));
    assert_int_equal(c->strategy, strategy);
    assert_int_equal(c->group, group);
    assert_int_equal(c->keeps, net->model->plan.kept_on_node > 0);
    ok(fsdp_model_budget(net->model, strategy, 0, FSDP_ADAMW, &budget));
    ok(fsdp_memory_usage(net->dp, &memory));
    if (budget.total != memory.peak_total) {
        fail_msg("%s: %zu bytes, and a budget of %zu", c->text, (size_t)memory.peak_total, budget.total);
    }
}

static void train(const combination *c, void *with)
{
    const fsdp_model_options options = options_of(c);
    trained                 *t       = with;
    uint64_t                 hash;
    mesh_net                 net;

    open_combination(&net, c, &options);
    train_as(&net, t);
    ok(fsdp_model_hash(net.model, &hash));
    assert_true(t->hash == hash);
    check_budget(&net, c);
    mesh_net_close(&net);
}

void axes_with_strategies_have_the_bits_of_one_rank(void **state)
{
    trained t;

    (void)state;
    train_alone(&t);
    for_each_combination(train, &t);
    mesh_net_close(&t.alone);
}

/* Gradients that differ between data ranks, so that sums are rounded, in two passes of which the first stays in the groups. */
static uint64_t hash_of_rounded_sums(const combination *c, const fsdp_model_options *options)
{
    uint64_t hash;
    mesh_net net;

    open_combination(&net, c, options);
    net.factor = 1.0F + 0.1F * (float)fsdp_rank(net.dp);
    for (int step = 0; step < 2; step++) {
        ok(fsdp_model_set_sync(net.model, FSDP_SYNC_GROUP));
        mesh_net_backward(&net, step + 10);
        ok(fsdp_model_set_sync(net.model, FSDP_SYNC_ALL));
        (void)mesh_net_train(&net, step);
    }
    ok(fsdp_model_hash(net.model, &hash));
    mesh_net_close(&net);
    return hash;
}

static void compare_with_plain(const combination *c, void *with)
{
    const fsdp_model_options options = options_of(c);
    fsdp_model_options       plain   = FSDP_MODEL_OPTIONS_DEFAULT;

    (void)with;
    if (!has_groups(c) && !c->keeps) { /* nothing but that strategy */
        return;
    }
    plain.strategy   = c->strategy;
    plain.group_size = has_groups(c) ? c->group : 0;
    if (hash_of_rounded_sums(c, &plain) != hash_of_rounded_sums(c, &options)) {
        fail_msg("%s: other bits than %s", c->text, fsdp_strategy_name(c->strategy));
    }
}

void and_those_of_the_strategy_that_they_come_to(void **state)
{
    (void)state;
    for_each_combination(compare_with_plain, NULL);
}

/* One unit held whole, and in a model with groups one gathered once per step. */
static void train_own(const combination *c, void *with)
{
    const fsdp_model_options options = options_of(c);
    trained                 *t       = with;
    mesh_net                 net;

    if (!has_groups(c) && !c->keeps) {
        return;
    }
    open_combination(&net, c, &options);
    fsdp_model_destroy(net.model);
    const fsdp_model_options own = mesh_net_options(&net, &options);
    mesh_net_describe(&net, &own);
    for (int u = 0; u < MESH_UNITS; u++) {
        if (net.units[u].unit != NULL && u % 3 == 1) {
            ok(fsdp_unit_set_strategy(net.units[u].unit, FSDP_NO_SHARD));
        }
        if (net.units[u].unit != NULL && u % 3 == 2) {
            ok(fsdp_unit_set_strategy(net.units[u].unit, has_groups(c) ? FSDP_HYBRID_SHARD_ZERO2 : FSDP_SHARD_GRAD_OP));
        }
    }
    mesh_net_commit(&net);
    train_as(&net, t);
    mesh_net_close(&net);
}

void units_have_strategies_of_their_own_beside_those_of_axes(void **state)
{
    trained t;

    (void)state;
    train_alone(&t);
    for_each_combination(train_own, &t);
    mesh_net_close(&t.alone);
}

/* ---- nodes that are not along the axes ----------------------------------------------------------------------------- */

/* Every other rank is on another node: one whose shared memory is another folder. */
static const char *folder_of_node(void)
{
    static char path[64];
    int         number = (int)getpid();

    MPI_Bcast(&number, 1, MPI_INT, 0, MPI_COMM_WORLD);
    (void)snprintf(path, sizeof path, "/dev/shm/fsdp-axes-%d-%d", number, fsdp_test_rank() % 2);
    (void)mkdir(path, 0700); /* which the other ranks of the node do too */
    MPI_Barrier(MPI_COMM_WORLD);
    return path;
}

/* What of the model this rank holds, as one number. */
static double held_part(const mesh_net *net)
{
    double sum = 0.0;

    for (int u = 0; u < MESH_UNITS; u++) {
        for (size_t i = 0; i < net->units[u].n; i++) {
            const bool ignored = (net->units[u].tensors[i].flags & FSDP_TENSOR_IGNORED) != 0;
            fsdp_shard shard   = {0};

            if (!ignored) {
                ok(fsdp_unit_shard(net->units[u].unit, i, &shard));
            }
            sum += (double)(shard.begin * (size_t)(u + 1) + shard.count * (i + 1) * 1000);
        }
    }
    return sum;
}

/* Which ranks hold the same: those at the same position along the inner axis. */
static void check_holders(const mesh_net *net, int inner)
{
    double       parts[MOST_RANKS];
    const double mine = held_part(net);

    MPI_Allgather(&mine, 1, MPI_DOUBLE, parts, 1, MPI_DOUBLE, MPI_COMM_WORLD);
    for (int a = 0; a < fsdp_test_size(); a++) {
        for (int b = 0; b < fsdp_test_size(); b++) {
            assert_int_equal(a % inner == b % inner, parts[a] == parts[b]);
        }
    }
}

static void train_on(const mesh_data *data, const char *text, bool by_nodes, mesh_net *alone)
{
    const mesh_shape   shape   = {fsdp_test_size(), 1, 1, false};
    fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;
    float              out[16 * 5], expected[16 * 5];
    mesh_net           net;

    options.axis_strategies = text;
    assert_true(mesh_net_open_over(&net, shape, data, &options));
    assert_int_equal(2, net.dp->nodes.count);
    assert_int_equal(by_nodes, net.model->groups_are_nodes);
    if (!by_nodes) {
        check_holders(&net, data->gpu);
    }
    for (int step = 0; step < STEPS; step++) {
        (void)mesh_net_train(&net, step);
    }
    mesh_net_check(&net, alone);
    ok(fsdp_tensor_export(net.model, "u2.out", 0, out, sizeof out));
    ok(fsdp_tensor_export(alone->model, "u2.out", 0, expected, sizeof expected));
    assert_true(fsdp_test_rank() != 0 || memcmp(out, expected, sizeof out) == 0);
    mesh_net_close(&net);
}

void groups_are_along_axes_where_nodes_are_not(void **state)
{
    const int   half        = fsdp_test_size() / 2;
    const char *copies      = "node=NO_SHARD,gpu=FULL_SHARD";
    const int   order[]     = {0, 1, 2, 3, 4, 5, 6, 7};
    mesh_data   along_ranks = {1, 2, half, order, NULL}, along_nodes = {1, 2, half, NULL, NULL};
    fsdp_config config;
    mesh_net    alone;

    (void)state;
    if (fsdp_test_size() % 4 != 0) {
        return;
    }
    fsdp_config_init(&config);
    config.shm_dir     = folder_of_node();
    along_ranks.config = along_nodes.config = &config;
    mesh_net_open_alone(&alone, NULL);
    for (int step = 0; step < STEPS; step++) {
        (void)mesh_net_train(&alone, step);
    }
    train_on(&along_ranks, copies, false, &alone);
    train_on(&along_nodes, copies, true, &alone);
    mesh_net_close(&alone);
    MPI_Barrier(MPI_COMM_WORLD);
    (void)rmdir(config.shm_dir);
}

/* ---- what is refused ------------------------------------------------------------------------------------------------ */

typedef struct refused {
    mesh_net           net;
    fsdp_context      *ctx; /* that the model would be made on */
    fsdp_model_options options;
} refused;

/* Data axes of 2 and of what is left, on nodes of so many ranks. */
static void open_for_refusal(refused *r, int tp, int node_size)
{
    const int        ranks = fsdp_test_size() / tp;
    const mesh_shape shape = {ranks, tp, 1, false};
    fsdp_config      config;
    const mesh_data  data = {1, 2, ranks / 2, NULL, &config};
    MPI_Comm         comm;

    fsdp_config_init(&config);
    config.node_size = node_size;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    mesh_net_open_mesh(&r->net, comm, shape, &data);
    r->ctx     = r->net.dp;
    r->options = mesh_net_options(&r->net, NULL);
}

/* And nothing has been allocated. */
static void expect_refused(refused *r, fsdp_status status, const char *text, const char *words)
{
    fsdp_memory before, behind;
    fsdp_model *model = NULL;

    r->options.axis_strategies = text;
    ok(fsdp_memory_usage(r->ctx, &before));
    assert_int_equal(status, fsdp_model_create(r->ctx, &r->options, &model));
    assert_null(model);
    assert_says(r->ctx, words);
    ok(fsdp_memory_usage(r->ctx, &behind));
    assert_int_equal(before.current_total, behind.current_total);
}

void strategies_of_axes_that_do_not_fit_are_refused(void **state)
{
    const char *good = "node=NO_SHARD,gpu=FULL_SHARD";
    refused     r;

    (void)state;
    if (ON_GPUS || fsdp_test_size() % 4 != 0) {
        return;
    }
    open_for_refusal(&r, 1, 0);
    expect_refused(&r, FSDP_ERR_ARG, "", "has \"\" in place of AXIS=STRATEGY");
    expect_refused(&r, FSDP_ERR_ARG, "node=NO_SHARD,gpu", "has \"gpu\" in place of AXIS=STRATEGY");
    expect_refused(&r, FSDP_ERR_ARG, "node=NO_SHARD,gpu=FULL_SHARD,", "has \"\" in place of AXIS=STRATEGY");
    expect_refused(&r, FSDP_ERR_ARG, "host=NO_SHARD", "has \"host=NO_SHARD\", and the mesh is pp 1 x rack 1 x node 2");
    expect_refused(&r, FSDP_ERR_ARG, "node=NO_SHARD, gpu=FULL_SHARD", "has \" gpu=FULL_SHARD\", and the mesh is");
    expect_refused(&r, FSDP_ERR_ARG, "gpu=FULL_SHARD,gpu=FULL_SHARD", "names axis \"gpu\" twice");
    expect_refused(&r, FSDP_ERR_ARG, "tp=NO_SHARD", "names axis \"tp\", which is in tensor_axis");
    expect_refused(&r, FSDP_ERR_ARG, "pp=NO_SHARD", "names axis \"pp\", which is in stage_axis");
    expect_refused(&r, FSDP_ERR_ARG, "gpu=FULL_SHARD", "does not name axis \"node\", which has 2 ranks");
    expect_refused(&r, FSDP_ERR_ARG, "node=NO_SHARD,gpu=full_shard", "the strategy \"full_shard\", which is none");
    expect_refused(&r, FSDP_ERR_ARG, "node=,gpu=FULL_SHARD", "the strategy \"\", which is none");
    expect_refused(&r, FSDP_ERR_ARG, "gpu=HYBRID_SHARD", "\"gpu\" HYBRID_SHARD, which is of several axes");
    r.options.strategy = FSDP_SHARD_OPTIM;
    expect_refused(&r, FSDP_ERR_ARG, good, "axis_strategies and strategy SHARD_OPTIM; leave strategy at its default");
    r.options.strategy   = FSDP_FULL_SHARD;
    r.options.group_size = 2;
    expect_refused(&r, FSDP_ERR_ARG, good, "with group_size 2 and keep_on_node 0; leave both 0");
    r.options.group_size   = 0;
    r.options.keep_on_node = 1;
    expect_refused(&r, FSDP_ERR_ARG, good, "with group_size 0 and keep_on_node 1; leave both 0");
    r.options.keep_on_node     = 0;
    r.options.quantized_params = 1;
    expect_refused(&r, FSDP_ERR_UNSUPPORTED, good, "quantized_params with HYBRID_SHARD");
    r.options.quantized_params = 0;
    ok(fsdp_mesh_context(r.net.mesh, "gpu", &r.ctx));
    expect_refused(&r, FSDP_ERR_ARG, good, "names axis \"node\", and the context is not along it");
    r.options.mesh = NULL;
    expect_refused(&r, FSDP_ERR_ARG, good, "mesh is NULL");
    r.ctx                 = r.net.ctx;
    r.options.tensor_axis = r.options.stage_axis = NULL;
    expect_refused(&r, FSDP_ERR_ARG, good, "axis_strategies is \"node=NO_SHARD,gpu=FULL_SHARD\", and mesh is NULL");
    mesh_net_close(&r.net);
}

static void expect_unsupported(int tp, int node_size, fsdp_placement placement, const char *text, const char *words)
{
    refused r;

    open_for_refusal(&r, tp, node_size);
    r.options.placement = placement;
    expect_refused(&r, FSDP_ERR_UNSUPPORTED, text, words);
    mesh_net_close(&r.net);
}

/* Copies of 4 ranks, of which one is on a node and the other on two. */
static void expect_copies_on_unlike_nodes_refused(void)
{
    const mesh_shape shape = {8, 1, 1, false};
    fsdp_config      config;
    const mesh_data  data = {2, 2, 2, NULL, &config};
    MPI_Comm         comm;
    refused          r;

    fsdp_config_init(&config);
    config.node_size = 6;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    mesh_net_open_mesh(&r.net, comm, shape, &data);
    r.ctx     = r.net.dp;
    r.options = mesh_net_options(&r.net, NULL);
    expect_refused(&r, FSDP_ERR_UNSUPPORTED, "rack=NO_SHARD,node=SHARD_GRAD_OP,gpu=FULL_SHARD",
                   "copies, of 4 ranks each, are not spread over nodes alike");
    mesh_net_close(&r.net);
}

void combinations_that_there_are_not_are_refused(void **state)
{
    const int tp = fsdp_test_size() / 4;

    (void)state;
    if (ON_GPUS || fsdp_test_size() % 4 != 0) {
        return;
    }
    expect_unsupported(tp, 0, FSDP_ON_HOST, "node=FULL_SHARD,gpu=NO_SHARD",
                       "gives axis \"node\" FULL_SHARD and axis \"gpu\", inside it, NO_SHARD, which divides less; put "
                       "\"gpu\" before \"node\" in fsdp_mesh_create(), or give it FULL_SHARD too");
    expect_unsupported(tp, 0, FSDP_ON_HOST, "node=SHARD_GRAD_OP,gpu=NO_SHARD",
                       "which divides less; put \"gpu\" before");
    expect_unsupported(tp, 0, FSDP_ON_HOST, "gpu=SHARD_GRAD_OP,node=FULL_SHARD",
                       "which divides less; put \"gpu\" before");
    expect_unsupported(tp, 0, FSDP_ON_HOST, "node=NO_SHARD,gpu=SHARD_OPTIM",
                       "axis \"node\" NO_SHARD and axis \"gpu\" SHARD_OPTIM; use SHARD_GRAD_OP instead of SHARD_OPTIM");
    expect_unsupported(tp, 0, FSDP_ON_HOST, "node=SHARD_OPTIM,gpu=FULL_SHARD",
                       "use SHARD_GRAD_OP instead of SHARD_OPTIM");
    expect_unsupported(tp, 1, FSDP_ON_HOST, "node=SHARD_GRAD_OP,gpu=FULL_SHARD",
                       "the 2 ranks along the axes with FULL_SHARD are not all on one node");
    expect_unsupported(tp, 0, FSDP_ON_DEVICE, "node=SHARD_GRAD_OP,gpu=FULL_SHARD",
                       "FULL_SHARD inside SHARD_GRAD_OP for a model on a GPU");
    if (fsdp_test_size() == 8) {
        expect_copies_on_unlike_nodes_refused();
    }
}

void ranks_with_other_strategies_of_axes_learn_of_it(void **state)
{
    const bool  first = fsdp_test_rank() == 0;
    fsdp_model *model = NULL;
    refused     r;

    (void)state;
    if (ON_GPUS || fsdp_test_size() % 4 != 0) {
        return;
    }
    open_for_refusal(&r, fsdp_test_size() / 4, 0);
    expect_refused(&r, FSDP_ERR_MISMATCH, first ? NULL : "node=FULL_SHARD,gpu=FULL_SHARD", "");
    expect_refused(&r, FSDP_ERR_MISMATCH, first ? "node=NO_SHARD,gpu=FULL_SHARD" : "node=NO_SHARD,gpu=SHARD_GRAD_OP",
                   "HYBRID_SHARD of node=NO_SHARD,gpu=FULL_SHARD");
    expect_refused(&r, FSDP_ERR_ARG, first ? "node=NO_SHARD" : "node=NO_SHARD,gpu=FULL_SHARD",
                   "does not name axis \"gpu\"");
    r.options.axis_strategies = "node=NO_SHARD,gpu=FULL_SHARD";
    ok(fsdp_model_create(r.ctx, &r.options, &model));
    assert_int_equal(FSDP_ERR_ARG, fsdp_model_strategy(model, NULL, NULL));
    fsdp_model_destroy(model);
    assert_int_equal(FSDP_ERR_ARG, fsdp_model_strategy(NULL, &r.options.strategy, NULL));
    mesh_net_close(&r.net);
}
