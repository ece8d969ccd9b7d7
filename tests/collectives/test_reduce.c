#include <string.h>

#include "tests/collectives/collective_test.h"

static void reduce_and_compare(const contexts *c, fsdp_context *ctx, size_t count, fsdp_dtype dtype, fsdp_redop op,
                               int root, int in_place)
{
    const int is_root  = c->rank == root;
    void     *in       = guarded_alloc(count, dtype);
    void     *out      = guarded_alloc(count, dtype);
    void     *before   = guarded_alloc(count, dtype);
    void     *expected = guarded_alloc(count, dtype);

    contribute(in_place && is_root ? out : in, c->rank, 0, count, dtype);
    memcpy(before, out, count * fsdp_dtype_size(dtype));
    reduce_serially(expected, c->size, 0, count, dtype, op);
    assert_int_equal(FSDP_OK, fsdp_reduce(ctx, in_place && is_root ? FSDP_IN_PLACE : in, out, count, dtype, op, root));
    assert_same(is_root ? expected : before, out, count, dtype);
    guarded_free(in);
    guarded_free(out);
    guarded_free(before);
    guarded_free(expected);
}

static void every_root_receives_the_serial_result_and_nobody_else(void **state)
{
    const contexts *c = *state;

    for (int k = 0; k < N_CONTEXTS; k++) {
        for (int root = 0; root < c->size; root++) {
            for (int dtype = 0; dtype < FSDP_N_DTYPES; dtype++) {
                reduce_and_compare(c, c->each[k], 1009, (fsdp_dtype)dtype, FSDP_SUM, root, 0);
                reduce_and_compare(c, c->each[k], 1009, (fsdp_dtype)dtype, FSDP_MAX, root, 1);
            }
        }
    }
}

static void every_count_works(void **state)
{
    const contexts *c = *state;

    for (int k = 0; k < N_CONTEXTS; k++) {
        for (size_t i = 0; i < N_COUNTS; i++) {
            reduce_and_compare(c, c->each[k], COUNTS[i], FSDP_F16, FSDP_AVG, c->size / 2, 0);
            reduce_and_compare(c, c->each[k], COUNTS[i], FSDP_F32, FSDP_PROD, c->size / 2, 1);
        }
    }
}

static void the_output_may_be_null_but_on_the_root(void **state)
{
    const contexts *c   = *state;
    int32_t         one = 1, sum = 0;

    assert_int_equal(FSDP_OK, fsdp_reduce(c->each[0], &one, c->rank == 0 ? &sum : NULL, 1, FSDP_I32, FSDP_SUM, 0));
    assert_int_equal(c->rank == 0 ? c->size : 0, sum);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_root_receives_the_serial_result_and_nobody_else),
        cmocka_unit_test(every_count_works),
        cmocka_unit_test(the_output_may_be_null_but_on_the_root),
    };

    return fsdp_test_main(argc, argv, tests, open_contexts, close_contexts);
}
