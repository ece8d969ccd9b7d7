#include <stdlib.h>

#include "tests/collectives/collective_test.h"

static void gather_and_compare(const contexts *c, fsdp_context *ctx, size_t count, fsdp_dtype dtype, int in_place)
{
    const size_t width    = fsdp_dtype_size(dtype);
    void        *shard    = guarded_alloc(count, dtype);
    char        *full     = guarded_alloc(count * (size_t)c->size, dtype);
    char        *expected = guarded_alloc(count * (size_t)c->size, dtype);

    contribute(in_place ? full + (size_t)c->rank * count * width : shard, c->rank, 0, count, dtype);
    for (int r = 0; r < c->size; r++) {
        contribute(expected + (size_t)r * count * width, r, 0, count, dtype);
    }
    assert_int_equal(FSDP_OK, fsdp_allgather(ctx, in_place ? FSDP_IN_PLACE : shard, full, count, dtype));
    assert_same(expected, full, count * (size_t)c->size, dtype);
    guarded_free(shard);
    guarded_free(full);
    guarded_free(expected);
}

static void every_type_and_count_arrives_in_rank_order(void **state)
{
    const contexts *c = *state;

    for (int k = 0; k < N_CONTEXTS; k++) {
        for (int dtype = 0; dtype < FSDP_N_DTYPES; dtype++) {
            for (size_t i = 0; i < N_COUNTS; i++) {
                gather_and_compare(c, c->each[k], COUNTS[i], (fsdp_dtype)dtype, 0);
                gather_and_compare(c, c->each[k], COUNTS[i], (fsdp_dtype)dtype, 1);
            }
        }
    }
}

static void a_shard_may_be_given_as_its_own_slot(void **state)
{
    const contexts *c        = *state;
    int32_t         full[64] = {0};

    full[c->rank] = 100 + c->rank;
    assert_int_equal(FSDP_OK, fsdp_allgather(c->each[0], &full[c->rank], full, 1, FSDP_I32));
    for (int r = 0; r < c->size; r++) {
        assert_int_equal(100 + r, full[r]);
    }
}

static void uneven_shards_follow_each_other_without_gaps(void **state)
{
    const contexts *c      = *state;
    size_t         *counts = calloc((size_t)c->size, sizeof *counts);

    for (int k = 0; k < N_CONTEXTS; k++) {
        const size_t sum      = uneven_counts(counts, c->size, 333);
        float       *shard    = guarded_alloc(counts[c->rank], FSDP_F32);
        float       *full     = guarded_alloc(sum, FSDP_F32);
        float       *expected = guarded_alloc(sum, FSDP_F32);
        size_t       offset   = 0;

        contribute(shard, c->rank, 0, counts[c->rank], FSDP_F32);
        for (int r = 0; r < c->size; r++) {
            contribute(expected + offset, r, 0, counts[r], FSDP_F32);
            offset += counts[r];
        }
        assert_int_equal(FSDP_OK, fsdp_allgatherv(c->each[k], shard, full, counts, FSDP_F32));
        assert_same(expected, full, sum, FSDP_F32);
        guarded_free(shard);
        guarded_free(full);
        guarded_free(expected);
    }
    free(counts);
}

/* Between nodes of several ranks, a slot has one part, and a record those of its node: of 512 and 256 KiB, say. */
static void all_parts_together_may_be_longer_than_a_slot(void **state)
{
    static const size_t WHOLES[] = {131066, 131072, 140001, 190000, 262120, 262144}; /* ELEMENTS */
    const contexts     *c        = *state;

    for (size_t i = 0; i < sizeof WHOLES / sizeof WHOLES[0]; i++) {
        gather_and_compare(c, c->each[0], WHOLES[i] / (size_t)c->size, FSDP_F32, 0);
        gather_and_compare(c, c->each[0], WHOLES[i] / (size_t)c->size, FSDP_F32, 1);
    }
}

static void nothing_at_all_can_be_gathered(void **state)
{
    const contexts *c      = *state;
    size_t         *counts = calloc((size_t)c->size, sizeof *counts);

    assert_int_equal(FSDP_OK, fsdp_allgather(c->each[0], NULL, NULL, 0, FSDP_F64));
    assert_int_equal(FSDP_OK, fsdp_allgatherv(c->each[0], NULL, NULL, counts, FSDP_F64));
    free(counts);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_and_count_arrives_in_rank_order),
        cmocka_unit_test(a_shard_may_be_given_as_its_own_slot),
        cmocka_unit_test(uneven_shards_follow_each_other_without_gaps),
        cmocka_unit_test(all_parts_together_may_be_longer_than_a_slot),
        cmocka_unit_test(nothing_at_all_can_be_gathered),
    };

    return fsdp_test_main(argc, argv, tests, open_contexts, close_contexts);
}
