#include "lib/context/costs.h"

#include <math.h>
#include <stdint.h>

#include "lib/sync/mailbox.h"
#include "lib/sync/pairs.h"
#include "lib/sync/records.h"
#include "lib/sync/staging.h"

/* What is assumed of a link that was not measured; and of memory, which is not: vectors for which it matters are in a cache. */
static const double ASSUMED_ALPHA = 5e-6, ASSUMED_RATE = 1.2e9, MEMORY_RATE = 50e9, ALPHA_S = 0.5e-6;

/*
 * And of what does not fit into one core's cache beside MPI's own buffers, where it copies by way of these. Measured over memory
 * between nodes; where a link is slower, it does not show.
 */
static const double SPILLED_RATE = 15e9;
enum { CACHE = 512 << 10 };

/*
 * Several connections at once find less of a link than one does: measured with TCP at 1 Gbit/s, see post_in_turns() of the
 * rails.
 */
static const double SHARED_LINK = 1.04;

/*
 * What the rails do before their first message, and between reducing and gathering: where every rank is a node, no longer than two
 * messages take.
 */
static const double SETUP = 5e-6;

/*
 * Times that a link carries the bytes of MPI_Ibcast() between more than two nodes, at least: Open MPI's sends them to up to three
 * others one after the other, and passes them on in a chain without sending and receiving at once. 3.3 to 6.6 were measured.
 */
static const double MPI_BROADCAST = 3;

/* The same between two, where it takes 1.02 to 1.2 times as long as chunks that follow each other. */
static const double MPI_SEND = 1.05;

/* What comes from the caches of other cores, rather than from one's own. */
static const double FROM_PEERS = 4;

/*
 * BYTES of messages that MPI sends without asking the receiver first, by default, over memory or a fabric; and of a block. Over
 * a slow link data is cut.
 */
enum { EAGER = 4 << 10, BLOCK = 512 << 10 };

static bool is_fast(const fsdpi_costs *costs)
{
    return fsdpi_link_is_fast(&(fsdpi_link){.rate = 1 / costs->beta});
}

static double at_least_0(double x)
{
    return x > 0 ? x : 0;
}

static double setup(const fsdpi_costs *costs, const fsdpi_world *world)
{
    return world->each == 1 && 2 * costs->alpha_m < SETUP ? 2 * costs->alpha_m : SETUP;
}

fsdpi_costs fsdpi_costs_of(const fsdpi_link *link, const fsdpi_world *world)
{
    const double alpha = link->alpha > 0 ? link->alpha : ASSUMED_ALPHA;

    return (fsdpi_costs){.alpha_s      = world->each > 1 ? ALPHA_S + 0.02e-6 * world->each : 0,
                         .alpha_m      = alpha,
                         .alpha_r      = world->each > 1 && link->busy > alpha ? link->busy : alpha,
                         .gap          = link->gap > 0 ? link->gap : alpha / 4,
                         .beta         = 1 / (link->rate > 0 ? link->rate : ASSUMED_RATE),
                         .gamma        = 1 / MEMORY_RATE,
                         .whole        = fsdpi_link_whole(link, false),
                         .whole_cached = fsdpi_link_whole(link, true),
                         .pulls        = link->pulls,
                         .together     = fsdpi_link_together(link)};
}

fsdpi_costs fsdpi_costs_of_cached(const fsdpi_costs *costs)
{
    fsdpi_costs cached = *costs;

    cached.whole = costs->whole_cached;
    return cached;
}

/* As lib/sync/mailbox.c lays it out. */
static size_t slot_bytes(size_t staging_bytes)
{
    return staging_bytes / 4 / FSDPI_LINE * FSDPI_LINE;
}

static size_t rest_bytes(size_t staging_bytes)
{
    return staging_bytes - 2 * slot_bytes(staging_bytes);
}

/* Of the lane in which ranks agree. */
static size_t short_slot_bytes(const fsdpi_world *world)
{
    return slot_bytes(fsdpi_staging_short(world->staging_bytes));
}

static size_t short_rest_bytes(const fsdpi_world *world)
{
    return rest_bytes(fsdpi_staging_short(world->staging_bytes));
}

/* How many in a row make one message. Before a long one MPI asks the receiver, who answers. */
static int trips(const fsdpi_costs *costs, double bytes)
{
    return bytes > (is_fast(costs) ? (double)EAGER : FSDPI_CUT_SLOW) ? 3 : 1;
}

/* One message of a leader, but for its bytes. */
static double message(const fsdpi_costs *costs, double bytes)
{
    return trips(costs, bytes) * costs->alpha_m;
}

/* Messages to all other nodes at once. */
static double to_each(const fsdpi_costs *costs, const fsdpi_world *world, double bytes)
{
    return message(costs, bytes) + at_least_0(world->nodes - 2) * costs->gap;
}

/* And by all ranks of a node. */
static double by_all(const fsdpi_costs *costs, const fsdpi_world *world, double bytes)
{
    return trips(costs, bytes) * costs->alpha_r + at_least_0(world->nodes - 2) * costs->gap;
}

/*
 * Between few nodes, pairs never take much longer than rounds, and long data takes fewer copies in pairs: noise in what was measured
 * must not decide.
 */
bool fsdpi_costs_in_pairs(const fsdpi_costs *costs, const fsdpi_world *world)
{
    enum { FEW = 4 };

    return world->nodes <= FSDPI_MOST_IN_PAIRS &&
           fsdpi_pairs_capacity(short_rest_bytes(world), world->nodes, world->each) >= FSDPI_LINE &&
           short_slot_bytes(world) >= (size_t)FSDPI_LINE * (size_t)(world->nodes + 1) &&
           (world->nodes <= FEW || to_each(costs, world, 0) <= fsdpi_rounds(world->nodes) * costs->alpha_m);
}

/* BYTES of a record in rounds. */
static size_t record_bytes(const fsdpi_world *world, size_t staging_bytes)
{
    const size_t room = rest_bytes(staging_bytes) / (size_t)world->nodes;

    return room > sizeof(fsdpi_record_head) ? (room - sizeof(fsdpi_record_head)) / 8 * 8 : 0;
}

static bool has_parts(fsdpi_collective_id collective)
{
    return collective == FSDPI_ALLGATHER || collective == FSDPI_REDUCE_SCATTER || collective == FSDPI_ALLTOALL;
}

size_t fsdpi_costs_most_inline(const fsdpi_costs *costs, const fsdpi_world *world, fsdpi_collective_id collective)
{
    const size_t slot   = short_slot_bytes(world) - sizeof(fsdpi_letter);
    const size_t record = record_bytes(world, fsdpi_staging_short(world->staging_bytes));

    if (!fsdpi_costs_in_pairs(costs, world)) {
        return collective == FSDPI_ALLTOALL ? 0 : slot < record ? slot : record;
    }
    const size_t capacity = fsdpi_pairs_capacity(short_rest_bytes(world), world->nodes, world->each);
    const size_t most     = collective == FSDPI_ALLTOALL ? capacity / (size_t)world->each : capacity;
    if (world->each > 1 && collective == FSDPI_ALLGATHER) { /* see fsdpi_fits_inline() */
        const size_t parts = slot * (size_t)world->each;

        return (parts < most ? parts : most) * (size_t)world->nodes;
    }
    if (world->each > 1) {
        return slot < most ? slot : most;
    }
    return has_parts(collective) ? most * (size_t)world->nodes : most;
}

/* ---- inline ------------------------------------------------------------------------------------------------------- */

/* What the ranks of a node do for each other: each copies its input in, and the leader makes the record from these. */
static double within_node(const fsdpi_costs *costs, const fsdpi_world *world, fsdpi_collective_id collective,
                          double bytes)
{
    const bool copies  = collective == FSDPI_ALLGATHER || collective == FSDPI_BROADCAST || collective == FSDPI_ALLTOALL;
    const double input = collective == FSDPI_ALLGATHER ? bytes / world->nodes / world->each : bytes;
    const double record = collective == FSDPI_ALLGATHER  ? bytes / world->nodes
                          : collective == FSDPI_ALLTOALL ? bytes * world->each
                                                         : bytes;

    return 2 * costs->alpha_s + (input + (copies ? 1 : world->each + 1) * record * FROM_PEERS) * costs->gamma;
}

/* Of M operands and a result, which are only read and written when all have come. */
static double reducing(const fsdpi_costs *costs, const fsdpi_world *world, double bytes)
{
    const double all     = (world->nodes + 1) * bytes;
    const double spilled = is_fast(costs) && !costs->pulls ? at_least_0(all - CACHE) : 0;

    return all * costs->gamma + spilled / SPILLED_RATE;
}

/* And what each makes of what has come: M operands, or parts that are copied. */
static double taking(const fsdpi_costs *costs, const fsdpi_world *world, fsdpi_collective_id collective, double bytes)
{
    const double ranks = (double)world->nodes * world->each;

    switch (collective) {
    case FSDPI_REDUCE_SCATTER:
        return reducing(costs, world, bytes / ranks);
    case FSDPI_ALLREDUCE:
    case FSDPI_REDUCE:
        return reducing(costs, world, bytes);
    default:
        return bytes * costs->gamma;
    }
}

static double in_rounds(const fsdpi_costs *costs, const fsdpi_world *world, fsdpi_collective_id collective,
                        double bytes)
{
    const double record = (collective == FSDPI_ALLGATHER ? bytes / world->nodes : bytes) + sizeof(fsdpi_record_head);
    double       sum    = 0;

    for (int have = 1; have < world->nodes;) {
        const int records = have < world->nodes - have ? have : world->nodes - have;

        sum += message(costs, records * record) + records * record * costs->beta;
        have += records;
    }
    return sum + taking(costs, world, collective, bytes);
}

/*
 * For a rank that copies its own part while the others come. Where messages go by way of MPI's own buffers, these are full soon, and
 * nobody else empties them meanwhile.
 */
static double waiting(const fsdpi_costs *costs, double part)
{
    enum { BUFFERED = 128 << 10 };

    return is_fast(costs) && !costs->pulls ? at_least_0(part - BUFFERED) * costs->gamma : 0;
}

/* Where every rank is a node, long parts come straight to where they belong. */
static double in_pairs(const fsdpi_costs *costs, const fsdpi_world *world, fsdpi_collective_id collective, double bytes)
{
    const double whole =
        collective == FSDPI_ALLTOALL ? bytes * world->each : bytes; /* which is of each rank of a node */
    const double portion = has_parts(collective) ? whole / world->nodes : whole, others = world->nodes - 1;
    const bool   apart   = portion > (double)costs->together;
    const bool   placed  = apart && world->each == 1 && (collective == FSDPI_ALLGATHER || collective == FSDPI_ALLTOALL);
    const double taken   = placed ? portion : bytes;
    const double sending = apart ? others * costs->gap : others * portion * costs->gamma;

    const double shared = world->nodes > 2 ? SHARED_LINK : 1;

    return to_each(costs, world, portion) + sending + others * portion * costs->beta * shared +
           taking(costs, world, collective, taken) + (placed ? waiting(costs, portion) : 0);
}

static double cost_inline(const fsdpi_costs *costs, const fsdpi_world *world, fsdpi_collective_id collective,
                          size_t bytes)
{
    const double s    = (double)bytes;
    const double node = world->each > 1 ? within_node(costs, world, collective, s) : 0;

    if (bytes > fsdpi_costs_most_inline(costs, world, collective)) {
        return INFINITY;
    }
    return node + (fsdpi_costs_in_pairs(costs, world) ? in_pairs(costs, world, collective, s)
                                                      : in_rounds(costs, world, collective, s));
}

/* ---- the others: an agreement, then data -------------------------------------------------------------------------- */

static double agreement(const fsdpi_costs *costs, const fsdpi_world *world)
{
    return 2 * costs->alpha_s + (fsdpi_costs_in_pairs(costs, world) ? to_each(costs, world, 0)
                                                                    : fsdpi_rounds(world->nodes) * costs->alpha_m);
}

/* BYTES; `alone` as for fsdpi_link_chunk(). */
static double chunk_of(const fsdpi_costs *costs, const fsdpi_world *world, bool alone, double bytes)
{
    const fsdpi_link link = {.rate = 1 / costs->beta, .pulls = costs->pulls};
    const unsigned   kind = alone || (costs->pulls && world->each == 1) ? FSDPI_PIECES_ALONE : 0;

    return (double)fsdpi_link_chunk(&link, kind, world->nodes == 2 ? (size_t)bytes : SIZE_MAX);
}

/* BYTES of the pieces of a broadcast. */
static double hop_of(const fsdpi_costs *costs, const fsdpi_world *world, double bytes)
{
    const fsdpi_link link = {.rate = 1 / costs->beta, .alpha = costs->alpha_m};

    return (double)fsdpi_link_hop(&link, (size_t)bytes, world->nodes - 2, (size_t)chunk_of(costs, world, false, bytes));
}

/* One exchange on the rails: of a part with each other node, in chunks, which are sent while others are on their way. */
static double exchange(const fsdpi_costs *costs, const fsdpi_world *world, double bytes, bool whole)
{
    const double part = bytes / world->nodes / world->each, others = world->nodes - 1;
    const double shared = world->nodes > 2 ? SHARED_LINK : 1, chunk = chunk_of(costs, world, whole, bytes);

    const double more = at_least_0(costs->gap - chunk * costs->beta);

    return setup(costs, world) + by_all(costs, world, part < chunk ? part : chunk) +
           others * floor(part / chunk) * more + others / world->nodes * bytes * costs->beta * shared;
}

static double cost_rails(const fsdpi_costs *costs, const fsdpi_world *world, fsdpi_collective_id collective, double s)
{
    const double ranks = (double)world->nodes * world->each, before = agreement(costs, world);
    const double gathered = (world->each > 1 ? s : s / world->nodes) * costs->gamma;
    const double reduced =
        ((world->each > 1 ? s + s / world->each : 0) + (world->nodes + 1) * s / ranks) * costs->gamma;

    switch (collective) {
    case FSDPI_ALLGATHER:
        return before + exchange(costs, world, s, world->each == 1) + gathered;
    case FSDPI_REDUCE_SCATTER:
        return before + exchange(costs, world, s, false) + reduced;
    case FSDPI_ALLREDUCE:
        return ranks <= 2 && (size_t)s <= costs->whole
                   ? before + exchange(costs, world, 2 * s, false) + 2 * reduced
                   : before + 2 * exchange(costs, world, s, false) + reduced + (world->each > 1 ? gathered : 0);
    case FSDPI_REDUCE: /* of two ranks, all of it is the part of one; of more, each sends its part there as it becomes final */
        return ranks <= 2
                   ? before + exchange(costs, world, s * world->nodes, false) + reduced * (double)world->nodes
                   : before + 2 * exchange(costs, world, s, false) + (ranks - world->nodes) * costs->gap + reduced;
    case FSDPI_BROADCAST: /* MPI's own */
        return before + fsdpi_rounds(world->nodes) * costs->alpha_m +
               s * ((world->nodes > 2 ? MPI_BROADCAST : MPI_SEND) * costs->beta + costs->gamma);
    default: /* an alltoall: pairwise, between all ranks */
        return before + setup(costs, world) + trips(costs, s / ranks) * costs->alpha_r +
               (ranks - world->each - 1) * costs->gap +
               s * world->each * (world->nodes - 1) / world->nodes * costs->beta;
    }
}

/* In a broadcast all of it is the root's part, whose chunks come to the last node one after the other. */
static double cost_ring(const fsdpi_costs *costs, const fsdpi_world *world, fsdpi_collective_id collective, double s)
{
    const bool   gathers = collective == FSDPI_ALLGATHER;
    const double part    = gathers ? s / world->nodes / world->each : s;
    const double chunk   = gathers ? chunk_of(costs, world, false, s) : hop_of(costs, world, s);
    const double first   = part < chunk ? part : chunk;
    const double bytes   = gathers ? (world->nodes - 1.0) / world->nodes * s : s + (world->nodes - 2) * first;

    return agreement(costs, world) + setup(costs, world) + (world->nodes - 1) * trips(costs, first) * costs->alpha_r +
           bytes * costs->beta + (world->each > 1 || !gathers ? s : s / world->nodes) * costs->gamma;
}

/* Block by block, each as inline in rounds; an allreduce scatters first, and then gathers. */
static double cost_staged(const fsdpi_costs *costs, const fsdpi_world *world, fsdpi_collective_id collective,
                          size_t bytes)
{
    const size_t slot   = slot_bytes(world->staging_bytes) - sizeof(fsdpi_letter);
    const size_t record = record_bytes(world, world->staging_bytes);
    const size_t room   = slot < record ? slot : record;
    const size_t block  = room < BLOCK ? room : BLOCK;
    const double full   = (double)bytes / (double)(block > 0 ? block : 1);
    const double blocks = full > 1 ? full : 1; /* whole ones would make steps, and the cheapest change at each */
    const double one    = (double)bytes / blocks;
    const int    first  = collective == FSDPI_ALLREDUCE ? FSDPI_REDUCE_SCATTER : (int)collective;
    double       each   = in_rounds(costs, world, (fsdpi_collective_id)first, one) +
                  within_node(costs, world, (fsdpi_collective_id)first, one);

    if (collective == FSDPI_ALLREDUCE) {
        each += in_rounds(costs, world, FSDPI_ALLGATHER, one) + within_node(costs, world, FSDPI_ALLGATHER, one);
    }
    return agreement(costs, world) + blocks * each;
}

/* As a reduce_scatter with the agreement, and then one block of an allgather. Two nodes would send no fewer bytes so. */
static double cost_halves(const fsdpi_costs *costs, const fsdpi_world *world, size_t bytes)
{
    const double s = (double)bytes;

    if (world->nodes == 2 || !fsdpi_costs_in_pairs(costs, world)) {
        return INFINITY;
    }
    return cost_inline(costs, world, FSDPI_REDUCE_SCATTER, bytes) + in_rounds(costs, world, FSDPI_ALLGATHER, s) +
           within_node(costs, world, FSDPI_ALLGATHER, s);
}

double fsdpi_cost(const fsdpi_costs *costs, const fsdpi_world *world, fsdpi_collective_id collective,
                  fsdp_algorithm algorithm, size_t bytes)
{
    switch (algorithm) {
    case FSDP_ALGO_INLINE:
        return cost_inline(costs, world, collective, bytes);
    case FSDP_ALGO_RAILS:
        return cost_rails(costs, world, collective, (double)bytes);
    case FSDP_ALGO_RING:
        return (collective == FSDPI_ALLGATHER && world->nodes > 2) || collective == FSDPI_BROADCAST
                   ? cost_ring(costs, world, collective, (double)bytes)
                   : INFINITY;
    case FSDP_ALGO_HALVES:
        return collective == FSDPI_ALLREDUCE ? cost_halves(costs, world, bytes) : INFINITY;
    case FSDP_ALGO_STAGED:
        return collective == FSDPI_ALLTOALL ? INFINITY : cost_staged(costs, world, collective, bytes);
    default:
        return INFINITY;
    }
}

/* ---- choosing ------------------------------------------------------------------------------------------------------ */

/* In this order: of two that cost the same, the one that comes first. */
static const fsdp_algorithm ORDER[] = {FSDP_ALGO_INLINE, FSDP_ALGO_HALVES, FSDP_ALGO_RAILS, FSDP_ALGO_RING,
                                       FSDP_ALGO_STAGED};
enum { N_ORDER = sizeof ORDER / sizeof ORDER[0] };

fsdp_algorithm fsdpi_costs_cheapest(const fsdpi_costs *costs, const fsdpi_world *world, fsdpi_collective_id collective,
                                    unsigned of, size_t bytes)
{
    fsdp_algorithm best  = FSDP_ALGO_STAGED;
    double         least = INFINITY;

    for (int i = 0; i < N_ORDER; i++) {
        const double cost =
            (of >> ORDER[i] & 1) != 0 ? fsdpi_cost(costs, world, collective, ORDER[i], bytes) : INFINITY;
        if (cost < least) {
            best  = ORDER[i];
            least = cost;
        }
    }
    return best;
}

size_t fsdpi_costs_same_until(const fsdpi_costs *costs, const fsdpi_world *world, fsdpi_collective_id collective,
                              unsigned of, size_t bytes)
{
    static const size_t  MOST = (size_t)1 << 40;
    const fsdp_algorithm now  = fsdpi_costs_cheapest(costs, world, collective, of, bytes);
    size_t               same = bytes, other = bytes;

    do {
        same  = other;
        other = other + other / 8 + 1; /* few algorithms are cheapest for less than that */
    } while (other < MOST && fsdpi_costs_cheapest(costs, world, collective, of, other) == now);
    if (other >= MOST) {
        return SIZE_MAX;
    }
    while (other - same > 1) {
        const size_t middle = same + (other - same) / 2;
        if (fsdpi_costs_cheapest(costs, world, collective, of, middle) == now) {
            same = middle;
        } else {
            other = middle;
        }
    }
    return same;
}
