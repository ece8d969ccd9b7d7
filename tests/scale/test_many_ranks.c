/*
 * As many ranks as this machine can hold, as nodes of as many ranks as the argument says: all collectives against a serial
 * reference, blocking and not; the messages that they send; and training, to the bit.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/collectives/collective_test.h"
#include "tests/collectives/counted.h"
#include "tests/shard/serial_training.h"

static int node_size;

/* ---- collectives ----------------------------------------------------------------------------------------------------- */

typedef enum collective {
    ALLGATHER,
    ALLGATHERV,
    REDUCE_SCATTER,
    REDUCE_SCATTERV,
    ALLREDUCE,
    BROADCAST,
    REDUCE,
    ALLTOALL,
    BARRIER,
    N_OF_COLLECTIVES
} collective;

enum { MOST_RANKS = 64, N_OF_COUNTS = 5 };

static const size_t COUNTS_PER_RANK[N_OF_COUNTS] = {0, 1, 17, 64, 1009};

typedef struct operation {
    collective    collective;
    size_t        count;
    fsdp_dtype    dtype;
    fsdp_redop    op;
    int           root;
    size_t        counts[MOST_RANKS];
    void         *in, *out;
    fsdp_request *request;
} operation;

/* ELEMENTS that this rank gives and takes, and where in the vector its part begins. */
typedef struct lengths {
    size_t in, out, begin;
} lengths;

static lengths lengths_of(const contexts *c, const operation *o)
{
    const size_t size = (size_t)c->size, rank = (size_t)c->rank, mine = o->counts[c->rank];
    size_t       sum = 0, before = 0;

    for (int r = 0; r < c->size; r++) {
        before += r < c->rank ? o->counts[r] : 0;
        sum += o->counts[r];
    }
    switch (o->collective) {
    case ALLGATHER:
        return (lengths){o->count, o->count * size, 0};
    case ALLGATHERV:
        return (lengths){mine, sum, 0};
    case REDUCE_SCATTER:
        return (lengths){o->count * size, o->count, o->count * rank};
    case REDUCE_SCATTERV:
        return (lengths){sum, mine, before};
    case ALLREDUCE:
        return (lengths){o->count, o->count, 0};
    case BROADCAST:
        return (lengths){0, o->count, 0};
    case REDUCE:
        return (lengths){o->count, c->rank == o->root ? o->count : 0, 0};
    case ALLTOALL:
        return (lengths){o->count * size, o->count * size, 0};
    default:
        return (lengths){0, 0, 0};
    }
}

static operation prepare(const contexts *c, collective which, size_t count, int turn)
{
    operation o = {.collective = which,
                   .count      = count,
                   .dtype      = (fsdp_dtype)(turn % FSDP_N_DTYPES),
                   .op         = (fsdp_redop)(turn % FSDP_N_REDOPS),
                   .root       = turn % c->size};

    (void)uneven_counts(o.counts, c->size, count / (size_t)(c->size + 1));
    const lengths l = lengths_of(c, &o);
    o.in            = guarded_alloc(l.in, o.dtype);
    o.out           = guarded_alloc(l.out, o.dtype);
    contribute(o.in, c->rank, 0, l.in, o.dtype);
    if (which == BROADCAST && c->rank == o.root) {
        contribute(o.out, o.root, 0, count, o.dtype);
    }
    return o;
}

static fsdp_status start(fsdp_context *ctx, operation *o)
{
    switch (o->collective) {
    case ALLGATHER:
        return fsdp_iallgather(ctx, o->in, o->out, o->count, o->dtype, &o->request);
    case ALLGATHERV:
        return fsdp_iallgatherv(ctx, o->in, o->out, o->counts, o->dtype, &o->request);
    case REDUCE_SCATTER:
        return fsdp_ireduce_scatter(ctx, o->in, o->out, o->count, o->dtype, o->op, &o->request);
    case REDUCE_SCATTERV:
        return fsdp_ireduce_scatterv(ctx, o->in, o->out, o->counts, o->dtype, o->op, &o->request);
    case ALLREDUCE:
        return fsdp_iallreduce(ctx, o->in, o->out, o->count, o->dtype, o->op, &o->request);
    case BROADCAST:
        return fsdp_ibroadcast(ctx, o->out, o->count, o->dtype, o->root, &o->request);
    case REDUCE:
        return fsdp_ireduce(ctx, o->in, o->out, o->count, o->dtype, o->op, o->root, &o->request);
    case ALLTOALL:
        return fsdp_ialltoall(ctx, o->in, o->out, o->count, o->dtype, &o->request);
    default:
        return fsdp_ibarrier(ctx, &o->request);
    }
}

/* What the ranks have given, part after part. */
static void fill_gathered(const contexts *c, const operation *o, unsigned char *expected)
{
    const size_t width = fsdp_dtype_size(o->dtype);

    for (int r = 0; r < c->size; r++) {
        const size_t count = o->collective == ALLGATHERV ? o->counts[r] : o->count;
        const size_t begin = o->collective == ALLTOALL ? (size_t)c->rank * count : 0;

        contribute(expected, r, begin, count, o->dtype);
        expected += count * width;
    }
}

static void check_and_release(const contexts *c, const operation *o)
{
    const lengths l        = lengths_of(c, o);
    void         *expected = guarded_alloc(l.out, o->dtype);

    switch (o->collective) {
    case ALLGATHER:
    case ALLGATHERV:
    case ALLTOALL:
        fill_gathered(c, o, expected);
        break;
    case BROADCAST:
        contribute(expected, o->root, 0, l.out, o->dtype);
        break;
    default:
        reduce_serially(expected, c->size, l.begin, l.out, o->dtype, o->op);
        break;
    }
    assert_same(expected, o->out, l.out, o->dtype);
    guarded_free(expected);
    guarded_free(o->in);
    guarded_free(o->out);
}

/* All collectives of one length are under way at once; half of them are waited for in another order. */
static void run_together(const contexts *c, fsdp_context *ctx, size_t count, int turn)
{
    operation all[N_OF_COLLECTIVES];

    for (int k = 0; k < N_OF_COLLECTIVES; k++) {
        all[k] = prepare(c, (collective)k, count, turn + k);
        assert_int_equal(FSDP_OK, start(ctx, &all[k]));
    }
    for (int k = 0; k < N_OF_COLLECTIVES; k++) {
        assert_int_equal(FSDP_OK, fsdp_wait(all[turn % 2 == 0 ? k : N_OF_COLLECTIVES - 1 - k].request));
    }
    for (int k = 0; k < N_OF_COLLECTIVES; k++) {
        check_and_release(c, &all[k]);
    }
}

static void run_one_by_one(const contexts *c, fsdp_context *ctx, size_t count, int turn)
{
    for (int k = 0; k < N_OF_COLLECTIVES; k++) {
        operation o = prepare(c, (collective)k, count, turn + k);

        assert_int_equal(FSDP_OK, start(ctx, &o));
        assert_int_equal(FSDP_OK, fsdp_wait(o.request));
        check_and_release(c, &o);
    }
}

static void every_collective_equals_the_serial_reference(void **state)
{
    const contexts *c = *state;

    assert_int_equal((c->size + node_size - 1) / node_size, fsdp_node_count(c->each[0]));
    for (size_t i = 0; i < N_OF_COUNTS; i++) {
        for (int turn = 0; turn < FSDP_N_DTYPES; turn++) {
            run_together(c, c->each[turn % N_CONTEXTS], COUNTS_PER_RANK[i], turn);
        }
        run_one_by_one(c, c->each[i % N_CONTEXTS], COUNTS_PER_RANK[i], (int)i);
    }
}

static void what_they_send_is_what_the_formulas_say(void **state)
{
    (void)state;
    count_on_nodes_of(node_size);
}

/* ---- training -------------------------------------------------------------------------------------------------------- */

static void every_strategy_equals_the_serial_recomputation(void **state)
{
    fsdp_optimizer_options o;

    (void)state;
    assert_int_equal(FSDP_OK, fsdp_optimizer_options_init(FSDP_ADAMW, &o));
    o.lr           = 0.01;
    o.weight_decay = 0.1;
    for (int strategy = 0; strategy < FSDP_N_STRATEGIES; strategy++) {
        train_and_compare((fsdp_strategy)strategy, &o, 2, 1 + strategy % 2);
    }
}

static void every_strategy_has_the_same_gradient_norm(void **state)
{
    double norm[FSDP_N_STRATEGIES];

    (void)state;
    for (int strategy = 0; strategy < FSDP_N_STRATEGIES; strategy++) {
        small_model m;

        small_model_open(&m, NULL, (fsdp_strategy)strategy);
        run_pass(&m, 0);
        assert_int_equal(FSDP_OK, fsdp_clip_grad_norm(m.model, (double)INFINITY, &norm[strategy]));
        small_model_close(&m);
        assert_true(norm[strategy] > 0.0);
        assert_memory_equal(&norm[0], &norm[strategy], sizeof norm[0]);
    }
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_collective_equals_the_serial_reference),
        cmocka_unit_test(what_they_send_is_what_the_formulas_say),
        cmocka_unit_test(every_strategy_equals_the_serial_recomputation),
        cmocka_unit_test(every_strategy_has_the_same_gradient_norm),
    };

    node_size = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 1;
    if (setenv("FSDP_NODE_SIZE", argc > 1 ? argv[1] : "1", 1) != 0) {
        return EXIT_FAILURE;
    }
    return fsdp_test_main(argc, argv, tests, open_contexts, close_contexts);
}
