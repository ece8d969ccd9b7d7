/**
 * @file
 * Element-wise compute on GPU memory: the functions of kernels/kernels.h with the same bits, launched on a stream.
 *
 * Each returns as soon as the work is in the stream, and the runtime's own number: 0, or why it could not be launched;
 * nothing has been launched then. What these numbers mean is for hipGetErrorString(). Pointers are the device's, or of
 * memory that it can address, and may have any alignment that their element type has: where all pointers of a call can be
 * brought to 16 bytes by leaving out the same number of elements, memory is accessed 16 bytes at a time. Counts are
 * ELEMENTS; 0 is allowed and does nothing. What outputs may overlap is as in kernels/kernels.h. A result never depends on
 * the size of the grid. Nothing is allocated.
 */
#ifndef FSDPI_GPU_KERNELS_H
#define FSDPI_GPU_KERNELS_H

#include <stddef.h>

#include "fsdp/dtype.h"
#include "fsdp/export.h"
#include "kernels/kernels.h"

/** A hipStream_t, or a cudaStream_t in a build for CUDA; NULL is the default stream. */
typedef void *fsdpi_gpu_stream;

/** Operands and results that fsdpi_gpu_reduce_into() takes at most; they travel in the arguments of the kernel. */
enum { FSDPI_GPU_OPERANDS = 64 };

/** BYTES to be copied, from and to device memory. */
typedef struct fsdpi_gpu_run {
    void       *to;
    const void *from;
    size_t      bytes;
} fsdpi_gpu_run;

FSDP_EXTERN_C_BEGIN

/**
 * As fsdpi_kernels::reduce_into: one launch that reads each operand once.
 * @return also hipErrorInvalidValue: more than FSDPI_GPU_OPERANDS operands or results
 */
int fsdpi_gpu_reduce_into(void *const *out, size_t n_out, const void *const *in, size_t n_in, size_t count,
                          fsdp_dtype dtype, fsdp_redop op, size_t divisor, fsdpi_gpu_stream stream);

/** As fsdpi_kernels::cast. */
int fsdpi_gpu_cast(void *out, fsdp_dtype out_dtype, const void *in, fsdp_dtype in_dtype, size_t count,
                   fsdpi_gpu_stream stream);

/** As fsdpi_kernels::scale and fsdpi_kernels::clamp. */
int fsdpi_gpu_scale(void *x, double factor, size_t count, fsdp_dtype dtype, fsdpi_gpu_stream stream);
int fsdpi_gpu_clamp(void *x, double limit, size_t count, fsdp_dtype dtype, fsdpi_gpu_stream stream);

/** As fsdpi_kernels::accumulate. */
int fsdpi_gpu_accumulate(float *sum, bool fresh, const void *x, fsdp_dtype dtype, double factor, size_t count,
                         fsdpi_gpu_stream stream);

/** BYTES of scratch memory that the two below need for `count` elements. */
size_t fsdpi_gpu_norm_scratch(size_t count);

/**
 * As fsdpi_kernels::sum_squares, but digits are only reduced before they are added: a carry is left to whoever reads them.
 * @param[in,out] sum      in memory that the device can address
 * @param[in]     scratch  of the device; aligned to 8 bytes; may be used again behind this in the stream
 * @return also hipErrorInvalidValue: f64
 */
int fsdpi_gpu_sum_squares(fsdpi_exact_sum *sum, const void *x, size_t count, fsdp_dtype dtype, void *scratch,
                          fsdpi_gpu_stream stream);

/** Raises *most to what fsdpi_kernels::absolute_maximum yields, NaN included; arguments as above. */
int fsdpi_gpu_absolute_maximum(double *most, const void *x, size_t count, fsdp_dtype dtype, void *scratch,
                               fsdpi_gpu_stream stream);

/** As fsdpi_kernels::adam, adamw, lion and sgd. */
int fsdpi_gpu_adam(float *w, const float *g, float *m, float *v, size_t count, const fsdpi_adam *c,
                   fsdpi_gpu_stream stream);
int fsdpi_gpu_adamw(float *w, const float *g, float *m, float *v, size_t count, const fsdpi_adam *c,
                    fsdpi_gpu_stream stream);
int fsdpi_gpu_lion(float *w, const float *g, float *m, size_t count, const fsdpi_lion *c, fsdpi_gpu_stream stream);
int fsdpi_gpu_sgd(float *w, const float *g, float *b, size_t count, const fsdpi_sgd *c, fsdpi_gpu_stream stream);

/**
 * As fsdpi_int8_blocks_pack(), in shard/state/int8_blocks.h, the same format and the same bits, for the values [begin, begin + count)
 * of `n`, which are at `x`. `begin` is a multiple of `block`, and so is `count` unless it reaches the end.
 */
int fsdpi_gpu_int8_pack(const float *x, size_t begin, size_t count, size_t n, size_t block, void *packed,
                        fsdpi_gpu_stream stream);

/** As fsdpi_int8_blocks_unpack() and then fsdpi_kernels::cast to a floating-point type. */
int fsdpi_gpu_int8_unpack(const void *packed, size_t n, size_t block, void *x, fsdp_dtype dtype,
                          fsdpi_gpu_stream stream);

/** Copies runs of bytes that do not overlap: tensors into a flat vector, or out of it. One launch for up to 64 runs. */
int fsdpi_gpu_copy_runs(const fsdpi_gpu_run *runs, size_t n_runs, fsdpi_gpu_stream stream);

FSDP_EXTERN_C_END

#endif
