/**
 * @file
 * The algorithm `inline`: short data of the host is one block, which rides on the agreement that every operation begins with.
 *
 * Cost on one node for S bytes: one synchronisation, S copied in, and (L+1) S / L or 2 S taken out. Across nodes besides:
 * ceil(log2 M) messages, (M-1) S.
 */
#ifndef FSDPI_INLINE_H
#define FSDPI_INLINE_H

#include "collectives/blocks/pattern.h"
#include "lib/sync/mailbox.h"

/** Whether all of a vector of so many BYTES fits into the block that rides on the agreement. */
bool fsdpi_fits_inline(const fsdp_context *ctx, fsdpi_pattern pattern, size_t bytes);

/** For fsdpi_collective::offer: publishes the whole as one block. Returns FSDPI_FLAG_OFFERED. */
unsigned fsdpi_publish_inline(fsdp_request *request, fsdpi_pattern pattern, fsdpi_letter *letter);

/** For fsdpi_collective::record: of that block, what other nodes need. */
size_t fsdpi_record_inline(fsdp_request *request, fsdpi_pattern pattern, unsigned char *payload);

/** Takes that block. */
extern const fsdpi_algorithm fsdpi_inline;

#endif
