/**
 * @file
 * A device whose memory is the host's, until a number of allocations has been made.
 */
#ifndef FSDP_TESTS_FAILING_MEMORY_H
#define FSDP_TESTS_FAILING_MEMORY_H

#include <limits.h>

#include "lib/context/context.h"

enum { ENOUGH_ALLOCATIONS = INT_MAX };

static int allocations_left = ENOUGH_ALLOCATIONS; /* after which the next one fails */

static inline void *failing_alloc(size_t bytes)
{
    return allocations_left-- > 0 ? fsdpi_device_host.alloc(bytes) : NULL;
}

/** For ctx->device. */
static inline fsdpi_device failing_device(void)
{
    fsdpi_device device = fsdpi_device_host;

    device.alloc = failing_alloc;
    return device;
}

#endif
