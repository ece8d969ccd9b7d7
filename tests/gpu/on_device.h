/**
 * @file
 * Runs a test of the collectives, which knows host memory only, on the GPU: each call is made on copies of its buffers in
 * device memory, by turns symmetric and plain, whose surroundings must stay as they are. To be included before all else.
 */
#ifndef FSDP_TESTS_ON_DEVICE_H
#define FSDP_TESTS_ON_DEVICE_H

#include "fsdp/fsdp.h"

fsdp_status on_device_init(MPI_Comm comm, const fsdp_config *config, fsdp_context **ctx);
fsdp_status on_device_finalize(fsdp_context *ctx);
fsdp_status on_device_allgather(fsdp_context *ctx, const void *shard, void *full, size_t count, fsdp_dtype dtype);
fsdp_status on_device_allgatherv(fsdp_context *ctx, const void *shard, void *full, const size_t *counts,
                                 fsdp_dtype dtype);
fsdp_status on_device_reduce_scatter(fsdp_context *ctx, const void *full, void *shard, size_t count, fsdp_dtype dtype,
                                     fsdp_redop op);
fsdp_status on_device_reduce_scatterv(fsdp_context *ctx, const void *full, void *shard, const size_t *counts,
                                      fsdp_dtype dtype, fsdp_redop op);
fsdp_status on_device_allreduce(fsdp_context *ctx, const void *in, void *out, size_t count, fsdp_dtype dtype,
                                fsdp_redop op);
fsdp_status on_device_broadcast(fsdp_context *ctx, void *buffer, size_t count, fsdp_dtype dtype, int root);
fsdp_status on_device_reduce(fsdp_context *ctx, const void *in, void *out, size_t count, fsdp_dtype dtype,
                             fsdp_redop op, int root);
fsdp_status on_device_alltoall(fsdp_context *ctx, const void *in, void *out, size_t count, fsdp_dtype dtype);

#ifndef ON_DEVICE_ITSELF
#define fsdp_init            on_device_init
#define fsdp_finalize        on_device_finalize
#define fsdp_allgather       on_device_allgather
#define fsdp_allgatherv      on_device_allgatherv
#define fsdp_reduce_scatter  on_device_reduce_scatter
#define fsdp_reduce_scatterv on_device_reduce_scatterv
#define fsdp_allreduce       on_device_allreduce
#define fsdp_broadcast       on_device_broadcast
#define fsdp_reduce          on_device_reduce
#define fsdp_alltoall        on_device_alltoall
#endif

#endif
