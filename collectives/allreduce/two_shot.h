/**
 * @file
 * Allreduce in two phases: a reduce-scatter of an even split, straight into this rank's slice of the output, then an
 * allgather of the slices.
 *
 * Steps: those of the direct reduce-scatter and one more. Cost for S bytes on N ranks: alpha per step + 2 (N-1)/N S beta.
 */
#ifndef FSDPI_ALLREDUCE_TWO_SHOT_H
#define FSDPI_ALLREDUCE_TWO_SHOT_H

#include "lib/queue.h"

extern const fsdpi_algorithm fsdpi_allreduce_two_shot;

#endif
