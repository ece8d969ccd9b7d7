/**
 * @file
 * The reduction of this rank's own part over the partial results of all nodes, in their order.
 */
#ifndef FSDPI_RAILS_REDUCTION_H
#define FSDPI_RAILS_REDUCTION_H

#include <stdbool.h>

#include "lib/progress/queue.h"

/** Reduces what has come of the next chunk, if that is all of it, or all there is room for; and notes which are final. */
fsdp_status fsdpi_rails_reduce(fsdp_request *request, bool *moved);

#endif
