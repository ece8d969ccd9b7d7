/**
 * @file
 * One start of the command, until all of it on this host has ended.
 */
#ifndef RUN_ATTEMPT_H
#define RUN_ATTEMPT_H

#include "tools/run/ask.h"
#include "tools/run/command.h"
#include "tools/run/fence.h"

typedef struct run_attempt {
    const run_command *command;
    run_node *const   *chosen;
    const size_t      *ranks; /* of each */
    size_t             n, sum;
    unsigned           number;
    const char        *id;      /* FSDP_RUN_ID */
    const char        *records; /* FSDP_RECORD_DIR; is made, and emptied of records */
    const char        *token;   /* FSDP_RUN_TOKEN; "": there is no folder */
    const run_reach   *reach;
    const run_fence   *fence;
    double             grace, patience;
    int                signals; /* of this process, to be handed on: a signalfd */
} run_attempt;

typedef struct run_attempt_result {
    int      status; /* the launcher's, or 128 and a signal */
    int      signal; /* the first that was handed on; 0 */
    bool     launcher_was_killed;
    unsigned family; /* of files that Open MPI has left; 0 */
    double   seconds;
} run_attempt_result;

/** False: `why` says what could not be done, in RUN_MESSAGE_BYTES. */
bool run_attempt_make(const run_attempt *attempt, run_attempt_result *result, char *why);

#endif
