/**
 * @file
 * Which algorithms could serve a call: by where its buffers are, and how the nodes look.
 */
#ifndef FSDPI_ABLE_H
#define FSDPI_ABLE_H

#include "lib/progress/queue.h"

/** The algorithms that could serve a call with these flags, a bit each. */
unsigned fsdpi_able(const fsdp_request *request);

#endif
