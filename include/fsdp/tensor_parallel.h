/**
 * @file
 * Tensor parallelism: what the ranks of an axis exchange so that layers can be divided over them.
 *
 * `tp` is the context of ranks that hold the parts of the same layers, as fsdp_mesh_context() opens it (fsdp/mesh.h). Matrix
 * products stay the program's. A pair of layers is divided as in Megatron-LM (Shoeybi et al., 2019): the first matrix by its
 * outputs, the second one by its inputs, so that what is between them stays on its rank. That is a region, with an exchange at
 * either end:
 *
 *     fsdp_tp_begin(tp, &a, x, x_whole);   ... first product, activation function, second product ...   fsdp_tp_end(tp, &a, partial, y);
 *
 * The backward pass goes through it the other way round, with the same two functions: the gradient of y is what begins it, and
 * what the ranks have of the gradient of x is what ends it.
 *
 *     fsdp_tp_begin(tp, &a, dy, dy_whole);   ... gradients of both products ...   fsdp_tp_end(tp, &a, dx_partial, dx);
 *
 * Outside of regions either every rank has all rows of the activations, or each has a part of them (sequence parallelism,
 * Korthikanti et al., 2022), which takes as many bytes and divides the memory of the activations and the work between regions.
 *
 * The vocabulary of an embedding and of the output layer is divided by fsdp_tp_part(); fsdp_tp_embed() is the one, and
 * fsdp_tp_cross_entropy() the loss of the other, whose logits are never gathered.
 *
 * On GPUs: if `tp` uses one (fsdp/device.h), the arrays of a call may be in its memory, all of them, and on all ranks where the call is
 * collective. Such a call comes behind what is in the stream of `tp` and returns when its work is in the stream; the host waits for no
 * more than its peers' calls. Sums, rows and gradients have the bits that they have on the host, but for what fsdp_tp_cross_entropy() says.
 * Words and targets may be in host memory even then, which is checked, and read before the call returns: they travel in the arguments of
 * kernels, 768 in each. Or they are on the GPU too; then the host does not look at them, and what is in no vocabulary becomes NaN.
 * What kernels need of scratch memory stays with the context, as large as its largest call has asked for, and counts as
 * FSDP_MEMORY_STAGING: of each row 4 bytes for a word of the host, 8 for fsdp_tp_embed_backward(), 88 for fsdp_tp_cross_entropy().
 * Errors besides: FSDP_ERR_ARG if an array is on the GPU and another one is not, or is on another GPU; FSDP_ERR_UNSUPPORTED if `tp` uses
 * no GPU; FSDP_ERR_MEMORY; FSDP_ERR_DEVICE, in the runtime's own words, with outputs undefined.
 *
 * Collective means over `tp`. Wrong arguments are the same error on every rank, with nothing written, and the context is still
 * good; where it is said that a function is local, only this rank is told. FSDP_ERR_MPI, FSDP_ERR_TIMEOUT: the context can only be
 * finalized.
 */
#ifndef FSDP_TENSOR_PARALLEL_H
#define FSDP_TENSOR_PARALLEL_H

#include <stddef.h>
#include <stdint.h>

#include "fsdp/collectives.h"
#include "fsdp/context.h"
#include "fsdp/dtype.h"
#include "fsdp/export.h"
#include "fsdp/status.h"

/** What a rank has of activations outside of regions. */
typedef enum fsdp_tp_rows {
    FSDP_TP_ALL_ROWS = 0, /**< all of them, each rank the same */
    FSDP_TP_OWN_ROWS = 1  /**< rows / ranks of them, those of rank 0 first: sequence parallelism */
} fsdp_tp_rows;

/** Activations, row-major: the same on all ranks. */
typedef struct fsdp_tp_activations {
    size_t       rows; /**< of all ranks together: samples x positions; with FSDP_TP_OWN_ROWS a multiple of the ranks */
    size_t       width; /**< ELEMENTS of a row */
    fsdp_dtype   dtype; /**< FSDP_F32, FSDP_F64, FSDP_BF16 or FSDP_F16 */
    fsdp_tp_rows outside;
} fsdp_tp_activations;

/** What fsdp_tp_cross_entropy() passes over: a row without a target. */
#define FSDP_TP_NO_TARGET (-1)

FSDP_EXTERN_C_BEGIN

/**
 * This rank's part of `n` outputs, inputs, heads or words: `count` from `begin` on. Parts differ by at most 1, the longer ones
 * first. Local.
 * @return FSDP_OK; FSDP_ERR_ARG if a pointer is NULL.
 */
FSDP_API fsdp_status fsdp_tp_part(const fsdp_context *tp, size_t n, size_t *begin, size_t *count);

/**
 * Into a region: all rows, on every rank. With FSDP_TP_OWN_ROWS an allgather, collective; with FSDP_TP_ALL_ROWS they are there already:
 * local, and a copy unless `in` is `out`, on a GPU to memory that does not overlap. Blocking.
 *
 * @param[in]  in   what this rank has outside; with FSDP_TP_OWN_ROWS it may be the place of these rows in `out`
 * @param[out] out  rows x width
 * @return FSDP_OK; FSDP_ERR_ARG: NULL where there is something, a type or `outside` that is none of these, rows that the ranks do not divide, a
 *         size in bytes that overflows; FSDP_ERR_MISMATCH.
 */
FSDP_API fsdp_status fsdp_tp_begin(fsdp_context *tp, const fsdp_tp_activations *activations, const void *in, void *out);

/** As fsdp_tp_begin(), nonblocking: `request` ends with fsdp_wait(), and is NULL where nothing is exchanged. */
FSDP_API fsdp_status fsdp_tp_ibegin(fsdp_context *tp, const fsdp_tp_activations *activations, const void *in, void *out,
                                    fsdp_request **request);

/**
 * Out of a region: the sum over all ranks, in the library's one order of reduction. With FSDP_TP_ALL_ROWS an allreduce, with FSDP_TP_OWN_ROWS a
 * reduce-scatter. Collective. Blocking.
 *
 * @param[in]  partial  rows x width: this rank's terms of the sum
 * @param[out] out      what this rank has outside; with FSDP_TP_ALL_ROWS it may be `partial`, with FSDP_TP_OWN_ROWS the place of these
 *                      rows in it
 * @return as for fsdp_tp_begin()
 */
FSDP_API fsdp_status fsdp_tp_end(fsdp_context *tp, const fsdp_tp_activations *activations, const void *partial,
                                 void *out);

/** As fsdp_tp_end(), nonblocking: `request` ends with fsdp_wait(). */
FSDP_API fsdp_status fsdp_tp_iend(fsdp_context *tp, const fsdp_tp_activations *activations, const void *partial,
                                  void *out, fsdp_request **request);

/**
 * Looks words up in this rank's part of a table: rows of words that other ranks have are 0, so that fsdp_tp_end() makes them whole.
 * Local.
 *
 * @param[in]  activations  `rows` words and the `width` of the table; `outside` does not matter
 * @param[in]  words        `rows`, each 0 to vocabulary - 1; the same on all ranks
 * @param[in]  vocabulary   rows of the whole table, of which this rank has those of fsdp_tp_part()
 * @param[in]  table        this rank's part
 * @param[out] out          rows x width
 * @return FSDP_OK; FSDP_ERR_ARG: as for fsdp_tp_begin(), and for a word that is not in the vocabulary (names both). Words on a GPU are not
 *         looked at: the row of such a one is NaN on every rank.
 */
FSDP_API fsdp_status fsdp_tp_embed(fsdp_context *tp, const fsdp_tp_activations *activations, const int32_t *words,
                                   size_t vocabulary, const void *table, void *out);

/**
 * The gradient of fsdp_tp_embed(): adds the rows of `d_out` to those of this rank's words, in the order of rows. Local. A GPU does so
 * without atomic operations: it compares each word with those around it, up to the next one that is equal (rows^2 comparisons at most, and
 * far fewer where words recur), and reads `d_out` once. Words on a GPU that are in no vocabulary are passed over.
 *
 * @param[in]     d_out    rows x width, whole: as fsdp_tp_begin() makes it
 * @param[in,out] d_table  this rank's part, FSDP_F32 or FSDP_F64, as `activations` says; other types are FSDP_ERR_UNSUPPORTED
 */
FSDP_API fsdp_status fsdp_tp_embed_backward(fsdp_context *tp, const fsdp_tp_activations *activations,
                                            const int32_t *words, size_t vocabulary, const void *d_out, void *d_table);

/**
 * Cross-entropy of logits whose columns are divided, and its gradient: losses[i] = log(sum over v of exp(logits[i][v])) -
 * logits[i][targets[i]]. Two short allreduces, of `rows` and 2 x `rows` f64. Collective. Blocking. On the host it holds
 * 3 x rows f64 of bookkeeping meanwhile.
 *
 * Sums are in f64. Losses have the same bits on all ranks, and in every run; with another number of ranks sums are taken in another order.
 * In f32 exponentials are within 2 units in the last place, and those below 1e-37 count as 0. On a GPU gradients in f32 have the bits
 * that they have on the host; losses, and gradients in f64, as far as the device's own log() and exp() of f64 agree with the C library's.
 * There logits are read three times and written twice, and a target in no vocabulary makes its row and its loss NaN.
 *
 * @param[in]     rows        the same on all ranks; may be 0
 * @param[in]     vocabulary  columns of the whole, of which this rank has those of fsdp_tp_part(); at least 1
 * @param[in]     dtype       FSDP_F32 or FSDP_F64
 * @param[in]     targets     `rows` words, the same on all ranks; FSDP_TP_NO_TARGET: the row has a loss and a gradient of 0
 * @param[in]     scale       what gradients are multiplied by: 1 over the number of targets for the mean
 * @param[in,out] logits      rows x this rank's part of the vocabulary; the gradient takes its place
 * @param[out]    losses      `rows`, where `logits` are
 * @return FSDP_OK; FSDP_ERR_ARG: NULL where there is something, no vocabulary, a target that is not in it (names both), a scale
 *         that is not finite, a size in bytes that overflows; FSDP_ERR_UNSUPPORTED: another type; FSDP_ERR_MISMATCH: ranks differ in rows,
 *         vocabulary, type or scale; FSDP_ERR_MEMORY.
 */
FSDP_API fsdp_status fsdp_tp_cross_entropy(fsdp_context *tp, size_t rows, size_t vocabulary, fsdp_dtype dtype,
                                           const int32_t *targets, double scale, void *logits, double *losses);

FSDP_EXTERN_C_END

#endif
