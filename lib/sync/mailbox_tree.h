/**
 * @file
 * The mailbox in a tree, for lib/sync/mailbox.c: up what has been heard, down what all are told. As there, each function is
 * called until it says yes, for one number or milestone at a time.
 */
#ifndef FSDPI_MAILBOX_TREE_H
#define FSDPI_MAILBOX_TREE_H

#include "lib/sync/mailbox.h"

/** What a letter says, apart from what it carries. */
static inline fsdpi_opinion fsdpi_read_opinion(const fsdpi_letter *letter)
{
    return (fsdpi_opinion){letter->call, letter->fingerprint, letter->flags, letter->status};
}

static inline void fsdpi_write_opinion(fsdpi_letter *letter, const fsdpi_opinion *opinion)
{
    letter->call        = opinion->call;
    letter->fingerprint = opinion->fingerprint;
    letter->flags       = opinion->flags;
    letter->status      = opinion->status;
}

/** Whether the letters of all below have come; then their sum has been passed on. */
bool fsdpi_tree_heard(fsdpi_mailbox *box, uint64_t number);

/** Whether those of the whole node have, and those below have been told so. */
bool fsdpi_tree_arrived(fsdpi_mailbox *box, uint64_t number);

/** Whether the whole node has reached a milestone, and those below have been told so. */
bool fsdpi_tree_reached(fsdpi_mailbox *box, uint64_t milestone);

#endif
