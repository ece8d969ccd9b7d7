#include "shard/checkpoint/format/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/error.h"
#include "shard/checkpoint/format/file_io.h"

#define LATEST  "latest"
#define LOCK    ".lock"
#define PREFIX  "step-"
#define PARTIAL ".partial"

void fsdpi_path_join(char *path, const char *folder, const char *name)
{
    (void)snprintf(path, FSDPI_FOLDER_PATH_BYTES, "%s/%s", folder, name);
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

fsdp_status fsdpi_sync_path(const char *path, fsdpi_problem *problem)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0) {
        return fsdpi_problem_errno(problem, path, "open");
    }
    fsdp_status status = fsync(fd) == 0 ? FSDP_OK : fsdpi_problem_errno(problem, path, "sync");
    (void)close(fd);
    return status;
}

fsdp_status fsdpi_write_file(const char *path, const void *bytes, size_t n_bytes, fsdpi_problem *problem)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

    if (fd < 0) {
        return fsdpi_problem_errno(problem, path, "create");
    }
    fsdp_status status = fsdpi_file_write(fd, path, 0, bytes, n_bytes, problem);
    if (status == FSDP_OK && fsync(fd) != 0) {
        status = fsdpi_problem_errno(problem, path, "sync");
    }
    if (close(fd) != 0 && status == FSDP_OK) {
        status = fsdpi_problem_errno(problem, path, "close");
    }
    return status;
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

/* A checkpoint by its name: "step-000000500", or "step-000000500-2" of a second one. */
typedef struct named {
    uint64_t step, attempt;
    char     name[FSDPI_FOLDER_NAME_BYTES];
} named;

static void name_checkpoint(uint64_t step, unsigned attempt, char *name)
{
    if (attempt < 2) {
        (void)snprintf(name, FSDPI_FOLDER_NAME_BYTES, PREFIX "%09" PRIu64, step);
    } else {
        (void)snprintf(name, FSDPI_FOLDER_NAME_BYTES, PREFIX "%09" PRIu64 "-%u", step, attempt);
    }
}

/* Only what name_checkpoint() makes is a name. */
static bool parse_name(const char *name, named *found)
{
    char     again[FSDPI_FOLDER_NAME_BYTES];
    unsigned attempt = 1;

    if (strlen(name) >= sizeof again || sscanf(name, PREFIX "%" SCNu64 "-%u", &found->step, &attempt) < 1) {
        return false;
    }
    name_checkpoint(found->step, attempt, again);
    found->attempt = attempt;
    memcpy(found->name, again, sizeof again);
    return strcmp(name, again) == 0;
}

static bool ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), m = strlen(end);

    return n >= m && strcmp(text + n - m, end) == 0;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

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

static fsdp_status take_lock(const char *folder, const char *path, int lock, fsdpi_problem *problem)
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

fsdp_status fsdpi_folder_open(const char *folder, int *lock, fsdpi_problem *problem)
{
    char path[FSDPI_FOLDER_PATH_BYTES];

    *lock = -1;
    if (mkdir(folder, 0777) != 0 && errno != EEXIST) {
        return fsdpi_problem_errno(problem, folder, "make the folder");
    }
    fsdpi_path_join(path, folder, LOCK);
    const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0) {
        return fsdpi_problem_errno(problem, path, "create");
    }
    const fsdp_status status = take_lock(folder, path, fd, problem);
    if (status != FSDP_OK) {
        (void)close(fd);
        return status;
    }
    *lock = fd;
    return FSDP_OK;
}

/* One line with one plain name; its end may be missing. */
static bool take_name(char *text, size_t bytes, char *name)
{
    const size_t end = strcspn(text, "\n");

    if (end == 0 || end >= FSDPI_FOLDER_NAME_BYTES || end + (text[end] == '\n') != bytes) {
        return false;
    }
    text[end] = '\0';
    memcpy(name, text, end + 1);
    return name[0] != '.' && strchr(name, '/') == NULL;
}

static fsdp_status check_there(const char *folder, const char *name, fsdpi_problem *problem)
{
    char path[FSDPI_FOLDER_PATH_BYTES];

    fsdpi_path_join(path, folder, name);
    return access(path, F_OK) == 0
               ? FSDP_OK
               : fsdpi_problem_set(problem, FSDP_ERR_IO,
                                   "%s/" LATEST ": names '%s', which is not there; write the name of another "
                                   "checkpoint into it, or remove it to begin anew",
                                   folder, name);
}

fsdp_status fsdpi_folder_latest(const char *folder, char *name, fsdpi_problem *problem)
{
    char   path[FSDPI_FOLDER_PATH_BYTES], *text;
    size_t bytes;

    name[0] = '\0';
    fsdpi_path_join(path, folder, LATEST);
    if (access(path, F_OK) != 0 && errno == ENOENT) {
        return FSDP_OK;
    }
    FSDP_TRY(fsdpi_file_text(path, FSDPI_FOLDER_NAME_BYTES, &text, &bytes, problem));
    const bool plain = take_name(text, bytes, name);
    free(text);
    if (!plain) {
        name[0] = '\0';
        return fsdpi_problem_set(problem, FSDP_ERR_FORMAT,
                                 "%s: does not name one checkpoint of this folder; write the name of one into it",
                                 path);
    }
    return check_there(folder, name, problem);
}

/* ---- coming and going -------------------------------------------------------------------------------------------- */

/* Checkpoints have no folders in them. */
static void remove_folder(const char *path)
{
    DIR *dir = opendir(path);

    if (dir == NULL) {
        return;
    }
    for (const struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            (void)unlinkat(dirfd(dir), entry->d_name, 0);
        }
    }
    (void)closedir(dir);
    (void)rmdir(path);
}

void fsdpi_folder_abandon(const char *folder, const char *partial)
{
    char path[FSDPI_FOLDER_PATH_BYTES];

    fsdpi_path_join(path, folder, partial);
    remove_folder(path);
}

static fsdp_status remove_leftovers(const char *folder, fsdpi_problem *problem)
{
    DIR *dir = opendir(folder);

    if (dir == NULL) {
        return fsdpi_problem_errno(problem, folder, "open");
    }
    for (const struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        if (strncmp(entry->d_name, "." PREFIX, strlen("." PREFIX)) == 0 && ends_with(entry->d_name, PARTIAL)) {
            fsdpi_folder_abandon(folder, entry->d_name);
        }
    }
    (void)closedir(dir);
    return FSDP_OK;
}

void fsdpi_folder_name_partial(uint64_t step, char *partial)
{
    (void)snprintf(partial, FSDPI_FOLDER_NAME_BYTES, "." PREFIX "%09" PRIu64 PARTIAL, step);
}

fsdp_status fsdpi_folder_begin(const char *folder, const char *partial, fsdpi_problem *problem)
{
    char path[FSDPI_FOLDER_PATH_BYTES];

    FSDP_TRY(remove_leftovers(folder, problem));
    fsdpi_path_join(path, folder, partial);
    return mkdir(path, 0777) == 0 ? FSDP_OK : fsdpi_problem_errno(problem, path, "make the folder");
}

static fsdp_status write_latest(const char *folder, const char *beside, const char *name, fsdpi_problem *problem)
{
    char path[FSDPI_FOLDER_PATH_BYTES], line[FSDPI_FOLDER_NAME_BYTES + 1];

    fsdpi_path_join(path, folder, LATEST);
    const int n = snprintf(line, sizeof line, "%s\n", name);
    FSDP_TRY(fsdpi_write_file(beside, line, (size_t)n, problem));
    return rename(beside, path) == 0 ? FSDP_OK : fsdpi_problem_errno(problem, path, "replace");
}

/* A checkpoint that cannot become the latest is of no use. */
static fsdp_status make_latest(const char *folder, const char *name, fsdpi_problem *problem)
{
    char beside[FSDPI_FOLDER_PATH_BYTES];

    fsdpi_path_join(beside, folder, "." LATEST PARTIAL);
    const fsdp_status status = write_latest(folder, beside, name, problem);
    if (status != FSDP_OK) {
        (void)unlink(beside);
        fsdpi_folder_abandon(folder, name);
        return status;
    }
    return fsdpi_sync_path(folder, problem);
}

/* A name that is free: a folder of it may be there from a run that was stopped before it became the latest. */
static fsdp_status rename_partial(const char *folder, uint64_t step, const char *partial, char *name,
                                  fsdpi_problem *problem)
{
    char from[FSDPI_FOLDER_PATH_BYTES], to[FSDPI_FOLDER_PATH_BYTES];

    fsdpi_path_join(from, folder, partial);
    for (unsigned attempt = 1;; attempt++) {
        name_checkpoint(step, attempt, name);
        fsdpi_path_join(to, folder, name);
        if (access(to, F_OK) != 0) {
            break;
        }
    }
    return rename(from, to) == 0 ? FSDP_OK : fsdpi_problem_errno(problem, to, "rename a folder to");
}

fsdp_status fsdpi_folder_commit(const char *folder, uint64_t step, const char *partial, char *name,
                                fsdpi_problem *problem)
{
    char path[FSDPI_FOLDER_PATH_BYTES];

    fsdpi_path_join(path, folder, partial);
    FSDP_TRY(fsdpi_sync_path(path, problem));
    FSDP_TRY(rename_partial(folder, step, partial, name, problem));
    FSDP_TRY(fsdpi_sync_path(folder, problem));
    return make_latest(folder, name, problem);
}

/* ---- pruning ----------------------------------------------------------------------------------------------------- */

static int newest_first(const void *a, const void *b)
{
    const named *x = a, *y = b;

    if (x->step != y->step) {
        return x->step < y->step ? 1 : -1;
    }
    return x->attempt < y->attempt ? 1 : x->attempt > y->attempt ? -1 : 0;
}

/* NULL where there are none, or no memory: then nothing is removed. The caller frees it. */
static named *list_checkpoints(const char *folder, size_t *n)
{
    DIR   *dir  = opendir(folder);
    named *list = NULL;

    *n = 0;
    if (dir == NULL) {
        return NULL;
    }
    for (const struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        named one;

        if (parse_name(entry->d_name, &one)) {
            named *longer = realloc(list, (*n + 1) * sizeof *list);

            if (longer == NULL) {
                break;
            }
            list         = longer;
            list[(*n)++] = one;
        }
    }
    (void)closedir(dir);
    return list;
}

void fsdpi_folder_prune(const char *folder, size_t keep_last, size_t keep_every, const char *keep)
{
    char   path[FSDPI_FOLDER_PATH_BYTES];
    size_t n, kept = 0;
    named  latest;

    if (keep_last == 0 || !parse_name(keep, &latest)) {
        return;
    }
    named *list = list_checkpoints(folder, &n);
    if (n > 0) {
        qsort(list, n, sizeof *list, newest_first);
    }
    for (size_t i = 0; i < n; i++) {
        if (list[i].step > latest.step) {
            continue;
        }
        const bool again = i > 0 && list[i].step == list[i - 1].step; /* an older one of the same step */
        const bool stays = !again && (kept < keep_last || (keep_every > 0 && list[i].step % keep_every == 0));

        kept += !again;
        if (!stays && strcmp(list[i].name, keep) != 0) {
            fsdpi_path_join(path, folder, list[i].name);
            remove_folder(path);
        }
    }
    free(list);
}
