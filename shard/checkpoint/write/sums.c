#include "shard/checkpoint/write/sums.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/base/error.h"
#include "shard/checkpoint/format/file_io.h"

#define FILE_NAME "chunks.of-ranks"

static void name_file(const fsdp_checkpoint *c, char *path)
{
    char folder[FSDPI_FOLDER_PATH_BYTES];

    fsdpi_path_join(folder, c->folder.path, c->folder.partial);
    fsdpi_path_join(path, folder, FILE_NAME);
}

/* All of `n_bytes` at their place, and closed: an error of a file system may come with that. */
static fsdp_status write_at(const char *path, int flags, uint64_t offset, const void *bytes, size_t n_bytes,
                            fsdpi_problem *problem)
{
    const int fd = open(path, O_WRONLY | O_CLOEXEC | flags, 0666);

    if (fd < 0) {
        return fsdpi_problem_errno(problem, path, (flags & O_CREAT) != 0 ? "create" : "open");
    }
    fsdp_status status = fsdpi_file_write(fd, path, offset, bytes, n_bytes, problem);
    if (close(fd) != 0 && status == FSDP_OK) {
        status = fsdpi_problem_errno(problem, path, "close");
    }
    return status;
}

fsdp_status fsdpi_sums_make(fsdp_checkpoint *c)
{
    char path[FSDPI_FOLDER_PATH_BYTES];

    name_file(c, path);
    return write_at(path, O_CREAT | O_TRUNC, 0, NULL, 0, &c->problem);
}

fsdp_status fsdpi_sums_write(fsdp_checkpoint *c)
{
    const size_t width = sizeof(fsdpi_file_chunk);
    char         path[FSDPI_FOLDER_PATH_BYTES];

    name_file(c, path);
    return write_at(path, 0, c->first_sum * width, c->writer.chunks, c->writer.n_chunks * width, &c->problem);
}

static int by_place(const void *a, const void *b)
{
    const fsdpi_file_chunk *x = a, *y = b;

    if (x->file != y->file) {
        return x->file < y->file ? -1 : 1;
    }
    return x->begin < y->begin ? -1 : x->begin > y->begin ? 1 : 0;
}

static fsdp_status read_all(fsdp_checkpoint *c, const char *path, fsdpi_file_chunk *sums)
{
    uint64_t bytes;
    int      fd;

    FSDP_TRY(fsdpi_file_open(path, &fd, &bytes, &c->problem));
    const fsdp_status status = fsdpi_file_read(fd, path, 0, sums, c->n_sums * sizeof *sums, &c->problem);
    (void)close(fd);
    return status;
}

fsdp_status fsdpi_sums_take(fsdp_checkpoint *c, fsdpi_file_chunk **sums)
{
    char path[FSDPI_FOLDER_PATH_BYTES];

    name_file(c, path);
    *sums = calloc(c->n_sums, sizeof **sums);
    if (*sums == NULL) {
        return fsdpi_problem_memory(&c->problem, path, c->n_sums * sizeof **sums);
    }
    FSDP_TRY(read_all(c, path, *sums));
    qsort(*sums, c->n_sums, sizeof **sums, by_place);
    return unlink(path) == 0 ? FSDP_OK : fsdpi_problem_errno(&c->problem, path, "remove");
}
