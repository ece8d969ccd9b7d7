/* The tuning file that fsdp-bench makes from times, and the bound that it holds times against. */
#include "tests/support/unit_test.h"

#include <stdio.h>
#include <string.h>

#include "bench/machine/bound.h"
#include "bench/tune/tuning.h"

#define SIZES 4

static void time_cell(bench_cell *cell, size_t bytes, fsdp_algorithm fastest, fsdp_algorithm other)
{
    memset(cell, 0, sizeof *cell);
    cell->bytes            = bytes;
    cell->seconds[other]   = 2e-6;
    cell->seconds[fastest] = 1e-6;
}

static void written(const bench_tuning *tuning, char *text, size_t bytes)
{
    FILE  *file = tmpfile();
    size_t got;

    assert_non_null(file);
    bench_tuning_write(tuning, file);
    rewind(file);
    got       = fread(text, 1, bytes - 1, file);
    text[got] = 0;
    (void)fclose(file);
}

static void equal_neighbours_become_one_row_and_the_last_has_no_end(void **state)
{
    bench_cell   symmetric[SIZES], user[SIZES];
    bench_tuning tuning = {.nodes = 1, .n = SIZES, .cells = {{symmetric, user}}};
    char         text[1000];

    (void)state;
    for (size_t i = 0; i < SIZES; i++) {
        time_cell(&symmetric[i], (size_t)8 << i, i < 2 ? FSDP_ALGO_INLINE : FSDP_ALGO_DIRECT, FSDP_ALGO_RING);
        time_cell(&user[i], (size_t)8 << i, FSDP_ALGO_STAGED, FSDP_ALGO_DIRECT);
    }
    written(&tuning, text, sizeof text);
    assert_string_equal("allgather symmetric one 16 inline\n"
                        "allgather symmetric one any direct\n"
                        "allgather user one any staged\n",
                        text);
}

static void memories_with_the_same_choices_share_their_rows(void **state)
{
    bench_cell   cells[SIZES];
    bench_tuning tuning = {.nodes = 2, .n = SIZES};
    char         text[1000];

    (void)state;
    tuning.cells[BENCH_ALLREDUCE][0] = tuning.cells[BENCH_ALLREDUCE][1] = cells;
    for (size_t i = 0; i < SIZES; i++) {
        time_cell(&cells[i], (size_t)8 << i, i < 3 ? FSDP_ALGO_RAILS : FSDP_ALGO_RING, FSDP_ALGO_DIRECT);
    }
    written(&tuning, text, sizeof text);
    assert_string_equal("allreduce any many 32 rails\nallreduce any many any ring\n", text);
}

static void what_no_algorithm_serves_has_no_row(void **state)
{
    bench_cell   cells[2] = {{.bytes = 8}, {.bytes = 16}};
    bench_tuning tuning   = {.nodes = 1, .n = 2, .cells = {{cells, cells}}};
    char         text[100];

    (void)state;
    written(&tuning, text, sizeof text);
    assert_string_equal("", text);
    assert_int_equal(FSDP_ALGO_AUTO, bench_fastest(&cells[0]));
}

/* Ranks decide about halves before they know of each other's memory. */
static void halves_count_where_they_are_fastest_for_both_memories(void **state)
{
    bench_cell   symmetric[2], user[2];
    bench_tuning tuning = {.nodes = 4, .n = 2};
    char         text[1000];

    (void)state;
    tuning.cells[BENCH_ALLREDUCE][BENCH_MEMORY_SYMMETRIC] = symmetric;
    tuning.cells[BENCH_ALLREDUCE][BENCH_MEMORY_USER]      = user;
    time_cell(&symmetric[0], 8, FSDP_ALGO_HALVES, FSDP_ALGO_INLINE);
    time_cell(&user[0], 8, FSDP_ALGO_HALVES, FSDP_ALGO_RAILS);
    time_cell(&symmetric[1], 16, FSDP_ALGO_HALVES, FSDP_ALGO_INLINE);
    time_cell(&user[1], 16, FSDP_ALGO_RAILS, FSDP_ALGO_HALVES);
    bench_tuning_settle(&tuning);
    written(&tuning, text, sizeof text);
    assert_string_equal("allreduce symmetric many 8 halves\n"
                        "allreduce symmetric many any inline\n"
                        "allreduce user many 8 halves\n"
                        "allreduce user many any rails\n",
                        text);
}

static void bounds_are_those_of_the_design(void **state)
{
    const bench_limits one  = {.nodes = 1, .node_size = 4, .memory = 1e9};
    const bench_limits many = {.nodes = 2, .node_size = 4, .memory = 1e12, .link = 1e6};
    bench_case         c    = {BENCH_ALLGATHER, 4, FSDP_F32, FSDP_SUM, 0, 0, 1000, 1};

    (void)state;
    assert_true(bench_traffic(&c, &one) == 2000);
    assert_true(bench_bound(&c, &one) == 2000 * 4 / 1e9);
    assert_true(bench_bound(&c, &many) == 500 / 1e6);
    c.in_place = 1;
    assert_true(bench_traffic(&c, &one) == 1500);
    c.shared = 1;
    assert_true(bench_traffic(&c, &one) == 0);
    c = (bench_case){BENCH_REDUCE_SCATTER, 4, FSDP_F32, FSDP_SUM, 0, 0, 1000, 1};
    assert_true(bench_traffic(&c, &one) == 1250);
    c.collective = BENCH_ALLREDUCE;
    assert_true(bench_traffic(&c, &one) == 2000);
    assert_true(bench_bound(&c, &many) == 1000 / 1e6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_neighbours_become_one_row_and_the_last_has_no_end),
        cmocka_unit_test(memories_with_the_same_choices_share_their_rows),
        cmocka_unit_test(what_no_algorithm_serves_has_no_row),
        cmocka_unit_test(halves_count_where_they_are_fastest_for_both_memories),
        cmocka_unit_test(bounds_are_those_of_the_design),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
