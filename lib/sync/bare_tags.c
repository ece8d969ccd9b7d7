#include "lib/sync/bare_tags.h"

#include "lib/base/hash.h"

/* Such a message has the flags of USUAL, can have those of MAYBE, and has a good status. */
static const uint32_t USUAL = FSDPI_FLAG_SAME | FSDPI_FLAG_ONE_PLACE, MAYBE = FSDPI_FLAG_OFFERED | FSDPI_FLAG_STILL;

enum { OFFERED = 1, STILL = 2, FLAGS = 4 };

int fsdpi_first_bare_tag(int largest_tag)
{
    int first = 1;

    while (first <= (largest_tag - 3) / 4 + 1) { /* twice as many fit */
        first *= 2;
    }
    return first;
}

bool fsdpi_is_usual(const fsdpi_opinion *opinion)
{
    return opinion->flags == (USUAL | MAYBE) && opinion->status == FSDP_OK;
}

static int tag_of(int first, int turn, const fsdpi_opinion *opinion)
{
    const uint32_t offered = (opinion->flags & FSDPI_FLAG_OFFERED) != 0 ? OFFERED : 0;
    const uint32_t still   = (opinion->flags & FSDPI_FLAG_STILL) != 0 ? STILL : 0;
    const uint64_t call    = (fsdpi_hash_word(0, opinion->call) >> 32) * ((uint32_t)first / FLAGS) >> 32;

    return (int)((uint32_t)first + ((uint32_t)call ^ (uint32_t)turn) * FLAGS + still + offered);
}

int fsdpi_bare_tag(int first, int turn, const fsdpi_opinion *opinion)
{
    enum { LEAST_TAGS = 1 << 22 }; /* a million calls */

    return first >= LEAST_TAGS && opinion->status == FSDP_OK && (opinion->flags & ~MAYBE) == USUAL
               ? tag_of(first, turn, opinion)
               : 0;
}

int fsdpi_tag_of_begun(int first, int bare_tag)
{
    return first / 2 + (bare_tag - first) / FLAGS;
}

bool fsdpi_is_tag_of_begun(int first, int tag)
{
    return tag >= first / 2 && tag < first;
}

fsdpi_opinion fsdpi_opinion_of_tag(int first, int turn, const fsdpi_opinion *own, int tag)
{
    const bool     is_begun = fsdpi_is_tag_of_begun(first, tag);
    const uint32_t place   = is_begun ? (uint32_t)(tag - first / 2) * FLAGS + STILL + OFFERED : (uint32_t)(tag - first);
    const uint32_t offered = (place & OFFERED) != 0 ? FSDPI_FLAG_OFFERED : 0;
    const uint32_t still   = (place & STILL) != 0 ? FSDPI_FLAG_STILL : 0;
    const bool     is_same = place / FLAGS == (uint32_t)(tag_of(first, turn, own) - first) / FLAGS;

    return (fsdpi_opinion){.call = is_same ? own->call : ~own->call, .flags = USUAL | offered | still};
}
