#include "shard/checkpoint/folder/owner.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/error.h"
#include "shard/checkpoint/folder/token.h"
#include "shard/checkpoint/format/file_io.h"

#define FILE_NAME "." FSDPI_OWNER_FILE

/* ---- the file of another program --------------------------------------------------------------------------------- */

fsdp_status fsdpi_owner_refuse(const char *folder, const char *holder, const char *remark, fsdpi_problem *problem)
{
    char      name[FSDPI_OWNER_HOLDER_BYTES];
    const int length = (int)(strcspn(holder, "\n"));

    (void)snprintf(name, sizeof name, "%.*s", length, holder);
    char *more = strstr(name, ", started ");
    more       = more != NULL ? more : strstr(name, ", token ");
    if (more != NULL) {
        *more = '\0';
    }
    return fsdpi_problem_set(problem, FSDP_ERR_STATE,
                             "%s: another program saves checkpoints here (%s%s); end it, or use another folder", folder,
                             name[0] != '\0' ? name : "it has not said which", remark);
}

/* What the file says, "" where it is not there or nothing is in it yet; and when it was touched, or 0. */
static void read_line(const char *path, char *line, time_t *touched)
{
    struct stat about;
    ssize_t     n  = 0;
    const int   fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* this asks the server */

    *touched = 0;
    if (fd >= 0) {
        *touched = fstat(fd, &about) == 0 ? about.st_mtime : 0;
        n        = pread(fd, line, FSDPI_IDENTITY_BYTES - 1, 0);
        (void)close(fd);
    }
    line[n > 0 ? n : 0] = '\0';
}

/* The time by which the folder's file system stamps what is touched. */
static time_t time_there(int clock)
{
    struct stat about;

    return futimens(clock, NULL) == 0 && fstat(clock, &about) == 0 ? about.st_mtime : time(NULL);
}

static fsdp_status refuse_alive(const char *folder, const char *line, long age, fsdpi_problem *problem)
{
    char remark[128];

    (void)snprintf(remark, sizeof remark, ", a sign of life %ld s ago; it counts as gone after %d s", age,
                   FSDPI_OWNER_STALE_S);
    return fsdpi_owner_refuse(folder, line, remark, problem);
}

/* Two programs may find the same file stale: only one renames that file, and who has renamed a newer one puts it back. */
static fsdp_status put_aside(const char *folder, const char *path, const char *job, const char *stale,
                             fsdpi_problem *problem)
{
    char   name[FSDPI_FOLDER_NAME_BYTES], aside[FSDPI_FOLDER_PATH_BYTES], line[FSDPI_IDENTITY_BYTES];
    time_t touched;

    fsdpi_partial_name_make(FSDPI_OWNER_FILE, job, name);
    fsdpi_path_join(aside, folder, name);
    if (rename(path, aside) != 0) {
        return errno == ENOENT ? FSDP_OK : fsdpi_problem_errno(problem, path, "rename");
    }
    read_line(aside, line, &touched);
    const bool is_it = strcmp(line, stale) == 0;
    if (!is_it) {
        (void)link(aside, path);
    }
    (void)unlink(aside);
    return is_it ? FSDP_OK : fsdpi_owner_refuse(folder, line, "", problem);
}

/* Puts away what a program that is gone has left. */
static fsdp_status refuse_or_put_aside(const char *folder, const char *path, const char *job, int clock,
                                       fsdpi_problem *problem)
{
    char   line[FSDPI_IDENTITY_BYTES];
    time_t touched;

    read_line(path, line, &touched);
    const long age = (long)(time_there(clock) - touched);
    if (touched != 0 && !fsdpi_identity_has_ended(line) && !fsdpi_token_is_older(line) && age < FSDPI_OWNER_STALE_S) {
        return refuse_alive(folder, line, age > 0 ? age : 0, problem);
    }
    return put_aside(folder, path, job, line, problem);
}

fsdp_status fsdpi_owner_look(const char *folder, const char *job, int clock, fsdpi_problem *problem)
{
    char path[FSDPI_FOLDER_PATH_BYTES];

    fsdpi_path_join(path, folder, FILE_NAME);
    return access(path, F_OK) != 0 ? FSDP_OK : refuse_or_put_aside(folder, path, job, clock, problem);
}

/* ---- one's own --------------------------------------------------------------------------------------------------- */

/* Touches the file. False: it is there no more, or another program's. */
static bool touch(const fsdpi_owner *owner)
{
    char      line[FSDPI_IDENTITY_BYTES] = "";
    const int fd                         = open(owner->path, O_RDWR | O_CLOEXEC);

    if (fd < 0) {
        return errno != ENOENT; /* any other trouble passes, or the save will say it */
    }
    const ssize_t n  = pread(fd, line, sizeof line - 1, 0);
    const bool    is = n < 0 || strcmp(line, owner->line) == 0;
    if (is) {
        (void)futimens(fd, NULL);
    }
    (void)close(fd);
    return is;
}

static void set_deadline(unsigned ms, struct timespec *deadline)
{
    (void)clock_gettime(CLOCK_MONOTONIC, deadline);
    deadline->tv_sec += (time_t)(ms / 1000);
    deadline->tv_nsec += (long)(ms % 1000) * 1000000;
    if (deadline->tv_nsec >= 1000000000) {
        deadline->tv_sec++;
        deadline->tv_nsec -= 1000000000;
    }
}

static void *keep_touching(void *argument)
{
    fsdpi_owner *owner = argument;

    (void)pthread_mutex_lock(&owner->mutex);
    while (!owner->ends) {
        struct timespec deadline;

        set_deadline(owner->touch_ms, &deadline);
        while (!owner->ends && pthread_cond_timedwait(&owner->wakes, &owner->mutex, &deadline) != ETIMEDOUT) {
        }
        if (!owner->ends) {
            (void)touch(owner); /* what is lost the next save finds */
        }
    }
    (void)pthread_mutex_unlock(&owner->mutex);
    return NULL;
}

/* Signals are for the program's own threads. */
static int create_thread(fsdpi_owner *owner)
{
    sigset_t all, before;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    const int code = pthread_create(&owner->thread, NULL, keep_touching, owner);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return code;
}

static fsdp_status start_thread(fsdpi_owner *owner, fsdpi_problem *problem)
{
    pthread_condattr_t attributes;

    (void)pthread_mutex_init(&owner->mutex, NULL);
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&owner->wakes, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    errno = create_thread(owner);
    if (errno == 0) {
        return FSDP_OK;
    }
    (void)pthread_cond_destroy(&owner->wakes);
    (void)pthread_mutex_destroy(&owner->mutex);
    return fsdpi_problem_errno(problem, owner->path, "start the thread that touches it");
}

/* Makes the file where there is none: `*fd` is -1 where there is. */
static fsdp_status create(const char *path, int *fd, fsdpi_problem *problem)
{
    *fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    return *fd >= 0 || errno == EEXIST ? FSDP_OK : fsdpi_problem_errno(problem, path, "create");
}

static fsdp_status create_or_refuse(const char *folder, const char *path, const char *job, int clock, int *fd,
                                    fsdpi_problem *problem)
{
    FSDP_TRY(create(path, fd, problem));
    if (*fd < 0) {
        FSDP_TRY(refuse_or_put_aside(folder, path, job, clock, problem));
        FSDP_TRY(create(path, fd, problem));
    }
    return *fd >= 0 ? FSDP_OK : fsdpi_owner_refuse(folder, "", "", problem); /* it came in between */
}

fsdp_status fsdpi_owner_take(fsdpi_owner *owner, const char *folder, const char *job, int clock, unsigned touch_ms,
                             fsdpi_problem *problem)
{
    int fd;

    *owner = (fsdpi_owner){.touch_ms = touch_ms};
    fsdpi_path_join(owner->path, folder, FILE_NAME);
    fsdpi_identity_line(job, owner->line);
    fsdp_status status = create_or_refuse(folder, owner->path, job, clock, &fd, problem);
    if (status == FSDP_OK) {
        status = fsdpi_file_write(fd, owner->path, 0, owner->line, strlen(owner->line), problem);
        (void)close(fd);
        status = status == FSDP_OK ? start_thread(owner, problem) : status;
        if (status != FSDP_OK) {
            (void)unlink(owner->path);
        }
    }
    if (status != FSDP_OK) {
        owner->path[0] = '\0';
    }
    return status;
}

fsdp_status fsdpi_owner_check(const fsdpi_owner *owner, fsdpi_problem *problem)
{
    return owner->path[0] == '\0' || touch(owner)
               ? FSDP_OK
               : fsdpi_problem_set(problem, FSDP_ERR_STATE,
                                   "%s: removed or replaced by another program, as one may do that finds it untouched "
                                   "for %d s; nothing is saved: open the folder again",
                                   owner->path, FSDPI_OWNER_STALE_S);
}

void fsdpi_owner_release(fsdpi_owner *owner)
{
    if (owner->path[0] == '\0') {
        return;
    }
    (void)pthread_mutex_lock(&owner->mutex);
    owner->ends = true;
    (void)pthread_cond_signal(&owner->wakes);
    (void)pthread_mutex_unlock(&owner->mutex);
    (void)pthread_join(owner->thread, NULL);
    (void)pthread_cond_destroy(&owner->wakes);
    (void)pthread_mutex_destroy(&owner->mutex);
    if (touch(owner)) {
        (void)unlink(owner->path);
    }
    owner->path[0] = '\0';
}
