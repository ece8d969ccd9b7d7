#include "tools/preload/engine/text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fsdpi_preload_say(const char *format, ...)
{
    char    line[1024];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    (void)fprintf(stderr, "libfsdp_mpi: %s\n", line);
}

bool fsdpi_preload_bytes(const char *text, uint64_t *bytes)
{
    static const char UNITS[] = "KMG";

    char *end;
    errno                         = 0;
    const unsigned long long read = strtoull(text, &end, 10);
    if (errno != 0 || end == text || *text == '-') {
        return false;
    }
    const char *unit  = *end != '\0' ? strchr(UNITS, *end) : NULL;
    const int   shift = unit != NULL ? 10 * (int)(unit - UNITS + 1) : 0;
    if (*(unit != NULL ? end + 1 : end) != '\0' || read > UINT64_MAX >> shift) {
        return false;
    }
    *bytes = (uint64_t)read << shift;
    return true;
}
