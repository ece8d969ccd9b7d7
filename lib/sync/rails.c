#include "lib/sync/rails.h"

#include "lib/device/memory.h"
#include "lib/node/nodes.h"

/* Of all streams. */
static size_t n_parcels(int size)
{
    return FSDPI_STREAMS * fsdpi_rails_window(size);
}

static size_t parcels_bytes(int size)
{
    return n_parcels(size) * sizeof(fsdpi_parcel);
}

static size_t messages_bytes(int size)
{
    return n_parcels(size) * sizeof(MPI_Request);
}

static size_t numbers_bytes(int size)
{
    return n_parcels(size) * sizeof(uint32_t);
}

static size_t completed_bytes(int size)
{
    return n_parcels(size) * sizeof(int);
}

static size_t copied_bytes(int size)
{
    return (size_t)fsdpi_positions(size) * sizeof(fsdpi_copied);
}

size_t fsdpi_rails_bookkeeping(int size)
{
    return fsdpi_alloc_size(parcels_bytes(size)) + fsdpi_alloc_size(messages_bytes(size)) +
           fsdpi_alloc_size(numbers_bytes(size)) + fsdpi_alloc_size(completed_bytes(size)) +
           fsdpi_alloc_size(copied_bytes(size));
}

fsdp_status fsdpi_rails_open(fsdpi_rails *rails, fsdpi_core *core)
{
    rails->core      = core;
    rails->parcels   = fsdpi_alloc(core->ctx, FSDP_MEMORY_BOOKKEEPING, parcels_bytes(core->size));
    rails->messages  = fsdpi_alloc(core->ctx, FSDP_MEMORY_BOOKKEEPING, messages_bytes(core->size));
    rails->numbers   = fsdpi_alloc(core->ctx, FSDP_MEMORY_BOOKKEEPING, numbers_bytes(core->size));
    rails->completed = fsdpi_alloc(core->ctx, FSDP_MEMORY_BOOKKEEPING, completed_bytes(core->size));
    rails->copied    = fsdpi_alloc(core->ctx, FSDP_MEMORY_BOOKKEEPING, copied_bytes(core->size));
    for (int s = 0; rails->parcels != NULL && s < FSDPI_STREAMS; s++) {
        rails->streams[s].parcels = rails->parcels + (size_t)s * fsdpi_rails_window(core->size);
    }
    return rails->parcels != NULL && rails->messages != NULL && rails->numbers != NULL && rails->completed != NULL &&
                   rails->copied != NULL
               ? FSDP_OK
               : FSDP_ERR_MEMORY;
}

void fsdpi_rails_close(fsdpi_rails *rails)
{
    const fsdpi_core *core = rails->core;

    if (core == NULL) {
        return;
    }
    fsdpi_free(core->ctx, FSDP_MEMORY_BOOKKEEPING, rails->parcels, parcels_bytes(core->size));
    fsdpi_free(core->ctx, FSDP_MEMORY_BOOKKEEPING, rails->messages, messages_bytes(core->size));
    fsdpi_free(core->ctx, FSDP_MEMORY_BOOKKEEPING, rails->numbers, numbers_bytes(core->size));
    fsdpi_free(core->ctx, FSDP_MEMORY_BOOKKEEPING, rails->completed, completed_bytes(core->size));
    fsdpi_free(core->ctx, FSDP_MEMORY_BOOKKEEPING, rails->copied, copied_bytes(core->size));
}
