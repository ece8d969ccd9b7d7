#include "lib/record/process.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "lib/base/control_groups.h"

/* ---- files and texts, as a signal handler may have them ------------------------------------------------------------ */

/* The beginning of a file, as a text. False: it cannot be read. */
static bool read_text(const char *path, char *text, size_t size)
{
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    size_t    have = 0;
    ssize_t   n    = file >= 0 ? 1 : 0;

    while (n > 0 && have < size - 1) {
        n = read(file, text + have, size - 1 - have);
        have += n > 0 ? (size_t)n : 0;
    }
    if (file >= 0) {
        (void)close(file);
    }
    text[have] = '\0';
    return have > 0;
}

static uint64_t number_at(const char *text)
{
    uint64_t n = 0;

    for (; *text >= '0' && *text <= '9'; text++) {
        n = 10 * n + (uint64_t)(*text - '0');
    }
    return n;
}

char *fsdpi_append(char *at, const char *end, const char *text)
{
    while (at < end && *text != '\0') {
        *at++ = *text++;
    }
    *at = '\0';
    return at;
}

char *fsdpi_append_number(char *at, const char *end, uint64_t number)
{
    char  digits[24];
    char *first = digits + sizeof digits - 1;

    *first = '\0';
    do {
        *--first = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    return fsdpi_append(at, end, first);
}

/* ---- processes ------------------------------------------------------------------------------------------------------- */

/* "PID (NAME) STATE ..."; a name may hold anything, so what counts is behind the last parenthesis. */
fsdpi_process fsdpi_process_look(int32_t pid)
{
    enum { STARTED = 19 }; /* fields behind the state */
    char          path[64], line[1024];
    const char   *end     = path + sizeof path - 1;
    fsdpi_process process = {0};

    (void)fsdpi_append(fsdpi_append_number(fsdpi_append(path, end, "/proc/"), end, (uint64_t)pid), end, "/stat");
    const char *at = pid > 0 && read_text(path, line, sizeof line) ? strrchr(line, ')') : NULL;
    if (at == NULL || at[1] != ' ') {
        return process;
    }
    at += 2;
    process.state = *at;
    for (int i = 0; i < STARTED && at != NULL; i++) {
        at = strchr(at, ' ');
        at = at != NULL ? at + 1 : NULL;
    }
    process.started = at != NULL ? number_at(at) : 0;
    return process;
}

char fsdpi_process_state(int32_t pid, uint64_t started)
{
    const fsdpi_process process = fsdpi_process_look(pid);

    return process.started == started && process.state != 'Z' && process.state != 'X' ? process.state : '\0';
}

/* ---- control groups -------------------------------------------------------------------------------------------------- */

/* A line of a file of the group. */
static int64_t read_kills(const char *group, const char *name)
{
    static const char word[] = "oom_kill ";
    char              path[FSDPI_GROUP_ROOM], text[1024];
    const char       *end = path + sizeof path - 1;

    (void)fsdpi_append(fsdpi_append(path, end, group), end, name);
    const char *at = read_text(path, text, sizeof text) ? text : NULL;
    while (at != NULL && strncmp(at, word, sizeof word - 1) != 0) {
        at = strchr(at, '\n');
        at = at != NULL ? at + 1 : NULL;
    }
    return at != NULL ? (int64_t)number_at(at + sizeof word - 1) : -1;
}

/* Version 2 counts in memory.events, version 1 in memory.oom_control. */
int64_t fsdpi_process_oom_kills(const char *group)
{
    if (group[0] == '\0') {
        return -1;
    }
    const int64_t kills = read_kills(group, "/memory.events");
    return kills >= 0 ? kills : read_kills(group, "/memory.oom_control");
}

typedef struct wanted {
    char  *group;
    size_t size;
} wanted;

/* The innermost group that counts. */
static void take_group(const char *folder, bool is_version_2, void *context)
{
    const wanted *w = context;

    (void)is_version_2;
    if (w->group[0] == '\0' && strlen(folder) < w->size && fsdpi_process_oom_kills(folder) >= 0) {
        (void)snprintf(w->group, w->size, "%s", folder);
    }
}

void fsdpi_process_group(char *group, size_t size)
{
    wanted w = {group, size};

    group[0] = '\0';
    fsdpi_control_groups_walk("", "memory", take_group, &w);
}
