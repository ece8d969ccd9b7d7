/**
 * @file
 * Between element types: what a program does with views in bf16 or f16 that it computes on in f32.
 */
#ifndef FSDP_CAST_H
#define FSDP_CAST_H

#include <stddef.h>

#include "fsdp/context.h"
#include "fsdp/dtype.h"
#include "fsdp/export.h"
#include "fsdp/status.h"

FSDP_EXTERN_C_BEGIN

/**
 * Copies elements as another type: rounded once, to nearest even, overflow to infinity; to a wider type exactly. NaN stays NaN,
 * with its sign. Local: also while a pass is open. The result is the same with every instruction set.
 *
 * @param[in]  ctx   an open context, whose `isa` says which kernels do it
 * @param[out] out   `count` elements of `out_dtype`; does not overlap `in`
 * @param[in]  in    `count` elements of `in_dtype`; both aligned to their element, host memory
 * @param[in]  count ELEMENTS; 0 does nothing
 * @return FSDP_OK; FSDP_ERR_ARG: a NULL pointer, or a type that is none of f64, f32, bf16 and f16. `out` is untouched then.
 */
FSDP_API fsdp_status fsdp_cast(fsdp_context *ctx, void *out, fsdp_dtype out_dtype, const void *in, fsdp_dtype in_dtype,
                               size_t count);

FSDP_EXTERN_C_END

#endif
