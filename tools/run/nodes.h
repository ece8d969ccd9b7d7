/**
 * @file
 * The nodes that a run may use: from a batch system, a file, or this machine alone.
 */
#ifndef RUN_NODES_H
#define RUN_NODES_H

#include <stdbool.h>
#include <stddef.h>

enum { RUN_NAME_BYTES = 256, RUN_MOST_NODES = 100000, RUN_MESSAGE_BYTES = 512 };

/** What is known of a node. */
typedef enum run_node_state {
    RUN_NODE_GOOD,
    RUN_NODE_SUSPECT, /* something went wrong there, but it answers: used when too few others are left */
    RUN_NODE_GONE     /* it did not answer the last time */
} run_node_state;

typedef struct run_node {
    char           name[RUN_NAME_BYTES];
    size_t         slots; /* ranks that it is for; 0: not said */
    run_node_state state;
    size_t         charges;      /* how often something went wrong there */
    bool           has_answered; /* since the last attempt */
    unsigned       family;       /* of files that Open MPI may have left there: tools/run/leftovers.h */
} run_node;

typedef struct run_nodes {
    run_node   *list;
    size_t      n;
    const char *source; /* where they are from, in words */
} run_nodes;

/**
 * Adds the nodes of a list as Slurm writes it: "a,b[1-3,07],c[1-2]x[0-1]".
 * @return false: `message` says what is wrong
 */
bool run_nodes_expand(const char *text, run_nodes *nodes, char *message);

/**
 * Adds the nodes of a file, a line each: "NAME", "NAME slots=N", "NAME:N"; # begins a comment.
 * @param[in] repeats  a name stands there once for each of its slots, as in PBS's and LSF's files; else twice is an error
 */
bool run_nodes_read(const char *path, bool repeats, run_nodes *nodes, char *message);

/** Of --hostfile, or else SLURM_JOB_NODELIST, PBS_NODEFILE, LSB_DJOB_HOSTFILE, or else this machine. */
bool run_nodes_find(const char *hostfile, run_nodes *nodes, char *message);

void run_nodes_release(run_nodes *nodes);

/** Whether two names are of one host: one may have its domain, and the other not. */
bool run_nodes_same(const char *a, const char *b);

/** Whether this is the host that calls. */
bool run_nodes_is_here(const char *name);

#endif
