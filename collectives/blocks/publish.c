#include "collectives/blocks/publish.h"

#include "collectives/reach/mover.h"

/* ---- into a slot ------------------------------------------------------------------------------------------------- */

bool fsdpi_publishes(const fsdp_request *request, fsdpi_pattern pattern)
{
    const bool is_root = request->ctx->rank == request->call.root;

    if (pattern == FSDPI_TO_ROOT) {
        return !is_root || request->ctx->nodes.count > 1; /* its leader needs it then */
    }
    return pattern != FSDPI_FROM_ROOT || is_root;
}

static void copy_window(fsdp_request *request, unsigned char *to, const unsigned char *from, fsdpi_slice w)
{
    if (w.count > 0) {
        fsdpi_mover_of(request)->move(request, to, from + w.begin * request->call.width, w.count * request->call.width);
    }
}

static void publish_parts(fsdp_request *request, fsdpi_pattern pattern, const fsdpi_block *b, unsigned char *to)
{
    const fsdp_context *ctx  = request->ctx;
    const bool          keep = ctx->nodes.count == 1; /* then nobody else needs this rank's own part */

    for (size_t s = b->first; s < b->first + b->n; s++) {
        const fsdpi_slice w = fsdpi_window_of(request, pattern, b, s);

        if (!keep || s != (size_t)ctx->rank || pattern == FSDPI_COMBINE || !fsdpi_has_parts(pattern)) {
            copy_window(request, to, request->call.in, w);
        }
        to += w.count * request->call.width;
    }
}

void fsdpi_publish(fsdp_request *request, fsdpi_pattern pattern, const fsdpi_block *b, unsigned char *slot)
{
    const fsdpi_call *call = &request->call;

    if (!fsdpi_publishes(request, pattern)) {
        return;
    }
    if (pattern != FSDPI_GATHER) {
        publish_parts(request, pattern, b, slot);
        return;
    }
    const fsdpi_slice mine = fsdpi_slice_of(request, request->ctx->rank);
    fsdpi_slice       w    = fsdpi_window_of(request, pattern, b, (size_t)request->ctx->rank);
    w.begin -= mine.begin; /* the input is the part alone */
    copy_window(request, slot, call->in, w);
}

/* ---- from slots into a record ------------------------------------------------------------------------------------ */

/* The partial reduction over the ranks of this node of the first `count` elements of their packed blocks. */
static void reduce_node(const fsdpi_published *from, size_t count, unsigned char *to)
{
    fsdp_request       *request = from->request;
    const fsdp_context *ctx     = request->ctx;
    const fsdp_redop    op      = request->call.op == FSDP_AVG ? FSDP_SUM : request->call.op;

    for (int p = 0; p < ctx->nodes.size; p++) {
        ctx->operands[p] = fsdpi_published_by(from, p);
    }
    fsdpi_mover_of(request)->reduce(request, to, (size_t)ctx->nodes.size, count, op, 1);
}

size_t fsdpi_gathered_bytes(const fsdp_request *request, const fsdpi_block *b, int node)
{
    const fsdpi_nodes *nodes = &request->ctx->nodes;
    size_t             count = 0;

    for (int p = 0; p < fsdpi_node_size(nodes, node); p++) {
        count += fsdpi_window_count(request, FSDPI_GATHER, b, (size_t)fsdpi_rank_at(nodes, node, p));
    }
    return count * request->call.width;
}

fsdpi_slice fsdpi_needed_by(const fsdp_request *request, const fsdpi_block *b, int node)
{
    const fsdpi_nodes *nodes = &request->ctx->nodes;
    const size_t       first = (size_t)fsdpi_rank_at(nodes, node, 0);
    const size_t       last  = (size_t)fsdpi_rank_at(nodes, node, fsdpi_node_size(nodes, node) - 1);
    const size_t       begin = fsdpi_packed_before(request, FSDPI_SCATTER, b, first);

    return (fsdpi_slice){begin, fsdpi_packed_before(request, FSDPI_SCATTER, b, last + 1) - begin};
}

static size_t record_gathered(const fsdpi_published *from, const fsdpi_block *b, unsigned char *payload)
{
    fsdp_request      *request = from->request;
    const fsdpi_nodes *nodes   = &request->ctx->nodes;
    size_t             bytes   = 0;

    for (int p = 0; p < nodes->size; p++) {
        const size_t rank = (size_t)fsdpi_rank_at(nodes, nodes->mine, p);
        const size_t n    = fsdpi_window_count(request, FSDPI_GATHER, b, rank) * request->call.width;
        if (n > 0) {
            fsdpi_mover_of(request)->move(request, payload + bytes, fsdpi_published_by(from, p), n);
        }
        bytes += n;
    }
    return bytes;
}

size_t fsdpi_fill_record(const fsdpi_published *from, fsdpi_pattern pattern, const fsdpi_block *b,
                         unsigned char *payload)
{
    fsdp_request      *request = from->request;
    const fsdpi_call  *call    = &request->call;
    const fsdpi_nodes *nodes   = &request->ctx->nodes;

    if (pattern == FSDPI_GATHER) {
        return record_gathered(from, b, payload);
    }
    const size_t count = fsdpi_packed_count(request, pattern, b);
    if (pattern == FSDPI_FROM_ROOT) {
        if (count > 0 && fsdpi_is_on_node(nodes, call->root)) {
            fsdpi_mover_of(request)->move(request, payload,
                                          fsdpi_published_by(from, fsdpi_position_of(nodes, call->root)),
                                          count * request->call.width);
        }
    } else if (count > 0) {
        reduce_node(from, count, payload);
    }
    return count * request->call.width;
}
