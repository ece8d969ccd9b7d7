#include "lib/sync/staging.h"

#include "fsdp/dtype.h"
#include "lib/device/memory.h"
#include "lib/sync/exchange.h"

enum { WIDEST = 8 }; /* BYTES of an element */

size_t fsdpi_staging_short(size_t staging_bytes)
{
    return staging_bytes / 2 / FSDPI_LINE * FSDPI_LINE;
}

size_t fsdpi_staging_total(size_t staging_bytes)
{
    return fsdpi_alloc_size(staging_bytes) + fsdpi_alloc_size(fsdpi_staging_short(staging_bytes));
}

/* What peers' elements are copied to is half of what is behind the slots. */
size_t fsdpi_staging_least(const fsdpi_nodes *nodes)
{
    const size_t records = 4 * (fsdpi_exchange_least(nodes->count) + FSDPI_LINE),
                 peers   = (size_t)nodes->largest * 4 * WIDEST;

    return records > peers ? records : peers;
}
