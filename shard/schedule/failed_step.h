/**
 * @file
 * A step that has failed on some rank: who knows of it, and agreements that heed it.
 */
#ifndef FSDPI_FAILED_STEP_H
#define FSDPI_FAILED_STEP_H

#include <stdbool.h>
#include <stdint.h>

#include "shard/state/model.h"

/** Notes the error of a pass, whose text is the context's last. Returns `status`. */
fsdp_status fsdpi_step_fail(fsdp_model *model, fsdp_status status);

/** FSDP_OK; or FSDP_ERR_STATE, recorded and printed, where the step has failed. */
fsdp_status fsdpi_step_check(const fsdp_model *model, const char *function);

/**
 * fsdpi_agree() for what is called between passes: not where the step has failed, which `status` says then, and first in the
 * groups, where ranks that are still in passes would else wait for this one.
 */
fsdp_status fsdpi_step_agree(fsdp_model *model, const char *function, const char *label, uint64_t salt,
                             fsdp_status status, bool forced);

/**
 * The same, and then of all ranks that have parts of a model on a mesh, which are not asked for `label` and `salt`: for what
 * changes the whole model.
 */
fsdp_status fsdpi_model_agree(fsdp_model *model, const char *function, const char *label, uint64_t salt,
                              fsdp_status status, bool forced);

/** Notes that a call between passes has returned an error. Returns `status`. */
fsdp_status fsdpi_step_tell(fsdp_model *model, fsdp_status status);

/** The agreement in the groups alone. */
fsdp_status fsdpi_groups_agree(fsdp_model *model, const char *function, bool forced);

#endif
