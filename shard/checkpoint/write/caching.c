/*
 * fsdp_checkpoint_cache(): what this rank writes goes into a file of its node, in one copy, and to a partner's node behind the steps
 * that follow. Cost for the step that calls: that copy, an agreement, and an allreduce of 4 bytes.
 */
#include "shard/checkpoint/write/caching.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collectives/collectives.h"
#include "lib/base/hash.h"
#include "lib/base/log.h"
#include "shard/checkpoint/arrays/keyed.h"
#include "shard/checkpoint/cache/cache_folder.h"
#include "shard/checkpoint/cache/find.h"
#include "shard/checkpoint/cache/meta.h"
#include "shard/checkpoint/common/checks.h"
#include "shard/checkpoint/format/file_io.h"
#include "shard/checkpoint/write/commit.h"
#include "shard/checkpoint/write/recover.h"
#include "shard/checkpoint/write/save.h"
#include "shard/storage/compute.h"

#define CACHE "fsdp_checkpoint_cache"
#define RUN_FILE                                                                                                       \
    ".run" /* which run a folder is of: it tells its caches from those of another one in a folder of this name */

enum { ALIGNED = 64 };

static size_t aligned(size_t bytes)
{
    return (bytes + ALIGNED - 1) / ALIGNED * ALIGNED;
}

/* ---- what this rank has --------------------------------------------------------------------------------------------- */

/* Of rows that follow each other in the file, as they do in the image, one is made. `chunks` NULL: counts. Returns how many. */
static size_t list_rows(const fsdpi_array *array, const fsdpi_cached_chunk *first, uint64_t begin,
                        fsdpi_cached_chunk *chunks)
{
    const size_t       width = fsdp_dtype_size((fsdp_dtype)array->info.dtype);
    fsdpi_cached_chunk one   = *first;
    fsdpi_box_walk     walk  = {.done = false};
    fsdpi_box_row      row;
    size_t             n = 0;

    while (fsdpi_box_next(&array->written, &walk, &row)) {
        uint64_t at = begin + row.first * width, left = row.count * width;

        while (left > 0) {
            if (one.bytes > 0 && (one.begin + one.bytes != at || one.bytes == FSDPI_CHUNK_MOST)) {
                if (chunks != NULL) {
                    chunks[n] = one;
                }
                n++;
                one.at += one.bytes;
                one.bytes = 0;
            }
            one.begin           = one.bytes == 0 ? at : one.begin;
            const uint64_t room = FSDPI_CHUNK_MOST - one.bytes, taken = left < room ? left : room;

            one.bytes += taken;
            at += taken;
            left -= taken;
        }
    }
    if (one.bytes > 0 && chunks != NULL) {
        chunks[n] = one;
    }
    return n + (one.bytes > 0);
}

static size_t array_bytes(const fsdpi_array *array)
{
    return fsdpi_box_count(&array->written) * fsdp_dtype_size((fsdp_dtype)array->info.dtype);
}

static fsdpi_cache_sizes measure(const fsdp_checkpoint *c, size_t meta_bytes)
{
    const fsdpi_cached_chunk none = {.bytes = 0};
    fsdpi_cache_sizes        s    = {.meta_bytes = meta_bytes};

    for (const fsdpi_saved_model *saved = c->models; saved != NULL; saved = saved->next) {
        s.image_bytes += aligned(saved->writer.bytes);
        s.n_chunks += saved->writer.n_pieces;
    }
    for (const fsdpi_array *array = c->arrays.first; array != NULL; array = array->next) {
        s.image_bytes += aligned(array_bytes(array));
        s.n_chunks += list_rows(array, &none, 0, NULL);
    }
    return s;
}

/* Copies all of it, and lists it. */
static fsdp_status copy(const fsdp_checkpoint *c, const fsdpi_cache_file *file)
{
    unsigned char      *image  = fsdpi_cache_image_of(file);
    fsdpi_cached_chunk *chunks = fsdpi_cache_chunks_of(file);
    fsdp_status         status = FSDP_OK;
    size_t              at     = 0;

    for (const fsdpi_saved_model *saved = c->models; saved != NULL; saved = saved->next) {
        const fsdp_status copied = fsdpi_writer_copy(&saved->writer, image + at);

        status = status == FSDP_OK ? copied : status;
        fsdpi_writer_list(&saved->writer, at, chunks);
        chunks += saved->writer.n_pieces;
        at += aligned(saved->writer.bytes);
    }
    for (const fsdpi_array *array = c->arrays.first; array != NULL; array = array->next) {
        const fsdpi_cached_chunk first = {.file = fsdpi_saved_models_files(c->models), .at = at};

        fsdpi_rows_pack(array, image + at);
        chunks += list_rows(array, &first, c->arrays.plan.files[0].header_bytes + array->info.begin, chunks);
        at += aligned(array_bytes(array));
    }
    return status;
}

/* ---- what the files have besides ------------------------------------------------------------------------------------- */

typedef struct description {
    fsdpi_cache_meta   meta;
    fsdpi_cached_file *files;
    char              *text;
} description;

static void description_free(description *d)
{
    free(d->files);
    free(d->text);
}

static fsdp_status describe_state(const fsdp_checkpoint *c, const fsdp_checkpoint_state *program, description *d,
                                  fsdpi_problem *problem)
{
    fsdpi_state        state = {.program = *program, .sums = {.apart = true}};
    size_t             n     = 0;
    fsdpi_model_state *models;

    for (const fsdpi_saved_model *saved = c->models; saved != NULL; saved = saved->next) {
        n++;
    }
    models = calloc(n + 1, sizeof *models);
    if (models == NULL) {
        return fsdpi_problem_memory(problem, "state", n * sizeof *models);
    }
    n = 0;
    for (const fsdpi_saved_model *saved = c->models; saved != NULL; saved = saved->next, n++) {
        fsdpi_saved_model_describe_in(saved, &models[n]);
        models[n].next = saved->next != NULL ? &models[n + 1] : NULL;
    }
    state.models             = n > 0 ? models : NULL;
    state.program.ranks      = (uint64_t)c->ctx->size;
    const fsdp_status status = fsdpi_state_write(&state, &d->text, &d->meta.state_bytes, problem);
    free(models);
    return status;
}

/* Rank 0's; free it in any case. */
static fsdp_status describe(const fsdp_checkpoint *c, const fsdp_checkpoint_state *program, description *d,
                            fsdpi_problem *problem)
{
    *d = (description){.files = NULL};
    if (c->ctx->rank != 0 || c->arrays.changed) {
        return FSDP_OK;
    }
    d->meta.n_files = fsdpi_checkpoint_count_files(c);
    d->files        = calloc(d->meta.n_files + 1, sizeof *d->files);
    if (d->files == NULL) {
        return fsdpi_problem_memory(problem, "files", d->meta.n_files * sizeof *d->files);
    }
    fsdpi_checkpoint_list_files(c, d->files);
    d->meta.files = d->files;
    FSDP_TRY(describe_state(c, program, d, problem));
    d->meta.state = d->text;
    return FSDP_OK;
}

static size_t description_bytes(const description *d)
{
    return d->files != NULL ? fsdpi_cache_meta_bytes(&d->meta) : 0;
}

/* ---- opening --------------------------------------------------------------------------------------------------------- */

fsdp_status fsdpi_caching_reserve(fsdp_checkpoint *c, const char *function)
{
    const fsdp_checkpoint_state nothing = {.step = 0};
    fsdpi_problem               problem = {0};
    description                 d;

    if (c->cache.ctx == NULL) {
        return FSDP_OK;
    }
    fsdp_status status = describe(c, &nothing, &d, &problem);
    status             = status == FSDP_OK ? FSDP_OK : fsdpi_fail_problem(c->ctx, function, &problem);
    status             = fsdpi_agree(c->ctx, function, "memory", 0, status, true);
    if (status == FSDP_OK) {
        const fsdpi_cache_sizes sizes = measure(c, description_bytes(&d));

        status = fsdpi_cache_reserve(&c->cache, &sizes, function);
    }
    description_free(&d);
    return status;
}

/* What rank 0 knows of the folder. */
typedef struct about {
    char     run[FSDPI_CACHE_ID_BYTES];
    uint64_t key, latest;
} about;

/* The folder's own identity: that of the first program that has cached in it. */
static fsdp_status read_run(const fsdp_checkpoint *c, char run[FSDPI_CACHE_ID_BYTES], fsdpi_problem *problem)
{
    char   path[FSDPI_FOLDER_PATH_BYTES], *text = NULL;
    size_t bytes;

    fsdpi_path_join(path, c->folder.path, RUN_FILE);
    if (access(path, F_OK) != 0) {
        FSDP_TRY(fsdpi_write_file(path, c->folder.job, strlen(c->folder.job), problem));
    }
    FSDP_TRY(fsdpi_file_text(path, FSDPI_CACHE_ID_BYTES - 1, &text, &bytes, problem));
    memcpy(run, text, bytes + 1);
    free(text);
    return FSDP_OK;
}

static fsdp_status read_latest(const fsdp_checkpoint *c, uint64_t *latest, fsdpi_problem *problem)
{
    char                  name[FSDPI_FOLDER_NAME_BYTES];
    fsdpi_checkpoint_name found;

    *latest = 0;
    FSDP_TRY(fsdpi_folder_latest(c->folder.path, name, problem));
    if (name[0] != '\0' && fsdpi_checkpoint_name_parse(name, &found)) {
        *latest = found.step + 1;
    }
    return FSDP_OK;
}

static fsdp_status find_out(const fsdp_checkpoint *c, about *a, fsdpi_problem *problem)
{
    if (c->ctx->rank != 0) {
        return FSDP_OK;
    }
    a->key = fsdpi_hash_text(FSDPI_HASH_START, c->folder.path);
    FSDP_TRY(read_run(c, a->run, problem));
    return read_latest(c, &a->latest, problem);
}

/* From an earlier attempt, and then nothing is left of it. */
static fsdp_status take_over(fsdp_checkpoint *c, const char *folder, const about *a, const char *function)
{
    fsdpi_cache_found found;
    fsdp_status       status = fsdpi_cache_find(c->ctx, &c->cache.nodes, function, folder, a->run, a->latest, &found);

    if (status == FSDP_OK && found.ranks > 0) {
        status = fsdpi_recover(c, &found, function);
    }
    if (status == FSDP_OK && found.ranks > 0) {
        c->flushed = found.step + 1;
        if (c->ctx->rank == 0) {
            fsdpi_log(c->ctx, FSDP_LOG_INFO,
                      "%s: step %" PRIu64 ", cached by %" PRIu64 " ranks, was newer than `latest`, and is it now",
                      function, found.step, found.ranks);
        }
    }
    fsdpi_cache_found_close(&found);
    FSDP_TRY(status);
    fsdpi_cache_clear(folder);
    return fsdpi_agree(c->ctx, function, "clearing caches", 0, FSDP_OK, true);
}

static bool is_off(const fsdp_checkpoint *c)
{
    return strcmp(c->ctx->config.checkpoint_cache, "off") == 0;
}

fsdp_status fsdpi_caching_open(fsdp_checkpoint *c, const char *function)
{
    fsdpi_problem problem = {0};
    about         a       = {.key = 0};
    char          folder[FSDPI_FOLDER_PATH_BYTES];

    if (!c->options.cached) {
        return FSDP_OK;
    }
    fsdp_status status = find_out(c, &a, &problem);
    status             = status == FSDP_OK ? FSDP_OK : fsdpi_fail_problem(c->ctx, function, &problem);
    FSDP_TRY(fsdpi_agree(c->ctx, function, is_off(c) ? "FSDP_CHECKPOINT_CACHE=off" : "caches", 0, status, true));
    FSDP_TRY(fsdp_broadcast(c->ctx, &a, sizeof a, FSDP_U8, 0));
    c->flushed = a.latest;
    if (is_off(c)) {
        return FSDP_OK;
    }
    status = fsdpi_cache_folder_name(c->ctx->config.checkpoint_cache, a.key, folder, &problem);
    status = status == FSDP_OK ? FSDP_OK : fsdpi_fail_problem(c->ctx, function, &problem);
    FSDP_TRY(fsdpi_agree(c->ctx, function, "the folder of caches", 0, status, true));
    FSDP_TRY(fsdpi_cache_locate(&c->cache, c->ctx));
    FSDP_TRY(take_over(c, folder, &a, function));
    FSDP_TRY(fsdpi_cache_open(&c->cache, folder, a.run, c->folder.job, function));
    return fsdpi_caching_reserve(c, function);
}

/* ---- caching --------------------------------------------------------------------------------------------------------- */

static fsdp_status check(fsdp_checkpoint *c, const fsdp_checkpoint_state *program, description *d)
{
    fsdpi_problem problem = {0};

    *d = (description){.files = NULL};
    FSDP_TRY(fsdpi_save_check_state(c, CACHE, program));
    if (!c->options.cached) {
        return fsdpi_fail_together(c->ctx, FSDP_ERR_STATE,
                                   CACHE
                                   ": there is no room for it; set `cached` in the options of fsdp_checkpoint_open");
    }
    FSDP_TRY(fsdpi_save_check_models(c, CACHE));
    if (c->cache.ctx == NULL) {
        return FSDP_OK;
    }
    const fsdp_status status = describe(c, program, d, &problem);
    return status == FSDP_OK ? FSDP_OK : fsdpi_fail_problem(c->ctx, CACHE, &problem);
}

static bool is_on_device(const fsdp_checkpoint *c)
{
    for (const fsdpi_saved_model *saved = c->models; saved != NULL; saved = saved->next) {
        if (fsdpi_is_on_device(saved->model)) {
            return true;
        }
    }
    return false;
}

/* Makes room, if any rank has more than before. */
static fsdp_status make_room(fsdp_checkpoint *c, const fsdpi_cache_sizes *sizes)
{
    int32_t grows = fsdpi_cache_must_grow(&c->cache, sizes);

    FSDP_TRY(fsdp_allreduce(c->ctx, FSDP_IN_PLACE, &grows, 1, FSDP_I32, FSDP_MAX));
    return grows != 0 ? fsdpi_cache_reserve(&c->cache, sizes, CACHE) : FSDP_OK;
}

/* The state of all ranks is agreed upon, and the generation before is whole. */
static fsdp_status cache(fsdp_checkpoint *c, const fsdp_checkpoint_state *program, const description *d)
{
    const fsdpi_cache_sizes sizes = measure(c, description_bytes(d));

    FSDP_TRY(make_room(c, &sizes));
    const fsdpi_cache_file *file   = fsdpi_cache_begin(&c->cache, &sizes, program->step, c->flushed);
    fsdp_status             status = copy(c, file);
    if (d->files != NULL) {
        fsdpi_cache_meta_write(&d->meta, fsdpi_cache_meta_of(file));
    }
    if (is_on_device(c)) { /* elsewhere no copy can fail */
        status = status == FSDP_OK
                     ? FSDP_OK
                     : fsdpi_fail_together(c->ctx, status, CACHE ": the model's memory on the GPU could not be read");
        status = fsdpi_agree(c->ctx, CACHE, "copying", 0, status, true);
    }
    if (status != FSDP_OK) {
        fsdpi_cache_give_up(&c->cache);
        return status;
    }
    fsdpi_cache_written(&c->cache);
    return FSDP_OK;
}

/* Rows and bytes of the program lie where an asynchronous save may still read them. */
static bool moves_arrays(const fsdp_checkpoint *c)
{
    for (const fsdpi_array *array = c->arrays.first; array != NULL; array = array->next) {
        if (array->n_bytes != NULL || array->keyed != NULL) {
            return true;
        }
    }
    return c->arrays.changed;
}

static fsdp_status check_and_cache(fsdp_checkpoint *c, const fsdp_checkpoint_state *program)
{
    description d;
    fsdp_status status = check(c, program, &d), complete = fsdpi_cache_complete(&c->cache);

    status = fsdpi_save_agree_on_state(c, CACHE, program, status == FSDP_OK ? complete : status);
    if (status == FSDP_OK && c->cache.ctx != NULL) {
        status = cache(c, program, &d);
    }
    description_free(&d);
    return status;
}

fsdp_status fsdp_checkpoint_cache(fsdp_checkpoint *checkpoint, const fsdp_checkpoint_state *state)
{
    if (checkpoint == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, CACHE ": the checkpoint is NULL; pass one from fsdp_checkpoint_open");
    }
    if (moves_arrays(checkpoint)) {
        FSDP_TRY(fsdp_checkpoint_wait(checkpoint));
    }
    fsdp_status status = fsdpi_save_lay_arrays_out(checkpoint, CACHE);
    if (status == FSDP_OK) {
        status = check_and_cache(checkpoint, state);
    }
    if (moves_arrays(checkpoint)) {
        fsdpi_save_release_rows(checkpoint);
    }
    return status;
}
