#include "collectives/blocks/inline.h"

#include <string.h>

#include "collectives/blocks/publish.h"
#include "collectives/blocks/take.h"
#include "collectives/blocks/transposed.h"
#include "collectives/reach/mover.h"
#include "collectives/reach/pieces.h"
#include "lib/context/context.h"

/* Whether each rank is a node, whose number is the rank's. */
static bool ranks_are_nodes(const fsdp_request *request)
{
    return request->ctx->nodes.largest == 1;
}

/* BYTES of what a node sends another one at most, where these exchange in pairs and each is a rank. */
static size_t largest_portion(const fsdp_request *request, fsdpi_pattern pattern)
{
    return fsdpi_largest_part(request, pattern) * request->call.width;
}

bool fsdpi_fits_inline(const fsdp_request *request, fsdpi_pattern pattern)
{
    const fsdp_context *ctx   = request->ctx;
    const size_t        bytes = request->call.whole * request->call.width;

    if (ctx->nodes.count == 1 || !request->lane->exchange.in_pairs) {
        return bytes <= fsdpi_block_capacity(request->lane) && !(pattern == FSDPI_TRANSPOSE && ctx->nodes.count > 1);
    }
    const size_t slot = fsdpi_slot_capacity(&request->lane->box);
    const size_t most = request->lane->exchange.most;

    if (ranks_are_nodes(request)) {
        return largest_portion(request, pattern) <= most;
    }
    if (pattern == FSDPI_GATHER) { /* a slot has a rank's part, a record those of its node */
        const size_t part = fsdpi_largest_part(request, pattern) * request->call.width;

        return part <= slot && part * (size_t)ctx->nodes.largest <= most;
    }
    /* of an alltoall, the leader has what all ranks of its node send */
    const size_t ranks = pattern == FSDPI_TRANSPOSE ? (size_t)ctx->nodes.largest : 1;
    return bytes <= slot && bytes * ranks <= most;
}

/* Across nodes, nobody reads the slot of a rank that is a node where it sends its input as it is. */
static bool sends_input(const fsdp_request *request)
{
    return request->lane->exchange.in_pairs && request->ctx->nodes.size == 1;
}

/* Data that fits into the letter itself saves its readers a cache line. The same answer on all ranks. */
static bool fits_letter(const fsdp_request *request, fsdpi_pattern pattern)
{
    const size_t most = pattern == FSDPI_GATHER ? fsdpi_largest_part(request, pattern) : request->call.whole;

    return most * request->call.width <= FSDPI_SHORT_BYTES;
}

/*
 * A part for which MPI reads the sender's memory is sent from the result, into which it is copied when all have agreed: the receiver
 * finds it in the sender's caches, and the input is read from memory once, not twice. Where what is in those caches comes no faster
 * than from memory, that takes up to a third longer. An input that has just been read is in the receiver's caches already.
 */
static bool is_to_be_put_off(const fsdp_request *request, fsdpi_pattern pattern)
{
    enum { LEAST_BYTES = 32 << 10 };
    const fsdpi_call     *call     = &request->call;
    const fsdpi_link     *link     = &request->ctx->link;
    const fsdpi_exchange *exchange = &request->lane->exchange;
    const size_t          bytes    = call->in_bytes;

    return pattern == FSDPI_GATHER && bytes >= LEAST_BYTES && link->pulls && fsdpi_link_caches_are_faster(link) &&
           sends_input(request) && bytes > exchange->led_until && bytes > exchange->together &&
           !fsdpi_overlap(call->in, call->in_bytes, call->out, call->out_bytes) && request->is_cold;
}

unsigned fsdpi_publish_inline(fsdp_request *request, fsdpi_pattern pattern, fsdpi_letter *letter)
{
    unsigned char *to = fits_letter(request, pattern) ? letter->payload : (unsigned char *)(letter + 1);

    request->is_put_off = is_to_be_put_off(request, pattern);
    if (!sends_input(request) && fsdpi_publishes(request, pattern) && request->call.in_bytes > 0) {
        memcpy(to, request->call.in, request->call.in_bytes); /* the whole input, packed as it is */
    }
    return FSDPI_FLAG_OFFERED;
}

static fsdpi_published published(fsdp_request *request, fsdpi_pattern pattern)
{
    return (fsdpi_published){.request   = request,
                             .number    = request->number,
                             .in_letter = !sends_input(request) && fits_letter(request, pattern),
                             .in_pairs  = request->lane->exchange.in_pairs};
}

size_t fsdpi_record_inline(fsdp_request *request, fsdpi_pattern pattern, unsigned char *payload)
{
    const fsdpi_block     b    = fsdpi_whole_block(request, pattern);
    const fsdpi_published from = published(request, pattern);

    if (pattern == FSDPI_TRANSPOSE) {
        return ranks_are_nodes(request) ? 0 : fsdpi_fill_transposed(&from, payload);
    }
    return sends_input(request) ? 0 : fsdpi_fill_record(&from, pattern, &b, payload);
}

/* What the ranks of a node own, of the block that is everything. */
static fsdpi_slice needed_by(const fsdp_request *request, int node)
{
    if (ranks_are_nodes(request)) {
        return fsdpi_slice_of(request, node);
    }
    const fsdpi_block b = fsdpi_whole_block(request, FSDPI_SCATTER);

    return fsdpi_needed_by(request, &b, node);
}

/* BYTES that they bring. */
static size_t gathered_bytes(const fsdp_request *request, int node)
{
    if (ranks_are_nodes(request)) {
        return fsdpi_slice_of(request, node).count * request->call.width;
    }
    const fsdpi_block b = fsdpi_whole_block(request, FSDPI_GATHER);

    return fsdpi_gathered_bytes(request, &b, node);
}

/* Where this rank's part of a gathered result belongs. */
static unsigned char *own_place(const fsdp_request *request)
{
    return (unsigned char *)request->call.out + fsdpi_slice_of(request, request->ctx->rank).begin * request->call.width;
}

/*
 * What is on its way goes on meanwhile, unless this rank's core brings it: then what it has sent leaves while it copies, at the end.
 */
static bool is_copied_meanwhile(const fsdp_request *request)
{
    return fsdpi_pattern_of(request) == FSDPI_GATHER && !request->ctx->link.pulls && sends_input(request) &&
           ranks_are_nodes(request) && request->call.in != own_place(request);
}

void fsdpi_agreed_inline(fsdp_request *request)
{
    if (request->is_put_off) { /* into the caches, which the copies of our kernels may pass by */
        memcpy(own_place(request), request->call.in, request->call.in_bytes);
    } else if (is_copied_meanwhile(request)) {
        fsdpi_host_mover.place(request, own_place(request), request->call.in, request->call.in_bytes);
    } else {
        return;
    }
    request->is_copied = true;
}

fsdpi_portion fsdpi_portion_inline(fsdp_request *request, fsdpi_pattern pattern, int node)
{
    const fsdp_context  *ctx   = request->ctx;
    const fsdpi_nodes   *nodes = &ctx->nodes;
    const unsigned char *data =
        sends_input(request) ? request->call.in : fsdpi_pairs_payload(&request->lane->exchange, nodes->mine);
    const size_t width = request->call.width;

    switch (pattern) {
    case FSDPI_GATHER:
        return (fsdpi_portion){request->is_copied ? own_place(request) : data, gathered_bytes(request, nodes->mine)};
    case FSDPI_SCATTER: {
        const fsdpi_slice needed = needed_by(request, node);
        return (fsdpi_portion){data + needed.begin * width, needed.count * width};
    }
    case FSDPI_TO_ROOT:
        return (fsdpi_portion){data,
                               fsdpi_node_of(nodes, request->call.root) == node ? request->call.count * width : 0};
    case FSDPI_FROM_ROOT:
        return (fsdpi_portion){data, fsdpi_is_on_node(nodes, request->call.root) ? request->call.count * width : 0};
    case FSDPI_TRANSPOSE:
        return (fsdpi_portion){fsdpi_transposed_for(request, node), fsdpi_transposed_bytes(request, node)};
    default:
        return (fsdpi_portion){data, request->call.count * width};
    }
}

size_t fsdpi_expected_inline(const fsdp_request *request, fsdpi_pattern pattern, int node)
{
    const fsdpi_nodes *nodes = &request->ctx->nodes;
    const size_t       whole = request->call.count * request->call.width;

    switch (pattern) {
    case FSDPI_GATHER:
        return gathered_bytes(request, node);
    case FSDPI_SCATTER:
        return needed_by(request, nodes->mine).count * request->call.width;
    case FSDPI_TO_ROOT:
        return fsdpi_is_on_node(nodes, request->call.root) ? whole : 0;
    case FSDPI_FROM_ROOT:
        return fsdpi_node_of(nodes, request->call.root) == node ? whole : 0;
    case FSDPI_TRANSPOSE:
        return fsdpi_transposed_bytes(request, node);
    default:
        return whole;
    }
}

void *fsdpi_place_inline(const fsdp_request *request, fsdpi_pattern pattern, int node)
{
    return fsdpi_place_in_result(request, pattern, node);
}

/* ---- taking what training is made of: without windows and tables on one node, and where each rank is one ------------- */

static bool is_taken_straight(const fsdpi_published *from)
{
    return from->request->ctx->nodes.count == 1 || (from->in_pairs && ranks_are_nodes(from->request));
}

/* Where a peer's data lies, from so many BYTES of it on: those before are not sent from node to node. */
static const unsigned char *data_of(const fsdpi_published *from, int rank, size_t begin)
{
    if (from->in_pairs) {
        return fsdpi_pairs_payload(&from->request->lane->exchange, rank);
    }
    fsdpi_letter *letter = fsdpi_letter_of(&from->request->lane->box, rank, from->number);

    return (from->in_letter ? letter->payload : (const unsigned char *)(letter + 1)) + begin;
}

/* The part of a rank, which may have come straight to where it belongs. */
static const void *part_of(const fsdpi_published *from, int rank, size_t bytes)
{
    const bool  may_be_placed = from->in_pairs && fsdpi_came_to_result(from->request, bytes);
    const void *placed        = may_be_placed ? fsdpi_place_in_result(from->request, FSDPI_GATHER, rank) : NULL;

    return placed != NULL ? placed : data_of(from, rank, 0);
}

/* So few bytes are in the caches, and no kernel has to be asked how they are best copied. */
static void place(fsdp_request *request, void *to, const void *from, size_t bytes)
{
    enum { FEW_BYTES = 1024 };

    if (bytes <= FEW_BYTES) {
        memcpy(to, from, bytes);
    } else {
        fsdpi_host_mover.place(request, to, from, bytes);
    }
}

static void take_part(const fsdpi_published *from, int rank)
{
    fsdp_request     *request = from->request;
    const fsdpi_slice part    = fsdpi_slice_of(request, rank);
    const size_t      bytes   = part.count * request->call.width;
    unsigned char    *to      = (unsigned char *)request->call.out + part.begin * request->call.width;
    const bool        is_own  = rank == request->ctx->rank;
    const void       *data    = is_own ? request->call.in : part_of(from, rank, bytes);

    if (bytes > 0 && data != to && !(is_own && request->is_copied)) {
        place(request, to, data, bytes);
    }
}

static void take_reduction(const fsdpi_published *from, fsdpi_slice part, unsigned char *to)
{
    fsdp_request       *request = from->request;
    const fsdp_context *ctx     = request->ctx;
    const size_t        begin   = part.begin * request->call.width;

    if (part.count == 0) {
        return;
    }
    for (int r = 0; r < ctx->size; r++) {
        ctx->operands[r] = r == ctx->rank ? (const unsigned char *)request->call.in + begin : data_of(from, r, begin);
    }
    fsdpi_host_mover.reduce_result(request, to, (size_t)ctx->size, part.count, request->call.op, (size_t)ctx->size);
}

void fsdpi_take_inline(fsdp_request *request, fsdpi_pattern pattern)
{
    const fsdpi_published from     = published(request, pattern);
    const bool            straight = is_taken_straight(&from);

    if (straight && pattern == FSDPI_GATHER) {
        for (int r = 0; r < request->ctx->size; r++) {
            take_part(&from, r);
        }
    } else if (straight && pattern == FSDPI_SCATTER) {
        take_reduction(&from, fsdpi_slice_of(request, request->ctx->rank), fsdpi_own_result(request));
    } else if (straight && pattern == FSDPI_COMBINE) {
        take_reduction(&from, (fsdpi_slice){0, request->call.count}, request->call.out);
    } else {
        const fsdpi_block b = fsdpi_whole_block(request, pattern);
        fsdpi_take(&from, pattern, &b);
    }
}

fsdp_status fsdpi_leave_inline(fsdp_request *request, fsdpi_progress *progress)
{
    bool has_left = true;

    if (request->lane->messages.n > 0) {
        FSDP_TRY(fsdpi_messages_complete(&request->lane->messages, &has_left));
    }
    request->stage = has_left ? request->stage : 1;
    *progress      = has_left ? FSDPI_FINISHED : FSDPI_WAITING;
    return FSDP_OK;
}

static fsdp_status take_inline(fsdp_request *request, fsdpi_progress *progress)
{
    if (request->stage == 0) {
        fsdpi_take_inline(request, fsdpi_pattern_of(request));
    }
    return fsdpi_leave_inline(request, progress);
}

static void end(fsdp_request *request)
{
    if (fsdpi_pattern_of(request) == FSDPI_SCATTER) {
        fsdpi_settle(request);
    }
}

const fsdpi_algorithm fsdpi_inline = {
    .name = "inline", .advance = take_inline, .end = end, .is_short = true, .is_rider = true};
