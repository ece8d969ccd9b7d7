/* What fsdp-bench calls wrong: held against inputs and results made here, element by element. */
#include "tests/support/unit_test.h"

#include <stdlib.h>
#include <string.h>

#include "bench/base/values.h"
#include "bench/compare/check.h"

#define RANKS 3
#define COUNT 2500 /* more than one chunk, and no whole number of them */

/* Inputs of all ranks, as bench_fill() makes them. */
static void fill_all(const bench_case *c, int32_t **in)
{
    for (int rank = 0; rank < RANKS; rank++) {
        in[rank] = calloc(RANKS * COUNT, sizeof **in);
        assert_non_null(in[rank]);
        int32_t *out = calloc(RANKS * COUNT, sizeof *out);
        assert_non_null(out);
        bench_fill(c, rank, 7, in[rank], out);
        free(out);
    }
}

static void release_all(int32_t **in)
{
    for (int rank = 0; rank < RANKS; rank++) {
        free(in[rank]);
    }
}

/* The result of `rank`, by the definition of each collective. */
static void compute(const bench_case *c, int rank, int32_t **in, int32_t *out)
{
    for (size_t i = 0; i < bench_out_count(c, rank); i++) {
        const size_t block = i / COUNT, within = i % COUNT, slice = (size_t)rank * COUNT;

        switch (c->collective) {
        case BENCH_ALLGATHER:
            out[i] = in[block][within];
            break;
        case BENCH_ALLTOALL:
            out[i] = in[block][slice + within];
            break;
        case BENCH_REDUCE_SCATTER:
            out[i] = in[0][slice + i] + in[1][slice + i] + in[2][slice + i];
            break;
        case BENCH_ALLREDUCE:
        case BENCH_REDUCE:
            out[i] = in[0][i] + in[1][i] + in[2][i];
            break;
        case BENCH_BROADCAST:
            break;
        }
    }
}

static void right_results_are_right_and_each_wrong_element_is_counted(void **state)
{
    (void)state;
    for (int k = 0; k < BENCH_N_COLLECTIVES; k++) {
        bench_case c = {(bench_collective)k, RANKS, FSDP_I32, FSDP_SUM, 0, 0, 0, COUNT};
        int32_t   *in[RANKS], *out = calloc(RANKS * COUNT, sizeof *out);

        if (k == BENCH_BROADCAST) { /* its input is its output */
            free(out);
            continue;
        }
        assert_non_null(out);
        fill_all(&c, in);
        for (int rank = 0; rank < RANKS; rank++) {
            const size_t n = bench_out_count(&c, rank);

            compute(&c, rank, in, out);
            assert_int_equal(0, bench_count_wrong(&c, rank, 7, out));
            if (n > 0) {
                out[0] += 1;
                out[n - 1] -= 1;
                out[n / 2] += 4;
                assert_int_equal(3, bench_count_wrong(&c, rank, 7, out));
            }
        }
        release_all(in);
        free(out);
    }
}

static void a_result_of_the_pattern_before_is_wrong(void **state)
{
    bench_case    c = {BENCH_ALLGATHER, 1, FSDP_U8, FSDP_SUM, 1, 0, COUNT, COUNT};
    unsigned char out[COUNT];

    (void)state;
    bench_fill(&c, 0, 1, NULL, out);
    assert_int_equal(0, bench_count_wrong(&c, 0, 1, out));
    assert_true(bench_count_wrong(&c, 0, 2, out) > COUNT / 2);
}

static void values_are_rounded_as_the_element_types_say(void **state)
{
    const int32_t values[] = {0, 1, 2, 255};
    uint16_t      halves[4];
    int64_t       integers[4];
    float         floats[4];

    (void)state;
    bench_values_store(FSDP_BF16, values, 4, 1, halves);
    assert_int_equal(0x0000, halves[0]);
    assert_int_equal(0x3F80, halves[1]);
    assert_int_equal(0x4000, halves[2]);
    assert_int_equal(0x437F, halves[3]);
    bench_values_store(FSDP_BF16, values, 4, 3, halves); /* 0.333.. is 0x3EAAAAAB in f32, 0.666.. is 0x3F2AAAAB */
    assert_int_equal(0x3EAB, halves[1]);
    assert_int_equal(0x3F2B, halves[2]);
    bench_values_store(FSDP_F16, values, 4, 1, halves);
    assert_int_equal(0x0000, halves[0]);
    assert_int_equal(0x3C00, halves[1]);
    assert_int_equal(0x5BF8, halves[3]);
    bench_values_store(FSDP_F16, values, 4, 3, halves);
    assert_int_equal(0x3555, halves[1]);
    bench_values_store(FSDP_I64, values, 4, 2, integers);
    assert_int_equal(0, integers[1]);
    assert_int_equal(127, integers[3]);
    bench_values_store(FSDP_F32, values, 4, 3, floats);
    assert_true(floats[2] == 2.0F / 3.0F);
}

/* Each iteration has a part of its own until all have been used, and none reaches beyond the buffers. */
static void iterations_take_turns_at_the_buffers(void **state)
{
    static char         in[1000], out[1000];
    const bench_buffers all = {.bytes = sizeof in, .in = in, .out = out, .host_in = in, .host_out = out};
    const bench_case    c = {.bytes = 72}, whole = {.bytes = 600};

    (void)state;
    for (size_t turn = 0; turn < 14; turn++) {
        const bench_buffers part = bench_buffers_turn(&all, &c, turn);

        assert_ptr_equal(in + turn % 7 * 128, part.in); /* seven parts of two lines of the caches */
        assert_ptr_equal(out + turn % 7 * 128, part.out);
        assert_ptr_equal(part.in, part.host_in);
        assert_ptr_equal(part.out, part.host_out);
        assert_null(part.node_out);
        assert_int_equal(128, part.bytes);
    }
    assert_ptr_equal(in, bench_buffers_turn(&all, &whole, 5).in);
    assert_int_equal(sizeof in, bench_buffers_turn(&all, &whole, 5).bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(right_results_are_right_and_each_wrong_element_is_counted),
        cmocka_unit_test(a_result_of_the_pattern_before_is_wrong),
        cmocka_unit_test(iterations_take_turns_at_the_buffers),
        cmocka_unit_test(values_are_rounded_as_the_element_types_say),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
