/**
 * @file
 * What the records of a job's ranks say together: which rank stopped first, and where.
 *
 * Ranks are compared by the numbers of their operations, which are the same on all ranks of a context, and by durations that
 * one host has measured: never by stamps of two hosts, whose clocks may differ by minutes. Of the ranks that others wait for,
 * the one that stopped first is that which waits for nobody itself, in any of its contexts.
 */
#ifndef RECORDS_VERDICT_H
#define RECORDS_VERDICT_H

#include "tools/records/records.h"

/** Kinds: name, exit status of fsdp-why, its word in JSON. */
#define VERDICT_LIST(X)                                                                                                \
    X(VERDICT_FINE, 0, "fine")            /* ranks get on, or have ended */                                            \
    X(VERDICT_AWAY, 10, "away")           /* a rank is in its own code, and others wait for it */                      \
    X(VERDICT_STOPPED, 11, "stopped")     /* its process is stopped */                                                 \
    X(VERDICT_GONE, 12, "gone")           /* its process has ended, or it has finalized the context */                 \
    X(VERDICT_OOM, 13, "out-of-memory")   /* the kernel has killed it */                                               \
    X(VERDICT_CRASHED, 14, "crashed")     /* a signal that it raised itself has ended it */                            \
    X(VERDICT_NODE_GONE, 15, "node-gone") /* nothing is known of a whole node */                                       \
    X(VERDICT_MISMATCH, 16, "mismatch")   /* ranks made different calls */                                             \
    X(VERDICT_SLOW, 17, "slow")           /* one is always last */                                                     \
    X(VERDICT_STUCK, 18, "stuck")         /* all have come, and nothing moves */                                       \
    X(VERDICT_UNKNOWN, 19, "unknown")     /* whoever is waited for has left no record */                               \
    X(VERDICT_ENDED, 20, "ended")         /* ended from outside while ranks got on, or by an error of MPI */

#define VERDICT_ENUMERATOR(name, status, word) name = (status),
typedef enum verdict_kind { VERDICT_LIST(VERDICT_ENUMERATOR) } verdict_kind;
#undef VERDICT_ENUMERATOR

const char *verdict_word(verdict_kind kind);

enum { VERDICT_TEXT_BYTES = 4096 };

/** One context: records of the same id, in the order of ranks, each rank once. */
typedef struct verdict_context {
    const record_rank **ranks;
    size_t              n;
} verdict_context;

/** The contexts of one job; what it points to lies in the records. */
typedef struct verdict_job {
    const record_rank **all; /* by context and rank */
    const record_rank **by_process;
    size_t              n;
    verdict_context    *contexts;
    size_t              n_contexts;
    bool                is_partial; /* other hosts were not asked */
} verdict_job;

typedef struct verdict {
    verdict_kind       kind;
    const record_rank *culprit;  /* the first of them; NULL: none is known */
    const record_rank *witness;  /* one that waits, whose operation it is; NULL: none */
    uint64_t           sequence; /* of the operation, where there is a witness */
    size_t             culprits, waiting;
    double             longest; /* SECONDS that one of these has waited */
    size_t             size;    /* ranks of the context; and of how many there is a record */
    size_t             known;
    char               text[VERDICT_TEXT_BYTES];   /* one paragraph */
    char               advice[VERDICT_TEXT_BYTES]; /* what to do next; "" */
} verdict;

/**
 * Picks a job out of what has been read, and notes what is of others.
 * @param[in] pid  one of its processes; 0: the newest job
 * @return false: there is none, or no memory
 */
bool verdict_pick_job(records *all, long pid, verdict_job *job);
void verdict_release_job(verdict_job *job);

/** `after`: SECONDS of waiting that are worth a word, where nothing has been given up. */
void verdict_find(const verdict_job *job, double after, verdict *found);

/** The record of the context in which the rank's process waits; NULL: it waits in none. */
const record_rank *verdict_waiting(const verdict_job *job, const record_rank *rank);

/** Of a context: ranks that made different calls of one operation, and one that is always last. False: there are none. */
bool verdict_find_mismatch(const verdict_context *context, verdict *found);
bool verdict_find_slow(const verdict_context *context, verdict *found);

#endif
