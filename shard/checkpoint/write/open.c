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
#include "shard/checkpoint/format/utf8.h"
#include "shard/checkpoint/write/commit.h"
#include "shard/checkpoint/write/sums.h"
#include "shard/checkpoint/write/work.h"
#include "shard/optimizer/optimizer.h"
#include "shard/state/tensor_groups.h"

#define OPEN "fsdp_checkpoint_open"

/* ---- what is wrong ----------------------------------------------------------------------------------------------- */

/* The masters' type; f32 where there is no model. */
static fsdp_dtype exact_dtype(const fsdp_model *model)
{
    return model != NULL ? model->master_dtype : FSDP_F32;
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

/* Files take no other names. */
static fsdp_status check_names(const fsdp_model *model)
{
    for (const fsdp_unit *unit = model->first; unit != NULL; unit = unit->next) {
        for (size_t t = 0; t < unit->n_tensors; t++) {
            const char  *name = unit->tensors[t].name;
            const size_t good = fsdpi_utf8_good(name);

            if (name[good] != '\0') {
                return fsdpi_fail_together(
                    model->ctx, FSDP_ERR_ARG,
                    OPEN ": unit '%s', tensor %zu, '%.*s...': the name is not UTF-8: byte %zu is 0x%02x; "
                         "rename it",
                    unit->name, t, (int)good, name, good, (unsigned)(unsigned char)name[good]);
            }
        }
    }
    for (const fsdpi_tensor_group *group = model->tensor_groups; group != NULL; group = group->next) {
        if (group->pattern[fsdpi_utf8_good(group->pattern)] != '\0') {
            return fsdpi_fail_together(model->ctx, FSDP_ERR_ARG,
                                       OPEN ": the pattern of a group is not UTF-8: '%.*s...'",
                                       (int)fsdpi_utf8_good(group->pattern), group->pattern);
        }
    }
    return FSDP_OK;
}

static fsdp_status check_model(fsdp_model *model, const fsdp_optimizer *optimizer)
{
    if (!model->committed) {
        return fsdpi_fail_together(model->ctx, FSDP_ERR_STATE,
                                   OPEN ": the model is not committed; call fsdp_model_commit first");
    }
    FSDP_TRY(fsdpi_check_optimizer(model, OPEN, optimizer));
    if (optimizer != NULL && fsdpi_count_optimizers(model) > FSDPI_MOST_GROUP_OPTIMIZERS) {
        return fsdpi_fail_together(model->ctx, FSDP_ERR_UNSUPPORTED,
                                   OPEN
                                   ": the model has %zu optimizers; a checkpoint holds at most %d, so use fewer groups",
                                   fsdpi_count_optimizers(model), FSDPI_MOST_GROUP_OPTIMIZERS);
    }
    return check_names(model);
}

static fsdp_status check_open(fsdp_context *ctx, fsdp_model *model, const fsdp_optimizer *optimizer, const char *folder,
                              const fsdp_checkpoint_options *options, fsdp_checkpoint *const *checkpoint)
{
    if (checkpoint == NULL) {
        return fsdpi_fail_together(ctx, FSDP_ERR_ARG, OPEN ": the place for the checkpoint is NULL");
    }
    FSDP_TRY(fsdpi_check_path(ctx, OPEN, folder));
    FSDP_TRY(model != NULL ? check_model(model, optimizer) : FSDP_OK);
    return check_options(ctx, model, options);
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

/* What the header says beside tensors: that PyTorch may open it, and whose names tensors have besides. */
typedef struct metadata {
    size_t           n;
    fsdpi_text_pair *pairs;
    char            *names;
} metadata;

static void metadata_free(metadata *m)
{
    free(m->pairs);
    free(m->names);
}

static void list_ties(const fsdp_model *model, metadata *m)
{
    char *name = m->names;

    for (const fsdp_unit *unit = model->first; unit != NULL; unit = unit->next) {
        for (size_t t = 0; t < unit->n_tensors; t++) {
            const fsdpi_tensor *tensor = &unit->tensors[t];

            if (tensor->owner != tensor) {
                (void)snprintf(name, FSDPI_NAME_BYTES + 8, "tied.%s", tensor->name);
                m->pairs[m->n++] = (fsdpi_text_pair){name, tensor->owner->name};
                name += strlen(name) + 1;
            }
        }
    }
}

/* Free it in any case. */
static fsdp_status metadata_make(const fsdp_model *model, metadata *m, fsdpi_problem *problem)
{
    const size_t most = fsdpi_count_tensors(model);

    *m = (metadata){.pairs = calloc(most + 1, sizeof *m->pairs), .names = calloc(most + 1, FSDPI_NAME_BYTES + 8)};
    if (m->pairs == NULL || m->names == NULL) {
        return fsdpi_problem_memory(problem, "the names of tied tensors", most * FSDPI_NAME_BYTES);
    }
    m->pairs[m->n++] = (fsdpi_text_pair){"format", "pt"};
    list_ties(model, m);
    return FSDP_OK;
}

static fsdp_status plan_stem(const fsdp_checkpoint *c, const char *name, const metadata *m, fsdpi_stem *stem,
                             fsdpi_problem *problem)
{
    return stem->parts.n == 0 ? FSDP_OK
                              : fsdpi_file_plan_make(name, stem->parts.infos, stem->parts.n, m->pairs, m->n,
                                                     c->options.file_bytes, &stem->plan, problem);
}

static fsdp_status plan_files(fsdp_checkpoint *c, const metadata *m, fsdpi_problem *problem)
{
    const metadata format    = {.n = 1, .pairs = m->pairs};
    fsdpi_stem    *model     = &c->stems[FSDPI_STEM_MODEL];
    fsdpi_stem    *optimizer = &c->stems[FSDPI_STEM_OPTIMIZER];

    FSDP_TRY(fsdpi_parts_of_model(c->model, c->options.dtype, &model->parts, problem));
    if (c->optimizer != NULL) {
        FSDP_TRY(
            fsdpi_parts_of_optimizers(c->model, c->options.dtype != exact_dtype(c->model), &optimizer->parts, problem));
    }
    FSDP_TRY(plan_stem(c, "model", m, model, problem));
    optimizer->first_file = model->plan.n_files + (model->plan.index != NULL);
    return plan_stem(c, "optimizer", &format, optimizer, problem);
}

static fsdp_status lay_out(fsdp_checkpoint *c)
{
    fsdpi_problem problem = {0};
    metadata      m;

    if (c->model == NULL) {
        return FSDP_OK;
    }
    fsdp_status status = metadata_make(c->model, &m, &problem);
    if (status == FSDP_OK) {
        status = plan_files(c, &m, &problem);
    }
    metadata_free(&m);
    if (status != FSDP_OK) {
        return fsdpi_fail_problem(c->ctx, OPEN, &problem);
    }
    return fsdpi_writer_open(c->model, c->stems, c->options.asynchronous != 0, &c->writer);
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

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

static fsdp_status open_all(fsdp_checkpoint *c)
{
    FSDP_TRY(fsdpi_agree(c->ctx, OPEN, "files", 0, lay_out(c), true));
    const fsdp_status status = fsdpi_sums_count(c, OPEN);
    FSDP_TRY(fsdpi_agree(c->ctx, OPEN, "folder", 0, status == FSDP_OK ? take_folder(c) : status, true));
    fsdpi_checkpoint_tell_unsynced(c);
    return find_folder(c);
}

static void release(fsdp_checkpoint *c)
{
    fsdp_context *ctx = c->ctx;

    fsdpi_work_join(c);
    if (c->phase != FSDPI_SAVE_IDLE && ctx->rank == 0 && ctx->copy_of == 0) {
        fsdpi_run_folder_abandon(&c->folder);
    }
    if (ctx->copy_of == 0) {
        fsdpi_run_folder_close(&c->folder);
    } else {
        fsdpi_folder_lock_forget(&c->folder.lock);
    }
    fsdpi_writer_close(&c->writer);
    fsdpi_keyed_free(&c->arrays);
    fsdpi_arrays_free(&c->arrays);
    for (size_t s = 0; s < FSDPI_N_STEMS; s++) {
        fsdpi_file_plan_free(&c->stems[s].plan);
        fsdpi_parts_free(&c->stems[s].parts);
    }
    fsdpi_free(ctx, FSDP_MEMORY_BOOKKEEPING, c, sizeof *c);
}

/* By fsdp_finalize(), where the program has not closed it: a save under way is given up. */
static void release_leaked(void *object)
{
    release(object);
}

static fsdp_status create(fsdp_context *ctx, fsdp_model *model, fsdp_optimizer *optimizer, const char *folder,
                          const fsdp_checkpoint_options *options, fsdp_checkpoint **made)
{
    fsdpi_problem    problem = {0};
    fsdp_checkpoint *c       = fsdpi_alloc(ctx, FSDP_MEMORY_BOOKKEEPING, sizeof *c);

    *made = c;
    if (c == NULL) {
        return FSDP_ERR_MEMORY;
    }
    c->ctx       = ctx;
    c->model     = model;
    c->optimizer = optimizer;
    c->options   = *options;
    if (optimizer != NULL) {
        c->n_optimizers = fsdpi_count_optimizers(model);
    }
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
        status      = create(ctx, model, optimizer, folder, &chosen, &made);
    }
    (void)snprintf(label, sizeof label, "folder '%.100s', %s, files of %zu, keep %zu and every %zu%s%s%s",
                   folder != NULL ? folder : "", fsdp_dtype_name(chosen.dtype), chosen.file_bytes, chosen.keep_last,
                   chosen.keep_every, chosen.asynchronous ? ", asynchronous" : "", model != NULL ? ", model" : "",
                   optimizer != NULL ? ", optimizer" : "");
    const uint64_t salt = fsdpi_hash_text(FSDPI_HASH_START, folder != NULL ? folder : "");
    status              = fsdpi_agree(ctx, OPEN, label, salt, status, true);
    if (status == FSDP_OK && made != NULL) {
        status = open_all(made);
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
    return model != NULL ? open_with(model->ctx, model, optimizer, folder, options, checkpoint)
                         : fsdpi_fail(NULL, FSDP_ERR_ARG,
                                      OPEN ": the model is NULL; pass one from fsdp_model_create, or use "
                                           "fsdp_checkpoint_open_folder");
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
    const size_t staging     = fsdpi_writer_staging(&checkpoint->writer) + fsdpi_arrays_staging(&checkpoint->arrays);
    const size_t bookkeeping = fsdpi_writer_bookkeeping(&checkpoint->writer) +
                               fsdpi_arrays_bookkeeping(&checkpoint->arrays) +
                               fsdpi_keyed_bookkeeping(&checkpoint->arrays) + fsdpi_alloc_size(sizeof *checkpoint);
    budget->bytes[FSDP_MEMORY_STAGING] += staging;
    budget->bytes[FSDP_MEMORY_BOOKKEEPING] += bookkeeping;
    budget->total += staging + bookkeeping;
    budget->mean_total += staging + bookkeeping;
    return FSDP_OK;
}
