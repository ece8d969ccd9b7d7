#include <stdlib.h>
#include <string.h>

#include "tests/collectives/collective_test.h"

enum { N_REQUESTS = 100, LENGTH = 501 };

static void many_operations_may_be_under_way_and_end_in_any_order(void **state)
{
    const contexts *c      = *state;
    int64_t        *values = calloc(N_REQUESTS * LENGTH, sizeof *values);
    fsdp_request   *requests[N_REQUESTS];

    for (size_t i = 0; i < N_REQUESTS * LENGTH; i++) {
        values[i] = (int64_t)i * (c->rank + 1);
    }
    for (size_t k = 0; k < N_REQUESTS; k++) {
        assert_int_equal(FSDP_OK, fsdp_iallreduce(c->each[0], FSDP_IN_PLACE, values + k * LENGTH, LENGTH, FSDP_I64,
                                                  FSDP_SUM, &requests[k]));
    }
    for (size_t k = N_REQUESTS; k-- > 0;) { /* the last first */
        assert_int_equal(FSDP_OK, fsdp_wait(requests[k]));
    }
    for (size_t i = 0; i < N_REQUESTS * LENGTH; i++) {
        assert_int_equal((int64_t)i * c->size * (c->size + 1) / 2, values[i]);
    }
    free(values);
}

static void test_says_when_an_operation_is_done(void **state)
{
    const contexts *c = *state;
    fsdp_request   *request;
    int32_t         sum  = c->rank;
    int             done = 0;

    assert_int_equal(FSDP_OK, fsdp_iallreduce(c->each[0], FSDP_IN_PLACE, &sum, 1, FSDP_I32, FSDP_SUM, &request));
    while (!done) {
        assert_int_equal(FSDP_OK, fsdp_test(request, &done));
    }
    assert_int_equal(c->size * (c->size - 1) / 2, sum);
}

static void every_kind_of_operation_has_a_nonblocking_form(void **state)
{
    const contexts *c    = *state;
    fsdp_context   *ctx  = c->each[0];
    const size_t    size = (size_t)c->size;
    size_t         *ones = calloc(size, sizeof *ones);
    int32_t        *mine = calloc(size, sizeof *mine);
    int32_t        *out[5];
    int32_t         scalar[3] = {0, 0, c->rank == 0 ? 77 : 0};
    fsdp_request   *requests[9];

    for (size_t k = 0; k < 5; k++) {
        out[k] = calloc(size, sizeof *out[k]);
    }
    for (size_t r = 0; r < size; r++) {
        ones[r] = 1;
        mine[r] = c->rank;
    }
    assert_int_equal(FSDP_OK, fsdp_iallgather(ctx, mine, out[0], 1, FSDP_I32, &requests[0]));
    assert_int_equal(FSDP_OK, fsdp_iallgatherv(ctx, mine, out[1], ones, FSDP_I32, &requests[1]));
    assert_int_equal(FSDP_OK, fsdp_ireduce_scatter(ctx, mine, out[2], 1, FSDP_I32, FSDP_SUM, &requests[2]));
    assert_int_equal(FSDP_OK, fsdp_ireduce_scatterv(ctx, mine, out[3], ones, FSDP_I32, FSDP_SUM, &requests[3]));
    assert_int_equal(FSDP_OK, fsdp_iallreduce(ctx, mine, &scalar[0], 1, FSDP_I32, FSDP_SUM, &requests[4]));
    assert_int_equal(FSDP_OK, fsdp_ireduce(ctx, mine, &scalar[1], 1, FSDP_I32, FSDP_SUM, 0, &requests[5]));
    assert_int_equal(FSDP_OK, fsdp_ibroadcast(ctx, &scalar[2], 1, FSDP_I32, 0, &requests[6]));
    assert_int_equal(FSDP_OK, fsdp_ialltoall(ctx, mine, out[4], 1, FSDP_I32, &requests[7]));
    assert_int_equal(FSDP_OK, fsdp_ibarrier(ctx, &requests[8]));
    assert_int_equal(FSDP_OK, fsdp_wait_all(9, requests));

    const int32_t sum = c->size * (c->size - 1) / 2;
    for (int r = 0; r < c->size; r++) {
        assert_int_equal(r, out[0][r]);
        assert_int_equal(r, out[1][r]);
        assert_int_equal(r, out[4][r]);
    }
    assert_int_equal(sum, out[2][0]);
    assert_int_equal(sum, out[3][0]);
    assert_int_equal(sum, scalar[0]);
    assert_int_equal(c->rank == 0 ? sum : 0, scalar[1]);
    assert_int_equal(77, scalar[2]);
    for (size_t k = 0; k < 5; k++) {
        free(out[k]);
    }
    free(mine);
    free(ones);
}

static void a_request_ended_twice_is_an_error(void **state)
{
    const contexts *c = *state;
    fsdp_request   *request;
    int             done = 0;

    assert_int_equal(FSDP_OK, fsdp_ibarrier(c->each[0], &request));
    assert_int_equal(FSDP_OK, fsdp_wait(request));
    assert_int_equal(FSDP_ERR_STATE, fsdp_wait(request));
    assert_non_null(strstr(fsdp_last_error(c->each[0]), "ended before"));
    assert_int_equal(FSDP_ERR_STATE, fsdp_test(request, &done));
    assert_int_equal(FSDP_OK, fsdp_barrier(c->each[0]));
}

static void null_requests_are_nothing_to_wait_for(void **state)
{
    fsdp_request *none[2] = {NULL, NULL};
    int           done    = 0;

    (void)state;
    assert_int_equal(FSDP_OK, fsdp_wait(NULL));
    assert_int_equal(FSDP_OK, fsdp_test(NULL, &done));
    assert_int_equal(1, done);
    assert_int_equal(FSDP_OK, fsdp_wait_all(2, none));
    assert_int_equal(FSDP_OK, fsdp_wait_all(0, NULL));
    assert_int_equal(FSDP_ERR_ARG, fsdp_wait_all(1, NULL));
}

static void requests_left_open_are_reported_at_finalize(void **state)
{
    fsdp_context *ctx;
    fsdp_request *forgotten;
    int32_t       value = 1;

    (void)state;
    assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_WORLD, NULL, &ctx));
    assert_int_equal(FSDP_OK, fsdp_iallreduce(ctx, FSDP_IN_PLACE, &value, 1, FSDP_I32, FSDP_SUM, &forgotten));
    assert_int_equal(FSDP_ERR_LEAK, fsdp_finalize(ctx));
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_operations_may_be_under_way_and_end_in_any_order),
        cmocka_unit_test(test_says_when_an_operation_is_done),
        cmocka_unit_test(every_kind_of_operation_has_a_nonblocking_form),
        cmocka_unit_test(a_request_ended_twice_is_an_error),
        cmocka_unit_test(null_requests_are_nothing_to_wait_for),
        cmocka_unit_test(requests_left_open_are_reported_at_finalize),
    };

    return fsdp_test_main(argc, argv, tests, open_contexts, close_contexts);
}
