#include "gpu_table.h"

/* cmocka.h wants these before it */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <hip/hip_runtime_api.h>

#include "kernels/gpu.h"
#include "kernels/host/element.h"
#include "kernels/host/exact_sum.h"

enum { STAGES = 2 * FSDPI_GPU_OPERANDS + 2, STAGE_BYTES = 1 << 16, FENCE = 64, FENCE_BYTE = 0xa5 };

/* An array on the device, near the end of an allocation. */
static struct stage {
    unsigned char *memory;
    const void    *host;
    size_t         begin, bytes;
} stages[STAGES];
static size_t n_staged;

/* The same address twice is the same array. NULL stays NULL. */
static void *stage(const void *host, size_t bytes)
{
    unsigned char image[STAGE_BYTES];

    for (size_t i = 0; i < n_staged; i++) {
        if (stages[i].host == host) {
            return stages[i].memory + stages[i].begin;
        }
    }
    if (host == NULL) {
        return NULL;
    }
    assert_in_range(bytes, 0, STAGE_BYTES - FENCE - 16);
    struct stage *one = &stages[n_staged++];
    if (one->memory == NULL) {
        assert_int_equal(hipSuccess, hipMalloc((void **)&one->memory, STAGE_BYTES));
    }
    one->host  = host;
    one->bytes = bytes;
    one->begin = STAGE_BYTES - bytes;
    one->begin -= (one->begin - (uintptr_t)host % 16) % 16;
    memset(image, FENCE_BYTE, sizeof image);
    if (bytes > 0) {
        memcpy(image + one->begin, host, bytes);
    }
    assert_int_equal(hipSuccess, hipMemcpy(one->memory + one->begin - FENCE, image + one->begin - FENCE,
                                           STAGE_BYTES - one->begin + FENCE, hipMemcpyDefault));
    return one->memory + one->begin;
}

static void assert_fence(const unsigned char *fence, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        assert_int_equal(FENCE_BYTE, fence[i]);
    }
}

/* Brings back what has changed, of all arrays: those that were only read may be constants. `error`: of the launch. */
static void finish(int error)
{
    unsigned char image[STAGE_BYTES];

    assert_int_equal(hipSuccess, error);
    assert_int_equal(hipSuccess, hipStreamSynchronize(NULL));
    for (size_t i = 0; i < n_staged; i++) {
        const struct stage *one = &stages[i];

        assert_int_equal(hipSuccess, hipMemcpy(image + one->begin - FENCE, one->memory + one->begin - FENCE,
                                               STAGE_BYTES - one->begin + FENCE, hipMemcpyDefault));
        assert_fence(image + one->begin - FENCE, FENCE);
        assert_fence(image + one->begin + one->bytes, STAGE_BYTES - one->begin - one->bytes);
        if (one->bytes > 0 && memcmp(one->host, image + one->begin, one->bytes) != 0) {
            memcpy((void *)(uintptr_t)one->host, image + one->begin, one->bytes);
        }
    }
    n_staged = 0;
}

static void reduce_into(void *const *out, size_t n_out, const void *const *in, size_t n_in, size_t count,
                        fsdp_dtype dtype, fsdp_redop op, size_t divisor, size_t n_past)
{
    const size_t bytes = count * fsdpi_element_bytes(dtype);
    void        *to[FSDPI_GPU_OPERANDS];
    const void  *from[FSDPI_GPU_OPERANDS];

    if (n_in > FSDPI_GPU_OPERANDS) {
        assert_int_equal(hipErrorInvalidValue,
                         fsdpi_gpu_reduce_into(out, n_out, in, n_in, count, dtype, op, divisor, NULL));
        fsdpi_kernels_scalar.reduce_into(out, n_out, in, n_in, count, dtype, op, divisor, n_past);
        return;
    }
    for (size_t r = 0; r < n_in; r++) {
        from[r] = stage(in[r], bytes);
    }
    for (size_t o = 0; o < n_out; o++) {
        to[o] = stage(out[o], bytes);
    }
    finish(fsdpi_gpu_reduce_into(to, n_out, from, n_in, count, dtype, op, divisor, NULL));
}

static void reduce(void *out, const void *const *in, size_t n_in, size_t count, fsdp_dtype dtype, fsdp_redop op,
                   size_t divisor)
{
    reduce_into(&out, 1, in, n_in, count, dtype, op, divisor, 0);
}

static void copy(void *out, const void *in, size_t bytes)
{
    const fsdpi_gpu_run run = {.to = stage(out, bytes), .from = stage(in, bytes), .bytes = bytes};

    finish(fsdpi_gpu_copy_runs(&run, 1, NULL));
}

static void cast(void *out, fsdp_dtype out_dtype, const void *in, fsdp_dtype in_dtype, size_t count)
{
    const void *from = stage(in, count * fsdpi_element_bytes(in_dtype));
    void       *to   = stage(out, count * fsdpi_element_bytes(out_dtype));

    finish(fsdpi_gpu_cast(to, out_dtype, from, in_dtype, count, NULL));
}

static void scale(void *x, double factor, size_t count, fsdp_dtype dtype)
{
    finish(fsdpi_gpu_scale(stage(x, count * fsdpi_element_bytes(dtype)), factor, count, dtype, NULL));
}

static void clamp(void *x, double limit, size_t count, fsdp_dtype dtype)
{
    finish(fsdpi_gpu_clamp(stage(x, count * fsdpi_element_bytes(dtype)), limit, count, dtype, NULL));
}

static void accumulate(float *sum, bool fresh, const void *x, fsdp_dtype dtype, double factor, size_t count)
{
    finish(fsdpi_gpu_accumulate(stage(sum, count * sizeof(float)), fresh, stage(x, count * fsdpi_element_bytes(dtype)),
                                dtype, factor, count, NULL));
}

/* Where a norm of `count` elements works. */
static void *stage_scratch(size_t count)
{
    _Alignas(16) static unsigned char filler[STAGE_BYTES / 2];

    return stage(filler, fsdpi_gpu_norm_scratch(count));
}

/* The device leaves the carry to the host. */
static void sum_squares(fsdpi_exact_sum *sum, const void *x, size_t count, fsdp_dtype dtype)
{
    fsdpi_exact_sum *to = stage(sum, sizeof *sum);

    finish(fsdpi_gpu_sum_squares(to, stage(x, count * fsdpi_element_bytes(dtype)), count, dtype, stage_scratch(count),
                                 NULL));
    fsdpi_exact_sum_carry(sum);
}

static double absolute_maximum(const void *x, size_t count, fsdp_dtype dtype)
{
    double  result = 0;
    double *to     = stage(&result, sizeof result);

    finish(fsdpi_gpu_absolute_maximum(to, stage(x, count * fsdpi_element_bytes(dtype)), count, dtype,
                                      stage_scratch(count), NULL));
    return result;
}

static void adam(float *w, const float *g, float *m, float *v, size_t count, const fsdpi_adam *c)
{
    const size_t bytes = count * sizeof(float);

    finish(fsdpi_gpu_adam(stage(w, bytes), stage(g, bytes), stage(m, bytes), stage(v, bytes), count, c, NULL));
}

static void adamw(float *w, const float *g, float *m, float *v, size_t count, const fsdpi_adam *c)
{
    const size_t bytes = count * sizeof(float);

    finish(fsdpi_gpu_adamw(stage(w, bytes), stage(g, bytes), stage(m, bytes), stage(v, bytes), count, c, NULL));
}

static void lion(float *w, const float *g, float *m, size_t count, const fsdpi_lion *c)
{
    const size_t bytes = count * sizeof(float);

    finish(fsdpi_gpu_lion(stage(w, bytes), stage(g, bytes), stage(m, bytes), count, c, NULL));
}

static void sgd(float *w, const float *g, float *b, size_t count, const fsdpi_sgd *c)
{
    const size_t bytes = count * sizeof(float);

    finish(fsdpi_gpu_sgd(stage(w, bytes), stage(g, bytes), stage(b, bytes), count, c, NULL));
}

const fsdpi_kernels gpu_table = {
    .name             = "gpu",
    .reduce           = reduce,
    .reduce_into      = reduce_into,
    .copy             = copy,
    .stream           = copy,
    .cast             = cast,
    .scale            = scale,
    .accumulate       = accumulate,
    .sum_squares      = sum_squares,
    .absolute_maximum = absolute_maximum,
    .clamp            = clamp,
    .adam             = adam,
    .adamw            = adamw,
    .lion             = lion,
    .sgd              = sgd,
};
