#include "tests/collectives/collective_test.h"

static void exchange_and_compare(const contexts *c, fsdp_context *ctx, size_t count, fsdp_dtype dtype, int in_place)
{
    const size_t all      = count * (size_t)c->size;
    const size_t block    = count * fsdp_dtype_size(dtype);
    void        *in       = guarded_alloc(all, dtype);
    void        *out      = guarded_alloc(all, dtype);
    char        *expected = guarded_alloc(all, dtype);

    contribute(in_place ? out : in, c->rank, 0, all, dtype);
    for (int r = 0; r < c->size; r++) {
        contribute(expected + (size_t)r * block, r, (size_t)c->rank * count, count, dtype);
    }
    assert_int_equal(FSDP_OK, fsdp_alltoall(ctx, in_place ? FSDP_IN_PLACE : in, out, count, dtype));
    assert_same(expected, out, all, dtype);
    guarded_free(in);
    guarded_free(out);
    guarded_free(expected);
}

static void block_j_of_rank_i_becomes_block_i_of_rank_j(void **state)
{
    const contexts *c = *state;

    for (int k = 0; k < N_CONTEXTS; k++) {
        for (size_t i = 0; i < N_COUNTS; i++) {
            exchange_and_compare(c, c->each[k], COUNTS[i], FSDP_F32, 0);
            exchange_and_compare(c, c->each[k], COUNTS[i], FSDP_F32, 1);
        }
    }
}

static void every_type_works_separate_and_in_place(void **state)
{
    const contexts *c = *state;

    for (int dtype = 0; dtype < FSDP_N_DTYPES; dtype++) {
        exchange_and_compare(c, c->each[0], 97, (fsdp_dtype)dtype, 0);
        exchange_and_compare(c, c->each[0], 97, (fsdp_dtype)dtype, 1);
    }
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(block_j_of_rank_i_becomes_block_i_of_rank_j),
        cmocka_unit_test(every_type_works_separate_and_in_place),
    };

    return fsdp_test_main(argc, argv, tests, open_contexts, close_contexts);
}
