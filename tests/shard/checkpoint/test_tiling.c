/*
 * Whether boxes tile an array, against a count of who has each element: random tilings, and random changes of them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shard/checkpoint/arrays/box.h"
#include "tests/support/unit_test.h"

enum { DIMS = 3, RANKS = 7, MOST = 6, TRIALS = 20000 };

typedef struct layout {
    size_t n_dims, n;
    size_t shape[DIMS];
    size_t offset[RANKS][DIMS], extent[RANKS][DIMS];
} layout;

static uint64_t state_of_random = 5;

static size_t random_below(size_t n)
{
    state_of_random = state_of_random * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(state_of_random >> 33) % n;
}

static void cut(layout *l, const size_t *offset, const size_t *extent, size_t rank, size_t n)
{
    size_t back_offset[DIMS], front_extent[DIMS], back_extent[DIMS];

    memcpy(l->offset[rank], offset, sizeof l->offset[rank]);
    memcpy(l->extent[rank], extent, sizeof l->extent[rank]);
    if (n == 1) {
        return;
    }
    const size_t d = random_below(l->n_dims), at = random_below(extent[d] + 1), front = 1 + random_below(n - 1);
    memcpy(back_offset, offset, sizeof back_offset);
    memcpy(front_extent, extent, sizeof front_extent);
    memcpy(back_extent, extent, sizeof back_extent);
    back_offset[d] += at;
    front_extent[d] = at;
    back_extent[d] -= at;
    cut(l, offset, front_extent, rank, front);
    cut(l, back_offset, back_extent, rank + front, n - front);
}

static layout make(void)
{
    const size_t zeros[DIMS] = {0};
    layout       l           = {.n_dims = 1 + random_below(DIMS), .n = 1 + random_below(RANKS)};

    for (size_t d = 0; d < l.n_dims; d++) {
        l.shape[d] = random_below(MOST + 1);
    }
    cut(&l, zeros, l.shape, 0, l.n);
    return l;
}

/* Another box for one rank, inside the array. */
static void change(layout *l)
{
    const size_t rank = random_below(l->n), d = random_below(l->n_dims);

    l->offset[rank][d] = random_below(l->shape[d] + 1);
    l->extent[rank][d] = random_below(l->shape[d] - l->offset[rank][d] + 1);
}

static int has(const layout *l, size_t rank, const size_t *point)
{
    for (size_t d = 0; d < l->n_dims; d++) {
        if (point[d] < l->offset[rank][d] || point[d] >= l->offset[rank][d] + l->extent[rank][d]) {
            return 0;
        }
    }
    return 1;
}

/* Whether each element is one rank's. */
static int tiles(const layout *l)
{
    size_t point[DIMS] = {0}, elements = 1;

    for (size_t d = 0; d < l->n_dims; d++) {
        elements *= l->shape[d];
    }
    for (size_t e = 0; e < elements; e++) {
        size_t rest = e, n = 0;

        for (size_t d = 0; d < l->n_dims; d++) {
            point[d] = rest % l->shape[d];
            rest /= l->shape[d];
        }
        for (size_t rank = 0; rank < l->n; rank++) {
            n += has(l, rank, point) ? 1 : 0;
        }
        if (n != 1) {
            return 0;
        }
    }
    return 1;
}

static int holds(const layout *l)
{
    int64_t sum[FSDPI_TILING_WORDS] = {0};

    for (size_t rank = 0; rank < l->n; rank++) {
        fsdpi_tiling_add(l->offset[rank], l->extent[rank], l->n_dims, sum);
    }
    return fsdpi_tiling_holds(sum, l->shape, l->n_dims);
}

/* "[0:2, 1:5]" at the beginning of a text. */
static void read_box(const layout *l, const char *text, size_t *begin, size_t *end)
{
    char *at = (char *)(uintptr_t)text;

    for (size_t d = 0; d < l->n_dims; d++) {
        begin[d] = strtoull(at + (d == 0 ? 1 : 2), &at, 10);
        end[d]   = strtoull(at + 1, &at, 10);
        assert_true(end[d] > begin[d] && end[d] <= l->shape[d]);
    }
}

static void assert_is_hole(const layout *l, const char *text)
{
    size_t begin[DIMS], end[DIMS];

    read_box(l, strchr(text, '['), begin, end);
    for (size_t rank = 0; rank < l->n; rank++) {
        int meets = 1;

        for (size_t d = 0; d < l->n_dims; d++) {
            meets = meets && l->extent[rank][d] > 0 && l->offset[rank][d] < end[d] &&
                    begin[d] < l->offset[rank][d] + l->extent[rank][d];
        }
        if (meets) {
            fail_msg("rank %zu has some of it: %s", rank, text);
        }
    }
}

static void assert_overlap(const layout *l, const char *text)
{
    const char  *first = strstr(text, "of rank "), *second = strstr(first + 1, "of rank ");
    const size_t p = strtoull(first + 8, NULL, 10), q = strtoull(second + 8, NULL, 10);

    assert_true(p < q && q < l->n);
    for (size_t d = 0; d < l->n_dims; d++) {
        assert_true(l->offset[p][d] < l->offset[q][d] + l->extent[q][d]);
        assert_true(l->offset[q][d] < l->offset[p][d] + l->extent[p][d]);
    }
}

static void explain(const layout *l)
{
    int64_t       boxes[RANKS * 2 * DIMS];
    fsdpi_problem problem;

    for (size_t rank = 0; rank < l->n; rank++) {
        for (size_t d = 0; d < l->n_dims; d++) {
            boxes[(2 * rank) * l->n_dims + d]     = (int64_t)l->offset[rank][d];
            boxes[(2 * rank + 1) * l->n_dims + d] = (int64_t)l->extent[rank][d];
        }
    }
    assert_int_equal(FSDP_ERR_ARG, fsdpi_tiling_explain("t", boxes, l->n, l->shape, l->n_dims, &problem));
    if (strstr(problem.text, "overlap;") != NULL) {
        assert_overlap(l, problem.text);
    } else {
        assert_is_hole(l, problem.text);
    }
}

static void what_tiles_is_told_from_what_does_not_and_why(void **state)
{
    size_t good = 0, bad = 0;

    (void)state;
    for (size_t trial = 0; trial < TRIALS; trial++) {
        layout l = make();

        for (size_t changes = trial % 3; changes > 0; changes--) {
            change(&l);
        }
        const int expected = tiles(&l);
        assert_int_equal(expected, holds(&l));
        if (expected) {
            good++;
        } else {
            bad++;
            explain(&l);
        }
    }
    assert_true(good > TRIALS / 4 && bad > TRIALS / 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_tiles_is_told_from_what_does_not_and_why),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
