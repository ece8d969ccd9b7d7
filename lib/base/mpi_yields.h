/**
 * @file
 * Open MPI gives the core away in each call that finds nothing to do, where a node has more ranks than slots or
 * `mpi_yield_when_idle` is set. Beside computing threads that costs a time slice of theirs, 4 ms and more, each time; a
 * thread that sleeps between its looks anyway need not pay it.
 */
#ifndef FSDPI_MPI_YIELDS_H
#define FSDPI_MPI_YIELDS_H

/**
 * From here to fsdpi_mpi_resume_yields(), MPI does not give the core away in any thread of the process. Where it has no such
 * setting, or has it off, nothing happens. Several threads may do this at once.
 */
void fsdpi_mpi_suspend_yields(void);

void fsdpi_mpi_resume_yields(void);

#endif
