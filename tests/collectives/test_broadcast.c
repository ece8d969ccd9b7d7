#include "tests/collectives/collective_test.h"

static void broadcast_and_compare(const contexts *c, fsdp_context *ctx, size_t count, fsdp_dtype dtype, int root)
{
    void *buffer   = guarded_alloc(count, dtype);
    void *expected = guarded_alloc(count, dtype);

    contribute(buffer, c->rank, 0, count, dtype);
    contribute(expected, root, 0, count, dtype);
    assert_int_equal(FSDP_OK, fsdp_broadcast(ctx, buffer, count, dtype, root));
    assert_same(expected, buffer, count, dtype);
    guarded_free(buffer);
    guarded_free(expected);
}

static void every_root_reaches_every_rank(void **state)
{
    const contexts *c = *state;

    for (int k = 0; k < N_CONTEXTS; k++) {
        for (int root = 0; root < c->size; root++) {
            for (int dtype = 0; dtype < FSDP_N_DTYPES; dtype++) {
                broadcast_and_compare(c, c->each[k], 1009, (fsdp_dtype)dtype, root);
            }
        }
    }
}

static void every_count_arrives(void **state)
{
    const contexts *c = *state;

    for (int k = 0; k < N_CONTEXTS; k++) {
        for (size_t i = 0; i < N_COUNTS; i++) {
            broadcast_and_compare(c, c->each[k], COUNTS[i], FSDP_F32, c->size - 1);
        }
    }
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_root_reaches_every_rank),
        cmocka_unit_test(every_count_arrives),
    };

    return fsdp_test_main(argc, argv, tests, open_contexts, close_contexts);
}
