/**
 * @file
 * The algorithm `inline`: short data of the host is one block, which rides on the agreement that every operation begins with.
 *
 * Cost on one node for S bytes: one synchronisation, S copied in, and (L+1) S / L or 2 S taken out. Across nodes besides:
 * ceil(log2 M) messages, (M-1) S; where few nodes exchange in pairs, M-1 messages at once, each with what its receiver needs.
 * Between single ranks, data that is not copied beside its head goes from input to output, or to what reduces it.
 */
#ifndef FSDPI_INLINE_H
#define FSDPI_INLINE_H

#include "collectives/blocks/pattern.h"
#include "lib/sync/mailbox.h"

/** Whether all of the vector fits into the block that rides on the agreement. The same on all ranks. */
bool fsdpi_fits_inline(const fsdp_request *request, fsdpi_pattern pattern);

/** For fsdpi_collective::offer: publishes the whole as one block. Returns FSDPI_FLAG_OFFERED. */
unsigned fsdpi_publish_inline(fsdp_request *request, fsdpi_pattern pattern, fsdpi_letter *letter);

/** For fsdpi_collective::record: of that block, what other nodes need. */
size_t fsdpi_record_inline(fsdp_request *request, fsdpi_pattern pattern, unsigned char *payload);

/** For the fields of that name of fsdpi_collective: what of it a node needs; where what that sends belongs, and its BYTES. */
fsdpi_portion fsdpi_portion_inline(fsdp_request *request, fsdpi_pattern pattern, int node);
size_t        fsdpi_expected_inline(const fsdp_request *request, fsdpi_pattern pattern, int node);
void         *fsdpi_place_inline(const fsdp_request *request, fsdpi_pattern pattern, int node);

/** For fsdpi_collective::agreed: copies this rank's part into the result where that is best done now. */
void fsdpi_agreed_inline(fsdp_request *request);

/** Takes what this rank needs of that block; `pattern` is what it was published with. */
void fsdpi_take_inline(fsdp_request *request, fsdpi_pattern pattern);

/** The last step, behind taking: waits until what this rank has sent has left. request->stage is 0 unless it has to wait. */
fsdp_status fsdpi_leave_inline(fsdp_request *request, fsdpi_progress *progress);

/** Takes that block. */
extern const fsdpi_algorithm fsdpi_inline;

#endif
