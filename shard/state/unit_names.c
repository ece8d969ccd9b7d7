/*
 * Units and tensors by their names, and the shapes of these.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/base/nearest.h"
#include "shard/state/tensor.h"

/* The name that is nearest to `wanted`, as far as names have been offered. */
typedef struct search {
    const char *wanted;
    const char *best;
    size_t      distance;
} search;

static void offer(search *s, const char *name)
{
    const size_t distance = fsdpi_name_distance(s->wanted, name);

    if (s->best == NULL || distance < s->distance) {
        s->best     = name;
        s->distance = distance;
    }
}

static fsdp_unit *no_unit(const fsdp_model *model, const char *name)
{
    search s = {.wanted = name};

    for (const fsdp_unit *unit = model->first; unit != NULL; unit = unit->next) {
        offer(&s, unit->name);
    }
    (void)fsdpi_fail(model->ctx, FSDP_ERR_ARG, "fsdp_model_unit: the model has no unit '%.255s'%s%s%s", name,
                     s.best != NULL ? "; the nearest that it has: '" : ", as it has none; call fsdp_unit_add first",
                     s.best != NULL ? s.best : "", s.best != NULL ? "'" : "");
    return NULL;
}

fsdp_unit *fsdp_model_unit(fsdp_model *model, const char *name)
{
    if (model == NULL || name == NULL) {
        (void)fsdpi_fail(model != NULL ? model->ctx : NULL, FSDP_ERR_ARG, "fsdp_model_unit: the %s is NULL",
                         model == NULL ? "model" : "name");
        return NULL;
    }
    if (strnlen(name, FSDPI_NAME_BYTES) == FSDPI_NAME_BYTES) {
        (void)fsdpi_fail(model->ctx, FSDP_ERR_ARG, "fsdp_model_unit: '%.100s...' is longer than names can be, %d bytes",
                         name, FSDPI_NAME_BYTES - 1);
        return NULL;
    }
    fsdpi_name *entry = fsdpi_names_find(&model->unit_names, name);
    return entry != NULL ? (fsdp_unit *)(void *)((char *)entry - offsetof(fsdp_unit, entry)) : no_unit(model, name);
}

/* As it would be called for: without the unit's name where that stands before. */
static const char *name_in_unit(const fsdp_unit *unit, const char *name)
{
    const size_t length = strlen(unit->name);

    return strncmp(name, unit->name, length) == 0 && name[length] == '.' ? name + length + 1 : name;
}

static size_t no_tensor(const fsdp_unit *unit, const char *name)
{
    search s = {.wanted = name_in_unit(unit, name)};

    for (size_t i = 0; i < unit->n_tensors; i++) {
        offer(&s, name_in_unit(unit, unit->tensors[i].name));
    }
    (void)fsdpi_fail(unit->model->ctx, FSDP_ERR_ARG,
                     "fsdp_unit_tensor: unit '%s' has no tensor '%.255s'; the nearest that it has: '%s'", unit->name,
                     name, s.best);
    return FSDP_NO_TENSOR;
}

size_t fsdp_unit_tensor(const fsdp_unit *unit, const char *name)
{
    if (unit == NULL || name == NULL) {
        (void)fsdpi_fail(unit != NULL ? unit->model->ctx : NULL, FSDP_ERR_ARG, "fsdp_unit_tensor: the %s is NULL",
                         unit == NULL ? "unit" : "name");
        return FSDP_NO_TENSOR;
    }
    if (strnlen(name, FSDPI_NAME_BYTES) == FSDPI_NAME_BYTES) {
        (void)fsdpi_fail(unit->model->ctx, FSDP_ERR_ARG,
                         "fsdp_unit_tensor: '%.100s...' is longer than names can be, %d bytes", name,
                         FSDPI_NAME_BYTES - 1);
        return FSDP_NO_TENSOR;
    }
    const fsdpi_names  *names  = &unit->model->tensor_names;
    const fsdpi_tensor *tensor = fsdpi_tensor_of_name(fsdpi_names_find(names, name));
    if (tensor == NULL || tensor->unit != unit) {
        tensor = fsdpi_tensor_of_name(fsdpi_names_find_in(names, unit->name, name));
    }
    return tensor != NULL && tensor->unit == unit ? (size_t)(tensor - unit->tensors) : no_tensor(unit, name);
}

/* ---- shapes ------------------------------------------------------------------------------------------------------ */

size_t fsdp_unit_shape(const fsdp_unit *unit, size_t i, size_t *shape)
{
    if (unit == NULL || shape == NULL) {
        (void)fsdpi_fail(unit != NULL ? unit->model->ctx : NULL, FSDP_ERR_ARG, "fsdp_unit_shape: the %s NULL",
                         unit == NULL ? "unit is" : "place for the shape is");
        return FSDP_NO_TENSOR;
    }
    if (i >= unit->n_tensors) {
        (void)fsdpi_fail(unit->model->ctx, FSDP_ERR_ARG,
                         "fsdp_unit_shape: unit '%s' has no tensor %zu; it has 0 to %zu", unit->name, i,
                         unit->n_tensors - 1);
        return FSDP_NO_TENSOR;
    }
    const fsdpi_tensor *tensor = &unit->tensors[i];
    memcpy(shape, tensor->shape, tensor->n_dims * sizeof *shape);
    return tensor->n_dims;
}
