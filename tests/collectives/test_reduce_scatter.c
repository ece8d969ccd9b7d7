#include <stdlib.h>

#include "tests/collectives/collective_test.h"

typedef enum placement { SEPARATE, OWN_SLICE, IN_PLACE } placement;

static void reduce_and_compare(const contexts *c, fsdp_context *ctx, size_t count, fsdp_dtype dtype, fsdp_redop op,
                               placement where)
{
    const size_t all      = count * (size_t)c->size;
    const size_t begin    = count * (size_t)c->rank;
    char        *full     = guarded_alloc(all, dtype);
    void        *shard    = guarded_alloc(count, dtype);
    void        *expected = guarded_alloc(count, dtype);
    void        *out = where == SEPARATE ? shard : where == OWN_SLICE ? full + begin * fsdp_dtype_size(dtype) : full;

    contribute(full, c->rank, 0, all, dtype);
    reduce_serially(expected, c->size, begin, count, dtype, op);
    assert_int_equal(FSDP_OK,
                     fsdp_reduce_scatter(ctx, where == IN_PLACE ? FSDP_IN_PLACE : full, out, count, dtype, op));
    assert_same(expected, out, count, dtype);
    guarded_free(full);
    guarded_free(shard);
    guarded_free(expected);
}

static void every_type_and_reduction_equals_the_serial_one(void **state)
{
    const contexts *c = *state;

    for (int dtype = 0; dtype < FSDP_N_DTYPES; dtype++) {
        for (int op = 0; op < FSDP_N_REDOPS; op++) {
            reduce_and_compare(c, c->each[0], 997, (fsdp_dtype)dtype, (fsdp_redop)op, SEPARATE);
            reduce_and_compare(c, c->each[1], 997, (fsdp_dtype)dtype, (fsdp_redop)op, SEPARATE);
        }
    }
}

static void every_count_works_separate_and_in_place(void **state)
{
    const contexts *c = *state;

    for (int k = 0; k < N_CONTEXTS; k++) {
        for (size_t i = 0; i < N_COUNTS; i++) {
            for (int where = SEPARATE; where <= IN_PLACE; where++) {
                reduce_and_compare(c, c->each[k], COUNTS[i], FSDP_F32, FSDP_SUM, (placement)where);
            }
        }
    }
}

static void uneven_slices_follow_each_other_without_gaps(void **state)
{
    const contexts *c      = *state;
    size_t         *counts = calloc((size_t)c->size, sizeof *counts);

    for (int k = 0; k < N_CONTEXTS; k++) {
        const size_t sum      = uneven_counts(counts, c->size, 333);
        const size_t mine     = counts[c->rank];
        size_t       begin    = 0;
        double      *full     = guarded_alloc(sum, FSDP_F64);
        double      *shard    = guarded_alloc(mine, FSDP_F64);
        double      *expected = guarded_alloc(mine, FSDP_F64);

        for (int r = 0; r < c->rank; r++) {
            begin += counts[r];
        }
        contribute(full, c->rank, 0, sum, FSDP_F64);
        reduce_serially(expected, c->size, begin, mine, FSDP_F64, FSDP_AVG);
        assert_int_equal(FSDP_OK, fsdp_reduce_scatterv(c->each[k], full, shard, counts, FSDP_F64, FSDP_AVG));
        assert_same(expected, shard, mine, FSDP_F64);
        assert_int_equal(FSDP_OK, fsdp_reduce_scatterv(c->each[k], FSDP_IN_PLACE, full, counts, FSDP_F64, FSDP_AVG));
        assert_same(expected, full, mine, FSDP_F64);
        guarded_free(full);
        guarded_free(shard);
        guarded_free(expected);
    }
    free(counts);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_and_reduction_equals_the_serial_one),
        cmocka_unit_test(every_count_works_separate_and_in_place),
        cmocka_unit_test(uneven_slices_follow_each_other_without_gaps),
    };

    return fsdp_test_main(argc, argv, tests, open_contexts, close_contexts);
}
