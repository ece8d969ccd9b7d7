/**
 * @file
 * The rows of this rank's boxes between memory and files.
 */
#ifndef FSDPI_ROWS_H
#define FSDPI_ROWS_H

#include "shard/checkpoint/arrays/arrays.h"

/** How many chunks of the file this rank writes into, in stretches: of the plan, which is made. With the header, on rank 0. */
size_t fsdpi_rows_count_parts(const fsdpi_arrays *arrays);

/** Copies what this rank writes of an array to where it lies without gaps. */
void fsdpi_rows_pack(const fsdpi_array *array, unsigned char *to);

/**
 * Reads what this rank holds of an array, from the tensor that has it. `scratch`: FSDPI_READ_BYTES. Where a good part of what lies
 * between rows is the rank's own, many rows are read at once.
 */
fsdp_status fsdpi_rows_read(const fsdpi_array *array, const fsdpi_placed_tensor *tensor, unsigned char *scratch,
                            fsdpi_problem *problem);

#endif
