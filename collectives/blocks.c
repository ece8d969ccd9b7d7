#include "collectives/blocks.h"

#include <string.h>

#include "collectives/arguments.h"
#include "collectives/reach.h"
#include "collectives/select.h"
#include "lib/context.h"
#include "lib/device/gpu_request.h"
#include "lib/exchange.h"

/* Up to how many ranks an allreduce has each rank reduce everything: the second pass that it saves costs more. */
enum { FEW_RANKS = 3 };

/* A block: the elements [from, from + count) of each of some parts, packed one behind the other. */
typedef struct block {
    size_t first, n; /* parts */
    size_t from, count;
} block;

/* ---- parts and blocks -------------------------------------------------------------------------------------------- */

static bool has_parts(fsdpi_pattern pattern)
{
    return pattern == FSDPI_GATHER || pattern == FSDPI_SCATTER || pattern == FSDPI_TRANSPOSE;
}

static size_t n_parts(const fsdp_request *request, fsdpi_pattern pattern)
{
    return has_parts(pattern) ? (size_t)request->ctx->size : 1;
}

static fsdpi_slice part_of(const fsdp_request *request, fsdpi_pattern pattern, size_t part)
{
    return has_parts(pattern) ? fsdpi_slice_of(request, (int)part) : (fsdpi_slice){0, request->call.count};
}

static size_t largest_part(const fsdp_request *request, fsdpi_pattern pattern)
{
    return has_parts(pattern) ? fsdpi_largest_slice(request) : request->call.count;
}

static block whole(const fsdp_request *request, fsdpi_pattern pattern)
{
    return (block){.n = n_parts(request, pattern), .count = largest_part(request, pattern)};
}

/* What of a part is in a block. */
static fsdpi_slice window(const fsdp_request *request, fsdpi_pattern pattern, const block *b, size_t part)
{
    fsdpi_slice  slice = part_of(request, pattern, part);
    const size_t skip  = b->from < slice.count ? b->from : slice.count;

    if (part < b->first || part >= b->first + b->n) {
        return (fsdpi_slice){slice.begin, 0};
    }
    slice.begin += skip;
    slice.count = slice.count - skip < b->count ? slice.count - skip : b->count;
    return slice;
}

/* ELEMENTS that stand before a part in the packed block. */
static size_t packed_before(const fsdp_request *request, fsdpi_pattern pattern, const block *b, size_t part)
{
    size_t before = 0;

    for (size_t s = b->first; s < part; s++) {
        before += window(request, pattern, b, s).count;
    }
    return before;
}

static size_t packed_count(const fsdp_request *request, fsdpi_pattern pattern, const block *b)
{
    return packed_before(request, pattern, b, b->first + b->n);
}

/* BYTES of a block that slots, and records, have room for. */
static size_t capacity(const fsdp_context *ctx)
{
    const size_t slot = fsdpi_slot_capacity(&ctx->box);

    if (ctx->nodes.count == 1) {
        return slot;
    }
    return slot < fsdpi_exchange_capacity(ctx) ? slot : fsdpi_exchange_capacity(ctx);
}

/* BYTES that a block may have: on the host, so that it stays in the cache. */
static size_t block_bytes(const fsdp_request *request)
{
    const size_t most = capacity(request->ctx);

    return request->call.on_device || most < FSDPI_BLOCK_BYTES ? most : FSDPI_BLOCK_BYTES;
}

/* The block of a number. False behind the last. Blocks take a window of all parts, or, if these are too many, of some. */
static bool block_at(const fsdp_request *request, fsdpi_pattern pattern, size_t number, block *b)
{
    const size_t room    = block_bytes(request) / request->call.width;
    const size_t parts   = n_parts(request, pattern);
    const size_t largest = largest_part(request, pattern);
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

/* ---- moving, on the host at once, on the GPU in the stream --------------------------------------------------------- */

static void move(fsdp_request *request, void *to, const void *from, size_t bytes)
{
    if (request->call.on_device) {
        fsdpi_gpu_move(request, to, from, bytes);
    } else {
        request->ctx->kernels->copy(to, from, bytes);
    }
}

/* Memory of the mailbox, where whoever computes sees it. */
static unsigned char *in_mailbox(const fsdp_request *request, void *memory)
{
    return request->call.on_device ? fsdpi_gpu_view(request->ctx, memory) : memory;
}

/* ---- publishing -------------------------------------------------------------------------------------------------- */

static bool publishes(const fsdp_request *request, fsdpi_pattern pattern)
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
        move(request, to, from + w.begin * request->call.width, w.count * request->call.width);
    }
}

static void publish_parts(fsdp_request *request, fsdpi_pattern pattern, const block *b, unsigned char *to)
{
    const fsdp_context *ctx  = request->ctx;
    const bool          keep = ctx->nodes.count == 1; /* then nobody else needs this rank's own part */

    for (size_t s = b->first; s < b->first + b->n; s++) {
        const fsdpi_slice w = window(request, pattern, b, s);

        if (!keep || s != (size_t)ctx->rank || pattern == FSDPI_COMBINE || !has_parts(pattern)) {
            copy_window(request, to, request->call.in, w);
        }
        to += w.count * request->call.width;
    }
}

static void publish(fsdp_request *request, fsdpi_pattern pattern, const block *b, unsigned char *to)
{
    const fsdpi_call *call = &request->call;

    if (!publishes(request, pattern)) {
        return;
    }
    if (pattern != FSDPI_GATHER) {
        publish_parts(request, pattern, b, to);
        return;
    }
    const fsdpi_slice mine = fsdpi_slice_of(request, request->ctx->rank);
    fsdpi_slice       w    = window(request, pattern, b, (size_t)request->ctx->rank);
    w.begin -= mine.begin; /* the input is the part alone */
    copy_window(request, to, call->in, w);
}

/* ---- what other nodes need --------------------------------------------------------------------------------------- */

typedef struct source {
    fsdp_request *request;
    uint64_t      number; /* of the letters that carry the block */
    bool          in_letter;
} source;

static const unsigned char *published(const source *from, int position)
{
    const fsdpi_mailbox *box = &from->request->ctx->box;

    if (from->request->call.on_device) {
        return fsdpi_gpu_slot(from->request->ctx, position, from->number);
    }
    return from->in_letter ? fsdpi_letter_of(box, position, from->number)->payload
                           : fsdpi_slot_of(box, position, from->number);
}

/* The reduction over the ranks of this node of `count` elements, from an offset into their packed blocks. */
static void reduce_node(const source *from, fsdp_redop op, size_t divisor, size_t offset, size_t count,
                        const unsigned char *own, unsigned char *to)
{
    fsdp_request       *request = from->request;
    const fsdp_context *ctx     = request->ctx;

    for (int p = 0; p < ctx->nodes.size; p++) {
        ctx->operands[p] =
            own != NULL && p == ctx->nodes.position ? own : published(from, p) + offset * request->call.width;
    }
    if (own == NULL || request->call.on_device || !fsdpi_is_large(request)) {
        fsdpi_reduce_operands(request, to, (size_t)ctx->nodes.size, count, op, divisor);
    } else {
        void *const out = to;
        ctx->kernels->reduce_into(&out, 1, ctx->operands, (size_t)ctx->nodes.size, count, request->call.dtype, op,
                                  divisor, 1);
    }
}

static fsdp_redop partial_op(fsdp_redop op)
{
    return op == FSDP_AVG ? FSDP_SUM : op;
}

/* Parts of ranks of one node in a block, packed in rank order: BYTES before that of `rank`, or of all if it is -1. */
static size_t gathered_before(const fsdp_request *request, const block *b, int node, int rank)
{
    const fsdpi_nodes *nodes = &request->ctx->nodes;
    size_t             count = 0;

    for (int p = 0; p < fsdpi_node_size(nodes, node); p++) {
        const int r = fsdpi_rank_at(nodes, node, p);
        if (r == rank) {
            break;
        }
        count += window(request, FSDPI_GATHER, b, (size_t)r).count;
    }
    return count * request->call.width;
}

static size_t record_gathered(const source *from, const block *b, unsigned char *payload)
{
    fsdp_request      *request = from->request;
    const fsdpi_nodes *nodes   = &request->ctx->nodes;
    size_t             bytes   = 0;

    for (int p = 0; p < nodes->size; p++) {
        const size_t n =
            window(request, FSDPI_GATHER, b, (size_t)fsdpi_rank_at(nodes, nodes->mine, p)).count * request->call.width;
        if (n > 0) {
            move(request, payload + bytes, published(from, p), n);
        }
        bytes += n;
    }
    return bytes;
}

static size_t record(const source *from, fsdpi_pattern pattern, const block *b, unsigned char *payload)
{
    fsdp_request      *request = from->request;
    const fsdpi_call  *call    = &request->call;
    const fsdpi_nodes *nodes   = &request->ctx->nodes;
    const size_t       count   = packed_count(request, pattern, b);

    if (pattern == FSDPI_GATHER) {
        return record_gathered(from, b, payload);
    }
    if (pattern == FSDPI_FROM_ROOT) {
        if (count > 0 && nodes->node_of[call->root] == nodes->mine) {
            move(request, payload, published(from, nodes->position_of[call->root]), count * request->call.width);
        }
    } else if (count > 0) {
        reduce_node(from, partial_op(call->op), 1, 0, count, NULL, payload);
    }
    return count * request->call.width;
}

/* ---- taking ------------------------------------------------------------------------------------------------------ */

static const unsigned char *record_of(const fsdp_request *request, int node)
{
    const fsdpi_record_head *head = fsdpi_exchange_record(request->ctx, node);

    return in_mailbox(request, (void *)(uintptr_t)(head + 1));
}

static void take_gathered(const source *from, const block *b)
{
    fsdp_request       *request = from->request;
    const fsdp_context *ctx     = request->ctx;
    const fsdpi_nodes  *nodes   = &ctx->nodes;
    unsigned char      *out     = request->call.out;
    const size_t        width   = request->call.width;

    for (size_t s = b->first; s < b->first + b->n; s++) {
        const int            node = nodes->node_of[s];
        const fsdpi_slice    w    = window(request, FSDPI_GATHER, b, s);
        const unsigned char *data;

        if (w.count == 0) {
            continue;
        }
        if (s == (size_t)ctx->rank) {
            data =
                (const unsigned char *)request->call.in + (w.begin - fsdpi_slice_of(request, ctx->rank).begin) * width;
        } else if (node == nodes->mine) {
            data = published(from, nodes->position_of[s]);
        } else {
            data = record_of(request, node) + gathered_before(request, b, node, (int)s);
        }
        if (data != out + w.begin * width) {
            fsdpi_copy(request, out + w.begin * width, data, w.count * width);
        }
    }
}

/* Reduces elements of a block, `offset` into it, from all ranks: over the node, or over the records of the nodes. */
static void take_reduced(const source *from, size_t offset, size_t count, const unsigned char *own, unsigned char *to)
{
    fsdp_request       *request = from->request;
    const fsdp_context *ctx     = request->ctx;
    const fsdpi_call   *call    = &request->call;

    if (count == 0) {
        return;
    }
    if (ctx->nodes.count == 1) {
        reduce_node(from, call->op, (size_t)ctx->size, offset, count, own, to);
        return;
    }
    for (int m = 0; m < ctx->nodes.count; m++) {
        ctx->operands[m] = record_of(request, m) + offset * request->call.width;
    }
    fsdpi_reduce_operands(request, to, (size_t)ctx->nodes.count, count, call->op, (size_t)ctx->size);
}

/* In place the result waits in this rank's own part of the input, which nobody else reads; see fsdpi_settle(). */
static void take_own_part(const source *from, const block *b)
{
    fsdp_request     *request = from->request;
    const int         me      = request->ctx->rank;
    const fsdpi_slice w       = window(request, FSDPI_SCATTER, b, (size_t)me);
    const size_t      offset  = packed_before(request, FSDPI_SCATTER, b, (size_t)me);
    const size_t      width   = request->call.width;
    const size_t      inside  = w.begin - fsdpi_slice_of(request, me).begin;

    if (w.count > 0) {
        take_reduced(from, offset, w.count, (const unsigned char *)request->call.in + w.begin * width,
                     fsdpi_own_result(request) + inside * width);
    }
}

static void take_transposed(const source *from, const block *b)
{
    fsdp_request       *request = from->request;
    const fsdp_context *ctx     = request->ctx;
    const size_t        me      = (size_t)ctx->rank;
    const fsdpi_slice   w       = window(request, FSDPI_TRANSPOSE, b, me);
    const size_t        offset  = packed_before(request, FSDPI_TRANSPOSE, b, me) * request->call.width;
    const size_t        bytes   = w.count * request->call.width;
    const size_t        inside  = (w.begin - fsdpi_slice_of(request, (int)me).begin) * request->call.width;
    unsigned char      *out     = request->call.out;

    if (bytes == 0) {
        return;
    }
    for (int q = 0; q < ctx->size; q++) {
        const size_t         begin = fsdpi_slice_of(request, q).begin * request->call.width + inside;
        const unsigned char *data  = (size_t)q == me ? (const unsigned char *)request->call.in + begin
                                                     : published(from, ctx->nodes.position_of[q]) + offset;
        if (data != out + begin) {
            move(request, out + begin, data, bytes);
        }
    }
}

static void take_from_root(const source *from, const block *b)
{
    fsdp_request       *request = from->request;
    const fsdp_context *ctx     = request->ctx;
    const fsdpi_nodes  *nodes   = &ctx->nodes;
    const int           root    = request->call.root;
    const fsdpi_slice   w       = window(request, FSDPI_FROM_ROOT, b, 0);

    if (ctx->rank != root && w.count > 0) {
        const unsigned char *data = nodes->node_of[root] == nodes->mine ? published(from, nodes->position_of[root])
                                                                        : record_of(request, nodes->node_of[root]);
        move(request, (unsigned char *)request->call.out + w.begin * request->call.width, data,
             w.count * request->call.width);
    }
}

static void take(const source *from, fsdpi_pattern pattern, const block *b)
{
    fsdp_request     *request = from->request;
    const fsdpi_call *call    = &request->call;
    const fsdpi_slice w       = window(request, pattern, b, 0);
    const size_t      begin   = w.begin * request->call.width;

    switch (pattern) {
    case FSDPI_GATHER:
        take_gathered(from, b);
        break;
    case FSDPI_SCATTER:
        take_own_part(from, b);
        break;
    case FSDPI_COMBINE:
        take_reduced(from, 0, w.count, (const unsigned char *)call->in + begin, (unsigned char *)call->out + begin);
        break;
    case FSDPI_TO_ROOT:
        if (request->ctx->rank == call->root) {
            take_reduced(from, 0, w.count, (const unsigned char *)call->in + begin, (unsigned char *)call->out + begin);
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

/* ---- as one block, on the agreement ------------------------------------------------------------------------------ */

bool fsdpi_fits_inline(const fsdp_context *ctx, fsdpi_pattern pattern, size_t bytes)
{
    return bytes <= capacity(ctx) && !(pattern == FSDPI_TRANSPOSE && ctx->nodes.count > 1);
}

/* Data that fits into the letter itself saves its readers a cache line. The same answer on all ranks. */
static bool fits_letter(const fsdp_request *request, fsdpi_pattern pattern)
{
    const size_t most = pattern == FSDPI_GATHER ? largest_part(request, pattern) : request->call.whole;

    return most <= FSDPI_SHORT_BYTES / request->call.width;
}

unsigned fsdpi_publish_inline(fsdp_request *request, fsdpi_pattern pattern, fsdpi_letter *letter)
{
    unsigned char *to = fits_letter(request, pattern) ? letter->payload : (unsigned char *)(letter + 1);

    if (publishes(request, pattern) && request->call.in_bytes > 0) {
        memcpy(to, request->call.in, request->call.in_bytes); /* the whole input, packed as it is */
    }
    return FSDPI_FLAG_OFFERED;
}

static source inline_source(fsdp_request *request, fsdpi_pattern pattern)
{
    return (source){.request = request, .number = request->number, .in_letter = fits_letter(request, pattern)};
}

size_t fsdpi_record_inline(fsdp_request *request, fsdpi_pattern pattern, unsigned char *payload)
{
    const block  b    = whole(request, pattern);
    const source from = inline_source(request, pattern);

    return record(&from, pattern, &b, payload);
}

/* The two that training is made of, on one node, without the detour by windows and packed offsets. */
static void take_parts_inline(const source *from)
{
    fsdp_request       *request = from->request;
    const fsdp_context *ctx     = request->ctx;

    for (int p = 0; p < ctx->nodes.size; p++) {
        const fsdpi_slice part = fsdpi_slice_of(request, p);
        unsigned char    *to   = (unsigned char *)request->call.out + part.begin * request->call.width;
        const void       *data = p == ctx->rank ? request->call.in : published(from, p);

        if (part.count > 0 && data != to) {
            move(request, to, data, part.count * request->call.width);
        }
    }
}

static void take_reduction_inline(const source *from, fsdpi_slice part, unsigned char *to)
{
    const unsigned char *own = (const unsigned char *)from->request->call.in + part.begin * from->request->call.width;

    if (part.count > 0) {
        reduce_node(from, from->request->call.op, (size_t)from->request->ctx->size, part.begin, part.count, own, to);
    }
}

static fsdp_status take_inline(fsdp_request *request, fsdpi_progress *progress)
{
    const fsdpi_pattern pattern = fsdpi_selection_of(request)->pattern;
    const source        from    = inline_source(request, pattern);

    if (request->ctx->nodes.count == 1 && pattern == FSDPI_GATHER) {
        take_parts_inline(&from);
    } else if (request->ctx->nodes.count == 1 && pattern == FSDPI_SCATTER) {
        take_reduction_inline(&from, fsdpi_slice_of(request, request->ctx->rank), fsdpi_own_result(request));
    } else if (request->ctx->nodes.count == 1 && pattern == FSDPI_COMBINE) {
        take_reduction_inline(&from, (fsdpi_slice){0, request->call.count}, request->call.out);
    } else {
        const block b = whole(request, pattern);
        take(&from, pattern, &b);
    }
    *progress = FSDPI_FINISHED;
    return FSDP_OK;
}

static void settle(fsdp_request *request)
{
    if (fsdpi_selection_of(request)->pattern == FSDPI_SCATTER) {
        fsdpi_settle(request);
    }
}

const fsdpi_algorithm fsdpi_inline = {.name = "inline", .advance = take_inline, .end = settle};

/* ---- as a series of blocks --------------------------------------------------------------------------------------- */

enum { PUBLISH, PUBLISHING, ARRIVE, RECORDING, ASK_NODES, AWAIT_LEADER, TAKE };

static void begin_records(const source *from, fsdpi_pattern pattern, const block *b)
{
    fsdp_context      *ctx  = from->request->ctx;
    fsdpi_record_head *head = fsdpi_exchange_begin(ctx);
    size_t             most = 0;

    *head = (fsdpi_record_head){0};
    (void)record(from, pattern, b, in_mailbox(from->request, head + 1));
    for (int m = 0; m < ctx->nodes.count; m++) { /* all equally long, so that they may be cut into messages */
        const size_t bytes = pattern == FSDPI_GATHER
                                 ? gathered_before(from->request, b, m, -1)
                                 : packed_count(from->request, pattern, b) * from->request->call.width;
        most               = bytes > most ? bytes : most;
    }
    head->bytes = most;
}

static fsdp_status ask_nodes(fsdp_request *request, fsdpi_progress *progress)
{
    fsdp_context *ctx   = request->ctx;
    fsdpi_letter *board = &ctx->box.desks[0]->board[ctx->box.number & 1];

    FSDP_TRY(fsdpi_exchange_advance(ctx, true, progress));
    if (*progress == FSDPI_FINISHED) {
        atomic_store_explicit(&board->number, ctx->box.number, memory_order_release);
        fsdpi_mailbox_wake(ctx);
        request->step = TAKE;
        *progress     = FSDPI_MOVED;
    }
    return FSDP_OK;
}

static void post_block(fsdp_request *request)
{
    fsdp_context *ctx = request->ctx;

    fsdpi_mailbox_post(ctx, fsdpi_letter_of(&ctx->box, ctx->nodes.position, ctx->box.number + 1), ctx->box.number + 1);
    request->step = ARRIVE;
}

/* Behind those that read what was in the slot before. */
static void publish_on_device(fsdp_request *request, fsdpi_pattern pattern, const block *b)
{
    fsdp_context  *ctx    = request->ctx;
    const uint64_t number = ctx->box.number + 1;

    fsdpi_gpu_hear_slots_free(request, number);
    publish(request, pattern, b, fsdpi_gpu_slot(ctx, ctx->nodes.position, number));
    fsdpi_gpu_say_ready(request, number);
    if (fsdpi_gpu_through_host(ctx)) {
        request->step = PUBLISHING;
    } else {
        post_block(request);
    }
}

static void publish_block(fsdp_request *request, fsdpi_pattern pattern, const block *b)
{
    fsdp_context *ctx = request->ctx;

    if (request->call.on_device) {
        publish_on_device(request, pattern, b);
        return;
    }
    publish(request, pattern, b, fsdpi_slot_of(&ctx->box, ctx->nodes.position, ctx->box.number + 1));
    post_block(request);
}

static void all_have_arrived(const source *from, fsdp_request *request, fsdpi_pattern pattern, const block *b)
{
    const fsdp_context *ctx = request->ctx;

    if (request->call.on_device) {
        fsdpi_gpu_hear_ready(request, from->number);
    }
    request->step = ctx->nodes.count == 1 ? TAKE : ctx->nodes.position == 0 ? ASK_NODES : AWAIT_LEADER;
    if (request->step == ASK_NODES) {
        begin_records(from, pattern, b);
        request->step = request->call.on_device ? RECORDING : ASK_NODES;
    }
}

static bool is_stream_idle(fsdp_request *request, fsdpi_progress *progress)
{
    const bool idle = fsdpi_gpu_is_idle(request);

    *progress = idle ? FSDPI_MOVED : FSDPI_WAITING;
    return idle;
}

static void take_block(const source *from, fsdpi_pattern pattern, const block *b)
{
    fsdp_request *request = from->request;

    take(from, pattern, b);
    if (request->call.on_device) {
        fsdpi_gpu_say_done(request, from->number);
    }
    request->at++;
    request->step = PUBLISH;
}

static fsdp_status advance_blocks(fsdp_request *request, fsdpi_pattern pattern, fsdpi_progress *progress)
{
    fsdp_context *ctx  = request->ctx;
    const source  from = {.request = request, .number = ctx->box.number};
    block         b;

    *progress = FSDPI_FINISHED;
    if (!block_at(request, pattern, request->at, &b)) {
        return FSDP_OK;
    }
    *progress = FSDPI_MOVED;
    switch (request->step) {
    case PUBLISH:
        publish_block(request, pattern, &b);
        break;
    case ARRIVE:
        if (!fsdpi_mailbox_arrived(ctx, ctx->box.number)) {
            *progress = FSDPI_WAITING;
        } else {
            all_have_arrived(&from, request, pattern, &b);
        }
        break;
    case PUBLISHING:
        if (is_stream_idle(request, progress)) {
            post_block(request);
        }
        break;
    case RECORDING:
        if (is_stream_idle(request, progress)) {
            request->step = ASK_NODES;
        }
        break;
    case ASK_NODES:
        return ask_nodes(request, progress);
    case AWAIT_LEADER:
        if (fsdpi_word_reached(ctx, ctx->box.desks[0], &ctx->box.desks[0]->board[ctx->box.number & 1].number,
                               ctx->box.number)) {
            request->step = TAKE;
        } else {
            *progress = FSDPI_WAITING;
        }
        break;
    default:
        take_block(&from, pattern, &b);
        break;
    }
    return FSDP_OK;
}

/* The second half of an allreduce: what was reduced here is gathered from here. */
static void begin_gathering(fsdp_request *request)
{
    request->call.in = fsdpi_own_result(request);
    request->stage   = 1;
    request->at      = 0;
}

static fsdp_status advance_staged(fsdp_request *request, fsdpi_progress *progress)
{
    const fsdpi_pattern pattern = fsdpi_selection_of(request)->pattern;
    const fsdpi_nodes  *nodes   = &request->ctx->nodes;

    if (pattern != FSDPI_COMBINE || (nodes->count == 1 && nodes->size <= FEW_RANKS)) {
        return advance_blocks(request, pattern, progress);
    }
    FSDP_TRY(advance_blocks(request, request->stage == 0 ? FSDPI_SCATTER : FSDPI_GATHER, progress));
    if (*progress == FSDPI_FINISHED && request->stage == 0) {
        begin_gathering(request);
        *progress = FSDPI_MOVED;
    }
    return FSDP_OK;
}

/* Peers may go on to use the mailbox when all that this rank's GPU reads there is read. */
static fsdp_status advance_staged_device(fsdp_request *request, fsdpi_progress *progress)
{
    FSDP_TRY(advance_staged(request, progress));
    if (*progress == FSDPI_FINISHED && fsdpi_gpu_through_host(request->ctx) && !fsdpi_gpu_is_idle(request)) {
        *progress = FSDPI_WAITING;
    }
    return FSDP_OK;
}

const fsdpi_algorithm fsdpi_staged_device = {
    .name = "staged", .advance = advance_staged_device, .end = settle, .agrees_at_end = true};

/* Its ranks leave together since the output may be one for the node: see select.c. */
const fsdpi_algorithm fsdpi_staged = {
    .name = "staged", .advance = advance_staged, .end = settle, .leaves_together = true};
