/**
 * @file
 * One operation: its arguments, what the queue has to know of its collective and its algorithm, and how far it is.
 */
#ifndef FSDPI_REQUEST_H
#define FSDPI_REQUEST_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fsdp/collectives.h"
#include "lib/base/core.h"
#include "lib/base/step.h"
#include "lib/node/nodes.h"
#include "lib/progress/lane.h"
#include "lib/progress/verdicts.h"
#include "lib/record/recorder.h"
#include "lib/sync/opinion.h"
#include "lib/sync/pairs.h"
#include "lib/sync/rails.h"
#include "lib/sync/rank_list.h"
#include "lib/sync/trace.h"

/** Which part of the vector belongs to which rank. */
typedef enum fsdpi_division {
    FSDPI_DIVISION_EQUAL,  /* `count` each */
    FSDPI_DIVISION_COUNTS, /* counts[r] */
    FSDPI_DIVISION_SPLIT,  /* `count` in all, split as evenly as cache lines allow */
    FSDPI_DIVISION_ROOT    /* `count` in all, for `root` */
} fsdpi_division;

/** Of alltoallv, a number per rank each, in ELEMENTS. */
typedef enum fsdpi_block_list {
    FSDPI_SEND_COUNTS,
    FSDPI_SEND_PLACES,
    FSDPI_RECEIVE_COUNTS,
    FSDPI_RECEIVE_PLACES,
    FSDPI_N_BLOCK_LISTS
} fsdpi_block_list;

typedef struct fsdpi_algorithm fsdpi_algorithm;
struct fsdpi_letter;

/** What the queue has to know of a collective; each has its own, in its folder. */
typedef struct fsdpi_collective {
    const char *name; /* "allgather" */
    int         id;   /* for the fingerprint and the table of algorithms; not 0 */

    /** Before the agreement: claims memory. Local. NULL: needs none. */
    fsdp_status (*prepare)(fsdp_request *request);
    /**
     * Whether its data is so short that it always rides on the agreement, with nothing else to be said of it: `record` need not be
     * asked then, nor `offer` unless fsdpi_pairs_may_place(). Where each rank is a node that exchanges in pairs with the others, and
     * its caller waits. NULL: never.
     */
    bool (*is_brief)(const fsdp_request *request);
    /** Fills in what the letter carries, and returns the flags that hold on this rank. */
    unsigned (*offer)(fsdp_request *request, struct fsdpi_letter *letter);
    /** On a leader, where all ranks of its node offer: what the other nodes need of it. Returns how many BYTES. */
    size_t (*record)(fsdp_request *request, unsigned char *payload);
    /**
     * There, where nodes exchange in pairs: what a node needs, from that record or an input; where what it sends belongs; and how
     * many BYTES that are, or 0 where none of it is so long that fsdpi_pairs_may_place().
     */
    fsdpi_portion (*portion)(fsdp_request *request, int node);
    void *(*place)(fsdp_request *request, int node);
    size_t (*expected)(fsdp_request *request, int node);
    /**
     * There, once all have agreed, while what is apart from the agreement is still on its way; where request->is_put_off, `portion`
     * is then asked again, for what it has announced. NULL: nothing is done then.
     */
    void (*agreed)(fsdp_request *request);
    /** After it: how to go on, from request->flags, which are the same on all ranks. NULL: all is done. */
    const fsdpi_algorithm *(*choose)(fsdp_request *request);
} fsdpi_collective;

/** Which ELEMENT of the whole the part of a rank begins with; for the number of ranks, how many there are. */
typedef size_t fsdpi_begins(const void *divided, int rank);

/** The arguments of one operation, as the caller gave them. */
typedef struct fsdpi_call {
    const fsdpi_collective *collective; /* NULL: an agreement only */
    const char             *name;       /* "fsdp_allgather", or what this is a step of */
    const char             *label;      /* what it is done for, as a unit's name; or NULL. Compared between ranks. */
    const char             *note;  /* more to be said of it in an error, as why it is called; or NULL. Not compared. */
    const void             *given; /* the input, as the caller gave it */
    const void             *in;    /* FSDP_IN_PLACE is replaced by where the input really is */
    void                   *out;
    size_t                  in_bytes, out_bytes; /* of this rank's buffers */
    size_t                  width;               /* BYTES of an element */
    size_t                  whole;               /* ELEMENTS of the full vector */
    size_t                  count;               /* ELEMENTS; its meaning is the division's */
    const size_t           *counts;
    fsdpi_begins           *begins;  /* instead of counts: where parts begin; ranks agree on `salt` for it */
    const void             *divided; /* for `begins` */
    const size_t           *blocks[FSDPI_N_BLOCK_LISTS]; /* of alltoallv: not compared between ranks; else NULL */
    fsdp_dtype              dtype;
    fsdp_redop              op;
    int                     root;
    fsdpi_division          division;
    bool                    has_op;
    bool                    has_root;
    bool                    has_data;
    bool                    on_device;   /* the buffers are on this rank's GPU */
    bool                    is_step;     /* of something else: ranks have to agree on its name too */
    bool                    is_behind;   /* begins only when all that was issued before it is done */
    bool                    is_reserved; /* one of those that fsdpi_queue_reserve() was asked for */
    uint64_t                salt;        /* further arguments that ranks must agree on */
} fsdpi_call;

/** One that is not a step of anything, and whose arguments have a fixed size. */
typedef struct fsdpi_plain_call {
    const fsdpi_collective *collective;
    const void             *in;
    void                   *out;
    size_t                  count;
    fsdp_dtype              dtype;
    fsdp_redop              op;
} fsdpi_plain_call;

/** BYTES that a step of an algorithm copies on the host, at most: what comes in between waits for some 50 us. */
enum { FSDPI_STEP_BYTES = 512 << 10 };

/** How an operation is carried out. */
struct fsdpi_algorithm {
    const char *name;
    /** Does a bounded piece of work. Never blocks. Called until it says FSDPI_FINISHED. */
    fsdp_status (*advance)(fsdp_request *request, fsdpi_progress *progress);
    /** Behind the leaving of all ranks of the node. NULL: nothing to do. */
    void (*end)(fsdp_request *request);
    /** Adds ranks that its steps wait for: by messages of its own, or by words that no mailbox knows. NULL: there are none. */
    void (*awaited)(const fsdp_request *request, fsdpi_rank_list *list);
    bool is_short;        /* few steps, with what letters and records carry: it stays in the short lane */
    bool is_rider;        /* with nothing else: all of it has come when ranks have agreed */
    bool leaves_together; /* peers read this rank's memory until they leave */
    bool agrees_at_end;   /* instead: an agreement on what request->verdict has become; `end` comes behind it */
};

typedef enum fsdpi_request_state {
    FSDPI_REQUEST_FREE,
    FSDPI_REQUEST_QUEUED,
    FSDPI_REQUEST_ARRIVING,        /* for the letters of the node */
    FSDPI_REQUEST_ASKING_NODES,    /* the leader, for those of the other nodes */
    FSDPI_REQUEST_AWAITING_LEADER, /* the others, for what it says */
    FSDPI_REQUEST_EXCHANGING_DETAILS,
    FSDPI_REQUEST_AGREED,  /* and in the long lane, behind others */
    FSDPI_REQUEST_MEETING, /* there: for the ranks of the node to come to it too */
    FSDPI_REQUEST_MOVING,
    FSDPI_REQUEST_LEAVING,
    FSDPI_REQUEST_DOUBTED, /* it has come to its end, but others may have given it up: see lib/progress/inquest.h */
    FSDPI_REQUEST_DONE
} fsdpi_request_state;

/** What of a context operations are carried out with. */
typedef struct fsdpi_engine {
    fsdpi_core        *core;
    const fsdpi_nodes *nodes;
    fsdpi_lane        *lanes;
    fsdpi_addresses  **addresses; /* of the operation at the head of the long lane */
    const fsdpi_rails *rails;
    const fsdpi_trace *trace;
    fsdpi_recorder    *recorder;
    struct fsdpi_gpu  *gpu;
    fsdpi_verdicts    *verdicts;
} fsdpi_engine;

/**
 * What the queue does for an operation because of where its buffers are: one table, for the memory of GPUs
 * (lib/progress/gpu_request.h). In host memory nothing is to be done, and there is none. NULL: nothing.
 */
typedef struct fsdpi_request_ops {
    fsdp_status (*issue)(fsdp_request *request);     /* when it is issued, on the caller's thread */
    void (*begin)(fsdp_request *request);            /* before its letter in the long lane, whose number is known */
    fsdp_status (*end)(fsdp_request *request);       /* when all ranks have agreed on its end */
    void (*abandon)(fsdp_request *request);          /* when they have not, before any of them returns */
    fsdp_status (*hand_over)(fsdp_request *request); /* when its caller has waited, on the caller's thread */
    void (*release)(fsdp_request *request); /* with the queue: what the request holds from one use to the next */
} fsdpi_request_ops;

struct fsdp_request {
    fsdp_context            *ctx; /* for those above lib/progress */
    struct fsdpi_queue      *queue;
    const fsdpi_engine      *engine;
    const fsdpi_request_ops *ops;  /* NULL: of host memory */
    fsdp_request            *next; /* in the queue, or among the free */
    fsdpi_lane              *lane; /* that it is in */
    fsdpi_call               call;
    fsdpi_addresses          buffers_at; /* where this rank's buffers are, as peers are told */
    const fsdpi_algorithm   *algorithm;
    _Atomic int              state;       /* an fsdpi_request_state; DONE is stored last */
    unsigned                 flags;       /* after the agreement: what holds on all ranks */
    bool                     is_reserved; /* taken from queue->reserved, to which it returns */
    bool                     is_blocking; /* its caller does nothing until it is done */
    bool                     is_still;    /* nothing moved in the long lane of any rank when all had agreed */
    bool                     is_at_once;  /* its issuer carries it out, and takes it out of its lane: one lock less */
    bool                     is_recorded; /* in the flight recorder */
    bool                     in_halves; /* what rides on the agreement is the first half of it; the same on all ranks */
    bool                     is_put_off; /* its data is sent when all have agreed: see fsdpi_collective::agreed */
    bool                     is_copied;  /* this rank's part lies in the result already */
    bool                     is_cold;    /* caches may not hold its memory: no operation has just read its input */
    bool                     closing;    /* the agreement under way is the one at the end */
    bool                     aside;      /* what it does next goes into the other stream of its context */
    bool                     unprinted;  /* what this rank has found, in `error` up to then: see lib/base/error.h */
    uint64_t
        era; /* one more than the queue's in which its call may repeat: see fsdpi_queue_run_again(); 0: it may not */
    uint64_t       fingerprint; /* of the call, where it may repeat */
    uint64_t       marks;       /* for the recorder: see fsdpi_recorder_call */
    fsdp_status    status;
    uint64_t       number; /* of its letter in that lane */
    uint64_t       sequence;
    double         issued, begun; /* for a trace */
    size_t         at;            /* for the algorithm: how far it is */
    int            stage, step;   /* likewise */
    unsigned char *scratch;       /* the operation's own memory, released when it is done */
    size_t         scratch_bytes;
    void          *event;   /* this and the next two for lib/progress/gpu_request.c; kept from one use to the next */
    void          *caller;  /* stream of the caller */
    fsdpi_verdict  verdict; /* of this rank */
    char           error[FSDPI_ERROR_BYTES]; /* the detail that fsdp_wait() hands on */
};

/** "fsdp_reduce of 5 f32 elements, sum, root 2, for unit h.0", in a context of `ranks`. */
void fsdpi_describe(const fsdpi_call *call, int ranks, char *text, size_t size);

/**
 * Fetches the result's memory into the caches while the others' data is on its way: a short operation would wait for it at its end. With
 * 2 KiB instead of 16, allgathers of 8 and 16 KiB took 30% longer on one node, and 10 to 18% between two over vader (AMD). Of a long result,
 * only the beginning.
 */
static inline void fsdpi_fetch_result(const fsdpi_call *call)
{
    enum { SHORT_BYTES = 32 << 10, MOST_BYTES = 16 << 10, BEGINNING = 2 << 10 };
    const unsigned char *out   = call->out;
    const size_t         most  = call->out_bytes <= SHORT_BYTES ? MOST_BYTES : BEGINNING;
    const size_t         bytes = call->out_bytes < most ? call->out_bytes : most;

    for (size_t i = 0; i < bytes; i += FSDPI_LINE) {
        __builtin_prefetch(out + i, 1);
    }
}

/** Keeps this rank's own verdict with the request, and its detail from the context. */
void fsdpi_take_local_verdict(fsdp_request *request, fsdp_status status);

#endif
