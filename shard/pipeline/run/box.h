/**
 * @file
 * Where messages between two stages on different ranks leave, and where they arrive. Two ways lead from one to the other: through
 * memory that both ranks see (near.c), and by MPI's messages (far.c). Where activations are in GPU memory there are two more, in the
 * same two manners (near_device.c, far_device.c).
 *
 * On either, a rank that has failed, or has heard that another one has, sends on what the schedule says, but marked as spoiled and
 * without data, so that every rank comes to the end of its row.
 */
#ifndef FSDPI_PIPELINE_BOX_H
#define FSDPI_PIPELINE_BOX_H

#include <mpi.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "fsdp/pipeline.h"
#include "fsdp/status.h"
#include "lib/device/gpu_device.h"
#include "shard/pipeline/run/shelf.h"

/** Of a micro-batch, in the sender's memory: where it lies, and how far it has come. */
typedef struct fsdpi_sent_note {
    _Atomic uint64_t sent; /* in this step the receiver may read it */
    uint32_t         place, spoiled;
    _Atomic uint64_t taken; /* in this step the receiver has read it */
} fsdpi_sent_note;

typedef struct fsdpi_way fsdpi_way;

/**
 * What a box has where its places are in GPU memory. Lists have an item for each place: near, of the sender's, which both ranks know;
 * far, of the box itself.
 */
typedef struct fsdpi_box_gpu {
    /* What was sent is in its place or, staged, in pinned memory. Of outboxes; near, inboxes have the sender's open. */
    fsdpi_gpu_event *ready;
    /* It has been copied. Near: the receiver's, which the outbox has open. Staged: of an inbox's pinned places. */
    fsdpi_gpu_event *taken;
    /* Of inboxes: behind the last use of what lay there. */
    fsdpi_gpu_event *left;
    /* Of outboxes. Near: what is put there next has to wait for `taken`. Far: the message has not begun. */
    bool *held_up;
    /* Staged: what MPI is given, in places as far apart as the shelf's. */
    unsigned char *pinned;
    int            n_pinned, n_taken; /* of inboxes: these places; and messages that have been taken out in this step */
    fsdpi_gpu_handle *own, *peers;    /* near: of events, in memory that both ranks see */
    int               n_peer;         /* of inboxes, near: the sender's places */
} fsdpi_box_gpu;

typedef struct fsdpi_outbox {
    fsdpi_shelf      shelf;
    const fsdpi_way *way;
    int              peer;      /* the rank that receives; -1: there is none */
    bool            *sent;      /* of each place: what is there has been sent */
    int              under_way; /* sent, and not known to be received */
    fsdpi_sent_note *notes;     /* of each micro-batch */
    MPI_Request     *requests;  /* of each place, one for each piece; far */
    int              pieces, tag;
    size_t           piece; /* BYTES */
    fsdpi_box_gpu    gpu;
} fsdpi_outbox;

typedef struct fsdpi_inbox {
    fsdpi_shelf          shelf;
    const fsdpi_way     *way;
    int                  peer;   /* the rank that sends; -1: there is none */
    fsdpi_sent_note     *notes;  /* near: the sender's */
    const unsigned char *memory; /* and its places */
    size_t               pitch;
    int          *order; /* far: micro-batches as they are received, and how many receives have begun in this step */
    int           n_order, n_begun;
    MPI_Request  *requests;
    int           pieces, tag;
    size_t        piece; /* BYTES */
    fsdpi_box_gpu gpu;
} fsdpi_inbox;

struct fsdpi_way {
    /** What lies at a place leaves. Never waits. */
    fsdp_status (*send)(fsdp_pipeline *pipeline, fsdpi_outbox *box, int place);

    /** Whether it has been received. */
    fsdp_status (*ask)(fsdp_pipeline *pipeline, fsdpi_outbox *box, int place, bool *received);

    /** Lets what comes next arrive while this rank computes, as far as there are places that nothing uses any more. */
    fsdp_status (*expect)(fsdp_pipeline *pipeline, fsdpi_inbox *box);

    /** Whether a micro-batch has come; if so it has a place, and `spoiled` is set or left. */
    fsdp_status (*look)(fsdp_pipeline *pipeline, fsdpi_inbox *box, int micro, bool *there, bool *spoiled);

    /* NULL on the host, where all is done when a callback returns. */

    /** What is put into the caller's stream from now on may write to a place that was free. */
    void (*open)(fsdp_pipeline *pipeline, fsdpi_outbox *box, int place);

    /** What has been put into the caller's stream until now was the last to use what lies at a place. */
    void (*leave)(fsdp_pipeline *pipeline, fsdpi_inbox *box, int place);
};

extern const fsdpi_way fsdpi_way_near, fsdpi_way_far, fsdpi_way_near_device, fsdpi_way_far_device;

/** BYTES of the notes for so many micro-batches. */
static inline size_t fsdpi_notes_bytes(int micros)
{
    return fsdpi_shelf_pitch((size_t)micros * sizeof(fsdpi_sent_note));
}

#endif
