/**
 * @file
 * The GPU of a model: which it is, its stream, and what has failed there.
 */
#ifndef FSDPI_MODEL_GPU_H
#define FSDPI_MODEL_GPU_H

#include "shard/state/model.h"

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

/** Keeps a failure for fsdpi_compute_status(). */
void fsdpi_compute_keep(fsdp_model *model, fsdp_status status);

/** fsdpi_compute_status() of a model on a GPU. */
fsdp_status fsdpi_compute_kept(fsdp_model *model);

#endif
