/**
 * @file
 * Element-wise work on what a model holds, wherever that is: by the processor, at once; or by the model's GPU, in the stream
 * that fsdp_stream_set() has named, where all that uses the model's memory comes in order. Collectives begin behind what is in
 * this stream when they are issued, and end before what comes into it when they have been waited for.
 *
 * On a GPU none of these waits unless it says so. What fails there is kept until fsdpi_compute_status() asks. Counts are
 * ELEMENTS; arguments and results are those of fsdpi_kernels.
 */
#ifndef FSDPI_COMPUTE_H
#define FSDPI_COMPUTE_H

#include <stdbool.h>
#include <stddef.h>

#include "shard/model.h"

/** The GPU that has the model's memory; NULL: the host has it. */
static inline fsdpi_gpu_device *fsdpi_gpu_of(const fsdp_model *model)
{
    return fsdpi_is_on_device(model) ? model->ctx->gpu.device : NULL;
}

/** The stream in which it computes. */
static inline fsdpi_gpu_stream fsdpi_stream_of(const fsdp_model *model)
{
    return fsdpi_gpu_caller(&model->ctx->gpu);
}

/** FSDP_OK; or the first failure since the last call, recorded. */
fsdp_status fsdpi_compute_status(fsdp_model *model);

/** Keeps a failure for fsdpi_compute_status(). */
void fsdpi_compute_keep(fsdp_model *model, fsdp_status status);

void fsdpi_compute_clear(fsdp_model *model, void *memory, size_t bytes);
void fsdpi_compute_copy(fsdp_model *model, void *to, const void *from, size_t bytes);
void fsdpi_compute_cast(fsdp_model *model, void *out, fsdp_dtype out_dtype, const void *in, fsdp_dtype in_dtype,
                        size_t count);
void fsdpi_compute_accumulate(fsdp_model *model, float *sum, bool fresh, const void *x, fsdp_dtype dtype, double factor,
                              size_t count);
void fsdpi_compute_scale(fsdp_model *model, float *x, double factor, size_t count);
void fsdpi_compute_clamp(fsdp_model *model, float *x, double limit, size_t count);

/** x[i] = x[i] / divisor, rounded once. */
void fsdpi_compute_divide(fsdp_model *model, void *x, fsdp_dtype dtype, size_t divisor, size_t count);

/**
 * From the model's memory to memory of the host, as they are or as f32, and back. On a GPU they wait until that is done.
 * Masters that are offloaded are brought back before.
 */
void fsdpi_compute_fetch(fsdp_model *model, void *to, const void *from, size_t bytes);
void fsdpi_compute_read(fsdp_model *model, float *values, const void *from, fsdp_dtype dtype, size_t count);
void fsdpi_compute_write(fsdp_model *model, void *to, fsdp_dtype dtype, const float *values, size_t count);

/** Waits on the host for all that the model has in streams. */
void fsdpi_compute_finish(fsdp_model *model);

/* Norms of gradients. */

typedef enum fsdpi_norm { FSDPI_SQUARED_NORM, FSDPI_ABSOLUTE_MAXIMUM } fsdpi_norm;

/** On a GPU, computes one number for each slice held of each gradient, and waits for them. */
fsdp_status fsdpi_norms_measure(fsdp_model *model, fsdpi_norm norm);

/** That number of the `i`-th slice held. Measured before. */
double fsdpi_norm_of_slice(fsdpi_flat *flat, fsdpi_norm norm, int i);

#endif
