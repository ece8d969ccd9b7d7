/**
 * @file
 * What an attempt ended of, and which nodes are to blame: from the records of its ranks, from how the launcher ended, and from
 * which nodes still answer. Never from lines of a log.
 */
#ifndef RUN_BLAME_H
#define RUN_BLAME_H

#include "tools/run/nodes.h"

enum { RUN_TEXT_BYTES = 4096 };

/** What is known. */
typedef struct run_facts {
    const char      *records; /* the folder of the attempt's records */
    run_node *const *nodes;   /* of the attempt */
    size_t           n;
    const int       *answers;             /* of each node, as run_ask_all() has them; NULL: they were not asked */
    int              status;              /* the launcher's */
    bool             launcher_was_killed; /* by a signal that was not fsdp-run's */
} run_facts;

typedef struct run_blame {
    const char *word;   /* that of a verdict of fsdp-why, or: launcher, exit */
    bool        is_own; /* an error of the program itself, as far as can be told */
    bool        has_records;
    char        text[RUN_TEXT_BYTES]; /* in a sentence or more */
} run_blame;

/** @param[out] guilty  of each node: whether it is left out from now on */
void run_blame_find(const run_facts *facts, run_blame *blame, bool *guilty);

/** Whether ranks have given an operation up, or died of a signal of their own: an attempt that does not end by itself then is ended. */
bool run_blame_is_lost(const char *records);

#endif
