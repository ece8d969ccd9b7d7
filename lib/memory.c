#include "lib/memory.h"

#include <stdbool.h>
#include <stdint.h>

#include "lib/context.h"
#include "lib/device/device.h"
#include "lib/error.h"

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
    fsdp_context *held = (fsdp_context *)(uintptr_t)ctx; /* for the lock */
    (void)pthread_mutex_lock(&held->memory_lock);
    *memory = ctx->memory;
    (void)pthread_mutex_unlock(&held->memory_lock);
    return FSDP_OK;
}

size_t fsdpi_alloc_size(size_t bytes)
{
    return (bytes + FSDPI_ALIGNMENT - 1) / FSDPI_ALIGNMENT * FSDPI_ALIGNMENT;
}

/* The progress thread allocates too. */
static void count(fsdp_context *ctx, fsdp_memory_kind kind, size_t bytes, bool on_device)
{
    const size_t size = fsdpi_alloc_size(bytes);

    (void)pthread_mutex_lock(&ctx->memory_lock);
    ctx->memory.current[kind] += size;
    ctx->memory.current_total += size;
    ctx->memory.device += on_device ? size : 0;
    if (ctx->memory.current_total > ctx->memory.peak_total) {
        ctx->memory.peak_total = ctx->memory.current_total;
    }
    (void)pthread_mutex_unlock(&ctx->memory_lock);
}

static void uncount(fsdp_context *ctx, fsdp_memory_kind kind, size_t bytes, bool on_device)
{
    const size_t size = fsdpi_alloc_size(bytes);

    (void)pthread_mutex_lock(&ctx->memory_lock);
    ctx->memory.current[kind] -= size;
    ctx->memory.current_total -= size;
    ctx->memory.device -= on_device ? size : 0;
    (void)pthread_mutex_unlock(&ctx->memory_lock);
}

void fsdpi_count_memory(fsdp_context *ctx, fsdp_memory_kind kind, size_t bytes)
{
    count(ctx, kind, bytes, false);
}

void fsdpi_uncount_memory(fsdp_context *ctx, fsdp_memory_kind kind, size_t bytes)
{
    uncount(ctx, kind, bytes, false);
}

void fsdpi_count_device_memory(fsdp_context *ctx, fsdp_memory_kind kind, size_t bytes)
{
    count(ctx, kind, bytes, true);
}

void fsdpi_uncount_device_memory(fsdp_context *ctx, fsdp_memory_kind kind, size_t bytes)
{
    uncount(ctx, kind, bytes, true);
}

void *fsdpi_alloc(fsdp_context *ctx, fsdp_memory_kind kind, size_t bytes)
{
    const size_t size   = fsdpi_alloc_size(bytes);
    void        *memory = NULL;

    if (bytes == 0) {
        return NULL;
    }
    if (size >= bytes) {
        memory = ctx->device->alloc(size);
    }
    if (memory == NULL) {
        (void)fsdpi_fail(ctx, FSDP_ERR_MEMORY,
                         "no memory for %zu bytes of %s (%zu held); use more ranks, smaller units or less per rank",
                         bytes, fsdp_memory_name(kind), ctx->memory.current_total);
        return NULL;
    }
    fsdpi_count_memory(ctx, kind, bytes);
    return memory;
}

void fsdpi_free(fsdp_context *ctx, fsdp_memory_kind kind, void *memory, size_t bytes)
{
    if (memory == NULL) {
        return;
    }
    if (ctx->broken == FSDP_OK) { /* else MPI may still write to it */
        ctx->device->release(memory);
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
