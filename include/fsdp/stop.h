/**
 * @file
 * Stopping cleanly on a signal: a scheduler's SIGTERM or SIGUSR1 may reach one rank or all, at any moment; the ranks agree on
 * the step after which they save and end.
 *
 *     fsdp_stop_watch(NULL, 0);
 *     for each step:
 *         ...
 *         fsdp_stop_agree(ctx, &signal);
 *         if (signal) { fsdp_checkpoint_save(checkpoint, &state); exit status FSDP_STOP_EXIT_STATUS; }
 *
 * Which signals reach the ranks, and how long they have, is up to the launcher: docs/launchers.md says what works with each.
 * SIGUSR1 of mpirun and mpiexec does; SIGTERM of mpirun does not, where that is Open MPI 4.1 with its defaults: SIGKILL follows
 * within 2 s, and nothing is promised but that the last checkpoint is whole.
 *
 * This is the one thing in the library that belongs to the process and not to a context, as signals do.
 */
#ifndef FSDP_STOP_H
#define FSDP_STOP_H

#include <stddef.h>

#include "fsdp/context.h"
#include "fsdp/export.h"
#include "fsdp/status.h"

/** The exit status of a program that has saved on a signal and wants to be started again: EX_TEMPFAIL of sysexits.h. */
#define FSDP_STOP_EXIT_STATUS 75

FSDP_EXTERN_C_BEGIN

/**
 * From now on these signals are noted instead of ending the process. Local. fsdp_stop_unwatch() restores their former
 * handlers.
 *
 * @param[in] signals  or NULL for SIGUSR1 and SIGTERM
 * @param[in] n        how many, at most 8
 * @return FSDP_OK; FSDP_ERR_ARG: too many, or a number that is no signal that can be handled; FSDP_ERR_STATE: signals are
 *         watched already. After an error nothing has changed. The detail is in fsdp_last_error(NULL).
 */
FSDP_API fsdp_status fsdp_stop_watch(const int *signals, size_t n);

/**
 * Restores the former handlers, and forgets what was noted. Local. Not once the ranks have agreed to stop: a signal may come to
 * some late, or twice, and would end them before the others.
 */
FSDP_API void fsdp_stop_unwatch(void);

/** The number of the first signal that reached this process, or 0. Local. */
FSDP_API int fsdp_stop_signal(void);

/**
 * Whether any rank has received a signal. Collective; one small allreduce.
 *
 * @param[out] signal  the largest number of a signal that a rank has received, the same on all ranks; 0 for none
 * @return FSDP_OK; FSDP_ERR_ARG, FSDP_ERR_MPI, FSDP_ERR_TIMEOUT.
 */
FSDP_API fsdp_status fsdp_stop_agree(fsdp_context *ctx, int *signal);

FSDP_EXTERN_C_END

#endif
