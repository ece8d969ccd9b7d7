/**
 * @file
 * Whether masters have changed behind the library's back (FSDP_VERIFY=full).
 */
#ifndef FSDPI_MASTERS_H
#define FSDPI_MASTERS_H

#include "shard/state/model.h"

/** Notes what they are now, of all flat parameters. Does nothing unless FSDP_VERIFY is full. */
void fsdpi_masters_note(fsdp_model *model);

/** FSDP_OK; or FSDP_ERR_STATE, recorded and printed, where those of a flat parameter are not what they were. */
fsdp_status fsdpi_masters_check(fsdpi_flat *flat, const char *function);

#endif
