#include "tests/collectives/counted.h"

#include <stdio.h>
#include <string.h>

#include "collectives/blocks/windows.h"
#include "fsdp/algorithms.h"
#include "fsdp/buffer.h"
#include "lib/context/context.h"
#include "tests/collectives/collective_test.h"
#include "tests/collectives/traffic.h"
#include "tests/support/mpi_counts.h"

/* Several chunks and blocks of what is short enough for 64 ranks on few cores; staging memory with room for such chunks. */
enum { CHUNK_BYTES = 1024, STAGING_BYTES = 1 << 20, STAGING_FOR_BLOCKS = 32768, MOST_BLOCKS = 40 };
enum { MOST_PER_RANK = 1009, DIVISIBLE = 256, N_SIZES = 4 };

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

static const char *const NAMES[] = {"allgather", "allgatherv", "reduce_scatter", "reduce_scatterv", "allreduce",
                                    "broadcast", "reduce",     "alltoall",       "barrier"};

/* Which formula is for what served a call: by fsdp_last_algorithm(). */
static const struct {
    const char     *name;
    traffic_formula formula;
    bool            asks_mpi; /* for a collective of its own */
} FORMULAS[] = {
    {"inline", traffic_inline, false}, {"staged", traffic_staged, false},     {"rails", traffic_rails, false},
    {"ring", traffic_ring, false},     {"pairwise", traffic_pairwise, false}, {"mpi", traffic_none, true},
    {"direct", traffic_none, false},   {"cma", traffic_none, false},
};
enum { N_FORMULAS = sizeof FORMULAS / sizeof FORMULAS[0], NO_FORMULA = -1 };

/* Which has served which collective; and how many requests were under way at once. */
typedef struct seen {
    bool     served[N_OF_COLLECTIVES][N_FORMULAS];
    uint64_t most_under_way;
} seen;

/* Of each rank of a context: several chunks of partial results and of parts, to it and from it. */
enum { MOST_REQUESTS_PER_RANK = 16 };

typedef struct job {
    collective   collective;
    size_t       count;
    int          root;
    size_t       counts[TRAFFIC_MOST_RANKS];
    traffic_call call;
} job;

typedef struct places {
    float *in, *out;
} places;

/* ---- calls ----------------------------------------------------------------------------------------------------------- */

/* The ends of parts of a vector that is divided by the library are on multiples of 64. */
static void split(traffic_call *c, size_t count, int size)
{
    const size_t even = (count + (size_t)size - 1) / (size_t)size, part = (even + 63) / 64 * 64;
    size_t       left = count;

    for (int r = 0; r < size; r++) {
        c->part[r] = left < part ? left : part;
        left -= c->part[r];
    }
}

static void divide(job *j, int size)
{
    for (int r = 0; r < size; r++) {
        switch (j->collective) {
        case ALLGATHERV:
        case REDUCE_SCATTERV:
            j->call.part[r] = j->counts[r];
            break;
        case REDUCE: /* of two ranks; see below */
        case BROADCAST:
            j->call.part[r] = r == j->root ? j->count : 0;
            break;
        default:
            j->call.part[r] = j->count;
            break;
        }
    }
    if (j->collective == ALLREDUCE || (j->collective == REDUCE && size > 2)) {
        split(&j->call, j->count, size);
    }
}

static size_t whole_of(const job *j, int size)
{
    size_t sum = 0;

    if (j->collective == ALLREDUCE || j->collective == BROADCAST || j->collective == REDUCE) {
        return j->count;
    }
    for (int r = 0; r < size; r++) {
        sum += j->call.part[r];
    }
    return sum;
}

/* The longest is no longer than the buffers: `size` times MOST_PER_RANK. */
static job make_job(collective which, size_t count, const fsdp_context *ctx)
{
    const int    size  = fsdp_size(ctx);
    const size_t block = fsdpi_block_capacity(&ctx->lanes[FSDPI_LANE_LONG]);
    job          j     = {.collective = which, .count = which == BARRIER ? 0 : count, .root = size / 2};

    if (which == ALLREDUCE || which == BROADCAST || which == REDUCE) {
        j.count = count == MOST_PER_RANK ? count * (size_t)size - 3 : count == DIVISIBLE ? count * (size_t)size : count;
    }
    (void)uneven_counts(j.counts, size, count / (size_t)(size + 1));
    divide(&j, size);
    j.call.whole    = whole_of(&j, size);
    j.call.width    = sizeof(float);
    j.call.chunk    = CHUNK_BYTES;
    j.call.block    = block < FSDPI_BLOCK_BYTES ? block : FSDPI_BLOCK_BYTES;
    j.call.reduces  = which == REDUCE_SCATTER || which == REDUCE_SCATTERV || which == ALLREDUCE || which == REDUCE;
    j.call.gathers  = which == ALLGATHER || which == ALLGATHERV || which == ALLREDUCE;
    j.call.in_parts = which != BROADCAST && which != REDUCE;
    j.call.collects = which == REDUCE && size > 2;
    j.call.root     = j.root;
    return j;
}

static fsdp_status carry_out(fsdp_context *ctx, const job *j, const places *p)
{
    switch (j->collective) {
    case ALLGATHER:
        return fsdp_allgather(ctx, p->in, p->out, j->count, FSDP_F32);
    case ALLGATHERV:
        return fsdp_allgatherv(ctx, p->in, p->out, j->counts, FSDP_F32);
    case REDUCE_SCATTER:
        return fsdp_reduce_scatter(ctx, p->in, p->out, j->count, FSDP_F32, FSDP_SUM);
    case REDUCE_SCATTERV:
        return fsdp_reduce_scatterv(ctx, p->in, p->out, j->counts, FSDP_F32, FSDP_SUM);
    case ALLREDUCE:
        return fsdp_allreduce(ctx, p->in, p->out, j->count, FSDP_F32, FSDP_SUM);
    case BROADCAST:
        return fsdp_broadcast(ctx, p->out, j->count, FSDP_F32, j->root);
    case REDUCE:
        return fsdp_reduce(ctx, p->in, p->out, j->count, FSDP_F32, FSDP_SUM, j->root);
    case ALLTOALL:
        return fsdp_alltoall(ctx, p->in, p->out, j->count, FSDP_F32);
    default:
        return fsdp_barrier(ctx);
    }
}

/* ---- against the formulas -------------------------------------------------------------------------------------------- */

static int formula_of(const char *name)
{
    for (int f = 0; f < N_FORMULAS; f++) {
        if (strcmp(FORMULAS[f].name, name) == 0) {
            return f;
        }
    }
    return NO_FORMULA;
}

static traffic expected(const traffic_world *w, const job *j, int formula, int from, int to)
{
    const traffic agreement = traffic_agreement(w, &j->call, from, to);
    const traffic data = formula != NO_FORMULA && j->call.whole > 0 ? FORMULAS[formula].formula(w, &j->call, from, to)
                                                                    : traffic_none(w, &j->call, from, to);

    return (traffic){agreement.messages + data.messages, agreement.bytes + data.bytes};
}

static void check_peer(const fsdp_context *ctx, const traffic_world *w, const job *j, int formula, int peer)
{
    const int                rank  = fsdp_rank(ctx);
    const mpi_counts_of_peer found = mpi_counts_with(peer);
    const traffic            sent = expected(w, j, formula, rank, peer), come = expected(w, j, formula, peer, rank);

    if (found.messages != sent.messages || found.bytes != sent.bytes || found.receives != come.messages) {
        fail_msg("%s of %zu floats by %s, %d ranks, %d on a node: rank %d sends %llu messages with %llu bytes to rank "
                 "%d and receives %llu; expected were %llu, %llu and %llu",
                 NAMES[j->collective], j->count, formula != NO_FORMULA ? FORMULAS[formula].name : "nothing", w->size,
                 w->per_node, rank, (unsigned long long)found.messages, (unsigned long long)found.bytes, peer,
                 (unsigned long long)found.receives, (unsigned long long)sent.messages, (unsigned long long)sent.bytes,
                 (unsigned long long)come.messages);
    }
}

static void check_job(fsdp_context *ctx, const traffic_world *w, const job *j, const places *p, seen *done)
{
    PMPI_Barrier(MPI_COMM_WORLD);
    mpi_counts_reset();
    assert_int_equal(FSDP_OK, carry_out(ctx, j, p));
    const mpi_counts counts  = mpi_counts_now();
    const int        formula = j->collective == BARRIER ? NO_FORMULA : formula_of(fsdp_last_algorithm(ctx));

    if (formula == NO_FORMULA && j->collective != BARRIER) {
        fail_msg("there is no formula for '%s'", fsdp_last_algorithm(ctx));
    }
    for (int peer = 0; peer < w->size; peer++) {
        check_peer(ctx, w, j, formula, peer);
    }
    assert_int_equal(formula != NO_FORMULA && FORMULAS[formula].asks_mpi, counts.collectives);
    assert_int_equal(0, counts.under_way);
    assert_in_range(counts.most_under_way, 0, MOST_REQUESTS_PER_RANK * (uint64_t)w->size);
    done->most_under_way = counts.most_under_way > done->most_under_way ? counts.most_under_way : done->most_under_way;
    if (formula != NO_FORMULA) {
        done->served[j->collective][formula] = true;
    }
}

/* ---- against the words of the table ---------------------------------------------------------------------------------- */

/* BYTES that a rank sends by the formulas, to all others; `rank` is the leader of its node. */
static uint64_t bytes_by_formula(const traffic_world *w, const traffic_call *c, traffic_formula formula, int rank)
{
    uint64_t sum = 0;

    for (int to = 0; to < w->size; to++) {
        sum += formula(w, c, rank, to).bytes;
    }
    return sum;
}

/*
 * What fsdp-bench --algorithms gives as the bytes over the link, for nodes of one size and parts of one length: of the first
 * rank, which is a leader and no root where there are several nodes. Records are a multiple of 8 with 24 bytes before them.
 */
static void check_table(const traffic_world *w, const job *j)
{
    const uint64_t m = (uint64_t)traffic_nodes(w), n = (uint64_t)w->size, l = n / m;
    const uint64_t s = j->call.whole * j->call.width, records = (m - 1) * 24;
    const uint64_t agreement = (uint64_t)traffic_rounds((int)m) * 24;
    const uint64_t rails     = bytes_by_formula(w, &j->call, traffic_rails, 0);
    const uint64_t in_line   = bytes_by_formula(w, &j->call, traffic_inline, 0) + agreement;

    switch (j->collective) {
    case ALLGATHER:
        assert_int_equal((m - 1) * s / m / l, rails);
        assert_int_equal((m - 1) * s / m / l, bytes_by_formula(w, &j->call, traffic_ring, 0));
        assert_in_range(in_line, (m - 1) * s / m + records, (m - 1) * (s / m + 7) + records);
        break;
    case REDUCE_SCATTER:
        assert_int_equal((m - 1) * s / m / l, rails);
        assert_in_range(in_line, (m - 1) * s + records, (m - 1) * (s + 7) + records);
        break;
    case ALLREDUCE:
        if (j->count % (64 * n) == 0) {
            assert_int_equal(2 * (m - 1) * s / m / l, rails);
        }
        assert_in_range(in_line, (m - 1) * s + records, (m - 1) * (s + 7) + records);
        break;
    case REDUCE: /* in and out as in a reduce-scatter, and the part to the root; one of two ranks sends all to the other */
        if (n == 2 || j->count % (64 * n) == 0) {
            assert_int_equal(m == 1 ? 0 : n == 2 ? s : (m - 1) * s / m / l + s / n, rails);
        }
        break;
    case BROADCAST: /* the node before the root's is the last to have it */
        assert_int_equal(m > 2 && (uint64_t)j->root % l == 0 && (uint64_t)j->root / l != 1 ? s : 0,
                         bytes_by_formula(w, &j->call, traffic_ring, 0));
        break;
    case ALLTOALL:
        assert_int_equal(m > 1 ? (n - 1) * s / n : 0, bytes_by_formula(w, &j->call, traffic_pairwise, 0));
        break;
    default:
        break;
    }
}

/* ---- all ------------------------------------------------------------------------------------------------------------- */

/* For blocks little, so that they are many. Inline, records of all nodes have room for a vector of uneven parts. */
static long long staging_for(fsdp_algorithm asked)
{
    enum { INLINE_BYTES_PER_RANK = 128 << 10 };
    const long long together = (long long)fsdp_test_size() * INLINE_BYTES_PER_RANK;

    if (asked == FSDP_ALGO_STAGED) {
        return STAGING_FOR_BLOCKS;
    }
    return asked == FSDP_ALGO_INLINE && together > STAGING_BYTES ? together : STAGING_BYTES;
}

static fsdp_context *open_context(int node_size, fsdp_algorithm asked)
{
    fsdp_config   config;
    fsdp_context *ctx;

    fsdp_config_init(&config);
    config.node_size           = node_size;
    config.chunk_bytes         = CHUNK_BYTES;
    config.staging_bytes       = staging_for(asked);
    config.algo_allgather      = (int)asked;
    config.algo_reduce_scatter = (int)asked;
    config.algo_allreduce      = (int)asked;
    config.algo_broadcast      = (int)asked;
    config.algo_reduce         = (int)asked;
    config.algo_alltoall       = (int)asked;
    assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_WORLD, &config, &ctx));
    ctx->lanes[FSDPI_LANE_SHORT].exchange.in_pairs =
        false; /* leaders meet in rounds; test_pairs.c counts what they send in pairs, and in pieces */
    for (int i = 0; i < FSDPI_LANES; i++) {
        ctx->lanes[i].messages.cut = (fsdpi_cut){0};
    }
    return ctx;
}

static bool takes_too_long(const job *j, fsdp_algorithm asked)
{
    return asked == FSDP_ALGO_STAGED && j->call.whole * j->call.width > MOST_BLOCKS * j->call.block;
}

static void count_by(fsdp_context *ctx, fsdp_algorithm asked, seen *done)
{
    static const size_t COUNTS_PER_RANK[N_SIZES] = {1, 7, DIVISIBLE, MOST_PER_RANK};
    const int           size = fsdp_size(ctx), nodes = fsdp_node_count(ctx);
    const traffic_world world = {size, nodes == 1 ? size : (int)ctx->config.node_size};
    const size_t        bytes = (size_t)size * MOST_PER_RANK * sizeof(float);
    void               *in, *out;

    assert_int_equal(nodes, traffic_nodes(&world));
    assert_int_equal(FSDP_OK, fsdp_buffer_alloc(ctx, FSDP_BUFFER_PER_RANK, bytes, &in));
    assert_int_equal(FSDP_OK, fsdp_buffer_alloc(ctx, FSDP_BUFFER_PER_RANK, bytes, &out));
    memset(in, 0, bytes);
    memset(out, 0, bytes);
    for (int c = 0; c < N_OF_COLLECTIVES; c++) {
        for (size_t i = 0; i < N_SIZES; i++) {
            const places p = {in, out};
            const job    j = make_job((collective)c, COUNTS_PER_RANK[i], ctx);

            if (!takes_too_long(&j, asked)) {
                check_job(ctx, &world, &j, &p, done);
            }
            if (size % world.per_node == 0) {
                check_table(&world, &j);
            }
        }
    }
    assert_int_equal(FSDP_OK, fsdp_buffer_free(ctx, out));
    assert_int_equal(FSDP_OK, fsdp_buffer_free(ctx, in));
}

/* What is there to be asked for between nodes has served at least one call. */
static void check_seen(const seen *done)
{
    static const struct {
        collective  collective;
        const char *name;
    } ALL[] = {
        {ALLGATHER, "inline"},       {ALLGATHER, "staged"},      {ALLGATHER, "rails"},      {ALLGATHER, "ring"},
        {ALLGATHERV, "inline"},      {ALLGATHERV, "staged"},     {ALLGATHERV, "rails"},     {ALLGATHERV, "ring"},
        {REDUCE_SCATTER, "inline"},  {REDUCE_SCATTER, "staged"}, {REDUCE_SCATTER, "rails"}, {REDUCE_SCATTERV, "inline"},
        {REDUCE_SCATTERV, "staged"}, {REDUCE_SCATTERV, "rails"}, {ALLREDUCE, "inline"},     {ALLREDUCE, "staged"},
        {ALLREDUCE, "rails"},        {BROADCAST, "inline"},      {BROADCAST, "staged"},     {BROADCAST, "mpi"},
        {BROADCAST, "ring"},         {REDUCE, "inline"},         {REDUCE, "staged"},        {REDUCE, "rails"},
        {ALLTOALL, "pairwise"},
    };

    for (size_t i = 0; i < sizeof ALL / sizeof ALL[0]; i++) {
        if (!done->served[ALL[i].collective][formula_of(ALL[i].name)]) {
            fail_msg("no %s was served by %s", NAMES[ALL[i].collective], ALL[i].name);
        }
    }
}

void count_on_nodes_of(int node_size)
{
    static const fsdp_algorithm ASKED[] = {FSDP_ALGO_AUTO, FSDP_ALGO_INLINE, FSDP_ALGO_STAGED, FSDP_ALGO_RAILS,
                                           FSDP_ALGO_RING};
    seen                        done    = {0};
    int                         nodes   = 1;

    for (size_t a = 0; a < sizeof ASKED / sizeof ASKED[0]; a++) {
        fsdp_context *ctx = open_context(node_size, ASKED[a]);

        nodes = fsdp_node_count(ctx);
        count_by(ctx, ASKED[a], &done);
        assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
    }
    if (nodes > 1) {
        check_seen(&done);
    }
    (void)printf("  %d nodes: at most %llu requests of a rank under way\n", nodes,
                 (unsigned long long)done.most_under_way);
}
