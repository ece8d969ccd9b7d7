/** @file What two ranks of an alltoallv tell each other of their blocks, and that they have to agree. */
#ifndef FSDPI_NOTICES_H
#define FSDPI_NOTICES_H

#include <stdint.h>

#include "lib/progress/request.h"

/** What a rank tells a peer. In ELEMENTS, but for `place`, which is in BYTES of its input. */
typedef struct fsdpi_alltoallv_notice {
    uint64_t sends, expects, place;
} fsdpi_alltoallv_notice;

/** For fsdpi_collective::prepare: room for what ranks tell each other and, in place, for a copy of the input. */
fsdp_status fsdpi_alltoallv_prepare(fsdp_request *request);

/** What this rank tells a peer, and where that belongs what the peer tells; of a rank and itself they are the same. */
fsdpi_alltoallv_notice *fsdpi_notice_to(const fsdp_request *request, int peer);
fsdpi_alltoallv_notice *fsdpi_notice_from(const fsdp_request *request, int peer);

/** Once all have told: where counts differ, that is this rank's verdict. Both ranks of the pair find it. */
void fsdpi_compare_counts(fsdp_request *request);

#endif
