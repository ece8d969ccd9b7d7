#include "lib/context/part.h"

#include "lib/base/yielding.h"
#include "lib/context/gpu_context.h"
#include "lib/context/init.h"
#include "lib/device/memory.h"
#include "lib/sync/staging.h"

static void count(fsdp_context *ctx, const fsdp_context *part)
{
    fsdpi_count_memory(ctx, FSDP_MEMORY_STAGING, fsdpi_staging_total((size_t)part->config.staging_bytes));
    fsdpi_count_memory(ctx, FSDP_MEMORY_STAGING, fsdpi_gpu_context_host_bytes(part, part->size));
    fsdpi_count_memory(ctx, FSDP_MEMORY_BOOKKEEPING, fsdpi_context_bookkeeping(part->size, part->config.record));
    fsdpi_count_device_memory(ctx, FSDP_MEMORY_STAGING, fsdpi_gpu_context_bytes(part));
}

static void uncount(fsdp_context *ctx, const fsdp_context *part)
{
    fsdpi_uncount_memory(ctx, FSDP_MEMORY_STAGING, fsdpi_staging_total((size_t)part->config.staging_bytes));
    fsdpi_uncount_memory(ctx, FSDP_MEMORY_STAGING, fsdpi_gpu_context_host_bytes(part, part->size));
    fsdpi_uncount_memory(ctx, FSDP_MEMORY_BOOKKEEPING, fsdpi_context_bookkeeping(part->size, part->config.record));
    fsdpi_uncount_device_memory(ctx, FSDP_MEMORY_STAGING, fsdpi_gpu_context_bytes(part));
}

static int split(const fsdp_context *ctx, bool whole, int color, int key, MPI_Comm *comm)
{
    return whole ? fsdpi_mpi_duplicate(ctx->comm, comm, ctx->config.timeout_s)
                 : MPI_Comm_split(ctx->comm, color, key, comm);
}

fsdp_status fsdpi_part_open(fsdp_context *ctx, bool whole, int color, int key, const fsdp_config *config,
                            fsdp_context **part)
{
    MPI_Comm comm;

    *part = NULL;
    FSDPI_TRY_MPI(ctx, split(ctx, whole, color, key, &comm));
    const fsdp_status status = fsdp_init(comm, config, part);
    (void)MPI_Comm_free(&comm);
    if (status != FSDP_OK) {
        return fsdpi_record(ctx, status, "%s", fsdp_last_error(NULL));
    }
    (*part)->shown_rank = ctx->rank;
    fsdpi_recorder_show_rank(&(*part)->recorder, ctx->rank);
    (*part)->gpu.leader = &ctx->gpu;
    count(ctx, *part);
    return FSDP_OK;
}

void fsdpi_part_close(fsdp_context *ctx, fsdp_context *part)
{
    if (part != NULL && part != ctx) {
        uncount(ctx, part);
        (void)fsdp_finalize(part);
    }
}
