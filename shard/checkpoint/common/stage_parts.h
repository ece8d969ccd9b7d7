/**
 * @file
 * From the tensors that a rank has of a model to those of the whole model, in the order of its files: by the places of units, and by
 * stages of a pipeline.
 */
#ifndef FSDPI_STAGE_PARTS_H
#define FSDPI_STAGE_PARTS_H

#include "shard/checkpoint/common/parts.h"
#include "shard/state/stages.h"

/** What all stages have, as bytes that they have told each other. Zeros: nothing. */
typedef struct fsdpi_stage_parts {
    fsdpi_stage_bytes all;
    char             *own; /* this stage's alone, where nobody else is asked */
} fsdpi_stage_parts;

/** Whether files have more than a rank lists, or have it in another order: of a model with a plane, or with places of units. */
bool fsdpi_stage_parts_matter(const fsdp_model *model);

/**
 * Tells all ranks of the plane of a model which parts each stage has. Collective over it; local where the model has none.
 * @param[in] parts   as fsdpi_parts_of_model() or fsdpi_parts_of_optimizers() list them
 * @param[in] status  not FSDP_OK: there are none on this rank, and `problem` says why
 * @return FSDP_OK; else an error, in `problem`: where others are asked, the same on all ranks
 */
fsdp_status fsdpi_stage_parts_share(const fsdp_model *model, const char *function, const fsdpi_parts *parts,
                                    fsdp_status status, fsdpi_stage_parts *shared, fsdpi_problem *problem);

void fsdpi_stage_parts_free(const fsdp_model *model, fsdpi_stage_parts *shared);

/**
 * Makes a rank's own parts all of the model: those that it does not have are there without a tensor. Local. FSDP_ERR_MEMORY.
 * @param[in] masters  false: leaves out those of masters
 */
fsdp_status fsdpi_parts_join(const fsdp_model *model, const fsdpi_stage_parts *shared, bool masters, fsdpi_parts *parts,
                             fsdpi_problem *problem);

#endif
