/**
 * @file
 * The state of malloc(), which programs feel.
 *
 * What MPI allocates in a call, as its reductions do, malloc() may give back to the system when it is freed, and the next call finds
 * each page missing. Once a program has freed an array, malloc() keeps up to twice as much, unless the program or its environment
 * has set its limits. With the drop-in some of these arrays are never allocated, and what else lies in the heap is not the same.
 */
#ifndef FSDPI_PRELOAD_HEAP_H
#define FSDPI_PRELOAD_HEAP_H

#include <stdint.h>

/** From now on malloc() keeps memory as if an array of so many BYTES had been freed. Touches none of it. Cheap where one as large was. */
void fsdpi_heap_keep(uint64_t bytes);

#endif
