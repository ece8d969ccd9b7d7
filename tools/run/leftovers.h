/**
 * @file
 * Files that Open MPI leaves on a host when it is killed: its folders for a job, and segments of shared memory.
 */
#ifndef RUN_LEFTOVERS_H
#define RUN_LEFTOVERS_H

#include <sys/types.h>

/** The number by which Open MPI's files of a job are known, from what its mpirun has left here; 0: nothing is left. */
unsigned run_leftovers_family(pid_t mpirun);

/** Removes this user's files of that number from this host: nothing may run any more that uses them. 0 does nothing. */
void run_leftovers_remove(unsigned family);

#endif
