/* The least staging memory that FSDP_STAGING_BYTES accepts, for any number of nodes. In soak there are 64 of one rank. */
#include <mpi.h>
#include <stdint.h>

#include "fsdp/fsdp.h"
#include "tests/support/mpi_test.h"

enum { LEAST = 4096, MOST_RANKS = 64, MOST = 3 /* elements of a rank: more than a record's payload at 64 */ };

static fsdp_context *open_with(fsdp_algorithm asked)
{
    fsdp_context *ctx;
    fsdp_config   config;

    fsdp_config_init(&config);
    config.node_size           = 1;
    config.staging_bytes       = LEAST;
    config.algo_allgather      = (int)asked;
    config.algo_reduce_scatter = (int)asked;
    config.algo_allreduce      = (int)asked;
    config.algo_broadcast      = (int)asked;
    config.algo_reduce         = (int)asked;
    assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_WORLD, &config, &ctx));
    assert_int_equal(fsdp_size(ctx), fsdp_node_count(ctx));
    return ctx;
}

/* Of a rank; sums of these are exact. */
static double value(int rank, int i)
{
    return (double)(rank * 31 + i);
}

static double sum(int size, int i)
{
    return 31.0 * size * (size - 1) / 2 + (double)size * i;
}

static void check_gather(fsdp_context *ctx, int count)
{
    static double mine[MOST], all[MOST_RANKS * MOST];

    for (int i = 0; i < count; i++) {
        mine[i] = value(fsdp_rank(ctx), i);
    }
    assert_int_equal(FSDP_OK, fsdp_allgather(ctx, mine, all, (size_t)count, FSDP_F64));
    for (int r = 0; r < fsdp_size(ctx); r++) {
        for (int i = 0; i < count; i++) {
            assert_true(all[r * count + i] == value(r, i));
        }
    }
}

static void check_scatter(fsdp_context *ctx, int count)
{
    static double all[MOST_RANKS * MOST], mine[MOST];
    const int     whole = count * fsdp_size(ctx);

    for (int i = 0; i < whole; i++) {
        all[i] = value(fsdp_rank(ctx), i);
    }
    assert_int_equal(FSDP_OK, fsdp_reduce_scatter(ctx, all, mine, (size_t)count, FSDP_F64, FSDP_SUM));
    for (int i = 0; i < count; i++) {
        assert_true(mine[i] == sum(fsdp_size(ctx), fsdp_rank(ctx) * count + i));
    }
}

static void check_reductions(fsdp_context *ctx, int count)
{
    double    in[MOST], out[MOST] = {0};
    const int root = fsdp_size(ctx) - 1;

    for (int i = 0; i < count; i++) {
        in[i] = value(fsdp_rank(ctx), i);
    }
    assert_int_equal(FSDP_OK, fsdp_allreduce(ctx, in, out, (size_t)count, FSDP_F64, FSDP_SUM));
    for (int i = 0; i < count; i++) {
        assert_true(out[i] == sum(fsdp_size(ctx), i));
    }
    assert_int_equal(FSDP_OK, fsdp_reduce(ctx, in, out, (size_t)count, FSDP_F64, FSDP_MAX, root));
    for (int i = 0; i < count && fsdp_rank(ctx) == root; i++) {
        assert_true(out[i] == value(root, i));
    }
    assert_int_equal(FSDP_OK, fsdp_broadcast(ctx, in, (size_t)count, FSDP_F64, root));
    for (int i = 0; i < count; i++) {
        assert_true(in[i] == value(root, i));
    }
}

static void check_alltoall(fsdp_context *ctx, int count)
{
    static double in[MOST_RANKS * MOST], out[MOST_RANKS * MOST];
    const int     whole = count * fsdp_size(ctx), mine = fsdp_rank(ctx) * count;

    for (int i = 0; i < whole; i++) {
        in[i] = value(fsdp_rank(ctx), i);
    }
    assert_int_equal(FSDP_OK, fsdp_alltoall(ctx, in, out, (size_t)count, FSDP_F64));
    for (int i = 0; i < whole; i++) {
        assert_true(out[i] == value(i / count, mine + i % count));
    }
}

static void check(fsdp_algorithm asked)
{
    fsdp_context *ctx = open_with(asked);

    for (int count = 0; count <= MOST; count += MOST) {
        check_gather(ctx, count);
        check_scatter(ctx, count);
        check_reductions(ctx, count);
        check_alltoall(ctx, count);
    }
    assert_int_equal(FSDP_OK, fsdp_barrier(ctx));
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

static void the_chosen_algorithms_work(void **state)
{
    (void)state;
    check(FSDP_ALGO_AUTO);
}

static void staged_works(void **state)
{
    (void)state;
    check(FSDP_ALGO_STAGED);
}

static void rails_work(void **state)
{
    (void)state;
    check(FSDP_ALGO_RAILS);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_chosen_algorithms_work),
        cmocka_unit_test(staged_works),
        cmocka_unit_test(rails_work),
    };

    return fsdp_test_main(argc, argv, tests, NULL, NULL);
}
