/**
 * @file
 * The table of algorithms in force: which one serves a call of a collective, by memory, nodes and size.
 */
#ifndef FSDPI_TABLE_H
#define FSDPI_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "fsdp/algorithms.h"
#include "lib/base/core.h"
#include "lib/node/nodes.h"

/** Ids of the collectives, for the table and for fingerprints. */
typedef enum fsdpi_collective_id {
    FSDPI_ALLGATHER = 1,
    FSDPI_REDUCE_SCATTER,
    FSDPI_ALLREDUCE,
    FSDPI_BROADCAST,
    FSDPI_REDUCE,
    FSDPI_ALLTOALL,
    FSDPI_BARRIER,
    FSDPI_N_COLLECTIVES
} fsdpi_collective_id;

typedef struct fsdpi_row {
    uint64_t up_to;      /* BYTES of the full vector; UINT64_MAX: any */
    uint8_t  collective; /* fsdpi_collective_id */
    uint8_t  memory;     /* 1: symmetric, 2: user, 3: any */
    uint8_t  nodes;      /* 1: one, 2: many, 3: any, 4: one of two ranks */
    uint8_t  algorithm;  /* fsdp_algorithm */
} fsdpi_row;

enum { FSDPI_MOST_ROWS = 128 };

/** What was chosen for a call the last time: most calls are like the one before. */
typedef struct fsdpi_choice {
    size_t   bytes;
    unsigned flags;
    bool     known;
    uint8_t  algorithm;
} fsdpi_choice;

typedef struct fsdpi_table {
    const fsdpi_core  *core;
    const fsdpi_nodes *nodes;
    fsdpi_row          rows[FSDPI_MOST_ROWS];
    size_t             n;
    uint64_t     inline_up_to[FSDPI_N_COLLECTIVES]; /* whatever the memory: such calls need no look at the table */
    fsdpi_choice last[FSDPI_N_COLLECTIVES][2];      /* see collectives/select/select_algorithm.c */
} fsdpi_table;

/**
 * Fills in the table of a context: the built-in one, or what config.tuning_file says.
 * @return FSDP_OK; FSDP_ERR_ARG naming file, line and what is wrong with it
 */
fsdp_status fsdpi_table_open(fsdpi_table *table, const fsdpi_core *core);

/** What it says of short calls; once the nodes are known. */
void fsdpi_table_find_limits(fsdpi_table *table, const fsdpi_nodes *nodes);

/** A hash of it: ranks must hold the same. */
uint64_t fsdpi_table_fingerprint(const fsdpi_table *table);

/** The algorithm for a call. `able`: those that can serve it, a bit each; FSDP_ALGO_STAGED always can. */
fsdp_algorithm fsdpi_table_find(const fsdpi_table *table, fsdpi_collective_id collective, bool symmetric, size_t bytes,
                                unsigned able);

/** As fsdp_algorithms_print(); NULL: the built-in one. */
void fsdpi_table_print(const fsdpi_table *table, FILE *file);

#endif
