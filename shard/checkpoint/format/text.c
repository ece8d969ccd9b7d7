#include "shard/checkpoint/format/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* Not asprintf(), which allocates inside the C library: tools that find leaks could not tell who has called it. */
char *fsdpi_text(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    const int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    char *text = length < 0 ? NULL : malloc((size_t)length + 1);
    if (text != NULL) {
        va_start(arguments, format);
        (void)vsnprintf(text, (size_t)length + 1, format, arguments);
        va_end(arguments);
    }
    return text;
}
