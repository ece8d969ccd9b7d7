/** @file The library's GPU layer on the double of the runtime: memory, streams, events, and each call failing in turn. */
#include <stdlib.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/device/gpu_device.h"
#include "tests/doubles/hip/double.h"
#include "tests/support/unit_test.h"

enum { BYTES = 5000, MEMORY = 1 << 20 };

static fsdpi_gpu_device    *gpu;
static const fsdpi_gpu_ops *ops;

static int open_gpu(void **state)
{
    (void)state;
    (void)setenv("HIP_DOUBLE_GPUS", "2", 1);
    (void)setenv("HIP_DOUBLE_MEMORY", "1048576", 1);
    assert_int_equal(FSDP_OK, fsdpi_gpu_device_open(NULL, &gpu));
    assert_non_null(gpu);
    ops = gpu->ops;
    return 0;
}

static int close_gpu(void **state)
{
    size_t available, total;

    (void)state;
    assert_int_equal(FSDP_OK, ops->free_bytes(gpu, &available, &total));
    assert_int_equal(total, available);
    ops->close(gpu);
    return 0;
}

static void a_node_without_gpus_has_none_to_open(void **state)
{
    fsdpi_gpu_device *none;

    (void)state;
    (void)setenv("HIP_DOUBLE_GPUS", "0", 1);
    assert_int_equal(FSDP_OK, fsdpi_gpu_device_open(NULL, &none));
    assert_null(none);
    (void)setenv("HIP_DOUBLE_GPUS", "2", 1);
    assert_int_equal(hipSuccess, hipGetLastError());
}

static void bytes_go_through_streams_and_events(void **state)
{
    fsdpi_gpu_stream out, back;
    fsdpi_gpu_event  there;
    unsigned char   *pinned, *memory;
    bool             done;

    (void)state;
    assert_int_equal(FSDP_OK, ops->stream_open(gpu, false, &out));
    assert_int_equal(FSDP_OK, ops->stream_open(gpu, true, &back));
    assert_int_equal(FSDP_OK, ops->event_open(gpu, false, &there));
    assert_int_equal(FSDP_OK, ops->event_is_done(gpu, there, &done));
    assert_true(done);
    assert_int_equal(FSDP_OK, ops->alloc(gpu, "this test", BYTES, (void **)&memory));
    assert_int_equal(FSDP_OK, ops->alloc_pinned(gpu, "this test", BYTES, (void **)&pinned));
    memset(pinned, 3, BYTES);
    assert_int_equal(FSDP_OK, ops->copy(gpu, memory, pinned, BYTES, out));
    assert_int_equal(FSDP_OK, ops->clear(gpu, memory, 10, out));
    assert_int_equal(FSDP_OK, ops->event_record(gpu, there, out));
    assert_int_equal(FSDP_OK, ops->wait_for(gpu, back, there));
    assert_int_equal(FSDP_OK, ops->copy(gpu, pinned, memory, BYTES, back));
    assert_int_equal(FSDP_OK, ops->stream_finish(gpu, back));
    assert_int_equal(FSDP_OK, ops->event_is_done(gpu, there, &done));
    assert_true(done);
    assert_int_equal(FSDP_OK, ops->stream_is_idle(gpu, out, &done));
    for (size_t i = 0; i < BYTES; i++) {
        assert_int_equal(i < 10 ? 0 : 3, pinned[i]);
    }
    assert_int_equal(FSDP_OK, ops->event_close(gpu, there));
    assert_int_equal(FSDP_OK, ops->stream_close(gpu, out));
    assert_int_equal(FSDP_OK, ops->stream_close(gpu, back));
    assert_int_equal(FSDP_OK, ops->release(gpu, memory));
    assert_int_equal(FSDP_OK, ops->release_pinned(gpu, pinned));
}

static void a_stream_that_works_is_not_idle(void **state)
{
    fsdpi_gpu_stream stream;
    unsigned char   *memory;
    bool             idle = true;

    (void)state;
    assert_int_equal(FSDP_OK, ops->stream_open(gpu, false, &stream));
    assert_int_equal(FSDP_OK, ops->alloc(gpu, "this test", BYTES, (void **)&memory));
    for (int i = 0; i < 1000 && idle; i++) { /* seen at work once, however slow the host is */
        for (int k = 0; k < 20; k++) {
            assert_int_equal(FSDP_OK, ops->clear(gpu, memory, BYTES, stream));
        }
        assert_int_equal(FSDP_OK, ops->stream_is_idle(gpu, stream, &idle));
    }
    assert_false(idle);
    assert_int_equal(hipSuccess, hipGetLastError());
    assert_int_equal(FSDP_OK, ops->stream_close(gpu, stream));
    assert_int_equal(FSDP_OK, ops->release(gpu, memory));
}

static void no_bytes_are_no_memory(void **state)
{
    void *memory = &ops;

    (void)state;
    assert_int_equal(FSDP_OK, ops->alloc(gpu, "this test", 0, &memory));
    assert_null(memory);
    assert_int_equal(FSDP_OK, ops->release(gpu, NULL));
    assert_int_equal(FSDP_OK, ops->alloc_pinned(gpu, "this test", 0, &memory));
    assert_null(memory);
    assert_int_equal(FSDP_OK, ops->release_pinned(gpu, NULL));
    assert_int_equal(FSDP_OK, ops->copy(gpu, NULL, NULL, 0, NULL));
    assert_int_equal(FSDP_OK, ops->clear(gpu, NULL, 0, NULL));
}

static void assert_said(const char *words)
{
    if (strstr(fsdp_last_error(NULL), words) == NULL) {
        fail_msg("'%s' is not in: %s", words, fsdp_last_error(NULL));
    }
}

static void out_of_device_memory_names_the_need_and_the_free(void **state)
{
    void *memory, *more;

    (void)state;
    assert_int_equal(FSDP_OK, ops->alloc(gpu, "this test", MEMORY - 1000, &memory));
    assert_int_equal(FSDP_ERR_MEMORY, ops->alloc(gpu, "gathered views", 1001, &more));
    assert_null(more);
    assert_said("GPU 0: out of device memory: gathered views needs 1001 bytes, and 1000 of 1048576 are free");
    assert_int_equal(hipSuccess, hipGetLastError());
    assert_int_equal(FSDP_OK, ops->release(gpu, memory));
    hip_double_fail("hipHostMalloc", 1, hipErrorOutOfMemory);
    assert_int_equal(FSDP_ERR_MEMORY, ops->alloc_pinned(gpu, "staging", 77, &more));
    assert_null(more);
    assert_said("out of pinned memory: staging needs 77 bytes");
}

static void addresses_are_told_apart(void **state)
{
    void *device, *pinned, *other;
    int   on_stack;

    (void)state;
    assert_int_equal(FSDP_OK, ops->alloc(gpu, "this test", 64, &device));
    assert_int_equal(FSDP_OK, ops->alloc_pinned(gpu, "this test", 64, &pinned));
    assert_int_equal(hipSuccess, hipSetDevice(1));
    assert_int_equal(hipSuccess, hipMalloc(&other, 64));
    assert_int_equal(FSDPI_PLACE_DEVICE, ops->place_of(gpu, (char *)device + 63));
    assert_int_equal(FSDPI_PLACE_HOST, ops->place_of(gpu, pinned));
    assert_int_equal(FSDPI_PLACE_HOST, ops->place_of(gpu, &on_stack));
    assert_int_equal(FSDPI_PLACE_OTHER, ops->place_of(gpu, other));
    assert_int_equal(hipSuccess, hipGetLastError());
    assert_int_equal(hipSuccess, hipFree(other));
    assert_int_equal(hipSuccess, hipSetDevice(0));
    assert_int_equal(FSDP_OK, ops->release(gpu, device));
    assert_int_equal(FSDP_OK, ops->release_pinned(gpu, pinned));
}

static void the_threads_device_stays_what_it_was(void **state)
{
    fsdpi_gpu_stream      stream;
    fsdpi_gpu_event       event;
    hipPointerAttribute_t attributes;
    void                 *memory, *pinned;
    int                   device;

    (void)state;
    assert_int_equal(hipSuccess, hipSetDevice(1));
    assert_int_equal(FSDP_OK, ops->alloc(gpu, "this test", 64, &memory));
    assert_int_equal(FSDP_OK, ops->alloc_pinned(gpu, "this test", 64, &pinned));
    assert_int_equal(FSDP_OK, ops->stream_open(gpu, true, &stream));
    assert_int_equal(FSDP_OK, ops->event_open(gpu, false, &event));
    assert_int_equal(hipSuccess, hipGetDevice(&device));
    assert_int_equal(1, device);
    assert_int_equal(hipSuccess, hipPointerGetAttributes(&attributes, memory));
    assert_int_equal(0, attributes.device);
    assert_int_equal(FSDP_OK, ops->event_close(gpu, event));
    assert_int_equal(FSDP_OK, ops->stream_close(gpu, stream));
    assert_int_equal(FSDP_OK, ops->release(gpu, memory));
    assert_int_equal(FSDP_OK, ops->release_pinned(gpu, pinned));
    assert_int_equal(hipSuccess, hipSetDevice(0));
}

/* ---- each call of the runtime fails in turn ---------------------------------------------------------------------- */

static struct {
    fsdpi_gpu_stream stream;
    fsdpi_gpu_event  event;
    void            *memory, *pinned;
} parts;

/* All that the layer does, until something fails. */
static fsdp_status do_all(void)
{
    fsdpi_gpu_handle handle;
    size_t           available, total;
    bool             done;

    FSDP_TRY(ops->stream_open(gpu, true, &parts.stream));
    FSDP_TRY(ops->event_open(gpu, true, &parts.event));
    FSDP_TRY(ops->alloc(gpu, "this test", BYTES, &parts.memory));
    FSDP_TRY(ops->alloc_pinned(gpu, "this test", BYTES, &parts.pinned));
    FSDP_TRY(ops->free_bytes(gpu, &available, &total));
    FSDP_TRY(ops->clear(gpu, parts.memory, BYTES, parts.stream));
    FSDP_TRY(ops->copy(gpu, parts.pinned, parts.memory, BYTES, parts.stream));
    FSDP_TRY(ops->event_record(gpu, parts.event, parts.stream));
    FSDP_TRY(ops->wait_for(gpu, parts.stream, parts.event));
    FSDP_TRY(ops->event_is_done(gpu, parts.event, &done));
    FSDP_TRY(ops->stream_is_idle(gpu, parts.stream, &done));
    FSDP_TRY(ops->stream_finish(gpu, parts.stream));
    FSDP_TRY(ops->memory_handle(gpu, parts.memory, &handle));
    return ops->event_handle(gpu, parts.event, &handle);
}

static void undo_all(void)
{
    assert_int_equal(FSDP_OK, ops->stream_close(gpu, parts.stream));
    assert_int_equal(FSDP_OK, ops->event_close(gpu, parts.event));
    assert_int_equal(FSDP_OK, ops->release(gpu, parts.memory));
    assert_int_equal(FSDP_OK, ops->release_pinned(gpu, parts.pinned));
    memset(&parts, 0, sizeof parts);
}

static void each_call_that_fails_is_an_error_with_its_name(void **state)
{
    static const char *const calls[] = {"hipGetDevice",
                                        "hipStreamCreateWithPriority",
                                        "hipEventCreateWithFlags",
                                        "hipMalloc",
                                        "hipHostMalloc",
                                        "hipMemGetInfo",
                                        "hipMemsetAsync",
                                        "hipMemcpyAsync",
                                        "hipEventQuery",
                                        "hipStreamQuery",
                                        "hipStreamSynchronize",
                                        "hipIpcGetMemHandle",
                                        "hipIpcGetEventHandle"};

    (void)state;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        hip_double_fail(calls[i], 1, hipErrorUnknown);
        assert_int_equal(FSDP_ERR_DEVICE, do_all());
        assert_said(calls[i]);
        assert_said("hipErrorUnknown");
        assert_int_equal(hipSuccess, hipGetLastError()); /* nothing is left for the caller to find */
        undo_all();
    }
    assert_int_equal(FSDP_OK, do_all());
    undo_all();
}

/* What becomes of an order that the runtime refuses: the host waits, unless that fails too. */
static void an_order_that_is_refused_is_made_by_the_host(const char *call, const char *wait)
{
    hip_double_fail(call, 1, hipErrorUnknown);
    assert_int_equal(FSDP_OK, do_all());
    undo_all();
    hip_double_fail(call, 1, hipErrorUnknown);
    hip_double_fail(wait, 1, hipErrorUnknown);
    assert_int_equal(FSDP_ERR_DEVICE, do_all());
    assert_said(call);
    assert_int_equal(hipSuccess, hipGetLastError());
    undo_all();
}

static void an_order_is_made_where_the_runtime_refuses_it(void **state)
{
    (void)state;
    an_order_that_is_refused_is_made_by_the_host("hipEventRecord", "hipStreamSynchronize");
    an_order_that_is_refused_is_made_by_the_host("hipStreamWaitEvent", "hipEventSynchronize");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_node_without_gpus_has_none_to_open),
        cmocka_unit_test_setup_teardown(bytes_go_through_streams_and_events, open_gpu, close_gpu),
        cmocka_unit_test_setup_teardown(a_stream_that_works_is_not_idle, open_gpu, close_gpu),
        cmocka_unit_test_setup_teardown(no_bytes_are_no_memory, open_gpu, close_gpu),
        cmocka_unit_test_setup_teardown(out_of_device_memory_names_the_need_and_the_free, open_gpu, close_gpu),
        cmocka_unit_test_setup_teardown(addresses_are_told_apart, open_gpu, close_gpu),
        cmocka_unit_test_setup_teardown(the_threads_device_stays_what_it_was, open_gpu, close_gpu),
        cmocka_unit_test_setup_teardown(each_call_that_fails_is_an_error_with_its_name, open_gpu, close_gpu),
        cmocka_unit_test_setup_teardown(an_order_is_made_where_the_runtime_refuses_it, open_gpu, close_gpu),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
