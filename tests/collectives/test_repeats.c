/**
 * @file
 * The same short call again and again, which is carried out with what is known of the one before: with other data each time,
 * with one argument changed, beside other calls, and with memory that is gone.
 */
#include <string.h>

#include "collectives/arguments/memory.h"
#include "fsdp/buffer.h"
#include "lib/context/context.h"
#include "lib/progress/queue.h"
#include "tests/collectives/collective_test.h"

enum { TIMES = 8, COUNT = 5, MOST_RANKS = 8 };

static fsdp_context *the(void **state)
{
    return ((const contexts *)*state)->each[0];
}

/* Whether calls are remembered here: where each rank is a node that exchanges in pairs. */
static bool repeats(const fsdp_context *ctx)
{
    return ctx->nodes.count > 1 && ctx->nodes.largest == 1 && ctx->lanes[FSDPI_LANE_SHORT].exchange.in_pairs;
}

static int32_t value_of(int rank, int time, int i)
{
    return 1000 * (rank + 1) + 10 * time + i;
}

static void set(int32_t *values, int rank, int time, int n)
{
    for (int i = 0; i < n; i++) {
        values[i] = value_of(rank, time, i);
    }
}

static int32_t sum_of(int size, int time, int i)
{
    int32_t sum = 0;

    for (int r = 0; r < size; r++) {
        sum += value_of(r, time, i);
    }
    return sum;
}

static int32_t in[MOST_RANKS * COUNT], out[MOST_RANKS * COUNT];

static void gather(fsdp_context *ctx, int time, size_t count)
{
    const int size = fsdp_size(ctx);

    set(in, fsdp_rank(ctx), time, COUNT);
    memset(out, 0, sizeof out);
    assert_int_equal(FSDP_OK, fsdp_allgather(ctx, in, out, count, FSDP_I32));
    for (int r = 0; r < size; r++) {
        for (int i = 0; i < (int)count; i++) {
            assert_int_equal(value_of(r, time, i), out[r * (int)count + i]);
        }
    }
    assert_int_equal(0, size < MOST_RANKS ? out[size * (int)count] : 0);
}

static void reduce(fsdp_context *ctx, int time)
{
    set(in, fsdp_rank(ctx), time, COUNT);
    assert_int_equal(FSDP_OK, fsdp_allreduce(ctx, in, out, COUNT, FSDP_I32, FSDP_SUM));
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(sum_of(fsdp_size(ctx), time, i), out[i]);
    }
}

static void scatter(fsdp_context *ctx, int time)
{
    const int rank = fsdp_rank(ctx), size = fsdp_size(ctx);

    set(in, rank, time, size * COUNT);
    assert_int_equal(FSDP_OK, fsdp_reduce_scatter(ctx, in, out, COUNT, FSDP_I32, FSDP_SUM));
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(sum_of(size, time, rank * COUNT + i), out[i]);
    }
}

static void other_data_comes_each_time(void **state)
{
    for (int time = 0; time < TIMES; time++) {
        gather(the(state), time, COUNT);
    }
    for (int time = 0; time < TIMES; time++) {
        reduce(the(state), time);
    }
    for (int time = 0; time < TIMES; time++) {
        scatter(the(state), time);
    }
}

static void in_place_too(void **state)
{
    fsdp_context *ctx = the(state);

    for (int time = 0; time < TIMES; time++) {
        set(out, fsdp_rank(ctx), time, COUNT);
        assert_int_equal(FSDP_OK, fsdp_allreduce(ctx, FSDP_IN_PLACE, out, COUNT, FSDP_I32, FSDP_SUM));
        for (int i = 0; i < COUNT; i++) {
            assert_int_equal(sum_of(fsdp_size(ctx), time, i), out[i]);
        }
    }
}

/* Another call after it is that one, whichever of its arguments differs, and the first is itself again. */
static void any_argument_may_change(void **state)
{
    fsdp_context *ctx  = the(state);
    const int     size = fsdp_size(ctx);
    int32_t       other[COUNT];
    float         sums[COUNT];

    for (int time = 0; time < TIMES; time++) {
        reduce(ctx, time);
        reduce(ctx, time);
        assert_int_equal(FSDP_OK, fsdp_allreduce(ctx, in, out, COUNT, FSDP_I32, FSDP_MAX));
        assert_int_equal(value_of(size - 1, time, 1), out[1]);
        assert_int_equal(FSDP_OK, fsdp_allreduce(ctx, in, out, COUNT - 1, FSDP_I32, FSDP_SUM));
        assert_int_equal(value_of(size - 1, time, COUNT - 1), out[COUNT - 1]); /* as the call before has left it */
        assert_int_equal(FSDP_OK, fsdp_allreduce(ctx, in, other, COUNT, FSDP_I32, FSDP_SUM));
        assert_int_equal(sum_of(size, time, 2), other[2]);
        assert_int_equal(FSDP_OK, fsdp_allreduce(ctx, other, out, COUNT, FSDP_I32, FSDP_MIN));
        assert_int_equal(sum_of(size, time, 2), out[2]);
        for (int i = 0; i < COUNT; i++) {
            ((float *)(void *)in)[i] = 0.5f;
        }
        assert_int_equal(FSDP_OK, fsdp_allreduce(ctx, in, sums, COUNT, FSDP_F32, FSDP_SUM));
        assert_true(sums[3] == 0.5f * (float)size);
        gather(ctx, time, COUNT);
        gather(ctx, time, COUNT - 2);
        gather(ctx, time, COUNT);
    }
}

/* Each call has memory of its own, which may be in place, overlap, or be none. */
static void the_memory_may_change(void **state)
{
    enum { PLACES = 3 };
    fsdp_context *ctx  = the(state);
    const int     size = fsdp_size(ctx), rank = fsdp_rank(ctx);
    int32_t       from[PLACES][COUNT], to[PLACES][MOST_RANKS * COUNT];

    for (int time = 0; time < TIMES; time++) {
        const int place = time % PLACES;
        set(from[place], rank, time, COUNT);
        assert_int_equal(FSDP_OK, fsdp_allgather(ctx, from[place], to[place], COUNT, FSDP_I32));
        assert_int_equal(value_of(0, time, 1), to[place][1]);
        assert_int_equal(value_of(size - 1, time, COUNT - 1), to[place][size * COUNT - 1]);
    }
    for (int time = 0; time < TIMES; time++) { /* each rank's part lies where it belongs in the whole */
        const int place = time % PLACES;
        set(to[place] + rank * COUNT, rank, time, COUNT);
        assert_int_equal(FSDP_OK, fsdp_allgather(ctx, FSDP_IN_PLACE, to[place], COUNT, FSDP_I32));
        assert_int_equal(value_of(0, time, 1), to[place][1]);
        assert_int_equal(value_of(size - 1, time, COUNT - 1), to[place][size * COUNT - 1]);
        set(from[place], rank, time + 1, COUNT);
        assert_int_equal(FSDP_OK, fsdp_allgather(ctx, from[place], to[place], COUNT, FSDP_I32));
        assert_int_equal(value_of(size - 1, time + 1, 0), to[place][(size - 1) * COUNT]);
        set(to[place], rank, time, COUNT);
        assert_int_equal(FSDP_OK, fsdp_allreduce(ctx, FSDP_IN_PLACE, to[place], COUNT, FSDP_I32, FSDP_SUM));
        assert_int_equal(sum_of(size, time, 3), to[place][3]);
    }
    assert_int_equal(FSDP_OK, fsdp_allreduce(ctx, from[0], to[0], COUNT, FSDP_I32, FSDP_SUM));
    assert_int_equal(FSDP_ERR_ARG, fsdp_allreduce(ctx, to[0], to[0] + 1, COUNT, FSDP_I32, FSDP_SUM));
    assert_non_null(strstr(fsdp_last_error(ctx), "overlap"));
    assert_int_equal(FSDP_OK, fsdp_allreduce(ctx, from[0], to[0], COUNT, FSDP_I32, FSDP_SUM));
    assert_int_equal(FSDP_ERR_ARG, fsdp_allreduce(ctx, NULL, to[0], COUNT, FSDP_I32, FSDP_SUM));
    assert_int_equal(FSDP_ERR_ARG, fsdp_allreduce(ctx, from[0], FSDP_IN_PLACE, COUNT, FSDP_I32, FSDP_SUM));
    assert_int_equal(FSDP_ERR_ARG, fsdp_allreduce(ctx, (void *)(uintptr_t)64, to[0], COUNT, FSDP_I32, FSDP_SUM));
    assert_int_equal(FSDP_OK, fsdp_allreduce(ctx, from[0], to[0], COUNT, FSDP_I32, FSDP_SUM));
}

static void other_operations_come_in_between(void **state)
{
    fsdp_context *ctx     = the(state);
    fsdp_request *request = NULL;
    int32_t       mine = 1, sum = 0;

    for (int time = 0; time < TIMES; time++) {
        gather(ctx, time, COUNT);
        assert_int_equal(FSDP_OK, fsdp_iallreduce(ctx, &mine, &sum, 1, FSDP_I32, FSDP_SUM, &request));
        gather(ctx, time, COUNT); /* while that is under way */
        assert_int_equal(FSDP_OK, fsdp_wait(request));
        assert_int_equal(fsdp_size(ctx), sum);
        assert_int_equal(FSDP_OK, fsdp_barrier(ctx));
        gather(ctx, time, COUNT);
    }
}

static void a_rank_that_calls_something_else_fails_all(void **state)
{
    fsdp_context *ctx = the(state);

    if (fsdp_size(ctx) == 1) {
        return;
    }
    for (int time = 0; time < TIMES; time++) {
        gather(ctx, time, COUNT);
        const bool        differs = fsdp_rank(ctx) == time % fsdp_size(ctx);
        const fsdp_status status  = differs ? fsdp_allreduce(ctx, in, out, COUNT, FSDP_I32, FSDP_SUM)
                                            : fsdp_allgather(ctx, in, out, COUNT, FSDP_I32);
        assert_int_equal(FSDP_ERR_MISMATCH, status);
        assert_non_null(strstr(fsdp_last_error(ctx), "fsdp_allreduce of 5 i32"));
        assert_int_equal(FSDP_ERR_ARG, fsdp_allgather(ctx, differs ? NULL : in, out, COUNT, FSDP_I32));
        gather(ctx, time, COUNT);
    }
}

/* A buffer's memory is looked at again once one has been freed, and it is an error that it is gone. */
static void freed_memory_is_noticed(void **state)
{
    fsdp_context *ctx    = the(state);
    void         *memory = NULL;

    assert_int_equal(FSDP_OK, fsdp_buffer_alloc(ctx, FSDP_BUFFER_PER_RANK, sizeof out, &memory));
    for (int time = 0; time < TIMES; time++) {
        set(in, fsdp_rank(ctx), time, COUNT);
        assert_int_equal(FSDP_OK, fsdp_allreduce(ctx, in, memory, COUNT, FSDP_I32, FSDP_SUM));
        assert_int_equal(sum_of(fsdp_size(ctx), time, 4), ((int32_t *)memory)[4]);
    }
    assert_int_equal(FSDP_OK, fsdp_buffer_free(ctx, memory));
    assert_int_equal(FSDP_ERR_ARG, fsdp_allreduce(ctx, in, memory, COUNT, FSDP_I32, FSDP_SUM));
    assert_non_null(strstr(fsdp_last_error(ctx), "freed"));
}

enum { LONG = 3000 };

static void reduce_long(fsdp_context *ctx, int time, bool waits_elsewhere)
{
    static int32_t from[LONG], to[LONG];
    fsdp_request  *request;

    set(from, fsdp_rank(ctx), time, LONG);
    memset(to, 0, sizeof to);
    if (waits_elsewhere) {
        assert_int_equal(FSDP_OK, fsdp_iallreduce(ctx, from, to, LONG, FSDP_I32, FSDP_SUM, &request));
        assert_int_equal(FSDP_OK, fsdp_wait(request));
    } else {
        assert_int_equal(FSDP_OK, fsdp_allreduce(ctx, from, to, LONG, FSDP_I32, FSDP_SUM));
    }
    for (int i = 0; i < LONG; i++) {
        assert_int_equal(sum_of(fsdp_size(ctx), time, i), to[i]);
    }
}

/* A rank that waits for other operations too does not let its data ride, so that all of it goes in blocks, where inputs move. */
static void what_went_another_way_is_not_known(void **state)
{
    fsdp_context *ctx  = the(state);
    const double  rate = ctx->link.rate;

    ctx->link.rate = 1; /* so that only blocking calls are brief */
    for (int odd = 0; odd < fsdp_size(ctx); odd++) {
        reduce(ctx, odd); /* another call */
        reduce_long(ctx, 2 * odd, fsdp_rank(ctx) == odd);
        reduce_long(ctx, 2 * odd + 1, false);
        reduce_long(ctx, 2 * odd + 2, false);
    }
    ctx->link.rate = rate;
}

/* Whether all ranks say so. */
static bool on_all(bool here)
{
    int all = here;

    assert_int_equal(MPI_SUCCESS, MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD));
    return all != 0;
}

/* A gather by the short way where that can be, else as any other: while the progress thread is at work, it cannot. Its input moves. */
static bool gather_again(fsdp_context *ctx, int time, const fsdpi_collective *gathers)
{
    int32_t *const         from   = in + time % 2;
    const fsdpi_plain_call same   = {gathers, from, out, COUNT, FSDP_I32, 0};
    fsdp_status            status = FSDP_ERR_STATE;

    set(from, fsdp_rank(ctx), time, COUNT);
    const bool again = fsdpi_queue_run_again(&ctx->queue, &same, fsdpi_takes_memory_of, &status);
    assert_int_equal(FSDP_OK, again ? status : fsdp_allgather(ctx, from, out, COUNT, FSDP_I32));
    assert_int_equal(value_of(fsdp_size(ctx) - 1, time, 1), out[(fsdp_size(ctx) - 1) * COUNT + 1]);
    return again;
}

/* So that the tests above do test it. */
static void the_call_before_is_carried_out_again(void **state)
{
    enum { TRIES = 10000 };
    fsdp_context *ctx    = NULL;
    fsdp_status   status = FSDP_ERR_STATE;
    bool          again  = false;

    (void)state;
    assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_WORLD, NULL, &ctx));
    gather(ctx, 0, COUNT);
    const fsdpi_collective *gathers = ctx->queue.ordinary.free_head->call.collective;
    const fsdpi_plain_call  longer  = {gathers, in, out, COUNT + 1, FSDP_I32, 0};
    for (int time = 1; time <= TRIES && repeats(ctx) && !on_all(again); time++) {
        assert_false(fsdpi_queue_run_again(&ctx->queue, &longer, fsdpi_takes_memory_of, &status));
        again = gather_again(ctx, time, gathers);
    }
    assert_int_equal(repeats(ctx), again);
    fsdpi_queue_forget_calls(&ctx->queue);
    const fsdpi_plain_call same = {gathers, in, out, COUNT, FSDP_I32, 0};
    assert_false(fsdpi_queue_run_again(&ctx->queue, &same, fsdpi_takes_memory_of, &status));
    gather(ctx, 1, COUNT);
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_data_comes_each_time),
        cmocka_unit_test(in_place_too),
        cmocka_unit_test(any_argument_may_change),
        cmocka_unit_test(the_memory_may_change),
        cmocka_unit_test(other_operations_come_in_between),
        cmocka_unit_test(what_went_another_way_is_not_known),
        cmocka_unit_test(a_rank_that_calls_something_else_fails_all),
        cmocka_unit_test(the_call_before_is_carried_out_again),
        cmocka_unit_test(freed_memory_is_noticed),
    };

    return fsdp_test_main(argc, argv, tests, open_contexts, close_contexts);
}
