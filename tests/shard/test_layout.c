#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fsdp/layout.h"
#include "fsdp/random.h"
#include "tests/support/unit_test.h"

enum { MOST_TENSORS = 8, MOST_RANKS = 64 };

static const size_t COUNTS[MOST_TENSORS] = {1, 700, 3, 256, 1, 5000, 2, 129};
static const int    RANKS[]              = {1, 2, 3, 5, 8, MOST_RANKS};
static const size_t N_RANKS              = sizeof RANKS / sizeof RANKS[0];

/* Every way to divide that the tests walk through. */
static const size_t ALIGNMENTS[]    = {1, 16, 32, 64};
static const size_t GRANULARITIES[] = {FSDP_GRANULARITY_FLAT, 1, 64, 100, 7, FSDP_GRANULARITY_TENSOR};

static size_t sum(const size_t *counts, size_t n)
{
    size_t all = 0;

    for (size_t i = 0; i < n; i++) {
        all += counts[i];
    }
    return all;
}

static bool has_blocks(size_t granularity)
{
    return granularity != FSDP_GRANULARITY_FLAT && granularity != FSDP_GRANULARITY_TENSOR;
}

/* In order: tensor i is on the rank that has this part of them. */
static const int *owners_of(size_t n, int size, size_t granularity, int *room)
{
    for (size_t i = 0; i < n; i++) {
        room[i] = (int)(i * (size_t)size / n);
    }
    return granularity == FSDP_GRANULARITY_TENSOR ? room : NULL;
}

/* Calls `check` for 1 tensor up to all of them, all numbers of ranks, alignments and granularities. */
static void for_each_layout(void (*check)(size_t n, int size, size_t alignment, size_t granularity))
{
    for (size_t n = 1; n <= MOST_TENSORS; n++) {
        for (size_t r = 0; r < N_RANKS; r++) {
            for (size_t a = 0; a < sizeof ALIGNMENTS / sizeof ALIGNMENTS[0]; a++) {
                for (size_t g = 0; g < sizeof GRANULARITIES / sizeof GRANULARITIES[0]; g++) {
                    check(n, RANKS[r], ALIGNMENTS[a], GRANULARITIES[g]);
                }
            }
        }
    }
}

/* ---- slices ------------------------------------------------------------------------------------------------------ */

static void check_slices(size_t n, int size, size_t alignment, size_t granularity)
{
    int         owners[MOST_TENSORS];
    fsdp_layout layout;
    const int  *given = owners_of(n, size, granularity, owners);

    assert_int_equal(FSDP_OK, fsdp_layout_init(n, COUNTS, given, size, alignment, granularity, &layout));
    assert_int_equal(sum(COUNTS, n), layout.elements);
    assert_int_equal(0, layout.multiple % alignment);
    assert_int_equal(0, layout.shard % alignment);
    if (has_blocks(granularity)) {
        assert_int_equal(0, layout.multiple % granularity);
        assert_int_equal(0, layout.shard % granularity);
    }
    if (granularity == FSDP_GRANULARITY_FLAT) {
        assert_int_equal(alignment, layout.multiple);
        assert_int_equal(0, layout.shard % FSDP_SHARD_MULTIPLE);
    }
    if (granularity != FSDP_GRANULARITY_TENSOR) {
        assert_int_equal(layout.padded, layout.shard * (size_t)size);
    }
}

static void slices_are_aligned_and_multiples_of_blocks(void **state)
{
    (void)state;
    for_each_layout(check_slices);
}

static void a_flat_layout_pads_little(void **state)
{
    static const size_t sizes[] = {1, 2, 3, 255, 256, 257, 1000, 1009, 4096, 65537};

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        for (size_t j = 0; j < N_RANKS; j++) {
            fsdp_layout layout;

            assert_int_equal(FSDP_OK,
                             fsdp_layout_init(1, &sizes[i], NULL, RANKS[j], 64, FSDP_GRANULARITY_FLAT, &layout));
            assert_true(layout.padded >= sizes[i]);
            assert_true(layout.padded - sizes[i] < (size_t)RANKS[j] * FSDP_SHARD_MULTIPLE);
        }
    }
}

/* Of n tensors, n - 1 have padding before them: at most 31 elements where the narrowest type is bf16. */
static void a_tensor_is_padded_by_less_than_the_alignment(void **state)
{
    fsdp_layout layout;

    (void)state;
    for (size_t n = 1; n <= MOST_TENSORS; n++) {
        assert_int_equal(FSDP_OK, fsdp_layout_init(n, COUNTS, NULL, 1, 32, 1, &layout));
        assert_in_range(layout.padded, layout.elements, layout.elements + n * 31);
    }
}

/* Whole tensors take as much, in whatever order and on whatever ranks. */
static void the_length_of_whole_tensors_does_not_depend_on_who_owns_them(void **state)
{
    int         owners[MOST_TENSORS];
    size_t      reversed[MOST_TENSORS];
    fsdp_layout one, other;

    (void)state;
    for (size_t i = 0; i < MOST_TENSORS; i++) {
        reversed[i] = COUNTS[MOST_TENSORS - 1 - i];
    }
    (void)owners_of(MOST_TENSORS, 1, FSDP_GRANULARITY_TENSOR, owners);
    assert_int_equal(FSDP_OK, fsdp_layout_init(MOST_TENSORS, COUNTS, owners, 1, 64, FSDP_GRANULARITY_TENSOR, &one));
    (void)owners_of(MOST_TENSORS, 5, FSDP_GRANULARITY_TENSOR, owners);
    assert_int_equal(FSDP_OK, fsdp_layout_init(MOST_TENSORS, reversed, owners, 5, 64, FSDP_GRANULARITY_TENSOR, &other));
    assert_int_equal(one.padded, other.padded);
    assert_int_equal(one.padded, one.shard);
    assert_true(other.shard < other.padded);
}

/* ---- intervals --------------------------------------------------------------------------------------------------- */

/* Where slices begin, from all intervals and counts but without the layout's own sums: no element is in two places. */
static void check_intervals(size_t n_tensors, int size, size_t alignment, size_t granularity)
{
    int            owners[MOST_TENSORS];
    const int     *given    = owners_of(n_tensors, size, granularity, owners);
    const size_t   elements = sum(COUNTS, n_tensors);
    unsigned char *seen     = calloc(elements, 1);
    fsdp_interval  intervals[MOST_TENSORS];
    fsdp_layout    layout;
    size_t         n;

    assert_int_equal(FSDP_OK, fsdp_layout_init(n_tensors, COUNTS, given, size, alignment, granularity, &layout));
    for (int rank = 0; rank < size; rank++) {
        size_t end = 0;

        assert_int_equal(FSDP_OK, fsdp_layout_intervals(&layout, rank, n_tensors, COUNTS, given, intervals, &n));
        assert_true(n <= n_tensors);
        for (size_t k = 0; k < n; k++) {
            const fsdp_interval *run = &intervals[k];

            assert_true(run->count > 0);
            assert_true(run->shard_begin >= end);
            end = run->shard_begin + run->count;
            assert_true(end <= layout.shard);
            assert_true(run->tensor_begin + run->count <= COUNTS[run->tensor]);
            for (size_t e = 0; e < run->count; e++) {
                assert_int_equal(0, seen[sum(COUNTS, run->tensor) + run->tensor_begin + e]++);
            }
            if (run->tensor_begin == 0) { /* slices begin at multiples of the alignment too */
                assert_int_equal(0, run->shard_begin % alignment);
            }
            if (has_blocks(granularity)) {
                assert_int_equal(0, run->tensor_begin % granularity);
                assert_int_equal(0, run->shard_begin % granularity);
                assert_true((run->tensor_begin + run->count) % granularity == 0 ||
                            run->tensor_begin + run->count == COUNTS[run->tensor]);
            }
            if (given != NULL) {
                assert_int_equal(rank, given[run->tensor]);
                assert_int_equal(COUNTS[run->tensor], run->count);
            }
        }
    }
    for (size_t e = 0; e < elements; e++) {
        assert_int_equal(1, seen[e]);
    }
    free(seen);
}

static void intervals_cover_every_element_once_and_never_cut_a_block(void **state)
{
    (void)state;
    for_each_layout(check_intervals);
}

/* Slices of equal length, one after the other, are the flat parameter: a tensor begins on every rank at the same place. */
static void divided_tensors_begin_where_the_tensors_before_them_end(void **state)
{
    fsdp_layout   layout;
    fsdp_interval intervals[MOST_TENSORS];
    size_t        n;

    (void)state;
    for (size_t r = 0; r < N_RANKS; r++) {
        assert_int_equal(FSDP_OK,
                         fsdp_layout_init(MOST_TENSORS, COUNTS, NULL, RANKS[r], 16, FSDP_GRANULARITY_FLAT, &layout));
        for (int rank = 0; rank < RANKS[r]; rank++) {
            assert_int_equal(FSDP_OK, fsdp_layout_intervals(&layout, rank, MOST_TENSORS, COUNTS, NULL, intervals, &n));
            for (size_t k = 0; k < n; k++) {
                size_t begin = 0;

                for (size_t t = 0; t < intervals[k].tensor; t++) {
                    begin += (COUNTS[t] + 15) / 16 * 16;
                }
                assert_int_equal(begin + intervals[k].tensor_begin,
                                 layout.shard * (size_t)rank + intervals[k].shard_begin);
            }
        }
    }
}

static void a_rank_that_holds_only_padding_has_no_intervals(void **state)
{
    const size_t  count = 10;
    const int     owner = 2;
    fsdp_layout   layout;
    fsdp_interval interval;
    size_t        n = 99;

    (void)state;
    assert_int_equal(FSDP_OK, fsdp_layout_init(1, &count, NULL, 4, 16, FSDP_GRANULARITY_FLAT, &layout));
    assert_int_equal(FSDP_OK, fsdp_layout_intervals(&layout, 3, 1, &count, NULL, &interval, &n));
    assert_int_equal(0, n);
    n = 99;
    assert_int_equal(FSDP_OK, fsdp_layout_init(1, &count, &owner, 4, 16, FSDP_GRANULARITY_TENSOR, &layout));
    assert_int_equal(FSDP_OK, fsdp_layout_intervals(&layout, 3, 1, &count, &owner, &interval, &n));
    assert_int_equal(0, n);
}

/* ---- many ranks -------------------------------------------------------------------------------------------------- */

/* Of a few ranks of a million, each without the others. */
static void any_rank_of_a_million_is_computed_alone(void **state)
{
    enum { SIZE = 1000000 };
    static const int    ranks[]  = {0, 1, 499999, 777777, SIZE - 1};
    static const size_t counts[] = {(size_t)1 << 32, 12345, ((size_t)1 << 34) + 1};
    fsdp_layout         layout;
    fsdp_interval       intervals[3];
    size_t              n;

    (void)state;
    for (size_t g = 0; g < sizeof GRANULARITIES / sizeof GRANULARITIES[0] - 1; g++) {
        assert_int_equal(FSDP_OK, fsdp_layout_init(3, counts, NULL, SIZE, 32, GRANULARITIES[g], &layout));
        assert_int_equal(layout.padded, layout.shard * SIZE);
        for (size_t r = 0; r < sizeof ranks / sizeof ranks[0]; r++) {
            assert_int_equal(FSDP_OK, fsdp_layout_intervals(&layout, ranks[r], 3, counts, NULL, intervals, &n));
            assert_true(n <= 3);
            for (size_t k = 0; k < n; k++) {
                assert_true(intervals[k].shard_begin + intervals[k].count <= layout.shard);
            }
        }
    }
}

/* ---- dealing ----------------------------------------------------------------------------------------------------- */

/* A random model of `n` matrices and vectors. */
static void draw_costs(uint64_t seed, size_t n, double *costs)
{
    for (size_t i = 0; i < n; i++) {
        const size_t shape[] = {1 + (size_t)(4096.0 * fsdp_random_uniform(seed, 1, i)),
                                1 + (size_t)(4096.0 * fsdp_random_uniform(seed, 2, i))};

        costs[i] = fsdp_tensor_cost(fsdp_random_uniform(seed, 3, i) < 0.5 ? 1 : 2, shape, 1);
    }
}

/* Of the costs, each is counted once; the most that a rank has is at most its part and one tensor. */
static void check_dealing(uint64_t seed, size_t n, int size)
{
    double *costs = calloc(n, sizeof *costs), *loads = calloc((size_t)size, sizeof *loads);
    int    *owners = calloc(n, sizeof *owners), *again = calloc(n, sizeof *again);
    double  all = 0.0, largest = 0.0, most = 0.0;

    draw_costs(seed, n, costs);
    assert_int_equal(FSDP_OK, fsdp_deal_tensors(n, costs, size, owners));
    assert_int_equal(FSDP_OK, fsdp_deal_tensors(n, costs, size, again));
    assert_memory_equal(owners, again, n * sizeof *owners);
    for (size_t i = 0; i < n; i++) {
        assert_in_range(owners[i], 0, size - 1);
        loads[owners[i]] += costs[i];
        all += costs[i];
        largest = fmax(largest, costs[i]);
    }
    for (int r = 0; r < size; r++) {
        most = fmax(most, loads[r]);
    }
    if (most > all / size + largest) {
        fail_msg("%zu tensors on %d ranks: one has %g of %g, and the largest costs %g", n, size, most, all, largest);
    }
    if (n <= (size_t)size) {
        assert_true(most == largest);
    }
    free(again);
    free(owners);
    free(loads);
    free(costs);
}

static void no_rank_has_more_than_its_part_of_the_work_and_one_tensor(void **state)
{
    static const int    sizes[]  = {1, 2, 3, 5, 8, 64, 1000, 100000, 1000000};
    static const size_t counts[] = {1, 2, 3, 17, 64, 500, 3000};

    (void)state;
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
            check_dealing(100 * s + c, counts[c], sizes[s]);
        }
    }
    for (uint64_t seed = 0; seed < 200; seed++) {
        check_dealing(1000 + seed, 1 + (size_t)(100.0 * fsdp_random_uniform(seed, 4, 0)),
                      1 + (int)(40.0 * fsdp_random_uniform(seed, 5, 0)));
    }
}

static void fewer_tensors_than_ranks_are_spread_over_them(void **state)
{
    static const double costs[] = {3.0, 1.0, 2.0};
    int                 owners[3];

    (void)state;
    assert_int_equal(FSDP_OK, fsdp_deal_tensors(3, costs, 9, owners));
    assert_int_equal(0, owners[0]);
    assert_int_equal(6, owners[1]);
    assert_int_equal(3, owners[2]);
}

static void costs_are_what_the_header_says(void **state)
{
    static const size_t shape[] = {8, 3, 4};

    (void)state;
    assert_true(fsdp_tensor_cost(0, NULL, 1) == 1.0);
    assert_true(fsdp_tensor_cost(1, shape, 1) == 8.0);
    assert_true(fsdp_tensor_cost(3, shape, 0) == 96.0);
    assert_true(fsdp_tensor_cost(3, shape, 1) == 15.0 * 8.0 * 8.0 * 12.0);
    assert_true(fsdp_tensor_cost(2, shape, 1) == 15.0 * 3.0 * 3.0 * 8.0);
}

/* ---- bad arguments ----------------------------------------------------------------------------------------------- */

static void expect_refusal(fsdp_status status, const char *words)
{
    assert_int_equal(FSDP_ERR_ARG, status);
    if (strstr(fsdp_last_error(NULL), words) == NULL) {
        fail_msg("'%s' is not in: %s", words, fsdp_last_error(NULL));
    }
}

static void bad_arguments_are_named(void **state)
{
    const size_t  zero = 0, one = 1, most = SIZE_MAX, half = SIZE_MAX / 2, count = 10, wrong = 11;
    const size_t  pair[]    = {1, 1};
    const int     reverse[] = {1, 0}, beyond[] = {0, 2};
    const double  free_one[] = {1.0, 0.0};
    fsdp_layout   layout;
    fsdp_interval interval;
    int           owners[2];
    size_t        n;

    (void)state;
    expect_refusal(fsdp_layout_init(1, &zero, NULL, 1, 1, 0, &layout), "0 elements");
    expect_refusal(fsdp_layout_init(0, NULL, NULL, 1, 1, 0, &layout), "0 elements");
    expect_refusal(fsdp_layout_init(1, &one, NULL, 0, 1, 0, &layout), "0 ranks");
    expect_refusal(fsdp_layout_init(1, &one, NULL, 1, 0, 0, &layout), "the alignment is 0");
    expect_refusal(fsdp_layout_init(1, &most, NULL, 1, 1, 0, &layout), "1 ranks can divide 1 to");
    expect_refusal(fsdp_layout_init(1, &half, NULL, 3, 1, 0, &layout), "3 ranks can divide 1 to");
    expect_refusal(fsdp_layout_init(1, &one, NULL, 1, 64, SIZE_MAX - 2, &layout), "blocks of");
    expect_refusal(fsdp_layout_init(1, &one, NULL, 1, 1, 0, NULL), "`layout` is NULL");
    expect_refusal(fsdp_layout_init(1, NULL, NULL, 1, 1, 0, &layout), "the counts are NULL");
    expect_refusal(fsdp_layout_init(2, pair, NULL, 2, 1, FSDP_GRANULARITY_TENSOR, &layout), "without owners");
    expect_refusal(fsdp_layout_init(2, pair, reverse, 2, 1, 0, &layout), "owners, and the tensors are divided");
    expect_refusal(fsdp_layout_init(2, pair, reverse, 2, 1, FSDP_GRANULARITY_TENSOR, &layout), "in order");
    expect_refusal(fsdp_layout_init(2, pair, beyond, 2, 1, FSDP_GRANULARITY_TENSOR, &layout), "tensor 1 is rank 2's");
    assert_int_equal(FSDP_OK, fsdp_layout_init(1, &count, NULL, 2, 1, 0, &layout));
    expect_refusal(fsdp_layout_intervals(&layout, 2, 1, &count, NULL, &interval, &n), "rank 2");
    expect_refusal(fsdp_layout_intervals(&layout, 0, 1, &wrong, NULL, &interval, &n), "do not add up");
    expect_refusal(fsdp_layout_intervals(&layout, 0, 1, &count, beyond, &interval, &n), "owners");
    expect_refusal(fsdp_layout_intervals(&layout, 0, 1, &count, NULL, NULL, &n), "a pointer is NULL");
    expect_refusal(fsdp_deal_tensors(2, free_one, 2, owners), "tensor 1 costs 0");
    expect_refusal(fsdp_deal_tensors(2, free_one, 0, owners), "0 ranks");
    expect_refusal(fsdp_deal_tensors(2, NULL, 1, owners), "the costs are NULL");
    assert_int_equal(FSDP_OK, fsdp_deal_tensors(0, NULL, 1, NULL));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(slices_are_aligned_and_multiples_of_blocks),
        cmocka_unit_test(a_flat_layout_pads_little),
        cmocka_unit_test(a_tensor_is_padded_by_less_than_the_alignment),
        cmocka_unit_test(the_length_of_whole_tensors_does_not_depend_on_who_owns_them),
        cmocka_unit_test(intervals_cover_every_element_once_and_never_cut_a_block),
        cmocka_unit_test(divided_tensors_begin_where_the_tensors_before_them_end),
        cmocka_unit_test(a_rank_that_holds_only_padding_has_no_intervals),
        cmocka_unit_test(any_rank_of_a_million_is_computed_alone),
        cmocka_unit_test(no_rank_has_more_than_its_part_of_the_work_and_one_tensor),
        cmocka_unit_test(fewer_tensors_than_ranks_are_spread_over_them),
        cmocka_unit_test(costs_are_what_the_header_says),
        cmocka_unit_test(bad_arguments_are_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
