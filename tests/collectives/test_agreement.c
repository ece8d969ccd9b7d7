#include <stdint.h>
#include <string.h>

#include "tests/collectives/collective_test.h"

/* Expects the status on every rank, the words in its detail, and a context that still works. */
static void assert_failed_everywhere(const contexts *c, fsdp_status expected, fsdp_status found, const char *words)
{
    int32_t sum = 1;

    assert_int_equal(expected, found);
    if (strstr(fsdp_last_error(c->each[0]), words) == NULL) {
        fail_msg("'%s' does not say '%s'", fsdp_last_error(c->each[0]), words);
    }
    assert_int_equal(FSDP_OK, fsdp_allreduce(c->each[0], FSDP_IN_PLACE, &sum, 1, FSDP_I32, FSDP_SUM));
    assert_int_equal(c->size, sum);
}

static void a_bad_argument_on_one_rank_fails_on_every_rank(void **state)
{
    const contexts *c    = *state;
    const int       last = c->rank == c->size - 1;
    int32_t         mine = 7, full[64] = {0};
    fsdp_status     status;

    status = fsdp_allgather(c->each[0], last ? NULL : &mine, full, 1, FSDP_I32);
    assert_failed_everywhere(c, FSDP_ERR_ARG, status, "the input buffer is NULL");
    status = fsdp_allgather(c->each[0], &mine, last ? NULL : full, 1, FSDP_I32);
    assert_failed_everywhere(c, FSDP_ERR_ARG, status, "the output buffer is NULL");
    status = fsdp_allgather(c->each[0], &mine, full, 1, last ? (fsdp_dtype)99 : FSDP_I32);
    assert_failed_everywhere(c, FSDP_ERR_ARG, status, "99 is no element type");
    status = fsdp_allreduce(c->each[0], &mine, full, 1, FSDP_I32, last ? (fsdp_redop)-3 : FSDP_SUM);
    assert_failed_everywhere(c, FSDP_ERR_ARG, status, "-3 is no reduction");
    status = fsdp_broadcast(c->each[0], &mine, 1, FSDP_I32, last ? c->size : 0);
    assert_failed_everywhere(c, FSDP_ERR_ARG, status, "is no rank");
    status = fsdp_reduce_scatterv(c->each[0], full, &mine, NULL, FSDP_I32, FSDP_SUM);
    assert_failed_everywhere(c, FSDP_ERR_ARG, status, "the counts are NULL");
    status = fsdp_alltoall(c->each[0], full, FSDP_IN_PLACE, 1, FSDP_I32);
    assert_failed_everywhere(c, FSDP_ERR_ARG, status, "FSDP_IN_PLACE stands for an input");
    assert_int_equal(0, full[0]);
}

static void the_rank_with_the_bad_argument_is_named(void **state)
{
    const contexts *c     = *state;
    int32_t         value = 0;
    char            name[32];

    (void)snprintf(name, sizeof name, "rank %d:", c->size - 1);
    const fsdp_status status = fsdp_broadcast(c->each[0], c->rank == c->size - 1 ? NULL : &value, 1, FSDP_I32, 0);
    assert_failed_everywhere(c, FSDP_ERR_ARG, status, c->size > 1 ? name : "NULL");
}

static void sizes_that_overflow_are_refused(void **state)
{
    const contexts *c = *state;
    size_t          counts[64];
    int32_t         buffer[64] = {0};

    for (int r = 0; r < c->size; r++) {
        counts[r] = SIZE_MAX / 2;
    }
    assert_failed_everywhere(c, FSDP_ERR_ARG, fsdp_allgather(c->each[0], buffer, buffer + 1, SIZE_MAX / 2, FSDP_I32),
                             "overflows");
    assert_failed_everywhere(
        c, FSDP_ERR_ARG, fsdp_allreduce(c->each[0], FSDP_IN_PLACE, buffer, SIZE_MAX, FSDP_I32, FSDP_SUM), "overflows");
    assert_failed_everywhere(c, FSDP_ERR_ARG, fsdp_allgatherv(c->each[0], FSDP_IN_PLACE, buffer, counts, FSDP_I32),
                             "overflows");
}

static void buffers_that_overlap_are_refused(void **state)
{
    const contexts *c           = *state;
    int32_t         buffer[256] = {0};

    assert_failed_everywhere(c, FSDP_ERR_ARG, fsdp_allreduce(c->each[0], buffer, buffer + 1, 2, FSDP_I32, FSDP_SUM),
                             "overlap");
    assert_failed_everywhere(c, FSDP_ERR_ARG, fsdp_alltoall(c->each[0], buffer, buffer, 2, FSDP_I32), "overlap");
    const int32_t *not_my_slot = buffer + (c->rank == 0 ? 1 : 0);
    assert_failed_everywhere(c, FSDP_ERR_ARG, fsdp_allgather(c->each[0], not_my_slot, buffer, 2, FSDP_I32), "overlap");
}

static void a_count_that_differs_is_the_same_error_everywhere(void **state)
{
    const contexts *c         = *state;
    int32_t         values[2] = {5, 6};

    if (c->size == 1) {
        skip();
    }
    const size_t      count  = c->rank == 1 ? 2 : 1;
    const fsdp_status status = fsdp_allreduce(c->each[0], FSDP_IN_PLACE, values, count, FSDP_I32, FSDP_SUM);
    assert_failed_everywhere(c, FSDP_ERR_MISMATCH, status, "rank 1 calls fsdp_allreduce of 2 i32 elements, sum");
    assert_int_equal(5, values[0]);
    assert_int_equal(6, values[1]);
}

static void a_different_collective_on_one_rank_is_the_same_error_everywhere(void **state)
{
    const contexts *c     = *state;
    int32_t         value = 1;
    fsdp_status     status;

    if (c->size == 1) {
        skip();
    }
    if (c->rank == 0) {
        status = fsdp_broadcast(c->each[0], &value, 1, FSDP_I32, 0);
    } else {
        status = fsdp_allreduce(c->each[0], FSDP_IN_PLACE, &value, 1, FSDP_I32, FSDP_SUM);
    }
    assert_failed_everywhere(c, FSDP_ERR_MISMATCH, status, "rank 0 calls fsdp_broadcast of 1 i32 elements, root 0");
    assert_int_equal(1, value);
}

/* One has no data to send along, the others have. */
static void a_barrier_among_short_reductions_is_the_same_error_everywhere(void **state)
{
    const contexts *c = *state;

    if (c->size == 1) {
        skip();
    }
    for (int odd = 0; odd < c->size; odd++) {
        int32_t           value   = 1;
        const fsdp_status reduced = c->rank == odd
                                        ? fsdp_barrier(c->each[0])
                                        : fsdp_allreduce(c->each[0], FSDP_IN_PLACE, &value, 1, FSDP_I32, FSDP_SUM);
        assert_failed_everywhere(c, FSDP_ERR_MISMATCH, reduced, "calls fsdp_barrier");
        const fsdp_status met = c->rank != odd
                                    ? fsdp_barrier(c->each[0])
                                    : fsdp_allreduce(c->each[0], FSDP_IN_PLACE, &value, 1, FSDP_I32, FSDP_SUM);
        assert_failed_everywhere(c, FSDP_ERR_MISMATCH, met, "calls fsdp_allreduce of 1 i32");
        const fsdp_status bad = fsdp_allreduce(c->each[0], c->rank == odd ? NULL : FSDP_IN_PLACE, &value, 1,
                                               c->rank == odd ? (fsdp_dtype)99 : FSDP_I32, FSDP_SUM);
        assert_failed_everywhere(c, FSDP_ERR_ARG, bad, "99 is no element type");
        assert_int_equal(1, value);
    }
}

static void type_reduction_root_and_uneven_counts_are_compared_too(void **state)
{
    const contexts *c          = *state;
    const int       odd        = c->rank == c->size - 1;
    int64_t         values[64] = {0}, result[64] = {0};
    size_t          counts[64] = {0};
    fsdp_status     status;

    if (c->size == 1) {
        skip();
    }
    status = fsdp_allreduce(c->each[0], values, result, 1, odd ? FSDP_I64 : FSDP_F64, FSDP_SUM);
    assert_failed_everywhere(c, FSDP_ERR_MISMATCH, status, "f64");
    status = fsdp_allreduce(c->each[0], values, result, 1, FSDP_I64, odd ? FSDP_MAX : FSDP_SUM);
    assert_failed_everywhere(c, FSDP_ERR_MISMATCH, status, "max");
    status = fsdp_broadcast(c->each[0], values, 1, FSDP_I64, odd ? 1 : 0);
    assert_failed_everywhere(c, FSDP_ERR_MISMATCH, status, "root 1");
    counts[c->size - 1] = odd ? 2 : 1;
    status              = fsdp_allgatherv(c->each[0], FSDP_IN_PLACE, values, counts, FSDP_I64);
    assert_failed_everywhere(c, FSDP_ERR_MISMATCH, status, "fsdp_allgatherv");
}

static void several_failures_in_the_queue_each_keep_their_own_error(void **state)
{
    const contexts *c = *state;
    fsdp_request   *requests[3];
    int32_t         values[3] = {1, 1, 1};

    assert_int_equal(FSDP_OK, fsdp_ibroadcast(c->each[0], &values[0], 1, FSDP_I32, -1, &requests[0]));
    assert_int_equal(FSDP_OK,
                     fsdp_iallreduce(c->each[0], FSDP_IN_PLACE, &values[1], 1, FSDP_I32, FSDP_SUM, &requests[1]));
    assert_int_equal(FSDP_OK, fsdp_ibroadcast(c->each[0], NULL, 1, FSDP_I32, 0, &requests[2]));
    assert_int_equal(FSDP_ERR_ARG, fsdp_wait(requests[2]));
    assert_non_null(strstr(fsdp_last_error(c->each[0]), "NULL"));
    assert_int_equal(FSDP_OK, fsdp_wait(requests[1]));
    assert_int_equal(c->size, values[1]);
    assert_int_equal(FSDP_ERR_ARG, fsdp_wait(requests[0]));
    assert_non_null(strstr(fsdp_last_error(c->each[0]), "root -1 is no rank"));
}

static void agree_spreads_the_verdict_of_one_rank(void **state)
{
    const contexts *c = *state;

    assert_int_equal(FSDP_OK, fsdp_agree(c->each[0], FSDP_OK, NULL));
    const fsdp_status mine   = c->rank == c->size - 1 ? FSDP_ERR_MEMORY : FSDP_OK;
    const fsdp_status common = fsdp_agree(c->each[0], mine, "the disk of this rank is full");
    assert_failed_everywhere(c, FSDP_ERR_MEMORY, common, "the disk of this rank is full");
}

static void no_context_is_an_error_of_its_own(void **state)
{
    int32_t       value = 0;
    fsdp_request *request;

    (void)state;
    assert_int_equal(FSDP_ERR_ARG, fsdp_allreduce(NULL, FSDP_IN_PLACE, &value, 1, FSDP_I32, FSDP_SUM));
    assert_int_equal(FSDP_ERR_ARG, fsdp_ibarrier(NULL, &request));
    assert_int_equal(FSDP_ERR_ARG, fsdp_agree(NULL, FSDP_OK, NULL));
    assert_non_null(strstr(fsdp_last_error(NULL), "context is NULL"));
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bad_argument_on_one_rank_fails_on_every_rank),
        cmocka_unit_test(the_rank_with_the_bad_argument_is_named),
        cmocka_unit_test(sizes_that_overflow_are_refused),
        cmocka_unit_test(buffers_that_overlap_are_refused),
        cmocka_unit_test(a_count_that_differs_is_the_same_error_everywhere),
        cmocka_unit_test(a_different_collective_on_one_rank_is_the_same_error_everywhere),
        cmocka_unit_test(a_barrier_among_short_reductions_is_the_same_error_everywhere),
        cmocka_unit_test(type_reduction_root_and_uneven_counts_are_compared_too),
        cmocka_unit_test(several_failures_in_the_queue_each_keep_their_own_error),
        cmocka_unit_test(agree_spreads_the_verdict_of_one_rank),
        cmocka_unit_test(no_context_is_an_error_of_its_own),
    };

    return fsdp_test_main(argc, argv, tests, open_contexts, close_contexts);
}
