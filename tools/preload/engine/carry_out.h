/**
 * @file
 * A call of the program, from its entry to the library or to MPI.
 */
#ifndef FSDPI_PRELOAD_CARRY_OUT_H
#define FSDPI_PRELOAD_CARRY_OUT_H

#include "tools/preload/entry/call.h"

/** fsdpi_engine_table::call and ::passed. */
int  fsdpi_carry_out(fsdpi_call *call);
void fsdpi_count_passed(fsdpi_collective which);

/** Makes the error that a failed context raises. MPI's code. Once. */
int fsdpi_carry_out_open(void);

#endif
