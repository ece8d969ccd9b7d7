#include "lib/node/roster.h"

#include <stdbool.h>
#include <string.h>

enum { WORD = 64, BLOCK = 2 * WORD };

/* ---- where it lies ---------------------------------------------------------------------------------------------------- */

static int levels_of(int nodes)
{
    int levels = 0;

    while (levels < FSDPI_ROSTER_LEVELS && (nodes - 1) >> levels != 0) {
        levels++;
    }
    return levels;
}

/* Of a level; one more than is full, so that there is one behind the last rank. */
static size_t n_blocks(int ranks)
{
    return (size_t)ranks / BLOCK + 1;
}

/* There are no more nodes than ranks. */
size_t fsdpi_roster_bytes(int ranks)
{
    return (size_t)levels_of(ranks) * n_blocks(ranks) * (2 * sizeof(uint64_t) + sizeof(uint32_t));
}

void fsdpi_roster_move(fsdpi_roster *roster, void *memory)
{
    roster->bits   = memory;
    roster->before = (uint32_t *)(void *)(roster->bits + (size_t)roster->levels * n_blocks(roster->ranks) * 2);
}

/* ---- one level -------------------------------------------------------------------------------------------------------- */

static uint64_t *bits_of(const fsdpi_roster *roster, int level)
{
    return roster->bits + (size_t)level * n_blocks(roster->ranks) * 2;
}

static uint32_t *before_of(const fsdpi_roster *roster, int level)
{
    return roster->before + (size_t)level * n_blocks(roster->ranks);
}

static bool bit_at(const fsdpi_roster *roster, int level, int i)
{
    return (bits_of(roster, level)[i / WORD] >> i % WORD & 1) != 0;
}

/* Ones of a level before place i, which may be the one behind the last. */
static int ones_before(const fsdpi_roster *roster, int level, int i)
{
    const uint64_t *words = bits_of(roster, level) + (size_t)(i / BLOCK) * 2;
    int             ones  = (int)before_of(roster, level)[i / BLOCK];

    if (i % BLOCK >= WORD) {
        ones += __builtin_popcountll(*words++);
    }
    return ones + __builtin_popcountll(*words & ((UINT64_C(1) << i % WORD) - 1));
}

/* Where place i of a level is on the next one, or would be if it had that bit. */
static int below(const fsdpi_roster *roster, int level, int i, bool bit)
{
    const int ones = ones_before(roster, level, i);

    return bit ? roster->zeros[level] + ones : i - ones;
}

/* How many bits of one kind a block has before it. */
static int kind_before(const fsdpi_roster *roster, int level, int block, bool bit)
{
    const int ones = (int)before_of(roster, level)[block];

    return bit ? ones : block * BLOCK - ones;
}

/* The k-th bit that is set in a word, from 0. */
static int place_in_word(uint64_t word, int k)
{
    for (; k > 0; k--) {
        word &= word - 1;
    }
    return __builtin_ctzll(word);
}

/* The place of a level that place i of the next one comes from. */
static int above(const fsdpi_roster *roster, int level, int i, bool bit)
{
    int k = bit ? i - roster->zeros[level] : i, first = 0, end = (int)n_blocks(roster->ranks);

    while (end - first > 1) {
        const int middle = first + (end - first) / 2;

        if (kind_before(roster, level, middle, bit) <= k) {
            first = middle;
        } else {
            end = middle;
        }
    }
    k -= kind_before(roster, level, first, bit);
    const uint64_t *words = bits_of(roster, level) + (size_t)first * 2;
    const uint64_t  low = bit ? words[0] : ~words[0], high = bit ? words[1] : ~words[1];
    const int       in_low = __builtin_popcountll(low);
    return first * BLOCK + (k < in_low ? place_in_word(low, k) : WORD + place_in_word(high, k - in_low));
}

/* ---- making ----------------------------------------------------------------------------------------------------------- */

static int evenness(const int *node_of, int ranks)
{
    int even = 1;

    while (even < ranks && node_of[even] == 0) {
        even++;
    }
    for (int r = 0; r < ranks; r++) {
        if (node_of[r] != r / even) {
            return 0;
        }
    }
    return even;
}

/* Writes a level's bits, and puts the ranks into the order of the next one. */
static void make_level(fsdpi_roster *roster, int level, const int *from, int *to)
{
    uint64_t *bits   = bits_of(roster, level);
    uint32_t *before = before_of(roster, level);
    const int shift  = roster->levels - 1 - level;
    int       zeros = 0, ones = 0;

    for (int i = 0; i < roster->ranks; i++) {
        zeros += (from[i] >> shift & 1) == 0;
    }
    for (int i = 0; i < roster->ranks; i++) {
        const bool bit = (from[i] >> shift & 1) != 0;

        if (i % BLOCK == 0) {
            before[i / BLOCK] = (uint32_t)ones;
        }
        bits[i / WORD] |= (uint64_t)bit << i % WORD;
        to[bit ? zeros + ones : i - ones] = from[i];
        ones += bit;
    }
    if (roster->ranks % BLOCK == 0) {
        before[roster->ranks / BLOCK] = (uint32_t)ones;
    }
    roster->zeros[level] = zeros;
}

void fsdpi_roster_make(fsdpi_roster *roster, void *memory, int ranks, int nodes, int *node_of, int *scratch)
{
    *roster = (fsdpi_roster){.ranks = ranks, .nodes = nodes, .even = evenness(node_of, ranks)};
    if (roster->even > 0) {
        return;
    }
    roster->levels = levels_of(nodes);
    fsdpi_roster_move(roster, memory);
    memset(memory, 0, fsdpi_roster_bytes(ranks));
    for (int level = 0; level < roster->levels; level++) {
        make_level(roster, level, level % 2 == 0 ? node_of : scratch, level % 2 == 0 ? scratch : node_of);
    }
}

/* ---- asking ----------------------------------------------------------------------------------------------------------- */

/* Behind the last level the ranks of a node stand together: where those of this one begin, if they begin at `from` of the first. */
static int descend(const fsdpi_roster *roster, int node, int from)
{
    for (int level = 0; level < roster->levels; level++) {
        from = below(roster, level, from, (node >> (roster->levels - 1 - level) & 1) != 0);
    }
    return from;
}

fsdpi_seated fsdpi_roster_search(const fsdpi_roster *roster, int rank)
{
    fsdpi_seated seated = {0, 0};
    int          begin  = 0;

    for (int level = 0; level < roster->levels; level++) {
        const bool bit = bit_at(roster, level, rank);

        rank        = below(roster, level, rank, bit);
        begin       = below(roster, level, begin, bit);
        seated.node = seated.node << 1 | bit;
    }
    seated.position = rank - begin;
    return seated;
}

int fsdpi_roster_search_rank(const fsdpi_roster *roster, int node, int position)
{
    int at = descend(roster, node, 0) + position;

    for (int level = roster->levels - 1; level >= 0; level--) {
        at = above(roster, level, at, (node >> (roster->levels - 1 - level) & 1) != 0);
    }
    return at;
}

int fsdpi_roster_search_size(const fsdpi_roster *roster, int node)
{
    return descend(roster, node, roster->ranks) - descend(roster, node, 0);
}
