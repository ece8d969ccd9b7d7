/** @file What the double of the HIP runtime lets processes do with each other's memory and events. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/doubles/hip/double.h"
#include "tests/doubles/hip/job.h"
#include "tests/support/mpi_test.h"

enum { BYTES = 10000 };

static atomic_int mistakes;

static void count_mistake(const char *what)
{
    (void)what;
    (void)atomic_fetch_add(&mistakes, 1);
}

static int mistakes_since(void)
{
    double_streams_idle();
    return atomic_exchange(&mistakes, 0);
}

/* Rank 0 has memory and an event, which all others open. */
static struct {
    hipStream_t         stream;
    unsigned char      *memory, *here;
    hipEvent_t          event;
    hipIpcMemHandle_t   memory_handle;
    hipIpcEventHandle_t event_handle;
} shared;

static int open_shared(void **state)
{
    (void)state;
    hip_double_on_mistake(count_mistake);
    assert_int_equal(hipSuccess, hipStreamCreateWithPriority(&shared.stream, hipStreamNonBlocking, 0));
    assert_int_equal(hipSuccess, hipMalloc((void **)&shared.here, BYTES));
    if (fsdp_test_rank() == 0) {
        assert_int_equal(hipSuccess, hipMalloc((void **)&shared.memory, BYTES));
        assert_int_equal(hipSuccess, hipIpcGetMemHandle(&shared.memory_handle, shared.memory));
        assert_int_equal(hipSuccess,
                         hipEventCreateWithFlags(&shared.event, hipEventDisableTiming | hipEventInterprocess));
        assert_int_equal(hipSuccess, hipIpcGetEventHandle(&shared.event_handle, shared.event));
    }
    (void)MPI_Bcast(&shared.memory_handle, sizeof shared.memory_handle, MPI_BYTE, 0, MPI_COMM_WORLD);
    (void)MPI_Bcast(&shared.event_handle, sizeof shared.event_handle, MPI_BYTE, 0, MPI_COMM_WORLD);
    if (fsdp_test_rank() != 0) {
        assert_int_equal(hipSuccess, hipIpcOpenMemHandle((void **)&shared.memory, shared.memory_handle,
                                                         hipIpcMemLazyEnablePeerAccess));
        assert_int_equal(hipSuccess, hipIpcOpenEventHandle(&shared.event, shared.event_handle));
    }
    (void)MPI_Barrier(MPI_COMM_WORLD); /* a handle leads nowhere once its event is gone */
    return 0;
}

static int close_shared(void **state)
{
    (void)state;
    assert_int_equal(hipSuccess, hipStreamDestroy(shared.stream));
    assert_int_equal(hipSuccess, hipEventDestroy(shared.event));
    assert_int_equal(hipSuccess, hipFree(shared.here));
    if (fsdp_test_rank() != 0) {
        assert_int_equal(hipSuccess, hipIpcCloseMemHandle(shared.memory));
    }
    (void)MPI_Barrier(MPI_COMM_WORLD);
    if (fsdp_test_rank() == 0) {
        assert_int_equal(hipSuccess, hipFree(shared.memory));
    }
    assert_int_equal(0, mistakes_since());
    return 0;
}

static void a_peer_reads_what_was_written_behind_an_event(void **state)
{
    unsigned char byte = 0;

    (void)state;
    for (int i = 1; i < 20; i++) {
        if (fsdp_test_rank() == 0) {
            assert_int_equal(hipSuccess, hipMemsetAsync(shared.memory, i, BYTES, shared.stream));
            assert_int_equal(hipSuccess, hipEventRecord(shared.event, shared.stream));
        }
        (void)MPI_Barrier(MPI_COMM_WORLD); /* it is recorded; that it is done, nobody has waited for */
        if (fsdp_test_rank() != 0) {
            assert_int_equal(hipSuccess, hipStreamWaitEvent(shared.stream, shared.event, 0));
            assert_int_equal(hipSuccess,
                             hipMemcpyAsync(shared.here, shared.memory, BYTES, hipMemcpyDefault, shared.stream));
            assert_int_equal(hipSuccess,
                             hipMemcpyAsync(&byte, shared.here + BYTES - 1, 1, hipMemcpyDefault, shared.stream));
            assert_int_equal(hipSuccess, hipStreamSynchronize(shared.stream));
            assert_int_equal(i, byte);
        }
        (void)MPI_Barrier(MPI_COMM_WORLD);
    }
    assert_int_equal(0, mistakes_since());
}

static void a_peer_that_does_not_wait_makes_a_mistake(void **state)
{
    (void)state;
    if (fsdp_test_rank() == 0) {
        assert_int_equal(hipSuccess, hipMemsetAsync(shared.memory, 1, BYTES, shared.stream));
    }
    (void)MPI_Barrier(MPI_COMM_WORLD);
    if (fsdp_test_rank() == 1) {
        assert_int_equal(hipSuccess,
                         hipMemcpyAsync(shared.here, shared.memory, BYTES, hipMemcpyDefault, shared.stream));
    }
    int mine = mistakes_since(), all = 0; /* of rank 0 where its operation came last */
    (void)MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    assert_int_equal(1, all);
}

static void memory_is_opened_once_and_by_others_only(void **state)
{
    void *again;

    (void)state;
    assert_int_equal(hipErrorInvalidValue,
                     hipIpcOpenMemHandle(&again, shared.memory_handle, hipIpcMemLazyEnablePeerAccess));
    assert_int_equal(hipErrorInvalidValue, hipGetLastError());
    assert_int_equal(fsdp_test_rank() == 0 ? hipErrorInvalidValue : hipSuccess, hipIpcCloseMemHandle(shared.memory));
    (void)hipGetLastError();
    if (fsdp_test_rank() != 0) {
        assert_int_equal(hipSuccess, hipIpcOpenMemHandle((void **)&shared.memory, shared.memory_handle,
                                                         hipIpcMemLazyEnablePeerAccess));
    }
}

/* Memory that the first rank allocates, and the handle of it on all. */
static hipIpcMemHandle_t memory_of_first(void **memory)
{
    hipIpcMemHandle_t handle = {{0}};

    if (fsdp_test_rank() == 0) {
        assert_int_equal(hipSuccess, hipMalloc(memory, BYTES));
        assert_int_equal(hipSuccess, hipIpcGetMemHandle(&handle, *memory));
    }
    (void)MPI_Bcast(&handle, sizeof handle, MPI_BYTE, 0, MPI_COMM_WORLD);
    return handle;
}

static void freeing_what_others_have_open_is_a_mistake(void **state)
{
    void                   *memory = NULL;
    const hipIpcMemHandle_t handle = memory_of_first(&memory);

    (void)state;
    if (fsdp_test_rank() == 1) {
        assert_int_equal(hipSuccess, hipIpcOpenMemHandle(&memory, handle, hipIpcMemLazyEnablePeerAccess));
    }
    (void)MPI_Barrier(MPI_COMM_WORLD);
    if (fsdp_test_rank() == 0) {
        assert_int_equal(hipSuccess, hipFree(memory));
        assert_int_equal(1, mistakes_since());
    }
    (void)MPI_Barrier(MPI_COMM_WORLD);
    if (fsdp_test_rank() == 1) {
        assert_int_equal(hipSuccess, hipIpcCloseMemHandle(memory));
    }
    void *gone;
    assert_int_equal(hipErrorMapFailed, hipIpcOpenMemHandle(&gone, handle, hipIpcMemLazyEnablePeerAccess));
    (void)hipGetLastError();
}

static void opening_fails_where_that_is_asked_for(void **state)
{
    void                   *memory = NULL;
    const hipIpcMemHandle_t handle = memory_of_first(&memory);

    (void)state;
    if (fsdp_test_rank() != 0) {
        (void)setenv("HIP_DOUBLE_NO_IPC", "1", 1);
        assert_int_equal(hipErrorMapFailed, hipIpcOpenMemHandle(&memory, handle, hipIpcMemLazyEnablePeerAccess));
        (void)unsetenv("HIP_DOUBLE_NO_IPC");
        (void)hipGetLastError();
    }
    (void)MPI_Barrier(MPI_COMM_WORLD);
    if (fsdp_test_rank() == 0) {
        assert_int_equal(hipSuccess, hipFree(memory));
    }
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_peer_reads_what_was_written_behind_an_event, open_shared, close_shared),
        cmocka_unit_test_setup_teardown(a_peer_that_does_not_wait_makes_a_mistake, open_shared, close_shared),
        cmocka_unit_test_setup_teardown(memory_is_opened_once_and_by_others_only, open_shared, close_shared),
        cmocka_unit_test_setup_teardown(freeing_what_others_have_open_is_a_mistake, open_shared, close_shared),
        cmocka_unit_test_setup_teardown(opening_fails_where_that_is_asked_for, open_shared, close_shared),
    };

    return fsdp_test_main(argc, argv, tests, hip_double_join_job, NULL);
}
