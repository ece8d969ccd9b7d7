/**
 * @file
 * Hashes of elements.
 */
#ifndef FSDPI_HASH_H
#define FSDPI_HASH_H

#include <stddef.h>
#include <stdint.h>

#include "fsdp/dtype.h"

/** A hash of `n` elements, f32 or f64, at `elements`, which are number `begin` and on of what `stream` names. Hashes of
 * parts add up, modulo 2^64, to the hash of the whole. */
uint64_t fsdpi_hash_elements(uint64_t stream, size_t begin, const void *elements, size_t n, fsdp_dtype dtype);

#endif
