#include "tests/shard/mesh_net.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void ok(fsdp_status status)
{
    assert_int_equal(FSDP_OK, status);
}

/* ---- shapes ------------------------------------------------------------------------------------------------------- */

const mesh_shape *mesh_shapes(int ranks, size_t *n)
{
    static const mesh_shape one[] = {{1, 1, 1, false}}, two[] = {{2, 1, 1, false}, {1, 2, 1, false}, {1, 1, 2, false}};
    static const mesh_shape three[] = {{3, 1, 1, false}, {1, 1, 3, true}, {1, 2, 1, false}};
    static const mesh_shape four[]  = {{1, 1, 1, false}, {1, 1, 2, false}, {1, 4, 1, false}, {2, 2, 1, false},
                                       {1, 2, 2, false}, {2, 1, 2, true},  {4, 1, 1, false}};
    static const mesh_shape six[]   = {{3, 2, 1, false}, {1, 2, 3, true}, {3, 1, 2, false}};
    static const mesh_shape eight[] = {{2, 2, 2, false}, {1, 4, 2, true},  {1, 8, 1, false}, {2, 4, 1, false},
                                       {4, 2, 1, false}, {1, 2, 4, false}, {2, 1, 4, true}};

    switch (ranks) {
    case 1:
        *n = 1;
        return one;
    case 2:
        *n = sizeof two / sizeof *two;
        return two;
    case 3:
        *n = sizeof three / sizeof *three;
        return three;
    case 4:
        *n = sizeof four / sizeof *four;
        return four;
    case 6:
        *n = sizeof six / sizeof *six;
        return six;
    default:
        *n = ranks == 8 ? sizeof eight / sizeof *eight : 0;
        return eight;
    }
}

const char *mesh_shape_text(mesh_shape shape)
{
    static char text[64];

    (void)snprintf(text, sizeof text, "dp %d tp %d pp %d%s", shape.dp, shape.tp, shape.pp,
                   shape.interleaved ? " interleaved" : "");
    return text;
}

/* ---- tensors ------------------------------------------------------------------------------------------------------ */

static fsdp_status fill(void *state, const char *tensor, size_t first, size_t count, void *values, fsdp_dtype dtype)
{
    (void)state;
    (void)tensor;
    assert_int_equal(FSDP_F32, dtype);
    for (size_t i = 0; i < count; i++) {
        ((float *)values)[i] = (float)(first + i) / 8.0F;
    }
    return FSDP_OK;
}

static char names[MESH_UNITS][MESH_MOST_TENSORS][32];

static fsdp_tensor tensor(int unit, size_t i, const char *what)
{
    (void)snprintf(names[unit][i], sizeof names[unit][i], "u%d.%s", unit, what);
    return (fsdp_tensor){.name = names[unit][i], .fill = FSDP_FILL_NORMAL, .b = 0.5};
}

static void give(fsdp_tensor *t, size_t n_dims, size_t a, size_t b, size_t c)
{
    t->n_dims   = n_dims;
    t->shape[0] = a;
    t->shape[1] = b;
    t->shape[2] = c;
}

static void divide(fsdp_tensor *t, uint32_t dim, uint32_t blocks, unsigned flags)
{
    t->flags |= FSDP_TENSOR_TP | flags;
    t->tp_dim    = dim;
    t->tp_blocks = blocks;
}

static size_t describe_table(fsdp_tensor *t)
{
    t[0] = (fsdp_tensor){.name = "table", .fill = FSDP_FILL_UNIFORM, .a = -1.0, .b = 1.0};
    give(&t[0], 2, 16, 3, 0);
    divide(&t[0], 0, 0, 0);
    return 1;
}

static size_t describe_layer(int u, fsdp_tensor *t)
{
    static const char *const what[] = {"qkv", "norm", "out", "cube", "frozen", "low", "stat", "mask", "again"};
    enum { N = sizeof what / sizeof *what };

    for (size_t i = 0; i < N; i++) {
        t[i] = tensor(u, i, what[i]);
    }
    give(&t[0], 2, 24, 48, 0);
    divide(&t[0], 1, 3, 0);
    give(&t[1], 1, 7, 0, 0);
    t[1].fill        = FSDP_FILL_CALLBACK;
    t[1].fill_values = fill;
    give(&t[2], 2, 16, 5, 0);
    divide(&t[2], 0, 1, FSDP_TENSOR_NO_WEIGHT_DECAY);
    t[2].fill        = FSDP_FILL_CALLBACK;
    t[2].fill_values = fill;
    give(&t[3], 3, 3, 16, 2);
    divide(&t[3], 1, 0, 0);
    give(&t[4], 2, 4, 16, 0);
    divide(&t[4], 1, 0, FSDP_TENSOR_FROZEN);
    give(&t[5], 1, 16, 0, 0);
    divide(&t[5], 0, 0, 0);
    t[5].dtype = FSDP_BF16;
    give(&t[6], 1, 5, 0, 0);
    t[6].flags = FSDP_TENSOR_IGNORED;
    give(&t[7], 2, 3, 8, 0);
    divide(&t[7], 1, 0, FSDP_TENSOR_IGNORED);
    give(&t[8], 1, 7, 0, 0);
    t[8].tied_to = t[1].name;
    return N;
}

static int stage_of(const mesh_net *net, int unit)
{
    return net->shape.interleaved ? unit % net->shape.pp : unit * net->shape.pp / MESH_UNITS;
}

/* The last unit has the table of the first one again, where this is in another stage. */
static void describe(mesh_net *net)
{
    for (int u = 0; u < MESH_UNITS; u++) {
        mesh_unit *unit = &net->units[u];

        unit->n = u == 0 ? describe_table(unit->tensors) : describe_layer(u, unit->tensors);
        if (u == MESH_UNITS - 1 && stage_of(net, u) != stage_of(net, 0)) {
            unit->n += describe_table(unit->tensors + unit->n);
        }
    }
}

void mesh_net_describe(mesh_net *net, const fsdp_model_options *options)
{
    char name[8];

    ok(fsdp_model_create(net->dp, options, &net->model));
    describe(net);
    for (int u = 0; u < MESH_UNITS; u++) {
        mesh_unit *unit = &net->units[u];

        unit->unit = NULL;
        if (stage_of(net, u) == net->stage) {
            (void)snprintf(name, sizeof name, "u%d", u);
            ok(fsdp_unit_add(net->model, name, unit->tensors, unit->n, &unit->unit));
            ok(fsdp_unit_set_place(unit->unit, (size_t)u));
        }
    }
}

/* ---- open --------------------------------------------------------------------------------------------------------- */

fsdp_model_options mesh_net_options(const mesh_net *net, const fsdp_model_options *options)
{
    fsdp_model_options own = FSDP_MODEL_OPTIONS_DEFAULT;

    if (options != NULL) {
        own = *options;
    }
    own.mesh        = net->mesh;
    own.tensor_axis = net->mesh != NULL ? "tp" : NULL;
    own.stage_axis  = net->mesh != NULL ? "pp" : NULL;
    return own;
}

void mesh_net_commit(mesh_net *net)
{
    fsdp_optimizer_options adam;

    ok(fsdp_model_strategy(net->model, &net->strategy, NULL));
    ok(fsdp_model_commit(net->model));
    ok(fsdp_optimizer_options_init(FSDP_ADAMW, &adam));
    adam.lr = 0.01;
    ok(fsdp_optimizer_create(net->model, &adam, &net->optimizer));
}

static void make(mesh_net *net, const fsdp_model_options *options)
{
    const fsdp_model_options own = mesh_net_options(net, options);

    mesh_net_describe(net, &own);
    mesh_net_commit(net);
}

void mesh_net_open_mesh(mesh_net *net, MPI_Comm comm, mesh_shape shape, const mesh_data *data)
{
    const fsdp_axis axes[] = {{"pp", shape.pp}, {"dp", shape.dp}, {"tp", shape.tp}};

    *net = (mesh_net){.shape = shape, .comm = comm};
    ok(fsdp_init(comm, data != NULL ? data->config : NULL, &net->ctx));
    if (data != NULL) {
        const fsdp_axis more[] = {axes[0], {"rack", data->rack}, {"node", data->node}, {"gpu", data->gpu}, axes[2]};

        ok(fsdp_mesh_create(net->ctx, more, 5, data->order, &net->mesh));
        ok(fsdp_mesh_context(net->mesh, "rack+node+gpu", &net->dp));
    } else {
        ok(fsdp_mesh_create(net->ctx, axes, 3, NULL, &net->mesh));
        ok(fsdp_mesh_context(net->mesh, "dp", &net->dp));
    }
    net->tp_position = fsdp_mesh_position(net->mesh, "tp");
    net->stage       = fsdp_mesh_position(net->mesh, "pp");
}

bool mesh_net_open_over(mesh_net *net, mesh_shape shape, const mesh_data *data, const fsdp_model_options *options)
{
    const bool in = fsdp_test_rank() < shape.dp * shape.tp * shape.pp;
    MPI_Comm   comm;

    MPI_Comm_split(MPI_COMM_WORLD, in ? 0 : MPI_UNDEFINED, fsdp_test_rank(), &comm);
    if (in) {
        mesh_net_open_mesh(net, comm, shape, data);
        make(net, options);
    }
    return in;
}

bool mesh_net_open(mesh_net *net, mesh_shape shape, const fsdp_model_options *options)
{
    return mesh_net_open_over(net, shape, NULL, options);
}

void mesh_net_open_alone(mesh_net *net, const fsdp_model_options *options)
{
    *net = (mesh_net){.shape = {1, 1, 1, false}};
    MPI_Comm_dup(MPI_COMM_SELF, &net->comm);
    ok(fsdp_init(net->comm, NULL, &net->ctx));
    net->dp = net->ctx;
    make(net, options);
}

void mesh_net_close(mesh_net *net)
{
    fsdp_model_destroy(net->model);
    fsdp_mesh_destroy(net->mesh);
    ok(fsdp_finalize(net->ctx));
    MPI_Comm_free(&net->comm);
}

/* ---- elements ----------------------------------------------------------------------------------------------------- */

/* Of the part of a tensor that this rank's position has, element by element: where it is in the whole one. */
static size_t whole_index(const mesh_net *net, const fsdp_tensor *t, size_t local)
{
    const bool   divided = (t->flags & FSDP_TENSOR_TP) != 0;
    const size_t tp = divided ? (size_t)net->shape.tp : 1, mine = divided ? (size_t)net->tp_position : 0;
    const size_t blocks = t->tp_blocks > 0 ? t->tp_blocks : 1;
    size_t       at[FSDP_MAX_DIMS], index = 0;

    for (size_t d = t->n_dims; d-- > 0;) {
        const size_t extent = divided && d == t->tp_dim ? t->shape[d] / tp : t->shape[d];

        at[d] = local % extent;
        local /= extent;
    }
    for (size_t d = 0; d < t->n_dims; d++) {
        size_t place = at[d];

        if (divided && d == t->tp_dim) {
            const size_t width = t->shape[d] / blocks, part = width / tp;

            place = at[d] / part * width + mine * part + at[d] % part;
        }
        index = index * t->shape[d] + place;
    }
    return index;
}

static size_t count_of(const mesh_net *net, const fsdp_tensor *t)
{
    size_t n = 1;

    for (size_t d = 0; d < t->n_dims; d++) {
        n *= t->shape[d];
    }
    return (t->flags & FSDP_TENSOR_TP) != 0 ? n / (size_t)net->shape.tp : n;
}

static float gradient(const fsdp_tensor *t, size_t whole, int step)
{
    size_t hash = (whole + 1) * 2654435761u + (size_t)step * 40503u;

    for (const char *c = t->name; *c != '\0'; c++) {
        hash = hash * 31 + (size_t)*c;
    }
    return (float)((int)(hash / 7 % 33) - 16) / 16.0F;
}

void mesh_net_backward(mesh_net *net, int step)
{
    for (int u = MESH_UNITS; u-- > 0;) {
        const mesh_unit *unit = &net->units[u];

        if (unit->unit == NULL) {
            continue;
        }
        ok(fsdp_unit_begin_backward(unit->unit));
        for (size_t i = 0; i < unit->n; i++) {
            const fsdp_tensor *t = &unit->tensors[i];
            const bool none      = (t->flags & (FSDP_TENSOR_FROZEN | FSDP_TENSOR_IGNORED)) != 0 || t->tied_to != NULL;
            float     *view      = none ? NULL : fsdp_unit_grad(unit->unit, i);

            for (size_t e = 0; view != NULL && e < count_of(net, t); e++) {
                view[e] = gradient(t, whole_index(net, t, e), step) * (net->factor != 0.0F ? net->factor : 1.0F);
            }
        }
        ok(fsdp_unit_end_backward(unit->unit));
    }
}

double mesh_net_train(mesh_net *net, int step)
{
    double norm;

    mesh_net_backward(net, step);
    ok(fsdp_clip_grad_norm(net->model, 1.0, &norm));
    ok(fsdp_optimizer_step(net->optimizer));
    return norm;
}

/* ---- compared ----------------------------------------------------------------------------------------------------- */

/* The tensor of the same name in a model on one rank, in a pass of its unit. */
static const void *find(const mesh_net *alone, const char *name, bool ignored, fsdp_unit **unit)
{
    for (int u = 0; u < MESH_UNITS; u++) {
        for (size_t i = 0; i < alone->units[u].n; i++) {
            if (strcmp(alone->units[u].tensors[i].name, name) == 0) {
                *unit = alone->units[u].unit;
                ok(fsdp_unit_begin_forward(*unit));
                const void *values = ignored ? fsdp_unit_buffer(*unit, i) : fsdp_unit_param(*unit, i);
                assert_non_null(values);
                return values;
            }
        }
    }
    fail_msg("no tensor '%s'", name);
    return NULL;
}

/* The shape that this rank's part has. */
static void check_part_shape(const mesh_net *net, const mesh_unit *unit, size_t i)
{
    const fsdp_tensor *t = &unit->tensors[i];
    size_t             shape[FSDP_MAX_DIMS], n = 1;

    assert_int_equal(t->n_dims, fsdp_unit_shape(unit->unit, i, shape));
    for (size_t d = 0; d < t->n_dims; d++) {
        const bool divided = (t->flags & FSDP_TENSOR_TP) != 0 && d == t->tp_dim;

        assert_int_equal(divided ? t->shape[d] / (size_t)net->shape.tp : t->shape[d], shape[d]);
        n *= shape[d];
    }
    assert_int_equal(count_of(net, t), n);
}

static void check_tensor(mesh_net *net, mesh_net *alone, const mesh_unit *unit, size_t i)
{
    const fsdp_tensor   *t       = &unit->tensors[i];
    const bool           ignored = (t->flags & FSDP_TENSOR_IGNORED) != 0;
    const size_t         width   = t->dtype == FSDP_BF16 ? 2 : 4;
    fsdp_unit           *there   = NULL;
    const unsigned char *mine    = ignored ? fsdp_unit_buffer(unit->unit, i) : fsdp_unit_param(unit->unit, i);
    const unsigned char *theirs  = find(alone, t->name, ignored, &there);

    assert_non_null(mine);
    check_part_shape(net, unit, i);
    for (size_t e = 0; e < count_of(net, t); e++) {
        const size_t whole = whole_index(net, t, e);

        if (memcmp(mine + e * width, theirs + whole * width, width) != 0) {
            fail_msg("%s: tensor '%s', element %zu is not that of one rank", mesh_shape_text(net->shape), t->name,
                     whole);
        }
    }
    ok(fsdp_unit_end_forward(there));
}

void mesh_net_check(mesh_net *net, mesh_net *alone)
{
    for (int u = 0; u < MESH_UNITS; u++) {
        const mesh_unit *unit = &net->units[u];

        if (unit->unit == NULL) {
            continue;
        }
        ok(fsdp_unit_begin_forward(unit->unit));
        for (size_t i = 0; i < unit->n; i++) {
            check_tensor(net, alone, unit, i);
        }
        ok(fsdp_unit_end_forward(unit->unit));
    }
}
