#include "failing_calls.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))

static struct {
    int code, after, left, failed;
} calls[N_FAILING_CALLS];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* threads save too */

void failing_calls_set(failing_call call, int code, int after, int times)
{
    (void)pthread_mutex_lock(&mutex);
    calls[call].code   = code;
    calls[call].after  = after;
    calls[call].left   = times;
    calls[call].failed = 0;
    (void)pthread_mutex_unlock(&mutex);
}

void failing_calls_clear(void)
{
    (void)pthread_mutex_lock(&mutex);
    memset(calls, 0, sizeof calls);
    (void)pthread_mutex_unlock(&mutex);
}

int failing_calls_count(failing_call call)
{
    (void)pthread_mutex_lock(&mutex);
    const int failed = calls[call].failed;
    (void)pthread_mutex_unlock(&mutex);
    return failed;
}

/* Whether this one does, with errno set. */
static bool fails(failing_call call)
{
    bool is = false;

    (void)pthread_mutex_lock(&mutex);
    if (calls[call].code != 0 && calls[call].after-- <= 0 && calls[call].left > 0) {
        calls[call].left--;
        calls[call].failed++;
        errno = calls[call].code;
        is    = true;
    }
    (void)pthread_mutex_unlock(&mutex);
    return is;
}

/* The function of this name behind ours. */
#define REAL(function)                                                                                                 \
    (((union {                                                                                                         \
         void                   *object;                                                                               \
         __typeof__(&(function)) real;                                                                                 \
     }){.object = dlsym(RTLD_NEXT, #function)})                                                                        \
         .real)

EXPORTED int flock(int fd, int operation)
{
    return fails(CALL_FLOCK) ? -1 : REAL(flock)(fd, operation);
}

EXPORTED int open(const char *path, int flags, ...)
{
    va_list arguments;

    va_start(arguments, flags);
    const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    return (flags & O_DIRECT) != 0 && fails(CALL_OPEN_DIRECT) ? -1 : REAL(open)(path, flags, mode);
}

EXPORTED int open64(const char *path, int flags, ...)
{
    va_list arguments;

    va_start(arguments, flags);
    const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    return (flags & O_DIRECT) != 0 && fails(CALL_OPEN_DIRECT) ? -1 : REAL(open64)(path, flags, mode);
}

static bool fails_direct(int fd)
{
    const int flags = fcntl(fd, F_GETFL);

    return flags >= 0 && (flags & O_DIRECT) != 0 && fails(CALL_WRITE_DIRECT);
}

EXPORTED ssize_t pwrite(int fd, const void *bytes, size_t n, off_t offset)
{
    return fails_direct(fd) ? -1 : REAL(pwrite)(fd, bytes, n, offset);
}

EXPORTED ssize_t pwrite64(int fd, const void *bytes, size_t n, off64_t offset)
{
    return fails_direct(fd) ? -1 : REAL(pwrite64)(fd, bytes, n, offset);
}

EXPORTED int fallocate(int fd, int mode, off_t offset, off_t length)
{
    return fails(CALL_FALLOCATE) ? -1 : REAL(fallocate)(fd, mode, offset, length);
}

EXPORTED int fallocate64(int fd, int mode, off64_t offset, off64_t length)
{
    return fails(CALL_FALLOCATE) ? -1 : REAL(fallocate64)(fd, mode, offset, length);
}

EXPORTED int fstatfs(int fd, struct statfs *about)
{
    const int status = REAL(fstatfs)(fd, about);

    if (status == 0) {
        about->f_type = EXT4_SUPER_MAGIC;
    }
    return status;
}

EXPORTED int fsync(int fd)
{
    struct stat about;
    const bool  is_folder = fstat(fd, &about) == 0 && S_ISDIR(about.st_mode);

    return is_folder && fails(CALL_SYNC_FOLDER) ? -1 : REAL(fsync)(fd);
}

EXPORTED int rename(const char *from, const char *to)
{
    if (fails(CALL_RENAME)) {
        return -1;
    }
    const int status = REAL(rename)(from, to);
    return status == 0 && fails(CALL_RENAME_DONE) ? -1 : status;
}

EXPORTED int unlinkat(int fd, const char *path, int flags)
{
    return fails(CALL_UNLINK) ? -1 : REAL(unlinkat)(fd, path, flags);
}
