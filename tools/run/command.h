/**
 * @file
 * The command that starts the ranks: which launcher it is, and the same command for another set of nodes.
 */
#ifndef RUN_COMMAND_H
#define RUN_COMMAND_H

#include "tools/run/nodes.h"

typedef enum run_launcher { RUN_AUTO, RUN_OPENMPI, RUN_HYDRA, RUN_SRUN } run_launcher;

#define RUN_LAUNCHER_CHOICES "auto|openmpi|hydra|srun"

typedef struct run_command {
    run_launcher launcher;
    char       **kept; /* the launcher and those of its options that stay; point into argv */
    size_t       n_kept;
    char       **program;  /* behind the launcher's options, up to NULL */
    size_t       ranks;    /* as the command says; 0: it does not */
    size_t       per_node; /* likewise */
    const char  *agent;    /* what Open MPI reaches other hosts with, where the command says so; NULL */
} run_command;

/** The words behind `--`, up to NULL. False: `message` says what is wrong. */
bool run_command_read(char **argv, run_launcher launcher, run_command *command, char *message);

/**
 * The command for `chosen` nodes with `ranks` of each.
 * @param[in] variables  those that have to reach all ranks, up to NULL
 * @return up to NULL: free each word, and the list; NULL: no memory
 */
char **run_command_make(const run_command *command, run_node *const *chosen, const size_t *ranks, size_t n,
                        const char *const *variables);
void   run_command_free(char **words);

void run_command_release(run_command *command);

#endif
