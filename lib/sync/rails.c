#include "lib/sync/rails.h"

#include "lib/base/error.h"
#include "lib/base/mpi_world.h"
#include "lib/device/memory.h"
#include "lib/sync/messages.h"

static size_t transfers_bytes(int size)
{
    return (size_t)2 * (size_t)size * sizeof(fsdpi_transfer);
}

static size_t messages_bytes(int size)
{
    return (size_t)4 * FSDPI_RAILS_DEPTH * (size_t)size * sizeof(MPI_Request);
}

static size_t numbers_bytes(int size)
{
    return (size_t)4 * FSDPI_RAILS_DEPTH * (size_t)size * sizeof(uint32_t);
}

static size_t completed_bytes(int size)
{
    return (size_t)4 * FSDPI_RAILS_DEPTH * (size_t)size * sizeof(int);
}

size_t fsdpi_rails_bookkeeping(int size)
{
    return 2 * fsdpi_alloc_size(transfers_bytes(size)) + fsdpi_alloc_size(messages_bytes(size)) +
           fsdpi_alloc_size(numbers_bytes(size)) + fsdpi_alloc_size(completed_bytes(size)) +
           fsdpi_alloc_size((size_t)size * sizeof(size_t));
}

/* The same on all ranks. Some MPIs know it of MPI_COMM_WORLD only; each has as many as the standard asks for. */
static int highest_tag(MPI_Comm comm)
{
    const int  at_least = 32767;
    const int *highest  = &at_least;
    int        known    = 0;

    if ((MPI_Comm_get_attr(comm, MPI_TAG_UB, &highest, &known) != MPI_SUCCESS || !known) && fsdpi_mpi_has_world()) {
        (void)MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &highest, &known);
    }
    return known && *highest > at_least ? *highest : at_least;
}

fsdp_status fsdpi_rails_open(fsdpi_rails *rails, fsdpi_core *core)
{
    rails->core      = core;
    rails->n_tags    = highest_tag(core->comm) - FSDPI_TAG_PARTS; /* the last one is left over: no overflow */
    rails->sends     = fsdpi_alloc(core->ctx, FSDP_MEMORY_BOOKKEEPING, transfers_bytes(core->size));
    rails->receives  = fsdpi_alloc(core->ctx, FSDP_MEMORY_BOOKKEEPING, transfers_bytes(core->size));
    rails->messages  = fsdpi_alloc(core->ctx, FSDP_MEMORY_BOOKKEEPING, messages_bytes(core->size));
    rails->numbers   = fsdpi_alloc(core->ctx, FSDP_MEMORY_BOOKKEEPING, numbers_bytes(core->size));
    rails->completed = fsdpi_alloc(core->ctx, FSDP_MEMORY_BOOKKEEPING, completed_bytes(core->size));
    rails->copied    = fsdpi_alloc(core->ctx, FSDP_MEMORY_BOOKKEEPING, (size_t)core->size * sizeof(size_t));
    return rails->sends != NULL && rails->receives != NULL && rails->messages != NULL && rails->numbers != NULL &&
                   rails->completed != NULL && rails->copied != NULL
               ? FSDP_OK
               : FSDP_ERR_MEMORY;
}

void fsdpi_rails_close(fsdpi_rails *rails)
{
    const fsdpi_core *core = rails->core;

    if (core == NULL) {
        return;
    }
    fsdpi_free(core->ctx, FSDP_MEMORY_BOOKKEEPING, rails->sends, transfers_bytes(core->size));
    fsdpi_free(core->ctx, FSDP_MEMORY_BOOKKEEPING, rails->receives, transfers_bytes(core->size));
    fsdpi_free(core->ctx, FSDP_MEMORY_BOOKKEEPING, rails->messages, messages_bytes(core->size));
    fsdpi_free(core->ctx, FSDP_MEMORY_BOOKKEEPING, rails->numbers, numbers_bytes(core->size));
    fsdpi_free(core->ctx, FSDP_MEMORY_BOOKKEEPING, rails->completed, completed_bytes(core->size));
    fsdpi_free(core->ctx, FSDP_MEMORY_BOOKKEEPING, rails->copied, (size_t)core->size * sizeof(size_t));
}
