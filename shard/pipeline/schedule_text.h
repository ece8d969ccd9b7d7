/** @file A schedule as text: a line per rank, with commas between its actions. Empty cells, as between them in a grid, count for nothing. */
#ifndef FSDPI_SCHEDULE_TEXT_H
#define FSDPI_SCHEDULE_TEXT_H

#include <stdio.h>

#include "shard/pipeline/schedule.h"

/** Reads all of the file; `schedule` is closed again where it returns false. */
bool fsdpi_schedule_read(fsdpi_schedule *schedule, FILE *file, fsdpi_flaw *flaw);

void fsdpi_schedule_write(const fsdpi_schedule *schedule, FILE *file);

#endif
