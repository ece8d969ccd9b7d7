/**
 * @file
 * Other hosts, asked through whatever reaches them: whether they answer, see the folder, and have nothing left of an attempt.
 */
#ifndef RUN_ASK_H
#define RUN_ASK_H

#include "tools/run/nodes.h"

/** What `--sweep` ends with. */
enum {
    RUN_ASK_FINE           = 0,
    RUN_ASK_NO_FILE        = 42,
    RUN_ASK_TOO_LATE       = 124,
    RUN_ASK_NOT_EXECUTABLE = 126,
    RUN_ASK_NOT_FOUND      = 127
};

/** Whether nobody has answered. A host on which this program is not to be found has. */
bool run_ask_is_silent(int status);

/** How hosts are reached. */
typedef struct run_reach {
    const char *rsh;        /* "ssh": a host and a command follow; or "" for srun within a job */
    bool        is_useless; /* nobody could be reached at the beginning: it is not this that tells who is gone */
    double      patience;   /* SECONDS for an answer */
} run_reach;

/** "ssh", or what the launcher is told to use; "" within a job of Slurm. */
const char *run_reach_default(const char *agent);

/**
 * A command for the shell that ends what is left of an attempt on a host and looks for a file there: free it. NULL: no memory.
 * @param[in] id      of the run
 * @param[in] family  of files that Open MPI may have left (tools/run/leftovers.h); 0: none
 * @param[in] file    NULL: none
 */
char *run_ask_command(const run_reach *reach, const char *host, const char *id, unsigned family, const char *file);

/**
 * Runs commands at the same time, with the output of each left out, and kills what takes longer than `patience`.
 * @param[out] statuses  of each: 128 and the signal for one that a signal ended
 */
void run_ask_all(char *const *commands, size_t n, double patience, int *statuses);

/** What this host itself answers: `--sweep ID --job FAMILY --look FILE`. */
int run_answer(const char *id, unsigned family, const char *file);

#endif
