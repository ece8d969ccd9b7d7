/* Vectors of some MiB between nodes, in chunks as the link suggests: long enough that MPI asks the receiver of each. */
#include <stdlib.h>

#include "fsdp/collectives.h"
#include "tests/support/mpi_test.h"

/* ELEMENTS of each rank's part, so that even with few nodes it is several of the longest chunks. */
enum { PART = 700001, TIMEOUT_S = 60 };

typedef struct vectors {
    size_t size, rank, count; /* ELEMENTS of all parts */
    float *in, *out;
} vectors;

/* Sums of these are exact. */
static float value(size_t i, size_t rank)
{
    return (float)((i * 7 + rank * 3) % 61);
}

static float sum(size_t i, size_t size)
{
    float all = 0;

    for (size_t r = 0; r < size; r++) {
        all += value(i, r);
    }
    return all;
}

static vectors make(size_t size, size_t rank)
{
    vectors v = {.size = size, .rank = rank, .count = size * PART};

    v.in  = malloc(v.count * sizeof *v.in);
    v.out = malloc(v.count * sizeof *v.out);
    assert_true(v.in != NULL && v.out != NULL);
    for (size_t i = 0; i < v.count; i++) {
        v.in[i] = value(i, rank);
    }
    return v;
}

static void expect_sums(const vectors *v, const float *found, size_t begin, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (found[i] != sum(begin + i, v->size)) {
            fail_msg("element %zu is %g and not %g", begin + i, (double)found[i], (double)sum(begin + i, v->size));
        }
    }
}

static void expect_values(const float *found, size_t begin, size_t count, size_t rank)
{
    for (size_t i = 0; i < count; i++) {
        if (found[i] != value(begin + i, rank)) {
            fail_msg("element %zu is %g and not %g", begin + i, (double)found[i], (double)value(begin + i, rank));
        }
    }
}

static void reduce_all(fsdp_context *ctx, const vectors *v)
{
    const int root = (int)v->size - 1;

    assert_int_equal(FSDP_OK, fsdp_reduce_scatter(ctx, v->in, v->out, PART, FSDP_F32, FSDP_SUM));
    expect_sums(v, v->out, v->rank * PART, PART);
    assert_int_equal(FSDP_OK, fsdp_allreduce(ctx, v->in, v->out, v->count, FSDP_F32, FSDP_SUM));
    expect_sums(v, v->out, 0, v->count);
    assert_int_equal(FSDP_OK, fsdp_reduce(ctx, v->in, v->out, v->count, FSDP_F32, FSDP_SUM, root));
    if ((int)v->rank == root) {
        expect_sums(v, v->out, 0, v->count);
    }
}

static void move_all(fsdp_context *ctx, const vectors *v)
{
    assert_int_equal(FSDP_OK, fsdp_allgather(ctx, v->in + v->rank * PART, v->out, PART, FSDP_F32));
    for (size_t r = 0; r < v->size; r++) {
        expect_values(v->out + r * PART, r * PART, PART, r);
    }
    for (size_t root = 0; root < v->size; root += v->size - 1) {
        for (size_t i = 0; i < v->count; i++) {
            v->out[i] = v->rank == root ? value(i, root) : -1;
        }
        assert_int_equal(FSDP_OK, fsdp_broadcast(ctx, v->out, v->count, FSDP_F32, (int)root));
        expect_values(v->out, 0, v->count, root);
    }
}

static void on_nodes_of(int node_size)
{
    vectors       v = make((size_t)fsdp_test_size(), (size_t)fsdp_test_rank());
    fsdp_config   config;
    fsdp_context *ctx;

    fsdp_config_init(&config);
    config.node_size = node_size;
    config.timeout_s = TIMEOUT_S;
    assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_WORLD, &config, &ctx));
    reduce_all(ctx, &v);
    move_all(ctx, &v);
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
    free(v.out);
    free(v.in);
}

static void long_vectors_on_nodes_of_one_rank(void **state)
{
    (void)state;
    on_nodes_of(1);
}

static void long_vectors_on_nodes_of_two_ranks(void **state)
{
    (void)state;
    on_nodes_of(2);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(long_vectors_on_nodes_of_one_rank),
        cmocka_unit_test(long_vectors_on_nodes_of_two_ranks),
    };

    return fsdp_test_main(argc, argv, tests, NULL, NULL);
}
