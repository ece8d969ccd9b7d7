#include "collectives/blocks/take.h"

#include <stdbool.h>

#include "collectives/blocks/transposed.h"
#include "collectives/reach/mover.h"
#include "lib/sync/exchange.h"
#include "lib/sync/pairs.h"

/* Whether what a rank sends another one has its place in the output; in place, what others have not been sent yet may lie there. */
static bool comes_in_parts(const fsdp_request *request, fsdpi_pattern pattern)
{
    return pattern == FSDPI_GATHER || (pattern == FSDPI_TRANSPOSE && request->call.in != request->call.out);
}

/* Only where both ranks are nodes. */
void *fsdpi_place_in_result(const fsdp_request *request, fsdpi_pattern pattern, int node)
{
    const fsdp_context *ctx = request->ctx;

    if (!comes_in_parts(request, pattern) || ctx->nodes.size > 1 || fsdpi_node_size(&ctx->nodes, node) > 1) {
        return NULL;
    }
    const fsdpi_slice part = fsdpi_slice_of(request, fsdpi_rank_at(&ctx->nodes, node, 0));

    return (unsigned char *)request->call.out + part.begin * request->call.width;
}

/* Where it has come to, if that is in the output; else NULL. */
static void *placed_in_result(const fsdp_request *request, fsdpi_pattern pattern, int node)
{
    const fsdpi_nodes *nodes = &request->ctx->nodes;
    void              *place = fsdpi_place_in_result(request, pattern, node);
    const size_t       count = place != NULL ? fsdpi_slice_of(request, fsdpi_rank_at(nodes, node, 0)).count : 0;

    return fsdpi_came_to_result(request, count * request->call.width) ? place : NULL;
}

/* Sets ctx->operands to what each node has sent. */
static void find_portions(fsdp_request *request, fsdpi_pattern pattern)
{
    const fsdp_context *ctx = request->ctx;

    for (int m = 0; m < ctx->nodes.count; m++) {
        const void *placed = m != ctx->nodes.mine ? placed_in_result(request, pattern, m) : NULL;

        ctx->operands[m] = placed != NULL ? placed : fsdpi_pairs_payload(&request->lane->exchange, m);
    }
    if (ctx->nodes.size == 1) {
        ctx->operands[ctx->nodes.mine] = request->call.in;
    }
}

/* Sets ctx->operands to the payloads of the records of some nodes, in one walk over those of all. */
static void find_records(fsdp_request *request, int first, int n)
{
    const fsdp_context      *ctx    = request->ctx;
    const fsdpi_record_head *record = fsdpi_exchange_first(&request->lane->exchange);

    for (int place = 0; place < ctx->nodes.count; place++) {
        const int node = fsdpi_exchange_node(&request->lane->exchange, place);

        if (node >= first && node < first + n) {
            ctx->operands[node - first] = fsdpi_mover_of(request)->in_mailbox(request, (void *)(uintptr_t)(record + 1));
        }
        record = fsdpi_record_behind(record);
    }
}

/* The payload of a node's record, where all nodes send equally much: of all patterns but gathers. */
static const unsigned char *payload_of(const fsdp_request *request, int node)
{
    const fsdpi_nodes       *nodes = &request->ctx->nodes;
    const fsdpi_record_head *own   = fsdpi_exchange_first(&request->lane->exchange);
    const size_t             place = (size_t)((node - nodes->mine + nodes->count) % nodes->count);
    const unsigned char     *head  = (const unsigned char *)own + place * fsdpi_record_bytes(own);

    return fsdpi_mover_of(request)->in_mailbox(request, (void *)(uintptr_t)(head + sizeof *own));
}

/* Where the next BYTES of another node's record lie: it has the parts of its ranks in their order. */
static const unsigned char *next_of_record(const fsdp_context *ctx, int operand, size_t bytes)
{
    const unsigned char *data = ctx->operands[operand];

    ctx->operands[operand] = data + bytes;
    return data;
}

/* Whether any part of a block is of one of some nodes. */
static bool has_part_of(const fsdpi_nodes *nodes, const fsdpi_block *b, int first, int n)
{
    for (size_t s = b->first; s < b->first + b->n; s++) {
        const int node = fsdpi_node_of(nodes, (int)s);

        if (node >= first && node < first + n) {
            return true;
        }
    }
    return false;
}

/* The parts of the ranks of some nodes, whose payloads are ctx->operands. */
static void take_parts_of(const fsdpi_published *from, const fsdpi_block *b, int first, int n)
{
    fsdp_request       *request = from->request;
    const fsdp_context *ctx     = request->ctx;
    unsigned char      *out     = request->call.out;
    const size_t        width   = request->call.width;
    fsdpi_slice         part    = fsdpi_slice_of(request, (int)b->first);

    for (size_t s = b->first; s < b->first + b->n; s++) {
        part                      = s > b->first ? fsdpi_next_slice(request, part, (int)s) : part;
        const fsdpi_seated   seat = fsdpi_roster_seated(&ctx->nodes.roster, (int)s);
        const fsdpi_slice    w    = fsdpi_window_in(b, s, part);
        const unsigned char *data;

        if (w.count == 0 || seat.node < first || seat.node >= first + n) {
            continue;
        }
        if (s == (size_t)ctx->rank) {
            data = (const unsigned char *)request->call.in + (w.begin - part.begin) * width;
        } else if (seat.node == ctx->nodes.mine) {
            data = fsdpi_published_by(from, seat.position);
        } else {
            data = next_of_record(ctx, seat.node - first, w.count * width);
        }
        if (data != out + w.begin * width) {
            fsdpi_mover_of(request)->copy(request, out + w.begin * width, data, w.count * width);
        }
    }
}

/* As many nodes at a time as there are operands. */
static void take_gathered(const fsdpi_published *from, const fsdpi_block *b)
{
    fsdp_request      *request = from->request;
    const fsdpi_nodes *nodes   = &request->ctx->nodes;
    const int          most    = fsdpi_operands(request->ctx->size);

    if (nodes->count == 1 || from->in_pairs) {
        if (nodes->count > 1) {
            find_portions(request, FSDPI_GATHER);
        }
        take_parts_of(from, b, 0, nodes->count);
        return;
    }
    for (int first = 0; first < nodes->count; first += most) {
        const int n = nodes->count - first < most ? nodes->count - first : most;

        if (n == nodes->count || has_part_of(nodes, b, first, n)) {
            find_records(request, first, n);
            take_parts_of(from, b, first, n);
        }
    }
}

/* Reduces elements `offset` into the blocks of this node's ranks. This rank has not published its own: they are at `own`. */
static void reduce_node(const fsdpi_published *from, size_t offset, size_t count, const unsigned char *own,
                        unsigned char *to)
{
    fsdp_request       *request = from->request;
    const fsdp_context *ctx     = request->ctx;

    for (int p = 0; p < ctx->nodes.size; p++) {
        ctx->operands[p] = p == ctx->nodes.position ? own : fsdpi_published_by(from, p) + offset * request->call.width;
    }
    fsdpi_mover_of(request)->reduce_result(request, to, (size_t)ctx->nodes.size, count, request->call.op,
                                           (size_t)ctx->size);
}

/* What came in pairs begins `skipped` into the block. */
static void reduce_portions(fsdp_request *request, size_t offset, size_t skipped, size_t count, unsigned char *to)
{
    const fsdp_context *ctx = request->ctx;

    find_portions(request, FSDPI_COMBINE);
    for (int m = 0; m < ctx->nodes.count; m++) {
        const size_t begin = m != ctx->nodes.mine ? skipped : 0;
        ctx->operands[m]   = (const unsigned char *)ctx->operands[m] + (offset - begin) * request->call.width;
    }
    fsdpi_mover_of(request)->reduce(request, to, (size_t)ctx->nodes.count, count, request->call.op, (size_t)ctx->size);
}

/* Until the last step a mean is a sum. */
static fsdp_redop op_of(const fsdp_request *request, bool is_last)
{
    return request->call.op == FSDP_AVG && !is_last ? FSDP_SUM : request->call.op;
}

/* As many nodes at a time as there are operands; the first of the next ones is the result so far, which has the same bits. */
static void reduce_records(fsdp_request *request, size_t offset, size_t count, unsigned char *to)
{
    const fsdp_context *ctx   = request->ctx;
    const int           nodes = ctx->nodes.count;
    int                 n = 0, most = fsdpi_operands(ctx->size);

    for (int m = 0; m < nodes; m++) {
        ctx->operands[n++] = payload_of(request, m) + offset * request->call.width;
        if (n == most || m + 1 == nodes) {
            fsdpi_mover_of(request)->reduce(request, to, (size_t)n, count, op_of(request, m + 1 == nodes),
                                            (size_t)ctx->size);
            ctx->operands[0] = to;
            n                = 1;
        }
    }
}

/* Elements that are rounded once, on the host: the sum so far is kept in f32. */
static void reduce_wide_records(fsdp_request *request, size_t offset, size_t count, unsigned char *to)
{
    enum { AT_ONCE = 256 };
    const fsdpi_mover *mover = fsdpi_mover_of(request);
    const int          nodes = request->ctx->nodes.count;
    const size_t       width = request->call.width;
    float              sum[AT_ONCE], next[AT_ONCE];
    const void *const  both[] = {sum, next};

    for (size_t begin = 0; begin < count; begin += AT_ONCE) {
        const size_t n = count - begin < AT_ONCE ? count - begin : AT_ONCE;

        mover->widen(request, sum, payload_of(request, 0) + (offset + begin) * width, n);
        for (int m = 1; m < nodes; m++) {
            mover->widen(request, next, payload_of(request, m) + (offset + begin) * width, n);
            mover->reduce_wide(request, sum, both, 2, n, op_of(request, m + 1 == nodes), (size_t)request->ctx->size);
        }
        mover->narrow(request, to + begin * width, sum, n);
    }
}

static bool is_rounded_once(const fsdp_request *request)
{
    return request->call.dtype == FSDP_BF16 || request->call.dtype == FSDP_F16;
}

/*
 * Reduces elements of a block, `offset` into it, from all ranks: over the node, or over the records of the nodes. What came in
 * pairs begins `skipped` into the block.
 */
static void take_reduced(const fsdpi_published *from, size_t offset, size_t skipped, size_t count,
                         const unsigned char *own, unsigned char *to)
{
    fsdp_request       *request = from->request;
    const fsdp_context *ctx     = request->ctx;

    if (count == 0) {
        return;
    }
    if (ctx->nodes.count == 1) {
        reduce_node(from, offset, count, own, to);
    } else if (from->in_pairs) {
        reduce_portions(request, offset, skipped, count, to);
    } else if (ctx->nodes.count > fsdpi_operands(ctx->size) && is_rounded_once(request) && !request->call.on_device) {
        reduce_wide_records(request, offset, count, to);
    } else {
        reduce_records(request, offset, count, to);
    }
}

/* In place the result waits in this rank's own part of the input, which nobody else reads; see fsdpi_own_result(). */
static void take_own_part(const fsdpi_published *from, const fsdpi_block *b)
{
    fsdp_request     *request = from->request;
    const int         me      = request->ctx->rank;
    const fsdpi_slice w       = fsdpi_window_of(request, FSDPI_SCATTER, b, (size_t)me);
    const size_t      offset  = fsdpi_packed_before(request, FSDPI_SCATTER, b, (size_t)me);
    const size_t      width   = request->call.width;
    const size_t      inside  = w.begin - fsdpi_slice_of(request, me).begin;

    if (w.count > 0) {
        const size_t skipped = from->in_pairs ? fsdpi_needed_by(request, b, request->ctx->nodes.mine).begin : 0;
        take_reduced(from, offset, skipped, w.count, (const unsigned char *)request->call.in + w.begin * width,
                     fsdpi_own_result(request) + inside * width);
    }
}

/* What a rank has for this one; `offset` BYTES into its input. */
static const unsigned char *transposed_by(const fsdpi_published *from, int rank, size_t offset)
{
    const fsdpi_nodes *nodes = &from->request->ctx->nodes;
    const fsdpi_seated seat  = fsdpi_roster_seated(&nodes->roster, rank);

    if (nodes->count == 1 || seat.node == nodes->mine) {
        return fsdpi_published_by(from, seat.position) + offset;
    }
    const void *placed = placed_in_result(from->request, FSDPI_TRANSPOSE, seat.node);
    return placed != NULL ? placed : fsdpi_transposed_from(from->request, seat);
}

static void take_transposed(const fsdpi_published *from, const fsdpi_block *b)
{
    fsdp_request       *request = from->request;
    const fsdp_context *ctx     = request->ctx;
    const size_t        me      = (size_t)ctx->rank;
    const fsdpi_slice   w       = fsdpi_window_of(request, FSDPI_TRANSPOSE, b, me);
    const size_t        offset  = fsdpi_packed_before(request, FSDPI_TRANSPOSE, b, me) * request->call.width;
    const size_t        bytes   = w.count * request->call.width;
    const size_t        inside  = (w.begin - fsdpi_slice_of(request, (int)me).begin) * request->call.width;
    unsigned char      *out     = request->call.out;

    if (bytes == 0) {
        return;
    }
    for (int q = 0; q < ctx->size; q++) {
        const size_t         begin = fsdpi_slice_of(request, q).begin * request->call.width + inside;
        const unsigned char *data =
            (size_t)q == me ? (const unsigned char *)request->call.in + begin : transposed_by(from, q, offset);
        if (data != out + begin) {
            fsdpi_mover_of(request)->place(request, out + begin, data, bytes);
        }
    }
}

static const unsigned char *data_of_root(const fsdpi_published *from)
{
    fsdp_request       *request = from->request;
    const fsdp_context *ctx     = request->ctx;
    const fsdpi_seated  seat    = fsdpi_roster_seated(&ctx->nodes.roster, request->call.root);

    if (seat.node == ctx->nodes.mine) {
        return fsdpi_published_by(from, seat.position);
    }
    return from->in_pairs ? fsdpi_pairs_payload(&request->lane->exchange, seat.node) : payload_of(request, seat.node);
}

static void take_from_root(const fsdpi_published *from, const fsdpi_block *b)
{
    fsdp_request       *request = from->request;
    const fsdp_context *ctx     = request->ctx;
    const int           root    = request->call.root;
    const fsdpi_slice   w       = fsdpi_window_of(request, FSDPI_FROM_ROOT, b, 0);

    if (ctx->rank != root && w.count > 0) {
        fsdpi_mover_of(request)->place(request, (unsigned char *)request->call.out + w.begin * request->call.width,
                                       data_of_root(from), w.count * request->call.width);
    }
}

void fsdpi_take(const fsdpi_published *from, fsdpi_pattern pattern, const fsdpi_block *b)
{
    fsdp_request     *request = from->request;
    const fsdpi_call *call    = &request->call;
    const fsdpi_slice w       = fsdpi_window_of(request, pattern, b, 0);
    const size_t      begin   = w.begin * request->call.width;

    switch (pattern) {
    case FSDPI_GATHER:
        take_gathered(from, b);
        break;
    case FSDPI_SCATTER:
        take_own_part(from, b);
        break;
    case FSDPI_COMBINE:
        take_reduced(from, 0, 0, w.count, (const unsigned char *)call->in + begin, (unsigned char *)call->out + begin);
        break;
    case FSDPI_TO_ROOT:
        if (request->ctx->rank == call->root) {
            take_reduced(from, 0, 0, w.count, (const unsigned char *)call->in + begin,
                         (unsigned char *)call->out + begin);
        }
        break;
    case FSDPI_FROM_ROOT:
        take_from_root(from, b);
        break;
    case FSDPI_TRANSPOSE:
        take_transposed(from, b);
        break;
    }
}
