/*
 * A node whose ranks hear of each other in groups, beside the same ranks without: the same bits, the same errors, and the
 * names of those that keep the others waiting. On any number of ranks; with 64 it is a node that has groups by itself.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fsdp/buffer.h"
#include "lib/context/context.h"
#include "tests/collectives/collective_test.h"

enum { AS_FOUND = 0, NONE = 1, MANY_RANKS = 32, STAGING_BYTES = 64 << 10, MOST = 20011 };

/* FSDP_NODE_GROUP of the contexts that are compared, and how many ranks they take for a node: 0 is all. */
static const struct {
    int group, node_size;
} SHAPES[] = {{NONE, 0}, {AS_FOUND, 0}, {2, 0}, {3, 0}, {NONE, 4}, {2, 4}};
enum { N_SHAPES = sizeof SHAPES / sizeof SHAPES[0], N_ON_ONE_NODE = 4 };

static fsdp_context *open_shape(size_t shape)
{
    fsdp_config   config;
    fsdp_context *ctx;

    fsdp_config_init(&config);
    config.node_group    = SHAPES[shape].group;
    config.node_size     = SHAPES[shape].node_size;
    config.staging_bytes = STAGING_BYTES;
    config.log_level     = FSDP_LOG_OFF;
    assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_WORLD, &config, &ctx));
    return ctx;
}

/* A large job has enough of some. */
static bool is_left_out(size_t shape)
{
    return fsdp_test_size() > MANY_RANKS && (SHAPES[shape].node_size > 0 || SHAPES[shape].group > 2);
}

static void settings_decide_who_hears_whom(void **state)
{
    (void)state;
    for (size_t s = 0; s < N_SHAPES; s++) {
        if (is_left_out(s)) {
            continue;
        }
        fsdp_context        *ctx  = open_shape(s);
        const int            size = ctx->nodes.size;
        const fsdpi_mailbox *box  = &ctx->lanes[FSDPI_LANE_SHORT].box;

        assert_int_equal(fsdpi_tree_is_needed(size, SHAPES[s].group), fsdpi_mailbox_has_tree(box));
        if (fsdpi_mailbox_has_tree(box) && SHAPES[s].group > 1 && ctx->nodes.position % SHAPES[s].group > 0) {
            assert_int_equal(0, box->tree.n);
            assert_int_equal(ctx->nodes.position / SHAPES[s].group * SHAPES[s].group, box->tree.above);
        }
        assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
    }
}

/* ---- the same bits --------------------------------------------------------------------------------------------------- */

static const size_t LENGTHS[] = {1, 7, 1009, MOST};
enum { N_LENGTHS = sizeof LENGTHS / sizeof LENGTHS[0] };

static void check_allreduce(fsdp_context *ctx, float *in, float *out, size_t n, const float *expected)
{
    contribute(in, fsdp_rank(ctx), 0, n, FSDP_F32);
    assert_int_equal(FSDP_OK, fsdp_allreduce(ctx, in, out, n, FSDP_F32, FSDP_SUM));
    assert_same(expected, out, n, FSDP_F32);
    assert_int_equal(FSDP_OK, fsdp_allreduce(ctx, FSDP_IN_PLACE, in, n, FSDP_F32, FSDP_SUM));
    assert_same(expected, in, n, FSDP_F32);
}

static void check_reduce_scatter(fsdp_context *ctx, float *in, float *out, size_t n, const float *expected)
{
    const size_t part = n / (size_t)fsdp_size(ctx);

    contribute(in, fsdp_rank(ctx), 0, n, FSDP_F32);
    assert_int_equal(FSDP_OK, fsdp_reduce_scatter(ctx, in, out, part, FSDP_F32, FSDP_SUM));
    assert_same(expected + (size_t)fsdp_rank(ctx) * part, out, part, FSDP_F32);
}

static void check_allgather(fsdp_context *ctx, float *in, float *out, size_t n)
{
    const size_t part = n / (size_t)fsdp_size(ctx);

    contribute(in, fsdp_rank(ctx), 0, part, FSDP_F32);
    assert_int_equal(FSDP_OK, fsdp_allgather(ctx, in, out, part, FSDP_F32));
    for (int r = 0; r < fsdp_size(ctx); r++) {
        contribute(in, r, 0, part, FSDP_F32);
        assert_same(in, out + (size_t)r * part, part, FSDP_F32);
    }
}

static void check_broadcast(fsdp_context *ctx, float *out, size_t n, const float *expected)
{
    const int root = fsdp_size(ctx) - 1;

    memset(out, 0, n * sizeof *out);
    if (fsdp_rank(ctx) == root) {
        memcpy(out, expected, n * sizeof *out);
    }
    assert_int_equal(FSDP_OK, fsdp_broadcast(ctx, out, n, FSDP_F32, root));
    assert_same(expected, out, n, FSDP_F32);
}

/* The sums of a context without groups are those of all others on the same nodes. */
static void check_collectives(fsdp_context *ctx, float *in, float *out, float *const *expected)
{
    for (size_t i = 0; i < N_LENGTHS; i++) {
        check_allreduce(ctx, in, out, LENGTHS[i], expected[i]);
        check_reduce_scatter(ctx, in, out, LENGTHS[i], expected[i]);
        check_allgather(ctx, in, out, LENGTHS[i]);
        check_broadcast(ctx, out, LENGTHS[i], expected[i]);
        assert_int_equal(FSDP_OK, fsdp_barrier(ctx));
    }
}

static float *sums_of(fsdp_context *ctx, size_t n)
{
    float *sums = guarded_alloc(n, FSDP_F32);

    contribute(sums, fsdp_rank(ctx), 0, n, FSDP_F32);
    assert_int_equal(FSDP_OK, fsdp_allreduce(ctx, FSDP_IN_PLACE, sums, n, FSDP_F32, FSDP_SUM));
    return sums;
}

static void check_in_all_memory(size_t shape, float *const *expected)
{
    fsdp_context *ctx = open_shape(shape);
    float        *in = guarded_alloc(MOST, FSDP_F32), *out = guarded_alloc(MOST, FSDP_F32);
    void         *own, *result;

    assert_int_equal(FSDP_OK, fsdp_buffer_alloc(ctx, FSDP_BUFFER_PER_RANK, MOST * sizeof(float), &own));
    assert_int_equal(FSDP_OK, fsdp_buffer_alloc(ctx, FSDP_BUFFER_PER_RANK, MOST * sizeof(float), &result));
    check_collectives(ctx, in, out, expected);
    check_collectives(ctx, own, result, expected);
    assert_int_equal(FSDP_OK, fsdp_buffer_free(ctx, own));
    assert_int_equal(FSDP_OK, fsdp_buffer_free(ctx, result));
    guarded_free(in);
    guarded_free(out);
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

static void groups_change_no_bit(void **state)
{
    float *expected[N_LENGTHS];

    (void)state;
    for (size_t s = 0; s < N_SHAPES; s++) {
        if (is_left_out(s)) {
            continue;
        }
        if (SHAPES[s].group == NONE) {
            fsdp_context *ctx = open_shape(s);
            for (size_t i = 0; i < N_LENGTHS; i++) {
                if (s > 0) {
                    guarded_free(expected[i]);
                }
                expected[i] = sums_of(ctx, LENGTHS[i]);
            }
            assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
        }
        check_in_all_memory(s, expected);
    }
    for (size_t i = 0; i < N_LENGTHS; i++) {
        guarded_free(expected[i]);
    }
}

/* Where one rank gives another place of the node's one buffer, it gets its result there all the same. */
static void an_output_of_the_node_may_be_at_different_places(void **state)
{
    fsdp_context *ctx  = open_shape(2);
    const size_t  size = (size_t)fsdp_size(ctx), rank = (size_t)fsdp_rank(ctx), part = 1009, whole = size * part;
    void         *memory;
    float        *in = guarded_alloc(part, FSDP_F32), *wanted = guarded_alloc(part, FSDP_F32);

    (void)state;
    assert_int_equal(FSDP_OK, fsdp_buffer_alloc(ctx, FSDP_BUFFER_PER_NODE, 2 * whole * sizeof(float), &memory));
    contribute(in, (int)rank, 0, part, FSDP_F32);
    for (int apart = 0; apart < 2; apart++) {
        float *out = (float *)memory + (apart == 1 && rank + 1 == size ? whole : 0);
        assert_int_equal(FSDP_OK, fsdp_allgather(ctx, in, out, part, FSDP_F32));
        for (size_t r = 0; r < size; r++) {
            contribute(wanted, (int)r, 0, part, FSDP_F32);
            assert_same(wanted, out + r * part, part, FSDP_F32);
        }
        assert_int_equal(FSDP_OK, fsdp_barrier(ctx));
    }
    assert_int_equal(FSDP_OK, fsdp_buffer_free(ctx, memory));
    guarded_free(in);
    guarded_free(wanted);
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

/* ---- the same errors ------------------------------------------------------------------------------------------------- */

static void a_call_that_differs_is_found_through_all_groups(void **state)
{
    (void)state;
    for (size_t s = 0; s < N_SHAPES; s++) {
        if (is_left_out(s) || fsdp_test_size() == 1) {
            continue;
        }
        fsdp_context *ctx  = open_shape(s);
        const int     size = fsdp_size(ctx), odds[] = {0, size / 2, size - 1};
        int32_t       values[2];

        for (size_t i = 0; i < 3; i++) {
            const bool odd = fsdp_rank(ctx) == odds[i];

            values[0] = values[1] = 1;
            assert_int_equal(FSDP_ERR_MISMATCH,
                             fsdp_allreduce(ctx, FSDP_IN_PLACE, values, odd ? 2 : 1, FSDP_I32, FSDP_SUM));
            assert_int_equal(FSDP_ERR_ARG,
                             fsdp_allreduce(ctx, FSDP_IN_PLACE, odd ? NULL : values, 1, FSDP_I32, FSDP_SUM));
            assert_int_equal(FSDP_OK, fsdp_allreduce(ctx, FSDP_IN_PLACE, values, 1, FSDP_I32, FSDP_SUM));
            assert_int_equal(size, values[0]);
        }
        assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
    }
}

/* ---- who keeps the others waiting ------------------------------------------------------------------------------------ */

/* A context of the least patience in which it can be opened. Operations advance inside calls only. */
static fsdp_context *impatient_context(int group, int node_size)
{
    fsdp_config   config;
    fsdp_context *ctx;

    fsdp_config_init(&config);
    config.node_group = group;
    config.node_size  = node_size;
    config.progress   = FSDP_PROGRESS_INLINE;
    config.log_level  = FSDP_LOG_OFF;
    for (config.timeout_s = 1;; config.timeout_s *= 2) {
        assert_true(config.timeout_s < 300);
        MPI_Barrier(MPI_COMM_WORLD);
        int failed = fsdp_init(MPI_COMM_WORLD, &config, &ctx) != FSDP_OK;
        MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        if (!failed) {
            return ctx;
        }
        (void)fsdp_finalize(ctx);
    }
}

/* The last rank stays away until the others have given up. All name it. */
static void ranks_that_stay_away_are_named(int group, int node_size)
{
    fsdp_context *ctx  = impatient_context(group, node_size);
    const int     last = fsdp_size(ctx) - 1;
    int32_t       one  = 1;
    char          words[64];

    (void)snprintf(words, sizeof words, "rank %d does not answer;", last);
    if (fsdp_rank(ctx) != last) {
        assert_int_equal(FSDP_ERR_TIMEOUT, fsdp_allreduce(ctx, FSDP_IN_PLACE, &one, 1, FSDP_I32, FSDP_SUM));
        assert_says(ctx, words);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (fsdp_rank(ctx) == last) {
        assert_int_equal(FSDP_ERR_TIMEOUT, fsdp_barrier(ctx));
    }
    assert_int_equal(FSDP_ERR_TIMEOUT, fsdp_finalize(ctx));
}

static void a_rank_of_a_group_that_stays_away_is_named(void **state)
{
    (void)state;
    if (fsdp_test_size() == 1 || fsdp_test_size() > MANY_RANKS) {
        skip();
    }
    ranks_that_stay_away_are_named(2, 0);
    ranks_that_stay_away_are_named(2, 4);
}

/* The head of the last group of 2 makes its call, and then nothing more. */
static void a_rank_that_passes_nothing_on_is_named(void **state)
{
    const int     size = fsdp_test_size(), head = (size - 2) / 2 * 2;
    fsdp_request *request;
    char          words[64];

    (void)state;
    if (size < 4 || size > MANY_RANKS) {
        skip();
    }
    fsdp_context *ctx = impatient_context(2, 0);
    (void)snprintf(words, sizeof words, "rank %d does not answer;", head);
    if (fsdp_rank(ctx) == head) {
        assert_int_equal(FSDP_OK, fsdp_ibarrier(ctx, &request));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (fsdp_rank(ctx) != head) {
        assert_int_equal(FSDP_ERR_TIMEOUT, fsdp_barrier(ctx));
        assert_says(ctx, words);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (fsdp_rank(ctx) == head) {
        (void)fsdp_wait(request); /* it may find all others' calls, or give up */
    }
    (void)fsdp_finalize(ctx);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(settings_decide_who_hears_whom),
        cmocka_unit_test(groups_change_no_bit),
        cmocka_unit_test(an_output_of_the_node_may_be_at_different_places),
        cmocka_unit_test(a_call_that_differs_is_found_through_all_groups),
        cmocka_unit_test(a_rank_of_a_group_that_stays_away_is_named),
        cmocka_unit_test(a_rank_that_passes_nothing_on_is_named),
    };

    return fsdp_test_main(argc, argv, tests, NULL, NULL);
}
