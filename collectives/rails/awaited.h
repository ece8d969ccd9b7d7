/** @file Whom an operation across nodes waits for: peers whose messages are under way, and ranks of the node that have parts first. */
#ifndef FSDPI_RAILS_AWAITED_H
#define FSDPI_RAILS_AWAITED_H

#include "lib/progress/queue.h"

/** For fsdpi_algorithm::awaited. */
void fsdpi_rails_awaited(const fsdp_request *request, fsdpi_rank_list *list);

#endif
