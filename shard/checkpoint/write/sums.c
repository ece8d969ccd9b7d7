#include "shard/checkpoint/write/sums.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "collectives/collectives.h"
#include "lib/base/error.h"
#include "lib/device/memory.h"
#include "shard/checkpoint/format/file_io.h"

#define FILE_NAME "chunks.of-ranks"

static void folder_of(const fsdp_checkpoint *c, char *folder)
{
    fsdpi_path_join(folder, c->folder.path, c->folder.partial);
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

fsdp_status fsdpi_sums_make_in(const char *folder, fsdpi_problem *problem)
{
    char path[FSDPI_FOLDER_PATH_BYTES];

    fsdpi_path_join(path, folder, FILE_NAME);
    return write_at(path, O_CREAT | O_TRUNC, 0, NULL, 0, problem);
}

fsdp_status fsdpi_sums_make(fsdp_checkpoint *c)
{
    char folder[FSDPI_FOLDER_PATH_BYTES];

    folder_of(c, folder);
    return fsdpi_sums_make_in(folder, &c->problem);
}

fsdp_status fsdpi_sums_write_in(const char *folder, size_t first, const fsdpi_file_chunk *chunks, size_t n,
                                fsdpi_problem *problem)
{
    char path[FSDPI_FOLDER_PATH_BYTES];

    fsdpi_path_join(path, folder, FILE_NAME);
    return write_at(path, 0, first * sizeof *chunks, chunks, n * sizeof *chunks, problem);
}

fsdp_status fsdpi_sums_write(fsdp_checkpoint *c)
{
    size_t next = c->first_sum;
    char   folder[FSDPI_FOLDER_PATH_BYTES];

    folder_of(c, folder);
    for (const fsdpi_saved_model *saved = c->models; saved != NULL; saved = saved->next) {
        const fsdpi_writer *writer = &saved->writer;

        FSDP_TRY(fsdpi_sums_write_in(folder, next, writer->chunks, writer->n_chunks, &c->problem));
        next += writer->n_chunks;
    }
    return c->arrays.n_parts == 0 ? FSDP_OK
                                  : fsdpi_sums_write_in(folder, next, c->arrays.parts, c->arrays.n_parts, &c->problem);
}

/* How many there will be, and how many of them before this rank's. */
static fsdp_status add_counts(fsdp_context *ctx, size_t mine, uint64_t *counts, size_t *first, size_t *n)
{
    *first            = 0;
    *n                = 0;
    counts[ctx->rank] = mine;
    FSDP_TRY(fsdp_allgather(ctx, FSDP_IN_PLACE, counts, 1, FSDP_I64));
    for (int rank = 0; rank < ctx->size; rank++) {
        *first += rank < ctx->rank ? (size_t)counts[rank] : 0;
        *n += (size_t)counts[rank];
    }
    return FSDP_OK;
}

fsdp_status fsdpi_sums_place(fsdp_context *ctx, const char *function, size_t mine, size_t *first, size_t *n)
{
    const size_t bytes  = (size_t)ctx->size * sizeof(uint64_t);
    uint64_t    *counts = fsdpi_alloc(ctx, FSDP_MEMORY_BOOKKEEPING, bytes);
    fsdp_status  status = fsdpi_agree(ctx, function, "memory", 0, counts != NULL ? FSDP_OK : FSDP_ERR_MEMORY, true);

    if (status == FSDP_OK && counts != NULL) {
        status = add_counts(ctx, mine, counts, first, n);
    }
    fsdpi_free(ctx, FSDP_MEMORY_BOOKKEEPING, counts, bytes);
    return status;
}

fsdp_status fsdpi_sums_count(fsdp_checkpoint *c, const char *function)
{
    return fsdpi_sums_place(c->ctx, function, fsdpi_saved_models_chunks(c->models) + c->arrays.n_parts, &c->first_sum,
                            &c->n_sums);
}

static int by_place(const void *a, const void *b)
{
    const fsdpi_file_chunk *x = a, *y = b;

    if (x->file != y->file) {
        return x->file < y->file ? -1 : 1;
    }
    return x->begin < y->begin ? -1 : x->begin > y->begin ? 1 : 0;
}

static fsdp_status read_all(const char *path, fsdpi_file_chunk *sums, size_t n, fsdpi_problem *problem)
{
    uint64_t bytes;
    int      fd;

    FSDP_TRY(fsdpi_file_open(path, &fd, &bytes, problem));
    const fsdp_status status = fsdpi_file_read(fd, path, 0, sums, n * sizeof *sums, problem);
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

fsdp_status fsdpi_sums_take(const char *folder, size_t n_sums, fsdpi_file_chunk **sums, size_t *n,
                            fsdpi_problem *problem)
{
    char path[FSDPI_FOLDER_PATH_BYTES];

    fsdpi_path_join(path, folder, FILE_NAME);
    *sums = calloc(n_sums + 1, sizeof **sums);
    if (*sums == NULL) {
        return fsdpi_problem_memory(problem, path, n_sums * sizeof **sums);
    }
    FSDP_TRY(read_all(path, *sums, n_sums, problem));
    if (n_sums > 0) {
        qsort(*sums, n_sums, sizeof **sums, by_place);
    }
    *n = join_parts(*sums, n_sums);
    return unlink(path) == 0 ? FSDP_OK : fsdpi_problem_errno(problem, path, "remove");
}
