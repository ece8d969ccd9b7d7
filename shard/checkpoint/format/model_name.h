/**
 * @file
 * The names of models in a checkpoint, and those of their files. The model that a checkpoint was opened with has no name, "".
 */
#ifndef FSDPI_MODEL_NAME_H
#define FSDPI_MODEL_NAME_H

#include "fsdp/checkpoint.h"

#define FSDPI_MODEL_STEM     "model"
#define FSDPI_OPTIMIZER_STEM "optimizer"

/** BYTES of "NAME.optimizer", with its NUL. */
#define FSDPI_STEM_BYTES (FSDP_CHECKPOINT_NAME_BYTES + sizeof "." FSDPI_OPTIMIZER_STEM)

/** What is wrong with a model's name, and what to do, behind "the name"; NULL where it can be one. "" cannot. */
const char *fsdpi_model_name_wrong(const char *name);

/**
 * What the names of a model's files begin with: `kind`, which is one of the two above, or with a name "NAME.KIND". No two names
 * give a file in common, nor one with the unnamed model or the program's arrays. Returns `stem`, of FSDPI_STEM_BYTES.
 */
const char *fsdpi_model_stem(const char *name, const char *kind, char *stem);

#endif
