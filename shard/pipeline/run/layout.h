/** @file What a pipeline keeps on a rank, and where: counted first, before anything is allocated, and then laid out. */
#ifndef FSDPI_PIPELINE_LAYOUT_H
#define FSDPI_PIPELINE_LAYOUT_H

#include "shard/pipeline/run/plan.h"

/** Counts. `pipeline` has its context and, as room for its stages, `stages`. */
void fsdpi_pipeline_count(fsdp_pipeline *pipeline, fsdpi_pipeline_plan *plan);

/** Lays everything out in the memory that has been allocated since. */
fsdp_status fsdpi_pipeline_lay_out(fsdp_pipeline *pipeline, fsdpi_pipeline_plan *plan);

/** How many stages a rank has. */
int fsdpi_stages_of_rank(const fsdpi_passes *passes, int rank);

#endif
