/**
 * @file
 * The tags of messages without a head, which say what a head says: that a call is made whose arguments are good, 20 bits or more of its
 * hash, and two flags. `first` is the highest power of two for which an MPI has the tags up to 2 first - 1. Call k has these:
 *
 *     first + 4 k + 2 still + offered   of a message with all that its sender has to say
 *     first / 2 + k                     the same with both flags, of all but the last of several that bring it: see lib/sync/pairs_swap.c
 *
 * Every other agreement has them of k xor 1, its `turn` being 1. For a node that has what it needs of one agreement may come to the next,
 * of the same call, while the other node still has receives for this one, which must not take what belongs to the next. It cannot come
 * further, since each agreement needs a message from all nodes.
 *
 * The tags of all other messages are below first / 2.
 */
#ifndef FSDPI_BARE_TAGS_H
#define FSDPI_BARE_TAGS_H

#include <stdbool.h>

#include "lib/sync/opinion.h"

/** `first`, where tags go up to `largest_tag`: 32767 or more. */
int fsdpi_first_bare_tag(int largest_tag);

/** The first that other messages cannot have. */
static inline int fsdpi_end_of_other_tags(int first)
{
    return first / 2;
}

/** Whether both flags are set, and all else is as such a tag says. */
bool fsdpi_is_usual(const fsdpi_opinion *opinion);

/** The tag that says this; 0: none does, or MPI has too few. */
int fsdpi_bare_tag(int first, int turn, const fsdpi_opinion *opinion);

/** The tag that says that more messages follow, for the call of a bare tag that has both flags. */
int  fsdpi_tag_of_begun(int first, int bare_tag);
bool fsdpi_is_tag_of_begun(int first, int tag);

/** What a tag of either kind says. `own`: what this node says; the hash of any other call is only known to differ from its. */
fsdpi_opinion fsdpi_opinion_of_tag(int first, int turn, const fsdpi_opinion *own, int tag);

#endif
