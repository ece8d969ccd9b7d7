/**
 * @file
 * Element types and reductions.
 *
 * bf16 is the upper half of an IEEE 754 binary32, f16 is IEEE 754 binary16. Both are accumulated in f32 and rounded to
 * nearest even once. f32 and f64 are accumulated in their own precision, integers modulo their width.
 */
#ifndef FSDP_DTYPE_H
#define FSDP_DTYPE_H

#include <stddef.h>

#include "fsdp/export.h"
#include "fsdp/status.h"

/** The one list of element types: name, value, text, BYTES. */
#define FSDP_DTYPE_LIST(X)                                                                                             \
    X(FSDP_F64, 0, "f64", 8)                                                                                           \
    X(FSDP_F32, 1, "f32", 4)                                                                                           \
    X(FSDP_BF16, 2, "bf16", 2)                                                                                         \
    X(FSDP_F16, 3, "f16", 2)                                                                                           \
    X(FSDP_I64, 4, "i64", 8)                                                                                           \
    X(FSDP_I32, 5, "i32", 4)                                                                                           \
    X(FSDP_U8, 6, "u8", 1)

#define FSDP_DTYPE_ENUMERATOR(name, value, text, bytes) name = (value),
typedef enum fsdp_dtype { FSDP_DTYPE_LIST(FSDP_DTYPE_ENUMERATOR) } fsdp_dtype;
#undef FSDP_DTYPE_ENUMERATOR
#define FSDP_N_DTYPES 7

/**
 * The one list of reductions: name, value, text. FSDP_AVG is the sum divided by the number of ranks in the precision of
 * accumulation (integers truncate towards zero). FSDP_MIN and FSDP_MAX yield NaN where any operand is NaN.
 */
#define FSDP_REDOP_LIST(X)                                                                                             \
    X(FSDP_SUM, 0, "sum")                                                                                              \
    X(FSDP_AVG, 1, "avg")                                                                                              \
    X(FSDP_MIN, 2, "min")                                                                                              \
    X(FSDP_MAX, 3, "max")                                                                                              \
    X(FSDP_PROD, 4, "prod")

#define FSDP_REDOP_ENUMERATOR(name, value, text) name = (value),
typedef enum fsdp_redop { FSDP_REDOP_LIST(FSDP_REDOP_ENUMERATOR) } fsdp_redop;
#undef FSDP_REDOP_ENUMERATOR
#define FSDP_N_REDOPS 5

FSDP_EXTERN_C_BEGIN

/** BYTES of one element; 0 for a value that is no element type. Local. */
FSDP_API size_t fsdp_dtype_size(fsdp_dtype dtype);

/** "f32" and so on; "unknown" for a value that is no element type. Local; the text is static. */
FSDP_API const char *fsdp_dtype_name(fsdp_dtype dtype);

/**
 * The element type of a name as fsdp_dtype_name() gives it. Local.
 *
 * @return FSDP_OK; FSDP_ERR_ARG if the name is none (fsdp_last_error(NULL) lists those known), `dtype` untouched.
 */
FSDP_API fsdp_status fsdp_dtype_parse(const char *name, fsdp_dtype *dtype);

/** "sum" and so on; "unknown" for a value that is no reduction. Local; the text is static. */
FSDP_API const char *fsdp_redop_name(fsdp_redop op);

/**
 * The reduction of a name as fsdp_redop_name() gives it. Local.
 *
 * @return FSDP_OK; FSDP_ERR_ARG if the name is none (fsdp_last_error(NULL) lists those known), `op` untouched.
 */
FSDP_API fsdp_status fsdp_redop_parse(const char *name, fsdp_redop *op);

FSDP_EXTERN_C_END

#endif
