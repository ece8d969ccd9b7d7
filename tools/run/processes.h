/**
 * @file
 * Processes of this host that have to go.
 */
#ifndef RUN_PROCESSES_H
#define RUN_PROCESSES_H

#include <stddef.h>
#include <sys/types.h>

/** By this variable the processes of an attempt are known on every host. */
#define RUN_ID_VARIABLE "FSDP_RUN_ID"

/** Sends a signal to all descendants of this process, which has to be the subreaper of orphans. Returns how many there are. */
size_t run_signal_descendants(int signal);

/** Kills all of them, and reaps those that fall to this process, until none is left or some seconds have passed. */
void run_kill_descendants(void);

/** Kills all processes with this id in their environment but for the caller's ancestors, in the same way. Returns how many there were. */
size_t run_sweep(const char *id);

#endif
