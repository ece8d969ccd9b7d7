/*
 * Opening and closing a folder of checkpoints: all that is the same in every save is worked out here.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/collectives.h"
#include "lib/base/hash.h"
#include "lib/base/log.h"
#include "lib/base/options.h"
#include "lib/device/memory.h"
#include "shard/checkpoint/arrays/keyed.h"
#include "shard/checkpoint/common/checks.h"
#include "shard/checkpoint/write/caching.h"
#include "shard/checkpoint/write/commit.h"
#include "shard/checkpoint/write/sums.h"
#include "shard/checkpoint/write/work.h"

#define OPEN "fsdp_checkpoint_open"

/* ---- what is wrong ----------------------------------------------------------------------------------------------- */

/* The masters' type; without a model f64, which those that are added may have. */
static fsdp_dtype exact_dtype(const fsdp_model *model)
{
    return model != NULL ? model->master_dtype : FSDP_F64;
}

static fsdp_status check_options(fsdp_context *ctx, const fsdp_model *model, const fsdp_checkpoint_options *o)
{
    if (o->dtype != FSDP_F32 && o->dtype != FSDP_BF16 && o->dtype != exact_dtype(model)) {
        return fsdpi_fail_together(
            ctx, FSDP_ERR_ARG, OPEN ": dtype is %s; use f32 or bf16%s, and start from FSDP_CHECKPOINT_OPTIONS_DEFAULT",
            fsdp_dtype_name(o->dtype), o->dtype == FSDP_F64 ? ", or f64 of a model in f64" : "");
    }
    if (o->keep_every > 0 && o->keep_last == 0) {
        return fsdpi_fail_together(
            ctx, FSDP_ERR_ARG,
            OPEN ": keep_every is %zu and keep_last 0, which keeps all; set keep_last, or keep_every to 0",
            o->keep_every);
    }
    return FSDP_OK;
}

static fsdp_status check_open(fsdp_context *ctx, fsdp_model *model, const fsdp_optimizer *optimizer, const char *folder,
                              const fsdp_checkpoint_options *options, fsdp_checkpoint *const *checkpoint)
{
    if (checkpoint == NULL) {
        return fsdpi_fail_together(ctx, FSDP_ERR_ARG, OPEN ": the place for the checkpoint is NULL");
    }
    FSDP_TRY(fsdpi_check_path(ctx, OPEN, folder));
    FSDP_TRY(model != NULL ? fsdpi_saved_model_check(model, optimizer, OPEN) : FSDP_OK);
    return check_options(ctx, model, options);
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

/* The files of the model, where there is one. */
static fsdp_status lay_out(fsdp_checkpoint *c, fsdp_model *model, fsdp_optimizer *optimizer)
{
    return model != NULL ? fsdpi_saved_model_make("", model, optimizer, &c->options, NULL, OPEN, &c->models) : FSDP_OK;
}

/* Where another lock is held than flock(2)'s. */
static void tell_lock(const fsdp_checkpoint *c)
{
    const fsdpi_folder_lock *lock = &c->folder.lock;
    char                     text[128];

    if (lock->owner.path[0] != '\0') {
        fsdpi_log(c->ctx, FSDP_LOG_INFO, "%s holds this folder (flock: %s)", lock->owner.path,
                  lock->no_flock != 0 ? strerror_r(lock->no_flock, text, sizeof text)
                                      : "other hosts may not hear of it");
    }
}

static fsdp_status take_folder(fsdp_checkpoint *c)
{
    fsdpi_problem problem = {0};

    if (c->ctx->rank != 0) {
        return FSDP_OK;
    }
    const fsdp_checkpoint_lock lock   = (fsdp_checkpoint_lock)c->ctx->config.checkpoint_lock;
    fsdp_status                status = fsdpi_run_folder_open(&c->folder, lock, &problem);
    if (status == FSDP_OK) {
        tell_lock(c);
        status = fsdpi_run_folder_mark(&c->folder, &problem);
    }
    return status == FSDP_OK ? FSDP_OK : fsdpi_fail_problem(c->ctx, OPEN, &problem);
}

/* Whether rank 0's folder is every rank's. */
static fsdp_status find_folder(fsdp_checkpoint *c)
{
    fsdpi_problem problem = {0};
    fsdp_status   status  = fsdp_broadcast(c->ctx, c->folder.job, FSDPI_JOB_BYTES, FSDP_U8, 0);

    if (status == FSDP_OK) {
        status = fsdpi_run_folder_find_mark(&c->folder, &problem) == FSDP_OK
                     ? FSDP_OK
                     : fsdpi_fail_problem(c->ctx, OPEN, &problem);
        status = fsdpi_agree(c->ctx, OPEN, "the same folder", 0, status, true);
    }
    if (c->ctx->rank == 0) {
        fsdpi_run_folder_unmark(&c->folder);
    }
    return status;
}

static fsdp_status open_all(fsdp_checkpoint *c, fsdp_model *model, fsdp_optimizer *optimizer)
{
    FSDP_TRY(fsdpi_agree(c->ctx, OPEN, "files", 0, lay_out(c, model, optimizer), true));
    const fsdp_status status = fsdpi_sums_count(c, OPEN);
    FSDP_TRY(fsdpi_agree(c->ctx, OPEN, "folder", 0, status == FSDP_OK ? take_folder(c) : status, true));
    fsdpi_checkpoint_tell_unsynced(c);
    FSDP_TRY(find_folder(c));
    return fsdpi_caching_open(c, OPEN);
}

static void release(fsdp_checkpoint *c)
{
    fsdp_context *ctx = c->ctx;

    fsdpi_work_join(c);
    fsdpi_cache_close(&c->cache, !c->drops_cache);
    if (c->phase != FSDPI_SAVE_IDLE && ctx->rank == 0 && ctx->copy_of == 0) {
        fsdpi_run_folder_abandon(&c->folder);
    }
    if (ctx->copy_of == 0) {
        fsdpi_run_folder_close(&c->folder);
    } else {
        fsdpi_folder_lock_forget(&c->folder.lock);
    }
    while (c->models != NULL) {
        fsdpi_saved_model *saved = c->models;

        c->models = saved->next;
        fsdpi_saved_model_free(saved);
    }
    fsdpi_keyed_free(&c->arrays);
    fsdpi_arrays_free(&c->arrays);
    fsdpi_free(ctx, FSDP_MEMORY_BOOKKEEPING, c, sizeof *c);
}

/* By fsdp_finalize(), where the program has not closed it: a save under way is given up. */
static void release_leaked(void *object)
{
    release(object);
}

static fsdp_status create(fsdp_context *ctx, const char *folder, const fsdp_checkpoint_options *options,
                          fsdp_checkpoint **made)
{
    fsdpi_problem    problem = {0};
    fsdp_checkpoint *c       = fsdpi_alloc(ctx, FSDP_MEMORY_BOOKKEEPING, sizeof *c);

    *made = c;
    if (c == NULL) {
        return FSDP_ERR_MEMORY;
    }
    c->ctx        = ctx;
    c->options    = *options;
    c->arrays.ctx = ctx;
    return fsdpi_run_folder_set(&c->folder, folder, &problem) == FSDP_OK ? FSDP_OK
                                                                         : fsdpi_fail_problem(c->ctx, OPEN, &problem);
}

void fsdp_checkpoint_options_init_size(fsdp_checkpoint_options *options, size_t size)
{
    static const fsdp_checkpoint_options defaults = FSDP_CHECKPOINT_OPTIONS_DEFAULT;

    fsdpi_options_give(&defaults, sizeof defaults, options, size);
}

static fsdp_status open_with(fsdp_context *ctx, fsdp_model *model, fsdp_optimizer *optimizer, const char *folder,
                             const fsdp_checkpoint_options *options, fsdp_checkpoint **checkpoint)
{
    fsdp_checkpoint_options chosen = FSDP_CHECKPOINT_OPTIONS_DEFAULT;
    char                    label[FSDPI_DETAIL_BYTES];
    fsdp_checkpoint        *made = NULL;

    fsdp_status status = fsdpi_options_take(ctx, "fsdp_checkpoint_options", options, &chosen, sizeof chosen);
    status             = status == FSDP_OK ? check_open(ctx, model, optimizer, folder, &chosen, checkpoint) : status;
    if (status == FSDP_OK) {
        *checkpoint = NULL;
        status      = create(ctx, folder, &chosen, &made);
    }
    (void)snprintf(label, sizeof label, "folder '%.100s', %s, files of %zu, keep %zu and every %zu%s%s%s%s",
                   folder != NULL ? folder : "", fsdp_dtype_name(chosen.dtype), chosen.file_bytes, chosen.keep_last,
                   chosen.keep_every, chosen.asynchronous ? ", asynchronous" : "", chosen.cached ? ", cached" : "",
                   model != NULL ? ", model" : "", optimizer != NULL ? ", optimizer" : "");
    const uint64_t salt = fsdpi_hash_text(FSDPI_HASH_START, folder != NULL ? folder : "");
    status              = fsdpi_agree(ctx, OPEN, label, salt, status, true);
    if (status == FSDP_OK && made != NULL) {
        status = open_all(made, model, optimizer);
    }
    if (status != FSDP_OK || made == NULL) {
        if (made != NULL) {
            release(made);
        }
        return status;
    }
    fsdpi_own(made->ctx, &made->owned, "checkpoint", made, release_leaked);
    *checkpoint = made;
    return FSDP_OK;
}

fsdp_status fsdp_checkpoint_open(fsdp_model *model, fsdp_optimizer *optimizer, const char *folder,
                                 const fsdp_checkpoint_options *options, fsdp_checkpoint **checkpoint)
{
    if (model == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG,
                          OPEN
                          ": the model is NULL; pass one from fsdp_model_create, or use fsdp_checkpoint_open_folder");
    }
    const fsdp_status status = open_with(model->plane.ctx, model, optimizer, folder, options, checkpoint);
    fsdpi_error_hand_on(model->plane.ctx, model->ctx, status);
    return status;
}

fsdp_status fsdp_checkpoint_open_folder(fsdp_context *ctx, const char *folder, const fsdp_checkpoint_options *options,
                                        fsdp_checkpoint **checkpoint)
{
    return ctx != NULL ? open_with(ctx, NULL, NULL, folder, options, checkpoint)
                       : fsdpi_fail(NULL, FSDP_ERR_ARG, OPEN "_folder: the context is NULL; pass one from fsdp_init");
}

fsdp_status fsdp_checkpoint_close(fsdp_checkpoint *checkpoint)
{
    if (checkpoint == NULL) {
        return FSDP_OK;
    }
    const fsdp_status status = fsdp_checkpoint_wait(checkpoint);
    /* What is newer than `latest` stays: the next program in this folder takes it over. */
    checkpoint->drops_cache = status == FSDP_OK && checkpoint->cache.step + 1 <= checkpoint->flushed;
    fsdpi_disown(checkpoint->ctx, &checkpoint->owned);
    release(checkpoint);
    return status;
}

fsdp_status fsdp_checkpoint_budget(const fsdp_checkpoint *checkpoint, fsdp_budget *budget)
{
    if (checkpoint == NULL || budget == NULL) {
        return fsdpi_fail(checkpoint != NULL ? checkpoint->ctx : NULL, FSDP_ERR_ARG,
                          "fsdp_checkpoint_budget: the %s NULL", budget == NULL ? "budget is" : "checkpoint is");
    }
    const size_t staging = fsdpi_saved_models_staging(checkpoint->models) + fsdpi_arrays_staging(&checkpoint->arrays) +
                           fsdpi_cache_staging(&checkpoint->cache);
    const size_t bookkeeping = fsdpi_saved_models_bookkeeping(checkpoint->models) +
                               fsdpi_arrays_bookkeeping(&checkpoint->arrays) +
                               fsdpi_keyed_bookkeeping(&checkpoint->arrays) +
                               fsdpi_cache_bookkeeping(&checkpoint->cache) + fsdpi_alloc_size(sizeof *checkpoint);
    budget->bytes[FSDP_MEMORY_STAGING] += staging;
    budget->bytes[FSDP_MEMORY_BOOKKEEPING] += bookkeeping;
    budget->total += staging + bookkeeping;
    budget->mean_total += staging + bookkeeping;
    return FSDP_OK;
}
