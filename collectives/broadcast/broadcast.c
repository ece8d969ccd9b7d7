#include "collectives/broadcast/broadcast.h"
#include "collectives/arguments/arguments.h"
#include "collectives/blocks/staged.h"
#include "collectives/select/select_algorithm.h"

static const fsdpi_selection BROADCAST = {
    .base      = FSDPI_COLLECTIVE("broadcast", FSDPI_BROADCAST, FSDPI_FROM_ROOT),
    .menu      = {[FSDP_ALGO_STAGED] = &fsdpi_staged,
                  [FSDP_ALGO_DIRECT] = &fsdpi_broadcast_direct,
                  [FSDP_ALGO_CMA]    = &fsdpi_broadcast_cma,
                  [FSDP_ALGO_RAILS]  = &fsdpi_broadcast_mpi,
                  [FSDP_ALGO_RING]   = &fsdpi_broadcast_ring},
    .on_device = {[FSDP_ALGO_STAGED] = &fsdpi_staged_device,
                  [FSDP_ALGO_DIRECT] = &fsdpi_broadcast_device,
                  [FSDP_ALGO_RAILS]  = &fsdpi_broadcast_ring_device,
                  [FSDP_ALGO_RING]   = &fsdpi_broadcast_ring_device},
};

static fsdpi_call call_of(void *buffer, size_t count, fsdp_dtype dtype, int root)
{
    return (fsdpi_call){.collective = &BROADCAST.base.collective,
                        .name       = "fsdp_broadcast",
                        .in         = FSDP_IN_PLACE,
                        .out        = buffer,
                        .count      = count,
                        .dtype      = dtype,
                        .root       = root,
                        .division   = FSDPI_DIVISION_ROOT,
                        .has_root   = true,
                        .has_data   = true};
}

fsdp_status fsdp_ibroadcast(fsdp_context *ctx, void *buffer, size_t count, fsdp_dtype dtype, int root,
                            fsdp_request **request)
{
    fsdpi_call call = call_of(buffer, count, dtype, root);

    return fsdpi_issue_checked(ctx, &call, FSDPI_WHOLE, FSDPI_WHOLE, FSDP_OK, request);
}

fsdp_status fsdp_broadcast(fsdp_context *ctx, void *buffer, size_t count, fsdp_dtype dtype, int root)
{
    fsdpi_call call = call_of(buffer, count, dtype, root);

    return fsdpi_run_checked(ctx, &call, FSDPI_WHOLE, FSDPI_WHOLE, FSDP_OK);
}
