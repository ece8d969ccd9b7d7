/**
 * @file
 * What happens before a time-out is an error: finding out who is missing, and coming to one verdict.
 *
 * A rank whose operation has not moved for FSDP_TIMEOUT_S asks the ranks that it waits for whom they wait for, and then
 * those, until the ends of all chains are known. Whoever waits in an operation, or gets on with one, answers; who does not
 * answer is missing. That takes up to two seconds, in which the operation may still go on as if nothing had been. If one of
 * those asked gets on, the wait begins anew.
 *
 * Otherwise the rank gives up, and with it all that can hear of it:
 * - On a node no rank takes the operation for done any more: see lib/sync/mailbox.h.
 * - Across nodes, who gives up tells its neighbours, who tell theirs. A rank may have finished the operation before it
 *   hears of that, as no agreement by messages can exclude; then its next one fails, at once and for the same reason. A rank
 *   that has been away for as long as FSDP_TIMEOUT_S listens before it takes an operation for done.
 *
 * A wait of FSDP_STALL_S is looked into in the same way, but only warned about, and again after twice as long, and so on. One
 * rank of a node does that, whoever comes first; and where rank 0 waits too, only its node says so.
 *
 * None of this costs anything while operations move, but for a look at a cache line that the rank has written itself.
 */
#ifndef FSDPI_INQUEST_H
#define FSDPI_INQUEST_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/progress/queue_state.h"

void fsdpi_inquest_open(fsdpi_queue *queue);
void fsdpi_inquest_close(fsdpi_queue *queue);

/**
 * For who carries out the head, after a look in vain: hears, answers, asks, and gives up in the end. True where all that was
 * queued has ended with FSDP_ERR_TIMEOUT.
 */
bool fsdpi_inquest_look(fsdpi_queue *queue, fsdpi_patience *patience);

/** For who carries out the head but does not wait for it, now and then: tells those who ask. `moves`: it gets on. */
void fsdpi_inquest_give_sign(fsdpi_queue *queue, bool moves);

/** Whether an operation that has come to its end on this rank has not been given up by others. */
bool fsdpi_inquest_lets_end(fsdpi_queue *queue, const fsdp_request *request);

#endif
