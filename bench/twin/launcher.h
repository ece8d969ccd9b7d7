/**
 * @file
 * The command line and environment that this job was started with, to start another one alike: with the same hosts,
 * mapping, binding and settings of MPI.
 */
#ifndef BENCH_LAUNCHER_H
#define BENCH_LAUNCHER_H

#include <stddef.h>
#include <sys/types.h>

/**
 * Starts the same launcher with the same options, and `arguments` for this program. Its output is thrown away.
 *
 * @param[in]  program    argv[0] of this process
 * @param[in]  preload    what its ranks load before everything else, as LD_PRELOAD has it; NULL: nothing
 * @param[in]  arguments  ends with NULL
 * @param[out] why_not    one line if there is none
 * @return the launcher's process; below 0 if that is impossible
 */
pid_t bench_launch_alike(const char *program, const char *preload, const char *const *arguments, char *why_not,
                         size_t why_not_bytes);

#endif
