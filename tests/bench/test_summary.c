/* The lines that end fsdp-bench's plain run, from rows that are made up. */
#include "tests/support/unit_test.h"

#include <stdio.h>
#include <string.h>

#include "bench/collectives/summary.h"

#define MIB ((size_t)1 << 20)

/* Allreduces of 1 GB/s and 2 GB/s by 2 ranks: busbw is as much. */
static const bench_result ROWS[] = {
    {.what         = {.collective = BENCH_ALLREDUCE, .ranks = 2, .bytes = MIB},
     .seconds      = (double)MIB * 1e-9,
     .checked      = 1,
     .memory       = 10e9,
     .memory_least = 9e9},
    {.what         = {.collective = BENCH_ALLREDUCE, .ranks = 2, .bytes = MIB},
     .seconds      = (double)MIB * 0.5e-9,
     .checked      = 1,
     .memory       = 11e9,
     .memory_least = 10e9},
};

static void printed(const bench_summary *summary, char *text, size_t bytes)
{
    FILE  *file = tmpfile();
    size_t got;

    assert_non_null(file);
    bench_summary_print(summary, file);
    rewind(file);
    got       = fread(text, 1, bytes - 1, file);
    text[got] = 0;
    (void)fclose(file);
}

static void the_last_lines_are_those_of_nccl_tests(void **state)
{
    const bench_summary summary = bench_summary_of(ROWS, 2, 10e9);
    char                text[1000];

    (void)state;
    printed(&summary, text, sizeof text);
    assert_string_equal("#\n# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 1.5\n", text);
}

static void elements_that_are_wrong_or_not_checked_are_named(void **state)
{
    bench_result  rows[2] = {ROWS[0], ROWS[1]};
    bench_summary summary;
    char          text[1000];

    (void)state;
    rows[0].wrong = 3;
    rows[1].wrong = 4;
    summary       = bench_summary_of(rows, 2, 10e9);
    assert_int_equal(7, summary.wrong);
    printed(&summary, text, sizeof text);
    assert_non_null(strstr(text, "# Out of bounds values : 7 FAILED\n"));
    rows[0].checked = rows[1].checked = 0;
    summary                           = bench_summary_of(rows, 2, 10e9);
    printed(&summary, text, sizeof text);
    assert_non_null(strstr(text, "# Out of bounds values : not checked\n"));
}

/* In a block, in all of a row, or before the first one. */
static void memory_that_is_slower_at_times_is_warned_about(void **state)
{
    static const struct {
        double      before, memory, least;
        const char *range; /* NULL: no warning */
    } cases[] = {
        {10e9, 10e9, 9e9, NULL},
        {10e9, 10e9, 7.9e9, "7.90 to 11.00 GB/s"},
        {15e9, 10e9, 10e9, "10.00 to 15.00 GB/s"},
        {5e9, 10e9, 10e9, "5.00 to 11.00 GB/s"},
    };
    char text[1000];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bench_result  rows[2] = {ROWS[0], ROWS[1]};
        bench_summary summary;

        rows[0].memory       = cases[i].memory;
        rows[0].memory_least = cases[i].least;
        summary              = bench_summary_of(rows, 2, cases[i].before);
        printed(&summary, text, sizeof text);
        assert_int_equal(cases[i].range != NULL, strstr(text, "warning") != NULL);
        assert_true(!cases[i].range || strstr(text, cases[i].range));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_lines_are_those_of_nccl_tests),
        cmocka_unit_test(elements_that_are_wrong_or_not_checked_are_named),
        cmocka_unit_test(memory_that_is_slower_at_times_is_warned_about),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
