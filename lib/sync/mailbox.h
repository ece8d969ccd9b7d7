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
 * On a node of many ranks nobody looks at all of these. In a tree (lib/node/tree.h) a rank looks at the letters of those that
 * it hears, joins what they say, and passes that on as a sum; the leader, which hears of all, tells the verdict on its board,
 * and who has been told it tells those below. Then all letters are there, for whoever needs more of them than they say
 * together. Milestones go up and down in the same way.
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
#include "lib/node/tree.h"
#include "lib/sync/opinion.h"
#include "lib/sync/rank_list.h"

enum { FSDPI_LINE = 64, FSDPI_SHORT_BYTES = 40 };

/** Where the buffers of a rank are: addresses, or offsets into symmetric buffers. */
typedef struct fsdpi_addresses {
    uint64_t in, out;
    uint32_t in_buffer, out_buffer; /* their numbers; 0: an address */
} fsdpi_addresses;

/** One cache line. */
typedef struct fsdpi_letter {
    _Alignas(FSDPI_LINE) _Atomic uint64_t number;
    uint64_t call;   /* a hash of what this rank calls, and of all arguments that must not differ */
    uint32_t flags;  /* fsdpi_flags that hold on this rank */
    int32_t  status; /* fsdp_status of this rank */
    union {
        unsigned char   payload[FSDPI_SHORT_BYTES];
        fsdpi_addresses at;
    };
} fsdpi_letter;

/** What a rank that has given up leaves for its node. */
typedef struct fsdpi_notice {
    uint64_t        sequence; /* of the operation */
    uint32_t        stuck;    /* those missing answer, but wait for nobody */
    fsdpi_rank_list missing;
} fsdpi_notice;

/** What of an operation between nodes is on a rank: chunks that it receives for its node, or that are final of its own part. */
typedef enum fsdpi_landed { FSDPI_LANDED_HERE, FSDPI_LANDED_FINAL, FSDPI_N_LANDED } fsdpi_landed;

/** How many of these there are by now, in the order in which they come. */
typedef struct fsdpi_landing {
    _Atomic uint64_t number; /* of the letter of the operation, stored last */
    _Atomic uint64_t chunks;
} fsdpi_landing;

/** By which a rank wakes peers that sleep until it gets on. */
typedef struct fsdpi_bell {
    _Atomic uint32_t sleepers; /* written by these */
    _Atomic uint32_t rung;
} fsdpi_bell;

/** What a rank lays out for its peers, besides its slots. Each member but bells, doubts and claims is written by that rank alone. */
typedef struct fsdpi_desk {
    _Alignas(FSDPI_LINE) _Atomic uint64_t milestone;
    fsdpi_place      place;               /* where it is bound; written once */
    _Atomic uint64_t claimed;             /* on the leader's desk, the number of the last warning; written by any */
    _Alignas(FSDPI_LINE) fsdpi_bell bell; /* for those who wait for what this rank does or passes on */
    _Alignas(FSDPI_LINE) fsdpi_bell told; /* for those who wait for what it tells */
    fsdpi_letter board[2];                /* the verdict: a leader's, and in a tree of all that others hear */
    _Alignas(FSDPI_LINE) fsdpi_landing landed[FSDPI_N_LANDED];
    _Atomic uint32_t doubts;  /* ranks of the node that are giving up, or have; written by these */
    _Atomic uint32_t noticed; /* there is a notice */
    fsdpi_notice     notice;
    /* In a tree, of a rank that hears others: */
    fsdpi_letter sums[2];                      /* what it says together with all below */
    _Alignas(FSDPI_LINE) _Atomic uint64_t sum; /* the milestone that it and all below have reached */
    _Alignas(FSDPI_LINE) _Atomic uint64_t all; /* the one that all of the node have */
} fsdpi_desk;

typedef struct fsdpi_mailbox {
    fsdpi_core             *core;
    const fsdpi_nodes      *nodes;
    int                     looks;   /* at a word, before giving way */
    bool                    hurried; /* there is other work: one look has to do */
    fsdpi_segment           segment;
    void                   *map;      /* the memory of `nodes`, once for the node */
    fsdpi_desk            **desks;    /* of each position on the node */
    unsigned char         **areas;    /* and its staging memory: slot 0, slot 1, and the rest */
    int                     position; /* of this rank */
    int                     direct;   /* positions that this rank looks at itself: all, or none where there is a tree */
    fsdpi_branch            tree;     /* where there is none: nobody is below, and the leader above */
    fsdpi_bell             *bell; /* of this rank, for what it does; where others wait for its sums, that of nobody */
    fsdpi_bell              nobody;
    size_t                  slot_bytes; /* of a slot, its letter included */
    size_t                  rest_bytes;
    uint64_t                number;    /* of the last letter that this rank has written */
    int                     seen;      /* peers whose letter, or milestone, of the present wait has been seen */
    const _Atomic uint64_t *asleep_on; /* what the last poll found wanting: for fsdpi_mailbox_sleep() */
    uint64_t                asleep_value;
    fsdpi_bell             *asleep_at;
    _Atomic(fsdpi_bell *)   sleeps_at; /* while a thread of this rank sleeps */
} fsdpi_mailbox;

/**
 * BYTES of bookkeeping of `n` mailboxes, for a context of `size` ranks. What a node has once counts whole for each of its ranks,
 * so that a budget need not know the nodes.
 */
size_t fsdpi_mailboxes_bookkeeping(int size, int n);

/**
 * Lays out `n` mailboxes of a node, the i-th with staging[i] BYTES for each rank, and a copy of the memory of `nodes`, whose place
 * is the first one's `map`. Collective over the node; ranks still have to agree on the verdicts, behind which all of it is there.
 */
fsdp_status fsdpi_mailboxes_open(fsdpi_mailbox *const boxes[], const size_t staging[], int n, fsdpi_core *core,
                                 const fsdpi_nodes *nodes);
void        fsdpi_mailboxes_close(fsdpi_mailbox *const boxes[], int n);

/** Grows the tree of a node that needs one, behind the agreement; from where the first mailbox of the node says that ranks are bound. */
void fsdpi_mailbox_grow(fsdpi_mailbox *box, const fsdpi_mailbox *first);

/**
 * How many cores the ranks of this node have, 0 if they take turns: where each can have one, who waits for a word looks at it for
 * longer.
 */
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

/** What a letter says, apart from what it carries. */
static inline fsdpi_opinion fsdpi_read_opinion(const fsdpi_letter *letter)
{
    return (fsdpi_opinion){letter->call, letter->flags, letter->status};
}

static inline void fsdpi_write_opinion(fsdpi_letter *letter, const fsdpi_opinion *opinion)
{
    letter->call   = opinion->call;
    letter->flags  = opinion->flags;
    letter->status = opinion->status;
}

/** Sends this rank's letter of a number, which has been written but for the number. */
void fsdpi_mailbox_post(fsdpi_mailbox *box, fsdpi_letter *letter, uint64_t number);

/** Whether the letters of a number have come from all peers. Call until it does, for one number at a time. */
bool fsdpi_mailbox_arrived(fsdpi_mailbox *box, uint64_t number);

/**
 * Across nodes: whether they have come as far as this rank has to see to it. On the leader they are all there then; on others
 * for certain once they have been told the verdict. Call until it does.
 */
bool fsdpi_mailbox_heard(fsdpi_mailbox *box, uint64_t number);

/** Tells the node a verdict, as its leader; and, on the others, whether it has come. Call until it does. */
void fsdpi_mailbox_tell(fsdpi_mailbox *box, uint64_t number, const fsdpi_opinion *verdict);
bool fsdpi_mailbox_told(fsdpi_mailbox *box, uint64_t number);

/** What this rank has been told; on the leader in a tree what it has heard. */
fsdpi_opinion fsdpi_mailbox_verdict(const fsdpi_mailbox *box, uint64_t number);

/** Whether the ranks of the node hear of each other in a tree, so that letters have been joined. */
static inline bool fsdpi_mailbox_has_tree(const fsdpi_mailbox *box)
{
    return box->direct == 0;
}

/** How far a rank is within an operation: a milestone. Later operations have higher ones. */
#define FSDPI_MILESTONE(number, stage) ((number) << 2 | (stage))
enum { FSDPI_HALFWAY = 1, FSDPI_LEFT = 3 };

/** Sets this rank's milestone, and asks whether all peers have reached one. */
void fsdpi_milestone_set(fsdpi_mailbox *box, uint64_t milestone);
bool fsdpi_milestone_reached(fsdpi_mailbox *box, uint64_t milestone);

/** Whether a word of a peer's, which rings that bell, holds at least a value; remembers it for fsdpi_mailbox_sleep(). */
bool fsdpi_word_reached(fsdpi_mailbox *box, fsdpi_bell *bell, const _Atomic uint64_t *word, uint64_t value);

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

/** Whether this rank is the first of its node to see to what has this number; numbers grow. */
bool fsdpi_mailbox_claim(fsdpi_mailbox *box, uint64_t number);

/** Wakes peers that sleep by a bell of this rank's: after each store that they may be waiting for. */
void fsdpi_bell_ring(fsdpi_bell *bell);

/** Sleeps until what the last poll found wanting changes, at most so many seconds. False: there is nothing such. */
bool fsdpi_mailbox_sleep(fsdpi_mailbox *box, double seconds);

/** Ends the sleep of this rank's thread, if one sleeps. From any thread. */
void fsdpi_mailbox_rouse(fsdpi_mailbox *box);

/**
 * Tells the node how many chunks have landed on this rank in the present operation, and asks it of another. The ranks of a node
 * end the operation together, or agree on its end.
 */
void     fsdpi_mailbox_set_landed(fsdpi_mailbox *box, fsdpi_landed what, uint64_t chunks);
uint64_t fsdpi_mailbox_landed(const fsdpi_mailbox *box, int position, fsdpi_landed what);

/**
 * In a tree, for lib/sync/mailbox.c: whether the letters of all below have come, and their sum has been passed on; whether those
 * of the whole node have, or it has reached a milestone, and those below have been told so. Call until it does.
 */
bool fsdpi_tree_heard(fsdpi_mailbox *box, uint64_t number);
bool fsdpi_tree_arrived(fsdpi_mailbox *box, uint64_t number);
bool fsdpi_tree_reached(fsdpi_mailbox *box, uint64_t milestone);

#endif
