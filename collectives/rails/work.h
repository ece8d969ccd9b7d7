/**
 * @file
 * What there is to do for a chunk on this rank before it is sent, or when it has come; see collectives/rails/ops.h.
 */
#ifndef FSDPI_RAILS_WORK_H
#define FSDPI_RAILS_WORK_H

#include <stdbool.h>
#include <stddef.h>

#include "collectives/arguments/slices.h"

/** Reduces some elements over this node's ranks. On a node of one rank there is nothing to do. */
fsdp_status fsdpi_rails_compute_partial(fsdp_request *request, fsdpi_slice c, unsigned char *to);

/** The next chunk of a send becomes ready to be sent. */
fsdp_status fsdpi_rails_begin_send(fsdp_request *request, unsigned route, size_t row);

/** The next chunk of a receive has come, and goes where it belongs. */
void fsdpi_rails_begin_arrival(fsdp_request *request, size_t row);

/** Notes the work that has ended. */
void fsdpi_rails_look_at_marks(fsdp_request *request, bool *moved);

/** Tells the ranks of this node how many chunks of a part are here. */
void fsdpi_rails_tell_landed(fsdp_context *ctx, int part, size_t chunks);

#endif
