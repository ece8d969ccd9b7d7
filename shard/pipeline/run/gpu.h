/**
 * @file
 * A pipeline on the rank's GPU: its streams and events, and what the ways of messages put into streams.
 *
 * None of it waits for the GPU while all goes well. What fails spoils the step (fsdpi_pipeline_spoil).
 */
#ifndef FSDPI_PIPELINE_GPU_H
#define FSDPI_PIPELINE_GPU_H

#include "shard/pipeline/run/pipeline.h"

/** Streams, this rank's events, and their handles where peers on the node see them. Behind the layout. Local. */
fsdp_status fsdpi_pipeline_gpu_open(fsdp_pipeline *pipeline);

/** Opens peers' events, once all ranks have returned from the above. Local. */
fsdp_status fsdpi_pipeline_gpu_meet(fsdp_pipeline *pipeline);

/** Closes everything; what is still in the pipeline's streams is waited for. Does nothing where activations are on the host. */
void fsdpi_pipeline_gpu_close(fsdp_pipeline *pipeline);

/** Waits until nothing is in the pipeline's streams: at the end of a failed step. */
void fsdpi_pipeline_gpu_settle(fsdp_pipeline *pipeline);

/** The stream in which the program computes. */
static inline fsdpi_gpu_stream fsdpi_callers_stream(const fsdp_pipeline *pipeline)
{
    return fsdpi_gpu_caller(&pipeline->ctx->gpu);
}

/** Records an event behind what is in a stream. */
void fsdpi_stream_mark(fsdp_pipeline *pipeline, fsdpi_gpu_stream stream, fsdpi_gpu_event event);

/** What comes into a stream next waits for an event; false: it does not. */
bool fsdpi_stream_wait(fsdp_pipeline *pipeline, fsdpi_gpu_stream stream, fsdpi_gpu_event event);

/** Puts a copy into a stream; false: it is not there. */
bool fsdpi_stream_copy(fsdp_pipeline *pipeline, fsdpi_gpu_stream stream, void *to, const void *from, size_t bytes);

/** What the program puts into its stream next comes behind an event of the stream of what comes from other ranks. */
void fsdpi_stream_hand_over(fsdp_pipeline *pipeline, fsdpi_gpu_event event);

/** Whether what an event was recorded behind is done. Where asking fails, it is on return. */
bool fsdpi_mark_is_past(fsdp_pipeline *pipeline, fsdpi_gpu_event event);

#endif
