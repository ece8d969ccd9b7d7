#include "lib/context/mpi_end.h"

#include "lib/base/log.h"
#include "lib/base/mpi_world.h"
#include "lib/context/context.h"

/* MPI_Finalize() releases MPI_COMM_SELF before anything else, and with it its attributes; so does fsdpi_mpi_end_forget(). */
static int on_release(MPI_Comm comm, int key, void *context, void *nothing)
{
    fsdp_context *ctx = context;

    (void)comm;
    (void)key;
    (void)nothing;
    if (!ctx->expects_mpi_end) {
        return MPI_SUCCESS;
    }
    ctx->expects_mpi_end = false;
    fsdpi_log(ctx, FSDP_LOG_WARN, "MPI_Finalize comes before fsdp_finalize; finalize contexts first");
    fsdpi_queue_drain(&ctx->queue);
    if (ctx->broken == FSDP_OK) {
        ctx->broken = FSDP_ERR_STATE;
    }
    return MPI_SUCCESS;
}

fsdp_status fsdpi_mpi_end_expect(fsdp_context *ctx)
{
    if (!fsdpi_mpi_has_world()) { /* a session, whose end calls nobody */
        return FSDP_OK;
    }
    FSDPI_TRY_MPI(ctx, MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_release, &ctx->mpi_end_key, NULL));
    FSDPI_TRY_MPI(ctx, MPI_Comm_set_attr(MPI_COMM_SELF, ctx->mpi_end_key, ctx));
    ctx->expects_mpi_end = true;
    return FSDP_OK;
}

void fsdpi_mpi_end_forget(fsdp_context *ctx)
{
    if (ctx->expects_mpi_end) {
        ctx->expects_mpi_end = false;
        (void)MPI_Comm_delete_attr(MPI_COMM_SELF, ctx->mpi_end_key);
        (void)MPI_Comm_free_keyval(&ctx->mpi_end_key);
    }
}
