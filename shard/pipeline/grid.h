/** @file A schedule as a grid, a line per rank: what it computes and when; or what each does around a flaw. */
#ifndef FSDPI_GRID_H
#define FSDPI_GRID_H

#include <stdio.h>

#include "shard/pipeline/simulate.h"

/** A column for each step of the shortest of the times. */
void fsdpi_grid_print(const fsdpi_schedule *schedule, const fsdpi_pace *pace, const fsdpi_simulation *run, FILE *file);

/** Some actions of each rank, by their order alone, those of `flaw`'s place among them, which is marked. */
void fsdpi_grid_print_flaw(const fsdpi_schedule *schedule, const fsdpi_simulation *run, const fsdpi_flaw *flaw,
                           FILE *file);

#endif
