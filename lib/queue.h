/**
 * @file
 * The queue of operations of a context, carried out one after the other in the order of issue.
 *
 * An operation goes through
 *   1. prepare: claims its memory on this rank;
 *   2. agreement (lib/agreement.h): every rank learns whether all call the same with arguments that are good. It rides on
 *      the synchronisation that the operation needs anyway, and short data rides on it too. If the ranks do not agree,
 *      they exchange a line of text each, so that all return the same error with the same detail, and nothing moves;
 *   3. steps of an algorithm, none of which blocks;
 *   4. leaving: where peers read this rank's memory directly, it stays until they have finished. On GPUs, where a step can
 *      fail on one rank alone, that is a second agreement.
 * One thread at a time carries operations out: one that waits for them, or else the context's progress thread. A thread
 * that issues a blocking operation with nothing before it does all of it itself.
 */
#ifndef FSDPI_QUEUE_H
#define FSDPI_QUEUE_H

#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fsdp/collectives.h"
#include "lib/error.h"
#include "lib/lock.h"

/** Which part of the vector belongs to which rank. */
typedef enum fsdpi_division {
    FSDPI_DIVISION_EQUAL,  /* `count` each */
    FSDPI_DIVISION_COUNTS, /* counts[r] */
    FSDPI_DIVISION_SPLIT,  /* `count` in all, split as evenly as cache lines allow */
    FSDPI_DIVISION_ROOT    /* `count` in all, for `root` */
} fsdpi_division;

/** What holds on a rank, and, after the agreement, on all. */
typedef enum fsdpi_flags {
    FSDPI_FLAG_OFFERED   = 1,  /* the letter carries the data */
    FSDPI_FLAG_PLACES    = 2,  /* the letter says where the buffers are */
    FSDPI_FLAG_SYMMETRIC = 4,  /* these are symmetric */
    FSDPI_FLAG_SEPARATE  = 8,  /* input and output are different memory */
    FSDPI_FLAG_SHARED    = 16, /* the output is one buffer for the whole node */
    FSDPI_FLAG_DEVICE    = 64, /* the buffers are on GPUs */
    FSDPI_FLAG_SAME      = 32  /* in the letter of a node: all its ranks call the same */
} fsdpi_flags;

typedef struct fsdpi_algorithm fsdpi_algorithm;
struct fsdpi_letter;

/** What the queue has to know of a collective; each has its own, in its folder. */
typedef struct fsdpi_collective {
    const char *name; /* "allgather" */
    int         id;   /* for the fingerprint and the table of algorithms; not 0 */

    /** Before the agreement: claims memory. Local. NULL: needs none. */
    fsdp_status (*prepare)(fsdp_request *request);
    /** Fills in what the letter carries, and returns the flags that hold on this rank. */
    unsigned (*offer)(fsdp_request *request, struct fsdpi_letter *letter);
    /** On a leader, where all ranks of its node offer: what the other nodes need of it. Returns how many BYTES. */
    size_t (*record)(fsdp_request *request, unsigned char *payload);
    /** After it: how to go on, from request->flags, which are the same on all ranks. NULL: all is done. */
    const fsdpi_algorithm *(*choose)(fsdp_request *request);
} fsdpi_collective;

/** The arguments of one operation, as the caller gave them. */
typedef struct fsdpi_call {
    const fsdpi_collective *collective; /* NULL: an agreement only */
    const char             *name;       /* "fsdp_allgather", or what this is a step of */
    const char             *label;      /* what it is done for, as a unit's name; or NULL. Compared between ranks. */
    const char             *note; /* more to be said of it in an error, as why it is called; or NULL. Not compared. */
    const void             *in;   /* FSDP_IN_PLACE is replaced by where the input really is */
    void                   *out;
    size_t                  in_bytes, out_bytes; /* of this rank's buffers */
    size_t                  width;               /* BYTES of an element */
    size_t                  whole;               /* ELEMENTS of the full vector */
    size_t                  count;               /* ELEMENTS; its meaning is the division's */
    const size_t           *counts;
    fsdp_dtype              dtype;
    fsdp_redop              op;
    int                     root;
    fsdpi_division          division;
    bool                    has_op;
    bool                    has_root;
    bool                    has_data;
    bool                    on_device; /* the buffers are on this rank's GPU */
    bool                    is_step;   /* of something else: ranks have to agree on its name too */
    uint64_t                salt;      /* further arguments that ranks must agree on */
} fsdpi_call;

/** How far a step has come. */
typedef enum fsdpi_progress {
    FSDPI_WAITING, /* for other ranks */
    FSDPI_MOVED,   /* and can go on at once */
    FSDPI_FINISHED
} fsdpi_progress;

/** How an operation is carried out. */
struct fsdpi_algorithm {
    const char *name;
    /** Does a bounded piece of work. Never blocks. Called until it says FSDPI_FINISHED. */
    fsdp_status (*advance)(fsdp_request *request, fsdpi_progress *progress);
    /** Behind the leaving of all ranks of the node. NULL: nothing to do. */
    void (*end)(fsdp_request *request);
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
    FSDPI_REQUEST_MOVING,
    FSDPI_REQUEST_LEAVING,
    FSDPI_REQUEST_DONE
} fsdpi_request_state;

enum { FSDPI_DETAIL_BYTES = 240 };

/** What a rank tells the others when an operation cannot be carried out. */
typedef struct fsdpi_verdict {
    int32_t status;
    int32_t rank; /* as texts call it: see fsdp_context */
    char    text[FSDPI_DETAIL_BYTES];
} fsdpi_verdict;

struct fsdp_request {
    fsdp_context          *ctx;
    fsdp_request          *next; /* in the queue, or among the free */
    fsdpi_call             call;
    const fsdpi_algorithm *algorithm;
    _Atomic int            state; /* an fsdpi_request_state; DONE is stored last */
    unsigned               flags; /* after the agreement: what holds on all ranks */
    fsdp_status            status;
    uint64_t               number; /* of its letter */
    uint64_t               sequence;
    double                 issued, begun; /* for a trace */
    double                 tested;        /* when fsdp_test() first found it under way; 0 */
    size_t                 at;            /* for the algorithm: how far it is */
    int                    stage, step;   /* likewise */
    unsigned char         *scratch;       /* the operation's own memory, released when it is done */
    size_t                 scratch_bytes;
    bool                   closing; /* the agreement under way is the one at the end */
    void                  *event;   /* of the GPU, kept from one use to the next: see lib/device/gpu_request.h */
    void                  *caller;  /* stream of the caller */
    bool                   aside;   /* what it does next goes into the other stream of its context */
    fsdpi_verdict          verdict; /* of this rank */
    char                   error[FSDPI_ERROR_BYTES]; /* the detail that fsdp_wait() hands on */
};

typedef struct fsdpi_queue {
    fsdpi_lock            lock;                  /* over all of this that is not atomic */
    fsdp_request         *head, *tail;           /* in order of issue */
    fsdp_request         *free_head, *free_tail; /* first in, first out: a request ended twice is noticed for long */
    struct request_block *blocks;                /* all requests, for release */
    size_t                n_made, n_free;
    uint64_t              sequence;
    bool                  running;      /* a thread is carrying out the head */
    bool                  passed_over;  /* the progress thread found it running, and sleeps */
    int                   naps_in_vain; /* of who carries it out, since it last got further */
    _Atomic int           waiters;      /* threads in fsdp_wait(): the progress thread leaves the work to them */
    pthread_t             thread;
    _Atomic uint32_t      bell;     /* rung when the thread may have something to do */
    _Atomic int           sleeping; /* it waits for that */
    bool                  has_thread;
    _Atomic bool          stop;
    _Atomic uint64_t      thread_nanoseconds; /* of a core, used by it */
    const char           *last_algorithm;
} fsdpi_queue;

/**
 * Takes an operation into the queue.
 *
 * @param[in]  status   FSDP_OK; or what is wrong with this rank's arguments, with the detail recorded in the context: the
 *                      operation then only carries that to the other ranks
 * @param[out] request  ends with fsdp_wait() or fsdp_test()
 */
fsdp_status fsdpi_issue(fsdp_context *ctx, const fsdpi_call *call, fsdp_status status, fsdp_request **request);

/** Issues an operation and waits for it: on the calling thread where nothing is before it. */
fsdp_status fsdpi_run(fsdp_context *ctx, const fsdpi_call *call, fsdp_status status);

/**
 * The verdict of all ranks on a step that moves no data, where ranks must have come with the same `label` and `salt`.
 * @param[in] status  this rank's own verdict, its detail recorded in the context
 * @param[in] forced  also under FSDP_VERIFY=off
 */
fsdp_status fsdpi_agree(fsdp_context *ctx, const char *name, const char *label, uint64_t salt, fsdp_status status,
                        bool forced);

/** Allocates what every context's queue needs, and starts its thread if it is to have one; on failure closes it again. */
fsdp_status fsdpi_queue_open(fsdp_context *ctx);
fsdp_status fsdpi_queue_start_thread(fsdp_context *ctx);

/** Completes what is queued (where the context is not broken) and returns how many requests were never ended. */
size_t fsdpi_queue_drain(fsdp_context *ctx);
void   fsdpi_queue_close(fsdp_context *ctx);

/** What fsdp_wait_seconds() and fsdp_last_algorithm() say. */
double      fsdpi_queue_wait_seconds(fsdp_context *ctx);
const char *fsdpi_queue_last_algorithm(fsdp_context *ctx);

/** BYTES of bookkeeping of a queue just opened. */
size_t fsdpi_queue_bookkeeping(void);

#endif
