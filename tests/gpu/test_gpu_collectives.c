/** @file Collectives on device memory: order on streams, wrong memory, and failures of the runtime on one rank. */
#include <hip/hip_runtime_api.h>
#include <stdlib.h>
#include <string.h>

#include "fsdp/fsdp.h"
#include "tests/doubles/hip/double.h"
#include "tests/doubles/hip/job.h"
#include "tests/support/mpi_test.h"

enum { COUNT = 20000, MOST_RANKS = 8 };

static fsdp_context *ctx, *small; /* the latter with so little staging memory that all is cut up */
static hipStream_t   stream;
static int32_t      *in, *out, *plain_in, *plain_out, *small_out;

static int open_all(void **state)
{
    const size_t bytes = COUNT * MOST_RANKS * sizeof(int32_t);
    fsdp_config  config;

    fsdp_config_init(&config);
    config.staging_bytes = 16384;
    if (hip_double_join_job(state) != 0 || fsdp_init(MPI_COMM_WORLD, NULL, &ctx) != FSDP_OK ||
        fsdp_init(MPI_COMM_WORLD, &config, &small) != FSDP_OK) {
        return -1;
    }
    assert_int_equal(FSDP_OK, fsdp_buffer_alloc(small, FSDP_BUFFER_DEVICE, bytes, (void **)&small_out));
    assert_int_equal(hipSuccess, hipStreamCreateWithPriority(&stream, hipStreamNonBlocking, 0));
    assert_int_equal(FSDP_OK, fsdp_stream_set(ctx, stream));
    assert_int_equal(FSDP_OK, fsdp_stream_set(small, stream));
    assert_int_equal(FSDP_OK, fsdp_buffer_alloc(ctx, FSDP_BUFFER_DEVICE, bytes, (void **)&in));
    assert_int_equal(FSDP_OK, fsdp_buffer_alloc(ctx, FSDP_BUFFER_DEVICE, bytes, (void **)&out));
    assert_int_equal(hipSuccess, hipMalloc((void **)&plain_in, bytes));
    assert_int_equal(hipSuccess, hipMalloc((void **)&plain_out, bytes));
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    assert_int_equal(hipSuccess, hipFree(plain_in));
    assert_int_equal(hipSuccess, hipFree(plain_out));
    assert_int_equal(FSDP_OK, fsdp_buffer_free(ctx, out));
    assert_int_equal(FSDP_OK, fsdp_buffer_free(ctx, in));
    assert_int_equal(FSDP_OK, fsdp_buffer_free(small, small_out));
    assert_int_equal(FSDP_OK, fsdp_finalize(small));
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
    return hipStreamDestroy(stream) == hipSuccess ? 0 : -1;
}

/* Every element becomes a byte, four times. */
static void fill(void *memory, int byte, size_t count)
{
    assert_int_equal(hipSuccess, hipMemsetAsync(memory, byte, count * sizeof(int32_t), stream));
}

static int32_t element(int byte)
{
    return (int32_t)(0x01010101u * (unsigned)byte);
}

/* Waits, for the first time. */
static void bring(int32_t *here, const int32_t *there, size_t count)
{
    assert_int_equal(hipSuccess, hipMemcpyAsync(here, there, count * sizeof(int32_t), hipMemcpyDefault, stream));
    assert_int_equal(hipSuccess, hipStreamSynchronize(stream));
}

/* Three times over, each behind work that is still under way, and its buffers overwritten right behind it. */
static void gather_in_order(int32_t *from, int32_t *to)
{
    static int32_t found[3][COUNT * MOST_RANKS];
    const int      rank = fsdp_test_rank(), size = fsdp_test_size();

    for (int turn = 0; turn < 3; turn++) {
        fsdp_request *request;

        fill(from, 10 * turn + rank + 1, COUNT);
        assert_int_equal(FSDP_OK, fsdp_iallgather(ctx, from, to, COUNT, FSDP_I32, &request));
        assert_int_equal(FSDP_OK, fsdp_wait(request));
        fill(from, 0, COUNT);
        assert_int_equal(hipSuccess, hipMemcpyAsync(found[turn], to, sizeof(int32_t) * COUNT * (size_t)size,
                                                    hipMemcpyDefault, stream));
        fill(to, 0, COUNT * (size_t)size);
    }
    assert_int_equal(hipSuccess, hipStreamSynchronize(stream));
    for (int turn = 0; turn < 3; turn++) {
        for (int r = 0; r < size; r++) {
            assert_int_equal(element(10 * turn + r + 1), found[turn][r * COUNT + 17]);
        }
    }
}

/* Whether the ranks of a node reach each other's memory. */
static bool is_reached(bool symmetric)
{
    return fsdp_node_count(ctx) == fsdp_test_size() || (symmetric && getenv("HIP_DOUBLE_NO_IPC") == NULL);
}

/* Between nodes, of memory that is reached, it is what costs least over the link, as measured when the context was opened. */
static void check_gather(bool symmetric)
{
    const char *const found = fsdp_last_algorithm(ctx);

    if (fsdp_node_count(ctx) > 1 && is_reached(symmetric)) {
        assert_true(strcmp("rails", found) == 0 || strcmp("ring", found) == 0 || strcmp("staged", found) == 0);
    } else {
        assert_string_equal(symmetric && is_reached(symmetric) ? "device" : "staged", found);
    }
}

static void gathers_are_ordered_on_the_callers_stream(void **state)
{
    (void)state;
    gather_in_order(in, out);
    check_gather(true);
    gather_in_order(plain_in, plain_out);
    check_gather(false);
}

/* A gather and a reduction under way together, from and to different memory. */
static void reductions_overlap_gathers(void **state)
{
    const int      rank = fsdp_test_rank(), size = fsdp_test_size();
    fsdp_request  *gather, *reduction;
    static int32_t found[COUNT];

    (void)state;
    fill(in, 1, COUNT * (size_t)size);
    fill(plain_in, rank + 1, COUNT);
    assert_int_equal(FSDP_OK, fsdp_ireduce_scatter(ctx, in, out, COUNT, FSDP_I32, FSDP_SUM, &reduction));
    assert_int_equal(FSDP_OK, fsdp_iallgather(ctx, plain_in, plain_out, COUNT, FSDP_I32, &gather));
    assert_int_equal(FSDP_OK, fsdp_wait(gather));
    assert_int_equal(FSDP_OK, fsdp_wait(reduction));
    fill(in, 0, COUNT * (size_t)size);
    bring(found, plain_out + (size_t)(size - 1) * COUNT, COUNT);
    assert_int_equal(element(size), found[5]);
    bring(found, out, COUNT);
    assert_int_equal(size * element(1), found[COUNT - 1]);
}

/*
 * A gather through staging memory, and behind it a reduction that uses the same staging memory on another stream: to cut up
 * its own input, or, symmetric and uneven, to move its part down.
 */
static void streams_take_turns_at_the_staging_memory(void **state)
{
    const int     rank = fsdp_test_rank(), size = fsdp_test_size();
    size_t        counts[MOST_RANKS], sum       = 0;
    fsdp_request *gather, *reduction;
    int32_t       found;

    (void)state;
    for (int r = 0; r < size; r++) {
        counts[r] = r == 0 ? 5 : COUNT;
        sum += counts[r];
    }
    for (int turn = 0; turn < 4; turn++) {
        int32_t *whole = turn % 2 == 0 ? out : small_out; /* to the small context, `out` is plain memory */

        fill(plain_in, rank + 1, COUNT);
        fill(whole, 1, sum);
        assert_int_equal(FSDP_OK, fsdp_iallgather(small, plain_in, plain_out, COUNT, FSDP_I32, &gather));
        assert_int_equal(FSDP_OK,
                         fsdp_ireduce_scatterv(small, FSDP_IN_PLACE, whole, counts, FSDP_I32, FSDP_SUM, &reduction));
        assert_int_equal(FSDP_OK, fsdp_wait(reduction));
        assert_int_equal(FSDP_OK, fsdp_wait(gather));
        bring(&found, whole + counts[rank] - 1, 1);
        assert_int_equal(size * element(1), found);
        bring(&found, plain_out + (size_t)size * COUNT - 1, 1);
        assert_int_equal(element(size), found);
    }
}

static void in_place_and_after_each_other_without_a_wait_of_the_host(void **state)
{
    static int32_t found[COUNT];

    (void)state;
    fill(out, 1, COUNT);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(FSDP_OK, fsdp_allreduce(ctx, FSDP_IN_PLACE, out, COUNT, FSDP_I32, FSDP_MAX));
        assert_int_equal(FSDP_OK, fsdp_broadcast(ctx, out, COUNT, FSDP_I32, i % fsdp_test_size()));
    }
    bring(found, out, COUNT);
    assert_int_equal(element(1), found[0]);
    assert_int_equal(element(1), found[COUNT - 1]);
}

/* What a call of each collective leaves of inputs that are 1 on rank 0, 2 on rank 1, ..., in the last element of `to`. */
enum { ALLGATHER, ALLTOALL, ALLREDUCE, REDUCE_SCATTER, BROADCAST, REDUCE, N_CALLS };

static int32_t sum_of_all(void)
{
    int32_t sum = 0;

    for (int r = 0; r < fsdp_test_size(); r++) {
        sum += element(r + 1);
    }
    return sum;
}

static int32_t call(int which, int32_t *from, int32_t *to, size_t *at)
{
    const int    last = fsdp_test_size() - 1;
    const size_t all  = COUNT * (size_t)(last + 1);

    *at = which == ALLGATHER || which == ALLTOALL ? all - 1 : COUNT - 1;
    switch (which) {
    case ALLGATHER:
        assert_int_equal(FSDP_OK, fsdp_allgather(ctx, from, to, COUNT, FSDP_I32));
        return element(last + 1);
    case ALLTOALL:
        assert_int_equal(FSDP_OK, fsdp_alltoall(ctx, from, to, COUNT, FSDP_I32));
        return element(last + 1);
    case ALLREDUCE:
        assert_int_equal(FSDP_OK, fsdp_allreduce(ctx, from, to, COUNT, FSDP_I32, FSDP_SUM));
        return sum_of_all();
    case REDUCE_SCATTER:
        assert_int_equal(FSDP_OK, fsdp_reduce_scatter(ctx, from, to, COUNT, FSDP_I32, FSDP_SUM));
        return sum_of_all();
    case BROADCAST:
        assert_int_equal(FSDP_OK, fsdp_broadcast(ctx, from, COUNT, FSDP_I32, last));
        assert_int_equal(hipSuccess, hipMemcpyAsync(to, from, COUNT * sizeof *to, hipMemcpyDefault, stream));
        return element(last + 1);
    default:
        assert_int_equal(FSDP_OK, fsdp_reduce(ctx, from, to, COUNT, FSDP_I32, FSDP_SUM, last));
        return fsdp_test_rank() == last ? sum_of_all() : 0;
    }
}

/* Inputs are written right before, and inputs and outputs overwritten right behind. */
static void every_collective_waits_and_is_waited_for(void **state)
{
    const size_t all = COUNT * (size_t)fsdp_test_size();
    int32_t      found[2 * N_CALLS], expected[2 * N_CALLS];
    size_t       at;

    (void)state;
    for (int i = 0; i < 2 * N_CALLS; i++) {
        int32_t *from = i % 2 == 0 ? in : plain_in, *to = i % 2 == 0 ? out : plain_out;

        fill(to, 0, all);
        fill(from, fsdp_test_rank() + 1, all);
        expected[i] = call(i / 2, from, to, &at);
        assert_int_equal(hipSuccess, hipMemcpyAsync(&found[i], to + at, sizeof *to, hipMemcpyDefault, stream));
        fill(from, 99, all);
        fill(to, 99, all);
    }
    assert_int_equal(hipSuccess, hipStreamSynchronize(stream));
    for (int i = 0; i < 2 * N_CALLS; i++) {
        assert_int_equal(expected[i], found[i]);
    }
}

/* Of uneven parts, in place: what this rank gets overlaps where it was computed. */
static void an_uneven_part_moves_down_in_place(void **state)
{
    const int rank = fsdp_test_rank(), size = fsdp_test_size();
    size_t    counts[MOST_RANKS], sum       = 0;
    int32_t   found[2];

    (void)state;
    for (int r = 0; r < size; r++) {
        counts[r] = r == 0 ? 5 : COUNT;
        sum += counts[r];
    }
    for (int turn = 0; turn < 2; turn++) {
        int32_t *whole = turn == 0 ? out : plain_out;

        fill(whole, rank + 1, sum);
        assert_int_equal(FSDP_OK, fsdp_reduce_scatterv(ctx, FSDP_IN_PLACE, whole, counts, FSDP_I32, FSDP_SUM));
        bring(found, whole + counts[rank] - 2, 2);
        assert_int_equal(sum_of_all(), found[0]);
        assert_int_equal(sum_of_all(), found[1]);
    }
}

static void all_still_works(void)
{
    int32_t found;

    fill(in, 1, COUNT);
    assert_int_equal(FSDP_OK, fsdp_allreduce(ctx, in, out, COUNT, FSDP_I32, FSDP_SUM));
    bring(&found, out + 7, 1);
    assert_int_equal(fsdp_test_size() * element(1), found);
}

static void memory_of_two_kinds_is_refused(void **state)
{
    int32_t host[4] = {0};

    (void)state;
    assert_int_equal(FSDP_ERR_ARG, fsdp_allreduce(ctx, host, out, 4, FSDP_I32, FSDP_SUM));
    assert_says(ctx, "is on the GPU, the other one");
    if (fsdp_test_size() > 1) {
        void *mine = fsdp_test_rank() == 1 ? host : (void *)out;
        assert_int_equal(FSDP_ERR_MISMATCH, fsdp_allreduce(ctx, FSDP_IN_PLACE, mine, 4, FSDP_I32, FSDP_SUM));
        assert_says(ctx, "elements on the GPU");
    }
    all_still_works();
}

static void memory_of_another_gpu_is_refused_on_all_ranks(void **state)
{
    const bool wrong = fsdp_test_rank() == fsdp_test_size() - 1;
    void      *other;

    (void)state;
    assert_int_equal(hipSuccess, hipSetDevice(1));
    assert_int_equal(hipSuccess, hipMalloc(&other, 64));
    assert_int_equal(hipSuccess, hipSetDevice(0));
    assert_int_equal(FSDP_ERR_ARG,
                     fsdp_allreduce(ctx, FSDP_IN_PLACE, wrong ? other : (void *)out, 4, FSDP_I32, FSDP_SUM));
    assert_says(ctx, "is memory of another GPU than 0");
    assert_int_equal(hipSuccess, hipFree(other));
    all_still_works();
}

static void out_of_memory_names_the_need_and_the_free(void **state)
{
    const bool   too_much = fsdp_test_rank() == 0;
    const size_t bytes    = too_much ? (size_t)1 << 40 : 1024;
    void        *memory   = &memory;

    (void)state;
    assert_int_equal(FSDP_ERR_MEMORY, fsdp_buffer_alloc(ctx, FSDP_BUFFER_DEVICE, bytes, &memory));
    assert_null(memory);
    assert_says(ctx, "needs 1099511627776 bytes, and ");
    assert_says(ctx, "are free");
    all_still_works();
}

/* The runtime fails on one rank in the middle: an error on all, and the next call works. */
static void fails_everywhere(const char *function, int32_t *from, int32_t *to)
{
    fill(from, 1, COUNT);
    if (fsdp_test_rank() == 0) {
        hip_double_fail(function, 1, hipErrorUnknown);
    }
    assert_int_equal(FSDP_ERR_DEVICE, fsdp_allreduce(ctx, from, to, COUNT, FSDP_I32, FSDP_SUM));
    hip_double_fail(function, 0, hipSuccess);
    assert_says(ctx, "rank 0: GPU 0: ");
    all_still_works();
}

static void a_failure_of_the_runtime_on_one_rank_is_an_error_on_all(void **state)
{
    (void)state;
    fails_everywhere("hipLaunchKernel", in, out);
    fails_everywhere("hipLaunchKernel", plain_in, plain_out);
    if (fsdp_node_count(ctx) > 1 && is_reached(true)) {
        fails_everywhere("hipEventQuery", in, out);
        fails_everywhere("hipStreamQuery", in, out);
        if (!fsdp_has_gpu_aware_mpi(ctx)) { /* else MPI would be the first to copy, and to fail */
            fails_everywhere("hipMemcpyAsync", in, out);
        }
    }
}

/* Each order of an operation is refused in turn: the host makes it, and all bits come. */
static void an_order_that_is_refused_changes_nothing(void **state)
{
    static const char *const functions[] = {"hipEventRecord", "hipStreamWaitEvent"};

    (void)state;
    for (int n = 0; n < 24; n++) {
        if (fsdp_test_rank() == n / 2 % fsdp_test_size()) {
            hip_double_fail(functions[n % 2], 1 + n / 2, hipErrorUnknown);
        }
        all_still_works();
        hip_double_fail(functions[n % 2], 0, hipSuccess);
    }
}

static void a_peers_buffer_is_where_it_says(void **state)
{
    const int peer = (fsdp_test_rank() + 1) % fsdp_test_size();
    int32_t   found;
    void     *there;

    (void)state;
    fill(in, fsdp_test_rank() + 1, COUNT);
    assert_int_equal(hipSuccess, hipStreamSynchronize(stream));
    assert_int_equal(FSDP_OK, fsdp_barrier(ctx));
    if (getenv("HIP_DOUBLE_NO_IPC") != NULL && fsdp_node_count(ctx) == 1 && fsdp_test_size() > 1) {
        assert_int_equal(FSDP_ERR_UNSUPPORTED, fsdp_buffer_peer(ctx, in + 9, peer, &there));
        return;
    }
    if (fsdp_node_count(ctx) == 1) {
        assert_int_equal(FSDP_OK, fsdp_buffer_peer(ctx, in + 9, peer, &there));
        bring(&found, there, 1);
        assert_int_equal(element(peer + 1), found);
    }
    assert_int_equal(FSDP_OK, fsdp_barrier(ctx));
}

static fsdp_status open_with(fsdp_device_use use, fsdp_context **opened)
{
    fsdp_config config;

    fsdp_config_init(&config);
    config.device = (int)use;
    return fsdp_init(MPI_COMM_WORLD, &config, opened);
}

static void a_rank_without_a_gpu_leaves_them_unused_or_is_an_error(void **state)
{
    const bool    none = fsdp_test_rank() == fsdp_test_size() - 1;
    fsdp_context *other;
    void         *memory;

    (void)state;
    if (none) {
        (void)setenv("HIP_DOUBLE_GPUS", "0", 1);
    }
    assert_int_equal(FSDP_ERR_UNSUPPORTED, open_with(FSDP_DEVICE_GPU, &other));
    assert_says(NULL, "the runtime finds no GPU");
    assert_int_equal(FSDP_OK, open_with(FSDP_DEVICE_AUTO, &other));
    assert_int_equal(-1, fsdp_device(other));
    assert_int_equal(FSDP_ERR_UNSUPPORTED, fsdp_buffer_alloc(other, FSDP_BUFFER_DEVICE, 100, &memory));
    if (!none) {
        assert_int_equal(FSDP_ERR_UNSUPPORTED, fsdp_stream_set(other, stream));
    }
    (void)setenv("HIP_DOUBLE_GPUS", "2", 1);
    assert_int_equal(FSDP_OK, fsdp_finalize(other));
}

static void what_is_left_open_is_released_at_the_end(void **state)
{
    fsdp_context *other;
    void         *memory;

    (void)state;
    assert_int_equal(FSDP_OK, open_with(FSDP_DEVICE_GPU, &other));
    assert_int_equal(0, fsdp_device(other));
    assert_int_equal(FSDP_OK, fsdp_buffer_alloc(other, FSDP_BUFFER_DEVICE, 1000, &memory));
    assert_int_equal(FSDP_ERR_LEAK, fsdp_finalize(other));
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(gathers_are_ordered_on_the_callers_stream),
        cmocka_unit_test(reductions_overlap_gathers),
        cmocka_unit_test(streams_take_turns_at_the_staging_memory),
        cmocka_unit_test(in_place_and_after_each_other_without_a_wait_of_the_host),
        cmocka_unit_test(every_collective_waits_and_is_waited_for),
        cmocka_unit_test(an_uneven_part_moves_down_in_place),
        cmocka_unit_test(memory_of_two_kinds_is_refused),
        cmocka_unit_test(memory_of_another_gpu_is_refused_on_all_ranks),
        cmocka_unit_test(out_of_memory_names_the_need_and_the_free),
        cmocka_unit_test(a_failure_of_the_runtime_on_one_rank_is_an_error_on_all),
        cmocka_unit_test(an_order_that_is_refused_changes_nothing),
        cmocka_unit_test(a_peers_buffer_is_where_it_says),
        cmocka_unit_test(a_rank_without_a_gpu_leaves_them_unused_or_is_an_error),
        cmocka_unit_test(what_is_left_open_is_released_at_the_end),
    };

    return fsdp_test_main(argc, argv, tests, open_all, close_all);
}
