/**
 * @file
 * Copies within a node of what one of its ranks has received, or had before.
 */
#ifndef FSDPI_RAILS_COPIES_H
#define FSDPI_RAILS_COPIES_H

#include <stdbool.h>

#include "lib/progress/queue.h"

/** Some of this rank's own part into its place in the result. `done` is cleared while some is left. */
void fsdpi_rails_copy_own_part(fsdp_request *request, bool *moved, bool *done);

/** What has newly come of the parts that peers have, or receive. `done` is cleared while some is still to come. */
fsdp_status fsdpi_rails_copy_from_peers(fsdp_request *request, bool *moved, bool *done);

#endif
