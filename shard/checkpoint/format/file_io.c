#include "shard/checkpoint/format/file_io.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/error.h"

fsdp_status fsdpi_file_read(int fd, const char *path, uint64_t offset, void *bytes, size_t n_bytes,
                            fsdpi_problem *problem)
{
    char *to = bytes;

    for (size_t done = 0; done < n_bytes;) {
        const ssize_t n = pread(fd, to + done, n_bytes - done, (off_t)(offset + done));

        if (n == 0) {
            return fsdpi_problem_set(problem, FSDP_ERR_FORMAT,
                                     "%s: the file ends at byte %" PRIu64 ", before byte %" PRIu64, path, offset + done,
                                     offset + n_bytes);
        }
        if (n < 0 && errno != EINTR) {
            return fsdpi_problem_errno(problem, path, "read");
        }
        done += n > 0 ? (size_t)n : 0;
    }
    return FSDP_OK;
}

fsdp_status fsdpi_file_write(int fd, const char *path, uint64_t offset, const void *bytes, size_t n_bytes,
                             fsdpi_problem *problem)
{
    const char *from = bytes;

    for (size_t done = 0; done < n_bytes;) {
        const ssize_t n = pwrite(fd, from + done, n_bytes - done, (off_t)(offset + done));

        if (n == 0) {
            return fsdpi_problem_set(problem, FSDP_ERR_IO, "%s: byte %" PRIu64 ": nothing could be written", path,
                                     offset + done);
        }
        if (n < 0 && errno != EINTR) {
            return fsdpi_problem_errno(problem, path, "write");
        }
        done += n > 0 ? (size_t)n : 0;
    }
    return FSDP_OK;
}

fsdp_status fsdpi_file_open(const char *path, int *fd, uint64_t *bytes, fsdpi_problem *problem)
{
    struct stat about;

    *bytes = 0;
    *fd    = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO would be waited for */
    if (*fd < 0) {
        return fsdpi_problem_errno(problem, path, "open");
    }
    if (fstat(*fd, &about) != 0) {
        (void)fsdpi_problem_errno(problem, path, "look at");
    } else if (!S_ISREG(about.st_mode)) {
        (void)fsdpi_problem_set(problem, FSDP_ERR_FORMAT, "%s: not a regular file", path);
    } else {
        *bytes = (uint64_t)about.st_size;
        return FSDP_OK;
    }
    (void)close(*fd);
    *fd = -1;
    return problem->status;
}

/* All of an open file, which is refused rather than read in part. */
static fsdp_status read_all(int fd, const char *path, uint64_t size, size_t most, char **text, fsdpi_problem *problem)
{
    fsdp_status status;

    if (size > most) {
        return fsdpi_problem_set(problem, FSDP_ERR_FORMAT, "%s: %" PRIu64 " bytes; at most %zu are read", path, size,
                                 most);
    }
    *text = calloc((size_t)size + 1, 1);
    if (*text == NULL) {
        return fsdpi_problem_memory(problem, path, (size_t)size);
    }
    status = fsdpi_file_read(fd, path, 0, *text, (size_t)size, problem);
    if (status != FSDP_OK) {
        free(*text);
        *text = NULL;
    }
    return status;
}

fsdp_status fsdpi_file_text(const char *path, size_t most, char **text, size_t *bytes, fsdpi_problem *problem)
{
    int         fd;
    uint64_t    size;
    fsdp_status status;

    *text = NULL;
    FSDP_TRY(fsdpi_file_open(path, &fd, &size, problem));
    status = read_all(fd, path, size, most, text, problem);
    *bytes = status == FSDP_OK ? (size_t)size : 0;
    (void)close(fd);
    return status;
}
