/**
 * @file
 * Steps of FSDP_CUSTOM: the program's own function, called for what this rank holds of each tensor.
 *
 * Before a call the masters are copied aside, and behind it to where their gradient was, which is of no use any more. So what one
 * rank has done can be taken back when another one fails.
 */
#ifndef FSDPI_OPTIMIZER_CUSTOM_H
#define FSDPI_OPTIMIZER_CUSTOM_H

#include <stddef.h>

#include "shard/optimizer/optimizer_state.h"

/** BYTES of masters that are copied aside at a time; of FSDP_MUON, in which a matrix of the group is worked on; 0 for other kinds. */
size_t fsdpi_optimizer_scratch(const fsdp_model *model, const fsdpi_plan *plan, const fsdpi_tensor_group *group,
                               const fsdp_model_group *assumed);

/** Elements `begin` up to `end` of what is held of a flat parameter, and where they are to be worked on. */
typedef struct fsdpi_custom_stretch {
    fsdp_optimizer *optimizer;
    fsdpi_flat     *flat;
    size_t          flat_index; /* among the model's */
    size_t          begin, end;
    void           *weights; /* element `begin` */
    void           *states[FSDP_MAX_STATES];
    bool            apart; /* `weights` is a copy of the masters, which stay as they are when this fails */
} fsdpi_custom_stretch;

/** Local. What the function has returned, recorded for an agreement to print. */
fsdp_status fsdpi_custom_update(const fsdpi_custom_stretch *stretch);

/** The step of an optimizer whose masters and states are where they are worked on: not offloaded. Local. */
fsdp_status fsdpi_custom_update_all(fsdp_optimizer *optimizer);

/** Makes the masters what they were before the updates since optimizer->updated was 0. */
void fsdpi_custom_take_back(fsdp_optimizer *optimizer);

#endif
