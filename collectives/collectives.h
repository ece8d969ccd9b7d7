/**
 * @file
 * The collectives as other parts of the library call them: as steps of something with a name of its own, which may have
 * found on this rank that it cannot go on.
 */
#ifndef FSDPI_COLLECTIVES_H
#define FSDPI_COLLECTIVES_H

#include <stdbool.h>

#include "fsdp/collectives.h"
#include "lib/progress/request.h"

/**
 * What a collective is a step of. Ranks must agree on `name` and `label`, and a `status` that is not FSDP_OK fails all.
 */
typedef struct fsdpi_purpose {
    const char *name;  /* the public function, as "fsdp_unit_begin_forward" */
    const char *label; /* what it is called on, as a unit's name; or NULL */
    fsdp_status
         status;   /* this rank's own verdict, its detail recorded in the context; buffers are not looked at then */
    bool reserved; /* it takes a request of those that were reserved: see fsdpi_queue_reserve() */
} fsdpi_purpose;

fsdp_status fsdpi_allgather(fsdp_context *ctx, const fsdpi_purpose *purpose, const void *shard, void *full,
                            size_t count, fsdp_dtype dtype);
fsdp_status fsdpi_reduce_scatter(fsdp_context *ctx, const fsdpi_purpose *purpose, const void *full, void *shard,
                                 size_t count, fsdp_dtype dtype, fsdp_redop op);
fsdp_status fsdpi_allreduce(fsdp_context *ctx, const fsdpi_purpose *purpose, const void *in, void *out, size_t count,
                            fsdp_dtype dtype, fsdp_redop op);
fsdp_status fsdpi_alltoall(fsdp_context *ctx, const fsdpi_purpose *purpose, const void *in, void *out, size_t count,
                           fsdp_dtype dtype);

/** The same, nonblocking: `request` ends with fsdp_wait(). `purpose->name` and `->label` have to last until then. */
fsdp_status fsdpi_iallgather(fsdp_context *ctx, const fsdpi_purpose *purpose, const void *shard, void *full,
                             size_t count, fsdp_dtype dtype, fsdp_request **request);
fsdp_status fsdpi_ireduce_scatter(fsdp_context *ctx, const fsdpi_purpose *purpose, const void *full, void *shard,
                                  size_t count, fsdp_dtype dtype, fsdp_redop op, fsdp_request **request);

/**
 * The same with parts of different lengths, which `begins` tells from `divided`; both have to last until then. Ranks do not compare
 * where parts begin: what divides them is something they have agreed on before, as the layout of a model.
 */
fsdp_status fsdpi_iallgatherv(fsdp_context *ctx, const fsdpi_purpose *purpose, const void *shard, void *full,
                              fsdpi_begins *begins, const void *divided, fsdp_dtype dtype, fsdp_request **request);
fsdp_status fsdpi_ireduce_scatterv(fsdp_context *ctx, const fsdpi_purpose *purpose, const void *full, void *shard,
                                   fsdpi_begins *begins, const void *divided, fsdp_dtype dtype, fsdp_redop op,
                                   fsdp_request **request);
fsdp_status fsdpi_iallreduce(fsdp_context *ctx, const fsdpi_purpose *purpose, const void *in, void *out, size_t count,
                             fsdp_dtype dtype, fsdp_redop op, fsdp_request **request);

#endif
