/**
 * @file
 * What every kind of save begins with.
 */
#ifndef FSDPI_SAVE_H
#define FSDPI_SAVE_H

#include "shard/checkpoint/write/checkpoint.h"

/**
 * Works out the file of the program's arrays, moves rows to where they are written, and compares, under FSDP_VERIFY=full, what all
 * ranks have alike. No save that has arrays with rows or bytes, or others than before, is under way. Collective.
 */
fsdp_status fsdpi_save_lay_arrays_out(fsdp_checkpoint *checkpoint, const char *function);

/** Releases what rows were moved into. */
void fsdpi_save_release_rows(fsdp_checkpoint *checkpoint);

/** What is wrong on this rank with what the program gives, or with a model; recorded, for an agreement. */
fsdp_status fsdpi_save_check_state(fsdp_checkpoint *checkpoint, const char *function,
                                   const fsdp_checkpoint_state *program);
fsdp_status fsdpi_save_check_models(const fsdp_checkpoint *checkpoint, const char *function);

/** Whether all ranks have the same state, and none has a `status` that is not FSDP_OK. Collective. */
fsdp_status fsdpi_save_agree_on_state(fsdp_checkpoint *checkpoint, const char *function,
                                      const fsdp_checkpoint_state *program, fsdp_status status);

#endif
