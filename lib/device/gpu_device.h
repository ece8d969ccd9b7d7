/**
 * @file
 * The GPU that a context computes and communicates on: memory, streams, events, and memory of peers.
 *
 * Functions do not wait for the device unless they say so, and leave the calling thread's choice of a device as it is. Each
 * returns FSDP_OK; FSDP_ERR_DEVICE with the runtime's own words; or what it says besides. Details are recorded in the
 * context. A failure leaves nothing behind: what was to be opened is NULL.
 */
#ifndef FSDPI_GPU_DEVICE_H
#define FSDPI_GPU_DEVICE_H

#include <stdbool.h>
#include <stddef.h>

#include "fsdp/context.h"
#include "kernels/gpu.h"
#include "lib/device/gpu_compute.h"

/** An event: a hipEvent_t, or a cudaEvent_t in a build for CUDA. */
typedef void *fsdpi_gpu_event;

/** What a peer on the same node needs to reach an allocation or an event. Plain bytes, to be sent. */
typedef struct fsdpi_gpu_handle {
    unsigned char bytes[64];
} fsdpi_gpu_handle;

typedef struct fsdpi_gpu_device fsdpi_gpu_device;

/** Whose memory an address is in. */
typedef enum fsdpi_memory_place {
    FSDPI_PLACE_HOST,   /* pageable or pinned */
    FSDPI_PLACE_DEVICE, /* of this GPU */
    FSDPI_PLACE_OTHER   /* of a GPU that is not this one */
} fsdpi_memory_place;

typedef struct fsdpi_gpu_ops {
    const char              *name; /* "hip" or "cuda" */
    const fsdpi_gpu_compute *compute;

    void (*close)(fsdpi_gpu_device *gpu);

    /**
     * Device memory, not zeroed, aligned to FSDPI_ALIGNMENT; 0 BYTES give NULL. FSDP_ERR_MEMORY names the need, the free and
     * the total. Releasing it waits until the device is idle; NULL does nothing.
     */
    fsdp_status (*alloc)(fsdpi_gpu_device *gpu, const char *purpose, size_t bytes, void **memory);
    fsdp_status (*release)(fsdpi_gpu_device *gpu, void *memory);

    /** The same with pinned host memory on the NUMA node that the GPU is on, which both address. Not zeroed. */
    fsdp_status (*alloc_pinned)(fsdpi_gpu_device *gpu, const char *purpose, size_t bytes, void **memory);
    fsdp_status (*release_pinned)(fsdpi_gpu_device *gpu, void *memory);

    fsdp_status (*free_bytes)(fsdpi_gpu_device *gpu, size_t *available, size_t *total);

    fsdpi_memory_place (*place_of)(fsdpi_gpu_device *gpu, const void *address);

    /** Between any two of device, pinned and pageable memory, behind what is in the stream. No overlap. */
    fsdp_status (*copy)(fsdpi_gpu_device *gpu, void *to, const void *from, size_t bytes, fsdpi_gpu_stream stream);
    fsdp_status (*clear)(fsdpi_gpu_device *gpu, void *memory, size_t bytes, fsdpi_gpu_stream stream);

    /** Lets the GPU address host memory that is there already, at `view`; undone before that is released. */
    fsdp_status (*pin)(fsdpi_gpu_device *gpu, void *memory, size_t bytes, void **view);
    fsdp_status (*unpin)(fsdpi_gpu_device *gpu, void *memory);

    /** As fsdpi_gpu_reduce_into(); more than FSDPI_GPU_OPERANDS operands are FSDP_ERR_UNSUPPORTED. */
    fsdp_status (*reduce)(fsdpi_gpu_device *gpu, void *const *out, size_t n_out, const void *const *in, size_t n_in,
                          size_t count, fsdp_dtype dtype, fsdp_redop op, size_t divisor, fsdpi_gpu_stream stream);

    /** `urgent`: before the work of other streams. Closing waits until the stream is idle; NULL does nothing. */
    fsdp_status (*stream_open)(fsdpi_gpu_device *gpu, bool urgent, fsdpi_gpu_stream *stream);
    fsdp_status (*stream_close)(fsdpi_gpu_device *gpu, fsdpi_gpu_stream stream);
    /** Waits on the host until all that is in a stream is done; or asks. */
    fsdp_status (*stream_finish)(fsdpi_gpu_device *gpu, fsdpi_gpu_stream stream);
    fsdp_status (*stream_is_idle)(fsdpi_gpu_device *gpu, fsdpi_gpu_stream stream, bool *idle);

    /**
     * `shared`: peers on the node may open it. Closing one that streams still wait for is allowed; NULL does nothing. Where the
     * runtime refuses event_record() or wait_for(), the host waits instead, and a warning says so: they fail only where it cannot
     * do that either.
     */
    fsdp_status (*event_open)(fsdpi_gpu_device *gpu, bool shared, fsdpi_gpu_event *event);
    fsdp_status (*event_close)(fsdpi_gpu_device *gpu, fsdpi_gpu_event event);
    fsdp_status (*event_record)(fsdpi_gpu_device *gpu, fsdpi_gpu_event event, fsdpi_gpu_stream stream);
    /** Whether what was recorded last is done; so it is where nothing was. */
    fsdp_status (*event_is_done)(fsdpi_gpu_device *gpu, fsdpi_gpu_event event, bool *done);
    /** What comes into the stream from now on waits for what has been recorded until now. */
    fsdp_status (*wait_for)(fsdpi_gpu_device *gpu, fsdpi_gpu_stream stream, fsdpi_gpu_event event);

    /** What peers open with the two below. `memory`: as alloc() gave it. */
    fsdp_status (*memory_handle)(fsdpi_gpu_device *gpu, void *memory, fsdpi_gpu_handle *handle);
    fsdp_status (*event_handle)(fsdpi_gpu_device *gpu, fsdpi_gpu_event event, fsdpi_gpu_handle *handle);

    /**
     * A peer's memory, by what memory_handle() gave on its process, not on this one. Opened once however often it is asked
     * for; each is closed with close_memory(), the last of which waits until the device is idle. The peer releases its memory
     * after all have closed it. FSDP_ERR_UNSUPPORTED where the system does not let processes share device memory, as in
     * containers without a common namespace: not printed, since there is another way.
     */
    fsdp_status (*open_memory)(fsdpi_gpu_device *gpu, const fsdpi_gpu_handle *handle, void **memory);
    fsdp_status (*close_memory)(fsdpi_gpu_device *gpu, void *memory);
    /** Closed with event_close(). */
    fsdp_status (*open_event)(fsdpi_gpu_device *gpu, const fsdpi_gpu_handle *handle, fsdpi_gpu_event *event);
} fsdpi_gpu_ops;

/** Memory of a peer that is open. */
typedef struct fsdpi_gpu_import {
    struct fsdpi_gpu_import *next;
    fsdpi_gpu_handle         handle;
    void                    *memory;
    size_t                   users;
} fsdpi_gpu_import;

struct fsdpi_gpu_device {
    const fsdpi_gpu_ops *ops;
    fsdp_context        *ctx;     /* where details are recorded */
    int                  number;  /* the runtime's */
    int                  numa;    /* node of the host; -1: not known */
    fsdpi_gpu_import    *imports; /* one thread at a time */
};

/**
 * Opens the GPU that the calling thread uses.
 * @param[out] gpu  ends with ops->close(); NULL where there is no GPU, no driver, or no runtime in this build: no error
 * @return FSDP_OK, FSDP_ERR_MEMORY, FSDP_ERR_DEVICE
 */
fsdp_status fsdpi_gpu_device_open(fsdp_context *ctx, fsdpi_gpu_device **gpu);

#endif
