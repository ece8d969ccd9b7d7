#include "gpt_error.h"

#include <stdarg.h>
#include <stdio.h>

fsdp_status gpt_fail(const fsdp_context *ctx, const char *format, ...)
{
    char    message[2 * GPT_MESSAGE_BYTES];
    va_list arguments;

    if (fsdp_rank(ctx) != 0) {
        return FSDP_ERR_ARG;
    }
    va_start(arguments, format);
    (void)vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    (void)fprintf(stderr, "03_gpt: %s\n", message);
    return FSDP_ERR_ARG;
}

fsdp_status gpt_agree(fsdp_context *ctx, const char *message)
{
    const fsdp_status status = fsdp_agree(ctx, message[0] ? FSDP_ERR_ARG : FSDP_OK, message);

    if (status != FSDP_OK && fsdp_rank(ctx) == 0) {
        (void)fprintf(stderr, "03_gpt: %s\n", fsdp_last_error(ctx));
    }
    return status;
}
