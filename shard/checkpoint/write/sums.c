#include "shard/checkpoint/write/sums.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "collectives/collectives.h"
#include "lib/base/error.h"
#include "lib/device/memory.h"
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
    size_t       next  = c->first_sum;
    char         path[FSDPI_FOLDER_PATH_BYTES];

    name_file(c, path);
    for (const fsdpi_saved_model *saved = c->models; saved != NULL; saved = saved->next) {
        const fsdpi_writer *writer = &saved->writer;

        FSDP_TRY(write_at(path, 0, next * width, writer->chunks, writer->n_chunks * width, &c->problem));
        next += writer->n_chunks;
    }
    return c->arrays.n_parts == 0
               ? FSDP_OK
               : write_at(path, 0, next * width, c->arrays.parts, c->arrays.n_parts * width, &c->problem);
}

/* How many there will be, and how many of them before this rank's. */
static fsdp_status add_counts(fsdp_checkpoint *c, uint64_t *counts)
{
    c->first_sum         = 0;
    c->n_sums            = 0;
    counts[c->ctx->rank] = fsdpi_saved_models_chunks(c->models) + c->arrays.n_parts;
    FSDP_TRY(fsdp_allgather(c->ctx, FSDP_IN_PLACE, counts, 1, FSDP_I64));
    for (int rank = 0; rank < c->ctx->size; rank++) {
        c->first_sum += rank < c->ctx->rank ? (size_t)counts[rank] : 0;
        c->n_sums += (size_t)counts[rank];
    }
    return FSDP_OK;
}

fsdp_status fsdpi_sums_count(fsdp_checkpoint *c, const char *function)
{
    const size_t bytes  = (size_t)c->ctx->size * sizeof(uint64_t);
    uint64_t    *counts = fsdpi_alloc(c->ctx, FSDP_MEMORY_BOOKKEEPING, bytes);
    fsdp_status  status = fsdpi_agree(c->ctx, function, "memory", 0, counts != NULL ? FSDP_OK : FSDP_ERR_MEMORY, true);

    if (status == FSDP_OK && counts != NULL) {
        status = add_counts(c, counts);
    }
    fsdpi_free(c->ctx, FSDP_MEMORY_BOOKKEEPING, counts, bytes);
    return status;
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

/* Parts of one chunk, which only files have whose sums add up, become one. Returns how many chunks there are. */
static size_t join_parts(fsdpi_file_chunk *sums, size_t n)
{
    size_t kept = 0;

    for (size_t i = 0; i < n; i++) {
        fsdpi_file_chunk *last = kept > 0 ? &sums[kept - 1] : NULL;

        if (last != NULL && last->file == sums[i].file && last->begin == sums[i].begin) {
            last->sum = fsdpi_checksum_join(last->sum, sums[i].sum);
        } else {
            sums[kept++] = sums[i];
        }
    }
    return kept;
}

fsdp_status fsdpi_sums_take(fsdp_checkpoint *c, fsdpi_file_chunk **sums, size_t *n)
{
    char path[FSDPI_FOLDER_PATH_BYTES];

    name_file(c, path);
    *sums = calloc(c->n_sums + 1, sizeof **sums);
    if (*sums == NULL) {
        return fsdpi_problem_memory(&c->problem, path, c->n_sums * sizeof **sums);
    }
    FSDP_TRY(read_all(c, path, *sums));
    if (c->n_sums > 0) {
        qsort(*sums, c->n_sums, sizeof **sums, by_place);
    }
    *n = join_parts(*sums, c->n_sums);
    return unlink(path) == 0 ? FSDP_OK : fsdpi_problem_errno(&c->problem, path, "remove");
}
