/**
 * @file
 * Every allocation of a context, counted by what it is for.
 */
#ifndef FSDPI_MEMORY_H
#define FSDPI_MEMORY_H

#include <stddef.h>

#include "fsdp/context.h"

/** What an allocation of `bytes` really takes: the next multiple of FSDPI_ALIGNMENT. What budgets count with. */
size_t fsdpi_alloc_size(size_t bytes);

/**
 * Zeroed memory, aligned to FSDPI_ALIGNMENT.
 * @return NULL where there is none, recorded and printed as FSDP_ERR_MEMORY; or, without that, where `bytes` is 0
 */
void *fsdpi_alloc(fsdp_context *ctx, fsdp_memory_kind kind, size_t bytes);

/** Releases what fsdpi_alloc() gave, with the same `kind` and `bytes`; NULL does nothing. */
void fsdpi_free(fsdp_context *ctx, fsdp_memory_kind kind, void *memory, size_t bytes);

/** Counts memory that was had elsewhere, and uncounts it. */
void fsdpi_count_memory(fsdp_context *ctx, fsdp_memory_kind kind, size_t bytes);
void fsdpi_uncount_memory(fsdp_context *ctx, fsdp_memory_kind kind, size_t bytes);

/** The same for memory of the rank's GPU. */
void fsdpi_count_device_memory(fsdp_context *ctx, fsdp_memory_kind kind, size_t bytes);
void fsdpi_uncount_device_memory(fsdp_context *ctx, fsdp_memory_kind kind, size_t bytes);

/** Sets a * b, or returns 0 where that is above SIZE_MAX. */
int fsdpi_multiply(size_t a, size_t b, size_t *product);

#endif
