/*
 * Saving, from phase to phase: see shard/checkpoint/write/checkpoint.h.
 * Cost: each rank copies what it writes once, through FSDPI_CHUNK_MOST of scratch or into its image, and sums it up, and writes 32
 * bytes for each chunk, which rank 0 reads; three agreements.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "collectives/collectives.h"
#include "lib/base/hash.h"
#include "shard/checkpoint/common/checks.h"
#include "shard/checkpoint/format/utf8.h"
#include "shard/checkpoint/write/commit.h"
#include "shard/checkpoint/write/output_file.h"
#include "shard/checkpoint/write/save.h"
#include "shard/checkpoint/write/sort_rows.h"
#include "shard/checkpoint/write/sums.h"
#include "shard/checkpoint/write/work.h"

#define SAVE       "fsdp_checkpoint_save"
#define SAVE_ASYNC "fsdp_checkpoint_save_async"

/* ---- work -------------------------------------------------------------------------------------------------------- */

static fsdp_status write_runs(fsdp_checkpoint *c)
{
    char path[FSDPI_FOLDER_PATH_BYTES];

    fsdpi_checkpoint_partial_path(c, path);
    for (fsdpi_saved_model *saved = c->models; saved != NULL; saved = saved->next) {
        FSDP_TRY(fsdpi_writer_write(&saved->writer, c->asynchronous, path, &c->problem));
    }
    FSDP_TRY(fsdpi_arrays_write(&c->arrays, fsdpi_saved_models_files(c->models), c->asynchronous, path, &c->problem));
    return fsdpi_sums_write(c);
}

static fsdp_status commit(fsdp_checkpoint *c)
{
    return c->ctx->rank == 0 ? fsdpi_checkpoint_commit(c) : FSDP_OK;
}

/* This rank's own verdict on its work, recorded. */
static fsdp_status verdict(fsdp_checkpoint *c)
{
    return c->status == FSDP_OK ? FSDP_OK : fsdpi_fail_problem(c->ctx, c->function, &c->problem);
}

/* ---- phases ------------------------------------------------------------------------------------------------------ */

void fsdpi_save_release_rows(fsdp_checkpoint *c)
{
    for (fsdpi_keyed *keyed = c->arrays.keyed; keyed != NULL; keyed = keyed->next) {
        fsdpi_keyed_release(c->ctx, keyed);
    }
}

/* Ends a save, with or without success: nothing of a failed one stays, unless `latest` names it already. */
static fsdp_status end(fsdp_checkpoint *c, fsdp_status status)
{
    if (status != FSDP_OK && c->ctx->rank == 0 && c->ctx->copy_of == 0) {
        fsdpi_run_folder_abandon(&c->folder);
    }
    fsdpi_checkpoint_tell_unsynced(c);
    fsdpi_save_release_rows(c);
    c->phase = FSDPI_SAVE_IDLE;
    if (status == FSDP_OK) {
        c->flushed = c->state.program.step + 1;
    }
    return status;
}

static fsdp_status begin_commit(fsdp_checkpoint *c)
{
    const fsdp_status status = fsdpi_agree(c->ctx, c->function, "writing", 0, verdict(c), true);

    if (status != FSDP_OK) {
        return end(c, status);
    }
    c->phase = FSDPI_SAVE_COMMITTING;
    fsdpi_work_start(c, commit);
    return FSDP_OK;
}

/* Whether the work of this phase is done on all ranks. Blocking, or else without waiting for files. */
static fsdp_status is_done(fsdp_checkpoint *c, bool blocking, bool *done)
{
    int32_t all = blocking || atomic_load_explicit(&c->done, memory_order_acquire);

    *done = true;
    if (!blocking) {
        FSDP_TRY(fsdp_allreduce(c->ctx, FSDP_IN_PLACE, &all, 1, FSDP_I32, FSDP_MIN));
        *done = all != 0;
    }
    if (*done) {
        fsdpi_work_join(c);
    }
    return FSDP_OK;
}

static fsdp_status advance(fsdp_checkpoint *c, bool blocking)
{
    while (c->phase != FSDPI_SAVE_IDLE) {
        bool done;

        FSDP_TRY(is_done(c, blocking, &done));
        if (!done) {
            return FSDP_OK;
        }
        if (c->phase == FSDPI_SAVE_COMMITTING) {
            return end(c, fsdpi_agree(c->ctx, c->function, "making it the latest", 0, verdict(c), true));
        }
        FSDP_TRY(begin_commit(c));
    }
    return FSDP_OK;
}

/* ---- beginning --------------------------------------------------------------------------------------------------- */

static void set_state(fsdp_checkpoint *c, const fsdp_checkpoint_state *program)
{
    fsdpi_model_state **end = &c->state.models;

    c->state               = (fsdpi_state){.program = *program};
    c->state.program.ranks = (uint64_t)c->ctx->size;
    for (fsdpi_saved_model *saved = c->models; saved != NULL; saved = saved->next) {
        fsdpi_saved_model_describe(saved);
        *end = &saved->state;
        end  = &saved->state.next;
    }
    *end = NULL;
}

/* Readers take nothing but UTF-8. */
fsdp_status fsdpi_save_check_state(fsdp_checkpoint *c, const char *function, const fsdp_checkpoint_state *program)
{
    if (program == NULL || memchr(program->text, '\0', sizeof program->text) == NULL) {
        return fsdpi_fail_together(c->ctx, FSDP_ERR_ARG, "%s: the state's %s", function,
                                   program == NULL ? "pointer is NULL" : "text has no end");
    }
    const size_t good = fsdpi_utf8_good(program->text);
    if (program->text[good] != '\0') {
        return fsdpi_fail_together(c->ctx, FSDP_ERR_ARG,
                                   "%s: the state's text is not UTF-8: byte %zu is 0x%02x; encode binary data as text",
                                   function, good, (unsigned)(unsigned char)program->text[good]);
    }
    return FSDP_OK;
}

/* All of them, whatever is wrong with one on this rank: gradients that are under way are waited for, on all ranks alike. */
fsdp_status fsdpi_save_check_models(const fsdp_checkpoint *c, const char *function)
{
    fsdp_status status = FSDP_OK;

    for (const fsdpi_saved_model *saved = c->models; saved != NULL; saved = saved->next) {
        const fsdp_status own = fsdpi_saved_model_check_save(saved, function);

        status = status == FSDP_OK ? own : status;
    }
    return status;
}

static fsdp_status check_save(fsdp_checkpoint *c, const char *function, bool asynchronous,
                              const fsdp_checkpoint_state *program)
{
    FSDP_TRY(fsdpi_save_check_state(c, function, program));
    if (asynchronous && !c->options.asynchronous) {
        return fsdpi_fail_together(
            c->ctx, FSDP_ERR_STATE,
            "%s: there is no room for a copy; set `asynchronous` in the options of fsdp_checkpoint_open", function);
    }
    return fsdpi_save_check_models(c, function);
}

/* All that ranks must agree on, but for what they hold. */
fsdp_status fsdpi_save_agree_on_state(fsdp_checkpoint *c, const char *function, const fsdp_checkpoint_state *program,
                                      fsdp_status status)
{
    char     label[FSDPI_DETAIL_BYTES] = "";
    uint64_t salt                      = FSDPI_HASH_START;

    if (status == FSDP_OK) {
        (void)snprintf(label, sizeof label, "step %" PRIu64 ", epoch %" PRIu64 ", sample %" PRIu64 ", seed %" PRIu64,
                       program->step, program->epoch, program->sample, program->seed);
        salt = fsdpi_hash_text(salt, program->text);
    }
    return fsdpi_agree(c->ctx, function, label, salt, status, true);
}

static fsdp_status make_arrays_file(fsdp_checkpoint *c, const char *folder)
{
    char path[FSDPI_FOLDER_PATH_BYTES];

    if (c->arrays.n == 0) {
        return FSDP_OK;
    }
    const fsdpi_planned_file *file = &c->arrays.plan.files[0];
    fsdpi_path_join(path, folder, file->name);
    return fsdpi_output_make(path, file->header, file->header_bytes, file->file_bytes, &c->problem);
}

static fsdp_status make_files(fsdp_checkpoint *c)
{
    char path[FSDPI_FOLDER_PATH_BYTES];

    c->problem = (fsdpi_problem){0};
    if (c->ctx->rank != 0) {
        return FSDP_OK;
    }
    fsdp_status status = fsdpi_run_folder_begin(&c->folder, &c->problem);
    if (status == FSDP_OK) {
        fsdpi_checkpoint_partial_path(c, path);
        for (const fsdpi_saved_model *saved = c->models; saved != NULL && status == FSDP_OK; saved = saved->next) {
            status = fsdpi_writer_make_files(&saved->writer, path, &c->problem);
        }
    }
    if (status == FSDP_OK) {
        status = make_arrays_file(c, path);
    }
    if (status == FSDP_OK) {
        status = fsdpi_sums_make(c);
    }
    return status == FSDP_OK ? FSDP_OK : fsdpi_fail_problem(c->ctx, c->function, &c->problem);
}

static void snapshot(fsdp_checkpoint *c)
{
    fsdpi_arrays_snapshot(&c->arrays);
    for (fsdpi_saved_model *saved = c->models; saved != NULL; saved = saved->next) {
        fsdpi_writer_snapshot(&saved->writer);
    }
}

/* What a rank does before it knows whether the others are saving the same: one agreement says that, and that all are ready. */
static fsdp_status get_ready(fsdp_checkpoint *c, const fsdp_checkpoint_state *program)
{
    FSDP_TRY(check_save(c, c->function, c->asynchronous, program));
    set_state(c, program);
    fsdpi_run_folder_name_partial(&c->folder, program->step);
    const fsdp_status made = make_files(c);
    if (c->asynchronous) {
        snapshot(c); /* before ranks meet: no thread takes a core from one that still copies */
    }
    return made;
}

/* Under FSDP_VERIFY=full: what is written once is the same on all ranks. */
static fsdp_status compare_replicated(fsdp_checkpoint *c, const char *function)
{
    char label[FSDPI_DETAIL_BYTES];

    if (c->ctx->config.verify != FSDP_VERIFY_FULL) {
        return FSDP_OK;
    }
    for (const fsdpi_array *array = c->arrays.first; array != NULL; array = array->next) {
        if (array->replicated) {
            (void)snprintf(label, sizeof label, "array '%.120s', alike on all ranks", array->name);
            FSDP_TRY(fsdpi_agree(c->ctx, function, label, fsdpi_array_hash(array), FSDP_OK, true));
        }
    }
    return FSDP_OK;
}

/* How many bytes rank 0 has: the same for all. */
static fsdp_status count_bytes(fsdp_checkpoint *c, const char *function)
{
    for (fsdpi_array *array = c->arrays.first; array != NULL; array = array->next) {
        if (array->n_bytes == NULL) {
            continue;
        }
        int64_t     n      = (int64_t)*array->n_bytes;
        fsdp_status status = FSDP_OK;
        if (c->ctx->rank == 0 && *array->n_bytes > array->room) {
            status =
                fsdpi_fail_together(c->ctx, FSDP_ERR_ARG, "%s: '%.200s' has %zu bytes, and was added with room for %zu",
                                    function, array->name, *array->n_bytes, array->room);
        }
        FSDP_TRY(fsdpi_agree(c->ctx, function, "bytes of the program", 0, status, true));
        FSDP_TRY(fsdp_broadcast(c->ctx, &n, 1, FSDP_I64, 0));
        fsdpi_bytes_set(&c->arrays, array, (size_t)n);
    }
    return FSDP_OK;
}

/* Each time there may be other rows, and other ranks may write them. */
static fsdp_status sort_rows(fsdp_checkpoint *c, const char *function)
{
    for (fsdpi_keyed *keyed = c->arrays.keyed; keyed != NULL; keyed = keyed->next) {
        FSDP_TRY(fsdpi_rows_sort(c->ctx, keyed, function));
        c->arrays.changed = true;
    }
    return FSDP_OK;
}

/* Behind fsdp_checkpoint_add() there is another file, with other chunks. */
static fsdp_status lay_arrays_out(fsdp_checkpoint *c, const char *function)
{
    fsdpi_problem problem = {0};

    FSDP_TRY(count_bytes(c, function));
    FSDP_TRY(sort_rows(c, function));
    if (!c->arrays.changed) {
        return FSDP_OK;
    }
    const fsdp_status status = fsdpi_arrays_lay_out(&c->arrays, &problem);
    FSDP_TRY(fsdpi_agree(c->ctx, function, "files of arrays", 0,
                         status == FSDP_OK ? FSDP_OK : fsdpi_fail_problem(c->ctx, function, &problem), true));
    return fsdpi_sums_count(c, function);
}

fsdp_status fsdpi_save_lay_arrays_out(fsdp_checkpoint *c, const char *function)
{
    FSDP_TRY(lay_arrays_out(c, function));
    return compare_replicated(c, function);
}

static fsdp_status begin(fsdp_checkpoint *c, const char *function, bool asynchronous,
                         const fsdp_checkpoint_state *program)
{
    c->function        = function;
    fsdp_status status = fsdpi_save_lay_arrays_out(c, function);
    if (status != FSDP_OK) {
        fsdpi_save_release_rows(c);
        return status;
    }
    c->asynchronous         = asynchronous;
    c->phase                = FSDPI_SAVE_WRITING;
    const fsdp_status ready = get_ready(c, program);
    status                  = fsdpi_save_agree_on_state(c, function, program, ready);
    if (status != FSDP_OK) {
        return end(c, status);
    }
    fsdpi_work_start(c, write_runs);
    return FSDP_OK;
}

static fsdp_status fail_null(const char *function)
{
    return fsdpi_fail(NULL, FSDP_ERR_ARG, "%s: the checkpoint is NULL; pass one from fsdp_checkpoint_open", function);
}

fsdp_status fsdp_checkpoint_save(fsdp_checkpoint *checkpoint, const fsdp_checkpoint_state *state)
{
    if (checkpoint == NULL) {
        return fail_null(SAVE);
    }
    FSDP_TRY(advance(checkpoint, true));
    FSDP_TRY(begin(checkpoint, SAVE, false, state));
    return advance(checkpoint, true);
}

fsdp_status fsdp_checkpoint_save_async(fsdp_checkpoint *checkpoint, const fsdp_checkpoint_state *state)
{
    if (checkpoint == NULL) {
        return fail_null(SAVE_ASYNC);
    }
    FSDP_TRY(advance(checkpoint, true));
    return begin(checkpoint, SAVE_ASYNC, true, state);
}

fsdp_status fsdp_checkpoint_progress(fsdp_checkpoint *checkpoint, int *done)
{
    if (checkpoint == NULL) {
        return fail_null("fsdp_checkpoint_progress");
    }
    fsdp_status status = advance(checkpoint, false);
    if (status == FSDP_OK) {
        status = fsdpi_cache_advance(&checkpoint->cache);
    }
    if (done != NULL) {
        *done = checkpoint->phase == FSDPI_SAVE_IDLE;
    }
    return status;
}

fsdp_status fsdp_checkpoint_wait(fsdp_checkpoint *checkpoint)
{
    if (checkpoint == NULL) {
        return fail_null("fsdp_checkpoint_wait");
    }
    FSDP_TRY(advance(checkpoint, true));
    return fsdpi_cache_complete(&checkpoint->cache);
}
