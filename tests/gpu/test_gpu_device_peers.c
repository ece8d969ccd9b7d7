/** @file Memory and events of peers, through the library's GPU layer: every rank reads what all others have written. */
#include <stdlib.h>
#include <string.h>

#include "lib/device/gpu_device.h"
#include "tests/doubles/hip/double.h"
#include "tests/doubles/hip/job.h"
#include "tests/support/mpi_test.h"

enum { BYTES = 3000, MOST_RANKS = 16 };

static fsdpi_gpu_device    *gpu;
static const fsdpi_gpu_ops *ops;
static void                *memory[MOST_RANKS];
static fsdpi_gpu_event      written[MOST_RANKS];
static fsdpi_gpu_stream     stream;

/* Allocates here, and gathers everyone's handles. */
static void share(fsdpi_gpu_handle *of_memory, fsdpi_gpu_handle *of_events)
{
    const int rank = fsdp_test_rank();

    assert_int_equal(FSDP_OK, fsdpi_gpu_device_open(NULL, &gpu));
    ops = gpu->ops;
    assert_int_equal(FSDP_OK, ops->stream_open(gpu, true, &stream));
    assert_int_equal(FSDP_OK, ops->alloc(gpu, "this test", BYTES, &memory[rank]));
    assert_int_equal(FSDP_OK, ops->event_open(gpu, true, &written[rank]));
    assert_int_equal(FSDP_OK, ops->memory_handle(gpu, memory[rank], &of_memory[rank]));
    assert_int_equal(FSDP_OK, ops->event_handle(gpu, written[rank], &of_events[rank]));
    (void)MPI_Allgather(MPI_IN_PLACE, 0, MPI_BYTE, of_memory, sizeof *of_memory, MPI_BYTE, MPI_COMM_WORLD);
    (void)MPI_Allgather(MPI_IN_PLACE, 0, MPI_BYTE, of_events, sizeof *of_events, MPI_BYTE, MPI_COMM_WORLD);
}

static void unshare(void)
{
    const int rank = fsdp_test_rank();

    (void)MPI_Barrier(MPI_COMM_WORLD);
    assert_int_equal(FSDP_OK, ops->event_close(gpu, written[rank]));
    assert_int_equal(FSDP_OK, ops->release(gpu, memory[rank]));
    assert_int_equal(FSDP_OK, ops->stream_close(gpu, stream));
    ops->close(gpu);
    memset(memory, 0, sizeof memory);
}

static void every_rank_reads_what_its_peers_wrote(void **state)
{
    fsdpi_gpu_handle of_memory[MOST_RANKS], of_events[MOST_RANKS];
    const int        rank = fsdp_test_rank(), size = fsdp_test_size();
    unsigned char   *here, found[MOST_RANKS];

    (void)state;
    share(of_memory, of_events);
    assert_int_equal(FSDP_OK, ops->alloc(gpu, "this test", (size_t)size, (void **)&here));
    assert_int_equal(hipSuccess, hipMemsetAsync(memory[rank], rank + 1, BYTES, stream));
    assert_int_equal(FSDP_OK, ops->event_record(gpu, written[rank], stream));
    (void)MPI_Barrier(MPI_COMM_WORLD);
    for (int r = 0; r < size; r++) {
        if (r != rank) {
            assert_int_equal(FSDP_OK, ops->open_memory(gpu, &of_memory[r], &memory[r]));
            assert_int_equal(FSDP_OK, ops->open_event(gpu, &of_events[r], &written[r]));
            assert_int_equal(FSDP_OK, ops->wait_for(gpu, stream, written[r]));
        }
        assert_int_equal(FSDP_OK, ops->copy(gpu, here + r, (unsigned char *)memory[r] + 17 * rank, 1, stream));
    }
    assert_int_equal(FSDP_OK, ops->copy(gpu, found, here, (size_t)size, stream));
    assert_int_equal(FSDP_OK, ops->stream_finish(gpu, stream));
    for (int r = 0; r < size; r++) {
        assert_int_equal(r + 1, found[r]);
        if (r != rank) {
            assert_int_equal(FSDP_OK, ops->close_memory(gpu, memory[r]));
            assert_int_equal(FSDP_OK, ops->event_close(gpu, written[r]));
        }
    }
    assert_int_equal(FSDP_OK, ops->release(gpu, here));
    unshare();
}

static void a_peers_memory_is_opened_once_however_often_it_is_asked_for(void **state)
{
    fsdpi_gpu_handle of_memory[MOST_RANKS], of_events[MOST_RANKS];
    const int        peer = (fsdp_test_rank() + 1) % fsdp_test_size();
    void            *again;

    (void)state;
    share(of_memory, of_events);
    assert_int_equal(FSDP_OK, ops->open_memory(gpu, &of_memory[peer], &memory[peer]));
    assert_int_equal(FSDP_OK, ops->open_memory(gpu, &of_memory[peer], &again)); /* the double would refuse */
    assert_ptr_equal(memory[peer], again);
    assert_int_equal(FSDPI_PLACE_DEVICE, ops->place_of(gpu, again));
    assert_int_equal(FSDP_OK, ops->close_memory(gpu, memory[peer]));
    assert_int_equal(FSDPI_PLACE_DEVICE, ops->place_of(gpu, again));
    assert_int_equal(FSDP_OK, ops->close_memory(gpu, again));
    assert_int_equal(FSDPI_PLACE_HOST, ops->place_of(gpu, again));
    assert_int_equal(FSDP_ERR_ARG, ops->close_memory(gpu, again));
    unshare();
}

static void closing_waits_for_what_a_stream_still_reads(void **state)
{
    fsdpi_gpu_handle of_memory[MOST_RANKS], of_events[MOST_RANKS];
    const int        peer = (fsdp_test_rank() + 1) % fsdp_test_size();
    void            *here;

    (void)state;
    share(of_memory, of_events);
    assert_int_equal(FSDP_OK, ops->alloc(gpu, "this test", BYTES, &here));
    assert_int_equal(FSDP_OK, ops->open_memory(gpu, &of_memory[peer], &memory[peer]));
    assert_int_equal(FSDP_OK, ops->copy(gpu, here, memory[peer], BYTES, stream));
    assert_int_equal(FSDP_OK, ops->close_memory(gpu, memory[peer]));
    assert_int_equal(FSDP_OK, ops->release(gpu, here));
    unshare();
}

static void closing_the_device_closes_what_is_open(void **state)
{
    fsdpi_gpu_handle  of_memory[MOST_RANKS], of_events[MOST_RANKS];
    const int         rank = fsdp_test_rank(), peer = (rank + 1) % fsdp_test_size();
    fsdpi_gpu_device *other;
    void             *here;

    (void)state;
    share(of_memory, of_events);
    assert_int_equal(FSDP_OK, ops->alloc(gpu, "this test", BYTES, &here));
    assert_int_equal(FSDP_OK, fsdpi_gpu_device_open(NULL, &other));
    assert_int_equal(FSDP_OK, ops->open_memory(other, &of_memory[peer], &memory[peer]));
    assert_int_equal(FSDP_OK, ops->copy(gpu, here, memory[peer], BYTES, stream));
    ops->close(other);
    assert_int_equal(FSDP_OK, ops->release(gpu, here));
    unshare(); /* the double ends a program that frees what is open */
}

static void a_system_that_shares_nothing_is_no_failure_to_print(void **state)
{
    fsdpi_gpu_handle of_memory[MOST_RANKS], of_events[MOST_RANKS];
    const int        peer = (fsdp_test_rank() + 1) % fsdp_test_size();

    (void)state;
    share(of_memory, of_events);
    (void)setenv("HIP_DOUBLE_NO_IPC", "1", 1);
    assert_int_equal(FSDP_ERR_UNSUPPORTED, ops->open_memory(gpu, &of_memory[peer], &memory[peer]));
    assert_null(memory[peer]);
    assert_non_null(strstr(fsdp_last_error(NULL), "does not let processes of this node share device memory"));
    assert_int_equal(FSDP_ERR_UNSUPPORTED, ops->open_event(gpu, &of_events[peer], &written[peer]));
    assert_null(written[peer]);
    assert_int_equal(hipSuccess, hipGetLastError());
    (void)unsetenv("HIP_DOUBLE_NO_IPC");
    unshare();
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_rank_reads_what_its_peers_wrote),
        cmocka_unit_test(a_peers_memory_is_opened_once_however_often_it_is_asked_for),
        cmocka_unit_test(closing_waits_for_what_a_stream_still_reads),
        cmocka_unit_test(closing_the_device_closes_what_is_open),
        cmocka_unit_test(a_system_that_shares_nothing_is_no_failure_to_print),
    };

    return fsdp_test_main(argc, argv, tests, hip_double_join_job, NULL);
}
