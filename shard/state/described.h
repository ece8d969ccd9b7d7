/**
 * @file
 * Whether all parts of a model on a mesh were described alike: positions of the tensor axis the same units, and stages the same of
 * what several of them have.
 */
#ifndef FSDPI_DESCRIBED_H
#define FSDPI_DESCRIBED_H

#include "shard/state/model.h"

/**
 * Collective over the plane of a model; does nothing where that is the model's own context. Finds which of this stage's tensors count
 * elsewhere.
 * @return FSDP_OK; FSDP_ERR_MISMATCH: names a unit or a tensor; FSDP_ERR_ARG: a group that matches no tensor of any stage;
 *         FSDP_ERR_MEMORY. The same on all ranks.
 */
fsdp_status fsdpi_described_compare(fsdp_model *model);

#endif
