#include "shard/checkpoint/folder/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "lib/base/error.h"
#include "shard/checkpoint/format/file_io.h"
#include "shard/checkpoint/format/folder.h"

#define LOCK ".lock"

/* Who holds the lock, as that process has written it: for the text of an error only. */
static fsdp_status refuse_locked(const char *folder, int lock, fsdpi_problem *problem)
{
    char          holder[256];
    const ssize_t n = pread(lock, holder, sizeof holder - 1, 0);

    holder[n > 0 ? n : 0]         = '\0';
    holder[strcspn(holder, "\n")] = '\0';
    return fsdpi_problem_set(problem, FSDP_ERR_STATE,
                             "%s: another program saves checkpoints here (%s); end it, or use another folder", folder,
                             holder[0] != '\0' ? holder : "it has not said which");
}

static fsdp_status lock_file(const char *folder, const char *path, int lock, fsdpi_problem *problem)
{
    char host[128] = "", holder[256];

    if (flock(lock, LOCK_EX | LOCK_NB) != 0) {
        return errno == EWOULDBLOCK ? refuse_locked(folder, lock, problem) : fsdpi_problem_errno(problem, path, "lock");
    }
    (void)gethostname(host, sizeof host - 1);
    const int n = snprintf(holder, sizeof holder, "host %s, process %ld\n", host, (long)getpid());
    if (ftruncate(lock, 0) != 0) {
        return fsdpi_problem_errno(problem, path, "write to");
    }
    return fsdpi_file_write(lock, path, 0, holder, (size_t)n, problem);
}

fsdp_status fsdpi_lock_take(const char *folder, int *lock, fsdpi_problem *problem)
{
    char path[FSDPI_FOLDER_PATH_BYTES];

    *lock = -1;
    fsdpi_path_join(path, folder, LOCK);
    const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0) {
        return fsdpi_problem_errno(problem, path, "create");
    }
    const fsdp_status status = lock_file(folder, path, fd, problem);
    if (status != FSDP_OK) {
        (void)close(fd);
        return status;
    }
    *lock = fd;
    return FSDP_OK;
}

void fsdpi_lock_release(int *lock)
{
    if (*lock >= 0) {
        (void)close(*lock);
    }
    *lock = -1;
}
