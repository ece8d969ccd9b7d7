/**
 * @file
 * Records as files: HOST.RANK.record in a folder, whole or under another name (lib/record/layout.h says what is in them).
 *
 * With FSDP_RECORD_DIR each rank's record is written once where something ends it, by whoever comes first: the rank itself, or
 * one of its node that has given an operation up, for the ranks that can no longer do it.
 */
#ifndef FSDPI_DUMP_H
#define FSDPI_DUMP_H

#include <stdbool.h>

#include "lib/record/recorder.h"

/** Also looks at FSDP_RECORD_DIR, which is made where it is not there: FSDP_ERR_ARG, for the agreement to print. */
fsdp_status fsdpi_dump_open(fsdpi_recorder *recorder);
void        fsdpi_dump_close(fsdpi_recorder *recorder);

/**
 * An operation has been given up: into FSDP_RECORD_DIR, for all contexts of this process, the records of all ranks of their
 * nodes that nobody has taken yet. A context has failed: of this rank alone.
 */
void fsdpi_dump_give_up(const char *reason);
void fsdpi_dump_fail(const char *reason);

/** Ranks made different calls, after which the context is still good: the first time only, and what comes later is written too. */
void fsdpi_dump_mismatch(fsdpi_recorder *recorder, const char *reason);

/**
 * In a signal handler: the records of this rank, and of those of its node that are gone. `ends`: the process ends by it; else
 * what comes later is written too.
 */
void fsdpi_dump_of_signal(int signal, bool ends);

/**
 * The records of this process in all of its contexts, into a folder that is there. Returns 0 or an errno; ENOENT also where
 * nothing is recorded.
 */
int fsdpi_dump_write(const char *folder);

#endif
