#include "lib/log.h"

#include <stdarg.h>
#include <stdio.h>

#include "lib/context.h"
#include "lib/settings.h"

static const char *const LEVEL_NAMES[] = {"off", "error", "warning", "info", "debug"};

static int level_in_force(const fsdp_context *ctx)
{
    return ctx != NULL ? ctx->config.log_level : fsdpi_log_level_of_environment();
}

void fsdpi_log(const fsdp_context *ctx, fsdp_log_level level, const char *format, ...)
{
    char    text[1400];
    va_list arguments;

    if ((int)level > level_in_force(ctx)) {
        return;
    }
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (ctx != NULL) {
        (void)fprintf(stderr, "libfsdp: %s: [rank %d] %s\n", LEVEL_NAMES[level], ctx->rank, text);
    } else {
        (void)fprintf(stderr, "libfsdp: %s: %s\n", LEVEL_NAMES[level], text);
    }
}
