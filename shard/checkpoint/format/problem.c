#include "shard/checkpoint/format/problem.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "shard/checkpoint/format/utf8.h"

/* A file chooses its names, and a terminal obeys control characters. A text cut short may end within a character. */
static void make_printable(char *text)
{
    size_t left = strlen(text);

    while (left > 0) {
        const size_t length = fsdpi_utf8_length(text, left);

        if (length == 0 || (length == 1 && ((unsigned char)*text < 0x20 || *text == 0x7f)) ||
            (length == 2 && (unsigned char)text[0] == 0xc2 && (unsigned char)text[1] < 0xa0)) {
            *text = '?';
            text++, left--;
        } else {
            text += length, left -= length;
        }
    }
}

fsdp_status fsdpi_problem_set(fsdpi_problem *problem, fsdp_status status, const char *format, ...)
{
    va_list arguments;

    problem->status = status;
    va_start(arguments, format);
    (void)vsnprintf(problem->text, sizeof problem->text, format, arguments);
    va_end(arguments);
    make_printable(problem->text);
    return status;
}

fsdp_status fsdpi_problem_errno(fsdpi_problem *problem, const char *path, const char *doing)
{
    const int code = errno;
    char      text[128];

    return fsdpi_problem_set(problem, code == ENOMEM ? FSDP_ERR_MEMORY : FSDP_ERR_IO, "%s: cannot %s: %s", path, doing,
                             strerror_r(code, text, sizeof text));
}

fsdp_status fsdpi_problem_memory(fsdpi_problem *problem, const char *path, size_t bytes)
{
    return fsdpi_problem_set(problem, FSDP_ERR_MEMORY, "%s: no memory for %zu bytes", path, bytes);
}
