/**
 * @file
 * Whether flock(2) keeps programs of other hosts out.
 */
#ifndef FSDPI_FLOCK_REACH_H
#define FSDPI_FLOCK_REACH_H

#include <stdbool.h>

/**
 * Whether locks in a folder are known only on this host: on Lustre mounted with `localflock`, on NFS with `local_lock`, and on
 * BeeGFS and FUSE, which do so unless their servers are told otherwise. False where that cannot be found out.
 */
bool fsdpi_flock_is_per_host(const char *folder);

/** The same of one line of /proc/self/mountinfo. */
bool fsdpi_mount_locks_per_host(const char *line);

#endif
