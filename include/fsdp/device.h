/**
 * @file
 * GPUs: which one a context uses, and how operations on its memory are ordered.
 *
 * If every rank has a GPU (FSDP_DEVICE; with `host` none is used), fsdp_init() opens on each rank the one that was planned
 * for it (FSDP_BIND) or, with FSDP_BIND=none, the one that the calling thread has selected. Collectives then take pointers to
 * its memory just as they take host memory; all buffers of a call are of one kind, on all ranks. With symmetric buffers
 * (FSDP_BUFFER_DEVICE) GPUs of a node read each other's memory. Other memory goes through staging memory of the GPUs, or
 * through that of the host between nodes and if the system does not let processes share device memory. Between nodes allgather,
 * reduce_scatter and allreduce of symmetric buffers (of any memory where each rank is a node) send chunks from every GPU at
 * once, from its own memory or through pinned memory of the host: see fsdp_has_gpu_aware_mpi().
 *
 * Order: an operation on device memory is ordered on the stream that fsdp_stream_set() named last. It begins when everything
 * in this stream at the time of the call is done. fsdp_wait(), an fsdp_test() that says "done", and the blocking calls
 * return when the operation is in the stream of the context; what is put into the caller's stream from then on waits for the
 * result. By then the host has waited for its peers' calls, and between nodes for the messages, but within a node never for
 * a GPU. Input and output may be reused in the same sense: by what is put into this stream.
 *
 * Models can have their memory on the GPU too: fsdp_model_options::placement, and the order of their work in fsdp/model.h.
 */
#ifndef FSDP_DEVICE_H
#define FSDP_DEVICE_H

#include "fsdp/export.h"
#include "fsdp/status.h"

FSDP_EXTERN_C_BEGIN

/** The GPU that the context uses, as the runtime numbers them in this process; -1: none, or no context. Local. */
FSDP_API int fsdp_device(const fsdp_context *ctx);

/**
 * 1 if messages between nodes are sent from, and received into, GPU memory; 0 if they go through pinned host memory, or if
 * there is no context or it uses no GPU. The same on all ranks. Local.
 *
 * FSDP_GPU_AWARE_MPI decides; with `auto`, what MPI itself says on every rank: MPIX_Query_rocm_support() or
 * MPIX_GPU_query_support(), as the library was built with it; "rocm" (or "cuda") in the communicator's info
 * `mpi_memory_alloc_kinds`; or, under Cray's MPI, MPICH_GPU_SUPPORT_ENABLED=1 in the environment. It is never tried out.
 */
FSDP_API int fsdp_has_gpu_aware_mpi(const fsdp_context *ctx);

/**
 * Orders what this rank issues from now on on a stream, including what models of the context compute and the operations of
 * their groups. Contexts of a mesh have the stream of the context that the mesh is made from: to set it on one is to set it on all. Local;
 * not while another thread issues operations. Nothing orders the new stream after the old one: a program
 * that changes it while a model has gradients or open passes must make it wait for an event of the old one.
 *
 * @param[in] stream  a hipStream_t, or cudaStream_t, of the context's GPU, which outlives what is ordered on it; NULL: the
 *                    default stream, as at the beginning
 * @return FSDP_OK; FSDP_ERR_ARG: no context; FSDP_ERR_UNSUPPORTED: it uses no GPU.
 */
FSDP_API fsdp_status fsdp_stream_set(fsdp_context *ctx, void *stream);

FSDP_EXTERN_C_END

#endif
