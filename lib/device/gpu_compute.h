/**
 * @file
 * Element-wise work on a GPU: the functions of kernels/gpu.h for the GPU of a context.
 *
 * Each comes behind what is in the stream and returns when it is in it: FSDP_OK, or FSDP_ERR_DEVICE with the runtime's own
 * words. Counts are ELEMENTS.
 */
#ifndef FSDPI_GPU_COMPUTE_H
#define FSDPI_GPU_COMPUTE_H

#include <stdbool.h>
#include <stddef.h>

#include "fsdp/status.h"
#include "kernels/gpu.h"

struct fsdpi_gpu_device;

typedef struct fsdpi_gpu_compute {
    fsdp_status (*cast)(struct fsdpi_gpu_device *gpu, void *out, fsdp_dtype out_dtype, const void *in,
                        fsdp_dtype in_dtype, size_t count, fsdpi_gpu_stream stream);
    fsdp_status (*accumulate)(struct fsdpi_gpu_device *gpu, float *sum, bool fresh, const void *x, fsdp_dtype dtype,
                              double factor, size_t count, fsdpi_gpu_stream stream);
    fsdp_status (*scale)(struct fsdpi_gpu_device *gpu, float *x, double factor, size_t count, fsdpi_gpu_stream stream);
    fsdp_status (*clamp)(struct fsdpi_gpu_device *gpu, float *x, double limit, size_t count, fsdpi_gpu_stream stream);

    /** As fsdpi_gpu_int8_pack() and fsdpi_gpu_int8_unpack(). */
    fsdp_status (*int8_pack)(struct fsdpi_gpu_device *gpu, const float *x, size_t begin, size_t count, size_t n,
                             size_t block, void *packed, fsdpi_gpu_stream stream);
    fsdp_status (*int8_unpack)(struct fsdpi_gpu_device *gpu, const void *packed, size_t n, size_t block, void *x,
                               fsdp_dtype dtype, fsdpi_gpu_stream stream);

    /** Onto what `sum` and `most` are, in memory that the GPU can address; `scratch` in its own, of that many BYTES. */
    fsdp_status (*sum_squares)(struct fsdpi_gpu_device *gpu, fsdpi_exact_sum *sum, const float *x, size_t count,
                               void *scratch, fsdpi_gpu_stream stream);
    fsdp_status (*absolute_maximum)(struct fsdpi_gpu_device *gpu, double *most, const float *x, size_t count,
                                    void *scratch, fsdpi_gpu_stream stream);
    size_t (*norm_scratch)(size_t count);

    fsdp_status (*adam)(struct fsdpi_gpu_device *gpu, float *w, const float *g, float *m, float *v, size_t count,
                        const fsdpi_adam *c, fsdpi_gpu_stream stream);
    fsdp_status (*adamw)(struct fsdpi_gpu_device *gpu, float *w, const float *g, float *m, float *v, size_t count,
                         const fsdpi_adam *c, fsdpi_gpu_stream stream);
    fsdp_status (*lion)(struct fsdpi_gpu_device *gpu, float *w, const float *g, float *m, size_t count,
                        const fsdpi_lion *c, fsdpi_gpu_stream stream);
    fsdp_status (*sgd)(struct fsdpi_gpu_device *gpu, float *w, const float *g, float *b, size_t count,
                       const fsdpi_sgd *c, fsdpi_gpu_stream stream);

    /** As the functions of kernels/gpu.h that are called so. */
    fsdp_status (*store_words)(struct fsdpi_gpu_device *gpu, int32_t *to, const int32_t *words, size_t n,
                               fsdpi_gpu_stream stream);
    fsdp_status (*embed)(struct fsdpi_gpu_device *gpu, const fsdpi_gpu_lookup *lookup, const void *table, void *out,
                         fsdpi_gpu_stream stream);
    size_t (*embed_scratch)(size_t rows);
    fsdp_status (*embed_backward)(struct fsdpi_gpu_device *gpu, const fsdpi_gpu_lookup *lookup, const void *d_out,
                                  void *d_table, void *scratch, fsdpi_gpu_stream stream);
    fsdp_status (*entropy_largest)(struct fsdpi_gpu_device *gpu, const fsdpi_gpu_entropy *entropy,
                                   fsdpi_gpu_stream stream);
    fsdp_status (*entropy_exponentials)(struct fsdpi_gpu_device *gpu, const fsdpi_gpu_entropy *entropy,
                                        fsdpi_gpu_stream stream);
    fsdp_status (*entropy_gradients)(struct fsdpi_gpu_device *gpu, const fsdpi_gpu_entropy *entropy,
                                     fsdpi_gpu_stream stream);
} fsdpi_gpu_compute;

extern const fsdpi_gpu_compute fsdpi_gpu_compute_ops;

#endif
