#include "lib/device/gpu_runtime.h"

#include "lib/base/error.h"

/* Launches on the device of `gpu`, and returns from the calling function. */
#define LAUNCH(gpu, what, call)                                                                                        \
    do {                                                                                                               \
        int before_;                                                                                                   \
        FSDP_TRY(fsdpi_gpu_enter(gpu, &before_));                                                                      \
        const hipError_t error_ = (hipError_t)(call);                                                                  \
        fsdpi_gpu_leave(gpu, before_);                                                                                 \
        return error_ == hipSuccess ? FSDP_OK : fsdpi_gpu_fail(gpu, what, error_);                                     \
    } while (0)

static fsdp_status cast(fsdpi_gpu_device *gpu, void *out, fsdp_dtype out_dtype, const void *in, fsdp_dtype in_dtype,
                        size_t count, fsdpi_gpu_stream stream)
{
    LAUNCH(gpu, "the kernel of a cast", fsdpi_gpu_cast(out, out_dtype, in, in_dtype, count, stream));
}

static fsdp_status accumulate(fsdpi_gpu_device *gpu, float *sum, bool fresh, const void *x, fsdp_dtype dtype,
                              double factor, size_t count, fsdpi_gpu_stream stream)
{
    LAUNCH(gpu, "the kernel that adds up", fsdpi_gpu_accumulate(sum, fresh, x, dtype, factor, count, stream));
}

static fsdp_status int8_pack(fsdpi_gpu_device *gpu, const float *x, size_t begin, size_t count, size_t n, size_t block,
                             void *packed, fsdpi_gpu_stream stream)
{
    LAUNCH(gpu, "the kernel that packs 8 bit integers", fsdpi_gpu_int8_pack(x, begin, count, n, block, packed, stream));
}

static fsdp_status int8_unpack(fsdpi_gpu_device *gpu, const void *packed, size_t n, size_t block, void *x,
                               fsdp_dtype dtype, fsdpi_gpu_stream stream)
{
    LAUNCH(gpu, "the kernel that unpacks 8 bit integers", fsdpi_gpu_int8_unpack(packed, n, block, x, dtype, stream));
}

static fsdp_status scale(fsdpi_gpu_device *gpu, float *x, double factor, size_t count, fsdpi_gpu_stream stream)
{
    LAUNCH(gpu, "the kernel that scales", fsdpi_gpu_scale(x, factor, count, FSDP_F32, stream));
}

static fsdp_status clamp(fsdpi_gpu_device *gpu, float *x, double limit, size_t count, fsdpi_gpu_stream stream)
{
    LAUNCH(gpu, "the kernel that clips", fsdpi_gpu_clamp(x, limit, count, FSDP_F32, stream));
}

static fsdp_status sum_squares(fsdpi_gpu_device *gpu, fsdpi_exact_sum *sum, const float *x, size_t count, void *scratch,
                               fsdpi_gpu_stream stream)
{
    LAUNCH(gpu, "the kernel of a norm", fsdpi_gpu_sum_squares(sum, x, count, FSDP_F32, scratch, stream));
}

static fsdp_status absolute_maximum(fsdpi_gpu_device *gpu, double *most, const float *x, size_t count, void *scratch,
                                    fsdpi_gpu_stream stream)
{
    LAUNCH(gpu, "the kernel of a norm", fsdpi_gpu_absolute_maximum(most, x, count, FSDP_F32, scratch, stream));
}

static fsdp_status adam(fsdpi_gpu_device *gpu, float *w, const float *g, float *m, float *v, size_t count,
                        const fsdpi_adam *c, fsdpi_gpu_stream stream)
{
    LAUNCH(gpu, "the kernel of Adam", fsdpi_gpu_adam(w, g, m, v, count, c, stream));
}

static fsdp_status adamw(fsdpi_gpu_device *gpu, float *w, const float *g, float *m, float *v, size_t count,
                         const fsdpi_adam *c, fsdpi_gpu_stream stream)
{
    LAUNCH(gpu, "the kernel of AdamW", fsdpi_gpu_adamw(w, g, m, v, count, c, stream));
}

static fsdp_status lion(fsdpi_gpu_device *gpu, float *w, const float *g, float *m, size_t count, const fsdpi_lion *c,
                        fsdpi_gpu_stream stream)
{
    LAUNCH(gpu, "the kernel of Lion", fsdpi_gpu_lion(w, g, m, count, c, stream));
}

static fsdp_status sgd(fsdpi_gpu_device *gpu, float *w, const float *g, float *b, size_t count, const fsdpi_sgd *c,
                       fsdpi_gpu_stream stream)
{
    LAUNCH(gpu, "the kernel of SGD", fsdpi_gpu_sgd(w, g, b, count, c, stream));
}

/* ---- divided vocabularies ------------------------------------------------------------------------------------------ */

static fsdp_status store_words(fsdpi_gpu_device *gpu, int32_t *to, const int32_t *words, size_t n,
                               fsdpi_gpu_stream stream)
{
    LAUNCH(gpu, "the kernel that stores words", fsdpi_gpu_store_words(to, words, n, stream));
}

static fsdp_status embed(fsdpi_gpu_device *gpu, const fsdpi_gpu_lookup *lookup, const void *table, void *out,
                         fsdpi_gpu_stream stream)
{
    LAUNCH(gpu, "the kernel that looks words up", fsdpi_gpu_embed(lookup, table, out, stream));
}

static fsdp_status embed_backward(fsdpi_gpu_device *gpu, const fsdpi_gpu_lookup *lookup, const void *d_out,
                                  void *d_table, void *scratch, fsdpi_gpu_stream stream)
{
    LAUNCH(gpu, "the kernel of a table's gradient", fsdpi_gpu_embed_backward(lookup, d_out, d_table, scratch, stream));
}

static fsdp_status entropy_largest(fsdpi_gpu_device *gpu, const fsdpi_gpu_entropy *entropy, fsdpi_gpu_stream stream)
{
    LAUNCH(gpu, "the kernel that finds the largest logits", fsdpi_gpu_entropy_largest(entropy, stream));
}

static fsdp_status entropy_exponentials(fsdpi_gpu_device *gpu, const fsdpi_gpu_entropy *entropy,
                                        fsdpi_gpu_stream stream)
{
    LAUNCH(gpu, "the kernel of exponentials", fsdpi_gpu_entropy_exponentials(entropy, stream));
}

static fsdp_status entropy_gradients(fsdpi_gpu_device *gpu, const fsdpi_gpu_entropy *entropy, fsdpi_gpu_stream stream)
{
    LAUNCH(gpu, "the kernel of the gradients of logits", fsdpi_gpu_entropy_gradients(entropy, stream));
}

const fsdpi_gpu_compute fsdpi_gpu_compute_ops = {
    .cast             = cast,
    .accumulate       = accumulate,
    .int8_pack        = int8_pack,
    .int8_unpack      = int8_unpack,
    .scale            = scale,
    .clamp            = clamp,
    .sum_squares      = sum_squares,
    .absolute_maximum = absolute_maximum,
    .norm_scratch     = fsdpi_gpu_norm_scratch,
    .adam             = adam,
    .adamw            = adamw,
    .lion             = lion,
    .sgd              = sgd,

    .store_words          = store_words,
    .embed                = embed,
    .embed_scratch        = fsdpi_gpu_embed_scratch,
    .embed_backward       = embed_backward,
    .entropy_largest      = entropy_largest,
    .entropy_exponentials = entropy_exponentials,
    .entropy_gradients    = entropy_gradients,
};
