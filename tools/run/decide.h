/**
 * @file
 * What follows from how attempts ended: whether there is another one, and on which nodes. Nothing here asks the machine.
 */
#ifndef RUN_DECIDE_H
#define RUN_DECIDE_H

#include <stdint.h>

#include "tools/run/nodes.h"

/** Name, its word in the last line, exit status; that of an interrupted run is 128 and the signal's number. */
#define RUN_STOP_LIST(X)                                                                                               \
    X(RUN_GO_ON, "", 0)                                                                                                \
    X(RUN_SUCCESS, "success", 0)                                                                                       \
    X(RUN_TIME_LIMIT, "time-limit", 75)                                                                                \
    X(RUN_NO_PROGRESS, "no-progress", 71)                                                                              \
    X(RUN_NO_NODES, "no-nodes", 69)                                                                                    \
    X(RUN_APP_ERROR, "app-error", 70)                                                                                  \
    X(RUN_INTERRUPTED, "interrupted", 128)

#define RUN_STOP_ENUMERATOR(name, word, status) name,
typedef enum run_stop { RUN_STOP_LIST(RUN_STOP_ENUMERATOR) } run_stop;
#undef RUN_STOP_ENUMERATOR

const char *run_stop_word(run_stop stop);

/** @param[in] signal  the one that has interrupted the run; 0 */
int run_stop_status(run_stop stop, int signal);

/** How an attempt ended. */
typedef struct run_end {
    int         status;   /* the launcher's exit status, or 128 and the signal that it died of */
    int         signal;   /* the first that fsdp-run was sent and passed on; 0 */
    const char *word;     /* the verdict: a word */
    bool        is_own;   /* the program's own error, as far as can be told */
    int64_t     from, to; /* steps when it began and when it ended; -1: none */
} run_end;

/** @param[in] before  the attempt before `last`; NULL: there is none. `why`: RUN_MESSAGE_BYTES, what it follows from */
run_stop run_decide(const run_end *before, const run_end *last, size_t restarts, size_t max_restarts, char *why);

/**
 * Picks up to `wanted` nodes, in their order: good ones, and where these are fewer than `least`, suspects, the least charged first.
 * @param[out] chosen  room for `wanted`
 * @return how many; below `least`: there are no more
 */
size_t run_choose(run_nodes *nodes, size_t wanted, size_t least, run_node **chosen);

#endif
