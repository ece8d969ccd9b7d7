#include "lib/device/memory.h"

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/core.h"
#include "lib/base/error.h"
#include "lib/device/device.h"

const char *fsdp_memory_name(fsdp_memory_kind kind)
{
    switch (kind) {
#define MEMORY_CASE(name, value, text)                                                                                 \
    case name:                                                                                                         \
        return text;
        FSDP_MEMORY_LIST(MEMORY_CASE)
#undef MEMORY_CASE
    }
    return "unknown";
}

fsdp_status fsdp_memory_usage(const fsdp_context *ctx, fsdp_memory *memory)
{
    if (ctx == NULL || memory == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "fsdp_memory_usage: a pointer is NULL");
    }
    fsdpi_core *core = fsdpi_core_of((fsdp_context *)(uintptr_t)ctx); /* for the lock */
    (void)pthread_mutex_lock(&core->memory_lock);
    *memory = core->memory;
    (void)pthread_mutex_unlock(&core->memory_lock);
    return FSDP_OK;
}

size_t fsdpi_alloc_size(size_t bytes)
{
    return (bytes + FSDPI_ALIGNMENT - 1) / FSDPI_ALIGNMENT * FSDPI_ALIGNMENT;
}

/* The progress thread allocates too. */
static void count(fsdpi_core *core, fsdp_memory_kind kind, size_t bytes, bool on_device)
{
    const size_t size = fsdpi_alloc_size(bytes);

    (void)pthread_mutex_lock(&core->memory_lock);
    core->memory.current[kind] += size;
    core->memory.current_total += size;
    core->memory.device += on_device ? size : 0;
    if (core->memory.current_total > core->memory.peak_total) {
        core->memory.peak_total = core->memory.current_total;
    }
    (void)pthread_mutex_unlock(&core->memory_lock);
}

static void uncount(fsdpi_core *core, fsdp_memory_kind kind, size_t bytes, bool on_device)
{
    const size_t size = fsdpi_alloc_size(bytes);

    (void)pthread_mutex_lock(&core->memory_lock);
    core->memory.current[kind] -= size;
    core->memory.current_total -= size;
    core->memory.device -= on_device ? size : 0;
    (void)pthread_mutex_unlock(&core->memory_lock);
}

void fsdpi_count_memory(fsdp_context *ctx, fsdp_memory_kind kind, size_t bytes)
{
    count(fsdpi_core_of(ctx), kind, bytes, false);
}

void fsdpi_uncount_memory(fsdp_context *ctx, fsdp_memory_kind kind, size_t bytes)
{
    uncount(fsdpi_core_of(ctx), kind, bytes, false);
}

void fsdpi_count_device_memory(fsdp_context *ctx, fsdp_memory_kind kind, size_t bytes)
{
    count(fsdpi_core_of(ctx), kind, bytes, true);
}

void fsdpi_uncount_device_memory(fsdp_context *ctx, fsdp_memory_kind kind, size_t bytes)
{
    uncount(fsdpi_core_of(ctx), kind, bytes, true);
}

void *fsdpi_alloc(fsdp_context *ctx, fsdp_memory_kind kind, size_t bytes)
{
    fsdpi_core  *core   = fsdpi_core_of(ctx);
    const size_t size   = fsdpi_alloc_size(bytes);
    void        *memory = NULL;

    if (bytes == 0) {
        return NULL;
    }
    if (size >= bytes) {
        memory = core->device->alloc(size);
    }
    if (memory == NULL) {
        (void)fsdpi_fail(ctx, FSDP_ERR_MEMORY,
                         "no memory for %zu bytes of %s (%zu held); use more ranks, smaller units or less per rank",
                         bytes, fsdp_memory_name(kind), core->memory.current_total);
        return NULL;
    }
    fsdpi_count_memory(ctx, kind, bytes);
    return memory;
}

void fsdpi_free(fsdp_context *ctx, fsdp_memory_kind kind, void *memory, size_t bytes)
{
    const fsdpi_core *core = fsdpi_core_of(ctx);

    if (memory == NULL) {
        return;
    }
    if (fsdpi_is_at_rest(core)) {
        core->device->release(memory);
    }
    fsdpi_uncount_memory(ctx, kind, bytes);
}

int fsdpi_multiply(size_t a, size_t b, size_t *product)
{
    if (b != 0 && a > SIZE_MAX / b) {
        return 0;
    }
    *product = a * b;
    return 1;
}
