#include "shard/checkpoint/folder/run_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "fsdp/checkpoint.h"
#include "lib/base/error.h"
#include "lib/base/hash.h"
#include "shard/checkpoint/folder/remove.h"
#include "shard/checkpoint/format/file_io.h"

static bool is_there(const char *path)
{
    return access(path, F_OK) == 0;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

fsdp_status fsdpi_run_folder_set(fsdpi_run_folder *folder, const char *path, fsdpi_problem *problem)
{
    const size_t most = FSDP_CHECKPOINT_PATH_BYTES - FSDPI_FOLDER_NAME_BYTES;
    char         here[FSDP_CHECKPOINT_PATH_BYTES];
    int          length;

    *folder = (fsdpi_run_folder){.lock = {.fd = -1}};
    if (path[0] == '/') {
        length = snprintf(folder->path, most, "%s", path);
    } else if (getcwd(here, sizeof here) != NULL) {
        length = snprintf(folder->path, most, "%s/%s", here, path);
    } else {
        return fsdpi_problem_errno(problem, path, "tell the working folder that it is in");
    }
    return length >= 0 && (size_t)length < most
               ? FSDP_OK
               : fsdpi_problem_set(problem, FSDP_ERR_ARG,
                                   "%.200s: an absolute path of %d bytes; at most %zu are possible", path, length,
                                   most - 1);
}

static void choose_job(char *job)
{
    uint64_t        bits = 0;
    struct timespec now;

    if (getrandom(&bits, sizeof bits, GRND_NONBLOCK) != (ssize_t)sizeof bits) {
        (void)clock_gettime(CLOCK_REALTIME, &now);
        bits = fsdpi_hash_bytes(fsdpi_hash_u64(FSDPI_HASH_START, (uint64_t)getpid()), &now, sizeof now);
    }
    (void)snprintf(job, FSDPI_JOB_BYTES, "%016" PRIx64, bits);
}

/* So that the folder itself is there after a crash. */
static fsdp_status sync_parent(fsdpi_run_folder *folder, fsdpi_problem *problem)
{
    char parent[FSDPI_FOLDER_PATH_BYTES];

    memcpy(parent, folder->path, sizeof parent);
    for (size_t n = strlen(parent); n > 1 && parent[n - 1] == '/'; n--) {
        parent[n - 1] = '\0';
    }
    *(strrchr(parent, '/') + 1) = '\0';
    return fsdpi_sync_folder(parent, &folder->unsynced, problem);
}

fsdp_status fsdpi_run_folder_open(fsdpi_run_folder *folder, fsdp_checkpoint_lock lock, fsdpi_problem *problem)
{
    choose_job(folder->job);
    folder->token = fsdpi_token_mine();
    FSDP_TRY(fsdpi_token_check(folder->path, &folder->token, problem));
    if (mkdir(folder->path, 0777) == 0) {
        FSDP_TRY(sync_parent(folder, problem));
    } else if (errno != EEXIST) {
        return fsdpi_problem_errno(problem, folder->path, "make the folder");
    }
    return fsdpi_folder_lock_take(&folder->lock, folder->path, folder->job, lock, problem);
}

void fsdpi_run_folder_close(fsdpi_run_folder *folder)
{
    fsdpi_folder_lock_release(&folder->lock);
}

/* ---- one folder for all ranks ------------------------------------------------------------------------------------ */

static void mark_path(const fsdpi_run_folder *folder, char *name, char *path)
{
    fsdpi_partial_name_make(FSDPI_MARK_FILE, folder->job, name);
    fsdpi_path_join(path, folder->path, name);
}

fsdp_status fsdpi_run_folder_mark(const fsdpi_run_folder *folder, fsdpi_problem *problem)
{
    char name[FSDPI_FOLDER_NAME_BYTES], path[FSDPI_FOLDER_PATH_BYTES];

    mark_path(folder, name, path);
    return fsdpi_write_file(path, folder->job, strlen(folder->job), problem);
}

void fsdpi_run_folder_unmark(const fsdpi_run_folder *folder)
{
    char name[FSDPI_FOLDER_NAME_BYTES], path[FSDPI_FOLDER_PATH_BYTES];

    mark_path(folder, name, path);
    (void)unlink(path);
}

fsdp_status fsdpi_run_folder_find_mark(const fsdpi_run_folder *folder, fsdpi_problem *problem)
{
    char   name[FSDPI_FOLDER_NAME_BYTES], path[FSDPI_FOLDER_PATH_BYTES], host[128] = "", *text = NULL;
    size_t bytes;

    mark_path(folder, name, path);
    const fsdp_status status = fsdpi_file_text(path, FSDPI_JOB_BYTES, &text, &bytes, problem);
    const bool        is_it  = status == FSDP_OK && strcmp(text, folder->job) == 0;
    free(text);
    if (is_it || (status != FSDP_OK && is_there(path))) { /* what cannot be read there is its own error */
        return status;
    }
    (void)gethostname(host, sizeof host - 1);
    return fsdpi_problem_set(problem, FSDP_ERR_IO,
                             "%s: on host %s this is not the folder that rank 0 has: %s is not in it; choose a folder "
                             "on a file system that all ranks share",
                             folder->path, host, name);
}

/* ---- beginning a save, and giving it up -------------------------------------------------------------------------- */

void fsdpi_run_folder_name_partial(fsdpi_run_folder *folder, uint64_t step)
{
    char name[FSDPI_FOLDER_NAME_BYTES];

    fsdpi_checkpoint_name_make(step, 1, name);
    fsdpi_partial_name_make(name, folder->job, folder->partial);
    folder->stage = FSDPI_STAGE_NONE;
}

fsdp_status fsdpi_run_folder_begin(fsdpi_run_folder *folder, fsdpi_problem *problem)
{
    char path[FSDPI_FOLDER_PATH_BYTES];

    FSDP_TRY(fsdpi_token_check(folder->path, &folder->token, problem));
    FSDP_TRY(fsdpi_owner_check(&folder->lock.owner, problem));
    FSDP_TRY(fsdpi_leftovers_remove(folder->path, folder->lock.alone ? NULL : folder->job, problem));
    fsdpi_path_join(path, folder->path, folder->partial);
    if (mkdir(path, 0777) != 0) {
        return fsdpi_problem_errno(problem, path, "make the folder");
    }
    folder->stage = FSDPI_STAGE_PARTIAL;
    return FSDP_OK;
}

/* What has a name by now may be another attempt's. */
static bool is_fenced(const fsdpi_run_folder *folder)
{
    fsdpi_problem problem;

    return fsdpi_token_check(folder->path, &folder->token, &problem) != FSDP_OK;
}

void fsdpi_run_folder_abandon(fsdpi_run_folder *folder)
{
    if (folder->stage == FSDPI_STAGE_PARTIAL) {
        fsdpi_partial_remove(folder->path, folder->partial);
    } else if (folder->stage == FSDPI_STAGE_NAMED && !is_fenced(folder)) {
        fsdpi_checkpoint_remove(folder->path, folder->job, folder->name);
    }
    folder->stage = FSDPI_STAGE_NONE;
}

/* ---- from partial to latest -------------------------------------------------------------------------------------- */

/* Over a network, the answer to a rename that was done may be lost, and its repetition fail. */
static bool was_renamed(const char *from, const char *to)
{
    return !is_there(from) && is_there(to);
}

/* A name that is free: a folder of it may be there from a run that was stopped before it became the latest. */
static fsdp_status rename_partial(fsdpi_run_folder *folder, uint64_t step, fsdpi_problem *problem)
{
    char from[FSDPI_FOLDER_PATH_BYTES], to[FSDPI_FOLDER_PATH_BYTES];

    fsdpi_path_join(from, folder->path, folder->partial);
    for (unsigned attempt = 1;; attempt++) {
        fsdpi_checkpoint_name_make(step, attempt, folder->name);
        fsdpi_path_join(to, folder->path, folder->name);
        if (is_there(to)) {
            continue;
        }
        FSDP_TRY(fsdpi_token_check(folder->path, &folder->token, problem));
        if (rename(from, to) == 0) {
            break;
        }
        const int code = errno;
        if (was_renamed(from, to)) {
            break;
        }
        if (code != EEXIST && code != ENOTEMPTY) { /* it came in between */
            errno = code;
            return fsdpi_problem_errno(problem, to, "rename a folder to");
        }
    }
    folder->stage = FSDPI_STAGE_NAMED;
    return FSDP_OK;
}

static bool is_latest(const fsdpi_run_folder *folder)
{
    char          name[FSDPI_FOLDER_NAME_BYTES];
    fsdpi_problem problem;

    return fsdpi_folder_latest(folder->path, name, &problem) == FSDP_OK && strcmp(name, folder->name) == 0;
}

static fsdp_status replace_latest(fsdpi_run_folder *folder, const char *beside, fsdpi_problem *problem)
{
    char path[FSDPI_FOLDER_PATH_BYTES], line[FSDPI_FOLDER_NAME_BYTES + 1];

    fsdpi_path_join(path, folder->path, FSDPI_LATEST_FILE);
    const int n = snprintf(line, sizeof line, "%s\n", folder->name);
    FSDP_TRY(fsdpi_write_file(beside, line, (size_t)n, problem));
    FSDP_TRY(fsdpi_token_check(folder->path, &folder->token, problem));
    if (rename(beside, path) != 0) {
        (void)fsdpi_problem_errno(problem, path, "replace");
        if (!is_latest(folder)) {
            return problem->status;
        }
    }
    folder->stage = FSDPI_STAGE_LATEST;
    return FSDP_OK;
}

static fsdp_status make_latest(fsdpi_run_folder *folder, fsdpi_problem *problem)
{
    char name[FSDPI_FOLDER_NAME_BYTES], beside[FSDPI_FOLDER_PATH_BYTES];

    fsdpi_partial_name_make(FSDPI_LATEST_FILE, folder->job, name);
    fsdpi_path_join(beside, folder->path, name);
    const fsdp_status status = replace_latest(folder, beside, problem);
    if (status != FSDP_OK) {
        (void)unlink(beside);
    }
    return status;
}

/* It is saved, but a crash of the host may still take `latest` back. */
static fsdp_status sync_latest(fsdpi_run_folder *folder, fsdpi_problem *problem)
{
    fsdpi_problem found = {0};

    if (fsdpi_sync_folder(folder->path, &folder->unsynced, &found) == FSDP_OK) {
        return FSDP_OK;
    }
    return fsdpi_problem_set(problem, found.status,
                             "%s; `latest` names %s, which is whole, but may name the checkpoint before it again after "
                             "a crash of this host",
                             found.text, folder->name);
}

fsdp_status fsdpi_run_folder_commit(fsdpi_run_folder *folder, uint64_t step, fsdpi_problem *problem)
{
    char path[FSDPI_FOLDER_PATH_BYTES];

    fsdpi_path_join(path, folder->path, folder->partial);
    FSDP_TRY(fsdpi_sync_folder(path, &folder->unsynced, problem));
    FSDP_TRY(rename_partial(folder, step, problem));
    FSDP_TRY(fsdpi_sync_folder(folder->path, &folder->unsynced, problem));
    FSDP_TRY(fsdpi_owner_check(&folder->lock.owner, problem));
    FSDP_TRY(make_latest(folder, problem));
    return sync_latest(folder, problem);
}
