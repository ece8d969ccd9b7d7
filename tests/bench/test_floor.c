/* The floor of fsdp-bench: each collective under every plan, bit by bit, and what its letters find. On 2 ranks. */
#include "tests/support/mpi_test.h"

#include "bench/floor/answers.h"
#include "bench/floor/minimal.h"
#include "bench/floor/stream.h"

#define MOST_COUNT  4099
#define COLLECTIVES 3

static bench_world world;
static bench_pair  pair;
static float       in[2 * MOST_COUNT], out[2 * MOST_COUNT];

static bench_case case_of(bench_collective collective, size_t count)
{
    bench_case c = {.collective = collective, .ranks = 2, .dtype = FSDP_F32, .op = FSDP_SUM};

    bench_case_size(&c, count * sizeof(float) * (collective == BENCH_ALLREDUCE ? 1 : 2));
    assert_int_equal(count, c.count);
    return c;
}

static void run_and_check(const bench_case *c, const bench_plan *plan)
{
    static unsigned pattern;

    bench_answers_fill(c, world.rank, ++pattern, in, out);
    assert_int_equal(bench_out_count(c, world.rank), bench_answers_wrong(c, world.rank, pattern, out));
    assert_int_equal(FSDP_OK, bench_minimal_run(&pair, plan, c, in, out));
    assert_int_equal(0, bench_answers_wrong(c, world.rank, pattern, out));
}

static void every_plan_gives_the_result_bit_by_bit(void **state)
{
    static const size_t counts[] = {1, 2, 3, 5, 17, 64, 1001, 2048, MOST_COUNT};
    static const size_t chunks[] = {4, 64, 1000, 1 << 14};

    (void)state;
    for (size_t i = 0; i < COLLECTIVES * sizeof counts / sizeof counts[0]; i++) {
        const bench_case c    = case_of((bench_collective)(i % COLLECTIVES), counts[i / COLLECTIVES]);
        bench_plan       plan = {BENCH_FORM_INLINE, c.count * sizeof(float), 1};

        if (plan.chunk <= BENCH_PLAN_INLINE_BYTES) {
            run_and_check(&c, &plan);
        }
        plan.form = BENCH_FORM_WHOLE;
        run_and_check(&c, &plan);
        for (size_t k = 0; k < sizeof chunks / sizeof chunks[0]; k++) {
            for (size_t depth = 1; depth <= BENCH_STREAM_MOST_DEPTH; depth += 3) {
                run_and_check(&c, &(bench_plan){BENCH_FORM_CHUNKS, chunks[k], depth});
            }
        }
    }
}

static void every_size_has_plans_that_fit(void **state)
{
    bench_plan plans[BENCH_PLANS];

    (void)state;
    for (size_t count = 1; count < (size_t)1 << 34; count = 3 * count + 1) {
        for (int collective = 0; collective < COLLECTIVES; collective++) {
            const bench_case c = case_of((bench_collective)collective, count);
            const size_t     n = bench_plans(&c, plans);

            assert_true(n >= 1 && n <= BENCH_PLANS);
            for (size_t i = 0; i < n; i++) {
                assert_true(plans[i].depth >= 1 && plans[i].depth <= BENCH_STREAM_MOST_DEPTH);
                assert_true(plans[i].chunk * plans[i].depth <= BENCH_PLAN_ROOM);
            }
        }
    }
}

static void ranks_that_call_something_else_find_out(void **state)
{
    const bench_plan plans[] = {{BENCH_FORM_INLINE, 20, 1}, {BENCH_FORM_WHOLE, 20, 1}, {BENCH_FORM_CHUNKS, 8, 2}};

    (void)state;
    for (size_t i = 0; i < sizeof plans / sizeof plans[0]; i++) {
        const bench_case good  = case_of(BENCH_ALLREDUCE, 5);
        bench_case       other = good;

        other.op = world.rank == 0 ? FSDP_SUM : FSDP_MAX;
        assert_int_equal(FSDP_ERR_MISMATCH, bench_minimal_run(&pair, &plans[i], &other, in, out));
        run_and_check(&good, &plans[i]);
    }
}

static int open_pair(void **state)
{
    (void)state;
    bench_world_open(&world, MPI_THREAD_MULTIPLE);
    return bench_pair_open(&pair, &world) == FSDP_OK ? 0 : -1;
}

static int close_pair(void **state)
{
    (void)state;
    bench_pair_close(&pair);
    bench_world_close(&world);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_plan_gives_the_result_bit_by_bit),
        cmocka_unit_test(every_size_has_plans_that_fit),
        cmocka_unit_test(ranks_that_call_something_else_find_out),
    };

    return fsdp_test_main(argc, argv, tests, open_pair, close_pair);
}
