/** @file What a pipeline is laid out for, and how much memory it takes. */
#ifndef FSDPI_PIPELINE_PLAN_H
#define FSDPI_PIPELINE_PLAN_H

#include "shard/pipeline/run/pipeline.h"
#include "shard/pipeline/run/proven.h"

typedef struct fsdpi_pipeline_plan {
    const fsdp_pipeline_options *options;
    const fsdpi_proven          *source;
    size_t                       held, shown, lists; /* BYTES of the pieces of memory of a pipeline, */
    size_t                       offered, pinned; /* and of those that it has besides where activations are on a GPU */
} fsdpi_pipeline_plan;

#endif
