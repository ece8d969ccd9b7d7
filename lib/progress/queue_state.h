/**
 * @file
 * What a queue consists of. Only the files of the queue see inside; see queue_inside.h. The rooms above have it in a context.
 */
#ifndef FSDPI_QUEUE_STATE_H
#define FSDPI_QUEUE_STATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/giving_way.h"
#include "lib/base/lock.h"
#include "lib/base/side_work.h"
#include "lib/progress/inquest_state.h"
#include "lib/progress/own_core.h"
#include "lib/progress/request.h"

/** Of who looks again and again whether an operation has got further. */
typedef struct fsdpi_patience {
    uint64_t moves;    /* the queue's, at the last look */
    double   looked;   /* when that was */
    double   waited;   /* SECONDS since something moved */
    unsigned looks;    /* in vain, since then */
    int      warnings; /* that were due since then */
} fsdpi_patience;

/** What who carries operations out knows of MPI, for fsdpi_help_peers(). */
typedef struct fsdpi_helping {
    int      naps_in_vain; /* since something moved */
    int      naps_before;  /* MPI is called */
    int      looks_left;   /* with a call each, since MPI was at work not long ago */
    uint64_t least;        /* NANOSECONDS of a core that a call has taken; 0: none has been made */
} fsdpi_helping;

/** The operations in a lane, in the order of issue. */
typedef struct fsdpi_line {
    _Atomic(fsdp_request *) head; /* is being carried out */
    fsdp_request           *tail;
} fsdpi_line;

typedef struct fsdpi_request_block fsdpi_request_block;

/** See lib/progress/request_pool.c. */
typedef struct fsdpi_request_pool {
    fsdp_request        *free_head, *free_tail; /* first in, first out: a request ended twice is noticed for long */
    fsdpi_request_block *blocks;                /* all requests, for release */
    size_t               n_made, n_free;
} fsdpi_request_pool;

typedef struct fsdpi_queue {
    fsdpi_engine             engine;     /* set before it is opened */
    const fsdpi_request_ops *device_ops; /* of requests whose call.on_device is set; NULL: there are none */
    fsdpi_lock               lock;       /* over all of this that is not atomic */
    fsdpi_line               lines[FSDPI_LANES];
    fsdpi_request_pool       ordinary, reserved;
    size_t                   n_reserved;
    uint64_t                 sequence;
    _Atomic uint64_t         again;              /* a hash of the call that may be repeated; 0: none may */
    _Atomic uint64_t         era;                /* calls remembered in an earlier one are forgotten */
    bool                     running;            /* a thread is carrying out the heads */
    bool                     passed_over;        /* the progress thread found it running, and sleeps */
    bool                     has_left_long_step; /* who carries it out, to the thread, which has not taken it yet */
    _Atomic uint64_t         moves;              /* steps of operations: who waits sees whether there were any */
    double                   share;              /* of a core, that this rank has: less than 1 where ranks take turns */
    fsdpi_helping            helping;            /* of who carries it out */
    fsdpi_patience           tests;              /* of fsdp_test() */
    _Atomic int              waiters; /* threads in fsdp_wait(): the progress thread leaves the work to them */
    pthread_t                thread;
    _Atomic uint32_t         bell;     /* rung when the thread may have something to do */
    _Atomic int              sleeping; /* it waits for that */
    _Atomic int              napping;  /* it looks again soon */
    _Atomic double   watched; /* messages outside of the queue, since this time: see fsdpi_queue_watch(); 0: none */
    bool             has_thread;
    bool             has_short_slices;   /* of the scheduler's; the thread's own knowledge */
    bool             link_is_slow;       /* between nodes */
    fsdpi_own_core   own_core;           /* of the thread */
    fsdpi_giving_way giving_way;         /* of the thread; */
    fsdpi_giving_way giving_way_waiting; /* of who waits and carries it out */
    double           nap;                /* SECONDS between two looks for a message, where others want the core */
    _Atomic bool     stop;
    _Atomic uint64_t thread_nanoseconds; /* of a core, used by it */
    fsdpi_inquest    inquest;            /* into who is missing */
    const char      *last_algorithm;
    double           wait_seconds;     /* of all threads, in fsdp_wait() */
    double           wait_cpu_seconds; /* of a core, used by them meanwhile */
    fsdpi_side_work  side_work;        /* without a thread: its operations, for who waits for another context */
} fsdpi_queue;

#endif
