/**
 * @file
 * Where the network is computed. The program has one text for both places, which works on memory that only a device reads.
 * What a GPU is given to do is done in the order of one stream, the library's work included; what fails there ends the job.
 */
#ifndef MLP_DEVICE_H
#define MLP_DEVICE_H

#include <fsdp/fsdp.h>

#include "mlp_math.h"

typedef struct mlp_device mlp_device;

struct mlp_device {
    const char *name;

    /** Memory of the device; NULL: there is no more. */
    void *(*alloc)(mlp_device *device, size_t bytes);
    void (*release)(mlp_device *device, void *memory);

    /** Copies to the device, or back, which waits for all that was to be done before. */
    void (*send)(mlp_device *device, void *to, const void *from, size_t bytes);
    void (*fetch)(mlp_device *device, void *to, const void *from, size_t bytes);

    void (*multiply)(mlp_device *device, const mlp_product *product);
    void (*activate)(mlp_device *device, const mlp_activation *activation);
    void (*sum)(mlp_device *device, const mlp_sum *sum);
    void (*loss)(mlp_device *device, const mlp_loss *loss);

    void (*close)(mlp_device *device);

    void *stream; /* of a GPU */
};

/** The host. Local. */
mlp_device mlp_host_open(void);

/**
 * The GPU of a context, with a stream that the context's operations are ordered on too. Local.
 * @return FSDP_OK; another status: rank 0 has said what is missing.
 */
fsdp_status mlp_gpu_open(fsdp_context *ctx, mlp_device *device);

#endif
