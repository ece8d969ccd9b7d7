#include "shard/checkpoint/write/saved_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/base/hash.h"
#include "lib/device/memory.h"
#include "shard/checkpoint/common/checks.h"
#include "shard/checkpoint/common/stage_parts.h"
#include "shard/checkpoint/format/model_name.h"
#include "shard/checkpoint/format/utf8.h"
#include "shard/hooks/hook.h"
#include "shard/optimizer/optimizer.h"
#include "shard/state/plane.h"
#include "shard/state/tensor_groups.h"

/* ---- what is wrong ----------------------------------------------------------------------------------------------- */

/* Files take no other names. */
static fsdp_status check_names(const fsdp_model *model, const char *function)
{
    for (const fsdp_unit *unit = model->first; unit != NULL; unit = unit->next) {
        for (size_t t = 0; t < unit->n_tensors; t++) {
            const char  *name = unit->tensors[t].name;
            const size_t good = fsdpi_utf8_good(name);

            if (name[good] != '\0') {
                return fsdpi_fail_together(
                    model->ctx, FSDP_ERR_ARG,
                    "%s: unit '%s', tensor %zu, '%.*s...': the name is not UTF-8: byte %zu is 0x%02x; rename it",
                    function, unit->name, t, (int)good, name, good, (unsigned)(unsigned char)name[good]);
            }
        }
    }
    for (const fsdpi_tensor_group *group = model->tensor_groups; group != NULL; group = group->next) {
        if (group->pattern[fsdpi_utf8_good(group->pattern)] != '\0') {
            return fsdpi_fail_together(model->ctx, FSDP_ERR_ARG, "%s: the pattern of a group is not UTF-8: '%.*s...'",
                                       function, (int)fsdpi_utf8_good(group->pattern), group->pattern);
        }
    }
    return FSDP_OK;
}

static fsdp_status check(fsdp_model *model, const fsdp_optimizer *optimizer, const char *function)
{
    if (!model->committed) {
        return fsdpi_fail_together(model->ctx, FSDP_ERR_STATE,
                                   "%s: the model is not committed; call fsdp_model_commit first", function);
    }
    FSDP_TRY(fsdpi_check_optimizer(model, function, optimizer));
    if (optimizer != NULL && fsdpi_count_optimizers(model) > FSDPI_MOST_GROUP_OPTIMIZERS) {
        return fsdpi_fail_together(model->ctx, FSDP_ERR_UNSUPPORTED,
                                   "%s: the model has %zu optimizers; a checkpoint holds at most %d, so use fewer "
                                   "groups",
                                   function, fsdpi_count_optimizers(model), FSDPI_MOST_GROUP_OPTIMIZERS);
    }
    return check_names(model, function);
}

fsdp_status fsdpi_saved_model_check(fsdp_model *model, const fsdp_optimizer *optimizer, const char *function)
{
    const fsdp_status status = check(model, optimizer, function);

    fsdpi_error_hand_on(model->ctx, model->plane.ctx, status);
    return status;
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

/* Free it in any case. `values`: those of the model. */
static fsdp_status metadata_make(const fsdpi_parts *values, metadata *m, fsdpi_problem *problem)
{
    const size_t n = values->n_ties;

    *m = (metadata){.pairs = calloc(n + 1, sizeof *m->pairs), .names = calloc(n + 1, FSDPI_NAME_BYTES + 8)};
    if (m->pairs == NULL || m->names == NULL) {
        return fsdpi_problem_memory(problem, "the names of tied tensors", n * FSDPI_NAME_BYTES);
    }
    char *name       = m->names;
    m->pairs[m->n++] = (fsdpi_text_pair){"format", "pt"};
    for (size_t t = 0; t < n; t++) {
        (void)snprintf(name, FSDPI_NAME_BYTES + 8, "tied.%s", values->ties[t].name);
        m->pairs[m->n++] = (fsdpi_text_pair){name, values->ties[t].owner};
        name += strlen(name) + 1;
    }
    return FSDP_OK;
}

static fsdp_status plan_stem(const fsdpi_saved_model *saved, const char *kind, const metadata *m, uint64_t file_bytes,
                             fsdpi_stem *stem, fsdpi_problem *problem)
{
    char name[FSDPI_STEM_BYTES];

    return stem->parts.n == 0 ? FSDP_OK
                              : fsdpi_file_plan_make(fsdpi_model_stem(saved->state.name, kind, name), stem->parts.infos,
                                                     stem->parts.n, m->pairs, m->n, file_bytes, &stem->plan, problem);
}

/* The masters' type stands for f64 where these are f32. */
static fsdp_dtype dtype_of(const fsdp_model *model, const fsdp_checkpoint_options *options)
{
    return options->dtype == FSDP_F64 ? model->master_dtype : options->dtype;
}

/* Of all stages. `status`: whether this rank has listed its own. */
static fsdp_status join_stages(const fsdpi_saved_model *saved, const char *function, fsdp_status status,
                               fsdpi_parts *parts, fsdpi_problem *problem)
{
    fsdpi_stage_parts shared;

    status = fsdpi_stage_parts_share(saved->model, function, parts, status, &shared, problem);
    status = status == FSDP_OK ? fsdpi_parts_join(saved->model, &shared, true, parts, problem) : status;
    fsdpi_stage_parts_free(saved->model, &shared);
    return status;
}

/* Collective where other stages are asked, whatever has gone wrong on this rank. */
static fsdp_status list_parts(fsdpi_saved_model *saved, const char *function, fsdp_dtype dtype, fsdpi_problem *problem)
{
    fsdpi_parts *values = &saved->stems[FSDPI_STEM_MODEL].parts, *states = &saved->stems[FSDPI_STEM_OPTIMIZER].parts;
    fsdp_status  status =
        join_stages(saved, function, fsdpi_parts_of_model(saved->model, dtype, values, problem), values, problem);

    if (saved->optimizer == NULL) {
        return status;
    }
    if (status == FSDP_OK) {
        status = fsdpi_parts_of_optimizers(saved->model, dtype != saved->model->master_dtype, states, problem);
    }
    return join_stages(saved, function, status, states, problem);
}

static fsdp_status plan_files(fsdpi_saved_model *saved, const fsdp_checkpoint_options *o, const metadata *m,
                              fsdpi_problem *problem)
{
    const metadata format    = {.n = 1, .pairs = m->pairs};
    fsdpi_stem    *model     = &saved->stems[FSDPI_STEM_MODEL];
    fsdpi_stem    *optimizer = &saved->stems[FSDPI_STEM_OPTIMIZER];

    FSDP_TRY(plan_stem(saved, FSDPI_MODEL_STEM, m, o->file_bytes, model, problem));
    optimizer->first_file = model->first_file + model->plan.n_files + (model->plan.index != NULL);
    return plan_stem(saved, FSDPI_OPTIMIZER_STEM, &format, o->file_bytes, optimizer, problem);
}

static fsdp_status lay_out(fsdpi_saved_model *saved, const fsdp_checkpoint_options *options, const char *function)
{
    fsdpi_problem problem = {0};
    metadata      m       = {.n = 0};
    fsdp_status   status  = list_parts(saved, function, dtype_of(saved->model, options), &problem);

    if (status == FSDP_OK) {
        status = metadata_make(&saved->stems[FSDPI_STEM_MODEL].parts, &m, &problem);
    }
    if (status == FSDP_OK) {
        status = plan_files(saved, options, &m, &problem);
    }
    metadata_free(&m);
    return status == FSDP_OK ? fsdpi_writer_open(saved->model, saved->stems, options->asynchronous != 0, &saved->writer)
                             : fsdpi_fail_problem(saved->ctx, function, &problem);
}

fsdp_status fsdpi_saved_model_make(const char *name, fsdp_model *model, fsdp_optimizer *optimizer,
                                   const fsdp_checkpoint_options *options, const fsdpi_saved_model *after,
                                   const char *function, fsdpi_saved_model **made)
{
    fsdp_context      *ctx   = model->plane.ctx;
    fsdpi_saved_model *saved = fsdpi_alloc(ctx, FSDP_MEMORY_BOOKKEEPING, sizeof *saved);

    *made                    = saved;
    const fsdp_status status = fsdpi_plane_follow(model, function, saved != NULL ? FSDP_OK : FSDP_ERR_MEMORY);
    if (status != FSDP_OK || saved == NULL) {
        return status;
    }
    saved->ctx                                = ctx;
    saved->model                              = model;
    saved->optimizer                          = optimizer;
    saved->hook                               = optimizer != NULL ? model->hook : NULL;
    saved->hook_is_saved                      = fsdpi_hook_is_saved(saved->hook);
    saved->n_optimizers                       = optimizer != NULL ? fsdpi_count_optimizers(model) : 0;
    saved->stems[FSDPI_STEM_MODEL].first_file = fsdpi_saved_models_files(after);
    (void)snprintf(saved->state.name, sizeof saved->state.name, "%s", name);
    return lay_out(saved, options, function);
}

void fsdpi_saved_model_free(fsdpi_saved_model *saved)
{
    if (saved == NULL) {
        return;
    }
    fsdpi_writer_close(&saved->writer);
    for (size_t s = 0; s < FSDPI_N_STEMS; s++) {
        fsdpi_file_plan_free(&saved->stems[s].plan);
        fsdpi_parts_free(&saved->stems[s].parts);
    }
    fsdpi_free(saved->ctx, FSDP_MEMORY_BOOKKEEPING, saved, sizeof *saved);
}

uint64_t fsdpi_saved_model_hash(const fsdpi_saved_model *saved)
{
    uint64_t hash = FSDPI_HASH_START;

    for (size_t s = 0; s < FSDPI_N_STEMS; s++) {
        const fsdpi_file_plan *plan = &saved->stems[s].plan;

        for (size_t f = 0; f < plan->n_files; f++) {
            hash = fsdpi_hash_bytes(hash, plan->files[f].header, plan->files[f].header_bytes);
        }
    }
    return hash;
}

/* ---- a save ------------------------------------------------------------------------------------------------------ */

fsdp_status fsdpi_saved_model_check_save(const fsdpi_saved_model *saved, const char *function)
{
    char where[FSDP_CHECKPOINT_NAME_BYTES + 64];

    const bool named = saved->state.name[0] != '\0';
    (void)snprintf(where, sizeof where, "%s%s%s%s", function, named ? ": model '" : "", saved->state.name,
                   named ? "'" : "");
    if (saved->optimizer != NULL && fsdpi_count_optimizers(saved->model) != saved->n_optimizers) {
        return fsdpi_fail_together(saved->ctx, FSDP_ERR_STATE,
                                   "%s: the model has %zu optimizers, and had %zu when the checkpoint was opened; make "
                                   "all of them before fsdp_checkpoint_open",
                                   where, fsdpi_count_optimizers(saved->model), saved->n_optimizers);
    }
    if (saved->optimizer != NULL && saved->model->hook != saved->hook &&
        (fsdpi_hook_is_saved(saved->model->hook) || saved->hook_is_saved)) {
        return fsdpi_fail_together(saved->ctx, FSDP_ERR_STATE,
                                   "%s: the model has another gradient hook than when the checkpoint was opened; call "
                                   "fsdp_model_set_hook before fsdp_checkpoint_open",
                                   where);
    }
    const fsdp_status status = fsdpi_check_at_step_end(saved->model, where);
    fsdpi_error_hand_on(saved->model->ctx, saved->ctx, status);
    return status;
}

static void describe_optimizers(const fsdp_model *model, fsdpi_model_state *state)
{
    state->has_optimizer      = false;
    state->n_group_optimizers = 0;
    for (const fsdp_optimizer *o = model->optimizers; o != NULL; o = o->next) {
        fsdpi_group_optimizer own = {.steps = o->steps};

        (void)snprintf(own.kind, sizeof own.kind, "%s", fsdpi_optimizer_kind_name(o->options.kind));
        if (o->group == NULL) {
            state->has_optimizer   = true;
            state->optimizer_steps = own.steps;
            memcpy(state->optimizer, own.kind, sizeof own.kind);
        } else {
            (void)snprintf(own.group, sizeof own.group, "%s", o->group->pattern);
            state->group_optimizers[state->n_group_optimizers++] = own;
        }
    }
}

void fsdpi_saved_model_describe_in(const fsdpi_saved_model *saved, fsdpi_model_state *state)
{
    const fsdp_model *model = saved->model;

    memmove(state->name, saved->state.name, sizeof state->name);
    (void)snprintf(state->strategy, sizeof state->strategy, "%s", fsdp_strategy_name(model->options.strategy));
    if (saved->optimizer != NULL) {
        describe_optimizers(model, state);
    }
    state->has_scaler = model->loss_scaler != NULL;
    if (model->loss_scaler != NULL) {
        state->scaler = model->loss_scaler->state;
    }
}

void fsdpi_saved_model_describe(fsdpi_saved_model *saved)
{
    fsdpi_saved_model_describe_in(saved, &saved->state);
}

/* ---- lists ------------------------------------------------------------------------------------------------------- */

const fsdpi_saved_model *fsdpi_saved_models_find(const fsdpi_saved_model *first, const char *name)
{
    for (const fsdpi_saved_model *saved = first; saved != NULL; saved = saved->next) {
        if (strcmp(saved->state.name, name) == 0) {
            return saved;
        }
    }
    return NULL;
}

size_t fsdpi_saved_models_files(const fsdpi_saved_model *first)
{
    size_t n = 0;

    for (const fsdpi_saved_model *saved = first; saved != NULL; saved = saved->next) {
        n += saved->writer.n_files;
    }
    return n;
}

size_t fsdpi_saved_models_chunks(const fsdpi_saved_model *first)
{
    size_t n = 0;

    for (const fsdpi_saved_model *saved = first; saved != NULL; saved = saved->next) {
        n += saved->writer.n_chunks;
    }
    return n;
}

const char *fsdpi_saved_models_file(const fsdpi_saved_model *first, size_t file, uint64_t *bytes)
{
    const fsdpi_saved_model *saved = first;

    while (file >= saved->writer.first_file + saved->writer.n_files) {
        saved = saved->next;
    }
    *bytes = fsdpi_writer_file_bytes(saved->stems, file);
    return fsdpi_writer_file_name(saved->stems, file);
}

size_t fsdpi_saved_models_staging(const fsdpi_saved_model *first)
{
    size_t bytes = first != NULL ? fsdpi_writer_scratch() : 0;

    for (const fsdpi_saved_model *saved = first; saved != NULL; saved = saved->next) {
        bytes += fsdpi_writer_staging(&saved->writer);
    }
    return bytes;
}

size_t fsdpi_saved_models_bookkeeping(const fsdpi_saved_model *first)
{
    size_t bytes = 0;

    for (const fsdpi_saved_model *saved = first; saved != NULL; saved = saved->next) {
        bytes += fsdpi_writer_bookkeeping(&saved->writer) + fsdpi_alloc_size(sizeof *saved);
    }
    return bytes;
}
