#include "tests/collectives/traffic.h"

enum { HEAD = 24 }; /* BYTES of an opinion, with the length of what follows */

/* ---- the world ------------------------------------------------------------------------------------------------------- */

int traffic_rounds(int nodes)
{
    int rounds = 0;

    while ((1 << rounds) < nodes) {
        rounds++;
    }
    return rounds;
}

int traffic_nodes(const traffic_world *w)
{
    return (w->size + w->per_node - 1) / w->per_node;
}

static int node_of(const traffic_world *w, int rank)
{
    return rank / w->per_node;
}

static int first_of(const traffic_world *w, int node)
{
    return node * w->per_node;
}

static int end_of(const traffic_world *w, int node)
{
    return first_of(w, node) + w->per_node < w->size ? first_of(w, node) + w->per_node : w->size;
}

/* Who on a node deals with what belongs to a rank of another node: the rank at its position, counted around. */
static int counterpart(const traffic_world *w, int node, int rank)
{
    const int position = rank - first_of(w, node_of(w, rank)), ranks = end_of(w, node) - first_of(w, node);

    return first_of(w, node) + position % ranks;
}

static size_t part_bytes(const traffic_call *c, int rank)
{
    return c->part[rank] * c->width;
}

/* ---- between leaders ------------------------------------------------------------------------------------------------- */

/* BYTES of what a node says, with its data. */
typedef struct records {
    size_t of_node[TRAFFIC_MOST_RANKS];
} records;

/*
 * In each round a leader that knows what 1, 2, 4, ... nodes say, from its own on, sends that to the leader as many nodes
 * before its own; in the last round only as much as is missing there.
 */
static traffic leaders(const traffic_world *w, const records *r, int from, int to)
{
    const int nodes = traffic_nodes(w), mine = node_of(w, from);
    traffic   sum = {0, 0};

    if (from != first_of(w, mine) || to != first_of(w, node_of(w, to))) {
        return sum;
    }
    for (int known = 1; known < nodes; known *= 2) {
        if (node_of(w, to) != (mine + nodes - known) % nodes) {
            continue;
        }
        sum.messages++;
        for (int n = 0; n < known && n < nodes - known; n++) {
            sum.bytes += r->of_node[(mine + n) % nodes];
        }
    }
    return sum;
}

traffic traffic_agreement(const traffic_world *w, const traffic_call *c, int from, int to)
{
    const records nothing = {{0}};
    traffic       sum     = leaders(w, &nothing, from, to);

    (void)c;
    sum.bytes = sum.messages * HEAD; /* joined on the way */
    return sum;
}

static size_t record_of(size_t data)
{
    return HEAD + (data + 7) / 8 * 8;
}

/* BYTES of the data of a node: its ranks' parts, or one vector, reduced there or the root's. */
static size_t data_of(const traffic_world *w, const traffic_call *c, int node)
{
    size_t bytes = 0;

    if (c->reduces || !c->in_parts) {
        return c->whole * c->width;
    }
    for (int r = first_of(w, node); r < end_of(w, node); r++) {
        bytes += part_bytes(c, r);
    }
    return bytes;
}

traffic traffic_inline(const traffic_world *w, const traffic_call *c, int from, int to)
{
    records r = {{0}};

    for (int node = 0; node < traffic_nodes(w); node++) {
        r.of_node[node] = record_of(data_of(w, c, node));
    }
    const traffic all = leaders(w, &r, from, to), agreement = traffic_agreement(w, c, from, to);
    return (traffic){all.messages - agreement.messages, all.bytes - agreement.bytes};
}

/* ---- through blocks -------------------------------------------------------------------------------------------------- */

/* A block: elements from `begin` on of each of some parts, `count` at most. */
typedef struct block {
    int    first, n;
    size_t begin, count;
} block;

static size_t in_block(const block *b, size_t part)
{
    const size_t left = part > b->begin ? part - b->begin : 0;

    return left < b->count ? left : b->count;
}

/* What a reduction or one root has to say is as long on all nodes; of what is gathered, the longest counts for all. */
static traffic one_block(const traffic_world *w, const traffic_call *c, const block *b, bool gathered, int from, int to)
{
    records r       = {{0}};
    size_t  longest = 0;

    for (int node = 0; node < traffic_nodes(w); node++) {
        size_t count = 0;

        for (int p = 0; p < b->n; p++) {
            const int rank = b->first + p;
            count += !gathered || node_of(w, rank) == node ? in_block(b, c->in_parts ? c->part[rank] : c->whole) : 0;
        }
        longest = count > longest ? count : longest;
    }
    for (int node = 0; node < traffic_nodes(w); node++) {
        r.of_node[node] = record_of(longest * c->width);
    }
    return leaders(w, &r, from, to);
}

static size_t longest_part(const traffic_world *w, const traffic_call *c)
{
    size_t longest = 0;

    for (int r = 0; r < w->size && c->in_parts; r++) {
        longest = c->part[r] > longest ? c->part[r] : longest;
    }
    return c->in_parts ? longest : c->whole;
}

static traffic blocks(const traffic_world *w, const traffic_call *c, bool gathered, int from, int to)
{
    const size_t room = c->block / c->width, longest = longest_part(w, c);
    const int    parts = c->in_parts ? w->size : 1, at_once = (size_t)parts < room ? parts : (int)room;
    const size_t count = room / (size_t)at_once;
    traffic      sum   = {0, 0};

    for (int first = 0; first < parts; first += at_once) {
        for (size_t begin = 0; begin < longest; begin += count) {
            const block   b   = {.first = first,
                                 .n     = parts - first < at_once ? parts - first : at_once,
                                 .begin = begin,
                                 .count = count < longest ? count : longest};
            const traffic one = one_block(w, c, &b, gathered, from, to);
            sum.messages += one.messages;
            sum.bytes += one.bytes;
        }
    }
    return sum;
}

/* An allreduce reduces first, and then gathers. */
traffic traffic_staged(const traffic_world *w, const traffic_call *c, int from, int to)
{
    traffic sum = blocks(w, c, !c->reduces && c->in_parts, from, to);

    if (c->reduces && c->gathers) {
        const traffic gathering = blocks(w, c, true, from, to);
        sum.messages += gathering.messages;
        sum.bytes += gathering.bytes;
    }
    return sum;
}

/* ---- from rank to rank ----------------------------------------------------------------------------------------------- */

static void add_part(const traffic_call *c, int rank, traffic *sum)
{
    const size_t bytes = part_bytes(c, rank);

    sum->messages += (bytes + c->chunk - 1) / c->chunk;
    sum->bytes += bytes;
}

/*
 * Each owner of a part has a node's reduction of it from the rank of that node at its position, and the other way round. What a root
 * collects comes from all, its own node's ranks too.
 */
traffic traffic_rails(const traffic_world *w, const traffic_call *c, int from, int to)
{
    traffic sum = {0, 0};

    if (c->collects && traffic_nodes(w) > 1 && to == c->root && from != to) {
        add_part(c, from, &sum);
    }
    if (node_of(w, from) == node_of(w, to)) {
        return sum;
    }
    if (c->reduces && counterpart(w, node_of(w, from), to) == from) {
        add_part(c, to, &sum);
    }
    if (c->gathers && counterpart(w, node_of(w, to), from) == to) {
        add_part(c, from, &sum);
    }
    return sum;
}

/* Every part goes from node to node, and not back to its own. */
traffic traffic_ring(const traffic_world *w, const traffic_call *c, int from, int to)
{
    const int here = node_of(w, from), next = (here + 1) % traffic_nodes(w);
    traffic   sum = {0, 0};

    if (next == here || node_of(w, to) != next) {
        return sum;
    }
    for (int owner = 0; owner < w->size; owner++) {
        const int holder = node_of(w, owner) == here ? owner : counterpart(w, here, owner);

        if (node_of(w, owner) != next && holder == from && counterpart(w, next, owner) == to) {
            add_part(c, owner, &sum);
        }
    }
    return sum;
}

/* On its own node too. */
traffic traffic_pairwise(const traffic_world *w, const traffic_call *c, int from, int to)
{
    traffic sum = {0, 0};

    if (from != to && traffic_nodes(w) > 1) {
        add_part(c, to, &sum);
    }
    return sum;
}

traffic traffic_none(const traffic_world *w, const traffic_call *c, int from, int to)
{
    (void)w;
    (void)c;
    (void)from;
    (void)to;
    return (traffic){0, 0};
}
