#include "fsdp/dtype.h"

#include <string.h>

#include "lib/base/error.h"

size_t fsdp_dtype_size(fsdp_dtype dtype)
{
    switch (dtype) {
#define DTYPE_CASE(name, value, text, bytes)                                                                           \
    case name:                                                                                                         \
        return bytes;
        FSDP_DTYPE_LIST(DTYPE_CASE)
#undef DTYPE_CASE
    }
    return 0;
}

const char *fsdp_dtype_name(fsdp_dtype dtype)
{
    switch (dtype) {
#define DTYPE_CASE(name, value, text, bytes)                                                                           \
    case name:                                                                                                         \
        return text;
        FSDP_DTYPE_LIST(DTYPE_CASE)
#undef DTYPE_CASE
    }
    return "unknown";
}

fsdp_status fsdp_dtype_parse(const char *name, fsdp_dtype *dtype)
{
    if (name == NULL || dtype == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "fsdp_dtype_parse: a pointer is NULL");
    }
    for (int i = 0; i < FSDP_N_DTYPES; i++) {
        if (strcmp(name, fsdp_dtype_name((fsdp_dtype)i)) == 0) {
            *dtype = (fsdp_dtype)i;
            return FSDP_OK;
        }
    }
    return fsdpi_fail(NULL, FSDP_ERR_ARG, "'%s' is no element type; use one of f64 f32 bf16 f16 i64 i32 u8", name);
}

const char *fsdp_redop_name(fsdp_redop op)
{
    switch (op) {
#define REDOP_CASE(name, value, text)                                                                                  \
    case name:                                                                                                         \
        return text;
        FSDP_REDOP_LIST(REDOP_CASE)
#undef REDOP_CASE
    }
    return "unknown";
}

fsdp_status fsdp_redop_parse(const char *name, fsdp_redop *op)
{
    if (name == NULL || op == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "fsdp_redop_parse: a pointer is NULL");
    }
    for (int i = 0; i < FSDP_N_REDOPS; i++) {
        if (strcmp(name, fsdp_redop_name((fsdp_redop)i)) == 0) {
            *op = (fsdp_redop)i;
            return FSDP_OK;
        }
    }
    return fsdpi_fail(NULL, FSDP_ERR_ARG, "'%s' is no reduction; use one of sum avg min max prod", name);
}
