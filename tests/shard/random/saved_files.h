/**
 * @file
 * Reads the tensors of a checkpoint from its safetensors files, without the library.
 */
#ifndef FSDP_TESTS_RANDOM_SAVED_FILES_H
#define FSDP_TESTS_RANDOM_SAVED_FILES_H

#include <stddef.h>

#include "fsdp/dtype.h"

/** Sets `path` to the checkpoint that the file `latest` of a folder names. Nonzero if there is none. */
int latest_checkpoint(const char *folder, char *path, size_t size);

/**
 * Reads `count` elements of a tensor, whose type goes to `dtype`, from whichever file whose name begins with `stem` has it.
 * @return how many elements the tensor has; 0 if no file has it
 */
size_t read_saved_tensor(const char *checkpoint, const char *stem, const char *name, float *values, size_t count,
                         fsdp_dtype *dtype);

/** Removes a folder with all that is in it. */
void remove_folder(const char *folder);

#endif
