#include "lib/base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/base/core.h"
#include "lib/base/setting.h"

static const char *const LEVEL_NAMES[] = {"off", "error", "warning", "info", "debug"};

/* For messages that belong to no context. */
static int level_of_environment(void)
{
    const fsdpi_setting *row  = &FSDPI_SETTINGS[0];
    const char          *text = getenv(row->variable);
    int64_t              value;

    return (int)(text != NULL && fsdpi_setting_parse(row, text, &value) ? value : fsdpi_setting_fallback(row));
}

static int level_in_force(const fsdp_context *ctx)
{
    return ctx != NULL ? fsdpi_const_core_of(ctx)->config.log_level : level_of_environment();
}

/* In one write: some C libraries cut what fprintf() sends to stderr into pieces, and messages of other ranks come between. */
void fsdpi_log(const fsdp_context *ctx, fsdp_log_level level, const char *format, ...)
{
    char    text[1400], line[sizeof text + 64];
    va_list arguments;

    if ((int)level > level_in_force(ctx)) {
        return;
    }
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (ctx != NULL) {
        (void)snprintf(line, sizeof line, "libfsdp: %s: [rank %d] %s\n", LEVEL_NAMES[level],
                       fsdpi_const_core_of(ctx)->rank, text);
    } else {
        (void)snprintf(line, sizeof line, "libfsdp: %s: %s\n", LEVEL_NAMES[level], text);
    }
    (void)fputs(line, stderr);
}
