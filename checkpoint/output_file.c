#include "checkpoint/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "checkpoint/file_io.h"
#include "lib/error.h"

#ifndef XFS_SUPER_MAGIC
#define XFS_SUPER_MAGIC 0x58465342
#endif

static size_t largest(size_t a, size_t b, size_t c)
{
    const size_t ab = a > b ? a : b;

    return ab > c ? ab : c;
}

/* Pages and blocks are powers of two: the largest of them is a multiple of all. */
static void open_direct(const char *path, fsdpi_output_file *file)
{
    struct statfs system;
    struct stat   about;

    if (fstatfs(file->fd, &system) != 0 || fstat(file->fd, &about) != 0 ||
        (system.f_type != EXT4_SUPER_MAGIC && system.f_type != XFS_SUPER_MAGIC)) {
        return;
    }
    file->block  = largest(FSDPI_DIRECT_BYTES, (size_t)sysconf(_SC_PAGESIZE), (size_t)about.st_blksize);
    file->direct = open(path, O_WRONLY | O_DIRECT | O_CLOEXEC);
}

fsdp_status fsdpi_output_open(const char *path, fsdpi_output_file *file, fsdpi_problem *problem)
{
    *file = (fsdpi_output_file){.fd = open(path, O_WRONLY | O_CLOEXEC), .direct = -1};
    if (file->fd < 0) {
        return fsdpi_problem_errno(problem, path, "open");
    }
    open_direct(path, file);
    return FSDP_OK;
}

/* Returns how many bytes are written: what is not, for whatever reason, is left to the cache, which knows the error. */
static size_t write_direct(int fd, uint64_t offset, const char *from, size_t n_bytes)
{
    size_t done = 0;

    while (done < n_bytes) {
        const ssize_t n = pwrite(fd, from + done, n_bytes - done, (off_t)(offset + done));

        if (n <= 0 && (n == 0 || errno != EINTR)) {
            break;
        }
        done += n > 0 ? (size_t)n : 0;
    }
    return done;
}

fsdp_status fsdpi_output_write(fsdpi_output_file *file, const char *path, uint64_t offset, const void *bytes,
                               size_t n_bytes, fsdpi_problem *problem)
{
    const char *from = bytes;

    if (file->direct >= 0 && (offset - (uintptr_t)bytes) % FSDPI_DIRECT_BYTES == 0) {
        const size_t head = (size_t)((file->block - offset % file->block) % file->block);
        const size_t body = n_bytes > head ? (n_bytes - head) / file->block * file->block : 0;

        if (body > 0) {
            const size_t done = write_direct(file->direct, offset + head, from + head, body);

            FSDP_TRY(fsdpi_file_write(file->fd, path, offset, from, head, problem));
            offset += head + done;
            from += head + done;
            n_bytes -= head + done;
        }
    }
    return fsdpi_file_write(file->fd, path, offset, from, n_bytes, problem);
}

fsdp_status fsdpi_output_close(fsdpi_output_file *file, const char *path, fsdpi_problem *problem)
{
    fsdp_status status = FSDP_OK;

    if (file->fd < 0) {
        return FSDP_OK;
    }
    if (file->direct >= 0) {
        (void)close(file->direct); /* what went through it is synced with the rest */
    }
    if (fsync(file->fd) != 0) {
        status = fsdpi_problem_errno(problem, path, "sync");
    }
    if (close(file->fd) != 0 && status == FSDP_OK) {
        status = fsdpi_problem_errno(problem, path, "close");
    }
    file->fd = -1;
    return status;
}
