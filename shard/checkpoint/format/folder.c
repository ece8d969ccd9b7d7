#include "shard/checkpoint/format/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/error.h"
#include "shard/checkpoint/format/file_io.h"

enum { KERNEL_ENOTSUPP = 524 }; /* which some file systems let out in place of ENOTSUP */

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

static bool is_unsupported(int code)
{
    return code == EINVAL || code == ENOTSUP || code == KERNEL_ENOTSUPP;
}

fsdp_status fsdpi_sync_folder(const char *path, int *unsupported, fsdpi_problem *problem)
{
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0) {
        return fsdpi_problem_errno(problem, path, "open");
    }
    fsdp_status status = FSDP_OK;
    if (fsync(fd) != 0) {
        const int code = errno;

        if (is_unsupported(code)) {
            *unsupported = code;
        } else {
            status = fsdpi_problem_errno(problem, path, "sync the folder");
        }
    }
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

/* ---- the latest ------------------------------------------------------------------------------------------------- */

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
    return access(path, F_OK) == 0 ? FSDP_OK
                                   : fsdpi_problem_set(problem, FSDP_ERR_IO,
                                                       "%s/" FSDPI_LATEST_FILE
                                                       ": names '%s', which is not there; write the name of another "
                                                       "checkpoint into it, or remove it to begin anew",
                                                       folder, name);
}

fsdp_status fsdpi_folder_latest(const char *folder, char *name, fsdpi_problem *problem)
{
    char   path[FSDPI_FOLDER_PATH_BYTES], *text;
    size_t bytes;

    name[0] = '\0';
    fsdpi_path_join(path, folder, FSDPI_LATEST_FILE);
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
