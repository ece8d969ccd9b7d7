/**
 * @file
 * The command line.
 */
#ifndef TOPO_OPTIONS_H
#define TOPO_OPTIONS_H

#include <stddef.h>

/** Most ranks of a node, as fsdp_plan() has it. */
#define TOPO_MOST_RANKS 4096

typedef struct topo_options {
    const char *input;              /* hwloc's XML; NULL: this machine, or what FSDP_TOPOLOGY names */
    size_t      ranks;              /* to plan for; 0: not given */
    const char *masks;              /* of the ranks, with / between them; NULL: all of the machine */
    const char *reserve;            /* hardware threads that ranks may not use; NULL: none */
    int         reserve_first_core; /* of each last-level cache */
    int         why;                /* reasons of each rank */
    int         check;              /* exit status TOPO_EXIT_DEVIATES where ranks are not as planned */
    int         json;
    const char *svg; /* file; NULL: not drawn */
    int         launch;
    const char *wrapper; /* file for the wrapper of a launch line; NULL: printed with it */
    int         watch;
    double      interval; /* SECONDS */
    size_t      count;    /* of refreshes; 0: until stopped */
    int         settings;
    int         help, version;
} topo_options;

/**
 * Needs no MPI, and gives the same on all ranks.
 *
 * @param[out] message  CLI_MESSAGE_BYTES: what is wrong and what to do; "" if nothing is
 */
void topo_options_parse(int argc, char **argv, topo_options *options, char *message);

/**
 * Prints, on rank 0, what --help and --version ask for.
 * @return 1 where one of them is given: nothing else is to be done then
 */
int topo_options_answer(const topo_options *options, int rank);

#endif
