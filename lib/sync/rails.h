/**
 * @file
 * What is kept of an operation across nodes between two of its steps: which chunks have been sent and have come. Its
 * meaning is that of collectives/rails/rails.h.
 */
#ifndef FSDPI_RAILS_H
#define FSDPI_RAILS_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/core.h"

/** Chunks of one transfer that are under way at once, at most. */
enum { FSDPI_RAILS_DEPTH = 4 };

/** A transfer: a part of the vector, chunk by chunk, to or from one rank. */
typedef struct fsdpi_transfer {
    int    peer;                        /* rank */
    int    part;                        /* the rank whose part of the vector it is */
    bool   partial;                     /* a node's partial reduction of it, or else the part itself */
    size_t places;                      /* chunks that are before its own in staging memory, where it has any there */
    size_t begin, count;                /* ELEMENTS */
    size_t chunks;                      /* in all */
    size_t begun, ended;                /* of these: what there is to do here before they go, or when they have come */
    size_t posted;                      /* chunks */
    size_t done;                        /* chunks that have come, or gone, in order */
    size_t source;                      /* of what is passed on: the receive that it comes by */
    bool   complete[FSDPI_RAILS_DEPTH]; /* of those under way, by number modulo the depth */
} fsdpi_transfer;

typedef struct fsdpi_rails {
    fsdpi_core     *core;
    fsdpi_transfer *sends, *receives; /* up to twice `size` each */
    size_t          n_sends, n_receives;
    size_t          n_in_turns; /* the first sends take turns; see collectives/rails/messages.c */
    size_t          turn;       /* of these: the send that has it */
    size_t          in_turn;    /* chunks that it has sent in its turn */
    size_t          leaving;    /* BYTES that these have under way */
    size_t          n_places;   /* of staging memory, a chunk each, in use */
    unsigned        route;      /* of the operation: see collectives/rails/route.h */
    size_t          window;     /* in an alltoall, sends at once, and receives; 0: all */
    size_t          chunk;      /* ELEMENTS */
    size_t          depth;      /* chunks of a transfer under way at once */
    size_t          chunks;     /* of this rank's own part */
    size_t          reducing;   /* of these: final, or about to be */
    size_t          reduced;    /* final */
    size_t          own_copied; /* ELEMENTS of this rank's own part that are in the result */
    size_t         *copied;     /* chunks copied from peers on the node, by part */
    MPI_Request    *messages;   /* under way, in no order */
    uint32_t       *numbers;    /* of each of them: see fsdpi_rails_message() */
    int            *completed;  /* for MPI_Testsome() */
    int             n_messages; /* under way */
    size_t          n_working;  /* chunks on which work has been begun whose end a mark will tell */
    bool            is_still;   /* the last look has found nothing to do */
    int             n_tags;     /* that MPI has for parts, from FSDPI_TAG_PARTS on */
} fsdpi_rails;

fsdp_status fsdpi_rails_open(fsdpi_rails *rails, fsdpi_core *core);
void        fsdpi_rails_close(fsdpi_rails *rails);
size_t      fsdpi_rails_bookkeeping(int size);

#endif
