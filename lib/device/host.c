#include <stdlib.h>
#include <string.h>

#include "lib/device/device.h"

/* Clearing touches every page from the rank that owns it, so it comes from that rank's NUMA node. */
static void *host_alloc(size_t bytes)
{
    void *memory = aligned_alloc(FSDPI_ALIGNMENT, bytes);

    if (memory != NULL) {
        memset(memory, 0, bytes);
    }
    return memory;
}

static void host_copy(void *to, const void *from, size_t bytes)
{
    if (bytes > 0) {
        memmove(to, from, bytes);
    }
}

static void host_clear(void *memory, size_t bytes)
{
    if (bytes > 0) {
        memset(memory, 0, bytes);
    }
}

const fsdpi_device fsdpi_device_host = {
    .name    = "host",
    .alloc   = host_alloc,
    .release = free,
    .copy    = host_copy,
    .clear   = host_clear,
};
