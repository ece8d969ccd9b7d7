/** @file Whatever algorithm a call is told to use, and whatever memory it is given, the result has the same bits. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "fsdp/algorithms.h"
#include "fsdp/buffer.h"
#include "lib/context/context.h"
#include "tests/collectives/collective_test.h"

enum { GUARD_BYTES = 64, GUARD = 0xa5, GARBAGE = 0x5a };
enum { MOST_ELEMENTS = 4099, STAGING_BYTES = 32768, LARGE_STAGING_BYTES = 1 << 20, N_NODE_SIZES = 4 };

typedef enum collective { ALLGATHER, REDUCE_SCATTER, ALLREDUCE, BROADCAST, REDUCE, ALLTOALL } collective;
enum { N_OF_COLLECTIVES = 6 };

static const char *const NAMES[] = {"allgather", "reduce_scatter", "allreduce", "broadcast", "reduce", "alltoall"};

/* Nothing, one, what fits into a letter or a slot, what does not, and several chunks of the small staging memory. */
static const size_t     PER_RANK[] = {0, 1, 7, 1009, MOST_ELEMENTS};
static const fsdp_dtype DTYPES[]   = {FSDP_F32, FSDP_BF16};
enum { N_PER_RANK = 5, N_OF_DTYPES = 2, N_JOBS = N_OF_COLLECTIVES * N_PER_RANK * N_OF_DTYPES };

typedef struct job {
    collective collective;
    size_t     count;
    fsdp_dtype dtype;
    fsdp_redop op;
    int        root;
} job;

/* What each rank needs throughout. */
static struct {
    int            rank, size;
    job            jobs[N_JOBS];
    unsigned char *input[N_OF_DTYPES];
    unsigned char *expected[N_NODE_SIZES][N_JOBS];
} all;

/* Where a job's data is. */
typedef struct places {
    unsigned char *in, *out;
    bool           symmetric;
} places;

/* ---- jobs ---------------------------------------------------------------------------------------------------------- */

static size_t most_bytes(void)
{
    return (size_t)all.size * MOST_ELEMENTS * sizeof(float);
}

static size_t whole_count(const job *j)
{
    const bool per_rank = j->collective == ALLGATHER || j->collective == REDUCE_SCATTER || j->collective == ALLTOALL;

    return per_rank ? j->count * (size_t)all.size : j->count;
}

static size_t input_bytes(const job *j)
{
    return (j->collective == ALLGATHER ? j->count : whole_count(j)) * fsdp_dtype_size(j->dtype);
}

static size_t output_bytes(const job *j)
{
    if (j->collective == REDUCE && all.rank != j->root) {
        return 0;
    }
    return (j->collective == REDUCE_SCATTER ? j->count : whole_count(j)) * fsdp_dtype_size(j->dtype);
}

/* Where in `out` the input stands if the call is in place. */
static size_t in_place_offset(const job *j)
{
    return j->collective == ALLGATHER ? (size_t)all.rank * input_bytes(j) : 0;
}

static const unsigned char *input_of(const job *j)
{
    return all.input[j->dtype == FSDP_F32 ? 0 : 1];
}

static bool is_receiver(const job *j)
{
    return j->collective != REDUCE || all.rank == j->root;
}

static fsdp_status call(fsdp_context *ctx, const job *j, const void *in, void *out)
{
    switch (j->collective) {
    case ALLGATHER:
        return fsdp_allgather(ctx, in, out, j->count, j->dtype);
    case REDUCE_SCATTER:
        return fsdp_reduce_scatter(ctx, in, out, j->count, j->dtype, j->op);
    case ALLREDUCE:
        return fsdp_allreduce(ctx, in, out, j->count, j->dtype, j->op);
    case BROADCAST:
        return fsdp_broadcast(ctx, out, j->count, j->dtype, j->root);
    case REDUCE:
        return fsdp_reduce(ctx, in, out, j->count, j->dtype, j->op, j->root);
    case ALLTOALL:
        return fsdp_alltoall(ctx, in, out, j->count, j->dtype);
    }
    return FSDP_ERR_ARG;
}

/* The guard of an output in place stands behind the whole that it holds at first. */
static size_t guard_offset(const job *j, bool in_place)
{
    const size_t needs = in_place ? in_place_offset(j) + input_bytes(j) : 0;

    return needs > output_bytes(j) ? needs : output_bytes(j);
}

static fsdp_status carry_out(fsdp_context *ctx, const job *j, const places *p, bool in_place)
{
    const bool   given = j->collective != BROADCAST || all.rank == j->root;
    const size_t guard = guard_offset(j, in_place);

    memset(p->out, GARBAGE, guard);
    memset(p->out + guard, GUARD, GUARD_BYTES);
    if (!in_place || !is_receiver(j)) {
        memcpy(p->in, input_of(j), input_bytes(j));
        return call(ctx, j, p->in, p->out);
    }
    if (given) {
        memcpy(p->out + in_place_offset(j), input_of(j), input_bytes(j));
    }
    return call(ctx, j, FSDP_IN_PLACE, p->out);
}

static void make_jobs(void)
{
    size_t n = 0;

    for (int c = 0; c < N_OF_COLLECTIVES; c++) {
        for (size_t i = 0; i < N_PER_RANK; i++) {
            for (size_t d = 0; d < N_OF_DTYPES; d++) {
                all.jobs[n++] = (job){.collective = (collective)c,
                                      .count      = PER_RANK[i],
                                      .dtype      = DTYPES[d],
                                      .op         = (i + d) % 2 == 0 ? FSDP_SUM : FSDP_AVG,
                                      .root       = (int)i % all.size};
            }
        }
    }
}

/* ---- what is to come out ------------------------------------------------------------------------------------------- */

static unsigned char *allocate(size_t bytes)
{
    unsigned char *memory = malloc(bytes + GUARD_BYTES);

    assert_non_null(memory);
    return memory;
}

static fsdp_context *open_context(const fsdp_config *config)
{
    fsdp_context *ctx;

    if (fsdp_init(MPI_COMM_WORLD, config, &ctx) != FSDP_OK) {
        fail_msg("fsdp_init: %s", fsdp_last_error(NULL));
    }
    return ctx;
}

/* Default settings but for the nodes, ordinary memory, nothing in place. */
static void find_expected(int node_size)
{
    const places user = {.in = allocate(most_bytes()), .out = allocate(most_bytes())};
    fsdp_config  config;

    fsdp_config_init(&config);
    config.node_size  = node_size;
    fsdp_context *ctx = open_context(&config);
    for (size_t n = 0; n < N_JOBS; n++) {
        const job *j = &all.jobs[n];

        assert_int_equal(FSDP_OK, carry_out(ctx, j, &user, j->collective == BROADCAST));
        all.expected[node_size][n] = allocate(output_bytes(j));
        memcpy(all.expected[node_size][n], user.out, output_bytes(j));
    }
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
    free(user.in);
    free(user.out);
}

static int find_all_expected(void **state)
{
    const size_t most = (size_t)fsdp_test_size() * MOST_ELEMENTS;

    (void)state;
    all.rank = fsdp_test_rank();
    all.size = fsdp_test_size();
    make_jobs();
    for (size_t d = 0; d < N_OF_DTYPES; d++) {
        all.input[d] = allocate(most_bytes());
        contribute(all.input[d], all.rank, 0, most, DTYPES[d]);
    }
    for (int node_size = 0; node_size < N_NODE_SIZES; node_size++) {
        find_expected(node_size);
    }
    return 0;
}

static int free_all_expected(void **state)
{
    (void)state;
    for (size_t d = 0; d < N_OF_DTYPES; d++) {
        free(all.input[d]);
    }
    for (int node_size = 0; node_size < N_NODE_SIZES; node_size++) {
        for (size_t n = 0; n < N_JOBS; n++) {
            free(all.expected[node_size][n]);
        }
    }
    return 0;
}

/* ---- which algorithm it is ----------------------------------------------------------------------------------------- */

/* How leaders exchange agreements: as they find cheaper, or in one of the two ways. */
static enum { AS_FOUND, IN_ROUNDS, IN_PAIRS } exchange;

static const char *name_on_one_node(const fsdp_context *ctx, const job *j, bool symmetric, bool in_place,
                                    fsdp_algorithm asked)
{
    const bool apart = j->collective != ALLTOALL || !in_place;

    if (asked == FSDP_ALGO_DIRECT && symmetric && apart) {
        return "direct";
    }
    return asked == FSDP_ALGO_CMA && ctx->peers.readable && apart ? "cma" : NULL;
}

static bool has_ring(const job *j)
{
    return j->collective == ALLGATHER || j->collective == BROADCAST;
}

static const char *name_on_many_nodes(const fsdp_context *ctx, const job *j, bool symmetric, fsdp_algorithm asked)
{
    const bool reachable = symmetric || ctx->peers.readable || ctx->nodes.largest == 1;

    if (j->collective ==
        ALLTOALL) { /* what was not asked for pairwise may ride on the agreement where that is in pairs */
        return asked == FSDP_ALGO_RAILS || asked == FSDP_ALGO_STAGED || exchange == IN_ROUNDS ? "pairwise" : NULL;
    }
    if (asked == FSDP_ALGO_RAILS && reachable) {
        return j->collective == BROADCAST ? "mpi" : "rails";
    }
    return asked == FSDP_ALGO_RING && reachable && has_ring(j) ? "ring" : NULL;
}

/* The name of the algorithm that was asked for, if it can serve the call; else NULL. */
static const char *expected_name(const fsdp_context *ctx, const job *j, bool symmetric, bool in_place,
                                 fsdp_algorithm asked)
{
    const bool many = fsdp_node_count(ctx) > 1;

    if (j->count == 0) {
        return NULL;
    }
    if (asked == FSDP_ALGO_STAGED && !(many && j->collective == ALLTOALL)) {
        return "staged";
    }
    if (asked == FSDP_ALGO_HALVES && exchange == IN_PAIRS && many && j->count <= 7 && j->collective == ALLREDUCE) {
        return "halves";
    }
    if (asked == FSDP_ALGO_INLINE && j->count <= 7 && !(many && j->collective == ALLTOALL && exchange != IN_PAIRS)) {
        return "inline";
    }
    return many ? name_on_many_nodes(ctx, j, symmetric, asked) : name_on_one_node(ctx, j, symmetric, in_place, asked);
}

/* ---- comparing ----------------------------------------------------------------------------------------------------- */

static void fail_for(const fsdp_context *ctx, const job *j, const char *memory, bool in_place, const char *what)
{
    fail_msg("rank %d, node_size %d, %s of %zu %s (%s), %s memory%s, by %s: %s", all.rank, ctx->config.node_size,
             NAMES[j->collective], j->count, fsdp_dtype_name(j->dtype), fsdp_redop_name(j->op), memory,
             in_place ? ", in place" : "", fsdp_last_algorithm(ctx), what);
}

static bool guard_stands(const unsigned char *guard)
{
    for (size_t i = 0; i < GUARD_BYTES; i++) {
        if (guard[i] != GUARD) {
            return false;
        }
    }
    return true;
}

static void check(fsdp_context *ctx, size_t number, const places *p, bool in_place, fsdp_algorithm asked)
{
    const job           *j        = &all.jobs[number];
    const char          *memory   = p->symmetric ? "symmetric" : "user";
    const unsigned char *expected = all.expected[ctx->config.node_size][number];
    const char          *name     = expected_name(ctx, j, p->symmetric, in_place, asked);

    if (carry_out(ctx, j, p, in_place) != FSDP_OK) {
        fail_for(ctx, j, memory, in_place, fsdp_last_error(ctx));
    }
    if (memcmp(expected, p->out, output_bytes(j)) != 0) {
        fail_for(ctx, j, memory, in_place, "the result has other bits");
    }
    if (!guard_stands(p->out + guard_offset(j, in_place))) {
        fail_for(ctx, j, memory, in_place, "what stands behind the output was written to");
    }
    if (!in_place && memcmp(input_of(j), p->in, input_bytes(j)) != 0) {
        fail_for(ctx, j, memory, in_place, "the input was written to");
    }
    if (name != NULL && strcmp(name, fsdp_last_algorithm(ctx)) != 0) {
        fail_for(ctx, j, memory, in_place, name);
    }
}

/* Few have a ring, and only the allreduce halves; for others that is the same as no choice. */
static void check_jobs(fsdp_context *ctx, const places *p, fsdp_algorithm asked)
{
    for (size_t n = 0; n < N_JOBS; n++) {
        if ((asked == FSDP_ALGO_RING && !has_ring(&all.jobs[n])) ||
            (asked == FSDP_ALGO_HALVES && all.jobs[n].collective != ALLREDUCE)) {
            continue;
        }
        if (all.jobs[n].collective != BROADCAST) {
            check(ctx, n, p, false, asked);
        }
        check(ctx, n, p, true, asked);
    }
}

static void choose_exchange(fsdp_context *ctx)
{
    if (exchange != AS_FOUND && ctx->nodes.count > 1) {
        ctx->lanes[FSDPI_LANE_SHORT].exchange.in_pairs = exchange == IN_PAIRS;
    }
}

static void check_memories(const fsdp_config *config, fsdp_algorithm asked)
{
    fsdp_context *ctx       = open_context(config);
    const places  user      = {.in = allocate(most_bytes()), .out = allocate(most_bytes())};
    places        symmetric = {.symmetric = true};
    void         *in, *out;

    choose_exchange(ctx);
    assert_int_equal(FSDP_OK, fsdp_buffer_alloc(ctx, FSDP_BUFFER_PER_RANK, most_bytes() + GUARD_BYTES, &in));
    assert_int_equal(FSDP_OK, fsdp_buffer_alloc(ctx, FSDP_BUFFER_PER_RANK, most_bytes() + GUARD_BYTES, &out));
    symmetric.in  = in;
    symmetric.out = out;
    check_jobs(ctx, &symmetric, asked);
    check_jobs(ctx, &user, asked);
    assert_int_equal(FSDP_OK, fsdp_buffer_free(ctx, out));
    assert_int_equal(FSDP_OK, fsdp_buffer_free(ctx, in));
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
    free(user.in);
    free(user.out);
}

static void check_staging(fsdp_config *config, long long staging_bytes, fsdp_algorithm asked)
{
    config->staging_bytes = staging_bytes;
    for (int node_size = 0; node_size < N_NODE_SIZES; node_size++) {
        config->node_size = node_size;
        check_memories(config, asked);
    }
}

static void check_nodes(fsdp_config *config, fsdp_algorithm asked)
{
    check_staging(config, STAGING_BYTES, asked);
}

static fsdp_config config_with(fsdp_algorithm asked)
{
    fsdp_config config;

    fsdp_config_init(&config);
    config.algo_allgather      = (int)asked;
    config.algo_reduce_scatter = (int)asked;
    config.algo_allreduce      = (int)asked;
    config.algo_broadcast      = (int)asked;
    config.algo_reduce         = (int)asked;
    config.algo_alltoall       = (int)asked;
    return config;
}

static void check_override(fsdp_algorithm asked)
{
    fsdp_config config = config_with(asked);

    check_nodes(&config, asked);
}

/* ---- tests --------------------------------------------------------------------------------------------------------- */

static void small_staging_memory_gives_the_same_bits(void **state)
{
    (void)state;
    check_override(FSDP_ALGO_AUTO);
}

static void inline_gives_the_same_bits(void **state)
{
    (void)state;
    check_override(FSDP_ALGO_INLINE);
}

/* With room for all, so that long data travels beside the agreement, and with little. */
static void inline_in_pairs_gives_the_same_bits(void **state)
{
    fsdp_config config = config_with(FSDP_ALGO_INLINE);

    (void)state;
    exchange = IN_PAIRS;
    check_nodes(&config, FSDP_ALGO_INLINE);
    check_staging(&config, LARGE_STAGING_BYTES, FSDP_ALGO_INLINE);
    exchange = AS_FOUND;
}

static void halves_give_the_same_bits(void **state)
{
    fsdp_config config = config_with(FSDP_ALGO_HALVES);

    (void)state;
    exchange = IN_PAIRS;
    check_nodes(&config, FSDP_ALGO_HALVES);
    check_staging(&config, LARGE_STAGING_BYTES, FSDP_ALGO_HALVES);
    exchange = AS_FOUND;
}

static void inline_in_rounds_gives_the_same_bits(void **state)
{
    fsdp_config config = config_with(FSDP_ALGO_INLINE);

    (void)state;
    exchange = IN_ROUNDS;
    check_nodes(&config, FSDP_ALGO_INLINE);
    check_staging(&config, LARGE_STAGING_BYTES, FSDP_ALGO_INLINE);
    exchange = AS_FOUND;
}

static void staged_gives_the_same_bits(void **state)
{
    (void)state;
    check_override(FSDP_ALGO_STAGED);
}

static void direct_gives_the_same_bits(void **state)
{
    (void)state;
    check_override(FSDP_ALGO_DIRECT);
}

static void cma_gives_the_same_bits(void **state)
{
    (void)state;
    check_override(FSDP_ALGO_CMA);
}

static void rails_give_the_same_bits(void **state)
{
    (void)state;
    check_override(FSDP_ALGO_RAILS);
}

static void ring_gives_the_same_bits(void **state)
{
    (void)state;
    check_override(FSDP_ALGO_RING);
}

static void without_cma_the_bits_are_the_same(void **state)
{
    fsdp_config config;

    (void)state;
    fsdp_config_init(&config);
    config.cma = FSDP_CMA_OFF;
    check_nodes(&config, FSDP_ALGO_AUTO);
}

static void short_chunks_give_the_same_bits(void **state)
{
    fsdp_config config = config_with(FSDP_ALGO_RAILS);

    (void)state;
    config.chunk_bytes = 200; /* three cache lines */
    check_nodes(&config, FSDP_ALGO_RAILS);
}

static void without_a_progress_thread_the_bits_are_the_same(void **state)
{
    fsdp_config config;

    (void)state;
    fsdp_config_init(&config);
    config.progress = FSDP_PROGRESS_INLINE;
    check_nodes(&config, FSDP_ALGO_AUTO);
}

static void with_a_progress_thread_the_bits_are_the_same(void **state)
{
    int         provided;
    fsdp_config config;

    (void)state;
    MPI_Query_thread(&provided);
    if (provided < MPI_THREAD_MULTIPLE) {
        skip();
    }
    fsdp_config_init(&config);
    config.progress = FSDP_PROGRESS_THREAD;
    check_nodes(&config, FSDP_ALGO_AUTO);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_staging_memory_gives_the_same_bits),
        cmocka_unit_test(inline_gives_the_same_bits),
        cmocka_unit_test(inline_in_pairs_gives_the_same_bits),
        cmocka_unit_test(halves_give_the_same_bits),
        cmocka_unit_test(inline_in_rounds_gives_the_same_bits),
        cmocka_unit_test(staged_gives_the_same_bits),
        cmocka_unit_test(direct_gives_the_same_bits),
        cmocka_unit_test(cma_gives_the_same_bits),
        cmocka_unit_test(rails_give_the_same_bits),
        cmocka_unit_test(ring_gives_the_same_bits),
        cmocka_unit_test(without_cma_the_bits_are_the_same),
        cmocka_unit_test(short_chunks_give_the_same_bits),
        cmocka_unit_test(without_a_progress_thread_the_bits_are_the_same),
        cmocka_unit_test(with_a_progress_thread_the_bits_are_the_same),
    };

    return fsdp_test_main(argc, argv, tests, find_all_expected, free_all_expected);
}
