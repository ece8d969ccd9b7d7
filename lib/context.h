/**
 * @file
 * What a context consists of. Only lib/ and the parts above it see inside.
 */
#ifndef FSDPI_CONTEXT_H
#define FSDPI_CONTEXT_H

#include <mpi.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "fsdp/context.h"
#include "kernels/kernels.h"
#include "lib/buffers.h"
#include "lib/device/device.h"
#include "lib/device/gpu_context.h"
#include "lib/device/mapped.h"
#include "lib/error.h"
#include "lib/exchange.h"
#include "lib/machine.h"
#include "lib/mailbox.h"
#include "lib/messages.h"
#include "lib/nodes.h"
#include "lib/owned.h"
#include "lib/queue.h"
#include "lib/rails.h"
#include "lib/table.h"
#include "lib/topology/bind.h"
#include "lib/trace.h"

struct fsdp_context {
    MPI_Comm             comm; /* the duplicate; nothing is ever sent on the caller's own */
    MPI_Comm             node_comm;
    int                  rank;
    int                  size;
    int                  shown_rank; /* what errors call this rank: of a part of another context its number there */
    fsdp_config          config;     /* resolved: no field is unset */
    fsdpi_nodes          nodes;
    const fsdpi_kernels *kernels;
    const fsdpi_device  *device;
    int                  n_gpus; /* that this process may use; 0 in a build without HIP */
    fsdpi_gpu            gpu;
    fsdpi_binding        binding;     /* to cores, memory and GPU */
    fsdpi_machine        machine;     /* what the ranks of this node share */
    bool                 reads_peers; /* process_vm_readv() works between the ranks of every node */
    fsdpi_queue          queue;
    _Atomic fsdp_status  broken; /* FSDP_OK; or why the context can only be finalized */

    /* Of the operation at the head of the queue. */
    fsdpi_mailbox  box;
    fsdpi_exchange exchange;
    fsdpi_messages messages;
    fsdpi_rails    rails;
    fsdpi_verdict *verdicts; /* `size` of them */
    const void   **operands; /* twice `size` pointers */

    fsdpi_buffers   buffers; /* symmetric ones */
    fsdpi_pages     known_pages;
    fsdpi_table     table; /* of algorithms */
    fsdpi_owned    *owned;
    fsdpi_trace     trace;
    pthread_mutex_t memory_lock;
    fsdp_memory     memory;
    double          wait_seconds;
    char            error[FSDPI_ERROR_BYTES];
};

/** BYTES of bookkeeping that a context of `size` ranks holds from the beginning. For budgets. */
size_t fsdpi_context_bookkeeping(int size);

#endif
