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
#include "shard/checkpoint/format/state.h"
#include "shard/checkpoint/read/arrays.h"
#include "shard/checkpoint/read/source.h"
#include "shard/checkpoint/write/checkpoint.h"
#include "shard/hooks/hook.h"
#include "shard/schedule/failed_step.h"
#include "shard/schedule/gather.h"
#include "shard/state/tensor_groups.h"
#include "shard/storage/compute.h"

#define LOAD    "fsdp_checkpoint_load"
#define RESTORE "fsdp_checkpoint_restore"
#define LATEST  "fsdp_checkpoint_latest"

typedef struct load {
    const char                  *function;
    fsdp_context                *ctx;
    fsdp_model                  *model; /* NULL: none is loaded */
    fsdp_optimizer              *optimizer;
    fsdp_checkpoint_load_options options;
    char                         path[FSDP_CHECKPOINT_PATH_BYTES];
    bool                         is_folder; /* a checkpoint, not just a file */
    fsdpi_state                  state;
    fsdpi_source                 values, moments;
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

/* What was saved of an optimizer; NULL: nothing. */
static const char *saved_kind(const load *l, const fsdp_optimizer *optimizer, uint64_t *steps)
{
    if (optimizer->group == NULL) {
        *steps = l->state.optimizer_steps;
        return l->state.has_optimizer ? l->state.optimizer : NULL;
    }
    for (size_t i = 0; i < l->state.n_group_optimizers; i++) {
        const fsdpi_group_optimizer *one = &l->state.group_optimizers[i];

        if (strcmp(one->group, optimizer->group->pattern) == 0) {
            *steps = one->steps;
            return one->kind;
        }
    }
    return NULL;
}

static fsdp_status check_optimizer(load *l, const fsdp_optimizer *optimizer)
{
    const char *group = optimizer->group != NULL ? optimizer->group->pattern : "";
    const char *kind  = fsdpi_optimizer_kind_name(optimizer->options.kind);
    uint64_t    steps;
    const char *saved = saved_kind(l, optimizer, &steps);
    char        why[FSDPI_PROBLEM_BYTES / 2], of_group[160] = "";

    if (optimizer->group != NULL) {
        (void)snprintf(of_group, sizeof of_group, " of group '%.100s'", group);
    }
    if (saved == NULL) {
        (void)snprintf(why, sizeof why, "has no state of an optimizer%s; pass NULL for it to load the model alone",
                       of_group);
        return refuse(l, FSDP_ERR_ARG, why);
    }
    (void)snprintf(
        why, sizeof why,
        "has the state of optimizer %s%s, and this one is %s; pass one of that kind, or NULL to load the model "
        "alone",
        saved, of_group, kind);
    return strcmp(kind, saved) == 0 ? FSDP_OK : refuse(l, FSDP_ERR_ARG, why);
}

/* Those of the model, if one of them is given. */
static const fsdp_optimizer *first_optimizer(const load *l)
{
    return l->optimizer != NULL ? l->model->optimizers : NULL;
}

static fsdp_status check_optimizers(load *l)
{
    for (const fsdp_optimizer *optimizer = first_optimizer(l); optimizer != NULL; optimizer = optimizer->next) {
        FSDP_TRY(check_optimizer(l, optimizer));
    }
    return FSDP_OK;
}

static fsdp_status open_values(load *l)
{
    l->values = (fsdpi_source){.model = l->model};
    if (l->model == NULL) {
        return FSDP_OK;
    }
    FSDP_TRY(fsdpi_parts_of_model(l->model, l->model->master_dtype, &l->values.parts, &l->problem));
    return l->is_folder ? fsdpi_tensor_files_open_in(l->path, "model", &l->values.files, &l->problem)
                        : fsdpi_tensor_files_open(l->path, &l->values.files, &l->problem);
}

static bool has_master(const load *l, const char *tensor)
{
    char name[FSDPI_NAME_BYTES + 16];

    (void)snprintf(name, sizeof name, "%s.master", tensor);
    return fsdpi_tensor_files_find(&l->moments.files, name) != NULL;
}

/* Whether the optimizer's files hold masters: of any tensor, since others may be new to them. */
static bool has_masters(const load *l)
{
    for (const fsdpi_flat *flat = l->model->flats; flat != NULL; flat = flat->next) {
        for (size_t t = 0; t < flat->n_tensors; t++) {
            if (has_master(l, flat->tensors[t]->name)) {
                return true;
            }
        }
    }
    return false;
}

static bool has_optimizer_file(const load *l)
{
    return fsdpi_checksums_find(&l->state.sums, "optimizer.safetensors") != NULL ||
           fsdpi_checksums_find(&l->state.sums, "optimizer.safetensors" FSDPI_INDEX_SUFFIX) != NULL;
}

static fsdp_status open_moments(load *l)
{
    l->moments = (fsdpi_source){.model = l->model};
    if (l->optimizer == NULL) {
        return FSDP_OK;
    }
    if (has_optimizer_file(l)) {
        FSDP_TRY(fsdpi_tensor_files_open_in(l->path, "optimizer", &l->moments.files, &l->problem));
    }
    return fsdpi_parts_of_optimizers(l->model, has_masters(l), &l->moments.parts, &l->problem);
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

/* Renames are for the model's file. */
static fsdp_status match_all(load *l)
{
    fsdp_checkpoint_load_options plain   = l->options;
    fsdpi_misfits                misfits = {0};

    plain.n_renames = 0;

    if (l->model != NULL) {
        FSDP_TRY(fsdpi_source_match(&l->values, true, &l->options, &misfits, &l->problem));
        FSDP_TRY(fsdpi_source_match(&l->moments, false, &plain, &misfits, &l->problem));
    }
    fsdpi_array_source_match(&l->arrays, &l->options, &misfits);
    return refuse_misfits(l, &misfits);
}

/* The state is set for good only behind the reading. */
static fsdp_status try_scaler(load *l)
{
    fsdp_loss_scaler *scaler = l->model != NULL ? l->model->loss_scaler : NULL;

    if (scaler == NULL || l->optimizer == NULL || !l->state.has_scaler) {
        return FSDP_OK;
    }
    const fsdp_loss_scaler_state before = scaler->state;
    const fsdp_status            status = fsdp_loss_scaler_set_state(scaler, &l->state.scaler);
    scaler->state                       = before;
    return status == FSDP_OK ? FSDP_OK : refuse(l, status, "its scale is out of range of this loss scaler");
}

static fsdp_status read_state(load *l)
{
    char path[FSDPI_FOLDER_PATH_BYTES];

    if (!l->is_folder) {
        return l->optimizer == NULL
                   ? FSDP_OK
                   : refuse(l, FSDP_ERR_ARG,
                            "is a file without an optimizer's state; give a checkpoint, or NULL for it");
    }
    fsdpi_path_join(path, l->path, FSDPI_STATE_FILE);
    return fsdpi_state_read(path, &l->state, &l->problem);
}

/* ---- checking ---------------------------------------------------------------------------------------------------- */

static fsdp_status verify_index(load *l, const char *name)
{
    const fsdpi_file_sums *sums = fsdpi_checksums_find(&l->state.sums, name);
    char                   path[FSDPI_FOLDER_PATH_BYTES];
    uint64_t               bytes;
    int                    fd;

    if (sums == NULL) {
        return FSDP_OK;
    }
    fsdpi_path_join(path, l->path, name);
    FSDP_TRY(fsdpi_file_open(path, &fd, &bytes, &l->problem));
    const fsdp_status status = fsdpi_file_verify(fd, path, sums, &l->problem);
    (void)close(fd);
    return status;
}

/* Before the tensors are matched: so that damage is not taken for another model. */
static fsdp_status verify_headers(load *l)
{
    if (!l->is_folder) {
        return FSDP_OK;
    }
    FSDP_TRY(verify_index(l, "model.safetensors" FSDPI_INDEX_SUFFIX));
    FSDP_TRY(verify_index(l, "optimizer.safetensors" FSDPI_INDEX_SUFFIX));
    FSDP_TRY(fsdpi_source_verify_headers(&l->values, &l->state.sums, l->scratch, &l->problem));
    FSDP_TRY(fsdpi_source_verify_headers(&l->moments, &l->state.sums, l->scratch, &l->problem));
    return fsdpi_array_source_verify_header(&l->arrays, &l->state.sums, l->scratch, &l->problem);
}

static fsdp_status verify(load *l)
{
    if (!l->is_folder) {
        return FSDP_OK;
    }
    FSDP_TRY(fsdpi_source_verify(&l->values, &l->state.sums, l->scratch, &l->problem));
    FSDP_TRY(fsdpi_source_verify(&l->moments, &l->state.sums, l->scratch, &l->problem));
    return fsdpi_array_source_verify(&l->arrays, &l->state.sums, l->scratch, &l->problem);
}

static fsdp_status prepare(load *l)
{
    FSDP_TRY(read_state(l));
    FSDP_TRY(check_optimizers(l));
    FSDP_TRY(try_scaler(l));
    FSDP_TRY(open_values(l));
    FSDP_TRY(open_moments(l));
    FSDP_TRY(fsdpi_array_source_open(&l->arrays, &l->state.sums, l->path, &l->problem));
    FSDP_TRY(verify_headers(l));
    FSDP_TRY(match_all(l));
    return fsdpi_array_source_make_room(&l->arrays, &l->problem);
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* Masters, where there are some, are read behind the values, and over them. */
static fsdp_status read_all(load *l)
{
    FSDP_TRY(fsdpi_array_source_read(&l->arrays, l->scratch, &l->problem));
    if (l->model == NULL) {
        return FSDP_OK;
    }
    fsdpi_gather_drop(l->model);
    fsdpi_hook_forget(l->model->hook);
    FSDP_TRY(fsdpi_source_read(&l->values, l->scratch, &l->problem));
    FSDP_TRY(fsdpi_source_read(&l->moments, l->scratch, &l->problem));
    const fsdp_status status = fsdpi_compute_status(l->model);
    return status == FSDP_OK ? FSDP_OK
                             : fsdpi_problem_set(&l->problem, status, "the GPU's memory could not be written");
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

    hash = fsdpi_hash_text(fsdpi_hash_u64(hash, s->optimizer_steps), s->program.text);
    for (size_t i = 0; i < s->n_group_optimizers; i++) {
        hash = fsdpi_hash_u64(hash, s->group_optimizers[i].steps);
    }
    for (size_t f = 0; f < s->sums.n_files; f++) {
        for (size_t i = 0; i < s->sums.files[f].n_chunks; i++) {
            hash = fsdpi_hash_u64(hash, s->sums.files[f].chunks[i].sum);
        }
    }
    hash = fsdpi_source_fingerprint(&l->moments, fsdpi_source_fingerprint(&l->values, hash));
    return fsdpi_array_source_fingerprint(&l->arrays, hash);
}

static void set_counters(load *l)
{
    for (fsdp_optimizer *optimizer = l->optimizer != NULL ? l->model->optimizers : NULL; optimizer != NULL;
         optimizer                 = optimizer->next) {
        uint64_t steps = 0;

        (void)saved_kind(l, optimizer, &steps);
        optimizer->steps   = (size_t)steps;
        optimizer->spoiled = false;
    }
    if (l->optimizer != NULL && l->state.has_scaler && l->model->loss_scaler != NULL) {
        l->model->loss_scaler->state = l->state.scaler;
    }
}

static fsdp_status load_all(load *l)
{
    l->scratch         = fsdpi_alloc(l->ctx, FSDP_MEMORY_STAGING, FSDPI_READ_BYTES);
    fsdp_status status = l->scratch != NULL ? prepare(l) : fsdpi_problem_memory(&l->problem, l->path, FSDPI_READ_BYTES);

    FSDP_TRY(agree(l, "the same files", status == FSDP_OK ? fingerprint(l) : 0, status, ""));
    FSDP_TRY(agree(l, "checksums", 0, verify(l), ""));
    FSDP_TRY(agree(l, "reading", 0, read_all(l), "the state is undefined, load again: "));
    set_counters(l);
    return l->model != NULL ? fsdpi_gather_refresh(l->model, true) : FSDP_OK;
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

static fsdp_status check_load(const load *l, const char *path)
{
    FSDP_TRY(l->model != NULL ? fsdpi_check_optimizer(l->model, l->function, l->optimizer) : FSDP_OK);
    FSDP_TRY(fsdpi_check_path(l->ctx, l->function, path));
    FSDP_TRY(check_renames(l));
    return l->model != NULL ? fsdpi_check_at_step_end(l->model, l->function) : FSDP_OK;
}

static uint64_t hash_arguments(const char *path, const fsdp_checkpoint_load_options *o)
{
    uint64_t hash = fsdpi_hash_text(FSDPI_HASH_START, path);

    for (size_t i = 0; i < o->n_renames; i++) {
        hash = fsdpi_hash_text(fsdpi_hash_text(hash, o->renames[i].from),
                               o->renames[i].to != NULL ? o->renames[i].to : "");
    }
    return hash;
}

static void describe(const load *l, const char *path, char *label, size_t size)
{
    (void)snprintf(label, size, "'%.120s'%s%s%s%s, %zu renames", path != NULL ? path : "",
                   l->optimizer != NULL ? ", optimizer" : "", l->options.allow_missing ? ", allow_missing" : "",
                   l->options.allow_extra ? ", allow_extra" : "",
                   l->options.allow_mis_shaped ? ", allow_mis_shaped" : "", l->options.n_renames);
}

static void release(load *l)
{
    fsdpi_free(l->ctx, FSDP_MEMORY_STAGING, l->scratch, FSDPI_READ_BYTES);
    fsdpi_source_close(&l->values);
    fsdpi_source_close(&l->moments);
    fsdpi_array_source_close(&l->arrays);
    fsdpi_checksums_free(&l->state.sums);
}

void fsdp_checkpoint_load_options_init_size(fsdp_checkpoint_load_options *options, size_t size)
{
    static const fsdp_checkpoint_load_options defaults = FSDP_CHECKPOINT_LOAD_OPTIONS_DEFAULT;

    fsdpi_options_give(&defaults, sizeof defaults, options, size);
}

static fsdp_status run(load *l, const char *path, const fsdp_checkpoint_load_options *options,
                       fsdp_checkpoint_state *state)
{
    char        label[FSDPI_DETAIL_BYTES];
    fsdp_status status =
        fsdpi_options_take(l->ctx, "fsdp_checkpoint_load_options", options, &l->options, sizeof l->options);

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
    load l = {.function  = LOAD,
              .ctx       = model->ctx,
              .model     = model,
              .optimizer = optimizer,
              .options   = FSDP_CHECKPOINT_LOAD_OPTIONS_DEFAULT};
    return run(&l, path, options, state);
}

fsdp_status fsdp_checkpoint_restore(fsdp_checkpoint *checkpoint, const char *path,
                                    const fsdp_checkpoint_load_options *options, fsdp_checkpoint_state *state)
{
    if (checkpoint == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, RESTORE ": the checkpoint is NULL; pass one from fsdp_checkpoint_open");
    }
    FSDP_TRY(fsdp_checkpoint_wait(checkpoint)); /* `latest` may be the one that is being written */
    load l = {.function  = RESTORE,
              .ctx       = checkpoint->ctx,
              .model     = checkpoint->model,
              .optimizer = checkpoint->optimizer,
              .options   = FSDP_CHECKPOINT_LOAD_OPTIONS_DEFAULT,
              .arrays    = {.arrays = &checkpoint->arrays}};
    return run(&l, path, options, state);
}
