/**
 * @file
 * How many places a stage needs for what passes through it, which follows from its rank's row alone, since a rank does everything in
 * order.
 *
 * - inputs: from the receive, or the forward pass of the stage before on the same rank, to the last backward action
 * - gradients of outputs: in the same way; in the last stage from its forward pass on, behind which the loss is
 * - outputs and gradients of inputs that go to another rank: from the pass until they are sent, and `buffers` more, which are sent
 *   and may not be received yet
 *
 * What comes by MPI's messages has `buffers` places more on the receiver too, where they arrive while it computes.
 */
#ifndef FSDPI_PIPELINE_NEED_H
#define FSDPI_PIPELINE_NEED_H

#include <stdbool.h>

#include "shard/pipeline/passes.h"

/** In this order what goes to other ranks lies in memory that they see. */
enum { FSDPI_OUTPUTS, FSDPI_INPUT_GRADIENTS, FSDPI_INPUTS, FSDPI_OUTPUT_GRADIENTS, FSDPI_N_FLOWS };

/** Places, of each kind. */
typedef struct fsdpi_stage_need {
    int places[FSDPI_N_FLOWS];
} fsdpi_stage_need;

/** Of a stage with a schedule that was found good. */
fsdpi_stage_need fsdpi_stage_needs(const fsdpi_passes *passes, int stage, int buffers);

#endif
