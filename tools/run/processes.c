#include "tools/run/processes.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PAUSE_NS = 10 * 1000 * 1000, MOST_PAUSES = 1000 }; /* 10 s: what is in the middle of a disk access goes late */

typedef struct process {
    pid_t pid, parent;
    bool  is_found;
} process;

typedef struct processes {
    process *list;
    size_t   n;
} processes;

static bool read_process(const char *name, process *p)
{
    char  path[64], text[512], state;
    int   parent;
    FILE *file;

    if (!isdigit((unsigned char)name[0]) || strlen(name) > 20) {
        return false;
    }
    (void)snprintf(path, sizeof path, "/proc/%s/stat", name);
    file = fopen(path, "re");
    if (file == NULL) {
        return false;
    }
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    (void)fclose(file);
    const char *rest = strrchr(text, ')');
    if (rest == NULL || sscanf(rest, ") %c %d", &state, &parent) != 2 || state == 'Z' || state == 'X') {
        return false;
    }
    *p = (process){.pid = (pid_t)strtol(name, NULL, 10), .parent = parent};
    return true;
}

static processes list_processes(void)
{
    processes all = {0};
    DIR      *dir = opendir("/proc");

    for (const struct dirent *entry = dir != NULL ? readdir(dir) : NULL; entry != NULL; entry = readdir(dir)) {
        process p;
        if (!read_process(entry->d_name, &p)) {
            continue;
        }
        process *longer = realloc(all.list, (all.n + 1) * sizeof *longer);
        if (longer == NULL) {
            break;
        }
        all.list          = longer;
        all.list[all.n++] = p;
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    return all;
}

static bool is_child_of_found(const processes *all, pid_t parent)
{
    for (size_t i = 0; i < all->n; i++) {
        if (all->list[i].pid == parent) {
            return all->list[i].is_found;
        }
    }
    return false;
}

static void find_descendants(processes *all, pid_t root)
{
    for (bool grown = true; grown;) {
        grown = false;
        for (size_t i = 0; i < all->n; i++) {
            process *p = &all->list[i];
            if (!p->is_found && (p->parent == root || is_child_of_found(all, p->parent))) {
                p->is_found = grown = true;
            }
        }
    }
}

static void rest(void)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};

    (void)nanosleep(&pause, NULL);
}

size_t run_signal_descendants(int signal)
{
    processes all = list_processes();
    size_t    n   = 0;

    find_descendants(&all, getpid());
    for (size_t i = 0; i < all.n; i++) {
        if (all.list[i].is_found) {
            n += kill(all.list[i].pid, signal) == 0;
        }
    }
    free(all.list);
    return n;
}

void run_kill_descendants(void)
{
    for (size_t i = 0; i < MOST_PAUSES && run_signal_descendants(SIGKILL) > 0; i++) {
        rest();
        while (waitpid(-1, NULL, WNOHANG) > 0) {
        }
    }
    while (waitpid(-1, NULL, WNOHANG) > 0) {
    }
}

/* ---- by a word in their environment ---------------------------------------------------------------------------------------- */

static bool has_word(const char *data, size_t bytes, const char *word)
{
    const size_t length = strlen(word) + 1; /* with its NUL */
    const char  *end    = data + bytes;

    for (const char *at = data; at != NULL && at < end;) {
        if ((size_t)(end - at) >= length && memcmp(at, word, length) == 0) {
            return true;
        }
        at = memchr(at, '\0', (size_t)(end - at));
        at = at != NULL ? at + 1 : NULL;
    }
    return false;
}

static bool environment_has(pid_t pid, const char *word)
{
    char      path[64], *data = NULL;
    size_t    bytes = 0;
    ssize_t   n     = 1;
    const int file  = (snprintf(path, sizeof path, "/proc/%d/environ", (int)pid), open(path, O_RDONLY | O_CLOEXEC));

    while (file >= 0 && n > 0) {
        char *longer = realloc(data, bytes + 65536);
        if (longer == NULL) {
            break;
        }
        data = longer;
        n    = read(file, data + bytes, 65536);
        bytes += n > 0 ? (size_t)n : 0;
    }
    if (file >= 0) {
        (void)close(file);
    }
    const bool has = bytes > 0 && has_word(data, bytes, word);
    free(data);
    return has;
}

static size_t kill_those_with(const char *word)
{
    processes all = list_processes();
    size_t    n   = 0;

    for (size_t i = 0; i < all.n; i++) {
        if (all.list[i].pid != getpid() && environment_has(all.list[i].pid, word)) {
            n += kill(all.list[i].pid, SIGKILL) == 0;
        }
    }
    free(all.list);
    return n;
}

size_t run_sweep(const char *id)
{
    char         word[256];
    const size_t n = (snprintf(word, sizeof word, RUN_ID_VARIABLE "=%s", id), kill_those_with(word));

    for (size_t i = 0; i < MOST_PAUSES && n > 0 && kill_those_with(word) > 0; i++) {
        rest();
        while (waitpid(-1, NULL, WNOHANG) > 0) {
        }
    }
    return n;
}
