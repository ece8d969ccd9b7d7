/**
 * @file
 * Which algorithm carries out a call: what the table says of those that a collective has and that can serve the call.
 */
#ifndef FSDPI_SELECT_H
#define FSDPI_SELECT_H

#include "collectives/blocks.h"
#include "lib/queue.h"
#include "lib/table.h"

/** A collective: how its data goes through blocks, and its algorithms. */
typedef struct fsdpi_selection {
    fsdpi_collective       collective; /* first, so that a request leads here */
    fsdpi_pattern          pattern;
    const fsdpi_algorithm *menu[FSDP_N_ALGORITHMS];      /* by fsdp_algorithm; NULL: it has none such */
    const fsdpi_algorithm *on_device[FSDP_N_ALGORITHMS]; /* the same on GPUs */
    bool                   is_separate;                  /* on one node, direct and cma need input and output apart */
} fsdpi_selection;

static inline const fsdpi_selection *fsdpi_selection_of(const fsdp_request *request)
{
    return (const fsdpi_selection *)(const void *)request->call.collective;
}

/** What the queue calls; the same for all collectives that have a selection. */
unsigned               fsdpi_select_offer(fsdp_request *request, fsdpi_letter *letter);
size_t                 fsdpi_select_record(fsdp_request *request, unsigned char *payload);
const fsdpi_algorithm *fsdpi_select_choose(fsdp_request *request);

/** Initialises fsdpi_selection::collective. */
#define FSDPI_COLLECTIVE(text, number, prepares)                                                                       \
    {                                                                                                                  \
        .name = (text), .id = (number), .prepare = (prepares), .offer = fsdpi_select_offer,                            \
        .record = fsdpi_select_record, .choose = fsdpi_select_choose                                                   \
    }

#endif
