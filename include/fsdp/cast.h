/**
 * @file
 * Conversion between element types: for programs that compute in f32 on views in bf16 or f16.
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
 * Copies elements to another type: rounded once, to nearest even, with overflow to infinity; exact to a wider type. NaN
 * stays NaN, with its sign. Local; allowed while a pass is open. The result is the same with every instruction set.
 *
 * @param[in]  ctx   an open context; its `isa` chooses the kernels
 * @param[out] out   `count` elements of `out_dtype`; does not overlap `in`
 * @param[in]  in    `count` elements of `in_dtype`; both aligned to their element, host memory
 * @param[in]  count ELEMENTS; 0 does nothing
 * @return FSDP_OK; FSDP_ERR_ARG: a NULL pointer, or a type other than f64, f32, bf16 and f16; `out` is untouched.
 */
FSDP_API fsdp_status fsdp_cast(fsdp_context *ctx, void *out, fsdp_dtype out_dtype, const void *in, fsdp_dtype in_dtype,
                               size_t count);

FSDP_EXTERN_C_END

#endif
