/**
 * @file
 * What is kept of an operation across nodes between two of its steps: which chunks have been sent and have come. Its
 * meaning is that of collectives/rails/rails.h. However many nodes there are, only the chunks that are under way are kept.
 */
#ifndef FSDPI_RAILS_H
#define FSDPI_RAILS_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/clock.h"
#include "lib/base/core.h"
#include "lib/base/giving_way.h"

/** What a rank sends to other nodes, and receives: partial reductions, and parts of the vector. */
typedef enum fsdpi_stream_kind {
    FSDPI_PARTIALS_OUT,
    FSDPI_PARTIALS_IN,
    FSDPI_PARTS_OUT,
    FSDPI_PARTS_IN,
    FSDPI_STREAMS
} fsdpi_stream_kind;

enum {
    FSDPI_RAILS_DEPTH  = 4,   /* chunks to or from one rank that are under way at once, at most */
    FSDPI_RAILS_FEW    = 64,  /* chunks of a stream, at most, where there are few ranks */
    FSDPI_RAILS_WINDOW = 128, /* and where there are many */
    FSDPI_RAILS_FOLDS  = 4    /* reductions under way at once, at most */
};

/** How far the chunks of a stream have been named, one after the other; see collectives/rails/schedule.h. */
typedef struct fsdpi_cursor {
    size_t round;
    int    step, turn; /* which node, or rank; which of its ranks */
    size_t chunk;      /* of the part; of those in this round */
    size_t end;        /* behind the last of these */
    int    peer, part; /* ranks: with whom, and whose part of the vector it is */
    size_t begin;      /* ELEMENTS: where that part begins */
    size_t count;      /* ELEMENTS of it */
    bool   open;       /* it has begun */
} fsdpi_cursor;

/** A chunk that is under way. */
typedef struct fsdpi_parcel {
    int    peer, part;   /* ranks */
    size_t begin, count; /* ELEMENTS */
    bool   first;        /* of its rank, in this round */
    bool   complete;     /* MPI has said so */
} fsdpi_parcel;

/**
 * Chunks one after the other, in the order in which both sides name them. Each count is of all so far; a chunk is kept, and
 * its place in staging memory taken, until it is released.
 */
typedef struct fsdpi_stream {
    fsdpi_cursor  next;
    bool          named;   /* all there are */
    fsdpi_parcel *parcels; /* by number modulo `window` */
    size_t        window;
    size_t        places; /* chunks that are before its own in staging memory, where it has any there */
    size_t        taken;  /* from the schedule */
    size_t        posted; /* to MPI */
    size_t        done;   /* come or gone */
    size_t        begun;  /* what there is to do here before they go, or when they have come */
    size_t        ended;  /* the same: done */
    size_t        released;
} fsdpi_stream;

/** One reduction of what has come: of so many chunks, and whether a chunk of this rank's part is final by it. */
typedef struct fsdpi_fold {
    size_t chunks;
    bool   is_last;
} fsdpi_fold;

/** What this rank has copied from a peer on its node. */
typedef struct fsdpi_copied {
    fsdpi_cursor next;  /* of what comes to the peer from other nodes */
    bool         named; /* all of it */
    size_t       come;  /* chunks of it */
    size_t       own;   /* chunks of the peer's own part */
} fsdpi_copied;

/** An input that caches may still hold, and when it was read: SECONDS, by fsdpi_seconds(). */
typedef struct fsdpi_read {
    const void *input;
    double      at;
} fsdpi_read;

enum { FSDPI_RECENT_READS = 8 };

static inline bool fsdpi_is_recent(const fsdpi_read *read, const void *input)
{
    static const double JUST_NOW = 1e-3;

    return read->input == input && fsdpi_seconds() - read->at < JUST_NOW;
}

static inline fsdpi_read fsdpi_read_now(const void *input)
{
    return (fsdpi_read){.input = input, .at = fsdpi_seconds()};
}

typedef struct fsdpi_rails {
    fsdpi_core  *core;
    unsigned     route; /* fsdpi_route, of the present operation */
    fsdpi_stream streams[FSDPI_STREAMS];
    size_t       chunk;     /* ELEMENTS */
    size_t       places;    /* of staging memory, a chunk each, that streams use */
    size_t       depth;     /* chunks to or from one rank at once */
    size_t       at_once;   /* chunks that are sent before MPI takes what has come: see collectives/rails/messages.c */
    size_t       in_turn;   /* chunks of partial results to one rank before the next one's */
    bool       is_ordered;  /* not all nodes' partial results of a chunk have places: they come in the order of nodes */
    bool       copies_last; /* this rank's own part, when all has come */
    bool       has_turns;   /* partial results go to one rank after the other */
    size_t     leaving;     /* BYTES of these under way */
    size_t     most;        /* chunks of the longest part */
    size_t     chunks;      /* of this rank's own part */
    size_t     fold_most;   /* chunks that a reduction takes, where it does not take all */
    int        folding;     /* node that is next in the order of reduction */
    size_t     taken;       /* chunks that have come and have been reduced, or are about to be */
    size_t     reducing;    /* chunks of this rank's own part: final, or about to be */
    size_t     reduced;     /* final */
    fsdpi_fold folds[FSDPI_RAILS_FOLDS];
    size_t     folds_begun, folds_ended;
    size_t     own_copied;       /* ELEMENTS of this rank's own part that are in the result */
    size_t     told;             /* chunks from other nodes that the ranks of this node know to be here */
    fsdpi_copied    *copied;     /* by position on the node */
    fsdpi_parcel    *parcels;    /* of all streams */
    MPI_Request     *messages;   /* under way, in no order */
    uint32_t        *numbers;    /* of each of them: see fsdpi_rails_number() */
    int             *completed;  /* for MPI_Testsome() */
    int              n_messages; /* under way */
    size_t           n_working;  /* chunks on which work has been begun whose end a mark will tell */
    bool             is_still;   /* the last look has found nothing to do */
    fsdpi_giving_way giving_way; /* to MPI, behind each chunk on a slow link */
    fsdpi_read       summed;     /* by the last allreduce of two ranks */
    fsdpi_read       reads[FSDPI_RECENT_READS]; /* by the last operations on host memory, in no order */
} fsdpi_rails;

/** Chunks of a stream that may be under way in a context of `size` ranks. */
static inline size_t fsdpi_rails_window(int size)
{
    const size_t all = (size_t)2 * FSDPI_RAILS_DEPTH * (size_t)size;

    return all < FSDPI_RAILS_FEW ? FSDPI_RAILS_FEW : all < FSDPI_RAILS_WINDOW ? all : FSDPI_RAILS_WINDOW;
}

/** A number for each chunk under way, and for its message and its mark; behind them come those of reductions, and one more. */
static inline size_t fsdpi_rails_number(const fsdpi_rails *rails, fsdpi_stream_kind kind, size_t n)
{
    return (size_t)kind * fsdpi_rails_window(rails->core->size) + n % rails->streams[kind].window;
}

static inline size_t fsdpi_rails_fold_number(const fsdpi_rails *rails, size_t fold)
{
    return FSDPI_STREAMS * fsdpi_rails_window(rails->core->size) + fold % FSDPI_RAILS_FOLDS;
}

static inline size_t fsdpi_rails_start_number(const fsdpi_rails *rails)
{
    return FSDPI_STREAMS * fsdpi_rails_window(rails->core->size) + FSDPI_RAILS_FOLDS;
}

/** How many of these numbers there are, for a context of `size` ranks. */
static inline size_t fsdpi_rails_numbers(int size)
{
    return FSDPI_STREAMS * fsdpi_rails_window(size) + FSDPI_RAILS_FOLDS + 1;
}

fsdp_status fsdpi_rails_open(fsdpi_rails *rails, fsdpi_core *core);
void        fsdpi_rails_close(fsdpi_rails *rails);
size_t      fsdpi_rails_bookkeeping(int size);

#endif
