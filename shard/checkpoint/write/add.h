/** @file What is asked of the name of everything that the program adds. */
#ifndef FSDPI_CHECKPOINT_ADD_H
#define FSDPI_CHECKPOINT_ADD_H

#include "shard/checkpoint/arrays/arrays.h"

/** FSDP_ERR_ARG for a name that is NULL, not allowed, or taken; recorded, for an agreement. Local. */
fsdp_status fsdpi_array_check_name(fsdp_context *ctx, const fsdpi_arrays *arrays, const char *function,
                                   const char *name);

#endif
