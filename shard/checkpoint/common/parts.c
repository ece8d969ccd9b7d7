#include "shard/checkpoint/common/parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shard/checkpoint/common/hook_parts.h"
#include "shard/hooks/hook.h"
#include "shard/state/dynamic_blocks.h"
#include "shard/state/optimizer_kind.h"
#include "shard/state/plane.h"
#include "shard/state/slices.h"
#include "shard/state/tensor.h"

#define MASTER_NAME "master"

const char *fsdpi_optimizer_kind_name(fsdp_optimizer_kind kind)
{
    switch (kind) {
    case FSDP_SGD:
        return "sgd";
    case FSDP_SGD_MOMENTUM:
        return "sgd_momentum";
    case FSDP_ADAMW:
        return "adamw";
    case FSDP_ADAM:
        return "adam";
    case FSDP_LION:
        return "lion";
    case FSDP_CUSTOM:
        return "custom";
    case FSDP_MUON:
        return "muon";
    }
    return "unknown";
}

const char *fsdpi_moment_name(const fsdp_optimizer *optimizer, size_t k)
{
    const fsdp_optimizer_kind kind = optimizer->options.kind;

    if (kind == FSDP_CUSTOM) {
        return optimizer->state_names[k];
    }
    return kind == FSDP_SGD_MOMENTUM || kind == FSDP_MUON ? "momentum_buffer" : k == 0 ? "exp_avg" : "exp_avg_sq";
}

/* ---- listing ----------------------------------------------------------------------------------------------------- */

static fsdp_status allocate(fsdpi_parts *parts, size_t most, size_t name_bytes, fsdpi_problem *problem)
{
    *parts       = (fsdpi_parts){0};
    parts->parts = calloc(most + 1, sizeof *parts->parts);
    parts->infos = calloc(most + 1, sizeof *parts->infos);
    parts->dims  = calloc(most * FSDP_MAX_DIMS + 1, sizeof *parts->dims);
    parts->names = calloc(name_bytes + 1, 1);
    if (parts->parts == NULL || parts->infos == NULL || parts->dims == NULL || parts->names == NULL) {
        fsdpi_parts_free(parts);
        return fsdpi_problem_memory(problem, "the list of a model's tensors", most * sizeof(fsdpi_part));
    }
    return FSDP_OK;
}

void fsdpi_parts_free(fsdpi_parts *parts)
{
    free(parts->parts);
    free(parts->infos);
    free(parts->dims);
    free(parts->names);
    free(parts->hook_tensors);
    free(parts->ties);
    *parts = (fsdpi_parts){0};
}

/* The library's types come first in the format's list, with the same numbers. */
static void add(fsdpi_parts *parts, const fsdpi_part *part, const char *name, fsdp_dtype dtype)
{
    uint64_t *dims = parts->dims + parts->n * FSDP_MAX_DIMS;

    for (size_t d = 0; d < part->tensor->n_dims; d++) {
        dims[d] = part->tensor->whole_shape[d];
    }
    parts->parts[parts->n] = *part;
    parts->infos[parts->n] =
        (fsdpi_tensor_info){.name = name, .dtype = (fsdpi_stored)dtype, .n_dims = part->tensor->n_dims, .dims = dims};
    parts->n++;
}

size_t fsdpi_count_tensors(const fsdp_model *model)
{
    size_t n = 0;

    for (const fsdp_unit *unit = model->first; unit != NULL; unit = unit->next) {
        n += unit->n_tensors;
    }
    return n;
}

static fsdp_status list_ties(const fsdp_model *model, fsdpi_parts *parts, fsdpi_problem *problem)
{
    const size_t most = fsdpi_count_tensors(model);

    parts->ties = calloc(most + 1, sizeof *parts->ties);
    if (parts->ties == NULL) {
        return fsdpi_problem_memory(problem, "the names of tied tensors", most * sizeof(fsdpi_tie));
    }
    for (const fsdp_unit *unit = model->first; unit != NULL; unit = unit->next) {
        for (size_t t = 0; t < unit->n_tensors; t++) {
            const fsdpi_tensor *tensor = &unit->tensors[t];

            if (tensor->owner != tensor) {
                parts->ties[parts->n_ties++] = (fsdpi_tie){tensor->name, tensor->owner->name};
            }
        }
    }
    return FSDP_OK;
}

fsdp_status fsdpi_parts_of_model(const fsdp_model *model, fsdp_dtype dtype, fsdpi_parts *parts, fsdpi_problem *problem)
{
    size_t flat_index = 0;

    FSDP_TRY(allocate(parts, fsdpi_count_tensors(model), 0, problem));
    FSDP_TRY(list_ties(model, parts, problem));
    for (const fsdpi_flat *flat = model->flats; flat != NULL; flat = flat->next, flat_index++) {
        for (size_t t = 0; t < flat->n_tensors; t++) {
            const fsdpi_part part = {.tensor = flat->tensors[t], .flat = flat, .flat_index = flat_index};

            add(parts, &part, part.tensor->name, dtype);
        }
    }
    for (const fsdp_unit *unit = model->first; unit != NULL; unit = unit->next) {
        for (size_t t = 0; t < unit->n_tensors; t++) {
            const fsdpi_part part = {.tensor = &unit->tensors[t]};

            if (part.tensor->owner == part.tensor && (part.tensor->flags & FSDP_TENSOR_IGNORED) != 0) {
                add(parts, &part, part.tensor->name, fsdpi_gathered_dtype(model, part.tensor));
            }
        }
    }
    return FSDP_OK;
}

static void add_states(fsdpi_parts *parts, const fsdpi_part *like, const char *suffix, fsdp_dtype dtype, char **name)
{
    for (size_t t = 0; t < like->flat->n_tensors; t++) {
        fsdpi_part   part = *like;
        const size_t room = strlen(like->flat->tensors[t]->name) + strlen(suffix) + 2;

        part.tensor = like->flat->tensors[t];
        (void)snprintf(*name, room, "%s.%s", part.tensor->name, suffix);
        add(parts, &part, *name, dtype);
        *name += room;
    }
}

/* BYTES of names, for which 32 leave room for every suffix. */
static size_t count_states(const fsdp_model *model, size_t *n_tensors)
{
    size_t bytes = 0;

    *n_tensors = 0;
    for (const fsdpi_flat *flat = model->flats; flat != NULL; flat = flat->next) {
        *n_tensors += flat->n_tensors;
        for (size_t t = 0; t < flat->n_tensors; t++) {
            bytes += strlen(flat->tensors[t]->name) + 32;
        }
    }
    return bytes;
}

static void add_moments(fsdpi_parts *parts, const fsdpi_flat *flat, size_t flat_index, char **name)
{
    const fsdp_optimizer *optimizer = fsdpi_optimizer_of(flat);

    for (size_t k = 0; optimizer != NULL && k < fsdpi_states_of(&optimizer->options); k++) {
        const fsdpi_part part = {.flat       = flat,
                                 .flat_index = flat_index,
                                 .kind       = (fsdpi_part_kind)(FSDPI_PART_MOMENT + k),
                                 .optimizer  = optimizer};

        add_states(parts, &part, fsdpi_moment_name(optimizer, k),
                   optimizer->options.moment_dtype == FSDP_U8 ? FSDP_F32 : optimizer->options.moment_dtype, name);
    }
}

/* What stands for a tensor of the model has no name, flags or unit: nobody asks for them. */
static fsdp_status add_hook_parts(const fsdp_model *model, fsdpi_parts *parts, char *name, fsdpi_problem *problem)
{
    fsdpi_tensor *tensor     = parts->hook_tensors;
    size_t        flat_index = 0;

    for (fsdpi_flat *flat = model->flats; flat != NULL; flat = flat->next, flat_index++) {
        const size_t     elements = fsdpi_hook_part_elements(flat);
        const fsdpi_part part     = {.tensor = tensor, .flat = flat, .flat_index = flat_index, .kind = FSDPI_PART_HOOK};

        if (elements > 0) {
            FSDP_TRY(fsdpi_hook_part_prepare(flat, problem));
            *tensor           = (fsdpi_tensor){.n_dims      = 1,
                                               .shape       = {elements},
                                               .whole_shape = {elements},
                                               .count       = elements,
                                               .tp_parts    = 1,
                                               .owner       = tensor};
            const size_t used = fsdpi_hook_part_name(flat, name);
            add(parts, &part, name, FSDP_F32);
            name += used;
            tensor++;
        }
    }
    return FSDP_OK;
}

fsdp_status fsdpi_parts_of_optimizers(const fsdp_model *model, bool masters, fsdpi_parts *parts, fsdpi_problem *problem)
{
    size_t       flat_index = 0, n_tensors, hook_bytes;
    const size_t name_bytes = count_states(model, &n_tensors);
    const size_t most = FSDPI_MOST_STATES + masters, n_hook = fsdpi_hook_parts_most(model, &hook_bytes);

    FSDP_TRY(allocate(parts, n_tensors * most + n_hook, name_bytes * most + hook_bytes, problem));
    parts->hook_tensors = calloc(n_hook + 1, sizeof *parts->hook_tensors);
    if (parts->hook_tensors == NULL) {
        return fsdpi_problem_memory(problem, "what a gradient hook keeps", n_hook * sizeof(fsdpi_tensor));
    }
    char *name = parts->names;
    for (const fsdpi_flat *flat = model->flats; flat != NULL; flat = flat->next, flat_index++) {
        const fsdpi_part master = {.flat = flat, .flat_index = flat_index, .kind = FSDPI_PART_MASTER};

        if (masters) {
            add_states(parts, &master, MASTER_NAME, model->master_dtype, &name);
        }
        add_moments(parts, flat, flat_index, &name);
    }
    return add_hook_parts(model, parts, name, problem);
}

/* ---- what this rank has of them ---------------------------------------------------------------------------------- */

/* The array of which `part` is a piece, as long as the flat parameter's master. */
static unsigned char *array_of(const fsdpi_part *part, fsdp_dtype *dtype)
{
    if (part->kind == FSDPI_PART_VALUES || part->kind == FSDPI_PART_MASTER) {
        *dtype = part->flat->model->master_dtype;
        return part->flat->master;
    }
    *dtype = part->optimizer->options.moment_dtype;
    return part->optimizer->flats[part->flat_index].moments[part->kind - FSDPI_PART_MOMENT];
}

bool fsdpi_part_in_slice(const fsdpi_part *part, int slice, size_t *begin, size_t *count)
{
    const fsdpi_tensor *tensor      = part->tensor;
    const size_t        slice_begin = fsdpi_slice_begin(part->flat, slice);
    const size_t        slice_end   = slice_begin + fsdpi_slice_count(part->flat, slice);
    const size_t        tensor_end  = tensor->offset + tensor->count;
    const size_t        first       = tensor->offset > slice_begin ? tensor->offset : slice_begin;
    const size_t        end         = tensor_end < slice_end ? tensor_end : slice_end;

    if (first >= end) {
        return false;
    }
    *begin = first - tensor->offset;
    *count = end - first;
    return true;
}

int fsdpi_part_runs(const fsdpi_part *part)
{
    return part->flat != NULL && part->kind != FSDPI_PART_HOOK ? fsdpi_held_slices(part->flat).n : 1;
}

static bool hook_run(const fsdp_model *model, const fsdpi_part *part, fsdpi_held_run *run)
{
    *run = (fsdpi_held_run){.dtype = FSDP_F32, .memory = fsdpi_hook_saved_state(model->hook, part->flat->name)};
    fsdpi_hook_part_range(part->flat, model->ctx->rank, &run->begin, &run->count);
    return run->count > 0 && run->memory != NULL;
}

bool fsdpi_part_run(const fsdp_model *model, const fsdpi_part *part, int i, fsdpi_held_run *run)
{
    const fsdpi_tensor *tensor = part->tensor;

    if (tensor == NULL || (part->kind == FSDPI_PART_HOOK && part->flat == NULL)) {
        return false;
    }
    if (part->kind == FSDPI_PART_HOOK) {
        return hook_run(model, part, run);
    }
    if (part->flat == NULL) {
        *run = (fsdpi_held_run){
            .count = tensor->count, .memory = tensor->whole, .dtype = fsdpi_gathered_dtype(model, tensor)};
        return true;
    }
    if (!fsdpi_part_in_slice(part, fsdpi_held_slices(part->flat).first + i, &run->begin, &run->count)) {
        return false;
    }
    const size_t   at    = tensor->offset + run->begin - fsdpi_held_begin(part->flat);
    unsigned char *array = array_of(part, &run->dtype);
    run->memory          = fsdpi_element_of(array, at, run->dtype);
    if (run->dtype == FSDP_U8 && part->optimizer != NULL) {
        run->scales    = (float *)(void *)(array + fsdpi_held_elements(part->flat)) + at / FSDPI_DYNAMIC_BLOCK;
        run->is_signed = fsdpi_is_signed_moment((size_t)(part->kind - FSDPI_PART_MOMENT));
    }
    return true;
}

int fsdpi_written_slice(const fsdpi_flat *flat)
{
    const fsdp_model *model = flat->model;

    if (fsdpi_is_whole(flat)) {
        return model->ctx->rank < flat->layout.size ? model->ctx->rank : -1;
    }
    return model->replicas != NULL ? model->replicas->rank : 0;
}

bool fsdpi_part_written(const fsdp_model *model, const fsdpi_part *part, fsdpi_held_run *run)
{
    const bool is_hook = part->kind == FSDPI_PART_HOOK;

    if (part->tensor == NULL || (!is_hook && !fsdpi_is_counted(part->tensor)) ||
        (part->flat == NULL && model->ctx->rank != 0)) {
        return false;
    }
    const int slice = part->flat == NULL || is_hook ? 0 : fsdpi_written_slice(part->flat); /* those are in one piece */
    return slice >= 0 && fsdpi_part_run(model, part, slice, run);
}
