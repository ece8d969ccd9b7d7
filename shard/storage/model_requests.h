/**
 * @file
 * Requests for what a step of a model has under way at a time: gathers, reductions, and their second stage over replicas.
 */
#ifndef FSDPI_MODEL_REQUESTS_H
#define FSDPI_MODEL_REQUESTS_H

#include "shard/state/model.h"

/** Reserves as many as the plan says. FSDP_ERR_MEMORY, recorded; then there is nothing to close. */
fsdp_status fsdpi_model_requests_open(fsdp_model *model);
void        fsdpi_model_requests_close(fsdp_model *model);

#endif
