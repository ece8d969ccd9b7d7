#include "lib/base/options.h"

#include <stdint.h>
#include <string.h>

#include "lib/base/error.h"

enum { MOST_BYTES = 65536 };

static bool is_possible(size_t size)
{
    return size > sizeof(size_t) && size <= MOST_BYTES && size % sizeof(size_t) == 0;
}

/* Of a field that this library does not know: zero, or all ones, as FSDP_UNSET is. */
static bool is_unset(const unsigned char *place, bool unset_is_ones)
{
    uint32_t word;

    memcpy(&word, place, sizeof word);
    return word == 0 || (unset_is_ones && word == UINT32_MAX);
}

static fsdp_status check_tail(fsdp_context *ctx, const char *type, const void *given, size_t size, size_t bytes)
{
    const bool is_config = strcmp(type, "fsdp_config") == 0;

    for (size_t at = bytes; at < size; at += sizeof(uint32_t)) {
        if (!is_unset((const unsigned char *)given + at, is_config)) {
            return fsdpi_fail_together(
                ctx, FSDP_ERR_UNSUPPORTED,
                "%s has %zu bytes, of which this version of the library knows %zu, and the field at byte %zu is set; "
                "use the version that the program was built with, or leave that field as %s_init has set it",
                type, size, bytes, at, type);
        }
    }
    return FSDP_OK;
}

fsdp_status fsdpi_options_take(fsdp_context *ctx, const char *type, const void *given, void *own, size_t bytes)
{
    size_t size;

    if (given == NULL) {
        return FSDP_OK;
    }
    memcpy(&size, given, sizeof size);
    if (!is_possible(size)) {
        return fsdpi_fail_together(
            ctx, FSDP_ERR_ARG,
            "%s.size is %zu, which no version of the library has; call %s_init on it before setting fields", type, size,
            type);
    }
    FSDP_TRY(check_tail(ctx, type, given, size, bytes));
    memcpy(own, given, size < bytes ? size : bytes);
    memcpy(own, &bytes, sizeof bytes);
    return FSDP_OK;
}

void fsdpi_options_give(const void *defaults, size_t bytes, void *options, size_t size)
{
    memset(options, 0, size);
    memcpy(options, defaults, size < bytes ? size : bytes);
    memcpy(options, &size, sizeof size);
}
