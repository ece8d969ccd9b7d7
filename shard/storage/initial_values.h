/**
 * @file
 * What parameters begin with.
 */
#ifndef FSDPI_INITIAL_VALUES_H
#define FSDPI_INITIAL_VALUES_H

#include "fsdp/model.h"

/**
 * Sets all that this rank holds to its initial values. Collective where the program computes some of them.
 * @return FSDP_OK; the same on every rank: what the program's function has returned on one of them
 */
fsdp_status fsdpi_draw_initial_values(fsdp_model *model);

#endif
