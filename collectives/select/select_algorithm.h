/**
 * @file
 * Decides which algorithm carries out a call: inline, halves, staged, direct, cma, rails or ring. It is the one that the table
 * (lib/context/table.h) names first, by size, of those that the collective has and that can serve the call.
 */
#ifndef FSDPI_SELECT_ALGORITHM_H
#define FSDPI_SELECT_ALGORITHM_H

#include "collectives/blocks/inline.h"
#include "collectives/blocks/pattern.h"
#include "lib/context/table.h"
#include "lib/progress/queue.h"
#include "lib/sync/mailbox.h"

/** A collective and its algorithms. */
typedef struct fsdpi_selection {
    fsdpi_patterned        base;                         /* first, so that a request leads here */
    const fsdpi_algorithm *menu[FSDP_N_ALGORITHMS];      /* by fsdp_algorithm; NULL: it has none such. STAGED it has. */
    const fsdpi_algorithm *on_device[FSDP_N_ALGORITHMS]; /* the same on GPUs */
    bool                   is_separate;                  /* on one node, direct and cma need input and output apart */
} fsdpi_selection;

static inline const fsdpi_selection *fsdpi_selection_of(const fsdp_request *request)
{
    return (const fsdpi_selection *)(const void *)request->call.collective;
}

/** What the queue calls; the same for all collectives that have a selection. */
bool                   fsdpi_select_is_brief(const fsdp_request *request);
unsigned               fsdpi_select_offer(fsdp_request *request, fsdpi_letter *letter);
size_t                 fsdpi_select_record(fsdp_request *request, unsigned char *payload);
fsdpi_portion          fsdpi_select_portion(fsdp_request *request, int node);
size_t                 fsdpi_select_expected(fsdp_request *request, int node);
void                  *fsdpi_select_place(fsdp_request *request, int node);
const fsdpi_algorithm *fsdpi_select_choose(fsdp_request *request);

/** Initialises fsdpi_selection::base. */
#define FSDPI_COLLECTIVE(text, number, the_pattern) FSDPI_COLLECTIVE_WITH(text, number, the_pattern, NULL)
#define FSDPI_COLLECTIVE_WITH(text, number, the_pattern, before)                                                       \
    {                                                                                                                  \
        .collective = {.name     = (text),                                                                             \
                       .id       = (number),                                                                           \
                       .prepare  = (before),                                                                           \
                       .is_brief = fsdpi_select_is_brief,                                                              \
                       .offer    = fsdpi_select_offer,                                                                 \
                       .record   = fsdpi_select_record,                                                                \
                       .portion  = fsdpi_select_portion,                                                               \
                       .place    = fsdpi_select_place,                                                                 \
                       .expected = fsdpi_select_expected,                                                              \
                       .agreed   = fsdpi_agreed_inline,                                                                \
                       .choose   = fsdpi_select_choose},                                                                 \
        .pattern    = (the_pattern)                                                                                    \
    }

/** Behind a long allreduce: that caches may hold its input now. */
void fsdpi_select_remember(fsdp_request *request);

#endif
