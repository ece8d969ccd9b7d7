#include "collectives/blocks/windows.h"

#include "collectives/blocks/ops.h"
#include "lib/context/context.h"
#include "lib/sync/exchange.h"

bool fsdpi_has_parts(fsdpi_pattern pattern)
{
    return pattern == FSDPI_GATHER || pattern == FSDPI_SCATTER || pattern == FSDPI_TRANSPOSE;
}

static size_t n_parts(const fsdp_request *request, fsdpi_pattern pattern)
{
    return fsdpi_has_parts(pattern) ? (size_t)request->ctx->size : 1;
}

static fsdpi_slice part_of(const fsdp_request *request, fsdpi_pattern pattern, size_t part)
{
    return fsdpi_has_parts(pattern) ? fsdpi_slice_of(request, (int)part) : (fsdpi_slice){0, request->call.count};
}

size_t fsdpi_largest_part(const fsdp_request *request, fsdpi_pattern pattern)
{
    return fsdpi_has_parts(pattern) ? fsdpi_largest_slice(request) : request->call.count;
}

fsdpi_block fsdpi_whole_block(const fsdp_request *request, fsdpi_pattern pattern)
{
    return (fsdpi_block){.n = n_parts(request, pattern), .count = fsdpi_largest_part(request, pattern)};
}

/* Without the ELEMENTS that come before the block. */
static size_t count_in(const fsdpi_block *b, size_t count)
{
    const size_t skip = b->from < count ? b->from : count;

    return count - skip < b->count ? count - skip : b->count;
}

fsdpi_slice fsdpi_window_in(const fsdpi_block *b, size_t part, fsdpi_slice slice)
{
    if (part < b->first || part >= b->first + b->n) {
        return (fsdpi_slice){slice.begin, 0};
    }
    return (fsdpi_slice){.begin = slice.begin + (b->from < slice.count ? b->from : slice.count),
                         .count = count_in(b, slice.count)};
}

fsdpi_slice fsdpi_window_of(const fsdp_request *request, fsdpi_pattern pattern, const fsdpi_block *b, size_t part)
{
    return fsdpi_window_in(b, part, part_of(request, pattern, part));
}

size_t fsdpi_window_count(const fsdp_request *request, fsdpi_pattern pattern, const fsdpi_block *b, size_t part)
{
    if (part < b->first || part >= b->first + b->n) {
        return 0;
    }
    return count_in(b, fsdpi_has_parts(pattern) ? fsdpi_count_of(request, (int)part) : request->call.count);
}

size_t fsdpi_packed_before(const fsdp_request *request, fsdpi_pattern pattern, const fsdpi_block *b, size_t part)
{
    const size_t end    = part < b->first + b->n ? part : b->first + b->n;
    size_t       before = 0;

    if (request->call.division == FSDPI_DIVISION_EQUAL && fsdpi_has_parts(pattern)) {
        return end > b->first ? (end - b->first) * count_in(b, request->call.count) : 0;
    }
    for (size_t s = b->first; s < end; s++) {
        before += fsdpi_window_count(request, pattern, b, s);
    }
    return before;
}

size_t fsdpi_packed_count(const fsdp_request *request, fsdpi_pattern pattern, const fsdpi_block *b)
{
    return fsdpi_packed_before(request, pattern, b, b->first + b->n);
}

size_t fsdpi_block_capacity(const fsdpi_lane *lane)
{
    const size_t slot = fsdpi_slot_capacity(&lane->box);

    if (lane->box.nodes->count == 1) {
        return slot;
    }
    return slot < fsdpi_exchange_capacity(&lane->exchange) ? slot : fsdpi_exchange_capacity(&lane->exchange);
}

/* BYTES that a block may have. */
static size_t block_bytes(const fsdp_request *request)
{
    const size_t room = fsdpi_block_capacity(request->lane), most = fsdpi_blocks_ops_of(request)->most_bytes;

    return room < most ? room : most;
}

/* Blocks take a window of all parts, or, if these are too many, of some. */
bool fsdpi_block_at(const fsdp_request *request, fsdpi_pattern pattern, size_t number, fsdpi_block *b)
{
    const size_t room    = block_bytes(request) / request->call.width;
    const size_t parts   = n_parts(request, pattern);
    const size_t largest = fsdpi_largest_part(request, pattern);
    const size_t at_once = parts < room ? parts : room;
    const size_t count   = room / at_once < largest ? room / at_once : largest;

    if (largest == 0) {
        return false;
    }
    const size_t windows = largest / count + (largest % count != 0);
    b->from              = number % windows * count;
    b->count             = count;
    b->first             = number / windows * at_once;
    b->n                 = b->first < parts && parts - b->first < at_once ? parts - b->first : at_once;
    return b->first < parts;
}
