#include "shard/checkpoint/format/checksums_file.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "lib/base/error.h"
#include "shard/checkpoint/format/file_io.h"

/* As it is in the file. */
typedef struct stored_chunk {
    uint64_t bytes, sum;
} stored_chunk;

_Static_assert(sizeof(stored_chunk) == FSDPI_STORED_CHUNK_BYTES, "as state.json counts them");

enum { AT_ONCE = 4096 }; /* chunks: 64 KiB */

/* Written or read from the front to the back, and summed up on the way. */
typedef struct stream {
    XXH3_state_t   sum;
    const char    *path;
    uint64_t       at; /* BYTES before it */
    fsdpi_problem *problem;
    int            fd;
} stream;

static void begin(stream *s, const char *path, fsdpi_problem *problem)
{
    s->fd      = -1;
    s->path    = path;
    s->at      = 0;
    s->problem = problem;
    XXH3_INITSTATE(&s->sum);
    (void)XXH3_64bits_reset(&s->sum);
}

static uint64_t count_chunks(const fsdpi_checksums *sums)
{
    uint64_t n = 0;

    for (size_t f = 0; f < sums->n_files; f++) {
        n += sums->files[f].n_chunks;
    }
    return n;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static fsdp_status put_chunks(stream *s, const fsdpi_file_sums *file)
{
    stored_chunk stored[AT_ONCE];
    size_t       n;

    for (size_t i = 0; i < file->n_chunks; i += n) {
        n = file->n_chunks - i < AT_ONCE ? file->n_chunks - i : AT_ONCE;
        for (size_t k = 0; k < n; k++) {
            stored[k] = (stored_chunk){.bytes = file->chunks[i + k].bytes, .sum = file->chunks[i + k].sum};
        }
        (void)XXH3_64bits_update(&s->sum, stored, n * sizeof *stored);
        FSDP_TRY(fsdpi_file_write(s->fd, s->path, s->at, stored, n * sizeof *stored, s->problem));
        s->at += n * sizeof *stored;
    }
    return FSDP_OK;
}

static fsdp_status put_all(stream *s, const fsdpi_checksums *sums)
{
    for (size_t f = 0; f < sums->n_files; f++) {
        FSDP_TRY(put_chunks(s, &sums->files[f]));
    }
    return fsync(s->fd) == 0 ? FSDP_OK : fsdpi_problem_errno(s->problem, s->path, "sync");
}

fsdp_status fsdpi_checksums_file_write(const char *path, fsdpi_checksums *sums, fsdpi_problem *problem)
{
    stream s;

    begin(&s, path, problem);
    if (count_chunks(sums) > FSDPI_CHECKSUMS_FILE_MOST / sizeof(stored_chunk)) {
        return fsdpi_problem_set(problem, FSDP_ERR_ARG,
                                 "%s: %" PRIu64 " chunks; at most %" PRIu64 " are read again: use fewer or larger "
                                 "tensors, or fewer ranks",
                                 path, count_chunks(sums), FSDPI_CHECKSUMS_FILE_MOST / sizeof(stored_chunk));
    }
    s.fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (s.fd < 0) {
        return fsdpi_problem_errno(problem, path, "create");
    }
    fsdp_status status = put_all(&s, sums);
    if (close(s.fd) != 0 && status == FSDP_OK) {
        status = fsdpi_problem_errno(problem, path, "close");
    }
    sums->sum_of_chunks = XXH3_64bits_digest(&s.sum);
    return status;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static fsdp_status refuse(const stream *s, const char *file, uint64_t chunk)
{
    return fsdpi_problem_set(s->problem, FSDP_ERR_FORMAT,
                             "%s: chunk %" PRIu64 " of %.200s does not fit into it; it is damaged", s->path, chunk,
                             file);
}

static fsdp_status get_chunks(stream *s, fsdpi_file_sums *file)
{
    stored_chunk stored[AT_ONCE];
    uint64_t     at = 0;
    size_t       n;

    file->chunks = calloc(file->n_chunks + 1, sizeof *file->chunks);
    if (file->chunks == NULL) {
        return fsdpi_problem_memory(s->problem, s->path, file->n_chunks * sizeof *file->chunks);
    }
    for (size_t i = 0; i < file->n_chunks; i += n) {
        n = file->n_chunks - i < AT_ONCE ? file->n_chunks - i : AT_ONCE;
        FSDP_TRY(fsdpi_file_read(s->fd, s->path, s->at, stored, n * sizeof *stored, s->problem));
        (void)XXH3_64bits_update(&s->sum, stored, n * sizeof *stored);
        s->at += n * sizeof *stored;
        for (size_t k = 0; k < n; k++) {
            if (stored[k].bytes == 0 || stored[k].bytes > FSDPI_CHUNK_MOST || stored[k].bytes > file->bytes - at) {
                return refuse(s, file->name, i + k);
            }
            file->chunks[i + k] = (fsdpi_chunk){.begin = at, .bytes = stored[k].bytes, .sum = stored[k].sum};
            at += stored[k].bytes;
        }
    }
    return at == file->bytes ? FSDP_OK : refuse(s, file->name, file->n_chunks);
}

static fsdp_status get_all(stream *s, fsdpi_checksums *sums)
{
    for (size_t f = 0; f < sums->n_files; f++) {
        FSDP_TRY(get_chunks(s, &sums->files[f]));
    }
    const uint64_t sum = XXH3_64bits_digest(&s->sum);
    return sum == sums->sum_of_chunks
               ? FSDP_OK
               : fsdpi_problem_set(s->problem, FSDP_ERR_FORMAT,
                                   "%s: its sum is %016" PRIx64 ", and was %016" PRIx64 " when it was written; it is "
                                   "damaged",
                                   s->path, sum, sums->sum_of_chunks);
}

fsdp_status fsdpi_checksums_file_read(const char *path, fsdpi_checksums *sums, fsdpi_problem *problem)
{
    const uint64_t expected = count_chunks(sums) * sizeof(stored_chunk);
    uint64_t       bytes;
    stream         s;

    if (!sums->apart) {
        return FSDP_OK;
    }
    begin(&s, path, problem);
    FSDP_TRY(fsdpi_file_open(path, &s.fd, &bytes, problem));
    fsdp_status status = FSDP_OK;
    if (bytes != expected || bytes > FSDPI_CHECKSUMS_FILE_MOST) {
        status = fsdpi_problem_set(problem, FSDP_ERR_FORMAT,
                                   "%s: a file of %" PRIu64 " bytes; %" PRIu64 " are those of its chunks", path, bytes,
                                   expected);
    }
    status = status == FSDP_OK ? get_all(&s, sums) : status;
    (void)close(s.fd);
    return status;
}
