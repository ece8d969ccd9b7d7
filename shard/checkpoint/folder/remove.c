#include "shard/checkpoint/folder/remove.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Checkpoints have no folders in them. */
void fsdpi_partial_remove(const char *folder, const char *partial)
{
    char path[FSDPI_FOLDER_PATH_BYTES];

    fsdpi_path_join(path, folder, partial);
    DIR *dir = opendir(path);
    if (dir == NULL) {
        (void)unlink(path); /* a file, or nothing */
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

void fsdpi_checkpoint_remove(const char *folder, const char *job, const char *name)
{
    char partial[FSDPI_FOLDER_NAME_BYTES], from[FSDPI_FOLDER_PATH_BYTES], to[FSDPI_FOLDER_PATH_BYTES];

    fsdpi_partial_name_make(name, job, partial);
    fsdpi_path_join(from, folder, name);
    fsdpi_path_join(to, folder, partial);
    (void)rename(from, to); /* where that fails the name stays, and with it all that is in there */
    fsdpi_partial_remove(folder, partial);
}

fsdp_status fsdpi_leftovers_remove(const char *folder, const char *job, fsdpi_problem *problem)
{
    DIR *dir = opendir(folder);

    if (dir == NULL) {
        return fsdpi_problem_errno(problem, folder, "open");
    }
    for (const struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        if (fsdpi_is_partial_name(entry->d_name, job)) {
            fsdpi_partial_remove(folder, entry->d_name);
        }
    }
    (void)closedir(dir);
    return FSDP_OK;
}
