/**
 * @file
 * What a gradient hook keeps from step to step, as tensors of a checkpoint: of each flat parameter that it compresses one,
 * "UNIT.int8_error.256.of-4", a row of f32 in which each rank has a stretch of its own, in rank order. It is of use on as many ranks
 * alone, which the name says; where there is none of that name, the hook begins with zeros.
 */
#ifndef FSDPI_HOOK_PARTS_H
#define FSDPI_HOOK_PARTS_H

#include "shard/checkpoint/format/problem.h"
#include "shard/hooks/model_hook.h"

/** How many of a model there are at most, and BYTES of their names. */
size_t fsdpi_hook_parts_most(const fsdp_model *model, size_t *name_bytes);

/** ELEMENTS of all ranks; 0: nothing of it is saved. */
size_t fsdpi_hook_part_elements(const fsdpi_flat *flat);

/** Makes room for this rank's; puts the name into `name`, and returns the BYTES that it takes there. Local. FSDP_ERR_MEMORY. */
fsdp_status fsdpi_hook_part_prepare(fsdpi_flat *flat, fsdpi_problem *problem);
size_t      fsdpi_hook_part_name(fsdpi_flat *flat, char *name);

/** The elements that are a rank's. */
void fsdpi_hook_part_range(const fsdpi_flat *flat, int rank, size_t *begin, size_t *count);

/** Whether a tensor of a file is such a part, of whatever number of ranks. */
bool fsdpi_is_hook_part_name(const char *name);

#endif
