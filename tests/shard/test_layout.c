#include <stdlib.h>
#include <string.h>

#include "fsdp/layout.h"
#include "tests/support/unit_test.h"

static const size_t SIZES[] = {1, 2, 3, 255, 256, 257, 1000, 1009, 4096, 65537};
static const int    RANKS[] = {1, 2, 3, 5, 8, 64};
static const size_t N_SIZES = sizeof SIZES / sizeof SIZES[0];
static const size_t N_RANKS = sizeof RANKS / sizeof RANKS[0];

static void shards_are_equal_aligned_and_hold_everything_with_little_padding(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_SIZES; i++) {
        for (size_t j = 0; j < N_RANKS; j++) {
            fsdp_layout layout;
            assert_int_equal(FSDP_OK, fsdp_layout_init(SIZES[i], RANKS[j], &layout));
            assert_int_equal(0, layout.shard % FSDP_SHARD_MULTIPLE);
            assert_int_equal(layout.padded, layout.shard * (size_t)RANKS[j]);
            assert_true(layout.padded >= SIZES[i]);
            assert_true(layout.padded - SIZES[i] < (size_t)RANKS[j] * FSDP_SHARD_MULTIPLE);
            assert_int_equal(SIZES[i], layout.elements);
        }
    }
}

/* Marks every element of every tensor once, walking over all ranks' intervals. */
static void check_intervals(const size_t *counts, size_t n_tensors, int size)
{
    fsdp_layout    layout;
    fsdp_interval *intervals = calloc(n_tensors, sizeof *intervals);
    size_t         elements  = 0, n;

    for (size_t i = 0; i < n_tensors; i++) {
        elements += counts[i];
    }
    unsigned char *seen = calloc(elements, 1);
    assert_int_equal(FSDP_OK, fsdp_layout_init(elements, size, &layout));
    for (int rank = 0; rank < size; rank++) {
        assert_int_equal(FSDP_OK, fsdp_layout_intervals(&layout, rank, n_tensors, counts, intervals, &n));
        assert_true(n <= n_tensors);
        for (size_t k = 0; k < n; k++) {
            size_t flat = intervals[k].tensor_begin;
            for (size_t t = 0; t < intervals[k].tensor; t++) {
                flat += counts[t];
            }
            assert_true(intervals[k].count > 0);
            assert_true(intervals[k].tensor_begin + intervals[k].count <= counts[intervals[k].tensor]);
            assert_int_equal(flat, layout.shard * (size_t)rank + intervals[k].shard_begin);
            assert_true(intervals[k].shard_begin + intervals[k].count <= layout.shard);
            for (size_t e = 0; e < intervals[k].count; e++) {
                assert_int_equal(0, seen[flat + e]++);
            }
        }
    }
    for (size_t e = 0; e < elements; e++) {
        assert_int_equal(1, seen[e]);
    }
    free(seen);
    free(intervals);
}

static void intervals_cover_every_element_once(void **state)
{
    static const size_t counts[] = {1, 700, 3, 256, 1, 5000, 2, 129};

    (void)state;
    for (size_t n = 1; n <= sizeof counts / sizeof counts[0]; n++) {
        for (size_t j = 0; j < N_RANKS; j++) {
            check_intervals(counts, n, RANKS[j]);
        }
    }
}

static void a_rank_that_holds_only_padding_has_no_intervals(void **state)
{
    const size_t  count = 10;
    fsdp_layout   layout;
    fsdp_interval interval;
    size_t        n = 99;

    (void)state;
    assert_int_equal(FSDP_OK, fsdp_layout_init(count, 4, &layout));
    assert_int_equal(FSDP_OK, fsdp_layout_intervals(&layout, 3, 1, &count, &interval, &n));
    assert_int_equal(0, n);
}

static void bad_arguments_are_named(void **state)
{
    const size_t  count = 10, wrong = 11;
    fsdp_layout   layout;
    fsdp_interval interval;
    size_t        n;

    (void)state;
    assert_int_equal(FSDP_ERR_ARG, fsdp_layout_init(0, 1, &layout));
    assert_non_null(strstr(fsdp_last_error(NULL), "0 elements"));
    assert_int_equal(FSDP_ERR_ARG, fsdp_layout_init(1, 0, &layout));
    assert_non_null(strstr(fsdp_last_error(NULL), "0 ranks"));
    assert_int_equal(FSDP_ERR_ARG, fsdp_layout_init(SIZE_MAX, 1, &layout));
    assert_int_equal(FSDP_ERR_ARG, fsdp_layout_init(SIZE_MAX / 2, 3, &layout));
    assert_int_equal(FSDP_ERR_ARG, fsdp_layout_init(1, 1, NULL));
    assert_int_equal(FSDP_OK, fsdp_layout_init(count, 2, &layout));
    assert_int_equal(FSDP_ERR_ARG, fsdp_layout_intervals(&layout, 2, 1, &count, &interval, &n));
    assert_non_null(strstr(fsdp_last_error(NULL), "rank 2"));
    assert_int_equal(FSDP_ERR_ARG, fsdp_layout_intervals(&layout, 0, 1, &wrong, &interval, &n));
    assert_int_equal(FSDP_ERR_ARG, fsdp_layout_intervals(&layout, 0, 1, &count, NULL, &n));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(shards_are_equal_aligned_and_hold_everything_with_little_padding),
        cmocka_unit_test(intervals_cover_every_element_once),
        cmocka_unit_test(a_rank_that_holds_only_padding_has_no_intervals),
        cmocka_unit_test(bad_arguments_are_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
