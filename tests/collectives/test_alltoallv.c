/*
 * Alltoallv against MPI's own: random counts with empty blocks, gaps between blocks, in place, several at once, with peers' memory
 * that can be read and that cannot, and with blocks that ride on the agreement wherever they can.
 */
#include <stdlib.h>
#include <string.h>

#include "fsdp/algorithms.h"
#include "fsdp/buffer.h"
#include "fsdp/collectives.h"
#include "tests/support/mpi_test.h"

enum { MOST_RANKS = 8, MOST = 700, ROOM = MOST_RANKS * (MOST + 3), BIG = 90001 };

typedef struct lists {
    size_t counts[2][MOST_RANKS], places[2][MOST_RANKS]; /* of input and output */
    int    mpi_counts[2][MOST_RANKS], mpi_places[2][MOST_RANKS];
} lists;

enum { IN, OUT };

/* A number that all ranks know of a pair: many are 0. */
static size_t count_between(unsigned seed, int from, int to, size_t most)
{
    uint64_t x = (uint64_t)seed * 1000003U + (uint64_t)from * 131U + (uint64_t)to * 31U + 7U;

    x ^= x >> 15;
    x *= 0x9e3779b97f4a7c15U;
    x ^= x >> 31;
    return x % 4 == 0 ? 0 : (size_t)(x % (most + 1));
}

static void place_blocks(lists *l, int side, size_t gap, int backwards)
{
    size_t at = 0;

    for (int k = 0; k < fsdp_test_size(); k++) {
        const int r = backwards ? fsdp_test_size() - 1 - k : k;

        l->places[side][r]     = at;
        l->mpi_counts[side][r] = (int)l->counts[side][r];
        l->mpi_places[side][r] = (int)at;
        at += l->counts[side][r] + gap;
    }
}

static void draw(lists *l, unsigned seed, size_t most, size_t gap)
{
    memset(l, 0, sizeof *l);
    for (int r = 0; r < fsdp_test_size(); r++) {
        l->counts[IN][r]  = count_between(seed, fsdp_test_rank(), r, most);
        l->counts[OUT][r] = count_between(seed, r, fsdp_test_rank(), most);
    }
    place_blocks(l, IN, gap, seed % 2 == 1);
    place_blocks(l, OUT, gap, seed % 3 == 1);
}

static fsdp_status call(fsdp_context *ctx, const lists *l, const void *in, void *out, fsdp_dtype dtype)
{
    return fsdp_alltoallv(ctx, in, l->counts[IN], l->places[IN], out, l->counts[OUT], l->places[OUT], dtype);
}

static void fill(int32_t *values, size_t n, unsigned seed)
{
    for (size_t i = 0; i < n; i++) {
        values[i] = (int32_t)(i * 7 + (size_t)fsdp_test_rank() * 100003 + seed);
    }
}

static void check(fsdp_context *ctx, unsigned seed, size_t gap, int32_t *in, int32_t *out)
{
    static int32_t expected[ROOM];
    lists          l;

    draw(&l, seed, MOST, gap);
    fill(in, ROOM, seed);
    memset(out, 0x5a, ROOM * sizeof *out);
    memset(expected, 0x5a, sizeof expected);
    assert_int_equal(MPI_SUCCESS, MPI_Alltoallv(in, l.mpi_counts[IN], l.mpi_places[IN], MPI_INT32_T, expected,
                                                l.mpi_counts[OUT], l.mpi_places[OUT], MPI_INT32_T, MPI_COMM_WORLD));
    assert_int_equal(FSDP_OK, call(ctx, &l, in, out, FSDP_I32));
    assert_memory_equal(expected, out, sizeof expected);
}

static void blocks_of_any_size_come_as_with_mpi(void **state)
{
    static int32_t in[ROOM], out[ROOM];

    for (unsigned seed = 0; seed < 24; seed++) {
        check(*state, seed, seed % 4, in, out);
    }
}

static void symmetric_buffers_serve_as_well(void **state)
{
    fsdp_context *ctx = *state;
    void         *in, *out;

    assert_int_equal(FSDP_OK, fsdp_buffer_alloc(ctx, FSDP_BUFFER_PER_RANK, ROOM * sizeof(int32_t), &in));
    assert_int_equal(FSDP_OK, fsdp_buffer_alloc(ctx, FSDP_BUFFER_PER_RANK, ROOM * sizeof(int32_t), &out));
    for (unsigned seed = 100; seed < 108; seed++) {
        check(ctx, seed, seed % 3, in, out);
    }
    assert_int_equal(FSDP_OK, fsdp_buffer_free(ctx, in));
    assert_int_equal(FSDP_OK, fsdp_buffer_free(ctx, out));
}

/* More than a step copies at a time, and in many messages. */
static void long_blocks_come_whole(void **state)
{
    const int size = fsdp_test_size();
    int64_t  *in = malloc((size_t)size * BIG * sizeof *in), *out = malloc((size_t)size * BIG * sizeof *out);
    lists     l;

    memset(&l, 0, sizeof l);
    for (int r = 0; r < size; r++) {
        l.counts[IN][r]  = BIG - (size_t)r;
        l.counts[OUT][r] = BIG - (size_t)fsdp_test_rank();
    }
    place_blocks(&l, IN, 0, 0);
    place_blocks(&l, OUT, 0, 1);
    for (int r = 0; r < size; r++) {
        for (size_t i = 0; i < l.counts[IN][r]; i++) {
            in[l.places[IN][r] + i] = (int64_t)(i + 1000000U * (size_t)r) * 8 + fsdp_test_rank();
        }
    }
    assert_int_equal(FSDP_OK, call(*state, &l, in, out, FSDP_I64));
    for (int r = 0; r < size; r++) {
        for (size_t i = 0; i < l.counts[OUT][r]; i++) {
            assert_true(out[l.places[OUT][r] + i] == (int64_t)(i + 1000000U * (size_t)fsdp_test_rank()) * 8 + r);
        }
    }
    free(in);
    free(out);
}

/* The same number in both directions, as MPI wants it. */
static void blocks_are_replaced_in_place(void **state)
{
    static int32_t mine[ROOM], expected[ROOM];
    lists          l;

    for (unsigned seed = 0; seed < 6; seed++) {
        memset(&l, 0, sizeof l);
        for (int r = 0; r < fsdp_test_size(); r++) {
            const int low = r < fsdp_test_rank() ? r : fsdp_test_rank(), high = r + fsdp_test_rank() - low;

            l.counts[OUT][r] = count_between(seed, low, high, MOST);
        }
        place_blocks(&l, OUT, seed % 3, 0);
        fill(mine, ROOM, seed);
        memcpy(expected, mine, sizeof mine);
        assert_int_equal(MPI_SUCCESS, MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_INT32_T, expected, l.mpi_counts[OUT],
                                                    l.mpi_places[OUT], MPI_INT32_T, MPI_COMM_WORLD));
        assert_int_equal(
            FSDP_OK, fsdp_alltoallv(*state, FSDP_IN_PLACE, NULL, NULL, mine, l.counts[OUT], l.places[OUT], FSDP_I32));
        assert_memory_equal(expected, mine, sizeof mine);
    }
}

static void several_may_be_under_way(void **state)
{
    enum { N = 4 };
    static int32_t in[N][ROOM], out[N][ROOM], expected[ROOM];
    static lists   l[N];
    fsdp_request  *requests[N], *sum;
    float          one = 1.0F;

    for (unsigned k = 0; k < N; k++) {
        draw(&l[k], 50 + k, MOST, 1);
        fill(in[k], ROOM, k);
        memset(out[k], 0x5a, sizeof out[k]);
        assert_int_equal(FSDP_OK, fsdp_ialltoallv(*state, in[k], l[k].counts[IN], l[k].places[IN], out[k],
                                                  l[k].counts[OUT], l[k].places[OUT], FSDP_I32, &requests[k]));
    }
    assert_int_equal(FSDP_OK, fsdp_iallreduce(*state, FSDP_IN_PLACE, &one, 1, FSDP_F32, FSDP_SUM, &sum));
    assert_int_equal(FSDP_OK, fsdp_wait(sum));
    assert_true(one == (float)fsdp_test_size());
    assert_int_equal(FSDP_OK, fsdp_wait_all(N, requests));
    for (unsigned k = 0; k < N; k++) {
        memset(expected, 0x5a, sizeof expected);
        MPI_Alltoallv(in[k], l[k].mpi_counts[IN], l[k].mpi_places[IN], MPI_INT32_T, expected, l[k].mpi_counts[OUT],
                      l[k].mpi_places[OUT], MPI_INT32_T, MPI_COMM_WORLD);
        assert_memory_equal(expected, out[k], sizeof expected);
    }
}

/* One more than expected, and one less, of one pair, and both of two: all ranks are told of it, and the next call is good. */
static void counts_that_differ_are_an_error_on_all_ranks(void **state)
{
    static const size_t expected[3][2] = {{6, 5}, {4, 5}, {6, 4}}; /* by the last rank, of ranks 0 and 1 */
    static int32_t      in[ROOM], out[ROOM];
    const int           last = fsdp_test_size() - 1;
    lists               l;

    for (int k = 0; k < 3; k++) {
        memset(&l, 0, sizeof l);
        for (int r = 0; r <= last; r++) {
            l.counts[IN][r]  = 5;
            l.counts[OUT][r] = r < 2 && fsdp_test_rank() == last ? expected[k][r] : 5;
        }
        place_blocks(&l, IN, 3, 0);
        place_blocks(&l, OUT, 3, 0);
        assert_int_equal(FSDP_ERR_MISMATCH, call(*state, &l, in, out, FSDP_I32));
        assert_says(*state, "sends 5 elements to rank");
        assert_says(*state, k == 1 ? "which expects 4; give both the same count" : "which expects 6; give");
        check(*state, 7, 1, in, out);
    }
}

static void nothing_at_all_may_be_sent(void **state)
{
    const size_t none[MOST_RANKS] = {0};

    assert_int_equal(FSDP_OK, fsdp_alltoallv(*state, NULL, none, none, NULL, none, none, FSDP_F32));
    assert_int_equal(FSDP_OK, fsdp_alltoallv(*state, FSDP_IN_PLACE, NULL, NULL, NULL, none, none, FSDP_F32));
}

/* On the last rank alone; the others' arguments are good. */
static void a_wrong_argument_on_one_rank_fails_on_all(void **state)
{
    static const char *const words[] = {"the send counts are NULL",    "the receive displacements are NULL",
                                        "is no element type",          "input buffer is NULL",
                                        "the output must be a buffer", "overlap",
                                        "overflow in bytes",           "element type"};
    static int32_t           in[ROOM], out[ROOM];
    const int                bad = fsdp_test_rank() == fsdp_test_size() - 1;
    lists                    l, huge;

    draw(&l, 3, MOST, 0);
    l.counts[IN][fsdp_test_rank()] = l.counts[OUT][fsdp_test_rank()] = 3;
    place_blocks(&l, IN, 0, 0);
    place_blocks(&l, OUT, 0, 0);
    huge                              = l;
    huge.places[IN][fsdp_test_rank()] = SIZE_MAX - 1;
    for (size_t k = 0; k < 7; k++) {
        const int     wrong = bad ? (int)k : -1;
        const size_t *send = wrong == 0 ? NULL : l.counts[IN], *to = wrong == 6 ? huge.places[IN] : l.places[IN];
        const size_t *at = wrong == 1 ? NULL : l.places[OUT];

        assert_int_equal(FSDP_ERR_ARG, fsdp_alltoallv(*state,
                                                      wrong == 3   ? NULL
                                                      : wrong == 5 ? out
                                                                   : in,
                                                      send, to, wrong == 4 ? FSDP_IN_PLACE : (void *)out, l.counts[OUT],
                                                      at, wrong == 2 ? (fsdp_dtype)77 : FSDP_I32));
        assert_says(*state, words[k]);
    }
    check(*state, 8, 0, in, out);
}

static void types_that_differ_are_named(void **state)
{
    static int32_t in[ROOM], out[ROOM];
    const size_t   none[MOST_RANKS] = {0};

    if (fsdp_test_size() > 1) {
        assert_int_equal(FSDP_ERR_MISMATCH, fsdp_alltoallv(*state, in, none, none, out, none, none,
                                                           fsdp_test_rank() == 0 ? FSDP_F32 : FSDP_I32));
        assert_says(*state, "fsdp_alltoallv");
    }
    assert_int_equal(FSDP_ERR_ARG, fsdp_ialltoallv(*state, in, none, none, out, none, none, FSDP_F32, NULL));
    assert_int_equal(FSDP_ERR_ARG, fsdp_alltoallv(NULL, in, none, none, out, none, none, FSDP_F32));
}

/* More than four nodes may agree in another way. */
static void short_blocks_ride_on_the_agreement(void **state)
{
    static int32_t in[ROOM], out[ROOM];

    check(*state, 9, 1, in, out);
    if (fsdp_node_count(*state) <= 4) {
        assert_string_equal("inline", fsdp_last_algorithm(*state));
    }
}

/* All ranks send to the last one. */
static void nobodys_blocks_ride_where_one_is_long(void **state)
{
    enum { LONG = 1 << 20, SHORT = 3 };
    const int    size = fsdp_test_size(), last = size - 1;
    const size_t room = LONG + SHORT * (size_t)size;
    int32_t     *in = calloc(room, sizeof *in), *out = calloc(room, sizeof *out);
    lists        l;

    memset(&l, 0, sizeof l);
    l.counts[IN][last] = fsdp_test_rank() == 0 ? LONG : SHORT;
    for (int r = 0; r < size && fsdp_test_rank() == last; r++) {
        l.counts[OUT][r] = r == 0 ? LONG : SHORT;
    }
    place_blocks(&l, IN, 0, 0);
    place_blocks(&l, OUT, 0, 0);
    for (size_t i = 0; i < l.counts[IN][last]; i++) {
        in[i] = fsdp_test_rank() + 1;
    }
    assert_int_equal(FSDP_OK, call(*state, &l, in, out, FSDP_I32));
    assert_string_equal("pairwise", fsdp_last_algorithm(*state));
    for (int r = 0; r < size && fsdp_test_rank() == last; r++) {
        assert_int_equal(r + 1, out[l.places[OUT][r]]);
        assert_int_equal(r + 1, out[l.places[OUT][r] + l.counts[OUT][r] - 1]);
    }
    free(in);
    free(out);
}

/* The same tests in contexts of other settings. */
static int open_with(void **state, int node_size, int cma, int progress, int asked)
{
    fsdp_config   config;
    fsdp_context *ctx;

    fsdp_config_init(&config);
    config.node_size     = node_size;
    config.cma           = cma;
    config.progress      = progress;
    config.algo_alltoall = asked;
    *state               = NULL;
    if (fsdp_init(MPI_COMM_WORLD, &config, &ctx) != FSDP_OK) {
        return -1;
    }
    *state = ctx;
    return 0;
}

static int open_plain(void **state)
{
    return open_with(state, FSDP_UNSET, FSDP_UNSET, FSDP_UNSET, FSDP_ALGO_AUTO);
}

static int open_plain_inline(void **state)
{
    return open_with(state, FSDP_UNSET, FSDP_UNSET, FSDP_UNSET, FSDP_ALGO_INLINE);
}

static int open_without_reading(void **state)
{
    return open_with(state, FSDP_UNSET, FSDP_CMA_OFF, FSDP_PROGRESS_INLINE, FSDP_ALGO_STAGED);
}

static int open_nodes_of_1(void **state)
{
    return open_with(state, 1, FSDP_UNSET, FSDP_UNSET, FSDP_ALGO_AUTO);
}

static int open_nodes_of_1_inline(void **state)
{
    return open_with(state, 1, FSDP_UNSET, FSDP_UNSET, FSDP_ALGO_INLINE);
}

static int open_nodes_of_2(void **state)
{
    return open_with(state, 2, FSDP_UNSET, FSDP_PROGRESS_INLINE, FSDP_ALGO_STAGED);
}

static int open_nodes_of_2_inline(void **state)
{
    return open_with(state, 2, FSDP_UNSET, FSDP_PROGRESS_INLINE, FSDP_ALGO_INLINE);
}

static int close_context(void **state)
{
    return fsdp_finalize(*state) == FSDP_OK ? 0 : -1;
}

int main(int argc, char **argv)
{
#define IN_ALL(test)                                                                                                   \
    cmocka_unit_test_setup_teardown(test, open_plain, close_context),                                                  \
        cmocka_unit_test_setup_teardown(test, open_without_reading, close_context),                                    \
        cmocka_unit_test_setup_teardown(test, open_nodes_of_1, close_context),                                         \
        cmocka_unit_test_setup_teardown(test, open_nodes_of_2, close_context),                                         \
        cmocka_unit_test_setup_teardown(test, open_nodes_of_1_inline, close_context),                                  \
        cmocka_unit_test_setup_teardown(test, open_nodes_of_2_inline, close_context)
    const struct CMUnitTest tests[] = {
        IN_ALL(blocks_of_any_size_come_as_with_mpi),
        IN_ALL(symmetric_buffers_serve_as_well),
        IN_ALL(long_blocks_come_whole),
        IN_ALL(blocks_are_replaced_in_place),
        IN_ALL(several_may_be_under_way),
        IN_ALL(counts_that_differ_are_an_error_on_all_ranks),
        IN_ALL(nothing_at_all_may_be_sent),
        IN_ALL(a_wrong_argument_on_one_rank_fails_on_all),
        IN_ALL(types_that_differ_are_named),
        IN_ALL(nobodys_blocks_ride_where_one_is_long),
        cmocka_unit_test_setup_teardown(short_blocks_ride_on_the_agreement, open_plain_inline, close_context),
        cmocka_unit_test_setup_teardown(short_blocks_ride_on_the_agreement, open_nodes_of_1_inline, close_context),
        cmocka_unit_test_setup_teardown(short_blocks_ride_on_the_agreement, open_nodes_of_2_inline, close_context),
    };

    return fsdp_test_main(argc, argv, tests, NULL, NULL);
}
