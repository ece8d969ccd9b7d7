/**
 * @file
 * Which elements are in which block: a block is a window of some ranks' parts of the vector.
 */
#ifndef FSDPI_WINDOWS_H
#define FSDPI_WINDOWS_H

#include <stdbool.h>
#include <stddef.h>

#include "collectives/arguments/slices.h"
#include "collectives/blocks/pattern.h"

/** BYTES of a block of a series on the host, at most: two of each rank stay in a cache of their own. */
enum { FSDPI_BLOCK_BYTES = 512 << 10 };

/** The elements [from, from + count) of each of some parts, packed one behind the other. */
typedef struct fsdpi_block {
    size_t first, n; /* parts */
    size_t from, count;
} fsdpi_block;

/** Whether the vector is divided into the parts of the ranks; else it is one part. */
bool fsdpi_has_parts(fsdpi_pattern pattern);

/** The whole vector as one block. */
fsdpi_block fsdpi_whole_block(const fsdp_request *request, fsdpi_pattern pattern);

/** The block of a number. False behind the last. */
bool fsdpi_block_at(const fsdp_request *request, fsdpi_pattern pattern, size_t number, fsdpi_block *b);

/** What of a part is in a block; the same where the part is known; and its ELEMENTS alone. */
fsdpi_slice fsdpi_window_of(const fsdp_request *request, fsdpi_pattern pattern, const fsdpi_block *b, size_t part);
fsdpi_slice fsdpi_window_in(const fsdpi_block *b, size_t part, fsdpi_slice slice);
size_t      fsdpi_window_count(const fsdp_request *request, fsdpi_pattern pattern, const fsdpi_block *b, size_t part);

/** ELEMENTS that stand before a part in the packed block, and in all of it. */
size_t fsdpi_packed_before(const fsdp_request *request, fsdpi_pattern pattern, const fsdpi_block *b, size_t part);
size_t fsdpi_packed_count(const fsdp_request *request, fsdpi_pattern pattern, const fsdpi_block *b);

/** ELEMENTS of the largest part. */
size_t fsdpi_largest_part(const fsdp_request *request, fsdpi_pattern pattern);

/** BYTES of a block that slots, and records, of a lane have room for. */
size_t fsdpi_block_capacity(const fsdpi_lane *lane);

#endif
