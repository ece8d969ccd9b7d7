/** @file The double of the HIP runtime: what it promises works, and what is wrong does not go unseen. */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernels/gpu.h"
#include "tests/doubles/hip/double.h"
#include "tests/support/unit_test.h"

enum { BYTES = 10000, COUNT = BYTES / 4 }; /* not a whole number of pages */

static atomic_int mistakes;
static char       last_mistake[512];

static void count_mistake(const char *what)
{
    (void)snprintf(last_mistake, sizeof last_mistake, "%s", what);
    (void)atomic_fetch_add(&mistakes, 1);
}

/* How many mistakes there were since the last time, when all streams are idle. */
static int mistakes_since(void)
{
    double_streams_idle();
    return atomic_exchange(&mistakes, 0);
}

static struct {
    hipStream_t stream[3];
    hipEvent_t  event;
    char       *memory, *other;
} gpu;

static int open_gpu(void **state)
{
    (void)state;
    hip_double_on_mistake(count_mistake);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(hipSuccess, hipStreamCreateWithPriority(&gpu.stream[i], hipStreamNonBlocking, i - 1));
    }
    assert_int_equal(hipSuccess, hipEventCreateWithFlags(&gpu.event, hipEventDisableTiming));
    assert_int_equal(hipSuccess, hipMalloc((void **)&gpu.memory, BYTES));
    assert_int_equal(hipSuccess, hipMalloc((void **)&gpu.other, BYTES));
    return 0;
}

static int close_gpu(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(hipSuccess, hipStreamDestroy(gpu.stream[i]));
    }
    assert_int_equal(hipSuccess, hipEventDestroy(gpu.event));
    assert_int_equal(hipSuccess, hipFree(gpu.memory));
    assert_int_equal(hipSuccess, hipFree(gpu.other));
    assert_int_equal(0, mistakes_since());
    return 0;
}

static void set(int stream, char *to, int value, size_t bytes)
{
    assert_int_equal(hipSuccess, hipMemsetAsync(to, value, bytes, gpu.stream[stream]));
}

static void copy(int stream, void *to, const void *from, size_t bytes)
{
    assert_int_equal(hipSuccess, hipMemcpyAsync(to, from, bytes, hipMemcpyDefault, gpu.stream[stream]));
}

/* `later` waits for all that is in `earlier` now. */
static void order(int earlier, int later)
{
    assert_int_equal(hipSuccess, hipEventRecord(gpu.event, gpu.stream[earlier]));
    assert_int_equal(hipSuccess, hipStreamWaitEvent(gpu.stream[later], gpu.event, 0));
}

static void bytes_go_to_the_device_and_back(void **state)
{
    char out[BYTES], back[BYTES];

    (void)state;
    for (size_t i = 0; i < BYTES; i++) {
        out[i] = (char)(i * 31);
    }
    copy(0, gpu.memory, out, BYTES);
    copy(0, gpu.other, gpu.memory, BYTES);
    set(0, gpu.other, 7, 16);
    copy(0, back, gpu.other, BYTES);
    assert_int_equal(hipSuccess, hipStreamSynchronize(gpu.stream[0]));
    memset(out, 7, 16);
    assert_memory_equal(out, back, BYTES);
    assert_int_equal(0, mistakes_since());
}

/* In a process of its own. A sanitizer makes an exit status of a signal. */
static bool ends_badly(void (*program)(void))
{
    const pid_t child = fork();
    int         status;

    if (child == 0) {
        if (freopen("/dev/null", "w", stderr) == NULL) {
            _exit(0);
        }
        (void)signal(SIGSEGV, SIG_DFL);
        (void)signal(SIGABRT, SIG_DFL);
        program();
        _exit(0);
    }
    assert_int_equal(child, waitpid(child, &status, 0));
    return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

/* So that what the host does to that memory before it asks shows. */
static void a_copy_of_pageable_memory_may_begin_as_late_as_a_host_asks(void **state)
{
    char source[BYTES], back[BYTES];

    (void)state;
    (void)setenv("HIP_DOUBLE_HOLD_MS", "60000", 1);
    memset(source, 1, BYTES);
    copy(0, gpu.memory, source, BYTES);
    memset(source, 2, BYTES);
    assert_int_equal(hipSuccess, hipStreamSynchronize(gpu.stream[0]));
    (void)unsetenv("HIP_DOUBLE_HOLD_MS");
    copy(0, back, gpu.memory, BYTES);
    assert_int_equal(hipSuccess, hipStreamSynchronize(gpu.stream[0]));
    assert_int_equal(2, back[0]);
    assert_int_equal(2, back[BYTES - 1]);
}

static void do_nothing(void)
{
}

static void touch_device_memory(void)
{
    *(volatile char *)gpu.memory = 1;
}

static void make_a_mistake(void)
{
    hip_double_on_mistake(NULL);
    double_mistake("this is one");
}

static void the_host_cannot_touch_device_memory(void **state)
{
    (void)state;
    assert_false(ends_badly(do_nothing));
    assert_true(ends_badly(touch_device_memory));
}

static void a_mistake_ends_the_program(void **state)
{
    (void)state;
    assert_true(ends_badly(make_a_mistake));
}

static void a_forgotten_wait_is_a_mistake(void **state)
{
    (void)state;
    set(0, gpu.memory, 1, BYTES);
    copy(1, gpu.other, gpu.memory, BYTES); /* reads what stream 0 writes */
    assert_int_equal(1, mistakes_since());
    assert_non_null(strstr(last_mistake, "without an order"));
}

static void writing_what_another_stream_still_reads_is_a_mistake(void **state)
{
    (void)state;
    set(0, gpu.memory, 1, BYTES);
    order(0, 1);
    copy(1, gpu.other, gpu.memory, BYTES);
    set(0, gpu.memory + BYTES / 2, 2, 1);
    assert_int_equal(1, mistakes_since());
}

static void with_events_there_is_an_order(void **state)
{
    (void)state;
    for (int i = 0; i < 100; i++) {
        set(0, gpu.memory, i, BYTES);
        order(0, 1);
        order(0, 2);
        copy(1, gpu.other, gpu.memory, BYTES / 2);
        copy(2, gpu.other + BYTES / 2, gpu.memory + BYTES / 2, BYTES / 2);
        order(1, 2); /* and so 0 comes after 1 by way of 2 */
        order(2, 0);
    }
    assert_int_equal(0, mistakes_since());
}

static void what_does_not_overlap_needs_no_order(void **state)
{
    (void)state;
    set(0, gpu.memory, 1, 100);
    set(1, gpu.memory + 100, 1, 100);
    set(2, gpu.memory + 200, 1, 100);
    copy(1, gpu.other, gpu.memory + 100, 100);
    assert_int_equal(0, mistakes_since());
}

static void a_recording_before_the_work_does_not_order_it(void **state)
{
    (void)state;
    assert_int_equal(hipSuccess, hipEventRecord(gpu.event, gpu.stream[0]));
    set(0, gpu.memory, 1, BYTES);
    assert_int_equal(hipSuccess, hipStreamWaitEvent(gpu.stream[1], gpu.event, 0));
    set(1, gpu.memory, 2, BYTES);
    assert_int_equal(1, mistakes_since());
}

static void waiting_for_what_was_never_recorded_orders_nothing(void **state)
{
    hipEvent_t event;

    (void)state;
    assert_int_equal(hipSuccess, hipEventCreateWithFlags(&event, hipEventDisableTiming));
    set(0, gpu.memory, 1, BYTES);
    assert_int_equal(hipSuccess, hipStreamWaitEvent(gpu.stream[1], event, 0));
    set(1, gpu.memory, 2, BYTES);
    assert_int_equal(1, mistakes_since());
    assert_int_equal(hipSuccess, hipEventDestroy(event));
}

static void what_the_host_has_waited_for_comes_before(void **state)
{
    (void)state;
    set(0, gpu.memory, 1, BYTES);
    assert_int_equal(hipSuccess, hipStreamSynchronize(gpu.stream[0]));
    set(1, gpu.memory, 2, BYTES);
    assert_int_equal(hipSuccess, hipEventRecord(gpu.event, gpu.stream[1]));
    assert_int_equal(hipSuccess, hipEventSynchronize(gpu.event));
    set(2, gpu.memory, 3, BYTES);
    assert_int_equal(hipSuccess, hipEventRecord(gpu.event, gpu.stream[2]));
    while (hipEventQuery(gpu.event) == hipErrorNotReady) {
        (void)usleep(100);
    }
    set(0, gpu.memory, 4, BYTES);
    while (hipStreamQuery(gpu.stream[0]) == hipErrorNotReady) {
        (void)usleep(100);
    }
    set(1, gpu.memory, 5, BYTES);
    assert_int_equal(0, mistakes_since());
}

static void destroying_a_stream_at_work_is_a_mistake(void **state)
{
    char        source[BYTES];
    hipStream_t stream;

    (void)state;
    memset(source, 1, BYTES);
    for (int at_work = 0; at_work < 2; at_work++) {
        (void)setenv("HIP_DOUBLE_HOLD_MS", "200", 1);
        assert_int_equal(hipSuccess, hipStreamCreateWithPriority(&stream, hipStreamNonBlocking, 0));
        assert_int_equal(hipSuccess, hipMemcpyAsync(gpu.memory, source, BYTES, hipMemcpyDefault, stream));
        if (!at_work) {
            assert_int_equal(hipSuccess, hipStreamSynchronize(stream));
        }
        assert_int_equal(hipSuccess, hipStreamDestroy(stream));
        assert_int_equal(at_work, mistakes_since());
        (void)unsetenv("HIP_DOUBLE_HOLD_MS");
    }
}

static void kernels_are_followed(void **state)
{
    const void *in[] = {gpu.memory, gpu.other};
    void       *out  = gpu.memory;

    (void)state;
    set(0, gpu.memory, 0, BYTES);
    set(0, gpu.other, 0, BYTES);
    assert_int_equal(0, fsdpi_gpu_reduce_into(&out, 1, in, 2, COUNT, FSDP_F32, FSDP_SUM, 1, gpu.stream[0]));
    assert_int_equal(0, mistakes_since());
    copy(1, gpu.other, gpu.memory + 4096, 4); /* two: the kernel reads the one, and writes the other */
    assert_int_equal(2, mistakes_since());
}

static void a_kernel_beyond_its_memory_is_a_mistake(void **state)
{
    (void)state;
    set(0, gpu.memory, 0, BYTES);
    assert_int_equal(0, fsdpi_gpu_scale(gpu.memory + 4, 2, COUNT - 1, FSDP_F32, gpu.stream[0]));
    assert_int_equal(0, mistakes_since());
    set(0, gpu.memory + BYTES - 4, 0, 8);
    assert_true(mistakes_since() > 0);
}

static void a_kernel_in_pageable_memory_is_a_mistake(void **state)
{
    float  on_stack[4] = {0};
    float *pinned;

    (void)state;
    assert_int_equal(0, fsdpi_gpu_scale(on_stack, 2, 1, FSDP_F32, gpu.stream[0]));
    assert_true(mistakes_since() > 0);
    assert_int_equal(hipSuccess, hipHostMalloc((void **)&pinned, 64, hipHostMallocDefault));
    pinned[0] = 3;
    assert_int_equal(0, fsdpi_gpu_scale(pinned, 2, 1, FSDP_F32, gpu.stream[0]));
    assert_int_equal(hipSuccess, hipStreamSynchronize(gpu.stream[0]));
    assert_true(pinned[0] == 6);
    assert_int_equal(0, mistakes_since());
    assert_int_equal(hipSuccess, hipHostFree(pinned));
}

static void memory_of_another_device_needs_peer_access(void **state)
{
    float *there;

    (void)state;
    assert_int_equal(hipErrorInvalidDevice, hipSetDevice(2));
    assert_int_equal(hipSuccess, hipSetDevice(1));
    assert_int_equal(hipSuccess, hipMalloc((void **)&there, 64));
    assert_int_equal(hipSuccess, hipSetDevice(0));
    assert_int_equal(0, fsdpi_gpu_scale(there, 2, 1, FSDP_F32, gpu.stream[0]));
    assert_int_equal(1, mistakes_since());
    assert_int_equal(hipSuccess, hipDeviceEnablePeerAccess(1, 0));
    assert_int_equal(hipErrorPeerAccessAlreadyEnabled, hipDeviceEnablePeerAccess(1, 0));
    assert_int_equal(0, fsdpi_gpu_scale(there, 2, 1, FSDP_F32, gpu.stream[0]));
    assert_int_equal(0, mistakes_since());
    assert_int_equal(hipSuccess, hipFree(there));
    (void)hipGetLastError();
}

static void memory_runs_out(void **state)
{
    size_t before, after, total;
    void  *most, *more;

    (void)state;
    assert_int_equal(hipSuccess, hipMemGetInfo(&before, &total));
    assert_int_equal(hipSuccess, hipMalloc(&most, before));
    assert_int_equal(hipSuccess, hipMemGetInfo(&after, &total));
    assert_int_equal(0, after);
    assert_int_equal(hipErrorOutOfMemory, hipMalloc(&more, 1));
    assert_null(more);
    assert_int_equal(hipErrorOutOfMemory, hipGetLastError());
    assert_int_equal(hipSuccess, hipGetLastError());
    assert_int_equal(hipSuccess, hipFree(most));
    assert_int_equal(hipSuccess, hipMemGetInfo(&after, &total));
    assert_int_equal(before, after);
}

static void pointers_are_classified(void **state)
{
    hipPointerAttribute_t attributes;
    char                 *pinned, on_stack;

    (void)state;
    assert_int_equal(hipSuccess, hipHostMalloc((void **)&pinned, 64, hipHostMallocDefault));
    assert_int_equal(hipSuccess, hipPointerGetAttributes(&attributes, gpu.memory + BYTES - 1));
    assert_int_equal(hipMemoryTypeDevice, attributes.memoryType);
    assert_int_equal(0, attributes.device);
    assert_int_equal(hipSuccess, hipPointerGetAttributes(&attributes, pinned + 3));
    assert_int_equal(hipMemoryTypeHost, attributes.memoryType);
    assert_int_equal(hipErrorInvalidValue, hipPointerGetAttributes(&attributes, &on_stack));
    assert_int_equal(hipErrorInvalidValue, hipGetLastError());
    assert_int_equal(hipSuccess, hipHostFree(pinned));
    assert_int_equal(hipErrorInvalidValue, hipFree(gpu.memory + 1));
    (void)hipGetLastError();
}

static void a_call_fails_on_demand(void **state)
{
    void *memory;

    (void)state;
    hip_double_fail("hipMalloc", 2, hipErrorUnknown);
    assert_int_equal(hipSuccess, hipMalloc(&memory, 64));
    assert_int_equal(hipSuccess, hipFree(memory));
    assert_int_equal(hipErrorUnknown, hipMalloc(&memory, 64));
    assert_int_equal(hipErrorUnknown, hipGetLastError());
    assert_int_equal(hipSuccess, hipMalloc(&memory, 64));
    assert_int_equal(hipSuccess, hipFree(memory));
    hip_double_fail("hipLaunchKernel", 1, hipErrorUnknown);
    assert_int_equal(hipErrorUnknown, fsdpi_gpu_scale(gpu.memory, 2, 1, FSDP_F32, gpu.stream[0]));
    (void)hipGetLastError();
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(bytes_go_to_the_device_and_back, open_gpu, close_gpu),
        cmocka_unit_test_setup_teardown(a_copy_of_pageable_memory_may_begin_as_late_as_a_host_asks, open_gpu,
                                        close_gpu),
        cmocka_unit_test_setup_teardown(the_host_cannot_touch_device_memory, open_gpu, close_gpu),
        cmocka_unit_test_setup_teardown(a_mistake_ends_the_program, open_gpu, close_gpu),
        cmocka_unit_test_setup_teardown(a_forgotten_wait_is_a_mistake, open_gpu, close_gpu),
        cmocka_unit_test_setup_teardown(writing_what_another_stream_still_reads_is_a_mistake, open_gpu, close_gpu),
        cmocka_unit_test_setup_teardown(with_events_there_is_an_order, open_gpu, close_gpu),
        cmocka_unit_test_setup_teardown(what_does_not_overlap_needs_no_order, open_gpu, close_gpu),
        cmocka_unit_test_setup_teardown(a_recording_before_the_work_does_not_order_it, open_gpu, close_gpu),
        cmocka_unit_test_setup_teardown(waiting_for_what_was_never_recorded_orders_nothing, open_gpu, close_gpu),
        cmocka_unit_test_setup_teardown(what_the_host_has_waited_for_comes_before, open_gpu, close_gpu),
        cmocka_unit_test_setup_teardown(destroying_a_stream_at_work_is_a_mistake, open_gpu, close_gpu),
        cmocka_unit_test_setup_teardown(kernels_are_followed, open_gpu, close_gpu),
        cmocka_unit_test_setup_teardown(a_kernel_beyond_its_memory_is_a_mistake, open_gpu, close_gpu),
        cmocka_unit_test_setup_teardown(a_kernel_in_pageable_memory_is_a_mistake, open_gpu, close_gpu),
        cmocka_unit_test_setup_teardown(memory_of_another_device_needs_peer_access, open_gpu, close_gpu),
        cmocka_unit_test_setup_teardown(memory_runs_out, open_gpu, close_gpu),
        cmocka_unit_test_setup_teardown(pointers_are_classified, open_gpu, close_gpu),
        cmocka_unit_test_setup_teardown(a_call_fails_on_demand, open_gpu, close_gpu),
    };

    (void)setenv("HIP_DOUBLE_GPUS", "2", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
