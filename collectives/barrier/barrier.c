/* A barrier is the agreement that every operation begins with, and nothing behind it. */
#include "collectives/arguments/arguments.h"
#include "lib/context/table.h"

static const fsdpi_collective BARRIER = {.name = "barrier", .id = FSDPI_BARRIER};

fsdp_status fsdp_ibarrier(fsdp_context *ctx, fsdp_request **request)
{
    fsdpi_call call = {.collective = &BARRIER, .name = "fsdp_barrier"};

    return fsdpi_issue_checked(ctx, &call, FSDPI_NOTHING, FSDPI_NOTHING, FSDP_OK, request);
}

fsdp_status fsdp_barrier(fsdp_context *ctx)
{
    fsdpi_call call = {.collective = &BARRIER, .name = "fsdp_barrier"};

    return fsdpi_run_checked(ctx, &call, FSDPI_NOTHING, FSDPI_NOTHING, FSDP_OK);
}
