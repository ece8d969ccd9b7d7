/*
 * Which tensors belong to which group. Whatever is added last, a group or a unit, the first group that matches counts.
 */
#include "shard/state/tensor_groups.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/hash.h"
#include "lib/base/options.h"
#include "lib/device/memory.h"
#include "shard/state/failed_add.h"
#include "shard/state/optimizer_kind.h"
#include "shard/state/tensor.h"

static bool matches(const char *pattern, const char *name)
{
    return fnmatch(pattern, name, 0) == 0;
}

fsdpi_tensor_group *fsdpi_group_of_name(const fsdp_model *model, const char *name)
{
    fsdpi_tensor_group *group = model->tensor_groups;

    while (group != NULL && !matches(group->pattern, name)) {
        group = group->next;
    }
    return group;
}

const fsdpi_tensor_group *fsdpi_group_of_pattern(const fsdp_model *model, const char *pattern)
{
    const fsdpi_tensor_group *group = model->tensor_groups;

    while (group != NULL && strcmp(group->pattern, pattern) != 0) {
        group = group->next;
    }
    return group;
}

size_t fsdpi_states_held(const fsdp_model_group *group, size_t held)
{
    return fsdpi_optimizer_states(group->optimizer, group->n_states) *
           fsdpi_alloc_size(fsdpi_moment_bytes(group->moment_dtype, held));
}

size_t fsdpi_granularity(const fsdp_model *model, const fsdpi_tensor_group *group)
{
    const size_t     own          = group != NULL ? group->own.granularity : FSDP_GRANULARITY_FLAT;
    const fsdp_dtype moment_dtype = group != NULL ? group->own.moment_dtype : model->options.moment_dtype;

    return own == FSDP_GRANULARITY_FLAT && moment_dtype == FSDP_U8 ? (size_t)FSDPI_DYNAMIC_BLOCK : own;
}

bool fsdpi_is_dealt(const fsdpi_tensor *tensor)
{
    return tensor->owner == tensor && fsdpi_is_divided(tensor) && (tensor->flags & FSDP_TENSOR_FROZEN) == 0 &&
           fsdpi_granularity(tensor->unit->model, tensor->group) == FSDP_GRANULARITY_TENSOR;
}

/* ---- adding ------------------------------------------------------------------------------------------------------ */

void fsdp_model_group_init_size(fsdp_model_group *options, size_t size)
{
    static const fsdp_model_group defaults = FSDP_MODEL_GROUP_DEFAULT;

    fsdpi_options_give(&defaults, sizeof defaults, options, size);
}

static fsdp_status check_pattern(const fsdp_model *model, const char *pattern)
{
    if (pattern == NULL || pattern[0] == '\0' || strnlen(pattern, FSDPI_NAME_BYTES) == FSDPI_NAME_BYTES) {
        return fsdpi_fail(model->ctx, FSDP_ERR_ARG,
                          "fsdp_model_add_group: the pattern is %s; it must have 1 to %d bytes",
                          pattern == NULL      ? "NULL"
                          : pattern[0] == '\0' ? "empty"
                                               : "too long",
                          FSDPI_NAME_BYTES - 1);
    }
    if (model->committed) {
        return fsdpi_fail(model->ctx, FSDP_ERR_STATE,
                          "fsdp_model_add_group: '%.100s' comes after fsdp_model_commit; add all groups before it",
                          pattern);
    }
    return fsdpi_group_of_pattern(model, pattern) == NULL
               ? FSDP_OK
               : fsdpi_fail(model->ctx, FSDP_ERR_ARG,
                            "fsdp_model_add_group: there is a group '%.100s' already; add each pattern once", pattern);
}

static fsdp_status check_options(const fsdp_model *model, const char *pattern, const fsdp_model_group *group)
{
    char of[160];

    (void)snprintf(of, sizeof of, "fsdp_model_add_group: '%.100s':", pattern);
    if (group->moment_dtype == FSDP_U8 && group->granularity % FSDPI_DYNAMIC_BLOCK != 0) {
        return fsdpi_fail(model->ctx, FSDP_ERR_ARG,
                          "%s moments in 8 bits have blocks of %d elements, which a granularity of %zu does not keep "
                          "together; use FSDP_GRANULARITY_FLAT, which becomes %d, or a multiple of it",
                          of, FSDPI_DYNAMIC_BLOCK, group->granularity, FSDPI_DYNAMIC_BLOCK);
    }
    FSDP_TRY(fsdpi_check_states(model->ctx, of, "FSDP_MODEL_GROUP_DEFAULT", group->optimizer, group->n_states,
                                group->moment_dtype, model->master_dtype));
    if (group->optimizer == FSDP_MUON && group->granularity != FSDP_GRANULARITY_TENSOR) {
        return fsdpi_fail(model->ctx, FSDP_ERR_ARG,
                          "fsdp_model_add_group: '%.100s': FSDP_MUON needs whole matrices; set granularity to "
                          "FSDP_GRANULARITY_TENSOR",
                          pattern);
    }
    if (group->granularity == FSDP_GRANULARITY_TENSOR && model->options.quantized_params) {
        return fsdpi_fail(
            model->ctx, FSDP_ERR_UNSUPPORTED,
            "fsdp_model_add_group: '%.100s': whole tensors cannot be gathered quantised; set quantized_params to "
            "0, or another granularity",
            pattern);
    }
    return FSDP_OK;
}

static fsdp_status check_group(const fsdp_model *model, const char *pattern, const fsdp_model_group *given,
                               fsdp_model_group *chosen)
{
    FSDP_TRY(check_pattern(model, pattern));
    if (given == NULL) {
        return fsdpi_fail(model->ctx, FSDP_ERR_ARG,
                          "fsdp_model_add_group: the group of '%.100s' is NULL; begin with FSDP_MODEL_GROUP_DEFAULT",
                          pattern);
    }
    FSDP_TRY(fsdpi_options_take(model->ctx, "fsdp_model_group", given, chosen, sizeof *chosen));
    return check_options(model, pattern, chosen);
}

static void append(fsdp_model *model, fsdpi_tensor_group *group)
{
    fsdpi_tensor_group **end = &model->tensor_groups;

    while (*end != NULL) {
        end = &(*end)->next;
    }
    *end = group;
}

/* Of the tensors that there are, those that match and belong to no group added before. */
static void join(fsdp_model *model, fsdpi_tensor_group *group)
{
    for (fsdp_unit *unit = model->first; unit != NULL; unit = unit->next) {
        for (size_t i = 0; i < unit->n_tensors; i++) {
            fsdpi_tensor *tensor = &unit->tensors[i];

            if (tensor->group == NULL && matches(group->pattern, tensor->name)) {
                tensor->group = group;
            }
        }
    }
}

fsdp_status fsdp_model_add_group(fsdp_model *model, const char *pattern, const fsdp_model_group *group)
{
    fsdp_model_group chosen = FSDP_MODEL_GROUP_DEFAULT;

    if (model == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG,
                          "fsdp_model_add_group: the model is NULL; pass one from fsdp_model_create");
    }
    const fsdp_status status = check_group(model, pattern, group, &chosen);
    if (status != FSDP_OK) {
        return model->committed ? status : fsdpi_remember_failed_add(model, status);
    }
    const size_t        length = strlen(pattern) + 1, bytes = sizeof(fsdpi_tensor_group) + length;
    fsdpi_tensor_group *made = fsdpi_alloc(model->ctx, FSDP_MEMORY_BOOKKEEPING, bytes);
    if (made == NULL) {
        return fsdpi_remember_failed_add(model, FSDP_ERR_MEMORY);
    }
    *made = (fsdpi_tensor_group){.bytes = bytes, .own = chosen};
    memcpy(made->pattern, pattern, length);
    append(model, made);
    join(model, made);
    return FSDP_OK;
}

/* ---- all groups -------------------------------------------------------------------------------------------------- */

/* Of the tensors that can have an optimizer: those that match, and those that belong to it. */
static void count_tensors(const fsdp_model *model, const fsdpi_tensor_group *group, size_t *matched, size_t *joined)
{
    for (const fsdp_unit *unit = model->first; unit != NULL; unit = unit->next) {
        for (size_t i = 0; i < unit->n_tensors; i++) {
            const fsdpi_tensor *tensor = &unit->tensors[i];

            if (tensor->owner == tensor && fsdpi_is_divided(tensor)) {
                *matched += matches(group->pattern, tensor->name);
                *joined += tensor->group == group;
            }
        }
    }
}

fsdp_status fsdpi_tensor_groups_check(const fsdp_model *model)
{
    for (const fsdpi_tensor_group *group = model->tensor_groups; group != NULL; group = group->next) {
        size_t matched = 0, joined = 0;

        count_tensors(model, group, &matched, &joined);
        if (joined == 0 && model->plane.n_stages == 1) { /* else another stage may have some: see described.h */
            return matched == 0
                       ? fsdpi_fail_together(model->ctx, FSDP_ERR_ARG,
                                             "fsdp_model_commit: the group '%.100s' matches no tensor; see the names "
                                             "given to fsdp_unit_add, of owners where tensors are tied",
                                             group->pattern)
                       : fsdpi_fail_together(
                             model->ctx, FSDP_ERR_ARG,
                             "fsdp_model_commit: the %zu tensors that the group '%.100s' matches belong "
                             "to groups added before; add the narrower pattern first",
                             matched, group->pattern);
        }
    }
    return FSDP_OK;
}

void fsdpi_tensor_group_describe(const fsdpi_tensor_group *group, char *text, size_t size)
{
    const fsdp_model_group *own = &group->own;

    (void)snprintf(text, size, "group '%.100s', granularity %zu, optimizer %d, %zu states, moments %s", group->pattern,
                   own->granularity, (int)own->optimizer, own->n_states, fsdp_dtype_name(own->moment_dtype));
}

uint64_t fsdpi_tensor_group_fingerprint(const fsdp_model *model, const fsdpi_tensor_group *group)
{
    uint64_t hash = fsdpi_hash_text(FSDPI_HASH_START, group->pattern);

    for (const fsdp_unit *unit = model->first; unit != NULL; unit = unit->next) {
        for (size_t i = 0; i < unit->n_tensors; i++) {
            hash = fsdpi_hash_u64(hash, unit->tensors[i].group == group);
        }
    }
    return hash;
}

size_t fsdpi_count_tensor_groups(const fsdp_model *model)
{
    size_t n = 0;

    for (const fsdpi_tensor_group *group = model->tensor_groups; group != NULL; group = group->next) {
        n++;
    }
    return n;
}

size_t fsdpi_tensor_groups_bytes(const fsdp_model *model)
{
    size_t bytes = 0;

    for (const fsdpi_tensor_group *group = model->tensor_groups; group != NULL; group = group->next) {
        bytes += fsdpi_alloc_size(group->bytes);
    }
    return bytes;
}

void fsdpi_tensor_groups_release(fsdp_model *model)
{
    while (model->tensor_groups != NULL) {
        fsdpi_tensor_group *group = model->tensor_groups;

        model->tensor_groups = group->next;
        fsdpi_free(model->ctx, FSDP_MEMORY_BOOKKEEPING, group, group->bytes);
    }
}
