/**
 * @file
 * What can be wrong with a call between passes.
 */
#ifndef FSDPI_BETWEEN_PASSES_H
#define FSDPI_BETWEEN_PASSES_H

#include <stdbool.h>

#include "shard/state/model.h"

/** FSDP_OK; or FSDP_ERR_STATE, recorded and printed, where the model is not committed, the step has failed or a pass is
 * open; or the error of a reduction, with which the step fails. */
fsdp_status fsdpi_between_passes(fsdp_model *model, const char *function);

/** Whether there is any gradient since the last step. */
bool fsdpi_has_gradients(const fsdp_model *model);

/** FSDP_OK; or FSDP_ERR_STATE, recorded and printed, where none has, or as fsdpi_between_passes(). */
fsdp_status fsdpi_check_gradients(fsdp_model *model, const char *function);

/** Local. FSDP_ERR_STATE where passes without communication, or within the group, have left gradients that no pass has reduced
 * since. */
fsdp_status fsdpi_check_none_local(fsdp_model *model, const char *function);

#endif
