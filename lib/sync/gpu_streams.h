/**
 * @file
 * What a context has on GPUs: one per rank, streams, and what the ranks of a node reach of each other.
 *
 * An operation on device memory has three places where it meets other work, and the host waits at none of them:
 *   - with the caller's stream: it begins behind what was in that stream when it was issued, and what the caller puts into
 *     that stream after fsdp_wait() comes behind it;
 *   - with its peers: by two events of each rank's stream, shared between processes, `ready` (what the letter of this number offers
 *     may be read, and outputs written) and `done` (the peers' memory that came with it is no longer used). Both are
 *     recorded before the host says so, in a letter, and waited for after it has heard. There are two of each, by the parity
 *     of the letter's number: a peer is at most one number ahead, so that nobody waits for a record that is newer than meant.
 *     Each stream has its own: a record stands for all that came before it in its stream, and for nothing in the other;
 *   - with operations before and after it: only through these.
 * Where the system does not let processes share device memory, and across nodes, data goes through the mailbox in host
 * memory, which the GPU then sees too; there the host looks whether the stream is idle before it says that something is
 * ready or done, on whoever advances the queue.
 *
 * The rails between nodes (collectives/rails.h) use both streams for one operation, so that what leaves the GPU overlaps with
 * what comes: no operation begins there before the last one's streams are idle. The host follows single chunks by marks,
 * events of this rank's own, and what it has seen done needs no wait on the GPU any more.
 */
#ifndef FSDPI_GPU_STREAMS_H
#define FSDPI_GPU_STREAMS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/device/gpu_device.h"
#include "lib/node/nodes.h"
#include "lib/sync/mailbox.h"

/** Streams of a context: gathers and reductions overlap. */
enum { FSDPI_GPU_GATHERS, FSDPI_GPU_REDUCES, FSDPI_GPU_STREAMS };

/** What a stream tells peers, by parity. */
typedef struct fsdpi_gpu_events {
    fsdpi_gpu_event ready[2], done[2];
} fsdpi_gpu_events;

/** Of a position on the node, as this rank sees it. */
typedef struct fsdpi_gpu_peer {
    unsigned char   *slots; /* two in device memory, and across nodes the rest: as many BYTES as in the mailbox */
    fsdpi_gpu_events events[FSDPI_GPU_STREAMS];
} fsdpi_gpu_peer;

/** Device memory for what lasts no longer than a call's kernels: see lib/context/gpu_scratch.h. */
typedef struct fsdpi_gpu_scratch {
    pthread_mutex_t lock;
    void           *memory;
    size_t          bytes;
    fsdpi_gpu_event used; /* behind what has used it last, whatever stream that was in */
} fsdpi_gpu_scratch;

typedef struct fsdpi_gpu {
    const fsdpi_nodes   *nodes;
    const fsdpi_mailbox *box;
    fsdpi_gpu_device    *device; /* NULL: the context uses none; the same on all ranks */
    fsdpi_gpu_stream     caller; /* what is issued from now on is ordered on it; or, with a `leader`, on the leader's */
    struct fsdpi_gpu    *leader; /* of the context that this is a part of, which may have one too; NULL: of none */
    fsdpi_gpu_stream     streams[FSDPI_GPU_STREAMS];
    bool                 shares; /* on every node, ranks reach each other's device memory and events */
    bool                 aware;  /* MPI takes GPU memory, on all ranks */
    fsdpi_gpu_peer      *peers;  /* of each position */
    fsdpi_gpu_event     *marks;  /* of messages between nodes; opened when first used */
    unsigned char       *view;   /* where the GPU sees the mailbox; NULL where nothing goes through it */
    fsdpi_gpu_scratch    scratch;
} fsdpi_gpu;

/** The place of the one stream that a context and all parts of it have, and parts of these: a group of an axis of a mesh. */
static inline fsdpi_gpu_stream *fsdpi_gpu_callers_place(fsdpi_gpu *gpu)
{
    while (gpu->leader != NULL) {
        gpu = gpu->leader;
    }
    return &gpu->caller;
}

/** The stream that what is issued now is ordered on. */
static inline fsdpi_gpu_stream fsdpi_gpu_caller(const fsdpi_gpu *gpu)
{
    return gpu->leader != NULL ? *fsdpi_gpu_callers_place(gpu->leader) : gpu->caller;
}

/** Where this rank's GPU sees the slot that goes with a letter: in a GPU's memory, or in the mailbox. */
unsigned char *fsdpi_gpu_slot(const fsdpi_gpu *gpu, int position, uint64_t number);

/** In the memory of this rank's GPU, what stands for the mailbox's staging memory behind the slots. Across nodes only. */
unsigned char *fsdpi_gpu_rest(const fsdpi_gpu *gpu);

/** Where it sees what is in the mailbox. */
unsigned char *fsdpi_gpu_view(const fsdpi_gpu *gpu, const void *in_mailbox);

/** Whether slots are in the mailbox, or records are: then the host waits for the stream before it says something. */
bool fsdpi_gpu_through_host(const fsdpi_gpu *gpu);

#endif
