/**
 * @file
 * What parameters begin with.
 */
#ifndef FSDPI_INITIAL_VALUES_H
#define FSDPI_INITIAL_VALUES_H

#include "fsdp/model.h"

/** Sets all that this rank holds to its initial values. */
void fsdpi_draw_initial_values(fsdp_model *model);

#endif
