/** @file A stage's units: their passes around what the program computes, and when their gradients are reduced. */
#ifndef FSDPI_PIPELINE_UNITS_H
#define FSDPI_PIPELINE_UNITS_H

#include "shard/pipeline/run/pipeline.h"

/** A model on the GPU of a pipeline that is there too computes in the same stream. For an agreement to print. */
fsdp_status fsdpi_stage_check_stream(const fsdp_pipeline *pipeline, const fsdpi_stage *stage);

/** Around a callback. In a backward pass there are gradient views, and the stage's last one of a step reduces them. */
fsdp_status fsdpi_stage_begin(fsdpi_stage *stage, bool backward);
fsdp_status fsdpi_stage_end(fsdpi_stage *stage, bool backward);

/** What the last of these that has failed has recorded. */
const char *fsdpi_stage_error(const fsdpi_stage *stage);

/** What has stayed gathered is dropped. */
void fsdpi_stage_reshard(fsdpi_stage *stage);

/** The models of this rank's stages: their step has failed. `text` says with what. */
void fsdpi_pipeline_fail_models(const fsdp_pipeline *pipeline, fsdp_status status, const char *text);

#endif
