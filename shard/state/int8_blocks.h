/**
 * @file
 * f32 values as blocks of 8 bit integers with one f32 scale each: what quantised gathers and int8 gradient hooks send.
 *
 * `n` values in blocks of `block`, of which the last may be shorter, are packed as
 *     f32 scale[ceil(n / block)], int8 code[n], zeros up to a multiple of 4 bytes,
 * and value i is read back as scale[i / block] * code[i], rounded to f32. Codes are -127 to 127 and the scale is the
 * largest magnitude of the block / 127, at least 2^-126: what is read back is off by half a scale at most, but for the
 * rounding of f32. Zero is read back as 0. A block with a value that is infinite or NaN has the scale NaN and is read back as
 * NaN throughout, so that whoever looks for values that are not finite still finds them.
 *
 * Nothing here fails, allocates or communicates. The same bits on every processor. Packed memory is aligned to 4 bytes and
 * overlaps no values.
 */
#ifndef FSDPI_INT8_BLOCKS_H
#define FSDPI_INT8_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>

/** ELEMENTS of a block where nobody has asked for another number. */
enum { FSDPI_INT8_BLOCK = 256 };

/** BYTES of `n` packed values: a multiple of 4. `block` is at least 1. */
size_t fsdpi_int8_blocks_bytes(size_t n, size_t block);

void fsdpi_int8_blocks_pack(const float *x, size_t n, size_t block, void *packed);
void fsdpi_int8_blocks_unpack(const void *packed, size_t n, size_t block, float *x);

/** `count` of the `n` values, from number `begin` on, which is the first of a block. */
void fsdpi_int8_blocks_unpack_run(const void *packed, size_t n, size_t block, size_t begin, size_t count, float *x);

/** x[i] += what is read back of value i; and x[i] -= it. */
void fsdpi_int8_blocks_add(const void *packed, size_t n, size_t block, float *x);
void fsdpi_int8_blocks_subtract(const void *packed, size_t n, size_t block, float *x);

/** Whether no block holds NaN. */
bool fsdpi_int8_blocks_finite(const void *packed, size_t n, size_t block);

/** The same with blocks of FSDPI_INT8_BLOCK. */
static inline size_t fsdpi_int8_packed_bytes(size_t n)
{
    return fsdpi_int8_blocks_bytes(n, FSDPI_INT8_BLOCK);
}

static inline void fsdpi_int8_pack(const float *x, size_t n, void *packed)
{
    fsdpi_int8_blocks_pack(x, n, FSDPI_INT8_BLOCK, packed);
}

#endif
