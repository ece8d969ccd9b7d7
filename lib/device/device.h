/**
 * @file
 * Where memory lives and how it is moved: one table of operations per kind of device.
 */
#ifndef FSDPI_DEVICE_H
#define FSDPI_DEVICE_H

#include <stddef.h>

/** Every allocation is aligned to this many BYTES and a multiple of them. */
#define FSDPI_ALIGNMENT 256

typedef struct fsdpi_device {
    const char *name;

    /** `bytes` (a multiple of FSDPI_ALIGNMENT, not 0) of zeroed memory; NULL if there is none. */
    void *(*alloc)(size_t bytes);
    void (*release)(void *memory);
    void (*copy)(void *to, const void *from, size_t bytes);
    void (*clear)(void *memory, size_t bytes);
} fsdpi_device;

extern const fsdpi_device fsdpi_device_host;

#endif
