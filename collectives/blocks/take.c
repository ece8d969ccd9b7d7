#include "collectives/blocks/take.h"

#include "collectives/reach/mover.h"
#include "lib/sync/exchange.h"
#include "lib/sync/pairs.h"

/*
 * Where two ranks are nodes that exchange in pairs, what is longer than a message of its own has come straight into the output.
 * NULL: anything else has not.
 */
void *fsdpi_place_in_result(const fsdp_request *request, fsdpi_pattern pattern, int node)
{
    const fsdp_context *ctx = request->ctx;

    if (pattern != FSDPI_GATHER || ctx->nodes.size > 1 || fsdpi_node_size(&ctx->nodes, node) > 1) {
        return NULL;
    }
    const fsdpi_slice part = fsdpi_slice_of(request, fsdpi_rank_at(&ctx->nodes, node, 0));

    return part.count * request->call.width <= fsdpi_pairs_together(&request->lane->exchange)
               ? NULL
               : (unsigned char *)request->call.out + part.begin * request->call.width;
}

/* Sets ctx->operands to what each node has sent. */
static void find_portions(fsdp_request *request, fsdpi_pattern pattern)
{
    const fsdp_context *ctx = request->ctx;

    for (int m = 0; m < ctx->nodes.count; m++) {
        const void *placed = m != ctx->nodes.mine ? fsdpi_place_in_result(request, pattern, m) : NULL;

        ctx->operands[m] = placed != NULL ? placed : fsdpi_pairs_payload(&request->lane->exchange, m);
    }
    if (ctx->nodes.size == 1) {
        ctx->operands[ctx->nodes.mine] = request->call.in;
    }
}

/* Sets ctx->operands to the payload of each node's record, in one walk over them. */
static void find_records(const fsdpi_published *from, fsdpi_pattern pattern)
{
    fsdp_request            *request = from->request;
    const fsdp_context      *ctx     = request->ctx;
    const fsdpi_record_head *record  = fsdpi_exchange_first(&request->lane->exchange);

    if (from->in_pairs) {
        find_portions(request, pattern);
        return;
    }

    for (int place = 0; place < ctx->nodes.count; place++) {
        ctx->operands[fsdpi_exchange_node(&request->lane->exchange, place)] =
            fsdpi_mover_of(request)->in_mailbox(request, (void *)(uintptr_t)(record + 1));
        record = fsdpi_record_behind(record);
    }
}

/* Where the next BYTES of another node's record lie: it has the parts of its ranks in their order. */
static const unsigned char *next_of_record(const fsdp_context *ctx, int node, size_t bytes)
{
    const unsigned char *data = ctx->operands[node];

    ctx->operands[node] = data + bytes;
    return data;
}

static void take_gathered(const fsdpi_published *from, const fsdpi_block *b)
{
    fsdp_request       *request = from->request;
    const fsdp_context *ctx     = request->ctx;
    const fsdpi_nodes  *nodes   = &ctx->nodes;
    unsigned char      *out     = request->call.out;
    const size_t        width   = request->call.width;
    fsdpi_slice         part    = fsdpi_slice_of(request, (int)b->first);

    if (nodes->count > 1) {
        find_records(from, FSDPI_GATHER);
    }
    for (size_t s = b->first; s < b->first + b->n; s++) {
        part                      = s > b->first ? fsdpi_next_slice(request, part, (int)s) : part;
        const int            node = nodes->node_of[s];
        const fsdpi_slice    w    = fsdpi_window_in(b, s, part);
        const unsigned char *data;

        if (w.count == 0) {
            continue;
        }
        if (s == (size_t)ctx->rank) {
            data = (const unsigned char *)request->call.in + (w.begin - part.begin) * width;
        } else if (node == nodes->mine) {
            data = fsdpi_published_by(from, nodes->position_of[s]);
        } else {
            data = next_of_record(ctx, node, w.count * width);
        }
        if (data != out + w.begin * width) {
            fsdpi_mover_of(request)->copy(request, out + w.begin * width, data, w.count * width);
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

/*
 * Reduces elements of a block, `offset` into it, from all ranks: over the node, or over the records of the nodes. What came in
 * pairs begins `skipped` into the block.
 */
static void take_reduced(const fsdpi_published *from, size_t offset, size_t skipped, size_t count,
                         const unsigned char *own, unsigned char *to)
{
    fsdp_request       *request = from->request;
    const fsdp_context *ctx     = request->ctx;
    const fsdpi_call   *call    = &request->call;

    if (count == 0) {
        return;
    }
    if (ctx->nodes.count == 1) {
        reduce_node(from, offset, count, own, to);
        return;
    }
    find_records(from, FSDPI_COMBINE);
    for (int m = 0; m < ctx->nodes.count; m++) {
        const size_t begin = from->in_pairs && m != ctx->nodes.mine ? skipped : 0;
        ctx->operands[m]   = (const unsigned char *)ctx->operands[m] + (offset - begin) * request->call.width;
    }
    fsdpi_mover_of(request)->reduce(request, to, (size_t)ctx->nodes.count, count, call->op, (size_t)ctx->size);
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
        const unsigned char *data  = (size_t)q == me ? (const unsigned char *)request->call.in + begin
                                                     : fsdpi_published_by(from, ctx->nodes.position_of[q]) + offset;
        if (data != out + begin) {
            fsdpi_mover_of(request)->move(request, out + begin, data, bytes);
        }
    }
}

static const unsigned char *data_of_root(const fsdpi_published *from)
{
    fsdp_request       *request = from->request;
    const fsdp_context *ctx     = request->ctx;
    const int           node    = ctx->nodes.node_of[request->call.root];

    if (node == ctx->nodes.mine) {
        return fsdpi_published_by(from, ctx->nodes.position_of[request->call.root]);
    }
    find_records(from, FSDPI_FROM_ROOT);
    return ctx->operands[node];
}

static void take_from_root(const fsdpi_published *from, const fsdpi_block *b)
{
    fsdp_request       *request = from->request;
    const fsdp_context *ctx     = request->ctx;
    const int           root    = request->call.root;
    const fsdpi_slice   w       = fsdpi_window_of(request, FSDPI_FROM_ROOT, b, 0);

    if (ctx->rank != root && w.count > 0) {
        fsdpi_mover_of(request)->move(request, (unsigned char *)request->call.out + w.begin * request->call.width,
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
