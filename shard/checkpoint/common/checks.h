/**
 * @file
 * What can be wrong with a save or a load before any file is looked at.
 */
#ifndef FSDPI_CHECKS_H
#define FSDPI_CHECKS_H

#include "shard/checkpoint/format/problem.h"
#include "shard/optimizer/optimizer_state.h"
#include "shard/state/model.h"

/** Fails with what is wrong with a file: records and prints it. */
fsdp_status fsdpi_fail_problem(fsdp_context *ctx, const char *function, const fsdpi_problem *problem);

/** FSDP_OK; or FSDP_ERR_STATE, recorded and printed, where the state of a model cannot be saved or loaded now. */
fsdp_status fsdpi_check_at_step_end(fsdp_model *model, const char *function);

/** FSDP_ERR_ARG, recorded and printed, where a path is missing or too long, or an optimizer another model's. */
fsdp_status fsdpi_check_path(fsdp_context *ctx, const char *function, const char *path);
fsdp_status fsdpi_check_optimizer(const fsdp_model *model, const char *function, const fsdp_optimizer *optimizer);

#endif
