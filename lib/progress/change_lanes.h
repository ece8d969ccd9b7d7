/**
 * @file
 * How an operation goes from the short lane, in which all ranks have agreed on it, to the long one, in which its data moves.
 *
 * In the long lane an operation may use the staging memory of its node's ranks, and their buffers, only when all of them have
 * done with the one before. Each rank says in its letter of the agreement whether its long lane is empty. If all are, which is
 * so whenever ranks wait for one operation before they call the next, the operation begins at once, and costs no more than
 * with a single lane. Otherwise, and on GPUs, where events go by the numbers of letters, the ranks of the node meet once
 * more, by letters in the long lane.
 *
 * Where the peers' buffers are is kept in either case: their letters in the short lane are soon written anew.
 */
#ifndef FSDPI_CHANGE_LANES_H
#define FSDPI_CHANGE_LANES_H

#include <stdbool.h>

#include "lib/progress/request.h"

/** Behind the agreement, while the peers' letters are there: puts the operation at the head of the short lane into the long one. */
void fsdpi_change_lanes(fsdp_request *request);

/** At the head of that lane, where it does not begin at once: meets the ranks of the node; and whether they have all come. */
void fsdpi_meet_in_lane(fsdp_request *request);
bool fsdpi_have_met_in_lane(fsdp_request *request);

#endif
