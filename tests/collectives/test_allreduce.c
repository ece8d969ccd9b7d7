#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/collectives/collective_test.h"

static void reduce_and_compare(const contexts *c, fsdp_context *ctx, size_t count, fsdp_dtype dtype, fsdp_redop op,
                               int in_place)
{
    void *in       = guarded_alloc(count, dtype);
    void *out      = guarded_alloc(count, dtype);
    void *expected = guarded_alloc(count, dtype);

    contribute(in_place ? out : in, c->rank, 0, count, dtype);
    reduce_serially(expected, c->size, 0, count, dtype, op);
    assert_int_equal(FSDP_OK, fsdp_allreduce(ctx, in_place ? FSDP_IN_PLACE : in, out, count, dtype, op));
    assert_same(expected, out, count, dtype);
    guarded_free(in);
    guarded_free(out);
    guarded_free(expected);
}

/* 5 elements take the one-shot path, 3001 the two-shot path: the serial reference holds both to the same bits. */
static void every_type_and_reduction_equals_the_serial_one(void **state)
{
    const contexts *c = *state;

    for (int k = 0; k < N_CONTEXTS; k++) {
        for (int dtype = 0; dtype < FSDP_N_DTYPES; dtype++) {
            for (int op = 0; op < FSDP_N_REDOPS; op++) {
                reduce_and_compare(c, c->each[k], 5, (fsdp_dtype)dtype, (fsdp_redop)op, 0);
                reduce_and_compare(c, c->each[k], 3001, (fsdp_dtype)dtype, (fsdp_redop)op, 0);
            }
        }
    }
}

static void every_count_works_separate_and_in_place(void **state)
{
    const contexts *c = *state;

    for (int k = 0; k < N_CONTEXTS; k++) {
        for (size_t i = 0; i < N_COUNTS; i++) {
            reduce_and_compare(c, c->each[k], COUNTS[i], FSDP_F32, FSDP_SUM, 0);
            reduce_and_compare(c, c->each[k], COUNTS[i], FSDP_BF16, FSDP_AVG, 1);
        }
    }
}

/* Between looks of which it pauses, now and then: what has come is taken late. */
static void wait_slowly(fsdp_request *request)
{
    const struct timespec moment = {.tv_nsec = 50000};
    int                   done   = 0;

    while (!done) {
        assert_int_equal(FSDP_OK, fsdp_test(request, &done));
        if (rand() % 2 == 0) {
            (void)nanosleep(&moment, NULL);
        }
    }
}

/* What odd ranks send others read late: it may not have been written over by then. */
static void results_wait_for_what_is_still_to_be_read(void **state)
{
    enum { LONG = 100003, TIMES = 60 }; /* more than MPI copies */

    const contexts *c   = *state;
    float          *out = guarded_alloc(LONG, FSDP_F32), *in = guarded_alloc(LONG, FSDP_F32);
    float          *expected = guarded_alloc(LONG, FSDP_F32);
    fsdp_context   *ctx;
    fsdp_request   *request;
    fsdp_config     config;

    fsdp_config_init(&config);
    config.progress = FSDP_PROGRESS_INLINE;
    assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_WORLD, &config, &ctx));
    reduce_serially(expected, c->size, 0, LONG, FSDP_F32, FSDP_SUM);
    contribute(in, c->rank, 0, LONG, FSDP_F32);
    for (int i = 0; i < TIMES; i++) {
        const bool late = c->rank % 2 == 0;

        memcpy(out, in, LONG * sizeof *out);
        assert_int_equal(FSDP_OK,
                         fsdp_iallreduce(ctx, late ? in : FSDP_IN_PLACE, out, LONG, FSDP_F32, FSDP_SUM, &request));
        if (late) {
            wait_slowly(request);
        } else {
            assert_int_equal(FSDP_OK, fsdp_wait(request));
        }
        assert_same(expected, out, LONG, FSDP_F32);
    }
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
    guarded_free(in);
    guarded_free(out);
    guarded_free(expected);
}

static void input_and_output_may_be_the_same_buffer(void **state)
{
    const contexts *c     = *state;
    int64_t         value = c->rank + 1;

    assert_int_equal(FSDP_OK, fsdp_allreduce(c->each[0], &value, &value, 1, FSDP_I64, FSDP_SUM));
    assert_int_equal(c->size * (c->size + 1) / 2, value);
}

/* How it is done depends on that, across two nodes. */
static void the_same_memory_again_gives_the_same_bits(void **state)
{
    enum { COUNT = 300007, TIMES = 3 };
    const contexts *c        = *state;
    float          *in[2]    = {guarded_alloc(COUNT, FSDP_F32), guarded_alloc(COUNT, FSDP_F32)};
    void           *expected = guarded_alloc(COUNT, FSDP_F32), *out = guarded_alloc(COUNT, FSDP_F32);

    reduce_serially(expected, c->size, 0, COUNT, FSDP_F32, FSDP_SUM);
    for (int i = 0; i < 2; i++) {
        contribute(in[i], c->rank, 0, COUNT, FSDP_F32);
        for (int k = 0; k < TIMES; k++) {
            memset(out, 0, COUNT * sizeof(float));
            assert_int_equal(FSDP_OK,
                             fsdp_allreduce(c->each[0], in[c->rank == 0 ? i : 0], out, COUNT, FSDP_F32, FSDP_SUM));
            assert_same(expected, out, COUNT, FSDP_F32);
        }
    }
    guarded_free(in[0]);
    guarded_free(in[1]);
    guarded_free(out);
    guarded_free(expected);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_and_reduction_equals_the_serial_one),
        cmocka_unit_test(every_count_works_separate_and_in_place),
        cmocka_unit_test(results_wait_for_what_is_still_to_be_read),
        cmocka_unit_test(input_and_output_may_be_the_same_buffer),
        cmocka_unit_test(the_same_memory_again_gives_the_same_bits),
    };

    return fsdp_test_main(argc, argv, tests, open_contexts, close_contexts);
}
