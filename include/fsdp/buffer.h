/**
 * @file
 * Symmetric buffers: memory that is allocated collectively and that the ranks of a node read and write directly.
 *
 * A collective whose buffers are all symmetric copies nothing in or out: each rank reads its peers' inputs where they
 * lie. Any other memory works too, with a copy or a system call more (see fsdp/algorithms.h).
 *
 * Symmetric host memory is shared memory: it lies in the file system at FSDP_SHM_DIR, in files without a name. Space is
 * reserved when it is allocated, so that a full file system is an error here and never a signal later. It is aligned to
 * 256 bytes, and each rank's part is first touched by that rank, so that it lies on its NUMA node. On GPUs each rank
 * allocates its own, and peers open it once if the system lets processes share device memory. If it does not, as in
 * containers without a common namespace, fsdp_init() says so, and collectives still accept it, through host memory.
 */
#ifndef FSDP_BUFFER_H
#define FSDP_BUFFER_H

#include <stddef.h>

#include "fsdp/context.h"
#include "fsdp/export.h"
#include "fsdp/status.h"

/** Who has a symmetric buffer of its own. */
typedef enum fsdp_buffer_kind {
    FSDP_BUFFER_PER_RANK = 0, /**< every rank has one of its own, which its peers can reach */
    FSDP_BUFFER_PER_NODE = 1, /**< the ranks of a node share one: a result that is gathered once per node */
    FSDP_BUFFER_DEVICE =
        2 /**< every rank has one of its own in the memory of its GPU, which its peers' GPUs can reach */
} fsdp_buffer_kind;

FSDP_EXTERN_C_BEGIN

/**
 * Allocates a symmetric buffer. Collective over the context. Blocking.
 *
 * @param[in]  kind    the same on all ranks
 * @param[in]  bytes   BYTES; per rank they may differ between ranks, per node they are the same on all. 0 gives NULL.
 * @param[out] memory  the address at which this rank sees its buffer, or its node's; zeroed. Released by
 *                     fsdp_buffer_free(), or, with a warning, by fsdp_finalize().
 * @return FSDP_OK; the same on every rank: FSDP_ERR_ARG for an unknown kind or a NULL `memory`; FSDP_ERR_MISMATCH;
 *         FSDP_ERR_MEMORY if the file system or the GPU has no room, naming what is needed, what is free and what to do;
 *         FSDP_ERR_UNSUPPORTED for FSDP_BUFFER_DEVICE where the context uses no GPU; FSDP_ERR_DEVICE;
 *         FSDP_ERR_MPI, FSDP_ERR_TIMEOUT.
 */
FSDP_API fsdp_status fsdp_buffer_alloc(fsdp_context *ctx, fsdp_buffer_kind kind, size_t bytes, void **memory);

/**
 * Releases a symmetric buffer on all ranks. Collective over the context. Blocking. Operations issued before are completed
 * first. Passing an address in it to a collective afterwards is an error that says so.
 *
 * @param[in] memory  from fsdp_buffer_alloc(), the same buffer on all ranks; NULL for one of 0 bytes here. NULL on all ranks
 *                    does nothing, or frees one that has 0 bytes on all.
 * @return FSDP_OK; FSDP_ERR_ARG: no symmetric buffer begins there, or it has been freed before; FSDP_ERR_MISMATCH: ranks
 *         free different buffers. Nothing has been freed in these cases. FSDP_ERR_MPI, FSDP_ERR_TIMEOUT.
 */
FSDP_API fsdp_status fsdp_buffer_free(fsdp_context *ctx, void *memory);

/**
 * The address at which this rank sees a peer's buffer. Local.
 *
 * @param[in]  memory  an address inside a symmetric buffer of this rank
 * @param[in]  rank    a rank on the same node
 * @param[out] peer    the same place in that rank's buffer; it is valid as long as the buffer is
 * @return FSDP_OK; FSDP_ERR_ARG: not in a symmetric buffer, no such rank, on another node, or beyond the end of its buffer;
 *         FSDP_ERR_UNSUPPORTED: on a GPU, where the system does not let ranks share device memory.
 */
FSDP_API fsdp_status fsdp_buffer_peer(fsdp_context *ctx, const void *memory, int rank, void **peer);

FSDP_EXTERN_C_END

#endif
