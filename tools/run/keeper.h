/**
 * @file
 * The process between fsdp-run and the launcher: it starts the launcher, hands signals on, and ends all that the launcher has
 * left on this host. It does so too when fsdp-run is killed, on all hosts; when it is killed itself the launcher ends with it.
 */
#ifndef RUN_KEEPER_H
#define RUN_KEEPER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

typedef struct run_keeper_plan {
    char **argv;  /* the launcher's */
    double grace; /* SECONDS from a signal that ends to SIGKILL */
    char *const
        *commands; /* for the shell: what ends the attempt's processes on other hosts, where fsdp-run cannot any more */
    size_t n_commands;
    double patience; /* SECONDS that these may take */
} run_keeper_plan;

/** As fsdp-run has it. */
typedef struct run_keeper {
    pid_t pid;
    int   orders; /* what is written there the keeper obeys; when it is closed all ends */
    int   report; /* the launcher's status comes there; the end of the file is the keeper's */
} run_keeper;

/** Starts both. The calling process becomes the one that orphans fall to, should the keeper be killed. False: errno says why. */
bool run_keeper_start(const run_keeper_plan *plan, run_keeper *keeper);

/** Hands a signal to the launcher: after SIGTERM, SIGINT or SIGHUP it has `grace` to end. A second one of these ends it at once. */
void run_keeper_signal(const run_keeper *keeper, int signal);

/** What has become of the launcher. */
typedef struct run_keeper_report {
    int      status;     /* its exit status; 128 and the signal that it died of */
    bool     was_ended;  /* by SIGKILL of the keeper's */
    bool     was_killed; /* by a signal that was not the keeper's */
    unsigned family;     /* of files that Open MPI has left: see tools/run/leftovers.h */
    bool     is_known;   /* false: somebody has killed the keeper */
} run_keeper_report;

/** Takes the report, when `report` can be read, and waits for the keeper. */
void run_keeper_end(run_keeper *keeper, run_keeper_report *report);

#endif
