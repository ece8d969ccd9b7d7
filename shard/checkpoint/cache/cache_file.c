#include "shard/checkpoint/cache/cache_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "lib/base/error.h"
#include "shard/checkpoint/format/checksums.h"
#include "shard/checkpoint/format/file_io.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

static const char MAGIC[8] = "FSDPca1"; /* the digit is the version */

static size_t padded(size_t bytes)
{
    return (bytes + FSDPI_CACHE_HEAD_BYTES - 1) / FSDPI_CACHE_HEAD_BYTES * FSDPI_CACHE_HEAD_BYTES;
}

size_t fsdpi_cache_file_bytes(size_t image_bytes, size_t n_chunks, size_t meta_bytes)
{
    return padded(FSDPI_CACHE_HEAD_BYTES + padded(image_bytes) + n_chunks * sizeof(fsdpi_cached_chunk) + meta_bytes);
}

/* ---- reserving ----------------------------------------------------------------------------------------------------- */

static fsdp_status no_room(const char *path, size_t bytes, fsdpi_problem *problem)
{
    struct statvfs fs;
    char           folder[FSDPI_FOLDER_PATH_BYTES];

    memcpy(folder, path, sizeof folder);
    *(strrchr(folder, '/') + 1) = '\0';
    const uintmax_t there       = statvfs(folder, &fs) == 0 ? (uintmax_t)fs.f_bavail * fs.f_frsize : 0;
    return fsdpi_problem_set(problem, FSDP_ERR_IO,
                             "%.300s: no room for a cache of %zu bytes, %ju are free; enlarge the file system, set "
                             "FSDP_CHECKPOINT_CACHE to another folder of the node, or to off",
                             path, bytes, there);
}

static fsdp_status cannot(const char *path, const char *doing, fsdpi_problem *problem)
{
    fsdpi_problem found = {0};

    (void)fsdpi_problem_errno(&found, path, doing);
    return fsdpi_problem_set(problem, FSDP_ERR_IO,
                             "%s; set FSDP_CHECKPOINT_CACHE to a folder of the node that may be written to, or to off",
                             found.text);
}

/* Without room, the file is as long as before. */
static fsdp_status lengthen(int fd, const fsdpi_cache_file *file, size_t bytes, fsdpi_problem *problem)
{
    const int code = posix_fallocate(fd, 0, (off_t)bytes);

    if (code == 0) {
        return FSDP_OK;
    }
    (void)(ftruncate(fd, (off_t)file->bytes) != 0);
    errno = code;
    return code == ENOSPC || code == EDQUOT || code == EFBIG ? no_room(file->path, bytes, problem)
                                                             : cannot(file->path, "reserve room in it", problem);
}

/* Touched now, not by the first copy. */
static fsdp_status map(fsdpi_cache_file *file, int fd, size_t bytes, fsdpi_problem *problem)
{
    unsigned char *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    if (base == MAP_FAILED || base == NULL) {
        return cannot(file->path, "map it", problem);
    }
    (void)madvise(base, bytes, MADV_POPULATE_WRITE);
    if (file->base != NULL) {
        (void)munmap(file->base, file->bytes);
    }
    file->base  = base;
    file->bytes = bytes;
    return FSDP_OK;
}

fsdp_status fsdpi_cache_file_reserve(fsdpi_cache_file *file, size_t bytes, fsdpi_problem *problem)
{
    if (file->base != NULL && file->bytes >= bytes) {
        return FSDP_OK;
    }
    const bool is_new = file->base == NULL;
    const int  fd     = open(file->path, O_RDWR | O_CREAT | O_CLOEXEC | (is_new ? O_TRUNC : 0), S_IRUSR | S_IWUSR);
    if (fd < 0) {
        return errno == ENOSPC ? no_room(file->path, bytes, problem) : cannot(file->path, "make it", problem);
    }
    fsdp_status status = lengthen(fd, file, bytes, problem);
    status             = status == FSDP_OK ? map(file, fd, bytes, problem) : status;
    (void)close(fd);
    if (status != FSDP_OK && is_new) {
        (void)unlink(file->path);
    } else if (is_new) {
        fsdpi_cache_file_begin(file); /* so that it is known for one that is not finished */
    }
    return status;
}

void fsdpi_cache_file_close(fsdpi_cache_file *file)
{
    if (file->base != NULL) {
        (void)munmap(file->base, file->bytes);
        file->base  = NULL;
        file->bytes = 0;
    }
}

/* ---- parts --------------------------------------------------------------------------------------------------------- */

fsdpi_cache_head *fsdpi_cache_head_of(const fsdpi_cache_file *file)
{
    return (fsdpi_cache_head *)(void *)file->base;
}

unsigned char *fsdpi_cache_image_of(const fsdpi_cache_file *file)
{
    return file->base + FSDPI_CACHE_HEAD_BYTES;
}

fsdpi_cached_chunk *fsdpi_cache_chunks_of(const fsdpi_cache_file *file)
{
    return (fsdpi_cached_chunk *)(void *)(fsdpi_cache_image_of(file) + padded(fsdpi_cache_head_of(file)->image_bytes));
}

unsigned char *fsdpi_cache_meta_of(const fsdpi_cache_file *file)
{
    return (unsigned char *)(fsdpi_cache_chunks_of(file) + fsdpi_cache_head_of(file)->n_chunks);
}

/* ---- whole or not -------------------------------------------------------------------------------------------------- */

/* Of the head, with 0 for the sum, and what follows the image. Never 0. */
static uint64_t sum_of(const fsdpi_cache_head *head, const void *chunks)
{
    fsdpi_cache_head without = *head;
    const size_t     bytes   = head->n_chunks * sizeof(fsdpi_cached_chunk) + head->meta_bytes;

    without.sum        = 0;
    const uint64_t sum = fsdpi_checksum(&without, sizeof without) ^ (bytes > 0 ? fsdpi_checksum(chunks, bytes) * 3 : 0);
    return sum != 0 ? sum : 1;
}

/* Behind all other stores, as another process sees them when this one is no more. */
static void set_sum(const fsdpi_cache_file *file, uint64_t sum)
{
    atomic_thread_fence(memory_order_seq_cst);
    __atomic_store_n(&fsdpi_cache_head_of(file)->sum, sum, __ATOMIC_SEQ_CST);
}

void fsdpi_cache_file_begin(const fsdpi_cache_file *file)
{
    fsdpi_cache_head *head = fsdpi_cache_head_of(file);

    if (head != NULL) {
        set_sum(file, 0);
        memcpy(head->magic, MAGIC, sizeof MAGIC);
    }
    atomic_thread_fence(memory_order_seq_cst);
}

void fsdpi_cache_file_seal(const fsdpi_cache_file *file)
{
    const fsdpi_cache_head *head   = fsdpi_cache_head_of(file);
    fsdpi_cached_chunk     *chunks = fsdpi_cache_chunks_of(file);

    for (size_t i = 0; i < head->n_chunks; i++) {
        if (chunks[i].at != FSDPI_CACHE_NOWHERE) {
            chunks[i].sum = fsdpi_checksum(fsdpi_cache_image_of(file) + chunks[i].at, chunks[i].bytes);
        }
    }
    set_sum(file, sum_of(head, chunks));
}

void fsdpi_cache_file_take(const fsdpi_cache_file *file, const fsdpi_cache_head *head)
{
    fsdpi_cache_head *own = fsdpi_cache_head_of(file);

    memcpy((char *)own + sizeof own->magic + sizeof own->sum, (const char *)head + sizeof own->magic + sizeof own->sum,
           sizeof *own - sizeof own->magic - sizeof own->sum);
    set_sum(file, head->sum);
}

/* ---- reading ------------------------------------------------------------------------------------------------------- */

static fsdp_status refuse(const fsdpi_cache_reader *r, const char *why, fsdpi_problem *problem)
{
    return fsdpi_problem_set(problem, FSDP_ERR_FORMAT, "%s: %s", r->path, why);
}

static bool is_text(const char id[FSDPI_CACHE_ID_BYTES])
{
    return memchr(id, '\0', FSDPI_CACHE_ID_BYTES) != NULL;
}

/* Nothing in it is trusted: no sum of these overflows, and the file has as much as it says. */
static bool is_good(const fsdpi_cache_head *head, uint64_t file_bytes)
{
    return is_text(head->run) && is_text(head->attempt) && head->owner < head->ranks && head->ranks <= INT32_MAX &&
           head->image_bytes <= file_bytes && head->n_chunks <= file_bytes / sizeof(fsdpi_cached_chunk) &&
           head->meta_bytes <= file_bytes &&
           fsdpi_cache_file_bytes(head->image_bytes, head->n_chunks, head->meta_bytes) <= file_bytes;
}

static fsdp_status read_head(fsdpi_cache_reader *r, uint64_t file_bytes, fsdpi_problem *problem)
{
    if (file_bytes < FSDPI_CACHE_HEAD_BYTES) {
        return refuse(r, "is too short for a cache", problem);
    }
    FSDP_TRY(fsdpi_file_read(r->fd, r->path, 0, &r->head, sizeof r->head, problem));
    if (memcmp(r->head.magic, MAGIC, sizeof MAGIC) != 0) {
        return refuse(r, "is no cache of this version", problem);
    }
    if (r->head.sum == 0) {
        return refuse(r, "was not finished", problem);
    }
    return is_good(&r->head, file_bytes) ? FSDP_OK : refuse(r, "is damaged: its head is no cache's", problem);
}

static fsdp_status read_rest(fsdpi_cache_reader *r, fsdpi_problem *problem)
{
    const fsdpi_cache_head *head   = &r->head;
    const size_t            chunks = head->n_chunks * sizeof(fsdpi_cached_chunk), bytes = chunks + head->meta_bytes;

    r->chunks = malloc(bytes + 1);
    if (r->chunks == NULL) {
        return fsdpi_problem_memory(problem, r->path, bytes);
    }
    r->meta = (const char *)r->chunks + chunks;
    FSDP_TRY(
        fsdpi_file_read(r->fd, r->path, FSDPI_CACHE_HEAD_BYTES + padded(head->image_bytes), r->chunks, bytes, problem));
    if (sum_of(head, r->chunks) != head->sum) {
        return refuse(r, "is damaged: the sum of its head is another", problem);
    }
    for (size_t i = 0; i < head->n_chunks; i++) {
        const fsdpi_cached_chunk *chunk = &r->chunks[i];

        if (chunk->bytes > FSDPI_CHUNK_MOST ||
            (chunk->at != FSDPI_CACHE_NOWHERE &&
             (chunk->at > head->image_bytes || chunk->bytes > head->image_bytes - chunk->at))) {
            return refuse(r, "is damaged: a chunk is not in it", problem);
        }
    }
    return FSDP_OK;
}

fsdp_status fsdpi_cache_reader_open(const char *path, fsdpi_cache_reader *r, fsdpi_problem *problem)
{
    uint64_t bytes = 0;

    *r = (fsdpi_cache_reader){.fd = -1};
    memcpy(r->path, path, strnlen(path, sizeof r->path - 1));
    FSDP_TRY(fsdpi_file_open(path, &r->fd, &bytes, problem));
    fsdp_status status = read_head(r, bytes, problem);
    status             = status == FSDP_OK ? read_rest(r, problem) : status;
    if (status != FSDP_OK) {
        fsdpi_cache_reader_close(r);
    }
    return status;
}

void fsdpi_cache_reader_close(fsdpi_cache_reader *r)
{
    if (r->fd >= 0) {
        (void)close(r->fd);
    }
    free(r->chunks);
    r->fd     = -1;
    r->chunks = NULL;
}

fsdp_status fsdpi_cache_reader_chunk(const fsdpi_cache_reader *r, size_t i, void *to, fsdpi_problem *problem)
{
    const fsdpi_cached_chunk *chunk = &r->chunks[i];

    FSDP_TRY(fsdpi_file_read(r->fd, r->path, FSDPI_CACHE_HEAD_BYTES + chunk->at, to, chunk->bytes, problem));
    return fsdpi_checksum(to, chunk->bytes) == chunk->sum
               ? FSDP_OK
               : fsdpi_problem_set(problem, FSDP_ERR_FORMAT,
                                   "%s: is damaged: the sum of bytes %" PRIu64 " to %" PRIu64
                                   " of its image is another",
                                   r->path, chunk->at, chunk->at + chunk->bytes);
}
