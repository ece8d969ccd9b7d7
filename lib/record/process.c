#include "lib/record/process.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/control_groups.h"

/* "PID (NAME) STATE ..."; a name may hold anything, so what counts is behind the last parenthesis. */
fsdpi_process fsdpi_process_look(int32_t pid)
{
    enum { STARTED = 19 }; /* fields behind the state */
    char          path[64], line[1024] = "";
    fsdpi_process process = {0};

    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE      *file = fopen(path, "re");
    const bool read = file != NULL && fgets(line, sizeof line, file) != NULL;
    if (file != NULL) {
        (void)fclose(file);
    }
    const char *at = read ? strrchr(line, ')') : NULL;
    if (at == NULL || at[1] != ' ') {
        return process;
    }
    at += 2;
    process.state = *at;
    for (int i = 0; i < STARTED && at != NULL; i++) {
        at = strchr(at, ' ');
        at = at != NULL ? at + 1 : NULL;
    }
    if (at != NULL) {
        (void)sscanf(at, "%" SCNu64, &process.started);
    }
    return process;
}

char fsdpi_process_state(int32_t pid, uint64_t started)
{
    const fsdpi_process process = fsdpi_process_look(pid);

    return process.started == started && process.state != 'Z' && process.state != 'X' ? process.state : '\0';
}

/* A file of the group, which counts; version 1 has them in memory.oom_control. */
static int64_t read_kills(const char *path)
{
    char    line[128];
    int64_t kills = -1;
    FILE   *file  = fopen(path, "re");

    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        int64_t n;
        if (sscanf(line, "oom_kill %" SCNd64, &n) == 1) {
            kills = n;
        }
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return kills;
}

int64_t fsdpi_process_oom_kills(const char *group)
{
    char path[FSDPI_GROUP_ROOM];

    if (group[0] == '\0') {
        return -1;
    }
    (void)snprintf(path, sizeof path, "%s/memory.events", group);
    const int64_t kills = read_kills(path);
    if (kills >= 0) {
        return kills;
    }
    (void)snprintf(path, sizeof path, "%s/memory.oom_control", group);
    return read_kills(path);
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
