#include "lib/sync/staging.h"

#include "fsdp/dtype.h"
#include "lib/sync/exchange.h"

enum { WIDEST = 8 }; /* BYTES of an element */

/* What peers' elements are copied to is half of what is behind the slots. */
size_t fsdpi_staging_least(const fsdpi_nodes *nodes)
{
    const size_t records = 2 * fsdpi_exchange_least(nodes->count), peers = (size_t)nodes->largest * 4 * WIDEST;

    return records > peers ? records : peers;
}
