#include "tools/run/fence.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "shard/checkpoint/folder/flock_reach.h"
#include "shard/checkpoint/folder/identity.h"
#include "shard/checkpoint/folder/lock.h"
#include "shard/checkpoint/folder/names.h"
#include "shard/checkpoint/format/file_io.h"

#define LOCK_FILE ".run"

enum { STALE_S = FSDPI_OWNER_STALE_S };

static bool refuse(const char *folder, const char *holder, fsdpi_problem *problem)
{
    (void)fsdpi_problem_set(problem, FSDP_ERR_STATE,
                            "%.400s: another fsdp-run looks after this folder (%.*s); end it, or use another folder",
                            folder, (int)strcspn(holder, "\n"), holder[0] != '\0' ? holder : "it has not said which");
    return false;
}

static void read_holder(int lock, char *holder, size_t size)
{
    const ssize_t n = pread(lock, holder, size - 1, 0);
    char         *more;

    holder[n > 0 ? n : 0] = '\0';
    more                  = strstr(holder, ", started ");
    if (more != NULL) {
        *more = '\0';
    }
}

/* Where a lock is known on one host alone, or there are none: who has signed and shows signs of life. */
static bool is_held_elsewhere(int lock)
{
    char          line[FSDPI_IDENTITY_BYTES];
    struct stat   about;
    const ssize_t n   = pread(lock, line, sizeof line - 1, 0);
    const time_t  age = fstat(lock, &about) == 0 ? time(NULL) - about.st_mtime : 0;

    line[n > 0 ? n : 0] = '\0';
    return line[0] != '\0' && !fsdpi_identity_has_ended(line) && age < STALE_S;
}

static bool take_lock(run_fence *fence, fsdpi_problem *problem)
{
    char path[FSDPI_FOLDER_PATH_BYTES], line[FSDPI_IDENTITY_BYTES];

    fsdpi_path_join(path, fence->path, LOCK_FILE);
    fence->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fence->lock < 0) {
        (void)fsdpi_problem_errno(problem, path, "create");
        return false;
    }
    const bool is_locked = flock(fence->lock, LOCK_EX | LOCK_NB) == 0;
    if ((!is_locked && errno == EWOULDBLOCK) ||
        ((!is_locked || fsdpi_flock_is_per_host(fence->path)) && is_held_elsewhere(fence->lock))) {
        read_holder(fence->lock, line, sizeof line);
        return refuse(fence->path, line, problem);
    }
    fsdpi_identity_line("fsdp-run", line);
    return (ftruncate(fence->lock, 0) == 0 &&
            fsdpi_file_write(fence->lock, path, 0, line, strlen(line), problem) == FSDP_OK) ||
           (fsdpi_problem_errno(problem, path, "write to"), false);
}

/* A program that fsdp-run has not started; attempts of an earlier one are none. */
static bool is_free(const run_fence *fence, fsdpi_problem *problem)
{
    fsdpi_folder_lock lock;
    fsdpi_token       next;
    char              text[FSDPI_TOKEN_TEXT_BYTES];

    if (fsdpi_token_read(fence->path, &next, problem) != FSDP_OK) {
        return false;
    }
    next.number++;
    fsdpi_token_text(&next, text);
    (void)setenv(FSDPI_TOKEN_VARIABLE, text, 1);
    const bool is =
        fsdpi_folder_lock_take(&lock, fence->path, "fsdp-run", FSDP_CHECKPOINT_LOCK_AUTO, problem) == FSDP_OK;
    (void)unsetenv(FSDPI_TOKEN_VARIABLE);
    if (is) {
        fsdpi_folder_lock_release(&lock);
    }
    return is;
}

bool run_fence_open(run_fence *fence, const char *folder, fsdpi_problem *problem)
{
    char absolute[PATH_MAX];

    *fence = (run_fence){.lock = -1};
    if (folder == NULL) {
        return true;
    }
    if (mkdir(folder, 0777) != 0 && errno != EEXIST) {
        (void)fsdpi_problem_errno(problem, folder, "make the folder");
        return false;
    }
    if (realpath(folder, absolute) == NULL || strlen(absolute) >= FSDPI_FOLDER_PATH_BYTES - FSDPI_FOLDER_NAME_BYTES) {
        (void)fsdpi_problem_errno(problem, folder, "find");
        return false;
    }
    memcpy(fence->path, absolute, strlen(absolute) + 1);
    if (!take_lock(fence, problem) || !is_free(fence, problem)) {
        if (fence->lock >= 0) {
            (void)close(fence->lock);
        }
        *fence = (run_fence){.lock = -1};
        return false;
    }
    return true;
}

bool run_fence_raise(run_fence *fence, fsdpi_token *token, fsdpi_problem *problem)
{
    *token = (fsdpi_token){.number = 0};
    return fence->path[0] == '\0' || fsdpi_token_take(fence->path, token, problem) == FSDP_OK;
}

int64_t run_fence_step(const run_fence *fence)
{
    char                  name[FSDPI_FOLDER_NAME_BYTES];
    fsdpi_checkpoint_name latest;
    fsdpi_problem         problem;

    if (fence->path[0] == '\0' || fsdpi_folder_latest(fence->path, name, &problem) != FSDP_OK ||
        !fsdpi_checkpoint_name_parse(name, &latest)) {
        return -1;
    }
    return (int64_t)latest.step;
}

void run_fence_touch(const run_fence *fence)
{
    if (fence->lock >= 0) {
        (void)futimens(fence->lock, NULL);
    }
}

void run_fence_close(run_fence *fence)
{
    if (fence->lock >= 0) {
        (void)!ftruncate(fence->lock, 0);
        (void)close(fence->lock);
    }
    *fence = (run_fence){.lock = -1};
}
