/**
 * @file
 * The two lanes of a context. Each carries out one operation after the other, in the order of issue, with a mailbox, messages and a
 * communicator of its own, so that neither waits for the other.
 *
 * Every operation begins in the short lane, with the agreement of all ranks. Agreements, and data that rides on them, end there.
 * Other data then moves in the long lane, behind what moves there already, while the short lane goes on with the next operation.
 * So all ranks meet in one order, whatever moves.
 */
#ifndef FSDPI_LANE_H
#define FSDPI_LANE_H

#include "lib/progress/verdicts.h"
#include "lib/sync/exchange.h"
#include "lib/sync/mailbox.h"
#include "lib/sync/messages.h"

enum { FSDPI_LANE_SHORT, FSDPI_LANE_LONG, FSDPI_LANES };

typedef struct fsdpi_lane {
    fsdpi_mailbox  box;
    fsdpi_exchange exchange;
    fsdpi_messages messages;
    fsdpi_summary  verdicts; /* of the operation at its head, where ranks do not agree */
} fsdpi_lane;

#endif
