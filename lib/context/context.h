/**
 * @file
 * What a context consists of. Only this room and the parts above lib/ see inside.
 */
#ifndef FSDPI_CONTEXT_H
#define FSDPI_CONTEXT_H

#include <mpi.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "fsdp/context.h"
#include "kernels/kernels.h"
#include "lib/base/core.h"
#include "lib/base/error.h"
#include "lib/context/buffers.h"
#include "lib/context/owned.h"
#include "lib/context/table.h"
#include "lib/device/device.h"
#include "lib/device/mapped.h"
#include "lib/node/machine.h"
#include "lib/node/nodes.h"
#include "lib/node/peers.h"
#include "lib/progress/lane.h"
#include "lib/progress/queue.h"
#include "lib/progress/verdicts.h"
#include "lib/record/recorder.h"
#include "lib/sync/gpu_streams.h"
#include "lib/sync/link.h"
#include "lib/sync/rails.h"
#include "lib/sync/trace.h"
#include "lib/topology/bind.h"

struct fsdp_context {
    union {
        fsdpi_core core; /* what the rooms below see; its members are the context's own */
        struct {
            FSDPI_CORE_MEMBERS
        };
    };
    fsdpi_nodes   nodes;
    void         *found; /* its memory, until the mailbox has a copy */
    fsdpi_peers   peers;
    int           n_gpus; /* that this process may use; 0 in a build without HIP */
    fsdpi_gpu     gpu;
    fsdpi_binding binding; /* to cores, memory and GPU */
    fsdpi_machine machine; /* what the ranks of this node share */
    fsdpi_queue   queue;

    fsdpi_lane       lanes[FSDPI_LANES];
    MPI_Comm         long_comm; /* of the long lane; that of the short one is the context's */
    fsdpi_verdicts   verdicts;
    fsdpi_rails      rails; /* of the operation at the head of the long lane */
    fsdpi_link       link;
    fsdpi_addresses *addresses; /* of each position's buffers, for that operation */
    const void     **operands;  /* fsdpi_operands() of them */

    fsdpi_buffers     buffers; /* symmetric ones */
    fsdpi_mapped      mapped;
    fsdpi_table       table; /* of algorithms */
    fsdpi_lock        owned_lock;
    fsdpi_owned      *owned;
    struct fsdp_mesh *mesh; /* that has opened it; NULL */
    fsdpi_trace       trace;
    fsdpi_recorder    recorder;
    fsdp_context     *next_watched; /* see lib/context/forks.h */
    int               mpi_end_key;  /* see lib/context/mpi_end.h */
    bool              expects_mpi_end;
};

_Static_assert(offsetof(struct fsdp_context, core) == 0, "fsdpi_core_of() takes a context for its core");

/** The queue's functions by these names, for a context. */
static inline fsdp_status fsdpi_issue(fsdp_context *ctx, const fsdpi_call *call, fsdp_status status,
                                      fsdp_request **request)
{
    return fsdpi_queue_issue(&ctx->queue, call, status, request);
}

/**
 * Operands that a reduction takes at once, at most: two for each peer on a node. Those of more nodes come in several steps; see
 * collectives/blocks/take.c, and FSDPI_RAILS_WINDOW for what messages bring.
 */
static inline int fsdpi_operands(int size)
{
    return 2 * fsdpi_positions(size);
}

static inline fsdp_status fsdpi_run(fsdp_context *ctx, const fsdpi_call *call, fsdp_status status)
{
    return fsdpi_queue_run(&ctx->queue, call, status);
}

static inline fsdp_status fsdpi_agree(fsdp_context *ctx, const char *name, const char *label, uint64_t salt,
                                      fsdp_status status, bool forced)
{
    return fsdpi_queue_agree(&ctx->queue, name, label, salt, true, status, forced);
}

/** The same without waiting for data of operations that were issued before. */
static inline fsdp_status fsdpi_agree_ahead(fsdp_context *ctx, const char *name, const char *label, uint64_t salt,
                                            fsdp_status status, bool forced)
{
    return fsdpi_queue_agree(&ctx->queue, name, label, salt, false, status, forced);
}

#endif
