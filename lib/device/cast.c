#include "fsdp/cast.h"

#include <stdbool.h>

#include "lib/base/core.h"
#include "lib/base/error.h"

static bool is_float(fsdp_dtype dtype)
{
    return dtype == FSDP_F64 || dtype == FSDP_F32 || dtype == FSDP_BF16 || dtype == FSDP_F16;
}

fsdp_status fsdp_cast(fsdp_context *ctx, void *out, fsdp_dtype out_dtype, const void *in, fsdp_dtype in_dtype,
                      size_t count)
{
    if (ctx == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "fsdp_cast: the context is NULL; pass one from fsdp_init");
    }
    if (!is_float(out_dtype) || !is_float(in_dtype)) {
        return fsdpi_fail(ctx, FSDP_ERR_ARG, "fsdp_cast: from %s to %s; both must be one of f64, f32, bf16 and f16",
                          fsdp_dtype_name(in_dtype), fsdp_dtype_name(out_dtype));
    }
    if (count == 0) {
        return FSDP_OK;
    }
    if (out == NULL || in == NULL) {
        return fsdpi_fail(ctx, FSDP_ERR_ARG, "fsdp_cast: %s is NULL, and there are %zu elements to cast",
                          out == NULL ? "out" : "in", count);
    }
    fsdpi_core_of(ctx)->kernels->cast(out, out_dtype, in, in_dtype, count);
    return FSDP_OK;
}
