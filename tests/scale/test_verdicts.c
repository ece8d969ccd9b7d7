/* What is kept of the verdicts of a hundred thousand made-up ranks, in whichever order they are joined. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/progress/verdicts.h"
#include "tests/support/unit_test.h"

enum { MANY = 100003 };

/* What a rank says. */
typedef fsdpi_verdict (*saying)(int rank);

static fsdpi_verdict says(int rank, fsdp_status status, const char *text, int number)
{
    fsdpi_verdict one = {.status = (int32_t)status, .place = rank, .rank = rank + 1000};

    (void)snprintf(one.text, sizeof one.text, "%s %d", text, number);
    return one;
}

static fsdpi_verdict all_the_same(int rank)
{
    return says(rank, FSDP_OK, "fsdp_barrier", 0);
}

static fsdpi_verdict two_differ(int rank)
{
    return says(rank, FSDP_OK, "fsdp_barrier", rank == 31 || rank == MANY - 1 ? rank : 0);
}

static fsdpi_verdict all_but_the_first_two_differ(int rank)
{
    return says(rank, FSDP_OK, "fsdp_barrier", rank < 2 ? 0 : rank);
}

static fsdpi_verdict every_tenth_fails(int rank)
{
    return rank % 10 == 7 ? says(rank, rank == 7 ? FSDP_ERR_ARG : FSDP_ERR_MEMORY, "fails", rank) : two_differ(rank);
}

static fsdpi_verdict one_fails(int rank)
{
    return rank == 5 ? says(rank, FSDP_ERR_STATE, "fails", rank) : all_the_same(rank);
}

/* One rank after the other, in plain order. */
static void summarize_plainly(saying say, int n, fsdpi_summary *all)
{
    memset(all, 0, sizeof *all);
    all->first = say(0);
    for (int r = 0; r < n; r++) {
        const fsdpi_verdict one = say(r);

        if (!all->differ && strcmp(one.text, all->first.text) != 0) {
            all->other  = one;
            all->differ = 1;
        }
        if (one.status != FSDP_OK && all->failed++ < FSDPI_RANKS_NAMED) {
            all->bad[all->failed - 1] = one;
        }
    }
}

/* A tree over the ranks `first`, `first` + `stride`, ...: the sets that it joins lie among each other. */
static void summarize_tree(saying say, int n, int first, int stride, fsdpi_summary *all)
{
    const fsdpi_verdict one = say(first);

    if (first + stride >= n) {
        fsdpi_summarize(&one, all);
        return;
    }
    fsdpi_summary others;
    summarize_tree(say, n, first, 2 * stride, &others);
    summarize_tree(say, n, first + stride, 2 * stride, all);
    fsdpi_summary_join(all, &others);
}

static void check(saying say, int n)
{
    fsdpi_summary expected, found;

    summarize_plainly(say, n, &expected);
    summarize_tree(say, n, 0, 1, &found);
    assert_int_equal(expected.failed, found.failed);
    assert_int_equal(expected.differ, found.differ);
    assert_int_equal(expected.first.place, found.first.place);
    assert_string_equal(expected.first.text, found.first.text);
    assert_int_equal(expected.other.place, found.other.place);
    assert_string_equal(expected.other.text, found.other.text);
    for (int i = 0; i < FSDPI_RANKS_NAMED; i++) {
        assert_int_equal(expected.bad[i].status, found.bad[i].status);
        assert_int_equal(expected.bad[i].rank, found.bad[i].rank);
        assert_string_equal(expected.bad[i].text, found.bad[i].text);
    }
}

static void a_summary_is_that_of_all_ranks_in_order(void **state)
{
    static const saying SAYINGS[] = {all_the_same, two_differ, all_but_the_first_two_differ, every_tenth_fails,
                                     one_fails};

    (void)state;
    for (size_t s = 0; s < sizeof SAYINGS / sizeof SAYINGS[0]; s++) {
        for (int n = 1; n < 70; n++) {
            check(SAYINGS[s], n);
        }
        check(SAYINGS[s], MANY);
    }
    (void)printf("a summary of any number of ranks is %zu bytes\n", sizeof(fsdpi_summary));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {cmocka_unit_test(a_summary_is_that_of_all_ranks_in_order)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
