/**
 * @file
 * f32 values in 8 bits each, with one f32 scale for every 256: moments of optimizers between steps.
 *
 * Dettmers et al., "8-bit optimizers via block-wise quantization" (2022): a value is a code times its block's scale, which is the
 * block's largest magnitude. Codes lie closer together the smaller they are, over seven decades: the middles of 2^i equal parts of
 * 10^(i - 7) .. 10^(i - 6), i from 0 to 6, of either sign, for first moments; the middles of 2^(i + 1) parts for second moments, which
 * have no sign. The largest code is 1, of first moments -1 too, so that quantising what was read back gives the same codes and
 * scales: a block may be written as f32 and read again. A value becomes the nearest code, of two the smaller one; but a second moment
 * above 0 never becomes 0, by whose root steps are divided.
 *
 * A step takes a share 1 - beta2 off a second moment, less than there is between two codes, so that the nearest code would be the
 * old one for ever. There it becomes one of the two codes around it, each as often as makes the mean of both the value (stochastic
 * rounding). A hash of the value, its place in the block and the step decides: the same bits for any number of ranks.
 *
 * A block whose largest magnitude is below 2^-100 is read back as zeros. One with a value that is infinite or NaN has the scale NaN
 * and is read back as NaN throughout. The same bits on every processor. Nothing here fails, allocates or communicates.
 */
#ifndef FSDPI_DYNAMIC_BLOCKS_H
#define FSDPI_DYNAMIC_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** ELEMENTS of a block. */
enum { FSDPI_DYNAMIC_BLOCK = 256 };

/** BYTES of `n` values: codes, and behind them the scales; `n` is a multiple of a block where both are in one array. */
static inline size_t fsdpi_dynamic_bytes(size_t n)
{
    return n + (n + FSDPI_DYNAMIC_BLOCK - 1) / FSDPI_DYNAMIC_BLOCK * sizeof(float);
}

/** `n` values into codes, and scales of the blocks; the last block may be shorter. @param[in] is_signed  first moments */
void fsdpi_dynamic_pack(const float *x, size_t n, bool is_signed, uint8_t *codes, float *scales);

/** The same behind step number `step`, where second moments are rounded up or down. */
void fsdpi_dynamic_pack_step(const float *x, size_t n, bool is_signed, uint64_t step, uint8_t *codes, float *scales);

/** `n` values from number `begin` on, which need not be the first of a block. */
void fsdpi_dynamic_unpack(const uint8_t *codes, const float *scales, size_t begin, size_t n, bool is_signed, float *x);

#endif
