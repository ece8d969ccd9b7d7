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
#include "lib/context/costs.h"
#include "lib/context/row.h"
#include "lib/node/nodes.h"

enum { FSDPI_MOST_ROWS = 256 };

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
    bool               by_cost; /* the rows for several nodes are those that follow from: */
    fsdpi_costs        costs;
    fsdpi_world        world;
    uint64_t     inline_up_to[FSDPI_N_COLLECTIVES]; /* whatever the memory: such calls need no look at the table */
    fsdpi_choice last[FSDPI_N_COLLECTIVES][2];      /* see collectives/select/select_algorithm.c */
} fsdpi_table;

/**
 * Fills in the table of a context: the built-in one, or what config.tuning_file says.
 * @return FSDP_OK; FSDP_ERR_ARG naming file, line and what is wrong with it
 */
fsdp_status fsdpi_table_open(fsdpi_table *table, const fsdpi_core *core);

/**
 * Once the nodes are known, and the link between them has been measured. Of the built-in table, the rows for several nodes give way
 * to those that follow from the costs there, and an allreduce that is inline on one node is the shorter the more ranks a node has.
 * The same on all ranks, as all know the same link and nodes.
 */
void fsdpi_table_settle(fsdpi_table *table, const fsdpi_nodes *nodes, const fsdpi_link *link);

/**
 * Whether an allreduce of so many BYTES goes in halves where these can serve it. Not a matter of memory, which may differ from rank
 * to rank: what rides on the agreement must be the same on all.
 */
bool fsdpi_table_in_halves(const fsdpi_table *table, size_t bytes);

/** A hash of it: ranks must hold the same. */
uint64_t fsdpi_table_fingerprint(const fsdpi_table *table);

/** The algorithm for a call. `able`: those that can serve it, a bit each; FSDP_ALGO_STAGED always can. */
fsdp_algorithm fsdpi_table_find(const fsdpi_table *table, fsdpi_collective_id collective, fsdpi_origin origin,
                                size_t bytes, unsigned able);

/** As fsdp_algorithms_print(); NULL: the built-in one. */
void fsdpi_table_print(const fsdpi_table *table, FILE *file);

/** As fsdp_algorithms_print_for(): the built-in table as it would be on those nodes. */
void fsdpi_table_print_for(const fsdpi_world *world, const fsdpi_link *link, FILE *file);

#endif
