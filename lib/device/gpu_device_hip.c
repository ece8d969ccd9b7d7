#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/device/gpu.h"
#include "lib/device/gpu_runtime.h"

/* Streams, events and handles travel as what the library's own code knows them by. */
_Static_assert(sizeof(hipIpcMemHandle_t) == sizeof(fsdpi_gpu_handle), "a handle of memory fits");
_Static_assert(sizeof(hipIpcEventHandle_t) == sizeof(fsdpi_gpu_handle), "a handle of an event fits");

/* ---- errors ------------------------------------------------------------------------------------------------------ */

/* The runtime keeps an error for whoever asks next, who must not be the caller. */
fsdp_status fsdpi_gpu_fail(fsdpi_gpu_device *gpu, const char *call, hipError_t error)
{
    (void)hipGetLastError();
    return fsdpi_fail(gpu->ctx, FSDP_ERR_DEVICE, "GPU %d: %s: %s (%s)", gpu->number, call, hipGetErrorString(error),
                      hipGetErrorName(error));
}

#define TRY_GPU(gpu, call)                                                                                             \
    do {                                                                                                               \
        const hipError_t error_ = (call);                                                                              \
        if (error_ != hipSuccess) {                                                                                    \
            return fsdpi_gpu_fail(gpu, #call, error_);                                                                 \
        }                                                                                                              \
    } while (0)

/* ---- which device ------------------------------------------------------------------------------------------------ */

fsdp_status fsdpi_gpu_enter(fsdpi_gpu_device *gpu, int *before)
{
    TRY_GPU(gpu, hipGetDevice(before));
    if (*before != gpu->number) {
        TRY_GPU(gpu, hipSetDevice(gpu->number));
    }
    return FSDP_OK;
}

void fsdpi_gpu_leave(const fsdpi_gpu_device *gpu, int before)
{
    if (before != gpu->number) {
        (void)hipSetDevice(before);
    }
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static fsdp_status free_bytes(fsdpi_gpu_device *gpu, size_t *available, size_t *total)
{
    int before;

    FSDP_TRY(fsdpi_gpu_enter(gpu, &before));
    const hipError_t error = hipMemGetInfo(available, total);
    fsdpi_gpu_leave(gpu, before);
    return error == hipSuccess ? FSDP_OK : fsdpi_gpu_fail(gpu, "hipMemGetInfo", error);
}

static fsdp_status no_memory(fsdpi_gpu_device *gpu, const char *purpose, size_t bytes)
{
    size_t available, total;

    (void)hipGetLastError();
    FSDP_TRY(free_bytes(gpu, &available, &total));
    return fsdpi_fail(
        gpu->ctx, FSDP_ERR_MEMORY,
        "GPU %d: out of device memory: %s needs %zu bytes, and %zu of %zu are free; divide the model over more "
        "ranks, or open fewer views at once",
        gpu->number, purpose, bytes, available, total);
}

static fsdp_status alloc(fsdpi_gpu_device *gpu, const char *purpose, size_t bytes, void **memory)
{
    int before;

    *memory = NULL;
    if (bytes == 0) {
        return FSDP_OK;
    }
    FSDP_TRY(fsdpi_gpu_enter(gpu, &before));
    const hipError_t error = hipMalloc(memory, bytes);
    fsdpi_gpu_leave(gpu, before);
    if (error == hipErrorOutOfMemory) {
        return no_memory(gpu, purpose, bytes);
    }
    return error == hipSuccess ? FSDP_OK : fsdpi_gpu_fail(gpu, "hipMalloc", error);
}

static fsdp_status release(fsdpi_gpu_device *gpu, void *memory)
{
    if (memory != NULL) {
        TRY_GPU(gpu, hipFree(memory));
    }
    return FSDP_OK;
}

/* ---- pinned memory ----------------------------------------------------------------------------------------------- */

enum { NODES = 1024, POLICY_PREFERRED = 1 }; /* as in <linux/mempolicy.h> */

typedef struct memory_policy {
    int           mode;
    unsigned long nodes[NODES / (8 * sizeof(unsigned long))];
} memory_policy;

/* Of which node the thread's new pages are from now on, where one will do; what it was before goes into `before`. */
static bool prefer_node(int node, memory_policy *before)
{
    unsigned long wanted[NODES / (8 * sizeof(unsigned long))] = {0};
    const size_t  bits                                        = 8 * sizeof(unsigned long);

    if (node < 0 || node >= NODES || syscall(SYS_get_mempolicy, &before->mode, before->nodes, NODES, NULL, 0) != 0) {
        return false;
    }
    wanted[(size_t)node / bits] = 1UL << ((size_t)node % bits);
    return syscall(SYS_set_mempolicy, POLICY_PREFERRED, wanted, NODES) == 0;
}

static fsdp_status alloc_pinned(fsdpi_gpu_device *gpu, const char *purpose, size_t bytes, void **memory)
{
    memory_policy before;
    int           device;

    *memory = NULL;
    if (bytes == 0) {
        return FSDP_OK;
    }
    FSDP_TRY(fsdpi_gpu_enter(gpu, &device));
    const bool       preferred = prefer_node(gpu->numa, &before);
    const hipError_t error     = hipHostMalloc(memory, bytes, hipHostMallocDefault);
    if (preferred) {
        (void)syscall(SYS_set_mempolicy, before.mode, before.nodes, NODES);
    }
    fsdpi_gpu_leave(gpu, device);
    if (error == hipErrorOutOfMemory) {
        (void)hipGetLastError();
        *memory = NULL;
        return fsdpi_fail(
            gpu->ctx, FSDP_ERR_MEMORY,
            "GPU %d: out of pinned memory: %s needs %zu bytes, which the system does not lock; raise the limit "
            "(ulimit -l)",
            gpu->number, purpose, bytes);
    }
    return error == hipSuccess ? FSDP_OK : fsdpi_gpu_fail(gpu, "hipHostMalloc", error);
}

static fsdp_status release_pinned(fsdpi_gpu_device *gpu, void *memory)
{
    if (memory != NULL) {
        TRY_GPU(gpu, hipHostFree(memory));
    }
    return FSDP_OK;
}

/* Portable: whatever device of the process a thread uses. */
static fsdp_status pin(fsdpi_gpu_device *gpu, void *memory, size_t bytes, void **view)
{
    int before;

    *view = NULL;
    FSDP_TRY(fsdpi_gpu_enter(gpu, &before));
    hipError_t error = hipHostRegister(memory, bytes, hipHostRegisterPortable | hipHostRegisterMapped);
    if (error == hipSuccess) {
        error = hipHostGetDevicePointer(view, memory, 0);
    }
    fsdpi_gpu_leave(gpu, before);
    return error == hipSuccess ? FSDP_OK : fsdpi_gpu_fail(gpu, "hipHostRegister", error);
}

static fsdp_status unpin(fsdpi_gpu_device *gpu, void *memory)
{
    TRY_GPU(gpu, hipHostUnregister(memory));
    return FSDP_OK;
}

static fsdpi_memory_place place_of(fsdpi_gpu_device *gpu, const void *address)
{
    hipPointerAttribute_t attributes;

    if (hipPointerGetAttributes(&attributes, address) != hipSuccess) {
        (void)hipGetLastError(); /* ordinary host memory is an error to HIP */
        return FSDPI_PLACE_HOST;
    }
    if (FSDPI_GPU_MEMORY_TYPE(&attributes) != hipMemoryTypeDevice) {
        return FSDPI_PLACE_HOST;
    }
    return attributes.device == gpu->number ? FSDPI_PLACE_DEVICE : FSDPI_PLACE_OTHER;
}

static fsdp_status copy(fsdpi_gpu_device *gpu, void *to, const void *from, size_t bytes, fsdpi_gpu_stream stream)
{
    if (bytes > 0) {
        TRY_GPU(gpu, hipMemcpyAsync(to, from, bytes, hipMemcpyDefault, stream));
    }
    return FSDP_OK;
}

static fsdp_status clear(fsdpi_gpu_device *gpu, void *memory, size_t bytes, fsdpi_gpu_stream stream)
{
    if (bytes > 0) {
        TRY_GPU(gpu, hipMemsetAsync(memory, 0, bytes, stream));
    }
    return FSDP_OK;
}

static fsdp_status reduce(fsdpi_gpu_device *gpu, void *const *out, size_t n_out, const void *const *in, size_t n_in,
                          size_t count, fsdp_dtype dtype, fsdp_redop op, size_t divisor, fsdpi_gpu_stream stream)
{
    int before;

    if (n_in > FSDPI_GPU_OPERANDS || n_out > FSDPI_GPU_OPERANDS) {
        return fsdpi_fail(gpu->ctx, FSDP_ERR_UNSUPPORTED,
                          "GPU %d: a reduction of %zu operands into %zu results; at most %d are taken", gpu->number,
                          n_in, n_out, FSDPI_GPU_OPERANDS);
    }
    FSDP_TRY(fsdpi_gpu_enter(gpu, &before));
    const hipError_t error = (hipError_t)fsdpi_gpu_reduce_into(out, n_out, in, n_in, count, dtype, op, divisor, stream);
    fsdpi_gpu_leave(gpu, before);
    return error == hipSuccess ? FSDP_OK : fsdpi_gpu_fail(gpu, "the kernel of a reduction", error);
}

/* ---- streams and events ------------------------------------------------------------------------------------------ */

static fsdp_status stream_open(fsdpi_gpu_device *gpu, bool urgent, fsdpi_gpu_stream *stream)
{
    int         before, least = 0, greatest = 0;
    hipStream_t made = NULL;

    *stream = NULL;
    FSDP_TRY(fsdpi_gpu_enter(gpu, &before));
    hipError_t error = hipDeviceGetStreamPriorityRange(&least, &greatest);
    if (error == hipSuccess) { /* 0 is the default, between both */
        error = hipStreamCreateWithPriority(&made, hipStreamNonBlocking, urgent ? greatest : 0);
    }
    fsdpi_gpu_leave(gpu, before);
    *stream = made;
    return error == hipSuccess ? FSDP_OK : fsdpi_gpu_fail(gpu, "hipStreamCreateWithPriority", error);
}

static fsdp_status stream_finish(fsdpi_gpu_device *gpu, fsdpi_gpu_stream stream)
{
    TRY_GPU(gpu, hipStreamSynchronize(stream));
    return FSDP_OK;
}

static fsdp_status stream_close(fsdpi_gpu_device *gpu, fsdpi_gpu_stream stream)
{
    if (stream != NULL) {
        TRY_GPU(gpu, hipStreamSynchronize(stream));
        TRY_GPU(gpu, hipStreamDestroy(stream));
    }
    return FSDP_OK;
}

/* `asked`: hipSuccess, hipErrorNotReady, or that something has gone wrong. */
static fsdp_status answer(fsdpi_gpu_device *gpu, const char *call, hipError_t asked, bool *yes)
{
    *yes = asked == hipSuccess;
    if (asked == hipErrorNotReady) {
        (void)hipGetLastError();
        return FSDP_OK;
    }
    return *yes ? FSDP_OK : fsdpi_gpu_fail(gpu, call, asked);
}

static fsdp_status stream_is_idle(fsdpi_gpu_device *gpu, fsdpi_gpu_stream stream, bool *idle)
{
    return answer(gpu, "hipStreamQuery", hipStreamQuery(stream), idle);
}

static fsdp_status event_open(fsdpi_gpu_device *gpu, bool shared, fsdpi_gpu_event *event)
{
    const unsigned flags = hipEventDisableTiming | (shared ? hipEventInterprocess : 0u);
    hipEvent_t     made  = NULL;
    int            before;

    *event = NULL;
    FSDP_TRY(fsdpi_gpu_enter(gpu, &before));
    const hipError_t error = hipEventCreateWithFlags(&made, flags);
    fsdpi_gpu_leave(gpu, before);
    *event = made;
    return error == hipSuccess ? FSDP_OK : fsdpi_gpu_fail(gpu, "hipEventCreateWithFlags", error);
}

static fsdp_status event_close(fsdpi_gpu_device *gpu, fsdpi_gpu_event event)
{
    if (event != NULL) {
        TRY_GPU(gpu, hipEventDestroy(event));
    }
    return FSDP_OK;
}

/* `waited`: what became of the host's own wait. */
static fsdp_status wait_instead(fsdpi_gpu_device *gpu, const char *call, hipError_t error, hipError_t waited)
{
    if (waited != hipSuccess) {
        return fsdpi_gpu_fail(gpu, call, error);
    }
    (void)hipGetLastError();
    fsdpi_log(gpu->ctx, FSDP_LOG_WARN, "GPU %d: %s: %s (%s); the host has waited instead", gpu->number, call,
              hipGetErrorString(error), hipGetErrorName(error));
    return FSDP_OK;
}

/* Whoever waits for an older record then does not wait, and need not. */
static fsdp_status event_record(fsdpi_gpu_device *gpu, fsdpi_gpu_event event, fsdpi_gpu_stream stream)
{
    const hipError_t error = hipEventRecord(event, stream);

    return error == hipSuccess
               ? FSDP_OK
               : wait_instead(gpu, "hipEventRecord(event, stream)", error, hipStreamSynchronize(stream));
}

static fsdp_status event_is_done(fsdpi_gpu_device *gpu, fsdpi_gpu_event event, bool *done)
{
    return answer(gpu, "hipEventQuery", hipEventQuery(event), done);
}

static fsdp_status wait_for(fsdpi_gpu_device *gpu, fsdpi_gpu_stream stream, fsdpi_gpu_event event)
{
    const hipError_t error = hipStreamWaitEvent(stream, event, 0);

    return error == hipSuccess
               ? FSDP_OK
               : wait_instead(gpu, "hipStreamWaitEvent(stream, event, 0)", error, hipEventSynchronize(event));
}

/* ---- peers ------------------------------------------------------------------------------------------------------- */

static fsdp_status memory_handle(fsdpi_gpu_device *gpu, void *memory, fsdpi_gpu_handle *handle)
{
    hipIpcMemHandle_t mine;

    TRY_GPU(gpu, hipIpcGetMemHandle(&mine, memory));
    memcpy(handle, &mine, sizeof mine);
    return FSDP_OK;
}

static fsdp_status event_handle(fsdpi_gpu_device *gpu, fsdpi_gpu_event event, fsdpi_gpu_handle *handle)
{
    hipIpcEventHandle_t mine;

    TRY_GPU(gpu, hipIpcGetEventHandle(&mine, event));
    memcpy(handle, &mine, sizeof mine);
    return FSDP_OK;
}

/* There is another way than this: the caller decides whether it is worth a word. */
static fsdp_status refused(fsdpi_gpu_device *gpu, const char *call, hipError_t error)
{
    (void)hipGetLastError();
    return fsdpi_record(gpu->ctx, FSDP_ERR_UNSUPPORTED,
                        "GPU %d: %s: %s; the system does not let processes of this node share device memory",
                        gpu->number, call, hipGetErrorString(error));
}

static fsdp_status import(fsdpi_gpu_device *gpu, const fsdpi_gpu_handle *handle, fsdpi_gpu_import *entry)
{
    hipIpcMemHandle_t theirs;
    int               before;

    memcpy(&theirs, handle, sizeof theirs);
    FSDP_TRY(fsdpi_gpu_enter(gpu, &before));
    const hipError_t error = hipIpcOpenMemHandle(&entry->memory, theirs, hipIpcMemLazyEnablePeerAccess);
    fsdpi_gpu_leave(gpu, before);
    return error == hipSuccess ? FSDP_OK : refused(gpu, "hipIpcOpenMemHandle", error);
}

static fsdp_status open_memory(fsdpi_gpu_device *gpu, const fsdpi_gpu_handle *handle, void **memory)
{
    fsdpi_gpu_import *entry = gpu->imports;

    *memory = NULL;
    while (entry != NULL && memcmp(&entry->handle, handle, sizeof *handle) != 0) {
        entry = entry->next;
    }
    if (entry == NULL) {
        entry = calloc(1, sizeof *entry);
        if (entry == NULL) {
            return fsdpi_fail(gpu->ctx, FSDP_ERR_MEMORY, "GPU %d: no memory to keep a handle", gpu->number);
        }
        const fsdp_status status = import(gpu, handle, entry);
        if (status != FSDP_OK) {
            free(entry);
            return status;
        }
        entry->handle = *handle;
        entry->next   = gpu->imports;
        gpu->imports  = entry;
    }
    entry->users++;
    *memory = entry->memory;
    return FSDP_OK;
}

/* The runtime does not say that closing waits. */
static fsdp_status finish_all(fsdpi_gpu_device *gpu)
{
    int before;

    FSDP_TRY(fsdpi_gpu_enter(gpu, &before));
    const hipError_t error = hipDeviceSynchronize();
    fsdpi_gpu_leave(gpu, before);
    return error == hipSuccess ? FSDP_OK : fsdpi_gpu_fail(gpu, "hipDeviceSynchronize", error);
}

static fsdp_status close_memory(fsdpi_gpu_device *gpu, void *memory)
{
    fsdpi_gpu_import **link = &gpu->imports;

    while (*link != NULL && (*link)->memory != memory) {
        link = &(*link)->next;
    }
    fsdpi_gpu_import *entry = *link;
    if (entry == NULL) {
        return fsdpi_fail(gpu->ctx, FSDP_ERR_ARG, "GPU %d: no peer's memory is open at %p", gpu->number, memory);
    }
    if (--entry->users > 0) {
        return FSDP_OK;
    }
    *link = entry->next;
    free(entry);
    const fsdp_status status = finish_all(gpu);
    TRY_GPU(gpu, hipIpcCloseMemHandle(memory));
    return status;
}

static fsdp_status open_event(fsdpi_gpu_device *gpu, const fsdpi_gpu_handle *handle, fsdpi_gpu_event *event)
{
    hipIpcEventHandle_t theirs;
    hipEvent_t          made = NULL;
    int                 before;

    *event = NULL;
    memcpy(&theirs, handle, sizeof theirs);
    FSDP_TRY(fsdpi_gpu_enter(gpu, &before));
    const hipError_t error = hipIpcOpenEventHandle(&made, theirs);
    fsdpi_gpu_leave(gpu, before);
    *event = made;
    return error == hipSuccess ? FSDP_OK : refused(gpu, "hipIpcOpenEventHandle", error);
}

/* ---- opening and closing ----------------------------------------------------------------------------------------- */

static void close_device(fsdpi_gpu_device *gpu)
{
    if (gpu->imports != NULL) {
        (void)finish_all(gpu);
    }
    while (gpu->imports != NULL) {
        fsdpi_gpu_import *entry = gpu->imports;

        gpu->imports = entry->next;
        (void)hipIpcCloseMemHandle(entry->memory);
        free(entry);
    }
    free(gpu);
}

static const fsdpi_gpu_ops OPS = {
#ifdef FSDPI_GPU_CUDA
    .name = "cuda",
#else
    .name = "hip",
#endif
    .compute        = &fsdpi_gpu_compute_ops,
    .close          = close_device,
    .alloc          = alloc,
    .release        = release,
    .alloc_pinned   = alloc_pinned,
    .release_pinned = release_pinned,
    .free_bytes     = free_bytes,
    .place_of       = place_of,
    .pin            = pin,
    .unpin          = unpin,
    .copy           = copy,
    .clear          = clear,
    .reduce         = reduce,
    .stream_open    = stream_open,
    .stream_close   = stream_close,
    .stream_finish  = stream_finish,
    .stream_is_idle = stream_is_idle,
    .event_open     = event_open,
    .event_close    = event_close,
    .event_record   = event_record,
    .event_is_done  = event_is_done,
    .wait_for       = wait_for,
    .memory_handle  = memory_handle,
    .event_handle   = event_handle,
    .open_memory    = open_memory,
    .close_memory   = close_memory,
    .open_event     = open_event,
};

/* As the kernel knows it of the PCI address. */
static int numa_of(int device)
{
    char  address[32], name[96];
    int   node = -1;
    FILE *file = NULL;

    if (fsdpi_gpu_address(device, address, sizeof address)) {
        (void)snprintf(name, sizeof name, "/sys/bus/pci/devices/%s/numa_node", address);
        file = fopen(name, "re");
    }
    if (file != NULL) {
        node = fscanf(file, "%d", &node) == 1 ? node : -1;
        (void)fclose(file);
    }
    (void)hipGetLastError();
    return node;
}

fsdp_status fsdpi_gpu_device_open(fsdp_context *ctx, fsdpi_gpu_device **gpu)
{
    fsdpi_gpu_device opened = {.ops = &OPS, .ctx = ctx};

    *gpu = NULL;
    if (fsdpi_gpu_count() == 0) {
        return FSDP_OK;
    }
    TRY_GPU(&opened, hipGetDevice(&opened.number));
    opened.numa = numa_of(opened.number);
    *gpu        = malloc(sizeof **gpu);
    if (*gpu == NULL) {
        return fsdpi_fail(ctx, FSDP_ERR_MEMORY, "GPU %d: no memory to open it", opened.number);
    }
    **gpu = opened;
    return FSDP_OK;
}
