/**
 * @file
 * The messages of an operation across nodes: several of each transfer under way at once, sends of partial results in turns.
 */
#ifndef FSDPI_RAILS_MESSAGES_H
#define FSDPI_RAILS_MESSAGES_H

#include <stdbool.h>

#include "lib/progress/queue.h"

/** Notes which have come and gone. Costs as much as there are under way, not as there are transfers. */
fsdp_status fsdpi_rails_look_at_messages(fsdp_request *request, bool *moved);

/** Posts what has room, or is ready. Over a slow link, sends one chunk and waits a moment for one to come. */
fsdp_status fsdpi_rails_post_receives(fsdp_request *request, bool *moved);
fsdp_status fsdpi_rails_post_sends(fsdp_request *request, bool *moved);

#endif
