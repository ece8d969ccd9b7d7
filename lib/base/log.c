#include "lib/base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/base/core.h"
#include "lib/base/setting.h"

enum { FSDPI_LOG_BYTES = 1400 };

static const char *const LEVEL_NAMES[] = {"off", "error", "warning", "info", "debug"};

/* Of the context that this thread is opening or closing: takes what is said where that does not exist. */
static _Thread_local const fsdp_config *opening;

const fsdp_config *fsdpi_log_open(const fsdp_config *config)
{
    const fsdp_config *before = opening;

    opening = config;
    return before;
}

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
    return ctx != NULL       ? fsdpi_const_core_of(ctx)->config.log_level
           : opening != NULL ? opening->log_level
                             : level_of_environment();
}

/* In one write: some C libraries cut what fprintf() sends to stderr into pieces, and messages of other ranks come between. */
static void print(const char *level, int rank, const char *text)
{
    char line[FSDPI_LOG_BYTES + 64];

    if (rank >= 0) {
        (void)snprintf(line, sizeof line, "libfsdp: %s: [rank %d] %s\n", level, rank, text);
    } else {
        (void)snprintf(line, sizeof line, "libfsdp: %s: %s\n", level, text);
    }
    (void)fputs(line, stderr);
}

void fsdpi_log(const fsdp_context *ctx, fsdp_log_level level, const char *format, ...)
{
    const fsdp_config *config = ctx != NULL ? &fsdpi_const_core_of(ctx)->config : opening;
    const int          rank   = ctx != NULL ? fsdpi_const_core_of(ctx)->rank : -1;
    char               text[FSDPI_LOG_BYTES];
    va_list            arguments;

    if ((int)level > level_in_force(ctx)) {
        return;
    }
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (config != NULL && config->log != NULL) {
        config->log(config->log_state, level, rank, text);
    } else {
        print(LEVEL_NAMES[level], rank, text);
    }
}
