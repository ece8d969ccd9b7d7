/**
 * @file
 * The queue of operations of a context, carried out one after the other in the order of issue.
 *
 * An operation goes through
 *   1. prepare: the algorithm claims its memory on this rank;
 *   2. agreement: one small reduction finds whether every rank calls the same with arguments that are good. If not, the
 *      ranks exchange a line of text each, so that all return the same error with the same detail, and nothing moves;
 *   3. rounds: the algorithm posts messages, and once these are complete computes on what has arrived.
 * All of it advances inside fsdpi_queue_advance(), which never blocks.
 */
#ifndef FSDPI_QUEUE_H
#define FSDPI_QUEUE_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fsdp/collectives.h"
#include "lib/error.h"

/** Which part of the vector belongs to which rank. */
typedef enum fsdpi_division {
    FSDPI_DIVISION_EQUAL,  /* `count` each */
    FSDPI_DIVISION_COUNTS, /* counts[r] */
    FSDPI_DIVISION_SPLIT,  /* `count` in all, split as evenly as cache lines allow */
    FSDPI_DIVISION_ROOT    /* `count` in all, for `root` */
} fsdpi_division;

/** The arguments of one operation, as the caller gave them. */
typedef struct fsdpi_call {
    const char    *name;  /* "allgather" */
    const char    *label; /* what it is done for, as a unit's name; or NULL. Compared between ranks. */
    const void    *in;
    void          *out;
    size_t         count; /* ELEMENTS; its meaning is the division's */
    const size_t  *counts;
    fsdp_dtype     dtype;
    fsdp_redop     op;
    int            root;
    fsdpi_division division;
    bool           has_op;
    bool           has_root;
    bool           has_data;
    bool           forced; /* ranks agree on it even under FSDP_VERIFY=off */
    uint64_t       salt;   /* further arguments that ranks must agree on */
} fsdpi_call;

/** How an operation is carried out. Each function returns FSDP_OK or has recorded why not. */
typedef struct fsdpi_algorithm {
    const char *name;
    /** Before the agreement: sets `rounds`, and may claim `scratch`. Local. NULL: no rounds. */
    fsdp_status (*prepare)(fsdp_request *request);
    /** Posts the messages of a round with fsdpi_post_send() and its like. */
    fsdp_status (*post)(fsdp_request *request, size_t round);
    /** After these are complete. NULL: nothing to do. */
    void (*finish)(fsdp_request *request, size_t round);
} fsdpi_algorithm;

typedef enum fsdpi_request_state {
    FSDPI_REQUEST_FREE,
    FSDPI_REQUEST_QUEUED,
    FSDPI_REQUEST_AGREEING,
    FSDPI_REQUEST_EXCHANGING_DETAILS,
    FSDPI_REQUEST_MOVING,
    FSDPI_REQUEST_DONE
} fsdpi_request_state;

enum { FSDPI_DETAIL_BYTES = 240, FSDPI_AGREE_WORDS = 3 };

/** What a rank tells the others when an operation cannot be carried out. */
typedef struct fsdpi_verdict {
    int32_t status;
    char    text[FSDPI_DETAIL_BYTES];
} fsdpi_verdict;

struct fsdp_request {
    fsdp_context          *ctx;
    fsdp_request          *next; /* in the queue, or among the free */
    const fsdpi_algorithm *algorithm;
    fsdpi_call             call;
    fsdpi_request_state    state;
    fsdp_status            status;
    uint64_t               sequence;
    uint64_t               words[FSDPI_AGREE_WORDS];
    size_t                 round;
    size_t                 rounds;
    unsigned char         *scratch; /* the operation's own memory, released when it is done */
    size_t                 scratch_bytes;
    fsdpi_verdict          verdict;                  /* of this rank */
    char                   error[FSDPI_ERROR_BYTES]; /* the detail that fsdp_wait() hands on */
};

typedef struct fsdpi_queue {
    fsdp_request         *head, *tail;           /* in order of issue */
    fsdp_request         *free_head, *free_tail; /* first in, first out: a request ended twice is noticed for long */
    struct request_block *blocks;                /* all requests, for release */
    size_t                n_made, n_free;
    uint64_t              sequence;
    MPI_Request          *messages; /* of the operation at the head */
    size_t                n_messages, capacity;
} fsdpi_queue;

/**
 * Takes an operation into the queue and starts it where nothing is before it.
 *
 * @param[in]  status   FSDP_OK; or what is wrong with this rank's arguments, with the detail recorded in the context: the
 *                      operation then only carries that to the other ranks
 * @param[out] request  ends with fsdp_wait() or fsdp_test()
 */
fsdp_status fsdpi_issue(fsdp_context *ctx, const fsdpi_call *call, const fsdpi_algorithm *algorithm, fsdp_status status,
                        fsdp_request **request);

/** Issues an operation and waits for it. */
fsdp_status fsdpi_run(fsdp_context *ctx, const fsdpi_call *call, const fsdpi_algorithm *algorithm, fsdp_status status);

/**
 * The verdict of all ranks on a step that moves no data, where ranks must have come with the same `label` and `salt`.
 * @param[in] status  this rank's own verdict, its detail recorded in the context
 * @param[in] forced  also under FSDP_VERIFY=off
 */
fsdp_status fsdpi_agree(fsdp_context *ctx, const char *name, const char *label, uint64_t salt, fsdp_status status,
                        bool forced);

/** For algorithms: posts a message of the present round. Cut into pieces of config.message_bytes. */
fsdp_status fsdpi_post_send(fsdp_request *request, const void *data, size_t bytes, int peer);
fsdp_status fsdpi_post_receive(fsdp_request *request, void *data, size_t bytes, int peer);
fsdp_status fsdpi_post_broadcast(fsdp_request *request, void *data, size_t bytes, int root);
fsdp_status fsdpi_post_barrier(fsdp_request *request);

/** Allocates what every context's queue needs for `size` ranks; on failure releases it again. */
fsdp_status fsdpi_queue_open(fsdp_context *ctx);

/** Completes what is queued (where the context is not broken) and returns how many requests were never ended. */
size_t fsdpi_queue_drain(fsdp_context *ctx);
void   fsdpi_queue_close(fsdp_context *ctx);

/** BYTES of bookkeeping of a queue just opened. */
size_t fsdpi_queue_bookkeeping(void);

#endif
