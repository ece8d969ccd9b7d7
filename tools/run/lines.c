#include "tools/run/lines.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void run_say(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    (void)fputs("fsdp-run: ", stdout);
    (void)vprintf(format, arguments);
    (void)putchar('\n');
    (void)fflush(stdout);
    va_end(arguments);
}

int run_fail(int status, const char *what, const char *why)
{
    (void)fflush(stdout);
    (void)fprintf(stderr, "fsdp-run: %s: %s\n", what, why);
    return status;
}

char *run_list_nodes(run_node *const *nodes, size_t n)
{
    char *text = malloc(n * (RUN_NAME_BYTES + 1) + 8), *at = text;

    for (size_t i = 0; text != NULL && i < n; i++) {
        at += sprintf(at, "%s%s", i > 0 ? "," : "", nodes[i]->name);
    }
    return text;
}
