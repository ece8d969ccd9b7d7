/**
 * @file
 * All memory of a committed model.
 */
#ifndef FSDPI_STORAGE_H
#define FSDPI_STORAGE_H

#include "fsdp/model.h"

/** Allocates what model->plan says, and lays the units out in it. Collective; the same status on all ranks. */
fsdp_status fsdpi_storage_open(fsdp_model *model);
void        fsdpi_storage_close(fsdp_model *model);

#endif
