#include "tools/preload/engine/heap.h"

#include <stdatomic.h>
#include <stdlib.h>

static const uint64_t MOST = 32 << 20; /* an array that is larger changes nothing in glibc */

void fsdpi_heap_keep(uint64_t bytes)
{
    static _Atomic uint64_t most = 0;

    if (bytes <= atomic_load_explicit(&most, memory_order_relaxed) || bytes > MOST) {
        return;
    }
    atomic_store_explicit(&most, bytes, memory_order_relaxed);

    void *volatile array = malloc(bytes);
    free(array);
}
