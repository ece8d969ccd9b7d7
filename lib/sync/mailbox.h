/**
 * @file
 * How the ranks of a node meet: in shared memory, by numbers that only grow.
 *
 * Every operation, and every block of a large one, has a number. For number n a rank writes a letter into slot n mod 2 of
 * its own, the number last, and reads the letters of its peers. A peer can be at most one number ahead, since it needs
 * everyone's letter to get past the next one; so two slots are enough, and no one waits for a slot to be read.
 * A letter is one cache line; what it carries stands in it if it is short, else in the slot behind it.
 *
 * Besides, each rank has a milestone, a number that says how far it is within an operation, and on its board a leader
 * tells its node what the other nodes have said.
 *
 * Who gives an operation up says so to its node in two steps, so that no peer takes it for done: first it doubts, on every
 * desk, and looks once more whether what it waits for has come; only if not, it leaves a notice. Peers look for doubts
 * before an operation is done, behind the last thing that it waits for. Of two that meet there, one sees what the other has
 * written: either who doubts finds that all has come, and takes its doubt back, or nobody takes the operation for done.
 */
#ifndef FSDPI_MAILBOX_H
#define FSDPI_MAILBOX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/core.h"
#include "lib/node/nodes.h"
#include "lib/node/segment.h"
#include "lib/sync/rank_list.h"

enum { FSDPI_LINE = 64, FSDPI_SHORT_BYTES = 32 };

/** One cache line. */
typedef struct fsdpi_letter {
    _Alignas(FSDPI_LINE) _Atomic uint64_t number;
    uint64_t call;        /* the fixed arguments, packed */
    uint64_t fingerprint; /* of all others */
    uint32_t flags;       /* fsdpi_flags that hold on this rank */
    int32_t  status;      /* fsdp_status of this rank */
    union {
        unsigned char payload[FSDPI_SHORT_BYTES];
        struct {
            uint64_t in, out;               /* addresses, or offsets into symmetric buffers */
            uint32_t in_buffer, out_buffer; /* their numbers; 0: an address */
        };
    };
} fsdpi_letter;

/** What a rank that has given up leaves for its node. */
typedef struct fsdpi_notice {
    uint64_t        sequence; /* of the operation */
    uint32_t        stuck;    /* those missing answer, but wait for nobody */
    fsdpi_rank_list missing;
} fsdpi_notice;

/** What a rank lays out for its peers, besides its slots. Each member is written by that rank alone, unless it says otherwise. */
typedef struct fsdpi_desk {
    _Alignas(FSDPI_LINE) _Atomic uint64_t milestone;
    _Alignas(FSDPI_LINE) _Atomic uint32_t sleepers; /* peers that sleep until this rank gets on; written by these */
    _Atomic uint32_t bell;                          /* rung for them */
    _Atomic uint32_t doubts;  /* ranks of the node that are giving up, or have; written by these */
    _Atomic uint32_t noticed; /* there is a notice */
    fsdpi_notice     notice;
    fsdpi_letter     board[2]; /* a leader's: the verdict of all nodes */
} fsdpi_desk;

/**
 * Of a rank's part of the vector: how many chunks of it have landed on this node, in the operation of a letter. Written by the
 * one rank of the node that has the part first.
 */
typedef struct fsdpi_landing {
    _Atomic uint64_t number; /* of that letter, stored last */
    _Atomic uint64_t chunks;
} fsdpi_landing;

typedef struct fsdpi_mailbox {
    fsdpi_core             *core;
    const fsdpi_nodes      *nodes;
    int                     looks; /* at a word, before giving way */
    fsdpi_segment           segment;
    fsdpi_landing          *landings;   /* by rank of the context, once for the node */
    void                   *map;        /* the arrays of `nodes`, likewise */
    fsdpi_desk            **desks;      /* of each position on the node */
    unsigned char         **areas;      /* and its staging memory: slot 0, slot 1, and the rest */
    size_t                  slot_bytes; /* of a slot, its letter included */
    size_t                  rest_bytes;
    uint64_t                number;    /* of the last letter that this rank has written */
    int                     seen;      /* peers whose letter, or milestone, of the present wait has been seen */
    const _Atomic uint64_t *asleep_on; /* what the last poll found wanting: for fsdpi_mailbox_sleep() */
    uint64_t                asleep_value;
    fsdpi_desk             *asleep_at;
    _Atomic(fsdpi_desk *)   sleeps_at; /* while a thread of this rank sleeps */
} fsdpi_mailbox;

/**
 * BYTES of shared memory per rank beyond its staging memory, and of bookkeeping in all, for a context of `size` ranks. What a
 * node has once counts whole for each of its ranks, so that a budget need not know the nodes.
 */
size_t fsdpi_desk_bytes(void);
size_t fsdpi_mailbox_bookkeeping(int size);

/**
 * Lays out the mailbox of a node, with a copy of the arrays of `nodes`. Collective over the node; ranks still have to agree on
 * the verdicts, behind which all of it is there.
 */
fsdp_status fsdpi_mailbox_open(fsdpi_mailbox *box, fsdpi_core *core, const fsdpi_nodes *nodes);
void        fsdpi_mailbox_close(fsdpi_mailbox *box);

/** How many cores this node has: where each of its ranks can have one, who waits for a word looks at it for longer. */
void fsdpi_mailbox_set_cores(fsdpi_mailbox *box, int cores);

/** The letter of a position for a number; what it carries beyond FSDPI_SHORT_BYTES begins right behind it. */
static inline fsdpi_letter *fsdpi_letter_of(const fsdpi_mailbox *box, int position, uint64_t number)
{
    return (fsdpi_letter *)(void *)(box->areas[position] + (number & 1) * box->slot_bytes);
}

static inline unsigned char *fsdpi_slot_of(const fsdpi_mailbox *box, int position, uint64_t number)
{
    return (unsigned char *)(fsdpi_letter_of(box, position, number) + 1);
}

/** BYTES that a slot has room for, its letter not counted. */
static inline size_t fsdpi_slot_capacity(const fsdpi_mailbox *box)
{
    return box->slot_bytes - sizeof(fsdpi_letter);
}

/** The staging memory of a position behind its slots. */
static inline unsigned char *fsdpi_rest_of(const fsdpi_mailbox *box, int position)
{
    return box->areas[position] + 2 * box->slot_bytes;
}

/** Sends this rank's letter of a number, which has been written but for the number. */
void fsdpi_mailbox_post(fsdpi_mailbox *box, fsdpi_letter *letter, uint64_t number);

/** Whether the letters of a number have come from all peers. Call until it does, for one number at a time. */
bool fsdpi_mailbox_arrived(fsdpi_mailbox *box, uint64_t number);

/** How far a rank is within an operation: a milestone. Later operations have higher ones. */
#define FSDPI_MILESTONE(number, stage) ((number) << 2 | (stage))
enum { FSDPI_HALFWAY = 1, FSDPI_LEFT = 3 };

/** Sets this rank's milestone, and asks whether all peers have reached one. */
void fsdpi_milestone_set(fsdpi_mailbox *box, uint64_t milestone);
bool fsdpi_milestone_reached(fsdpi_mailbox *box, uint64_t milestone);

/** Whether a word of a peer's desk holds at least a value; remembers it for fsdpi_mailbox_sleep(). */
bool fsdpi_word_reached(fsdpi_mailbox *box, fsdpi_desk *desk, const _Atomic uint64_t *word, uint64_t value);

/** Adds the ranks of this node that the last poll found wanting: whose letter, milestone or board has not come. */
void fsdpi_mailbox_awaited(const fsdpi_mailbox *box, fsdpi_rank_list *list);

/** Begins to doubt that an operation can be done, or takes that back; and whether any rank of the node doubts. */
void fsdpi_mailbox_doubt(fsdpi_mailbox *box, bool doubts);

static inline bool fsdpi_mailbox_is_doubted(const fsdpi_mailbox *box)
{
    return atomic_load_explicit(&box->desks[box->nodes->position]->doubts, memory_order_acquire) != 0;
}

/** Leaves a notice, while in doubt; and the notice of whoever has left one. */
void                fsdpi_mailbox_leave_notice(fsdpi_mailbox *box, const fsdpi_notice *notice);
const fsdpi_notice *fsdpi_mailbox_notice(const fsdpi_mailbox *box);

/** Wakes peers that sleep on this rank's desk: after each store that they may be waiting for. */
void fsdpi_mailbox_wake(fsdpi_mailbox *box);

/** Sleeps until what the last poll found wanting changes, at most so many seconds. False: there is nothing such. */
bool fsdpi_mailbox_sleep(fsdpi_mailbox *box, double seconds);

/** Ends the sleep of this rank's thread, if one sleeps. From any thread. */
void fsdpi_mailbox_rouse(fsdpi_mailbox *box);

/**
 * Tells the node how many chunks of a part have landed in the present operation, and asks. Its ranks end the operation together,
 * or agree on its end.
 */
void     fsdpi_mailbox_set_landed(fsdpi_mailbox *box, int part, uint64_t chunks);
uint64_t fsdpi_mailbox_landed(const fsdpi_mailbox *box, int part);

#endif
