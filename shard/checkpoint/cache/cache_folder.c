#include "shard/checkpoint/cache/cache_folder.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "lib/base/error.h"

#ifndef HUGETLBFS_MAGIC
#define HUGETLBFS_MAGIC 0x958458f6
#endif

#define OWN  "own-"
#define COPY "copy-"

enum { NAMES_BYTES = 64 }; /* of all that is behind DIR */

fsdp_status fsdpi_cache_folder_name(const char *dir, uint64_t key, char *path, fsdpi_problem *problem)
{
    const size_t most = FSDPI_FOLDER_PATH_BYTES - 2 * NAMES_BYTES;

    if (dir[0] != '/' || strlen(dir) > most) {
        return fsdpi_problem_set(
            problem, FSDP_ERR_ARG,
            "FSDP_CHECKPOINT_CACHE is '%.200s'; set it to the absolute path of a folder, of at most "
            "%zu bytes, or to off",
            dir, most);
    }
    (void)snprintf(path, FSDPI_FOLDER_PATH_BYTES, "%s/fsdp-cache-%lu-%016" PRIx64, dir, (unsigned long)geteuid(), key);
    return FSDP_OK;
}

/* In a folder that everybody may write to, somebody else may have been there first. */
fsdp_status fsdpi_cache_folder_make(const char *path, fsdpi_problem *problem)
{
    fsdpi_problem found = {0};
    struct stat   about;

    if (mkdir(path, S_IRWXU) != 0 && errno != EEXIST) {
        (void)fsdpi_problem_errno(&found, path, "make the folder");
        return fsdpi_problem_set(problem, FSDP_ERR_IO,
                                 "%s; set FSDP_CHECKPOINT_CACHE to a folder of the node that may be written to, or to "
                                 "off",
                                 found.text);
    }
    if (lstat(path, &about) != 0) {
        return fsdpi_problem_errno(problem, path, "look at");
    }
    return S_ISDIR(about.st_mode) && about.st_uid == geteuid()
               ? FSDP_OK
               : fsdpi_problem_set(problem, FSDP_ERR_IO,
                                   "%s: is not a folder of this user; remove it, or set FSDP_CHECKPOINT_CACHE to "
                                   "another folder, or to off",
                                   path);
}

void fsdpi_cache_folder_file(const char *folder, bool is_copy, int rank, int slot, char *path)
{
    char name[NAMES_BYTES];

    (void)snprintf(name, sizeof name, "%s%08d-%d", is_copy ? COPY : OWN, rank, slot);
    fsdpi_path_join(path, folder, name);
}

static bool is_ours(const char *name)
{
    return strncmp(name, OWN, strlen(OWN)) == 0 || strncmp(name, COPY, strlen(COPY)) == 0;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static fsdp_status list_all(DIR *dir, const char *folder, char ***names, size_t *n, fsdpi_problem *problem)
{
    size_t room = 0;

    for (const struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        if (!is_ours(entry->d_name)) {
            continue;
        }
        if (*n == room) {
            char **grown = realloc(*names, (2 * room + 16) * sizeof *grown);

            if (grown == NULL) {
                return fsdpi_problem_memory(problem, folder, (2 * room + 16) * sizeof *grown);
            }
            *names = grown;
            room   = 2 * room + 16;
        }
        (*names)[*n] = strdup(entry->d_name);
        if ((*names)[*n] == NULL) {
            return fsdpi_problem_memory(problem, folder, strlen(entry->d_name));
        }
        ++*n;
    }
    return FSDP_OK;
}

fsdp_status fsdpi_cache_folder_list(const char *folder, char ***names, size_t *n, fsdpi_problem *problem)
{
    *names   = NULL;
    *n       = 0;
    DIR *dir = opendir(folder);
    if (dir == NULL) {
        return errno == ENOENT ? FSDP_OK : fsdpi_problem_errno(problem, folder, "open");
    }
    const fsdp_status status = list_all(dir, folder, names, n, problem);
    (void)closedir(dir);
    if (*n > 0) {
        qsort(*names, *n, sizeof **names, by_text);
    }
    return status;
}

bool fsdpi_cache_folder_is_memory(const char *folder)
{
    struct statfs about;

    return statfs(folder, &about) == 0 && (about.f_type == TMPFS_MAGIC || about.f_type == RAMFS_MAGIC ||
                                           (unsigned long)about.f_type == HUGETLBFS_MAGIC);
}
