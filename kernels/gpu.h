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

/** `rows` words, looked up in the rows that this rank has of a table: `count`, from word `begin` on, of `vocabulary`. */
typedef struct fsdpi_gpu_lookup {
    const int32_t *words;       /* of memory that the device can address */
    size_t         rows, width; /* ELEMENTS of a row of the table */
    size_t         begin, count, vocabulary;
    fsdp_dtype     dtype; /* of the table */
} fsdpi_gpu_lookup;

/** Rows of logits, of whose columns this rank has `count`, from `begin` on, of `vocabulary`. All memory is the device's. */
typedef struct fsdpi_gpu_entropy {
    const int32_t *targets; /* of the rows; -1: none */
    size_t         rows;
    size_t         begin, count, vocabulary;
    fsdp_dtype     dtype;   /* f32 or f64 */
    double         scale;   /* of gradients */
    void          *logits;  /* rows x count */
    double        *lanes;   /* FSDPI_GPU_LANES x rows, to work with */
    double        *largest; /* of each row */
    double        *sums;    /* of each row two: of exponentials, and the target's logit less the largest one */
    double        *losses;
} fsdpi_gpu_entropy;

/** Sums of a row, each of every eighth column, as fsdpi_exponentials_f32() has them. */
enum { FSDPI_GPU_LANES = 8 };

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

/** Stores integers of the host, which travel in the arguments of a kernel, 768 at a time: they may be reused at once. */
int fsdpi_gpu_store_words(int32_t *to, const int32_t *words, size_t n, fsdpi_gpu_stream stream);

/**
 * out[i] = the row of word i: one read and one write of each element. Rows of words that other ranks have are 0, and those of words that
 * are in no vocabulary NaN.
 */
int fsdpi_gpu_embed(const fsdpi_gpu_lookup *lookup, const void *table, void *out, fsdpi_gpu_stream stream);

/** BYTES of scratch memory, aligned to 8, that this needs for so many rows. */
size_t fsdpi_gpu_embed_scratch(size_t rows);

/**
 * Adds row i of `d_out` to the row of word i, in the order of rows, in f32 or f64: `d_out` is read once, and each row of the table that is
 * met is read and written once. Before that each word is compared with those around it, up to the next one that is equal: rows^2
 * comparisons at most. Words that this rank does not have are passed over.
 * @return also hipErrorInvalidValue: another type
 */
int fsdpi_gpu_embed_backward(const fsdpi_gpu_lookup *lookup, const void *d_out, void *d_table, void *scratch,
                             fsdpi_gpu_stream stream);

/**
 * Cross-entropy in three steps, between which ranks join what they have found. Logits are read three times and written twice.
 *   - the largest logit of each row, -infinity where this rank has no column
 *   - logits become exp(logit - largest), and `sums` what they come to: in f32 with the bits of fsdpi_exponentials_f32(); in f64 by the
 *     device's own function
 *   - they become gradients, and losses: 0 for rows without a target, NaN where it is in no vocabulary
 * @return also hipErrorInvalidValue: another type than f32 and f64
 */
int fsdpi_gpu_entropy_largest(const fsdpi_gpu_entropy *entropy, fsdpi_gpu_stream stream);
int fsdpi_gpu_entropy_exponentials(const fsdpi_gpu_entropy *entropy, fsdpi_gpu_stream stream);
int fsdpi_gpu_entropy_gradients(const fsdpi_gpu_entropy *entropy, fsdpi_gpu_stream stream);

FSDP_EXTERN_C_END

#endif
