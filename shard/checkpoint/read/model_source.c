#include "shard/checkpoint/read/model_source.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/error.h"
#include "lib/base/hash.h"
#include "shard/checkpoint/format/folder.h"
#include "shard/checkpoint/format/model_name.h"
#include "shard/hooks/hook.h"
#include "shard/schedule/gather.h"
#include "shard/state/tensor_groups.h"
#include "shard/storage/compute.h"

void fsdpi_model_source_close(fsdpi_model_source *source)
{
    fsdpi_source_close(&source->values);
    fsdpi_source_close(&source->moments);
    if (source->model != NULL) {
        fsdpi_stage_parts_free(source->model, &source->value_parts);
        fsdpi_stage_parts_free(source->model, &source->moment_parts);
    }
}

/* ---- all stages -------------------------------------------------------------------------------------------------- */

static fsdp_status share_moments(fsdpi_model_source *source, const char *function, fsdp_status status,
                                 fsdpi_problem *problem)
{
    fsdpi_parts own = {.n = 0};

    if (status == FSDP_OK) {
        status = fsdpi_parts_of_optimizers(source->model, true, &own, problem);
    }
    status = fsdpi_stage_parts_share(source->model, function, &own, status, &source->moment_parts, problem);
    fsdpi_parts_free(&own);
    return status;
}

fsdp_status fsdpi_model_source_share(fsdpi_model_source *source, const char *function, fsdp_status status,
                                     fsdpi_problem *problem)
{
    fsdpi_parts own = {.n = 0};

    if (!fsdpi_stage_parts_matter(source->model)) {
        return status;
    }
    if (status == FSDP_OK) {
        status = fsdpi_parts_of_model(source->model, source->model->master_dtype, &own, problem);
    }
    status = fsdpi_stage_parts_share(source->model, function, &own, status, &source->value_parts, problem);
    fsdpi_parts_free(&own);
    return source->optimizer != NULL ? share_moments(source, function, status, problem) : status;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

/* A source that is opened, and where. */
typedef struct opening {
    fsdpi_model_source *source;
    const char         *path;
    bool                is_folder;
    const fsdpi_state  *state;
    fsdpi_problem      *problem;
} opening;

static fsdp_status refuse(const opening *o, fsdp_status status, const char *why)
{
    const bool named = o->source->name[0] != '\0';

    return fsdpi_problem_set(o->problem, status, "%s: %s%s%s%s", o->path, named ? "model '" : "", o->source->name,
                             named ? "' " : "", why);
}

/* What was saved of an optimizer; NULL: nothing. */
static const char *saved_kind(const fsdpi_model_state *saved, const fsdp_optimizer *optimizer, uint64_t *steps)
{
    if (optimizer->group == NULL) {
        *steps = saved->optimizer_steps;
        return saved->has_optimizer ? saved->optimizer : NULL;
    }
    for (size_t i = 0; i < saved->n_group_optimizers; i++) {
        const fsdpi_group_optimizer *one = &saved->group_optimizers[i];

        if (strcmp(one->group, optimizer->group->pattern) == 0) {
            *steps = one->steps;
            return one->kind;
        }
    }
    return NULL;
}

static fsdp_status check_optimizer(const opening *o, const fsdp_optimizer *optimizer)
{
    const char *group = optimizer->group != NULL ? optimizer->group->pattern : "";
    const char *kind  = fsdpi_optimizer_kind_name(optimizer->options.kind);
    uint64_t    steps;
    const char *saved = saved_kind(o->source->saved, optimizer, &steps);
    char        why[FSDPI_PROBLEM_BYTES / 2], of_group[160] = "";

    if (optimizer->group != NULL) {
        (void)snprintf(of_group, sizeof of_group, " of group '%.100s'", group);
    }
    if (saved == NULL) {
        (void)snprintf(why, sizeof why, "has no state of an optimizer%s; pass NULL for it to load the model alone",
                       of_group);
        return refuse(o, FSDP_ERR_ARG, why);
    }
    (void)snprintf(
        why, sizeof why,
        "has the state of optimizer %s%s, and this one is %s; pass one of that kind, or NULL to load the model "
        "alone",
        saved, of_group, kind);
    return strcmp(kind, saved) == 0 ? FSDP_OK : refuse(o, FSDP_ERR_ARG, why);
}

/* Those of the model, if one of them is given. */
static fsdp_optimizer *first_optimizer(const fsdpi_model_source *source)
{
    return source->optimizer != NULL ? source->model->optimizers : NULL;
}

static fsdp_status check_optimizers(const opening *o)
{
    for (const fsdp_optimizer *optimizer = first_optimizer(o->source); optimizer != NULL; optimizer = optimizer->next) {
        FSDP_TRY(check_optimizer(o, optimizer));
    }
    return FSDP_OK;
}

/* The loss scaler that is set; NULL: none. */
static fsdp_loss_scaler *scaler_of(const fsdpi_model_source *source)
{
    return source->optimizer != NULL && source->saved != NULL && source->saved->has_scaler ? source->model->loss_scaler
                                                                                           : NULL;
}

/* The state is set for good only behind the reading. */
static fsdp_status try_scaler(const opening *o)
{
    fsdp_loss_scaler *scaler = scaler_of(o->source);

    if (scaler == NULL) {
        return FSDP_OK;
    }
    const fsdp_loss_scaler_state before = scaler->state;
    const fsdp_status            status = fsdp_loss_scaler_set_state(scaler, &o->source->saved->scaler);
    scaler->state                       = before;
    return status == FSDP_OK ? FSDP_OK : refuse(o, status, "its scale is out of range of this loss scaler");
}

static fsdp_status open_values(const opening *o)
{
    fsdpi_source *values = &o->source->values;
    char          stem[FSDPI_STEM_BYTES];

    FSDP_TRY(fsdpi_parts_of_model(values->model, values->model->master_dtype, &values->parts, o->problem));
    FSDP_TRY(fsdpi_parts_join(values->model, &o->source->value_parts, true, &values->parts, o->problem));
    return o->is_folder ? fsdpi_tensor_files_open_in(o->path, fsdpi_model_stem(values->name, FSDPI_MODEL_STEM, stem),
                                                     &values->files, o->problem)
                        : fsdpi_tensor_files_open(o->path, &values->files, o->problem);
}

static bool has_master(const fsdpi_tensor_files *files, const char *tensor)
{
    char name[FSDPI_NAME_BYTES + 16];

    (void)snprintf(name, sizeof name, "%s.master", tensor);
    return fsdpi_tensor_files_find(files, name) != NULL;
}

/* Whether the optimizer's files hold masters: of any tensor, of whatever stage, since others may be new to them. */
static bool has_masters(const fsdpi_parts *values, const fsdpi_tensor_files *files)
{
    for (size_t p = 0; p < values->n; p++) {
        if (has_master(files, values->infos[p].name)) {
            return true;
        }
    }
    return false;
}

static fsdp_status open_moments(const opening *o)
{
    fsdpi_source *moments = &o->source->moments;
    char          stem[FSDPI_STEM_BYTES];

    if (o->source->optimizer == NULL) {
        return FSDP_OK;
    }
    (void)fsdpi_model_stem(moments->name, FSDPI_OPTIMIZER_STEM, stem);
    if (fsdpi_state_has_files(o->state, stem)) {
        FSDP_TRY(fsdpi_tensor_files_open_in(o->path, stem, &moments->files, o->problem));
    }
    const bool masters = has_masters(&o->source->values.parts, &moments->files);
    FSDP_TRY(fsdpi_parts_of_optimizers(moments->model, masters, &moments->parts, o->problem));
    return fsdpi_parts_join(moments->model, &o->source->moment_parts, masters, &moments->parts, o->problem);
}

fsdp_status fsdpi_model_source_open(fsdpi_model_source *source, const char *path, bool is_folder,
                                    const fsdpi_state *state, fsdpi_problem *problem)
{
    const opening o = {.source = source, .path = path, .is_folder = is_folder, .state = state, .problem = problem};

    source->values    = (fsdpi_source){.model = source->model, .name = source->name};
    source->moments   = source->values;
    source->saved     = fsdpi_state_model(state, source->name);
    source->is_absent = source->name[0] != '\0' && source->saved == NULL;
    if (source->is_absent) {
        return FSDP_OK;
    }
    FSDP_TRY(check_optimizers(&o));
    FSDP_TRY(try_scaler(&o));
    FSDP_TRY(open_values(&o));
    return open_moments(&o);
}

/* ---- matching ---------------------------------------------------------------------------------------------------- */

static void tell_absent(const fsdpi_model_source *source, const fsdp_checkpoint_load_options *options,
                        fsdpi_misfits *misfits)
{
    fsdpi_problem problem = {0};

    if (!options->allow_missing) {
        misfits->missing++;
        (void)fsdpi_problem_set(&problem, FSDP_ERR_ARG, "model '%s' is missing in the checkpoint", source->name);
        fsdpi_misfit_tell(source->model->plane.ctx, "fsdp_checkpoint_restore", &problem, misfits);
    }
}

fsdp_status fsdpi_model_source_match(fsdpi_model_source *source, const fsdp_checkpoint_load_options *options,
                                     fsdpi_misfits *misfits, fsdpi_problem *problem)
{
    fsdp_checkpoint_load_options plain = *options;

    plain.n_renames = 0;
    if (source->is_absent) {
        tell_absent(source, options, misfits);
        return FSDP_OK;
    }
    FSDP_TRY(fsdpi_source_match(&source->values, true, options, misfits, problem));
    return fsdpi_source_match(&source->moments, false, &plain, misfits, problem);
}

uint64_t fsdpi_model_source_fingerprint(const fsdpi_model_source *source, uint64_t hash)
{
    if (source->saved != NULL) {
        hash = fsdpi_hash_u64(hash, source->saved->optimizer_steps);
        for (size_t i = 0; i < source->saved->n_group_optimizers; i++) {
            hash = fsdpi_hash_u64(hash, source->saved->group_optimizers[i].steps);
        }
    }
    return fsdpi_source_fingerprint(&source->moments, fsdpi_source_fingerprint(&source->values, hash));
}

/* ---- checking ---------------------------------------------------------------------------------------------------- */

static fsdp_status verify_index(const char *folder, const char *stem, const fsdpi_checksums *all,
                                fsdpi_problem *problem)
{
    char     name[FSDPI_STEM_BYTES + 64], path[FSDPI_FOLDER_PATH_BYTES];
    uint64_t bytes;
    int      fd;

    (void)snprintf(name, sizeof name, "%s.safetensors" FSDPI_INDEX_SUFFIX, stem);
    const fsdpi_file_sums *sums = fsdpi_checksums_find(all, name);
    if (sums == NULL) {
        return FSDP_OK;
    }
    fsdpi_path_join(path, folder, name);
    FSDP_TRY(fsdpi_file_open(path, &fd, &bytes, problem));
    const fsdp_status status = fsdpi_file_verify(fd, path, sums, problem);
    (void)close(fd);
    return status;
}

fsdp_status fsdpi_model_source_verify_headers(const fsdpi_model_source *source, const char *path,
                                              const fsdpi_checksums *sums, void *scratch, fsdpi_problem *problem)
{
    char stem[FSDPI_STEM_BYTES];

    FSDP_TRY(verify_index(path, fsdpi_model_stem(source->name, FSDPI_MODEL_STEM, stem), sums, problem));
    FSDP_TRY(verify_index(path, fsdpi_model_stem(source->name, FSDPI_OPTIMIZER_STEM, stem), sums, problem));
    FSDP_TRY(fsdpi_source_verify_headers(&source->values, sums, scratch, problem));
    return fsdpi_source_verify_headers(&source->moments, sums, scratch, problem);
}

fsdp_status fsdpi_model_source_verify(const fsdpi_model_source *source, const fsdpi_checksums *sums, void *scratch,
                                      fsdpi_problem *problem)
{
    FSDP_TRY(fsdpi_source_verify(&source->values, sums, scratch, problem));
    return fsdpi_source_verify(&source->moments, sums, scratch, problem);
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* Masters, where there are some, are read behind the values, and over them. */
fsdp_status fsdpi_model_source_read(const fsdpi_model_source *source, void *scratch, fsdpi_problem *problem)
{
    if (source->is_absent) {
        return FSDP_OK;
    }
    fsdpi_gather_drop(source->model);
    fsdpi_hook_forget(source->model->hook);
    FSDP_TRY(fsdpi_source_read(&source->values, scratch, problem));
    FSDP_TRY(fsdpi_source_read(&source->moments, scratch, problem));
    const fsdp_status status = fsdpi_compute_status(source->model);
    return status == FSDP_OK ? FSDP_OK : fsdpi_problem_set(problem, status, "the GPU's memory could not be written");
}

void fsdpi_model_source_set_counters(const fsdpi_model_source *source)
{
    fsdp_loss_scaler *scaler = scaler_of(source);

    if (source->is_absent) {
        return;
    }
    for (fsdp_optimizer *optimizer = first_optimizer(source); optimizer != NULL; optimizer = optimizer->next) {
        uint64_t steps = 0;

        (void)saved_kind(source->saved, optimizer, &steps);
        optimizer->steps   = (size_t)steps;
        optimizer->spoiled = false;
    }
    if (scaler != NULL) {
        scaler->state = source->saved->scaler;
    }
}
