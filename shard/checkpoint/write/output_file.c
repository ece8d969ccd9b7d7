#include "shard/checkpoint/write/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "lib/base/error.h"
#include "shard/checkpoint/format/file_io.h"

#ifndef XFS_SUPER_MAGIC
#define XFS_SUPER_MAGIC 0x58465342
#endif

/* ---- making and opening ------------------------------------------------------------------------------------------ */

static bool is_on_local_disk(int fd)
{
    struct statfs system;

    return fstatfs(fd, &system) == 0 && (system.f_type == EXT4_SUPER_MAGIC || system.f_type == XFS_SUPER_MAGIC);
}

/* Such a disk may still keep files that cannot take room ahead, as ext4 does that was an ext3. */
static fsdp_status lengthen(int fd, const char *path, uint64_t file_bytes, fsdpi_problem *problem)
{
    if (file_bytes > 0 && is_on_local_disk(fd)) {
        if (fallocate(fd, 0, 0, (off_t)file_bytes) == 0) {
            return FSDP_OK;
        }
        if (errno != EOPNOTSUPP && errno != ENOSYS && errno != EINTR) {
            return fsdpi_problem_errno(problem, path, "reserve room on the disk");
        }
    }
    return ftruncate(fd, (off_t)file_bytes) == 0 ? FSDP_OK : fsdpi_problem_errno(problem, path, "lengthen");
}

fsdp_status fsdpi_output_make(const char *path, const void *bytes, size_t n_bytes, uint64_t file_bytes,
                              fsdpi_problem *problem)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

    if (fd < 0) {
        return fsdpi_problem_errno(problem, path, "create");
    }
    fsdp_status status = lengthen(fd, path, file_bytes, problem);
    status             = status == FSDP_OK ? fsdpi_file_write(fd, path, 0, bytes, n_bytes, problem) : status;
    if (close(fd) != 0 && status == FSDP_OK) {
        status = fsdpi_problem_errno(problem, path, "close");
    }
    return status;
}

static size_t largest(size_t a, size_t b, size_t c)
{
    const size_t ab = a > b ? a : b;

    return ab > c ? ab : c;
}

/* Pages and blocks are powers of two: the largest of them is a multiple of all. */
static void open_direct(const char *path, fsdpi_output_file *file)
{
    struct stat about;

    if (fstat(file->fd, &about) != 0 || !is_on_local_disk(file->fd)) {
        return;
    }
    file->block  = largest(FSDPI_DIRECT_BYTES, (size_t)sysconf(_SC_PAGESIZE), (size_t)about.st_blksize);
    file->direct = open(path, O_WRONLY | O_DIRECT | O_CLOEXEC);
}

fsdp_status fsdpi_output_open(const char *path, void *ends, fsdpi_output_file *file, fsdpi_problem *problem)
{
    *file = (fsdpi_output_file){.fd = open(path, O_WRONLY | O_CLOEXEC), .direct = -1, .ends = ends};
    if (file->fd < 0) {
        return fsdpi_problem_errno(problem, path, "open");
    }
    open_direct(path, file);
    return FSDP_OK;
}

/* ---- ends -------------------------------------------------------------------------------------------------------- */

/* Where the bytes behind it go. */
typedef struct place {
    uint64_t offset;
    size_t   n_bytes;
} place;

static fsdp_status write_ends(fsdpi_output_file *file, const char *path, fsdpi_problem *problem)
{
    const size_t n = file->n_ends;
    place        end;

    file->n_ends = 0;
    for (size_t at = 0; at < n; at += sizeof end + end.n_bytes) {
        memcpy(&end, file->ends + at, sizeof end);
        FSDP_TRY(fsdpi_file_write(file->fd, path, end.offset, file->ends + at + sizeof end, end.n_bytes, problem));
    }
    return FSDP_OK;
}

/* Through the cache: at once what is large, and all where nothing goes past it. */
static fsdp_status write_cached(fsdpi_output_file *file, const char *path, uint64_t offset, const char *from,
                                size_t n_bytes, fsdpi_problem *problem)
{
    const place end = {.offset = offset, .n_bytes = n_bytes};

    if (file->direct < 0 || n_bytes >= file->block || sizeof end + n_bytes > FSDPI_ENDS_BYTES) {
        return fsdpi_file_write(file->fd, path, offset, from, n_bytes, problem);
    }
    if (n_bytes == 0) {
        return FSDP_OK;
    }
    if (file->n_ends + sizeof end + n_bytes > FSDPI_ENDS_BYTES) {
        FSDP_TRY(write_ends(file, path, problem));
    }
    memcpy(file->ends + file->n_ends, &end, sizeof end);
    memcpy(file->ends + file->n_ends + sizeof end, from, n_bytes);
    file->n_ends += sizeof end + n_bytes;
    return FSDP_OK;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

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

            FSDP_TRY(write_cached(file, path, offset, from, head, problem));
            offset += head + done;
            from += head + done;
            n_bytes -= head + done;
        }
    }
    return write_cached(file, path, offset, from, n_bytes, problem);
}

fsdp_status fsdpi_output_close(fsdpi_output_file *file, const char *path, fsdpi_problem *problem)
{
    if (file->fd < 0) {
        return FSDP_OK;
    }
    fsdp_status status = write_ends(file, path, problem);
    if (file->direct >= 0) {
        (void)close(file->direct); /* what went through it is synced with the rest */
    }
    if (status == FSDP_OK && fsync(file->fd) != 0) {
        status = fsdpi_problem_errno(problem, path, "sync");
    }
    if (close(file->fd) != 0 && status == FSDP_OK) {
        status = fsdpi_problem_errno(problem, path, "close");
    }
    file->fd = -1;
    return status;
}
