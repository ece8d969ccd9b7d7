/**
 * @file
 * What there is to do for a chunk on this rank before it is sent, or when it has come; see collectives/rails/ops.h.
 */
#ifndef FSDPI_RAILS_WORK_H
#define FSDPI_RAILS_WORK_H

#include <stdbool.h>
#include <stddef.h>

#include "collectives/arguments/slices.h"
#include "lib/sync/rails.h"

/** Reduces some elements over this node's ranks. On a node of one rank there is nothing to do. */
fsdp_status fsdpi_rails_compute_partial(fsdp_request *request, fsdpi_slice c, unsigned char *to);

/** Whether a chunk of a stream needs work before it is sent. */
bool fsdpi_rails_is_work_to_send(const fsdp_request *request, fsdpi_stream_kind kind);

/** The next chunk of a stream becomes ready to be sent. */
fsdp_status fsdpi_rails_begin_send(fsdp_request *request, fsdpi_stream_kind kind);

/** The next chunk of a stream has come, and goes where it belongs. */
void fsdpi_rails_begin_arrival(fsdp_request *request, fsdpi_stream_kind kind);

/** Notes the work that has ended. */
void fsdpi_rails_look_at_marks(fsdp_request *request, bool *moved);

/** Tells the ranks of this node how many chunks have come here from other nodes, if more have. */
void fsdpi_rails_tell_come(fsdp_request *request);

#endif
