/*
 * Loading: one agreement behind each of finding, matching, checking and reading, so that nothing changes on any rank before
 * all ranks know that everything is there and whole.
 * Cost: each rank reads what it holds twice, the second time usually from the page cache; whole chunks the first time.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collectives/collectives.h"
#include "lib/base/hash.h"
#include "lib/base/options.h"
#include "lib/device/memory.h"
#include "shard/checkpoint/common/checks.h"
#include "shard/checkpoint/format/folder.h"
#include "shard/checkpoint/format/model_name.h"
#include "shard/checkpoint/format/state.h"
#include "shard/checkpoint/read/arrays.h"
#include "shard/checkpoint/read/model_source.h"
#include "shard/checkpoint/write/checkpoint.h"
#include "shard/schedule/failed_step.h"
#include "shard/schedule/gather.h"

#define LOAD    "fsdp_checkpoint_load"
#define RESTORE "fsdp_checkpoint_restore"
#define LATEST  "fsdp_checkpoint_latest"

typedef struct load {
    const char                  *function;
    fsdp_context                *ctx;
    bool                         is_restore; /* of all that a checkpoint consists of */
    fsdp_checkpoint_load_options options;
    char                         path[FSDP_CHECKPOINT_PATH_BYTES];
    bool                         is_folder; /* a checkpoint, not just a file */
    fsdpi_state                  state;
    size_t                       n_models;
    fsdpi_model_source          *models;
    fsdpi_array_source           arrays;
    fsdpi_problem                problem;
    void                        *scratch;
} load;

/* ---- finding ----------------------------------------------------------------------------------------------------- */

/* Rank 0's answer to all. */
static fsdp_status share_path(fsdp_context *ctx, const char *function, char *path, fsdp_status status)
{
    FSDP_TRY(fsdpi_agree(ctx, function, "finding", 0, status, true));
    return fsdp_broadcast(ctx, path, FSDP_CHECKPOINT_PATH_BYTES, FSDP_U8, 0);
}

/* "" where there is none. Paths have passed fsdpi_check_path(), which leaves room for the name. */
static fsdp_status find_latest(const char *folder, char *path, fsdpi_problem *problem)
{
    char name[FSDPI_FOLDER_NAME_BYTES];

    path[0] = '\0';
    FSDP_TRY(fsdpi_folder_latest(folder, name, problem));
    if (name[0] != '\0') {
        (void)snprintf(path, FSDP_CHECKPOINT_PATH_BYTES, "%s/%s", folder, name);
    }
    return FSDP_OK;
}

fsdp_status fsdp_checkpoint_latest(fsdp_context *ctx, const char *folder, char *path, size_t size)
{
    char          found[FSDP_CHECKPOINT_PATH_BYTES] = "";
    fsdpi_problem problem                           = {0};

    if (ctx == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, LATEST ": the context is NULL; pass one from fsdp_init");
    }
    fsdp_status status = fsdpi_check_path(ctx, LATEST, folder);
    if (status == FSDP_OK && (path == NULL || size < sizeof found)) {
        status = fsdpi_fail_together(ctx, FSDP_ERR_ARG,
                                     LATEST ": room for %zu bytes of path; FSDP_CHECKPOINT_PATH_BYTES are %zu",
                                     path != NULL ? size : 0, sizeof found);
    }
    if (status == FSDP_OK && ctx->rank == 0 && find_latest(folder, found, &problem) != FSDP_OK) {
        status = fsdpi_fail_problem(ctx, LATEST, &problem);
    }
    status = share_path(ctx, LATEST, found, status);
    if (status == FSDP_OK && path != NULL) {
        memcpy(path, found, sizeof found);
    }
    return status;
}

static bool has_state(const char *folder)
{
    char path[FSDPI_FOLDER_PATH_BYTES];

    fsdpi_path_join(path, folder, FSDPI_STATE_FILE);
    return access(path, F_OK) == 0;
}

/* A folder that is no checkpoint is one of checkpoints. */
static fsdp_status find_path(const char *given, char *path, fsdpi_problem *problem)
{
    struct stat about;

    if (stat(given, &about) != 0) {
        return fsdpi_problem_errno(problem, given, "find");
    }
    if (!S_ISDIR(about.st_mode) || has_state(given)) {
        memcpy(path, given, strlen(given) + 1);
        return FSDP_OK;
    }
    FSDP_TRY(find_latest(given, path, problem));
    return path[0] != '\0' ? FSDP_OK
                           : fsdpi_problem_set(problem, FSDP_ERR_IO,
                                               "%s: has neither a state.json nor a `latest`; give a checkpoint", given);
}

static fsdp_status find(load *l, const char *given)
{
    struct stat about;
    fsdp_status status = FSDP_OK;

    if (l->ctx->rank == 0 && find_path(given, l->path, &l->problem) != FSDP_OK) {
        status = fsdpi_fail_problem(l->ctx, l->function, &l->problem);
    }
    FSDP_TRY(share_path(l->ctx, l->function, l->path, status));
    if (stat(l->path, &about) != 0) {
        (void)fsdpi_problem_errno(&l->problem, l->path, "find");
        status = fsdpi_fail_problem(l->ctx, l->function, &l->problem);
    } else {
        l->is_folder = S_ISDIR(about.st_mode);
    }
    return fsdpi_agree(l->ctx, l->function, "the same path", (uint64_t)l->is_folder, status, true);
}

/* ---- matching ---------------------------------------------------------------------------------------------------- */

static fsdp_status refuse(load *l, fsdp_status status, const char *why)
{
    return fsdpi_problem_set(&l->problem, status, "%s: %s", l->path, why);
}

/* A model that is asked for by its name, or the one without, of a checkpoint which has others. */
static fsdp_status check_there(load *l)
{
    char names[FSDPI_PROBLEM_BYTES / 4];

    if (l->is_restore || !l->is_folder) {
        return FSDP_OK;
    }
    const char *name = l->models[0].name;
    if (name[0] != '\0') {
        return fsdpi_state_model(&l->state, name) != NULL
                   ? FSDP_OK
                   : fsdpi_problem_set(&l->problem, FSDP_ERR_ARG, "%s: has no model '%s'; those with a name: %s",
                                       l->path, name, fsdpi_state_names(&l->state, names, sizeof names));
    }
    return l->state.models->next == NULL || fsdpi_state_has_files(&l->state, FSDPI_MODEL_STEM)
               ? FSDP_OK
               : fsdpi_problem_set(&l->problem, FSDP_ERR_ARG,
                                   "%s: all its models have names; give the options' `model` one of %s", l->path,
                                   fsdpi_state_names(&l->state, names, sizeof names));
}

static fsdp_status open_models(load *l)
{
    FSDP_TRY(check_there(l));
    for (size_t i = 0; i < l->n_models; i++) {
        FSDP_TRY(fsdpi_model_source_open(&l->models[i], l->path, l->is_folder, &l->state, &l->problem));
    }
    return FSDP_OK;
}

static fsdp_status refuse_misfits(load *l, const fsdpi_misfits *m)
{
    char options[128];

    if (m->missing + m->extra + m->mis_shaped == 0) {
        return FSDP_OK;
    }
    (void)snprintf(options, sizeof options, "%s%s%s", m->missing > 0 ? " allow_missing" : "",
                   m->extra > 0 ? " allow_extra" : "", m->mis_shaped > 0 ? " allow_mis_shaped" : "");
    return fsdpi_problem_set(
        &l->problem, FSDP_ERR_ARG,
        "tensors do not fit: %zu missing, %zu extra, %zu of another shape or type; the first: %.90s; "
        "is it another model? Else set%s",
        m->missing, m->extra, m->mis_shaped, m->first, options);
}

static bool is_loaded(const load *l, const char *name)
{
    for (size_t i = 0; i < l->n_models; i++) {
        if (strcmp(l->models[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

/* As with arrays: models with a name that have not been added. The one without a name is loaded by whoever wants it. */
static void find_extra_models(const load *l, fsdpi_misfits *misfits)
{
    const fsdpi_model_state *model   = l->state.models;
    fsdpi_problem            problem = {0};

    for (; model != NULL && l->is_restore && !l->options.allow_extra; model = model->next) {
        if (model->name[0] != '\0' && !is_loaded(l, model->name)) {
            misfits->extra++;
            (void)fsdpi_problem_set(&problem, FSDP_ERR_ARG, "model '%s' is in the checkpoint and has not been added",
                                    model->name);
            fsdpi_misfit_tell(l->ctx, l->function, &problem, misfits);
        }
    }
}

static fsdp_status match_all(load *l)
{
    fsdpi_misfits misfits = {0};

    for (size_t i = 0; i < l->n_models; i++) {
        FSDP_TRY(fsdpi_model_source_match(&l->models[i], &l->options, &misfits, &l->problem));
    }
    find_extra_models(l, &misfits);
    fsdpi_array_source_match(&l->arrays, &l->options, &misfits);
    return refuse_misfits(l, &misfits);
}

static fsdp_status read_state(load *l)
{
    char path[FSDPI_FOLDER_PATH_BYTES];

    if (!l->is_folder && l->options.model != NULL) {
        return refuse(l, FSDP_ERR_ARG,
                      "is a file, of one model; leave the options' `model` NULL, or give a checkpoint");
    }
    if (!l->is_folder) {
        return l->n_models == 0 || l->models[0].optimizer == NULL
                   ? FSDP_OK
                   : refuse(l, FSDP_ERR_ARG,
                            "is a file without an optimizer's state; give a checkpoint, or NULL for it");
    }
    fsdpi_path_join(path, l->path, FSDPI_STATE_FILE);
    return fsdpi_state_read(path, &l->state, &l->problem);
}

/* ---- checking ---------------------------------------------------------------------------------------------------- */

/* Before the tensors are matched: so that damage is not taken for another model. */
static fsdp_status verify_headers(load *l)
{
    if (!l->is_folder) {
        return FSDP_OK;
    }
    for (size_t i = 0; i < l->n_models; i++) {
        FSDP_TRY(fsdpi_model_source_verify_headers(&l->models[i], l->path, &l->state.sums, l->scratch, &l->problem));
    }
    return fsdpi_array_source_verify_header(&l->arrays, &l->state.sums, l->scratch, &l->problem);
}

static fsdp_status verify(load *l)
{
    if (!l->is_folder) {
        return FSDP_OK;
    }
    for (size_t i = 0; i < l->n_models; i++) {
        FSDP_TRY(fsdpi_model_source_verify(&l->models[i], &l->state.sums, l->scratch, &l->problem));
    }
    return fsdpi_array_source_verify(&l->arrays, &l->state.sums, l->scratch, &l->problem);
}

static fsdp_status prepare(load *l)
{
    FSDP_TRY(read_state(l));
    FSDP_TRY(open_models(l));
    FSDP_TRY(fsdpi_array_source_open(&l->arrays, &l->state.sums, l->path, &l->problem));
    FSDP_TRY(verify_headers(l));
    FSDP_TRY(match_all(l));
    return fsdpi_array_source_make_room(&l->arrays, &l->problem);
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static fsdp_status read_all(load *l)
{
    FSDP_TRY(fsdpi_array_source_read(&l->arrays, l->scratch, &l->problem));
    for (size_t i = 0; i < l->n_models; i++) {
        FSDP_TRY(fsdpi_model_source_read(&l->models[i], l->scratch, &l->problem));
    }
    return FSDP_OK;
}

static fsdp_status fail(load *l, const char *outcome)
{
    return fsdpi_fail_together(l->ctx, l->problem.status, "%s: %s%s", l->function, outcome, l->problem.text);
}

static fsdp_status agree(load *l, const char *label, uint64_t salt, fsdp_status status, const char *outcome)
{
    return fsdpi_agree(l->ctx, l->function, label, salt, status == FSDP_OK ? FSDP_OK : fail(l, outcome), true);
}

static uint64_t fingerprint(const load *l)
{
    const fsdpi_state *s    = &l->state;
    uint64_t           hash = fsdpi_hash_u64(FSDPI_HASH_START, s->program.step);

    hash = fsdpi_hash_text(hash, s->program.text);
    for (const fsdpi_model_state *model = s->models; model != NULL; model = model->next) {
        hash = fsdpi_hash_text(hash, model->name);
    }
    for (size_t f = 0; f < s->sums.n_files; f++) {
        for (size_t i = 0; i < s->sums.files[f].n_chunks; i++) {
            hash = fsdpi_hash_u64(hash, s->sums.files[f].chunks[i].sum);
        }
    }
    for (size_t i = 0; i < l->n_models; i++) {
        hash = fsdpi_model_source_fingerprint(&l->models[i], hash);
    }
    return fsdpi_array_source_fingerprint(&l->arrays, hash);
}

/* Counters, and the parameters that views are gathered from, are those that have been read. */
static fsdp_status finish(load *l)
{
    for (size_t i = 0; i < l->n_models; i++) {
        fsdpi_model_source_set_counters(&l->models[i]);
    }
    for (size_t i = 0; i < l->n_models; i++) {
        FSDP_TRY(l->models[i].is_absent ? FSDP_OK : fsdpi_gather_refresh(l->models[i].model, true));
    }
    return FSDP_OK;
}

static fsdp_status load_all(load *l)
{
    l->scratch         = fsdpi_alloc(l->ctx, FSDP_MEMORY_STAGING, FSDPI_READ_BYTES);
    fsdp_status status = l->scratch != NULL ? FSDP_OK : fsdpi_problem_memory(&l->problem, l->path, FSDPI_READ_BYTES);

    for (size_t i = 0; i < l->n_models; i++) {
        status = fsdpi_model_source_share(&l->models[i], l->function, status, &l->problem);
    }
    status = status == FSDP_OK ? prepare(l) : status;

    FSDP_TRY(agree(l, "the same files", status == FSDP_OK ? fingerprint(l) : 0, status, ""));
    FSDP_TRY(agree(l, "checksums", 0, verify(l), ""));
    FSDP_TRY(agree(l, "reading", 0, read_all(l), "the state is undefined, load again: "));
    return finish(l);
}

/* ---- the public function ----------------------------------------------------------------------------------------- */

static fsdp_status check_renames(const load *l)
{
    const fsdp_checkpoint_load_options *o = &l->options;

    if (o->renames == NULL && o->n_renames > 0) {
        return fsdpi_fail_together(l->ctx, FSDP_ERR_ARG, "%s: %zu renames at NULL", l->function, o->n_renames);
    }
    for (size_t i = 0; i < o->n_renames; i++) {
        if (o->renames[i].from == NULL) {
            return fsdpi_fail_together(l->ctx, FSDP_ERR_ARG,
                                       "%s: rename %zu is from NULL; \"\" stands before every name", l->function, i);
        }
    }
    return FSDP_OK;
}

static fsdp_status check_name(const load *l)
{
    const char *name  = l->options.model;
    const char *wrong = name != NULL ? fsdpi_model_name_wrong(name) : NULL;

    if (name != NULL && l->is_restore) {
        return fsdpi_fail_together(l->ctx, FSDP_ERR_ARG,
                                   "%s: the options' `model` is '%.100s', and all models are restored; leave it NULL, "
                                   "or call fsdp_checkpoint_load",
                                   l->function, name);
    }
    return wrong == NULL
               ? FSDP_OK
               : fsdpi_fail_together(l->ctx, FSDP_ERR_ARG, "%s: the options' `model` is '%.100s': the name %s",
                                     l->function, name, wrong);
}

static fsdp_status check_model(const load *l, const fsdpi_model_source *source)
{
    char where[FSDP_CHECKPOINT_NAME_BYTES + 64];

    (void)snprintf(where, sizeof where, "%s%s%s%s", l->function, source->name[0] != '\0' ? ": model '" : "",
                   source->name, source->name[0] != '\0' ? "'" : "");
    fsdp_status status = fsdpi_check_optimizer(source->model, where, source->optimizer);
    status             = status == FSDP_OK ? fsdpi_check_at_step_end(source->model, where) : status;
    fsdpi_error_hand_on(source->model->ctx, l->ctx, status);
    return status;
}

/* All of them, as in a save: gradients that are under way are waited for, on all ranks alike. */
static fsdp_status check_models(const load *l)
{
    fsdp_status status = FSDP_OK;

    for (size_t i = 0; i < l->n_models; i++) {
        const fsdp_status own = check_model(l, &l->models[i]);

        status = status == FSDP_OK ? own : status;
    }
    return status;
}

static fsdp_status check_load(const load *l, const char *path)
{
    FSDP_TRY(fsdpi_check_path(l->ctx, l->function, path));
    FSDP_TRY(check_renames(l));
    FSDP_TRY(check_name(l));
    return check_models(l);
}

static uint64_t hash_arguments(const char *path, const fsdp_checkpoint_load_options *o)
{
    uint64_t hash = fsdpi_hash_text(fsdpi_hash_text(FSDPI_HASH_START, path), o->model != NULL ? o->model : "");

    for (size_t i = 0; i < o->n_renames; i++) {
        hash = fsdpi_hash_text(fsdpi_hash_text(hash, o->renames[i].from),
                               o->renames[i].to != NULL ? o->renames[i].to : "");
    }
    return hash;
}

static void describe(const load *l, const char *path, char *label, size_t size)
{
    const char *model = l->options.model;

    (void)snprintf(label, size, "'%.120s'%s%.64s%s%s%s%s, %zu renames", path != NULL ? path : "",
                   model != NULL ? ", model " : "", model != NULL ? model : "",
                   l->n_models > 0 && l->models[0].optimizer != NULL ? ", optimizer" : "",
                   l->options.allow_missing ? ", allow_missing" : "", l->options.allow_extra ? ", allow_extra" : "",
                   l->options.allow_mis_shaped ? ", allow_mis_shaped" : "", l->options.n_renames);
}

static void release(load *l)
{
    fsdpi_free(l->ctx, FSDP_MEMORY_STAGING, l->scratch, FSDPI_READ_BYTES);
    for (size_t i = 0; i < l->n_models; i++) {
        fsdpi_model_source_close(&l->models[i]);
    }
    fsdpi_array_source_close(&l->arrays);
    fsdpi_state_free(&l->state);
}

void fsdp_checkpoint_load_options_init_size(fsdp_checkpoint_load_options *options, size_t size)
{
    static const fsdp_checkpoint_load_options defaults = FSDP_CHECKPOINT_LOAD_OPTIONS_DEFAULT;

    fsdpi_options_give(&defaults, sizeof defaults, options, size);
}

/* With the name, once the options are known. */
static void name_model(load *l)
{
    if (!l->is_restore && l->options.model != NULL) {
        l->models[0].name = l->options.model;
    }
}

static fsdp_status run(load *l, fsdp_status status, const char *path, const fsdp_checkpoint_load_options *options,
                       fsdp_checkpoint_state *state)
{
    char label[FSDPI_DETAIL_BYTES];

    if (status == FSDP_OK) {
        status = fsdpi_options_take(l->ctx, "fsdp_checkpoint_load_options", options, &l->options, sizeof l->options);
        name_model(l);
    }
    status = status == FSDP_OK ? check_load(l, path) : status;

    describe(l, path, label, sizeof label);
    FSDP_TRY(fsdpi_agree(l->ctx, l->function, label, status == FSDP_OK ? hash_arguments(path, &l->options) : 0, status,
                         true));
    status = find(l, path);
    if (status == FSDP_OK) {
        status = load_all(l);
    }
    if (status == FSDP_OK && state != NULL) {
        *state = l->state.program;
    }
    release(l);
    return status;
}

fsdp_status fsdp_checkpoint_load(fsdp_model *model, fsdp_optimizer *optimizer, const char *path,
                                 const fsdp_checkpoint_load_options *options, fsdp_checkpoint_state *state)
{

    if (model == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, LOAD ": the model is NULL; pass one from fsdp_model_create");
    }
    fsdpi_model_source source = {.name = "", .model = model, .optimizer = optimizer};
    load               l      = {.function = LOAD,
                                 .ctx      = model->plane.ctx,
                                 .options  = FSDP_CHECKPOINT_LOAD_OPTIONS_DEFAULT,
                                 .n_models = 1,
                                 .models   = &source};
    const fsdp_status  status = run(&l, FSDP_OK, path, options, state);
    fsdpi_error_hand_on(l.ctx, model->ctx, status);
    return status;
}

static size_t count_models(const fsdp_checkpoint *checkpoint)
{
    size_t n = 0;

    for (const fsdpi_saved_model *saved = checkpoint->models; saved != NULL; saved = saved->next) {
        n++;
    }
    return n;
}

/* All that an open checkpoint has, in `models`, of which there may be none; NULL: there is no memory. */
static fsdp_status list_models(load *l, const fsdp_checkpoint *checkpoint, fsdpi_model_source *models)
{
    l->models = models;
    for (const fsdpi_saved_model *saved = checkpoint->models; saved != NULL; saved = saved->next) {
        if (models == NULL) {
            return FSDP_ERR_MEMORY;
        }
        models[l->n_models++] =
            (fsdpi_model_source){.name = saved->state.name, .model = saved->model, .optimizer = saved->optimizer};
    }
    return FSDP_OK;
}

fsdp_status fsdp_checkpoint_restore(fsdp_checkpoint *checkpoint, const char *path,
                                    const fsdp_checkpoint_load_options *options, fsdp_checkpoint_state *state)
{
    if (checkpoint == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, RESTORE ": the checkpoint is NULL; pass one from fsdp_checkpoint_open");
    }
    FSDP_TRY(fsdp_checkpoint_wait(checkpoint)); /* `latest` may be the one that is being written */
    const size_t        bytes  = count_models(checkpoint) * sizeof(fsdpi_model_source);
    fsdpi_model_source *models = fsdpi_alloc(checkpoint->ctx, FSDP_MEMORY_BOOKKEEPING, bytes);
    load                l      = {.function   = RESTORE,
                                  .ctx        = checkpoint->ctx,
                                  .is_restore = true,
                                  .options    = FSDP_CHECKPOINT_LOAD_OPTIONS_DEFAULT,
                                  .arrays     = {.arrays = &checkpoint->arrays}};
    const fsdp_status   status = run(&l, list_models(&l, checkpoint, models), path, options, state);
    fsdpi_free(checkpoint->ctx, FSDP_MEMORY_BOOKKEEPING, models, bytes);
    return status;
}
