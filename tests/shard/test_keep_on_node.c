/*
 * Parameters that nodes keep between the passes of a step: no bit of a result changes whatever a step consists of and whatever
 * fails in it, no parameter crosses nodes again, and budgets say what is held. Nodes are made up of one or two ranks each, so that
 * an odd number of ranks has nodes of unequal size.
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "fsdp/fsdp.h"
#include "shard/state/model.h"
#include "tests/shard/checkpoint/saved_model.h"
#include "tests/support/mpi_counts.h"
#include "tests/support/mpi_test.h"

enum { UNITS = 3, ALL_TENSORS = 9, MOST = 17 * 129, STEPS = 3, RECORDED = 64 };

#define MATRIX(rows, columns)                                                                                          \
    .n_dims = 2, .shape = {rows, columns}, .dtype = FSDP_F32, .fill = FSDP_FILL_NORMAL, .b = 0.1
#define VECTOR(count) .n_dims = 1, .shape = {count}, .dtype = FSDP_F32, .fill = FSDP_FILL_UNIFORM, .a = -1, .b = 1

/* Odd sizes; one that units share, one that is frozen, one that is gathered as it is, one the program keeps. */
static const fsdp_tensor TENSORS[ALL_TENSORS] = {
    {.name = "u0.weight", MATRIX(31, 67)},
    {.name = "u0.bias", VECTOR(67), .flags = FSDP_TENSOR_NO_WEIGHT_DECAY},
    {.name = "u0.embedding", MATRIX(13, 50)},
    {.name = "u1.weight", MATRIX(17, 129)},
    {.name = "u1.frozen", VECTOR(333), .flags = FSDP_TENSOR_FROZEN},
    {.name = "u1.gain", VECTOR(5), .flags = FSDP_TENSOR_KEEP_DTYPE},
    {.name = "u1.mean", VECTOR(11), .flags = FSDP_TENSOR_IGNORED},
    {.name = "u2.weight", MATRIX(101, 3)},
    {.name = "u2.tied", .n_dims = 2, .shape = {13, 50}, .tied_to = "u0.embedding"},
};
static const size_t FIRST[UNITS + 1] = {0, 3, 7, ALL_TENSORS};

/* What goes wrong in the second step, which is then done again. */
typedef enum mishap { NONE, BEGUN_TWICE, NOT_ENDED, OTHER_ORDER, N_MISHAPS } mishap;

typedef struct variant {
    int     node_size, prefetch;
    bool    whole;                   /* matrices are dealt, to an optimizer of their own */
    bool    narrow, quantized, same; /* bf16; gathered in 8 bits; at fixed addresses */
    bool    local, replays, loads;
    int     kept_units, verify;
    int64_t small_bytes;
    bool    own_strategy; /* of the second unit */
    bool    keeps;
    mishap  mishap;
} variant;

typedef struct made {
    fsdp_context   *ctx;
    fsdp_model     *model;
    fsdp_unit      *units[UNITS];
    fsdp_optimizer *optimizer, *rest; /* the latter of the vectors where `whole`; else NULL */
} made;

typedef struct result {
    uint64_t hashes[STEPS];
    double   norms[STEPS];
} result;

static size_t elements(size_t t)
{
    size_t n = 1;

    for (size_t d = 0; d < TENSORS[t].n_dims; d++) {
        n *= TENSORS[t].shape[d];
    }
    return n;
}

/* ---- a model ----------------------------------------------------------------------------------------------------- */

static const char MATRICES[] = "u?.[we]*";

static void open_context(MPI_Comm comm, const variant *v, fsdp_context **ctx)
{
    fsdp_config config;

    fsdp_config_init(&config);
    config.node_size       = v->node_size;
    config.prefetch        = v->prefetch;
    config.views_in_flight = 2;
    config.verify          = v->verify;
    config.small_bytes     = v->small_bytes;
    config.log_level       = FSDP_LOG_OFF; /* of failures on purpose */
    assert_int_equal(FSDP_OK, fsdp_init(comm, &config, ctx));
}

static fsdp_model_options options_of(const variant *v)
{
    fsdp_model_options o = FSDP_MODEL_OPTIONS_DEFAULT;

    o.seed             = 77;
    o.param_dtype      = v->narrow ? FSDP_BF16 : FSDP_F32;
    o.reduce_dtype     = o.param_dtype;
    o.quantized_params = v->quantized;
    o.fixed_addresses  = v->same;
    o.local_gradients  = v->local;
    o.kept_units       = v->kept_units;
    o.recorded_passes  = v->replays ? RECORDED : 0;
    o.unused           = FSDP_UNUSED_KEEP;
    o.keep_on_node     = v->keeps;
    return o;
}

/* As far as the units. */
static void build(MPI_Comm comm, const variant *v, made *m)
{
    const fsdp_model_options options = options_of(v);
    fsdp_model_group         group   = FSDP_MODEL_GROUP_DEFAULT;

    *m                = (made){.ctx = NULL};
    group.granularity = FSDP_GRANULARITY_TENSOR;
    open_context(comm, v, &m->ctx);
    assert_int_equal(FSDP_OK, fsdp_model_create(m->ctx, &options, &m->model));
    if (v->whole) {
        assert_int_equal(FSDP_OK, fsdp_model_add_group(m->model, MATRICES, &group));
    }
    for (size_t u = 0; u < UNITS; u++) {
        char name[8];

        (void)snprintf(name, sizeof name, "u%zu", u);
        assert_int_equal(FSDP_OK,
                         fsdp_unit_add(m->model, name, &TENSORS[FIRST[u]], FIRST[u + 1] - FIRST[u], &m->units[u]));
    }
    if (v->own_strategy) {
        assert_int_equal(FSDP_OK, fsdp_unit_set_strategy(m->units[1], FSDP_SHARD_GRAD_OP));
    }
}

static fsdp_optimizer *make_optimizer(const made *m, const char *group)
{
    fsdp_optimizer_options o;
    fsdp_optimizer        *optimizer;

    assert_int_equal(FSDP_OK, fsdp_optimizer_options_init(FSDP_ADAMW, &o));
    o.lr    = 0.01;
    o.group = group;
    assert_int_equal(FSDP_OK, fsdp_optimizer_create(m->model, &o, &optimizer));
    return optimizer;
}

static void open_model(const variant *v, made *m)
{
    build(MPI_COMM_WORLD, v, m);
    assert_int_equal(FSDP_OK, fsdp_model_commit(m->model));
    m->optimizer = make_optimizer(m, v->whole ? MATRICES : NULL);
    m->rest      = v->whole ? make_optimizer(m, NULL) : NULL;
}

static void close_model(made *m)
{
    fsdp_model_destroy(m->model);
    assert_int_equal(FSDP_OK, fsdp_finalize(m->ctx));
}

/* ---- passes ------------------------------------------------------------------------------------------------------ */

static fsdp_dtype type_of(const made *m, size_t t)
{
    return (TENSORS[t].flags & FSDP_TENSOR_KEEP_DTYPE) != 0 ? FSDP_F32 : m->model->options.param_dtype;
}

static bool has_gradient(size_t t)
{
    return (TENSORS[t].flags & (FSDP_TENSOR_FROZEN | FSDP_TENSOR_IGNORED)) == 0;
}

static fsdp_status forward(const made *m, size_t u)
{
    FSDP_TRY(fsdp_unit_begin_forward(m->units[u]));
    return fsdp_unit_end_forward(m->units[u]);
}

static fsdp_status forward_all(const made *m, size_t n)
{
    for (size_t u = 0; u < n; u++) {
        FSDP_TRY(forward(m, u));
    }
    return FSDP_OK;
}

/* Gradients depend on parameters as they are seen. */
static void compute(const made *m, size_t u, size_t pass)
{
    static float w[MOST], g[MOST];

    for (size_t t = FIRST[u]; t < FIRST[u + 1]; t++) {
        const size_t n = elements(t);

        if (!has_gradient(t)) {
            continue;
        }
        assert_int_equal(FSDP_OK,
                         fsdp_cast(m->ctx, w, FSDP_F32, fsdp_unit_param(m->units[u], t - FIRST[u]), type_of(m, t), n));
        for (size_t i = 0; i < n; i++) {
            g[i] = 0.25F * w[i] + (float)fsdp_random_uniform((uint64_t)fsdp_rank(m->ctx), pass * ALL_TENSORS + t, i);
        }
        assert_int_equal(FSDP_OK, fsdp_cast(m->ctx, fsdp_unit_grad(m->units[u], t - FIRST[u]),
                                            m->model->options.reduce_dtype, g, FSDP_F32, n));
    }
}

/* `inner`: a unit whose forward pass comes once more within; UNITS: none. */
static fsdp_status backward(const made *m, size_t u, size_t inner, size_t pass)
{
    FSDP_TRY(fsdp_unit_begin_backward(m->units[u]));
    if (inner < UNITS) {
        FSDP_TRY(forward(m, inner));
    }
    compute(m, u, pass);
    return fsdp_unit_end_backward(m->units[u]);
}

/* Two micro-batches, the second of which leaves the first unit out; of a step with an odd number both leave the last one out. */
static fsdp_status passes(const made *m, const variant *v, size_t step)
{
    const size_t n = step % 2 == 0 || v->replays ? UNITS : UNITS - 1;

    if (v->local) {
        FSDP_TRY(fsdp_model_set_sync(m->model, FSDP_SYNC_NONE));
    }
    FSDP_TRY(forward_all(m, n));
    for (size_t u = n; u-- > 0;) {
        FSDP_TRY(backward(m, u, u == 1 ? 0 : UNITS, 10 * step));
    }
    FSDP_TRY(fsdp_model_set_sync(m->model, FSDP_SYNC_ALL));
    FSDP_TRY(forward(m, 1));
    FSDP_TRY(forward(m, n - 1));
    FSDP_TRY(backward(m, n - 1, n == UNITS ? 1 : 0, 10 * step + 1));
    FSDP_TRY(backward(m, 1, UNITS, 10 * step + 2));
    return backward(m, 0, UNITS, 10 * step + 3);
}

/* ---- what goes wrong --------------------------------------------------------------------------------------------- */

static fsdp_status begin_twice(const made *m)
{
    FSDP_TRY(forward_all(m, 2));
    FSDP_TRY(fsdp_unit_begin_forward(m->units[2]));
    if (fsdp_rank(m->ctx) == fsdp_size(m->ctx) - 1) {
        assert_int_not_equal(FSDP_OK, fsdp_unit_begin_forward(m->units[2]));
        return FSDP_ERR_STATE;
    }
    FSDP_TRY(fsdp_unit_end_forward(m->units[2]));
    FSDP_TRY(backward(m, 2, UNITS, 90));
    FSDP_TRY(backward(m, 1, UNITS, 91));
    return backward(m, 0, UNITS, 92);
}

/* No error: some ranks end a pass that others abandon. */
static fsdp_status leave_open(const made *m)
{
    FSDP_TRY(forward(m, 0));
    FSDP_TRY(fsdp_unit_begin_forward(m->units[1]));
    return fsdp_rank(m->ctx) % 2 == 0 ? fsdp_unit_end_forward(m->units[1]) : FSDP_OK;
}

/* What was gathered ahead is begun by some ranks, and something else by others. */
static fsdp_status go_other_ways(const made *m)
{
    const size_t odd = fsdp_rank(m->ctx) % 2 != 0;

    FSDP_TRY(forward(m, 0));
    FSDP_TRY(forward(m, 1 + odd));
    FSDP_TRY(forward(m, 2 - odd));
    FSDP_TRY(backward(m, 2 - odd, UNITS, 93));
    return backward(m, 1 + odd, UNITS, 94);
}

static void suffer(const made *m, mishap which)
{
    fsdp_status (*const ways[N_MISHAPS])(const made *) = {NULL, begin_twice, leave_open, go_other_ways};

    if (which == NONE) {
        return;
    }
    const fsdp_status status = ways[which](m), forgotten = fsdp_model_zero_grad(m->model);
    const bool        fails = which == BEGUN_TWICE || (which == OTHER_ORDER && fsdp_size(m->ctx) > 1);

    assert_true((status != FSDP_OK || forgotten != FSDP_OK) == fails);
    for (const fsdpi_flat *flat = m->model->flats; flat != NULL && fails; flat = flat->next) {
        assert_false(flat->is_kept); /* by no rank */
    }
}

/* ---- training ---------------------------------------------------------------------------------------------------- */

/* Where a variant's checkpoint is; `folder` has room for it. */
static const char *folder_of(const variant *v, char folder[sizeof saved_folder + 8])
{
    (void)snprintf(folder, sizeof saved_folder + 8, "%s/%s", saved_folder, v->keeps ? "kept" : "plain");
    return folder;
}

/* Each behind passes that have had the nodes keep what was before. */
static void change_parameters(const made *m, const variant *v)
{
    static float values[67];
    fsdp_shard   shard;

    assert_int_equal(FSDP_OK, forward_all(m, UNITS));
    assert_int_equal(FSDP_OK, fsdp_unit_shard(m->units[1], 0, &shard));
    for (size_t i = 0; i < shard.count; i++) {
        ((float *)shard.master)[i] *= 0.5F;
    }
    assert_int_equal(FSDP_OK, fsdp_model_shards_changed(m->model));
    assert_int_equal(FSDP_OK, forward_all(m, UNITS));
    for (size_t i = 0; i < 67; i++) {
        values[i] = (float)i / 64.0F;
    }
    assert_int_equal(FSDP_OK, fsdp_tensor_import(m->model, "u0.bias", 0, values, sizeof values));
    assert_int_equal(FSDP_OK, forward_all(m, UNITS));
    if (v->loads) {
        fsdp_checkpoint_state state;
        char                  folder[sizeof saved_folder + 8];

        assert_int_equal(FSDP_OK, fsdp_checkpoint_load(m->model, m->optimizer, folder_of(v, folder), NULL, &state));
    }
    assert_int_equal(FSDP_OK, fsdp_model_zero_grad(m->model)); /* what was before is not part of a step */
}

static void save(const made *m, const variant *v)
{
    const fsdp_checkpoint_state state = {.step = 1};
    fsdp_checkpoint            *checkpoint;
    char                        folder[sizeof saved_folder + 8];

    assert_int_equal(FSDP_OK, fsdp_checkpoint_open(m->model, m->optimizer, folder_of(v, folder), NULL, &checkpoint));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_save(checkpoint, &state));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_close(checkpoint));
}

static void train(const variant *v, result *r)
{
    made m;

    open_model(v, &m);
    for (size_t k = 0; k < STEPS; k++) {
        const bool absent = v->replays && k > 0 && fsdp_rank(m.ctx) == fsdp_size(m.ctx) - 1;

        suffer(&m, k == 1 ? v->mishap : NONE);
        const fsdp_status status = absent ? fsdp_model_replay(m.model) : passes(&m, v, k);
        if (status != FSDP_OK) {
            fail_msg("step %zu: %s", k, fsdp_last_error(m.ctx));
        }
        assert_int_equal(FSDP_OK, fsdp_clip_grad_norm(m.model, 0.5, &r->norms[k]));
        assert_int_equal(FSDP_OK, fsdp_optimizer_step(m.optimizer));
        assert_int_equal(FSDP_OK, m.rest != NULL ? fsdp_optimizer_step(m.rest) : FSDP_OK);
        assert_int_equal(FSDP_OK, fsdp_model_hash(m.model, &r->hashes[k]));
        if (k == 0 && v->loads) {
            save(&m, v);
        }
        change_parameters(&m, v);
    }
    close_model(&m);
}

static void expect_same(variant v, mishap which)
{
    result expected, found;

    v.keeps  = false;
    v.mishap = NONE;
    train(&v, &expected);
    v.keeps  = true;
    v.mishap = which;
    train(&v, &found);
    for (size_t k = 0; k < STEPS; k++) {
        if (expected.hashes[k] != found.hashes[k] || memcmp(&expected.norms[k], &found.norms[k], sizeof(double)) != 0) {
            fail_msg("nodes of %d, prefetch %d, mishap %d: step %zu has hash %llx, norm %a; where nodes keep nothing "
                     "%llx, %a",
                     v.node_size, v.prefetch, (int)which, k, (unsigned long long)found.hashes[k], found.norms[k],
                     (unsigned long long)expected.hashes[k], expected.norms[k]);
        }
    }
}

static void no_bit_of_a_result_changes(void **state)
{
    static const variant variants[] = {
        {.node_size = 0, .prefetch = 1},
        {.node_size = 2, .prefetch = 0, .verify = FSDP_VERIFY_FULL},
        {.node_size = 2, .prefetch = 1, .whole = true},
        {.node_size = 1, .prefetch = 2, .narrow = true, .local = true},
        {.node_size = 2, .prefetch = 1, .quantized = true},
        {.node_size = 2, .prefetch = 2, .whole = true, .narrow = true, .same = true},
        {.node_size = 2, .prefetch = 1, .kept_units = 1},
        {.node_size = 2, .prefetch = 0, .kept_units = UNITS, .same = true},
        {.node_size = 1, .prefetch = 1, .small_bytes = 4000, .own_strategy = true},
        {.node_size = 2, .prefetch = 1, .replays = true},
        {.node_size = 1, .prefetch = 0, .replays = true, .kept_units = 1},
        {.node_size = 2, .prefetch = 1, .loads = true, .narrow = true},
    };

    (void)state;
    for (size_t k = 0; k < sizeof variants / sizeof variants[0]; k++) {
        expect_same(variants[k], NONE);
    }
}

static void nor_does_one_where_a_pass_fails_on_a_rank_or_is_abandoned(void **state)
{
    (void)state;
    for (int which = NONE + 1; which < N_MISHAPS; which++) {
        for (int prefetch = 0; prefetch < 3; prefetch++) {
            const variant v = {.node_size = 1 + (which + prefetch) % 2, .prefetch = prefetch, .whole = prefetch == 1};

            expect_same(v, (mishap)which);
        }
    }
}

/* ---- L-BFGS ------------------------------------------------------------------------------------------------------ */

/* A sum of squares around 1, the same on all ranks, with curvatures from 1 to 4; a forward pass more than it needs. */
static fsdp_status closure(void *state, double *loss)
{
    const made *m = state;

    *loss = 0.0;
    FSDP_TRY(forward_all(m, UNITS));
    for (size_t u = UNITS; u-- > 0;) {
        FSDP_TRY(fsdp_unit_begin_backward(m->units[u]));
        for (size_t t = FIRST[u]; t < FIRST[u + 1]; t++) {
            const float *w = fsdp_unit_param(m->units[u], t - FIRST[u]);
            float       *g = has_gradient(t) ? fsdp_unit_grad(m->units[u], t - FIRST[u]) : NULL;

            for (size_t i = 0; i < elements(t) && g != NULL; i++) {
                const double c = 1.0 + (double)(i % 4), d = (double)w[i] - 1.0;

                *loss += 0.5 * c * d * d;
                g[i] += (float)(c * d);
            }
        }
        FSDP_TRY(fsdp_unit_end_backward(m->units[u]));
    }
    return FSDP_OK;
}

static void minimize(const variant *v, double *loss, uint64_t *hash)
{
    fsdp_lbfgs_options o = FSDP_LBFGS_OPTIONS_DEFAULT;
    fsdp_lbfgs_result  found;
    fsdp_lbfgs        *lbfgs;
    made               m;

    o.max_iterations = 4;
    build(MPI_COMM_WORLD, v, &m);
    assert_int_equal(FSDP_OK, fsdp_model_commit(m.model));
    assert_int_equal(FSDP_OK, fsdp_lbfgs_create(m.model, &o, &lbfgs));
    assert_int_equal(FSDP_OK, fsdp_lbfgs_step(lbfgs, closure, &m, &found));
    assert_true(found.evaluations > 2);
    *loss = found.loss;
    assert_int_equal(FSDP_OK, fsdp_model_hash(m.model, hash));
    close_model(&m);
}

static void the_many_passes_of_lbfgs_see_what_each_of_its_steps_has_changed(void **state)
{
    (void)state;
    for (int prefetch = 0; prefetch < 2; prefetch++) {
        variant  v = {.node_size = 1 + prefetch, .prefetch = prefetch};
        double   expected, loss;
        uint64_t expected_hash, hash;

        minimize(&v, &expected, &expected_hash);
        v.keeps = true;
        minimize(&v, &loss, &hash);
        assert_true(expected_hash == hash);
        assert_memory_equal(&expected, &loss, sizeof loss);
    }
}

/* ---- between nodes ----------------------------------------------------------------------------------------------- */

static size_t view_bytes(const fsdpi_flat *flat)
{
    return flat->layout.padded * fsdp_dtype_size(flat->dtype);
}

static size_t all_view_bytes(const made *m)
{
    size_t bytes = 0;

    for (const fsdpi_flat *flat = m->model->flats; flat != NULL; flat = flat->next) {
        bytes += view_bytes(flat);
    }
    return bytes;
}

static uint64_t sum_over_ranks(uint64_t value)
{
    assert_int_equal(MPI_SUCCESS, MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD));
    return value;
}

/* What this rank sends to other nodes; within one ranks send no messages. */
typedef struct traffic {
    uint64_t messages, bytes;
} traffic;

static traffic traffic_since_reset(void)
{
    const mpi_counts counts = mpi_counts_now();

    assert_int_equal(0, counts.collectives);
    return (traffic){counts.messages, counts.bytes};
}

static traffic of_agreement(const made *m)
{
    mpi_counts_reset();
    assert_int_equal(FSDP_OK, fsdp_barrier(m->ctx));
    return traffic_since_reset();
}

/* For forward passes behind others, and for the begins of backward passes behind these. */
static void count_later_passes(const made *m, traffic *later, traffic *begins)
{
    assert_int_equal(FSDP_OK, forward_all(m, UNITS));
    mpi_counts_reset();
    assert_int_equal(FSDP_OK, forward_all(m, UNITS));
    *later  = traffic_since_reset();
    *begins = (traffic){0, 0};
    for (size_t u = UNITS; u-- > 0;) {
        mpi_counts_reset();
        assert_int_equal(FSDP_OK, fsdp_unit_begin_backward(m->units[u]));
        const traffic one = traffic_since_reset();
        begins->messages += one.messages;
        begins->bytes += one.bytes;
        assert_int_equal(FSDP_OK, fsdp_unit_end_backward(m->units[u]));
    }
}

static size_t count_members(const made *m)
{
    size_t n = 0;

    for (size_t u = 0; u < UNITS; u++) {
        n += m->units[u]->n_members;
    }
    return n;
}

/* Exactly the messages of as many agreements as there are gathers. */
static void later_gathers_send_no_parameters_between_nodes(void **state)
{
    (void)state;
    for (int node_size = 1; node_size <= 2 && fsdp_test_size() > node_size; node_size++) {
        for (int whole = 0; whole < 2; whole++) {
            variant v = {.node_size = node_size, .whole = whole};
            traffic later, begins;
            made    m;

            open_model(&v, &m);
            count_later_passes(&m, &later, &begins);
            assert_true(sum_over_ranks(later.bytes) >= all_view_bytes(&m)); /* to another node at least */
            assert_true(sum_over_ranks(begins.bytes) >= all_view_bytes(&m));
            close_model(&m);
            v.keeps = true;
            open_model(&v, &m);
            const traffic agreement = of_agreement(&m);
            count_later_passes(&m, &later, &begins);
            assert_true(agreement.bytes <= 64 * agreement.messages);
            assert_int_equal(count_members(&m) * agreement.messages, later.messages);
            assert_int_equal(count_members(&m) * agreement.bytes, later.bytes);
            assert_int_equal(count_members(&m) * agreement.messages, begins.messages);
            assert_int_equal(count_members(&m) * agreement.bytes, begins.bytes);
            close_model(&m);
        }
    }
}

/* ---- budgets ----------------------------------------------------------------------------------------------------- */

static size_t ranks_of_own_node(int node_size)
{
    const int begin = fsdp_test_rank() / node_size * node_size, left = fsdp_test_size() - begin;

    return (size_t)(left < node_size ? left : node_size);
}

/* BYTES that this rank keeps; in steps of 256, as it is allocated. */
static size_t kept_bytes(const made *m, int node_size)
{
    const size_t ranks = ranks_of_own_node(node_size);
    size_t       bytes = 0;

    for (const fsdpi_flat *flat = m->model->flats; flat != NULL; flat = flat->next) {
        bytes += flat->strategy == FSDP_FULL_SHARD ? ((view_bytes(flat) + ranks - 1) / ranks + 255) / 256 * 256 : 0;
    }
    return bytes;
}

static fsdp_memory memory_of_training(variant v, fsdp_budget *budget, size_t *kept)
{
    fsdp_memory memory;
    made        m;

    open_model(&v, &m);
    assert_int_equal(FSDP_OK, passes(&m, &v, 0));
    assert_int_equal(FSDP_OK, fsdp_optimizer_step(m.optimizer));
    assert_int_equal(FSDP_OK, m.rest != NULL ? fsdp_optimizer_step(m.rest) : FSDP_OK);
    assert_int_equal(FSDP_OK, fsdp_model_budget(m.model, FSDP_FULL_SHARD, 0, FSDP_ADAMW, budget));
    assert_int_equal(FSDP_OK, fsdp_memory_usage(m.ctx, &memory));
    *kept = kept_bytes(&m, v.node_size);
    close_model(&m);
    return memory;
}

static void expect_kept(variant v)
{
    fsdp_budget budget, without;
    size_t      kept;

    const fsdp_memory plain  = memory_of_training(v, &without, &kept);
    v.keeps                  = true;
    const fsdp_memory memory = memory_of_training(v, &budget, &kept);
    uint64_t          most[] = {memory.current_total, memory.peak_total};

    kept = fsdp_test_size() > v.node_size ? kept : 0;
    assert_int_equal(plain.current[FSDP_MEMORY_GATHERED] + kept, memory.current[FSDP_MEMORY_GATHERED]);
    assert_int_equal(plain.current_total + kept, memory.current_total);
    assert_int_equal(without.shared, budget.shared);
    assert_int_equal(MPI_SUCCESS, MPI_Allreduce(MPI_IN_PLACE, most, 2, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD));
    assert_int_equal(most[1], budget.total);
    assert_true(memory.current_total <= budget.total);
    assert_int_equal(most[0], budget.total);
    const double mean = (double)sum_over_ranks(memory.current_total) / fsdp_test_size();
    assert_true(fabs(mean - (double)budget.mean_total) <= (v.whole ? 2048.0 : 256.0 * ALL_TENSORS));
    assert_true(budget.mean_total <= budget.total);
}

static void the_budget_is_what_is_held_on_nodes_of_any_size(void **state)
{
    (void)state;
    for (int node_size = 1; node_size <= 3; node_size++) {
        expect_kept((variant){.node_size = node_size, .prefetch = 1});
        expect_kept((variant){.node_size = node_size, .narrow = true, .same = true});
        expect_kept((variant){.node_size = node_size, .quantized = true, .small_bytes = 1000});
        expect_kept((variant){.node_size = node_size, .own_strategy = true});
        if (fsdp_test_size() % node_size == 0) { /* else who holds most matrices need not be on the smallest node */
            expect_kept((variant){.node_size = node_size, .whole = true});
        }
    }
}

/* For fewer ranks it is what these would say themselves. */
static void budgets_for_other_numbers_of_ranks_make_up_nodes_alike(void **state)
{
    const variant v = {.node_size = 2, .keeps = true};

    (void)state;
    for (int n = 2; n < fsdp_test_size(); n++) {
        fsdp_budget there, here;
        MPI_Comm    some;
        made        m;

        build(MPI_COMM_WORLD, &v, &m);
        assert_int_equal(FSDP_OK, fsdp_model_budget(m.model, FSDP_FULL_SHARD, n, FSDP_ADAMW, &here));
        close_model(&m);
        assert_int_equal(MPI_SUCCESS, MPI_Comm_split(MPI_COMM_WORLD, fsdp_test_rank() < n, 0, &some));
        build(some, &v, &m);
        assert_int_equal(FSDP_OK, fsdp_model_budget(m.model, FSDP_FULL_SHARD, 0, FSDP_ADAMW, &there));
        if (fsdp_test_rank() < n) {
            assert_int_equal(there.bytes[FSDP_MEMORY_GATHERED], here.bytes[FSDP_MEMORY_GATHERED]);
            assert_int_equal(there.total, here.total);
            assert_int_equal(there.mean_total, here.mean_total);
        }
        close_model(&m);
        assert_int_equal(MPI_SUCCESS, MPI_Comm_free(&some));
    }
}

/* Only under the strategy that keeps anything. */
static void budgets_of_other_strategies_are_as_without(void **state)
{
    variant     v = {.node_size = 1};
    fsdp_budget with, without;
    made        m;

    (void)state;
    for (int s = 0; s < FSDP_N_STRATEGIES; s++) {
        v.keeps = false;
        build(MPI_COMM_WORLD, &v, &m);
        assert_int_equal(FSDP_OK, fsdp_model_budget(m.model, (fsdp_strategy)s, 8, FSDP_ADAMW, &without));
        close_model(&m);
        v.keeps = true;
        build(MPI_COMM_WORLD, &v, &m);
        assert_int_equal(FSDP_OK, fsdp_model_budget(m.model, (fsdp_strategy)s, 8, FSDP_ADAMW, &with));
        close_model(&m);
        assert_true((with.total > without.total) == (s == FSDP_FULL_SHARD));
        assert_true(with.total >= without.total);
    }
}

/* ---- bad input --------------------------------------------------------------------------------------------------- */

static void expect_refused(fsdp_strategy strategy, size_t keep_on_node, fsdp_status status, const char *words)
{
    fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;
    fsdp_context      *ctx;
    fsdp_model        *model = NULL;

    options.strategy     = strategy;
    options.group_size   = 1;
    options.keep_on_node = keep_on_node;
    open_context(MPI_COMM_WORLD, &(variant){.prefetch = 1}, &ctx);
    assert_int_equal(status, fsdp_model_create(ctx, &options, &model));
    assert_null(model);
    assert_says(ctx, words);
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

static void where_nodes_have_nothing_to_keep_it_is_refused(void **state)
{
    (void)state;
    expect_refused(FSDP_FULL_SHARD, 2, FSDP_ERR_ARG, "keep_on_node is 2; it must be 0 or 1");
    expect_refused(FSDP_NO_SHARD, 1, FSDP_ERR_UNSUPPORTED, "keep_on_node with NO_SHARD, which gathers nothing");
    expect_refused(FSDP_SHARD_GRAD_OP, 1, FSDP_ERR_UNSUPPORTED,
                   "keep_on_node with SHARD_GRAD_OP, which keeps what it has gathered until the step; leave it 0");
    expect_refused(FSDP_SHARD_OPTIM, 1, FSDP_ERR_UNSUPPORTED, "keep_on_node with SHARD_OPTIM");
    expect_refused(FSDP_HYBRID_SHARD, 1, FSDP_ERR_UNSUPPORTED,
                   "keep_on_node with HYBRID_SHARD, which gathers within its groups");
    expect_refused(FSDP_HYBRID_SHARD_ZERO2, 1, FSDP_ERR_UNSUPPORTED, "keep_on_node with HYBRID_SHARD_ZERO2");
}

static void ranks_that_disagree_learn_of_it(void **state)
{
    fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;
    fsdp_context      *ctx;
    fsdp_model        *model = NULL;

    (void)state;
    options.keep_on_node = fsdp_test_rank() == 0;
    open_context(MPI_COMM_WORLD, &(variant){.prefetch = 1, .verify = FSDP_VERIFY_ARGS}, &ctx);
    assert_int_equal(fsdp_test_size() > 1 ? FSDP_ERR_MISMATCH : FSDP_OK, fsdp_model_create(ctx, &options, &model));
    fsdp_model_destroy(model);
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(no_bit_of_a_result_changes, saved_folder_make, saved_folder_remove),
        cmocka_unit_test(nor_does_one_where_a_pass_fails_on_a_rank_or_is_abandoned),
        cmocka_unit_test(the_many_passes_of_lbfgs_see_what_each_of_its_steps_has_changed),
        cmocka_unit_test(later_gathers_send_no_parameters_between_nodes),
        cmocka_unit_test(the_budget_is_what_is_held_on_nodes_of_any_size),
        cmocka_unit_test(budgets_for_other_numbers_of_ranks_make_up_nodes_alike),
        cmocka_unit_test(budgets_of_other_strategies_are_as_without),
        cmocka_unit_test(where_nodes_have_nothing_to_keep_it_is_refused),
        cmocka_unit_test(ranks_that_disagree_learn_of_it),
    };

    return fsdp_test_main(argc, argv, tests, NULL, NULL);
}
