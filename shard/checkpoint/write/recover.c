/*
 * Cost: each rank reads the files that it has, whose bytes lie in memory or on its node's disk, and writes them once; one broadcast of
 * what rank 0's has of the files; three agreements.
 */
#include "shard/checkpoint/write/recover.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collectives/collectives.h"
#include "shard/checkpoint/cache/meta.h"
#include "shard/checkpoint/common/checks.h"
#include "shard/checkpoint/format/file_io.h"
#include "shard/checkpoint/write/commit.h"
#include "shard/checkpoint/write/output_file.h"
#include "shard/checkpoint/write/sums.h"

typedef struct recovery {
    fsdp_checkpoint         *c;
    const fsdpi_cache_found *found;
    const char              *function;
    char                     folder[FSDPI_FOLDER_PATH_BYTES]; /* the partial one */
    char                    *text;                            /* of the meta */
    fsdpi_cache_meta         meta;
    fsdpi_problem            problem;

    /* What this rank writes. */
    void             *scratch;
    size_t            n_sums, room;
    fsdpi_file_chunk *sums;
    size_t            first_sum, all_sums;
    int               fd; /* of the file that was written to last; -1: none */
    uint64_t          open_file;
    char              path[FSDPI_FOLDER_PATH_BYTES];
} recovery;

static fsdp_status agree(recovery *r, const char *label, fsdp_status status)
{
    return fsdpi_agree(r->c->ctx, r->function, label, 0,
                       status == FSDP_OK ? FSDP_OK : fsdpi_fail_problem(r->c->ctx, r->function, &r->problem), true);
}

/* ---- what the files are --------------------------------------------------------------------------------------------- */

static const fsdpi_cache_reader *first_of(const fsdpi_cache_found *found)
{
    for (size_t i = 0; i < found->n; i++) {
        if (found->readers[i].head.owner == 0) {
            return &found->readers[i];
        }
    }
    return NULL;
}

/* From the rank that has it to all. */
static fsdp_status share_meta(recovery *r)
{
    fsdp_context             *ctx   = r->c->ctx;
    const int                 root  = r->found->first;
    const fsdpi_cache_reader *first = ctx->rank == root ? first_of(r->found) : NULL;
    int64_t                   bytes = first != NULL ? (int64_t)first->head.meta_bytes : 0;

    FSDP_TRY(fsdp_broadcast(ctx, &bytes, 1, FSDP_I64, root));
    r->text            = malloc((size_t)bytes + 1);
    fsdp_status status = r->text != NULL ? FSDP_OK : fsdpi_problem_memory(&r->problem, r->folder, (size_t)bytes);
    FSDP_TRY(agree(r, "memory", status));
    if (first != NULL && r->text != NULL) {
        memcpy(r->text, first->meta, (size_t)bytes);
    }
    FSDP_TRY(fsdp_broadcast(ctx, r->text, (size_t)bytes, FSDP_U8, root));
    return fsdpi_cache_meta_read("caches", r->text, (size_t)bytes, &r->meta, &r->problem);
}

/* ---- writing --------------------------------------------------------------------------------------------------------- */

/* Rank 0, before all others. */
static fsdp_status make_files(recovery *r)
{
    char path[FSDPI_FOLDER_PATH_BYTES];

    if (r->c->ctx->rank != 0) {
        return FSDP_OK;
    }
    FSDP_TRY(fsdpi_run_folder_begin(&r->c->folder, &r->problem));
    for (size_t f = 0; f < r->meta.n_files; f++) {
        const fsdpi_cached_file *file = &r->meta.files[f];

        fsdpi_path_join(path, r->folder, file->name);
        FSDP_TRY(fsdpi_output_make(path, file->beginning, file->beginning_bytes, file->bytes, &r->problem));
    }
    return fsdpi_sums_make_in(r->folder, &r->problem);
}

static fsdp_status close_file(recovery *r)
{
    fsdp_status status = FSDP_OK;

    if (r->fd < 0) {
        return FSDP_OK;
    }
    if (fsync(r->fd) != 0) {
        status = fsdpi_problem_errno(&r->problem, r->path, "sync");
    }
    if (close(r->fd) != 0 && status == FSDP_OK) {
        status = fsdpi_problem_errno(&r->problem, r->path, "close");
    }
    r->fd = -1;
    return status;
}

static fsdp_status open_file(recovery *r, uint64_t file)
{
    if (r->fd >= 0 && r->open_file == file) {
        return FSDP_OK;
    }
    FSDP_TRY(close_file(r));
    fsdpi_path_join(r->path, r->folder, r->meta.files[file].name);
    r->open_file = file;
    r->fd        = open(r->path, O_WRONLY | O_CLOEXEC);
    return r->fd >= 0 ? FSDP_OK : fsdpi_problem_errno(&r->problem, r->path, "open");
}

static fsdp_status add_sum(recovery *r, const fsdpi_file_chunk *sum)
{
    if (r->n_sums == r->room) {
        const size_t            room  = 2 * r->room + 64;
        fsdpi_file_chunk *const grown = realloc(r->sums, room * sizeof *grown);

        if (grown == NULL) {
            return fsdpi_problem_memory(&r->problem, r->folder, room * sizeof *grown);
        }
        r->sums = grown;
        r->room = room;
    }
    r->sums[r->n_sums++] = *sum;
    return FSDP_OK;
}

/* Of a file whose sums add up: this rank's part of each chunk that these bytes are in. */
static fsdp_status add_parts(recovery *r, uint64_t file, uint64_t at, const unsigned char *bytes, uint64_t n_bytes)
{
    uint64_t n;

    for (; n_bytes > 0; n_bytes -= n, at += n, bytes += n) {
        const uint64_t   begin = at / FSDPI_CHUNK_MOST * FSDPI_CHUNK_MOST, left = r->meta.files[file].bytes - begin;
        fsdpi_file_chunk part = {
            .file = file, .begin = begin, .bytes = left < FSDPI_CHUNK_MOST ? left : FSDPI_CHUNK_MOST};
        const uint64_t room = begin + FSDPI_CHUNK_MOST - at;

        n        = n_bytes < room ? n_bytes : room;
        part.sum = fsdpi_checksum_add(0, at, bytes, (size_t)n);
        FSDP_TRY(add_sum(r, &part));
    }
    return FSDP_OK;
}

static fsdp_status write_chunk(recovery *r, const fsdpi_cache_reader *from, size_t i)
{
    const fsdpi_cached_chunk *chunk = &from->chunks[i];
    const fsdpi_file_chunk sum = {.file = chunk->file, .begin = chunk->begin, .bytes = chunk->bytes, .sum = chunk->sum};

    if (chunk->file >= r->meta.n_files || chunk->begin > r->meta.files[chunk->file].bytes ||
        chunk->bytes > r->meta.files[chunk->file].bytes - chunk->begin) {
        return fsdpi_problem_set(&r->problem, FSDP_ERR_FORMAT, "%s: is damaged: a chunk is in none of the files",
                                 from->path);
    }
    if (chunk->at == FSDPI_CACHE_NOWHERE) {
        return add_sum(r, &sum);
    }
    FSDP_TRY(fsdpi_cache_reader_chunk(from, i, r->scratch, &r->problem));
    FSDP_TRY(open_file(r, chunk->file));
    FSDP_TRY(fsdpi_file_write(r->fd, r->path, chunk->begin, r->scratch, chunk->bytes, &r->problem));
    return r->meta.files[chunk->file].adds_up ? add_parts(r, chunk->file, chunk->begin, r->scratch, chunk->bytes)
                                              : add_sum(r, &sum);
}

/* What files are made with is in no cache's image, and where sums add up in none of its chunks. */
static fsdp_status add_beginnings(recovery *r)
{
    for (size_t f = 0; f < r->meta.n_files && r->c->ctx->rank == 0; f++) {
        const fsdpi_cached_file *file = &r->meta.files[f];

        if (file->adds_up) {
            FSDP_TRY(add_parts(r, f, 0, (const unsigned char *)file->beginning, file->beginning_bytes));
        }
    }
    return FSDP_OK;
}

static fsdp_status write_all(recovery *r)
{
    r->scratch = malloc(FSDPI_CHUNK_MOST);
    if (r->scratch == NULL) {
        return fsdpi_problem_memory(&r->problem, r->folder, FSDPI_CHUNK_MOST);
    }
    FSDP_TRY(add_beginnings(r));
    for (size_t i = 0; i < r->found->n; i++) {
        for (size_t chunk = 0; chunk < r->found->readers[i].head.n_chunks; chunk++) {
            FSDP_TRY(write_chunk(r, &r->found->readers[i], chunk));
        }
    }
    return close_file(r);
}

/* Rank 0, behind all others: the files are on the disk. */
static fsdp_status commit(recovery *r)
{
    fsdp_checkpoint   *c     = r->c;
    fsdpi_state        state = {.models = NULL};
    const fsdpi_commit all   = {.folder  = r->folder,
                                .state   = &state,
                                .n_files = r->meta.n_files,
                                .files   = r->meta.files,
                                .n_sums  = r->all_sums};

    if (c->ctx->rank != 0) {
        return FSDP_OK;
    }
    for (size_t f = 0; f < r->meta.n_files; f++) {
        fsdpi_path_join(r->path, r->folder, r->meta.files[f].name);
        FSDP_TRY(fsdpi_sync_path(r->path, &r->problem));
    }
    /* Its text has a NUL behind it, and its sum is read from a copy of its own. */
    FSDP_TRY(fsdpi_state_parse("caches", (char *)(uintptr_t)r->meta.state, r->meta.state_bytes, &state, &r->problem));
    fsdpi_checksums_free(&state.sums);
    fsdp_status status = fsdpi_commit_write(&all, &r->problem);
    if (status == FSDP_OK) {
        status = fsdpi_run_folder_commit(&c->folder, state.program.step, &r->problem);
    }
    fsdpi_state_free(&state);
    return status;
}

static fsdp_status recover(recovery *r)
{
    fsdp_status status = share_meta(r);

    status = status == FSDP_OK ? make_files(r) : status;
    FSDP_TRY(agree(r, "files for what is cached", status));
    status = agree(r, "writing what is cached", write_all(r));
    FSDP_TRY(status);
    FSDP_TRY(fsdpi_sums_place(r->c->ctx, r->function, r->n_sums, &r->first_sum, &r->all_sums));
    status = fsdpi_sums_write_in(r->folder, r->first_sum, r->sums, r->n_sums, &r->problem);
    FSDP_TRY(agree(r, "checksums of what is cached", status));
    return agree(r, "making it the latest", commit(r));
}

fsdp_status fsdpi_recover(fsdp_checkpoint *c, const fsdpi_cache_found *found, const char *function)
{
    recovery r = {.c = c, .found = found, .function = function, .fd = -1};

    fsdpi_run_folder_name_partial(&c->folder, found->step);
    fsdpi_checkpoint_partial_path(c, r.folder);
    const fsdp_status status = recover(&r);
    if (r.fd >= 0) {
        (void)close(r.fd);
    }
    if (status != FSDP_OK && c->ctx->rank == 0) {
        fsdpi_run_folder_abandon(&c->folder);
    }
    c->folder.stage = FSDPI_STAGE_NONE;
    free(r.meta.files);
    free(r.text);
    free(r.sums);
    free(r.scratch);
    return status;
}
