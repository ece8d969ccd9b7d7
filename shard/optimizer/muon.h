/**
 * @file
 * Steps of FSDP_MUON: one whole matrix at a time.
 */
#ifndef FSDPI_MUON_H
#define FSDPI_MUON_H

#include <stddef.h>

#include "shard/optimizer/optimizer_state.h"

/** BYTES through which matrices of a group are orthogonalised, one after the other: the same on every rank. */
size_t fsdpi_muon_scratch(const fsdp_model *model, const fsdpi_tensor_group *group);

/** Whether an optimizer with these options can update a group; NULL: the tensors of none. Errors for an agreement to print. */
fsdp_status fsdpi_muon_check(const fsdp_model *model, const fsdpi_tensor_group *group,
                             const fsdp_optimizer_options *options);

/** The step of all tensors of the optimizer that this rank holds. */
void fsdpi_muon_update(fsdp_optimizer *optimizer);

#endif
