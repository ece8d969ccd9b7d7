/**
 * @file
 * What goes wrong while a program describes a model, on one rank: all ranks learn of it at commit.
 */
#ifndef FSDPI_FAILED_ADD_H
#define FSDPI_FAILED_ADD_H

#include "shard/state/model.h"

/** Keeps the first failure of adding a unit or a group until commit. Returns `status`. */
fsdp_status fsdpi_remember_failed_add(fsdp_model *model, fsdp_status status);

#endif
