/**
 * @file
 * Collectives over the ranks of a context.
 *
 * Common to all of them:
 * - Collective over the context: every rank calls the same functions in the same order with matching arguments.
 * - Counts are ELEMENTS of size_t; nothing is limited to 2^31. A count of 0 is allowed and moves nothing.
 * - Reductions go in rank order within each node, and then over the nodes in the order of their lowest ranks, whatever the
 *   algorithm, count, offset or kind of memory: the same inputs on the same ranks and nodes give bitwise the same result in
 *   every run. bf16 and f16 are accumulated in f32 and rounded once on the node, and once across nodes.
 * - Input and output may not overlap, except where FSDP_IN_PLACE or the text below says so.
 * - The form that begins with `i` returns at once. Its buffers, and its arrays of counts, belong to the library until
 *   fsdp_wait(), or an fsdp_test() that says so, has completed the request. They advance on a thread of the context if it has
 *   one (fsdp_has_progress_thread()).
 * - All ranks agree on operations in the order of issue, and data moves in that order, with one exception: barriers, and short
 *   host data that rides on the agreement, may complete before longer operations that were issued earlier. As in MPI, only its
 *   own fsdp_wait() or fsdp_test() tells that an operation is complete.
 * - Without a thread they advance inside calls on that context, and while any call of the library waits in this process: ranks
 *   may wait for operations of different contexts in a different order. They do not advance inside blocking calls of MPI itself.
 *   So no rank may block there (MPI_Barrier(), MPI_Recv()) until a peer has completed an operation that this rank has not
 *   waited for yet: wait first, or test MPI's request and the library's in turn.
 * - Messages of the program's own that are under way, such as after MPI_Isend(), keep moving while a rank waits here, as they
 *   do in MPI's collectives.
 * - Any host memory will do, at any address, and, if the context uses GPUs, any memory of this rank's GPU at a multiple of an
 *   element's size. All buffers of a call are of one kind, on all ranks. With symmetric buffers (fsdp/buffer.h) nothing is
 *   copied in or out. fsdp/device.h says how operations on device memory are ordered.
 *
 * Errors, the same code on every rank, each naming what was wrong on which rank:
 * - FSDP_ERR_ARG: a NULL pointer, an unknown element type or reduction, a root that is no rank, a count whose size in bytes
 *   overflows, overlapping buffers, memory that does not exist, a symmetric buffer of this context that has been freed.
 *   FSDP_ERR_MISMATCH: ranks called different functions or passed different arguments. FSDP_ERR_UNSUPPORTED: a buffer is GPU
 *   memory, and the context uses no GPU. Nothing has been moved and the context is still good.
 * - FSDP_ERR_DEVICE: a call of the GPU runtime failed on some rank; outputs are undefined and the context is still good.
 * - FSDP_ERR_MEMORY: staging memory could not be allocated; outputs are untouched and the context is still good.
 * - FSDP_ERR_MPI, FSDP_ERR_TIMEOUT: outputs are undefined, and the context can only be finalized.
 * A nonblocking form itself fails only if there is no request that could carry the error: FSDP_ERR_ARG if the context or the
 * place for the request is NULL, FSDP_ERR_MEMORY if not even a request can be allocated (the other ranks then time out), and
 * the status after which the context can only be finalized. Every other error is returned by fsdp_wait(), so that a rank with
 * a wrong argument still takes part and no other rank hangs.
 *
 * Otherwise semantics follow the MPI 3.1 standard, chapter 5.
 */
#ifndef FSDP_COLLECTIVES_H
#define FSDP_COLLECTIVES_H

#include <stddef.h>

#include "fsdp/context.h"
#include "fsdp/dtype.h"
#include "fsdp/export.h"
#include "fsdp/status.h"

/** One nonblocking operation, from its issue to its fsdp_wait(). Owned by its context. */
typedef struct fsdp_request fsdp_request;

/** Passed as the input: the output buffer holds it. Each function says where. */
#define FSDP_IN_PLACE ((void *)-1)

FSDP_EXTERN_C_BEGIN

/**
 * Completes a nonblocking operation: blocks until it is done, then releases the request.
 *
 * @param[in] request  from a nonblocking function, not waited for before. Invalid afterwards, whatever is returned.
 *                     NULL does nothing.
 * @return the status of the operation, as listed above; FSDP_ERR_STATE if the request was completed before.
 */
FSDP_API fsdp_status fsdp_wait(fsdp_request *request);

/**
 * Makes progress and says whether an operation is complete, without blocking. Local.
 *
 * @param[in]  request  as for fsdp_wait()
 * @param[out] done     1: the operation is complete and the request released; 0: call again
 * @return FSDP_OK while `done` is 0; then as fsdp_wait(). FSDP_ERR_ARG if `done` is NULL.
 */
FSDP_API fsdp_status fsdp_test(fsdp_request *request, int *done);

/**
 * Waits for several operations, in order. All of them are completed, even if one fails.
 *
 * @param[in] count     how many; 0 is allowed
 * @param[in] requests  `count` requests as for fsdp_wait()
 * @return FSDP_OK; or the status of the first that failed.
 */
FSDP_API fsdp_status fsdp_wait_all(size_t count, fsdp_request *const *requests);

/**
 * Concatenates every rank's `count` elements, in rank order, into `full` on all ranks.
 *
 * @param[in]  shard  `count` elements; or FSDP_IN_PLACE, or the address of this rank's slot of `full`: that slot holds
 *                    them
 * @param[out] full   size x `count` elements
 * @param[in]  count  ELEMENTS per rank, equal on all ranks
 */
FSDP_API fsdp_status fsdp_allgather(fsdp_context *ctx, const void *shard, void *full, size_t count, fsdp_dtype dtype);
FSDP_API fsdp_status fsdp_iallgather(fsdp_context *ctx, const void *shard, void *full, size_t count, fsdp_dtype dtype,
                                     fsdp_request **request);

/**
 * Like fsdp_allgather(), with a separate count for each rank; slots follow each other without gaps.
 *
 * @param[in]  shard   counts[rank] elements; or in place as for fsdp_allgather()
 * @param[out] full    the sum of all counts, in elements
 * @param[in]  counts  ELEMENTS per rank, `size` entries, equal on all ranks
 */
FSDP_API fsdp_status fsdp_allgatherv(fsdp_context *ctx, const void *shard, void *full, const size_t *counts,
                                     fsdp_dtype dtype);
FSDP_API fsdp_status fsdp_iallgatherv(fsdp_context *ctx, const void *shard, void *full, const size_t *counts,
                                      fsdp_dtype dtype, fsdp_request **request);

/**
 * Reduces `full` over all ranks; rank r receives slice r.
 *
 * @param[in]  full   size x `count` elements; or FSDP_IN_PLACE: they are in `shard`, and the result goes to its beginning
 *                    (the rest of it becomes undefined)
 * @param[out] shard  `count` elements (in place: size x `count`). May be the address of this rank's slice of `full`.
 * @param[in]  count  ELEMENTS per rank, equal on all ranks
 */
FSDP_API fsdp_status fsdp_reduce_scatter(fsdp_context *ctx, const void *full, void *shard, size_t count,
                                         fsdp_dtype dtype, fsdp_redop op);
FSDP_API fsdp_status fsdp_ireduce_scatter(fsdp_context *ctx, const void *full, void *shard, size_t count,
                                          fsdp_dtype dtype, fsdp_redop op, fsdp_request **request);

/**
 * Like fsdp_reduce_scatter(), with a separate count for each rank; slices follow each other without gaps.
 *
 * @param[in]  full    the sum of all counts, in elements; or in place as for fsdp_reduce_scatter()
 * @param[out] shard   counts[rank] elements
 * @param[in]  counts  ELEMENTS per rank, `size` entries, equal on all ranks
 */
FSDP_API fsdp_status fsdp_reduce_scatterv(fsdp_context *ctx, const void *full, void *shard, const size_t *counts,
                                          fsdp_dtype dtype, fsdp_redop op);
FSDP_API fsdp_status fsdp_ireduce_scatterv(fsdp_context *ctx, const void *full, void *shard, const size_t *counts,
                                           fsdp_dtype dtype, fsdp_redop op, fsdp_request **request);

/**
 * Reduces `count` elements over all ranks; every rank receives the whole, bitwise the same.
 *
 * @param[in]  in   `count` elements; or FSDP_IN_PLACE, or equal to `out`: they are in `out`
 * @param[out] out  `count` elements
 */
FSDP_API fsdp_status fsdp_allreduce(fsdp_context *ctx, const void *in, void *out, size_t count, fsdp_dtype dtype,
                                    fsdp_redop op);
FSDP_API fsdp_status fsdp_iallreduce(fsdp_context *ctx, const void *in, void *out, size_t count, fsdp_dtype dtype,
                                     fsdp_redop op, fsdp_request **request);

/**
 * Copies `count` elements from rank `root` to all ranks.
 *
 * @param[in,out] buffer  `count` elements: read on `root`, written elsewhere
 * @param[in]     root    a rank, the same everywhere
 */
FSDP_API fsdp_status fsdp_broadcast(fsdp_context *ctx, void *buffer, size_t count, fsdp_dtype dtype, int root);
FSDP_API fsdp_status fsdp_ibroadcast(fsdp_context *ctx, void *buffer, size_t count, fsdp_dtype dtype, int root,
                                     fsdp_request **request);

/**
 * Reduces `count` elements over all ranks; rank `root` receives the result. Between nodes, each other rank holds its share of that,
 * count / size elements, until it has been sent.
 *
 * @param[in]  in    `count` elements; on `root` also FSDP_IN_PLACE, or equal to `out`: they are in `out`
 * @param[out] out   `count` elements on `root`; not used elsewhere, where NULL is allowed
 * @param[in]  root  a rank, the same everywhere
 */
FSDP_API fsdp_status fsdp_reduce(fsdp_context *ctx, const void *in, void *out, size_t count, fsdp_dtype dtype,
                                 fsdp_redop op, int root);
FSDP_API fsdp_status fsdp_ireduce(fsdp_context *ctx, const void *in, void *out, size_t count, fsdp_dtype dtype,
                                  fsdp_redop op, int root, fsdp_request **request);

/**
 * Sends block j of `in` to rank j; block i of `out` comes from rank i.
 *
 * @param[in]  in     size x `count` elements; or FSDP_IN_PLACE: they are in `out` (needs as much memory again for the time)
 * @param[out] out    size x `count` elements
 * @param[in]  count  ELEMENTS per block, equal on all ranks
 */
FSDP_API fsdp_status fsdp_alltoall(fsdp_context *ctx, const void *in, void *out, size_t count, fsdp_dtype dtype);
FSDP_API fsdp_status fsdp_ialltoall(fsdp_context *ctx, const void *in, void *out, size_t count, fsdp_dtype dtype,
                                    fsdp_request **request);

/**
 * Sends a block to each rank and receives one from each, all of any size: what MPI_Alltoallv() does. Host memory only.
 *
 * The first thing ranks do is to tell each other their counts, 24 BYTES per pair; short blocks come along with them. If a rank sends
 * a peer another number of elements than that one expects, every rank returns FSDP_ERR_MISMATCH, which names the two and both
 * numbers; outputs are undefined then, and the context is still good. Holds 48 BYTES of staging memory per rank while it is under
 * way.
 *
 * @param[in]  in                 from its beginning to the end of the last block it must be memory of this process, and apart from
 *                                `out` in this sense; or FSDP_IN_PLACE: blocks are in `out`, where they are replaced by what comes
 *                                (needs as much memory again for the time), and the two arguments behind it are ignored
 * @param[in]  in_counts          ELEMENTS for each rank, `size` entries; 0 is allowed
 * @param[in]  in_displacements   ELEMENTS from `in` to each of these blocks; that of an empty one does not matter
 * @param[out] out                blocks in it must not overlap; what is between them stays as it is
 * @param[in]  out_counts         ELEMENTS from each rank: what that one's `in_counts` has for this rank
 * @param[in]  out_displacements  ELEMENTS from `out` to each of these blocks
 * @return as listed on top; also FSDP_ERR_UNSUPPORTED for GPU memory.
 */
FSDP_API fsdp_status fsdp_alltoallv(fsdp_context *ctx, const void *in, const size_t *in_counts,
                                    const size_t *in_displacements, void *out, const size_t *out_counts,
                                    const size_t *out_displacements, fsdp_dtype dtype);
FSDP_API fsdp_status fsdp_ialltoallv(fsdp_context *ctx, const void *in, const size_t *in_counts,
                                     const size_t *in_displacements, void *out, const size_t *out_counts,
                                     const size_t *out_displacements, fsdp_dtype dtype, fsdp_request **request);

/** Completes on no rank before every rank has called it. It does not complete nonblocking operations issued before. */
FSDP_API fsdp_status fsdp_barrier(fsdp_context *ctx);
FSDP_API fsdp_status fsdp_ibarrier(fsdp_context *ctx, fsdp_request **request);

FSDP_EXTERN_C_END

#endif
