#include "lib/base/error.h"
#include "shard/pipeline/run/pipeline.h"

int fsdp_pipeline_rank_of_stage(const fsdp_pipeline *pipeline, int stage)
{
    return pipeline == NULL || stage < 0 || stage >= pipeline->info.stages ? -1 : pipeline->owner[stage];
}

fsdp_status fsdp_pipeline_get_info(const fsdp_pipeline *pipeline, fsdp_pipeline_info *info)
{
    if (pipeline == NULL || info == NULL) {
        return fsdpi_fail(pipeline != NULL ? pipeline->ctx : NULL, FSDP_ERR_ARG,
                          "fsdp_pipeline_get_info: `%s` is NULL; pass one", pipeline == NULL ? "pipeline" : "info");
    }
    *info = pipeline->info;
    return FSDP_OK;
}
