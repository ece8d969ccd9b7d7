/* Device memory, which the host cannot touch; pinned memory; and what processes open of each other. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernels/hip/runtime.h"
#include "tests/doubles/hip/double.h"

enum { PAGE = 4096 };

/* In the file of an allocation: this, then the shadow, then, at the next page, the bytes. */
typedef struct header {
    uint64_t bytes;
    uint64_t identity; /* of the allocation, so that a handle of one that is gone is known */
    int32_t  device;
    uint32_t importers;
} header;

struct double_memory {
    double_memory *next;
    unsigned char *address; /* that the program knows */
    unsigned char *host;    /* registered host memory, whose view on the device `address` is; NULL: of no such */
    header        *shared;
    int            file; /* -1: somebody else's, or pinned */
    bool           is_pinned, is_imported;
};

/* What a hipIpcMemHandle_t holds. */
typedef struct ticket {
    char     magic[8];
    int64_t  process, file;
    uint64_t identity;
} ticket;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static double_memory  *all;
static size_t          used[DOUBLE_DEVICES];

static size_t in_pages(size_t bytes)
{
    return (bytes + PAGE - 1) / PAGE * PAGE;
}

static size_t head_bytes(void)
{
    return in_pages(sizeof(header) + double_shadow_bytes());
}

static unsigned char *bytes_of(const double_memory *memory)
{
    return memory->host != NULL ? memory->host : (unsigned char *)memory->shared + head_bytes();
}

double_shadow *double_memory_shadow(const double_memory *memory)
{
    return (double_shadow *)(void *)(memory->shared + 1);
}

int double_memory_device(const double_memory *memory)
{
    return memory->is_pinned ? -1 : memory->shared->device;
}

bool double_memory_is_imported(const double_memory *memory)
{
    return memory->is_imported;
}

double_memory *double_memory_of(const void *address)
{
    const uintptr_t at = (uintptr_t)address;

    (void)pthread_mutex_lock(&lock);
    double_memory *memory = all;
    while (memory != NULL &&
           (at < (uintptr_t)memory->address || at - (uintptr_t)memory->address >= memory->shared->bytes)) {
        memory = memory->next;
    }
    (void)pthread_mutex_unlock(&lock);
    return memory;
}

void *double_memory_view(const double_memory *memory, const void *address, size_t bytes, size_t *offset)
{
    *offset = (size_t)((const unsigned char *)address - memory->address);
    if (bytes > memory->shared->bytes - *offset) {
        double_mistake("%zu bytes at offset %zu of an allocation of %zu bytes", bytes, *offset,
                       (size_t)memory->shared->bytes);
    }
    return bytes_of(memory) + *offset;
}

/* Addresses that lead nowhere. */
static void *reserve(size_t bytes)
{
    return mmap(NULL, in_pages(bytes) + PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

/* Maps the file of an allocation, and gives it an address that leads nowhere, or to the bytes themselves. */
static double_memory *map(int file, size_t bytes, bool is_pinned)
{
    double_memory *memory = calloc(1, sizeof *memory);
    void          *shared = mmap(NULL, head_bytes() + in_pages(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);

    if (memory == NULL || shared == MAP_FAILED) {
        free(memory);
        return NULL;
    }
    memory->shared    = shared;
    memory->file      = file;
    memory->is_pinned = is_pinned;
    memory->address   = bytes_of(memory);
    if (!is_pinned) {
        void *nowhere = reserve(bytes);

        if (nowhere == MAP_FAILED) {
            (void)munmap(shared, head_bytes() + in_pages(bytes));
            free(memory);
            return NULL;
        }
        memory->address = nowhere;
    }
    return memory;
}

static void add(double_memory *memory)
{
    (void)pthread_mutex_lock(&lock);
    memory->next = all;
    all          = memory;
    (void)pthread_mutex_unlock(&lock);
}

static void drop(double_memory *memory)
{
    const size_t bytes = memory->shared->bytes;

    (void)pthread_mutex_lock(&lock);
    for (double_memory **link = &all; *link != NULL; link = &(*link)->next) {
        if (*link == memory) {
            *link = memory->next;
            break;
        }
    }
    (void)pthread_mutex_unlock(&lock);
    if (!memory->is_pinned || memory->host != NULL) {
        (void)munmap(memory->address, in_pages(bytes) + PAGE);
    }
    (void)munmap(memory->shared, head_bytes() + (memory->host != NULL ? 0 : in_pages(bytes)));
    if (memory->file >= 0) {
        (void)close(memory->file);
    }
    free(memory);
}

static double_memory *allocate(size_t bytes, bool is_pinned)
{
    static uint64_t made;
    const int       file   = memfd_create("hip-double", MFD_CLOEXEC);
    double_memory  *memory = NULL;

    if (file >= 0 && ftruncate(file, (off_t)(head_bytes() + in_pages(bytes))) == 0) {
        memory = map(file, bytes, is_pinned);
    }
    if (memory == NULL) {
        if (file >= 0) {
            (void)close(file);
        }
        return NULL;
    }
    *memory->shared = (header){.bytes    = bytes,
                               .identity = (uint64_t)getpid() << 32 | __atomic_add_fetch(&made, 1, __ATOMIC_RELAXED),
                               .device   = double_device()};
    double_shadow_open(double_memory_shadow(memory));
    if (!is_pinned) { /* nobody may rely on zeros */
        memset(bytes_of(memory), 0xcd, bytes);
    }
    add(memory);
    return memory;
}

/* ---- the runtime's functions ------------------------------------------------------------------------------------- */

static size_t device_bytes(void)
{
    return (size_t)double_setting("HIP_DOUBLE_MEMORY", 1LL << 30);
}

hipError_t hipMemGetInfo(size_t *available, size_t *total)
{
    *total     = device_bytes();
    *available = *total - __atomic_load_n(&used[double_device()], __ATOMIC_RELAXED);
    return double_enter(__func__);
}

hipError_t hipMalloc(void **memory, size_t bytes)
{
    const hipError_t error  = double_enter(__func__);
    size_t          *in_use = &used[double_device()];

    *memory = NULL;
    if (error != hipSuccess || bytes == 0) {
        return error;
    }
    if (__atomic_add_fetch(in_use, bytes, __ATOMIC_RELAXED) > device_bytes()) {
        (void)__atomic_sub_fetch(in_use, bytes, __ATOMIC_RELAXED);
        return double_error(hipErrorOutOfMemory);
    }
    const double_memory *made = allocate(bytes, false);
    if (made == NULL) {
        (void)__atomic_sub_fetch(in_use, bytes, __ATOMIC_RELAXED);
        return double_error(hipErrorOutOfMemory);
    }
    *memory = made->address;
    return hipSuccess;
}

hipError_t hipHostMalloc(void **memory, size_t bytes, unsigned int flags)
{
    const hipError_t error = double_enter(__func__);

    (void)flags;
    *memory = NULL;
    if (error != hipSuccess || bytes == 0) {
        return error;
    }
    const double_memory *made = allocate(bytes, true);
    *memory                   = made != NULL ? made->address : NULL;
    return made != NULL ? hipSuccess : double_error(hipErrorOutOfMemory);
}

static double_memory *registered(const void *host)
{
    (void)pthread_mutex_lock(&lock);
    double_memory *memory = all;
    while (memory != NULL && (memory->host == NULL || memory->host != host)) {
        memory = memory->next;
    }
    (void)pthread_mutex_unlock(&lock);
    return memory;
}

/* HIP leaves open whether the device sees it at the same address: here it does not. */
hipError_t hipHostRegister(void *host, size_t bytes, unsigned int flags)
{
    const hipError_t error  = double_enter(__func__);
    double_memory   *memory = calloc(1, sizeof *memory);

    if (error != hipSuccess || memory == NULL || bytes == 0 || registered(host) != NULL ||
        flags != (hipHostRegisterPortable | hipHostRegisterMapped)) {
        free(memory);
        return error != hipSuccess ? error : double_error(hipErrorInvalidValue);
    }
    memory->shared    = mmap(NULL, head_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memory->address   = reserve(bytes);
    memory->host      = host;
    memory->file      = -1;
    memory->is_pinned = true;
    if (memory->shared == MAP_FAILED || memory->address == MAP_FAILED) {
        free(memory);
        return double_error(hipErrorOutOfMemory);
    }
    *memory->shared = (header){.bytes = bytes, .device = double_device()};
    double_shadow_open(double_memory_shadow(memory));
    add(memory);
    return hipSuccess;
}

hipError_t hipHostUnregister(void *host)
{
    const hipError_t error  = double_enter(__func__);
    double_memory   *memory = registered(host);

    if (error != hipSuccess || memory == NULL) {
        return error != hipSuccess ? error : double_error(hipErrorInvalidValue);
    }
    double_streams_idle();
    drop(memory);
    return hipSuccess;
}

hipError_t hipHostGetDevicePointer(void **view, void *host, unsigned int flags)
{
    const hipError_t     error  = double_enter(__func__);
    const double_memory *memory = registered(host);

    if (error != hipSuccess || memory == NULL || flags != 0) {
        return error != hipSuccess ? error : double_error(hipErrorInvalidValue);
    }
    *view = memory->address;
    return hipSuccess;
}

/* As in HIP, freeing waits until the device is idle. */
static hipError_t release(void *address, bool is_pinned)
{
    double_memory *memory = address != NULL ? double_memory_of(address) : NULL;

    if (address == NULL) {
        return hipSuccess;
    }
    if (memory == NULL || memory->address != address || memory->is_imported || memory->is_pinned != is_pinned ||
        memory->host != NULL) {
        return double_error(hipErrorInvalidValue);
    }
    double_streams_idle();
    if (__atomic_load_n(&memory->shared->importers, __ATOMIC_ACQUIRE) > 0) {
        double_mistake("memory is freed that %u other processes have open", memory->shared->importers);
    }
    memory->shared->identity = 0;
    if (!is_pinned) {
        (void)__atomic_sub_fetch(&used[memory->shared->device], memory->shared->bytes, __ATOMIC_RELAXED);
    }
    drop(memory);
    return hipSuccess;
}

hipError_t hipFree(void *memory)
{
    const hipError_t error = double_enter(__func__);

    return error != hipSuccess ? error : release(memory, false);
}

hipError_t hipHostFree(void *memory)
{
    const hipError_t error = double_enter(__func__);

    return error != hipSuccess ? error : release(memory, true);
}

static void *host_of(const double_memory *memory, const void *address)
{
    return bytes_of(memory) + ((const unsigned char *)address - memory->address);
}

hipError_t hipPointerGetAttributes(hipPointerAttribute_t *attributes, const void *address)
{
    const hipError_t     error  = double_enter(__func__);
    const double_memory *memory = double_memory_of(address);

    if (error != hipSuccess || memory == NULL) {
        return error != hipSuccess ? error : double_error(hipErrorInvalidValue);
    }
    memset(attributes, 0, sizeof *attributes);
    FSDPI_GPU_MEMORY_TYPE(attributes) = memory->is_pinned ? hipMemoryTypeHost : hipMemoryTypeDevice;
    attributes->device                = memory->shared->device;
    attributes->devicePointer         = (void *)(uintptr_t)address;
    attributes->hostPointer           = memory->is_pinned ? host_of(memory, address) : NULL;
    return hipSuccess;
}

/* ---- between processes ------------------------------------------------------------------------------------------- */

hipError_t hipIpcGetMemHandle(hipIpcMemHandle_t *handle, void *address)
{
    const hipError_t     error  = double_enter(__func__);
    const double_memory *memory = double_memory_of(address);
    ticket               mine   = {.magic = "memory", .process = getpid()};

    if (error != hipSuccess || memory == NULL || memory->address != address || memory->is_imported ||
        memory->is_pinned) {
        return error != hipSuccess ? error : double_error(hipErrorInvalidValue);
    }
    mine.file     = memory->file;
    mine.identity = memory->shared->identity;
    memset(handle, 0, sizeof *handle);
    memcpy(handle, &mine, sizeof mine);
    return hipSuccess;
}

static double_memory *already_open(uint64_t identity)
{
    (void)pthread_mutex_lock(&lock);
    double_memory *memory = all;
    while (memory != NULL && memory->shared->identity != identity) {
        memory = memory->next;
    }
    (void)pthread_mutex_unlock(&lock);
    return memory;
}

/* Fails also for one's own memory, and for what is open already, which HIP does not promise to allow. */
hipError_t hipIpcOpenMemHandle(void **address, hipIpcMemHandle_t handle, unsigned int flags)
{
    const hipError_t error = double_enter(__func__);
    ticket           theirs;
    header           head;
    char             name[64];

    *address = NULL;
    memcpy(&theirs, &handle, sizeof theirs);
    if (error != hipSuccess || flags != hipIpcMemLazyEnablePeerAccess || strcmp(theirs.magic, "memory") != 0 ||
        already_open(theirs.identity) != NULL) {
        return error != hipSuccess ? error : double_error(hipErrorInvalidValue);
    }
    (void)snprintf(name, sizeof name, "/proc/%lld/fd/%lld", (long long)theirs.process, (long long)theirs.file);
    const int file = getenv("HIP_DOUBLE_NO_IPC") == NULL ? open(name, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0) {
        return double_error(hipErrorMapFailed);
    }
    const bool there = pread(file, &head, sizeof head, 0) == (ssize_t)sizeof head && head.identity == theirs.identity;
    double_memory *memory = there ? map(file, head.bytes, false) : NULL;
    (void)close(file);
    if (memory == NULL) {
        return double_error(hipErrorMapFailed);
    }
    memory->file        = -1;
    memory->is_imported = true;
    (void)__atomic_add_fetch(&memory->shared->importers, 1, __ATOMIC_ACQ_REL);
    add(memory);
    *address = memory->address;
    return hipSuccess;
}

hipError_t hipIpcCloseMemHandle(void *address)
{
    const hipError_t error  = double_enter(__func__);
    double_memory   *memory = double_memory_of(address);

    if (error != hipSuccess || memory == NULL || memory->address != address || !memory->is_imported) {
        return error != hipSuccess ? error : double_error(hipErrorInvalidValue);
    }
    if (double_streams_use(memory)) { /* HIP does not say that it is waited for */
        double_mistake("a peer's memory is closed while a stream uses it");
    }
    (void)__atomic_sub_fetch(&memory->shared->importers, 1, __ATOMIC_ACQ_REL);
    drop(memory);
    return hipSuccess;
}
