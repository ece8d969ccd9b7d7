/*
 * Alltoallv of short blocks, on one node or few: they ride on the agreement, with their counts. Each rank copies what it has for
 * everybody into its slot, a table of counts and the blocks behind it. Of all tables of its node, the leader puts together what each
 * other node needs, and sends it that in one message.
 *
 * A sum of hashes tells every rank whether all counts agree, though nobody knows all of them: a count that a rank sends to another
 * one adds what the same count, expected there, takes away. Only where the sum is not 0 another agreement follows, which tells
 * everybody what differs.
 * Cost for S bytes of each rank, M nodes of L ranks: 2 alpha_s + alpha + (M-1)/M L S beta.
 */
#include <string.h>

#include "collectives/alltoallv/alltoallv.h"
#include "collectives/alltoallv/notices.h"
#include "collectives/blocks/inline.h"
#include "lib/base/hash.h"
#include "lib/context/context.h"

/* One of a table: of what a rank has for another one. */
typedef struct entry {
    uint64_t sends, expects; /* ELEMENTS, as a notice says them */
    uint64_t begin;          /* of the block, BYTES from the beginning of its table */
} entry;

/* In front of a table: of what a rank has for all, or of what the ranks of a node have for those of another one. */
typedef struct head {
    uint64_t bytes; /* with the table and the blocks */
    uint64_t sum;   /* of the hashes of all that this rank, or the node's, send and expect */
} head;

static size_t padded(size_t bytes)
{
    return (bytes + 7) / 8 * 8;
}

static size_t block_bytes(const fsdp_request *request, uint64_t count)
{
    return count * request->call.width;
}

/* ---- tables ------------------------------------------------------------------------------------------------------ */

/* A head, a table and blocks while they are put together. */
typedef struct table {
    head          *head;
    entry         *entries;
    unsigned char *end;
} table;

static table table_at(unsigned char *memory, size_t entries)
{
    head *const h = (head *)(void *)memory;

    *h = (head){0};
    return (table){
        .head = h, .entries = (entry *)(void *)(h + 1), .end = (unsigned char *)(h + 1) + entries * sizeof(entry)};
}

static void add(table *to, size_t place, entry e, const void *block, size_t bytes)
{
    e.begin            = (uint64_t)(to->end - (unsigned char *)to->head);
    to->entries[place] = e;
    if (bytes > 0) {
        memcpy(to->end, block, bytes);
    }
    to->end += padded(bytes);
}

static size_t close_table(const table *t)
{
    t->head->bytes = (uint64_t)(t->end - (unsigned char *)t->head);
    return t->head->bytes;
}

static const head *head_at(const unsigned char *memory)
{
    return (const head *)(const void *)memory;
}

static entry entry_at(const unsigned char *memory, size_t place)
{
    return ((const entry *)(const void *)(head_at(memory) + 1))[place];
}

/* ---- what this rank has ------------------------------------------------------------------------------------------ */

/* BYTES of its table, with its blocks for all others. */
static size_t table_bytes(const fsdp_request *request)
{
    size_t bytes = sizeof(head) + (size_t)request->ctx->size * sizeof(entry);

    for (int r = 0; r < request->ctx->size; r++) {
        bytes += r == request->ctx->rank ? 0 : padded(block_bytes(request, fsdpi_notice_to(request, r)->sends));
    }
    return bytes;
}

static bool fits(const fsdp_request *request, size_t bytes)
{
    const fsdp_context *ctx   = request->ctx;
    const size_t        heads = (size_t)ctx->nodes.count * sizeof(head);

    return bytes + heads <= fsdpi_slot_capacity(&request->lane->box) &&
           (ctx->nodes.count == 1 || (request->lane->exchange.in_pairs &&
                                      bytes * (size_t)ctx->nodes.largest + heads <= request->lane->exchange.most));
}

/*
 * BYTES whose two copies take less time than what they save: two rounds of messages between nodes, or on one node the further meetings
 * of its ranks.
 */
static double worth_copies(const fsdp_context *ctx)
{
    static const double ON_A_NODE = 16 << 10, COPIED = 10e9;
    const fsdpi_costs  *costs = &ctx->table.costs;

    return ctx->nodes.count == 1 ? ON_A_NODE : (costs->alpha_m + 2 * (ctx->size - 1) * costs->gap) * COPIED;
}

/* Where an alltoall of as many bytes would. Unless its caller waits, only what does not hold up the short lane. */
bool fsdpi_alltoallv_may_ride(const fsdp_request *request)
{
    enum { ABLE = 1 << FSDP_ALGO_INLINE | 1 << FSDP_ALGO_RAILS | 1 << FSDP_ALGO_STAGED, BRIEF_BYTES = 8 << 10 };
    const fsdp_context *ctx = request->ctx;
    const size_t bytes = table_bytes(request), own = block_bytes(request, fsdpi_notice_to(request, ctx->rank)->sends);
    const size_t most = request->is_blocking ? FSDPI_STEP_BYTES : BRIEF_BYTES;

    return fits(request, bytes) && bytes <= most && own <= most &&
           (ctx->config.algo_alltoall == FSDP_ALGO_INLINE || (double)bytes <= worth_copies(ctx)) &&
           fsdpi_table_find(&ctx->table, FSDPI_ALLTOALL, FSDPI_FROM_USER, bytes, ABLE) == FSDP_ALGO_INLINE;
}

/* Where an empty block would lie does not matter. */
static void add_own(const fsdp_request *request, table *to, size_t place, int peer)
{
    const fsdpi_alltoallv_notice *mine  = fsdpi_notice_to(request, peer);
    const size_t                  bytes = peer == request->ctx->rank ? 0 : block_bytes(request, mine->sends);

    add(to, place, (entry){.sends = mine->sends, .expects = mine->expects},
        bytes > 0 ? (const unsigned char *)request->call.in + mine->place : NULL, bytes);
}

static uint64_t hash_of(int from, int to, uint64_t count)
{
    return count > 0 ? fsdpi_hash_mix(fsdpi_hash_mix((uint64_t)from << 32 | (uint64_t)to) + count) : 0;
}

/* Of what this rank sends and expects. */
static uint64_t own_sum(const fsdp_request *request)
{
    const int me  = request->ctx->rank;
    uint64_t  sum = 0;

    for (int r = 0; r < request->ctx->size; r++) {
        const fsdpi_alltoallv_notice *mine = fsdpi_notice_to(request, r);
        sum += hash_of(me, r, mine->sends) - hash_of(r, me, mine->expects);
    }
    return sum;
}

/* ---- what this node has ------------------------------------------------------------------------------------------ */

static const unsigned char *table_by(const fsdp_request *request, int position)
{
    return fsdpi_slot_of(&request->lane->box, position, request->number);
}

/* Where each rank is a node, it has no table of its own, but portions at once. */
static bool has_portions_only(const fsdp_request *request)
{
    return request->ctx->nodes.count > 1 && request->ctx->nodes.largest == 1;
}

static uint64_t node_sum(const fsdp_request *request)
{
    uint64_t sum = 0;

    if (has_portions_only(request)) {
        return own_sum(request);
    }
    for (int p = 0; p < request->ctx->nodes.size; p++) {
        sum += head_at(table_by(request, p))->sum;
    }
    return sum;
}

/* For another one, from the tables of its ranks; where each is a node, from the call. BYTES. */
static size_t fill_portion(const fsdp_request *request, int node, uint64_t sum, unsigned char *to)
{
    const fsdpi_nodes *nodes = &request->ctx->nodes;
    const int          there = fsdpi_node_size(nodes, node);
    table              t     = table_at(to, (size_t)nodes->size * (size_t)there);

    t.head->sum = sum;
    for (int p = 0; p < nodes->size; p++) {
        for (int q = 0; q < there; q++) {
            const int    peer  = fsdpi_rank_at(nodes, node, q);
            const size_t place = (size_t)p * (size_t)there + (size_t)q;

            if (p == nodes->position) {
                add_own(request, &t, place, peer);
            } else {
                const unsigned char *by = table_by(request, p);
                const entry          e  = entry_at(by, (size_t)peer);
                add(&t, place, e, by + e.begin, block_bytes(request, e.sends));
            }
        }
    }
    return close_table(&t);
}

static size_t fill_portions(const fsdp_request *request, unsigned char *to)
{
    const fsdpi_nodes *nodes = &request->ctx->nodes;
    const uint64_t     sum   = node_sum(request);
    size_t             bytes = 0;

    for (int m = 0; m < nodes->count; m++) {
        bytes += m != nodes->mine ? fill_portion(request, m, sum, to + bytes) : 0;
    }
    return bytes;
}

void fsdpi_alltoallv_publish(fsdp_request *request, fsdpi_letter *letter)
{
    unsigned char *slot = (unsigned char *)(letter + 1);

    if (has_portions_only(request)) {
        (void)fill_portions(request, slot);
        return;
    }
    table t     = table_at(slot, (size_t)request->ctx->size);
    t.head->sum = own_sum(request);
    for (int r = 0; r < request->ctx->size; r++) {
        add_own(request, &t, (size_t)r, r);
    }
    (void)close_table(&t);
}

size_t fsdpi_alltoallv_record(fsdp_request *request, unsigned char *payload)
{
    return fill_portions(request, payload);
}

fsdpi_portion fsdpi_alltoallv_portion(fsdp_request *request, int node)
{
    const fsdpi_nodes   *nodes = &request->ctx->nodes;
    const unsigned char *data =
        has_portions_only(request) ? table_by(request, 0) : fsdpi_pairs_payload(&request->lane->exchange, nodes->mine);

    for (int m = 0; m < node; m++) { /* there are few */
        data += m != nodes->mine ? head_at(data)->bytes : 0;
    }
    return (fsdpi_portion){data, head_at(data)->bytes};
}

/* ---- taking ------------------------------------------------------------------------------------------------------ */

/* What a peer has for this rank. */
static entry entry_by(const fsdp_request *request, int peer, const unsigned char **block)
{
    const fsdp_context  *ctx  = request->ctx;
    const fsdpi_seated   seat = fsdpi_roster_seated(&ctx->nodes.roster, peer);
    const bool           near = seat.node == ctx->nodes.mine;
    const unsigned char *by =
        near ? table_by(request, seat.position) : fsdpi_pairs_payload(&request->lane->exchange, seat.node);
    const size_t place =
        near ? (size_t)ctx->rank : (size_t)seat.position * (size_t)ctx->nodes.size + (size_t)ctx->nodes.position;
    const entry e = entry_at(by, place);

    *block = by + e.begin;
    return e;
}

static void take_block(fsdp_request *request, int peer)
{
    const fsdpi_call             *call  = &request->call;
    const fsdpi_alltoallv_notice *mine  = fsdpi_notice_to(request, peer);
    const unsigned char          *block = NULL;

    if (peer != request->ctx->rank) {
        const entry e                     = entry_by(request, peer, &block);
        *fsdpi_notice_from(request, peer) = (fsdpi_alltoallv_notice){.sends = e.sends, .expects = e.expects};
    }
    if (mine->expects > 0 && fsdpi_notice_from(request, peer)->sends == mine->expects) {
        memcpy((unsigned char *)call->out + call->blocks[FSDPI_RECEIVE_PLACES][peer] * call->width,
               block != NULL ? block : (const unsigned char *)call->in + mine->place,
               block_bytes(request, mine->expects));
    }
}

static fsdp_status advance(fsdp_request *request, fsdpi_progress *progress)
{
    for (int r = 0; r < request->ctx->size && request->stage == 0; r++) {
        take_block(request, r);
    }
    if (request->stage == 0) {
        fsdpi_compare_counts(request);
    }
    return fsdpi_leave_inline(request, progress);
}

/* ---- the two of them --------------------------------------------------------------------------------------------- */

static const fsdpi_algorithm alike  = {.name = "inline", .advance = advance, .is_short = true, .is_rider = true};
static const fsdpi_algorithm unlike = {.name = "inline", .advance = advance, .is_short = true, .agrees_at_end = true};

/* The sum of what all nodes say is the same on every rank. */
const fsdpi_algorithm *fsdpi_alltoallv_inline(fsdp_request *request)
{
    const fsdpi_nodes *nodes = &request->ctx->nodes;
    uint64_t           sum   = node_sum(request);

    for (int m = 0; m < nodes->count; m++) {
        sum += m != nodes->mine ? head_at(fsdpi_pairs_payload(&request->lane->exchange, m))->sum : 0;
    }
    return sum == 0 ? &alike : &unlike;
}
