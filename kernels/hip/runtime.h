/**
 * @file
 * The GPU runtime: HIP, by HIP's names. A build for CUDA (FSDPI_GPU_CUDA) has CUDA's functions under the same names; all
 * that the library uses stand here, in one list.
 */
#ifndef FSDPI_KERNELS_HIP_RUNTIME_H
#define FSDPI_KERNELS_HIP_RUNTIME_H

#ifdef FSDPI_GPU_CUDA

#include <cuda_runtime_api.h>

#define hipError_t                        cudaError_t
#define hipSuccess                        cudaSuccess
#define hipErrorInvalidValue              cudaErrorInvalidValue
#define hipErrorSharedObjectInitFailed    cudaErrorSharedObjectInitFailed
#define hipErrorNotReady                  cudaErrorNotReady
#define hipErrorOutOfMemory               cudaErrorMemoryAllocation
#define hipErrorPeerAccessAlreadyEnabled  cudaErrorPeerAccessAlreadyEnabled
#define hipGetErrorName                   cudaGetErrorName
#define hipGetErrorString                 cudaGetErrorString
#define hipGetLastError                   cudaGetLastError
#define hipGetDeviceCount                 cudaGetDeviceCount
#define hipGetDevice                      cudaGetDevice
#define hipSetDevice                      cudaSetDevice
#define hipDeviceGetPCIBusId              cudaDeviceGetPCIBusId
#define hipDeviceCanAccessPeer            cudaDeviceCanAccessPeer
#define hipDeviceEnablePeerAccess         cudaDeviceEnablePeerAccess
#define hipDeviceGetStreamPriorityRange   cudaDeviceGetStreamPriorityRange
#define hipMemGetInfo                     cudaMemGetInfo
#define hipMalloc                         cudaMalloc
#define hipFree                           cudaFree
#define hipHostMalloc                     cudaHostAlloc
#define hipHostMallocDefault              cudaHostAllocDefault
#define hipHostFree                       cudaFreeHost
#define hipHostRegister                   cudaHostRegister
#define hipHostRegisterPortable           cudaHostRegisterPortable
#define hipHostRegisterMapped             cudaHostRegisterMapped
#define hipHostUnregister                 cudaHostUnregister
#define hipHostGetDevicePointer           cudaHostGetDevicePointer
#define hipPointerAttribute_t             struct cudaPointerAttributes
#define hipPointerGetAttributes           cudaPointerGetAttributes
#define hipMemoryTypeHost                 cudaMemoryTypeHost
#define hipMemoryTypeDevice               cudaMemoryTypeDevice
#define hipMemcpyAsync                    cudaMemcpyAsync
#define hipMemcpyDefault                  cudaMemcpyDefault
#define hipMemsetAsync                    cudaMemsetAsync
#define hipStream_t                       cudaStream_t
#define hipStreamNonBlocking              cudaStreamNonBlocking
#define hipStreamCreateWithPriority       cudaStreamCreateWithPriority
#define hipStreamDestroy                  cudaStreamDestroy
#define hipStreamSynchronize              cudaStreamSynchronize
#define hipDeviceSynchronize              cudaDeviceSynchronize
#define hipStreamQuery                    cudaStreamQuery
#define hipStreamWaitEvent                cudaStreamWaitEvent
#define hipEvent_t                        cudaEvent_t
#define hipEventDisableTiming             cudaEventDisableTiming
#define hipEventInterprocess              cudaEventInterprocess
#define hipEventCreateWithFlags           cudaEventCreateWithFlags
#define hipEventDestroy                   cudaEventDestroy
#define hipEventRecord                    cudaEventRecord
#define hipEventQuery                     cudaEventQuery
#define hipEventSynchronize               cudaEventSynchronize
#define hipIpcMemHandle_t                 cudaIpcMemHandle_t
#define hipIpcGetMemHandle                cudaIpcGetMemHandle
#define hipIpcOpenMemHandle               cudaIpcOpenMemHandle
#define hipIpcCloseMemHandle              cudaIpcCloseMemHandle
#define hipIpcMemLazyEnablePeerAccess     cudaIpcMemLazyEnablePeerAccess
#define hipIpcEventHandle_t               cudaIpcEventHandle_t
#define hipIpcGetEventHandle              cudaIpcGetEventHandle
#define hipIpcOpenEventHandle             cudaIpcOpenEventHandle
#define hipLaunchKernel                   cudaLaunchKernel
#define FSDPI_GPU_MEMORY_TYPE(attributes) ((attributes)->type)

#else

#ifdef __HIPCC__
#include <hip/hip_runtime.h>
#else
#include <hip/hip_runtime_api.h>
#endif

#if HIP_VERSION_MAJOR >= 6 /* which renamed it */
#define FSDPI_GPU_MEMORY_TYPE(attributes) ((attributes)->type)
#else
#define FSDPI_GPU_MEMORY_TYPE(attributes) ((attributes)->memoryType)
#endif

#endif

#endif
