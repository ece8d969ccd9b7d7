#include "shard/checkpoint/folder/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "lib/base/error.h"
#include "shard/checkpoint/folder/flock_reach.h"
#include "shard/checkpoint/folder/token.h"
#include "shard/checkpoint/format/file_io.h"

#define FILE_NAME ".lock"
#define SETTING   "FSDP_CHECKPOINT_LOCK"

enum { KERNEL_ENOTSUPP = 524 }; /* of Cray DVS */

/*
 * Who holds the lock, as that process has written it. An attempt that fsdp-run has given up may hold it for as long as its host
 * cannot be reached, and can rename nothing any more: the next one goes on without the lock, which its token stands in for.
 */
static fsdp_status pass_abandoned(const char *folder, int lock, fsdpi_problem *problem)
{
    char          holder[256];
    const ssize_t n = pread(lock, holder, sizeof holder - 1, 0);

    holder[n > 0 ? n : 0] = '\0';
    return fsdpi_token_is_older(holder) ? FSDP_OK : fsdpi_owner_refuse(folder, holder, "", problem);
}

static fsdp_status write_holder(const char *path, int lock, fsdpi_problem *problem)
{
    char holder[FSDPI_OWNER_HOLDER_BYTES];

    fsdpi_identity_describe(holder, sizeof holder - 1);
    const size_t n = strlen(holder);
    holder[n]      = '\n';
    if (ftruncate(lock, 0) != 0) {
        return fsdpi_problem_errno(problem, path, "write to");
    }
    return fsdpi_file_write(lock, path, 0, holder, n + 1, problem);
}

static bool is_unsupported(int code)
{
    return code == ENOSYS || code == EOPNOTSUPP || code == ENOLCK || code == KERNEL_ENOTSUPP;
}

/* What flock(2) says where it has not succeeded: an error, or that another lock is needed. */
static fsdp_status no_flock(fsdpi_folder_lock *lock, const char *path, fsdp_checkpoint_lock wish, int code,
                            fsdpi_problem *problem)
{
    char text[128];

    lock->no_flock = code;
    if (wish == FSDP_CHECKPOINT_LOCK_OWNER || (wish == FSDP_CHECKPOINT_LOCK_AUTO && is_unsupported(code))) {
        return FSDP_OK;
    }
    return fsdpi_problem_set(
        problem, FSDP_ERR_IO, "%s: cannot lock: %s; where files cannot be locked, set " SETTING " to %s", path,
        strerror_r(code, text, sizeof text), wish == FSDP_CHECKPOINT_LOCK_FLOCK ? "auto or owner" : "owner");
}

static fsdp_status take(fsdpi_folder_lock *lock, const char *folder, const char *path, const char *job,
                        fsdp_checkpoint_lock wish, fsdpi_problem *problem)
{
    if (flock(lock->fd, LOCK_EX | LOCK_NB) == 0) {
        FSDP_TRY(write_holder(path, lock->fd, problem));
    } else if (errno == EWOULDBLOCK) {
        FSDP_TRY(pass_abandoned(folder, lock->fd, problem));
    } else {
        FSDP_TRY(no_flock(lock, path, wish, errno, problem));
    }
    if (wish == FSDP_CHECKPOINT_LOCK_OWNER || lock->no_flock != 0 ||
        (wish == FSDP_CHECKPOINT_LOCK_AUTO && fsdpi_flock_is_per_host(folder))) {
        return fsdpi_owner_take(&lock->owner, folder, job, lock->fd, FSDPI_OWNER_TOUCH_MS, problem);
    }
    return fsdpi_owner_look(folder, job, lock->fd, problem);
}

fsdp_status fsdpi_folder_lock_take(fsdpi_folder_lock *lock, const char *folder, const char *job,
                                   fsdp_checkpoint_lock wish, fsdpi_problem *problem)
{
    char path[FSDPI_FOLDER_PATH_BYTES];

    *lock = (fsdpi_folder_lock){.fd = -1};
    if (wish == FSDP_CHECKPOINT_LOCK_NONE) {
        return FSDP_OK;
    }
    fsdpi_path_join(path, folder, FILE_NAME);
    lock->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (lock->fd < 0) {
        return fsdpi_problem_errno(problem, path, "create");
    }
    const fsdp_status status = take(lock, folder, path, job, wish, problem);
    if (status != FSDP_OK) {
        (void)close(lock->fd);
        lock->fd = -1;
        return status;
    }
    lock->alone = true;
    return FSDP_OK;
}

void fsdpi_folder_lock_release(fsdpi_folder_lock *lock)
{
    fsdpi_owner_release(&lock->owner);
    if (lock->fd >= 0) {
        (void)flock(lock->fd, LOCK_UN); /* processes that fork() has made may have it open too */
    }
    fsdpi_folder_lock_forget(lock);
}

void fsdpi_folder_lock_forget(fsdpi_folder_lock *lock)
{
    if (lock->fd >= 0) {
        (void)close(lock->fd);
    }
    lock->fd    = -1;
    lock->alone = false;
}
