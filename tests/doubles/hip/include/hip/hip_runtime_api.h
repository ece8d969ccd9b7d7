/**
 * @file
 * The part of the HIP runtime that the library and its tests use, as the double beside this declares it: names, types and
 * values are HIP's. Where HIP itself is installed, the double is compiled against its headers too, which must agree.
 */
#ifndef FSDP_TESTS_DOUBLES_HIP_RUNTIME_API_H
#define FSDP_TESTS_DOUBLES_HIP_RUNTIME_API_H

#include <stddef.h>

#define HIP_VERSION_MAJOR 5

typedef enum hipError_t {
    hipSuccess                         = 0,
    hipErrorInvalidValue               = 1,
    hipErrorOutOfMemory                = 2,
    hipErrorNoDevice                   = 100,
    hipErrorInvalidDevice              = 101,
    hipErrorMapFailed                  = 205,
    hipErrorInvalidHandle              = 400,
    hipErrorSharedObjectSymbolNotFound = 302,
    hipErrorSharedObjectInitFailed     = 303,
    hipErrorNotReady                   = 600,
    hipErrorPeerAccessAlreadyEnabled   = 704,
    hipErrorUnknown                    = 999
} hipError_t;

typedef enum hipMemoryType { hipMemoryTypeHost, hipMemoryTypeDevice } hipMemoryType;

typedef struct hipPointerAttribute_t {
    enum hipMemoryType memoryType;
    int                device;
    void              *devicePointer;
    void              *hostPointer;
    int                isManaged;
    unsigned           allocationFlags;
} hipPointerAttribute_t;

typedef enum hipMemcpyKind {
    hipMemcpyHostToHost     = 0,
    hipMemcpyHostToDevice   = 1,
    hipMemcpyDeviceToHost   = 2,
    hipMemcpyDeviceToDevice = 3,
    hipMemcpyDefault        = 4
} hipMemcpyKind;

typedef struct dim3 {
    unsigned x, y, z;
} dim3;

typedef struct ihipStream_t *hipStream_t;
typedef struct ihipEvent_t  *hipEvent_t;

typedef struct hipIpcMemHandle_st {
    char reserved[64];
} hipIpcMemHandle_t;

typedef struct hipIpcEventHandle_st {
    char reserved[64];
} hipIpcEventHandle_t;

#define hipStreamNonBlocking          0x01
#define hipEventDisableTiming         0x2
#define hipEventInterprocess          0x4
#define hipHostMallocDefault          0x0
#define hipHostRegisterPortable       0x1
#define hipHostRegisterMapped         0x2
#define hipIpcMemLazyEnablePeerAccess 0x01

#ifdef __cplusplus
extern "C" {
#endif

const char *hipGetErrorName(hipError_t error);
const char *hipGetErrorString(hipError_t error);
hipError_t  hipGetLastError(void);

hipError_t hipGetDeviceCount(int *count);
hipError_t hipGetDevice(int *device);
hipError_t hipSetDevice(int device);
hipError_t hipDeviceGetPCIBusId(char *address, int size, int device);
hipError_t hipDeviceCanAccessPeer(int *can, int device, int peer);
hipError_t hipDeviceEnablePeerAccess(int peer, unsigned int flags);
hipError_t hipDeviceGetStreamPriorityRange(int *least, int *greatest);
hipError_t hipDeviceSynchronize(void);

hipError_t hipMemGetInfo(size_t *available, size_t *total);
hipError_t hipMalloc(void **memory, size_t bytes);
hipError_t hipFree(void *memory);
hipError_t hipHostMalloc(void **memory, size_t bytes, unsigned int flags);
hipError_t hipHostFree(void *memory);
hipError_t hipHostRegister(void *host, size_t bytes, unsigned int flags);
hipError_t hipHostUnregister(void *host);
hipError_t hipHostGetDevicePointer(void **view, void *host, unsigned int flags);
hipError_t hipPointerGetAttributes(hipPointerAttribute_t *attributes, const void *address);

hipError_t hipMemcpy(void *to, const void *from, size_t bytes, hipMemcpyKind kind);
hipError_t hipMemcpyAsync(void *to, const void *from, size_t bytes, hipMemcpyKind kind, hipStream_t stream);
hipError_t hipMemsetAsync(void *memory, int value, size_t bytes, hipStream_t stream);

hipError_t hipStreamCreateWithPriority(hipStream_t *stream, unsigned int flags, int priority);
hipError_t hipStreamDestroy(hipStream_t stream);
hipError_t hipStreamSynchronize(hipStream_t stream);
hipError_t hipStreamQuery(hipStream_t stream);
hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned int flags);

hipError_t hipEventCreateWithFlags(hipEvent_t *event, unsigned flags);
hipError_t hipEventDestroy(hipEvent_t event);
hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream);
hipError_t hipEventQuery(hipEvent_t event);
hipError_t hipEventSynchronize(hipEvent_t event);

hipError_t hipIpcGetMemHandle(hipIpcMemHandle_t *handle, void *address);
hipError_t hipIpcOpenMemHandle(void **address, hipIpcMemHandle_t handle, unsigned int flags);
hipError_t hipIpcCloseMemHandle(void *address);
hipError_t hipIpcGetEventHandle(hipIpcEventHandle_t *handle, hipEvent_t event);
hipError_t hipIpcOpenEventHandle(hipEvent_t *event, hipIpcEventHandle_t handle);

hipError_t hipLaunchKernel(const void *kernel, dim3 blocks, dim3 threads, void **arguments, size_t shared,
                           hipStream_t stream);
hipError_t __hipPopCallConfiguration(dim3 *blocks, dim3 *threads, size_t *shared, hipStream_t *stream);

#ifdef __cplusplus
}
#endif

#endif
