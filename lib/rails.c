#include "lib/rails.h"

#include "lib/context.h"
#include "lib/error.h"
#include "lib/memory.h"

static size_t transfers_bytes(int size)
{
    return (size_t)2 * (size_t)size * sizeof(fsdpi_transfer);
}

static size_t messages_bytes(int size)
{
    return (size_t)4 * FSDPI_RAILS_DEPTH * (size_t)size * sizeof(MPI_Request);
}

static size_t completed_bytes(int size)
{
    return (size_t)4 * FSDPI_RAILS_DEPTH * (size_t)size * sizeof(int);
}

size_t fsdpi_rails_bookkeeping(int size)
{
    return 2 * fsdpi_alloc_size(transfers_bytes(size)) + fsdpi_alloc_size(messages_bytes(size)) +
           fsdpi_alloc_size(completed_bytes(size)) + fsdpi_alloc_size((size_t)size * sizeof(size_t));
}

fsdp_status fsdpi_rails_open(fsdp_context *ctx)
{
    fsdpi_rails *rails = &ctx->rails;

    rails->sends     = fsdpi_alloc(ctx, FSDP_MEMORY_BOOKKEEPING, transfers_bytes(ctx->size));
    rails->receives  = fsdpi_alloc(ctx, FSDP_MEMORY_BOOKKEEPING, transfers_bytes(ctx->size));
    rails->messages  = fsdpi_alloc(ctx, FSDP_MEMORY_BOOKKEEPING, messages_bytes(ctx->size));
    rails->completed = fsdpi_alloc(ctx, FSDP_MEMORY_BOOKKEEPING, completed_bytes(ctx->size));
    rails->copied    = fsdpi_alloc(ctx, FSDP_MEMORY_BOOKKEEPING, (size_t)ctx->size * sizeof(size_t));
    return rails->sends != NULL && rails->receives != NULL && rails->messages != NULL && rails->completed != NULL &&
                   rails->copied != NULL
               ? FSDP_OK
               : FSDP_ERR_MEMORY;
}

void fsdpi_rails_close(fsdp_context *ctx)
{
    fsdpi_rails *rails = &ctx->rails;

    fsdpi_free(ctx, FSDP_MEMORY_BOOKKEEPING, rails->sends, transfers_bytes(ctx->size));
    fsdpi_free(ctx, FSDP_MEMORY_BOOKKEEPING, rails->receives, transfers_bytes(ctx->size));
    fsdpi_free(ctx, FSDP_MEMORY_BOOKKEEPING, rails->messages, messages_bytes(ctx->size));
    fsdpi_free(ctx, FSDP_MEMORY_BOOKKEEPING, rails->completed, completed_bytes(ctx->size));
    fsdpi_free(ctx, FSDP_MEMORY_BOOKKEEPING, rails->copied, (size_t)ctx->size * sizeof(size_t));
}

void fsdpi_rails_forget_landed(fsdp_context *ctx)
{
    fsdpi_desk *desk = ctx->box.desks[ctx->nodes.position];

    for (int part = 0; part < ctx->size; part++) {
        atomic_store_explicit(&desk->landed[part], 0, memory_order_relaxed);
    }
}
