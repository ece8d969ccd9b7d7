#include "lib/sync/link.h"

#include <math.h>
#include <stdint.h>

/* Of messages that go by TCP, which MPI sends without asking the receiver first up to 64 KiB with its own head, by default. */
enum { SLOW_BYTES = 48 << 10 };

bool fsdpi_link_is_fast(const fsdpi_link *link)
{
    static const double TEN_GIGABIT_ETHERNET = 1.6e9; /* BYTES per second that none reaches */

    return link->rate > TEN_GIGABIT_ETHERNET;
}

/* BYTES of a vector that is over soon: what else there is to do waits for it, and much of it is still in caches at its end. */
enum { SHORT_VECTOR = 4 << 20 };

/*
 * Where neither is faster (both brought 4.8 to 5.8 GB/s on an Ice Lake), memory counts as faster: allgathers of 64 KiB to 16 MiB then
 * took up to 11% less time, but UCX's of 16 MiB 14% more (medians of 3).
 */
bool fsdpi_link_caches_are_faster(const fsdpi_link *link)
{
    static const double CLEARLY_FASTER = 1.15;

    return link->fresh == 0 || link->fresh >= CLEARLY_FASTER * link->cold;
}

/*
 * Ranks that copy and bring in turns slow each other down where their caches are far from each other, since one reads what the
 * other is fetching: an allgather of 4 to 64 MiB took 4 to 8% longer. Where they share a cache, one finds what the other has just
 * read, and an allgather that is longer than that cache takes 5 to 15% less time so.
 */
bool fsdpi_link_copies_last(const fsdpi_link *link, size_t vector)
{
    return link->pulls && (vector <= SHORT_VECTOR || !fsdpi_link_caches_are_faster(link));
}

/* BYTES of a vector for each of the pieces that should be on their way. */
static size_t share_of(const fsdpi_link *link, size_t vector)
{
    enum { PULLED_PIECES = 4, PUSHED_PIECES = 8 };

    return vector / (link->pulls ? PULLED_PIECES : PUSHED_PIECES);
}

/* BYTES that a call of MPI's may bring. */
static size_t longest_pulled(const fsdpi_link *link, unsigned kind, size_t vector)
{
    enum { MOST_BYTES = 512 << 10, FAR_BYTES = 1 << 20, FAR_GATHERED_BYTES = 2 << 20 };

    const bool is_gathered = (kind & FSDPI_PIECES_GATHERED) != 0, is_short = vector <= SHORT_VECTOR;

    if (vector < SIZE_MAX && !fsdpi_link_caches_are_faster(link) && (is_gathered || !is_short)) {
        return is_gathered ? FAR_GATHERED_BYTES : FAR_BYTES;
    }
    return is_short ? share_of(link, vector) : MOST_BYTES;
}

/*
 * On a slow link, messages that MPI sends without asking the receiver first: the question would wait behind what is under way. On
 * one that no Ethernet of 10 Gbit/s reaches, what counts is how many messages there are. Where the receiver's core brings them, it
 * moves a whole one in a call, and nothing else goes on meanwhile; that matters less where all of it is over soon. There should
 * still be two each way, so that one can be reduced and sent on while the next one comes: those of a short vector are shorter, the
 * more so in plain memory, which takes longer to read than a message costs. Between two nodes where the other core's caches are no
 * faster than memory, messages twice as long took 3 to 7% less time, and a gather's, four times as long, as much less again. Where
 * nobody has to bring them, each rank copies or reduces one while others are on their way, and there should be four each way, but none
 * shorter than 128 KiB, since each has to be asked for: with 64 KiB an allreduce of 256 or 512 KiB took 3 to 8% longer.
 */
size_t fsdpi_link_chunk(const fsdpi_link *link, unsigned kind, size_t vector)
{
    enum { LEAST_BYTES = 64 << 10, FAST_BYTES = 256 << 10 };
    static const double LONGEST_REDUCED = 80e-6, LONGEST_GATHERED = 200e-6;

    const bool   alone = (kind & FSDPI_PIECES_ALONE) != 0 && link->pulls;
    const size_t share = share_of(link, vector), most = longest_pulled(link, kind, vector);
    const bool   costly = !link->pulls || (alone && (kind & FSDPI_PIECES_PLAIN) == 0); /* to ask for a short one */
    const size_t least  = costly ? 2 * LEAST_BYTES : LEAST_BYTES;
    const double call   = (kind & FSDPI_PIECES_GATHERED) != 0 ? LONGEST_GATHERED : LONGEST_REDUCED;
    size_t       bytes  = FAST_BYTES;

    if (!fsdpi_link_is_fast(link)) {
        return SLOW_BYTES;
    }
    while (bytes > least && bytes > share) {
        bytes /= 2;
    }
    while (alone && 2 * bytes <= most && 2 * (double)bytes <= link->rate * call) {
        bytes *= 2;
    }
    return bytes;
}

/* Least is (bytes / piece + hops) (piece / rate + 3 alpha + HANDED_ON): who passes it on has to look before it does. */
size_t fsdpi_link_hop(const fsdpi_link *link, size_t bytes, int hops, size_t most)
{
    enum { LEAST_BYTES = 16 << 10 };
    static const double HANDED_ON = 2e-6;

    if (hops < 1 || link->rate <= 0 || link->alpha <= 0) {
        return most;
    }
    const double best  = sqrt((double)bytes * (3 * link->alpha + HANDED_ON) * link->rate / hops);
    const size_t piece = best < (double)most ? (size_t)best : most;
    return piece > LEAST_BYTES || most < LEAST_BYTES ? piece : LEAST_BYTES;
}

/* To copy more by way of MPI's own buffers takes longer than to ask the receiver. */
fsdpi_cut fsdpi_link_cut(const fsdpi_link *link)
{
    if (!fsdpi_link_is_fast(link)) {
        return (fsdpi_cut){.piece = SLOW_BYTES, .until = FSDPI_CUT_SLOW};
    }
    return (fsdpi_cut){.piece = link->eager, .until = link->cut};
}

bool fsdpi_link_is_slow(const fsdpi_link *link)
{
    return link->rate > 0 && !fsdpi_link_is_fast(link);
}

size_t fsdpi_link_piece(const fsdpi_link *link)
{
    return fsdpi_link_is_slow(link) ? SLOW_BYTES : 0;
}

/* The least is what a nap lasts anyway, if the system is not asked for more exact ones. */
double fsdpi_link_nap(const fsdpi_link *link)
{
    enum { BUFFERED_PIECES = 4 };
    static const double LEAST = 50e-6, MOST = 200e-6;

    const size_t piece = fsdpi_link_piece(link);
    const double nap   = piece > 0 ? BUFFERED_PIECES * (double)piece / link->rate : 0;

    return nap < LEAST ? LEAST : nap < MOST ? nap : MOST;
}

/*
 * Sending everything, each rank reads all of both inputs; in halves, half of them, and then the half that the other rank has just
 * reduced, from that core's caches. Where caches do not hold the inputs, near cores do as well either way, measured over vader, UCX
 * and in MPICH, and far ones better in halves: 256 KiB, each time other memory, took 1.3 to 1.5 times as long whole. But where the
 * other core's caches are no faster than memory, the same took 0.73 to 0.9 times as long whole, and 512 KiB 0.8 to 0.9 times. Where
 * caches do hold the inputs, to read all of both costs little.
 */
size_t fsdpi_link_whole(const fsdpi_link *link, bool cached)
{
    enum {
        PULLED_BYTES     = 512 << 10,
        PULLED_FAR_BYTES = 128 << 10,
        PUSHED_BYTES     = 256 << 10,
        CACHED_FAR_BYTES = 4 << 20
    };
    static const double FAR = 0.7;

    const bool is_far = link->fresh < FAR * link->rate;

    if (!fsdpi_link_is_fast(link)) {
        return SIZE_MAX;
    }
    if (cached && is_far) {
        return CACHED_FAR_BYTES;
    }
    if (!link->pulls) {
        return PUSHED_BYTES;
    }
    return !cached && is_far && fsdpi_link_caches_are_faster(link) ? PULLED_FAR_BYTES : PULLED_BYTES;
}

/* To send a message by TCP takes as long as to copy this on both sides. What fits one message with its head is not asked for. */
size_t fsdpi_link_together(const fsdpi_link *link)
{
    enum { SLOW = 32 << 10, FAST_ONE = 8 << 10 };

    if (!fsdpi_link_is_fast(link)) {
        return SLOW;
    }
    return link->eager > 0 && link->eager < FAST_ONE ? link->eager - FSDPI_LINE : FAST_ONE;
}
