/*
 * Preloaded: what befalls this process while it changes files. FAULT_IN is what the names of those files begin with, FAULT_RANK
 * a rank of the job, and FAULT_CALL the how-manyth change (write, sync or rename) of that rank is the first with FAULT:
 *
 *   kill   it does not survive it; of a write, half is done before
 *   full   this and every later write fails: no space left on device
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum fault { NONE, KILL, FULL };

static bool is_rank_with_fault(void)
{
    const char *faulty = getenv("FAULT_RANK"), *rank = getenv("OMPI_COMM_WORLD_RANK");

    if (rank == NULL) {
        rank = getenv("PMI_RANK");
    }
    return faulty != NULL && rank != NULL && strcmp(rank, faulty) == 0;
}

/* The fault of the next change of the file of this name. */
static enum fault next_fault(const char *path)
{
    static atomic_long calls;
    const char        *fault = getenv("FAULT"), *in = getenv("FAULT_IN"), *first = getenv("FAULT_CALL");

    if (fault == NULL || in == NULL || first == NULL || strncmp(path, in, strlen(in)) != 0 || !is_rank_with_fault()) {
        return NONE;
    }
    const long ahead = strtol(first, NULL, 10) - (atomic_fetch_add(&calls, 1) + 1);
    if (strcmp(fault, "kill") == 0) {
        return ahead == 0 ? KILL : NONE;
    }
    return strcmp(fault, "full") == 0 && ahead <= 0 ? FULL : NONE;
}

static enum fault next_fault_of(int fd)
{
    char link[64], path[4096];

    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t n = readlink(link, path, sizeof path - 1);
    if (n < 0) {
        return NONE;
    }
    path[n] = '\0';
    return next_fault(path);
}

static void end_here(void)
{
    (void)kill(getpid(), SIGKILL);
}

typedef ssize_t write_at(int, const void *, size_t, off_t);

static ssize_t write_with_fault(write_at *real, int fd, const void *buf, size_t n, off_t offset)
{
    const enum fault fault = next_fault_of(fd);

    if (fault == KILL) {
        (void)real(fd, buf, n / 2, offset);
        end_here();
    }
    if (fault == FULL) {
        errno = ENOSPC;
        return -1;
    }
    return real(fd, buf, n, offset);
}

ssize_t pwrite(int fd, const void *buf, size_t n, off_t offset)
{
    return write_with_fault((write_at *)dlsym(RTLD_NEXT, "pwrite"), fd, buf, n, offset);
}

ssize_t pwrite64(int fd, const void *buf, size_t n, off64_t offset)
{
    return write_with_fault((write_at *)dlsym(RTLD_NEXT, "pwrite64"), fd, buf, n, offset);
}

int fsync(int fd)
{
    if (next_fault_of(fd) == KILL) {
        end_here();
    }
    return ((int (*)(int))dlsym(RTLD_NEXT, "fsync"))(fd);
}

int rename(const char *old, const char *new)
{
    if (next_fault(old) == KILL) {
        end_here();
    }
    return ((int (*)(const char *, const char *))dlsym(RTLD_NEXT, "rename"))(old, new);
}
