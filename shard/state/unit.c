/*
 * What a program says about its units, and what can be wrong with it. Nothing is allocated here but the description.
 */
#include "shard/state/unit.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/hash.h"
#include "lib/device/memory.h"
#include "shard/state/failed_add.h"
#include "shard/state/strategy.h"
#include "shard/state/tensor.h"
#include "shard/state/tensor_groups.h"
#include "shard/state/tp_part.h"

/* What `dtype` is where it has not been set. */
static const fsdp_dtype MODELS_OWN = FSDP_F64;
_Static_assert(FSDP_F64 == 0, "the type of a zeroed description");

static const unsigned KNOWN_FLAGS =
    FSDP_TENSOR_NO_WEIGHT_DECAY | FSDP_TENSOR_FROZEN | FSDP_TENSOR_IGNORED | FSDP_TENSOR_KEEP_DTYPE | FSDP_TENSOR_TP;

/* ---- what can be wrong ------------------------------------------------------------------------------------------- */

static bool name_is_good(const char *name)
{
    return name != NULL && name[0] != '\0' && strnlen(name, FSDPI_NAME_BYTES) < FSDPI_NAME_BYTES;
}

static fsdp_status check_fill(fsdp_context *ctx, const char *unit, const fsdp_tensor *tensor)
{
    if ((int)tensor->fill < 0 || tensor->fill > FSDP_FILL_CALLBACK || !isfinite(tensor->a) || !isfinite(tensor->b)) {
        return fsdpi_fail(ctx, FSDP_ERR_ARG,
                          "unit '%s', tensor '%s': fill %d with %g and %g; use one of fsdp_fill with "
                          "finite numbers",
                          unit, tensor->name, (int)tensor->fill, tensor->a, tensor->b);
    }
    if ((tensor->fill == FSDP_FILL_CALLBACK) != (tensor->fill_values != NULL)) {
        return fsdpi_fail(ctx, FSDP_ERR_ARG, "unit '%s', tensor '%s': %s", unit, tensor->name,
                          tensor->fill_values == NULL ? "FSDP_FILL_CALLBACK without a function; set `fill_values`"
                                                      : "`fill_values` is set; set `fill` to FSDP_FILL_CALLBACK");
    }
    if ((tensor->flags & ~KNOWN_FLAGS) != 0) {
        return fsdpi_fail(ctx, FSDP_ERR_ARG, "unit '%s', tensor '%s': flags 0x%x are unknown; use FSDP_TENSOR_*", unit,
                          tensor->name, tensor->flags);
    }
    return FSDP_OK;
}

static fsdp_status count_elements(fsdp_context *ctx, const char *unit, const fsdp_tensor *tensor, size_t *count)
{
    if (tensor->n_dims > FSDP_MAX_DIMS) {
        return fsdpi_fail(ctx, FSDP_ERR_ARG, "unit '%s', tensor '%s': %zu dimensions; at most %d are possible", unit,
                          tensor->name, tensor->n_dims, FSDP_MAX_DIMS);
    }
    *count = 1;
    for (size_t d = 0; d < tensor->n_dims; d++) {
        if (tensor->shape[d] == 0) {
            return fsdpi_fail(ctx, FSDP_ERR_ARG,
                              "unit '%s', tensor '%s': extent %zu is 0, so it has no elements; leave "
                              "the tensor out",
                              unit, tensor->name, d);
        }
        if (!fsdpi_multiply(*count, tensor->shape[d], count) || *count > PTRDIFF_MAX / sizeof(double)) {
            return fsdpi_fail(ctx, FSDP_ERR_ARG,
                              "unit '%s', tensor '%s': the size in bytes overflows at extent %zu, %zu", unit,
                              tensor->name, d, tensor->shape[d]);
        }
    }
    return FSDP_OK;
}

/* All that can be wrong with one tensor but a name that is used twice. */
static fsdp_status check_tensor(const fsdp_model *model, const char *unit, size_t i, const fsdp_tensor *tensor,
                                size_t *count)
{
    fsdp_context *ctx = model->ctx;

    if (!name_is_good(tensor->name)) {
        return fsdpi_fail(ctx, FSDP_ERR_ARG, "unit '%s', tensor %zu: the name must have 1 to %d bytes", unit, i,
                          FSDPI_NAME_BYTES - 1);
    }
    for (size_t w = 0; w < sizeof tensor->reserved / sizeof tensor->reserved[0]; w++) {
        if (tensor->reserved[w] != 0) {
            return fsdpi_fail(
                ctx, FSDP_ERR_UNSUPPORTED,
                "unit '%s', tensor '%s': word %zu of `reserved` is not zero; clear the description before "
                "setting its fields, or use the version of the library that the program was built with",
                unit, tensor->name, w);
        }
    }
    if (tensor->tied_to != NULL) { /* all but the shape is the owner's */
        return count_elements(ctx, unit, tensor, count);
    }
    if (fsdp_dtype_size(tensor->dtype) == 0) {
        return fsdpi_fail(ctx, FSDP_ERR_ARG, "unit '%s', tensor '%s': %d is no element type", unit, tensor->name,
                          (int)tensor->dtype);
    }
    if (tensor->dtype != MODELS_OWN && tensor->dtype != FSDP_F32 && tensor->dtype != FSDP_BF16 &&
        tensor->dtype != FSDP_F16) {
        return fsdpi_fail(
            ctx, FSDP_ERR_UNSUPPORTED,
            "unit '%s', tensor '%s': dtype is %s; set it to FSDP_F32, FSDP_BF16 or FSDP_F16, or leave it 0 "
            "for the model's own",
            unit, tensor->name, fsdp_dtype_name(tensor->dtype));
    }
    FSDP_TRY(check_fill(ctx, unit, tensor));
    FSDP_TRY(count_elements(ctx, unit, tensor, count));
    return fsdpi_tp_check(model, unit, tensor);
}

static const fsdp_tensor *find_description(const fsdp_tensor *tensors, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(tensors[i].name, name) == 0) {
            return &tensors[i];
        }
    }
    return NULL;
}

static fsdp_status check_name_is_new(const fsdp_model *model, const char *unit, const fsdp_tensor *tensors, size_t i)
{
    const char *name = tensors[i].name;

    if (fsdpi_find_tensor(model, name) != NULL || find_description(tensors, i, name) != NULL) {
        return fsdpi_fail(model->ctx, FSDP_ERR_ARG,
                          "unit '%s', tensor '%s': the name is taken; names are unique in a model", unit, name);
    }
    return FSDP_OK;
}

static bool shapes_are_equal(size_t n_dims, const size_t *shape, const fsdp_tensor *tensor)
{
    return n_dims == tensor->n_dims && memcmp(shape, tensor->shape, n_dims * sizeof *shape) == 0;
}

/* The owner was added before, or stands further up in the same unit. */
static fsdp_status check_tie(const fsdp_model *model, const char *unit, const fsdp_tensor *tensors, size_t i)
{
    const fsdp_tensor  *tied  = &tensors[i];
    const fsdp_tensor  *here  = find_description(tensors, i, tied->tied_to);
    const fsdpi_tensor *known = fsdpi_find_tensor(model, tied->tied_to);

    if (here == NULL && known == NULL) {
        return fsdpi_fail(model->ctx, FSDP_ERR_ARG,
                          "unit '%s', tensor '%s': tied to '%.255s', which is no tensor added before; add that first",
                          unit, tied->name, tied->tied_to);
    }
    if (here != NULL ? !shapes_are_equal(here->n_dims, here->shape, tied)
                     : !shapes_are_equal(known->n_dims, known->whole_shape, tied)) {
        return fsdpi_fail(
            model->ctx, FSDP_ERR_ARG,
            "unit '%s', tensor '%s': its shape is not that of '%s', to which it is tied; give it the same", unit,
            tied->name, tied->tied_to);
    }
    return FSDP_OK;
}

/* What a unit needs room for: its structure, arrays and names, in one allocation. */
typedef struct unit_extent {
    size_t elements;
    size_t name_bytes;
    size_t bytes;
} unit_extent;

static fsdp_status check_tensors(const fsdp_model *model, const char *name, const fsdp_tensor *tensors, size_t n,
                                 unit_extent *extent)
{
    extent->elements   = 0;
    extent->name_bytes = strlen(name) + 1;
    for (size_t i = 0; i < n; i++) {
        size_t count = 0;

        FSDP_TRY(check_tensor(model, name, i, &tensors[i], &count));
        FSDP_TRY(check_name_is_new(model, name, tensors, i));
        FSDP_TRY(tensors[i].tied_to != NULL ? check_tie(model, name, tensors, i) : FSDP_OK);
        extent->elements += count; /* each below 2^60: the sum is checked before it can overflow */
        if (extent->elements > PTRDIFF_MAX / sizeof(double)) {
            return fsdpi_fail(model->ctx, FSDP_ERR_ARG,
                              "unit '%s': the size in bytes overflows at tensor '%s'; divide "
                              "the unit",
                              name, tensors[i].name);
        }
        extent->name_bytes += strlen(tensors[i].name) + 1;
    }
    extent->bytes = sizeof(fsdp_unit) + n * sizeof(fsdpi_tensor) + extent->name_bytes;
    return FSDP_OK;
}

static fsdp_status check_unit(const fsdp_model *model, const char *name, const fsdp_tensor *tensors, size_t n,
                              fsdp_unit *const *unit, unit_extent *extent)
{
    fsdp_context *ctx = model->ctx;

    if (model->committed) {
        return fsdpi_fail(ctx, FSDP_ERR_STATE,
                          "fsdp_unit_add: unit '%s' comes after fsdp_model_commit; add all units "
                          "before it",
                          name != NULL ? name : "");
    }
    if (!name_is_good(name)) {
        return fsdpi_fail(ctx, FSDP_ERR_ARG, "fsdp_unit_add: the name must have 1 to %d bytes", FSDPI_NAME_BYTES - 1);
    }
    if (tensors == NULL || n == 0 || unit == NULL) {
        return fsdpi_fail(ctx, FSDP_ERR_ARG,
                          "fsdp_unit_add: unit '%s' has %zu tensors%s; there must be at least 1, and a "
                          "place for the unit",
                          name, n, tensors == NULL ? " at NULL" : "");
    }
    if (fsdpi_names_find(&model->unit_names, name) != NULL) {
        return fsdpi_fail(ctx, FSDP_ERR_ARG, "fsdp_unit_add: the name '%s' is taken; names are unique in a model",
                          name);
    }
    return check_tensors(model, name, tensors, n, extent);
}

/* ---- adding ------------------------------------------------------------------------------------------------------ */

static const char *copy_name(char **room, const char *name)
{
    char *copy = *room;

    *room = stpcpy(copy, name) + 1;
    return copy;
}

/* A tensor whose type has not been set is one that the model's types are for, and has none of its own to keep. */
static fsdp_tensor with_dtype(const fsdp_tensor *tensor)
{
    fsdp_tensor own = *tensor;

    if (tensor->tied_to == NULL && tensor->dtype == MODELS_OWN) {
        own.dtype = FSDP_F32;
        own.flags &= ~FSDP_TENSOR_KEEP_DTYPE;
    }
    if (tensor->tied_to != NULL) {
        own.flags &= ~FSDP_TENSOR_TP; /* divided as its owner is */
    }
    return own;
}

static uint64_t hash_tensor(uint64_t hash, const fsdp_tensor *tensor)
{
    hash = fsdpi_hash_text(hash, tensor->name);
    hash = fsdpi_hash_bytes(hash, tensor->shape, tensor->n_dims * sizeof tensor->shape[0]);
    hash = fsdpi_hash_u64(hash, tensor->n_dims);
    if (tensor->tied_to != NULL) {
        return fsdpi_hash_text(hash, tensor->tied_to);
    }
    hash = fsdpi_hash_u64(hash, (uint64_t)tensor->dtype);
    hash = fsdpi_hash_u64(hash, (uint64_t)tensor->fill);
    hash = fsdpi_hash_bytes(hash, &tensor->a, sizeof tensor->a);
    hash = fsdpi_hash_bytes(hash, &tensor->b, sizeof tensor->b);
    hash = fsdpi_hash_u64(hash, (uint64_t)tensor->tp_dim << 32 | tensor->tp_blocks);
    return fsdpi_hash_u64(hash, tensor->flags);
}

static void describe_tensor(fsdp_unit *unit, const fsdp_tensor *tensor, char **names)
{
    fsdpi_tensor *made = &unit->tensors[unit->n_tensors];

    *made = (fsdpi_tensor){.name        = copy_name(names, tensor->name),
                           .unit        = unit,
                           .owner       = made,
                           .dtype       = tensor->dtype,
                           .fill        = tensor->fill,
                           .a           = tensor->a,
                           .b           = tensor->b,
                           .fill_values = tensor->fill_values,
                           .fill_state  = tensor->fill_state,
                           .flags       = tensor->flags,
                           .n_dims      = tensor->n_dims};
    fsdpi_tp_divide(unit->model, tensor, made);
    unit->n_tensors++;
    unit->fingerprint = hash_tensor(unit->fingerprint, tensor);
}

static void tie_to(fsdpi_tensor *tensor, fsdpi_tensor *owner)
{
    tensor->owner    = owner;
    tensor->dtype    = owner->dtype;
    tensor->flags    = owner->flags;
    tensor->count    = owner->count;
    tensor->tp_parts = owner->tp_parts;
    tensor->tp_row   = owner->tp_row;
    memcpy(tensor->shape, owner->shape, sizeof tensor->shape);
}

/* The unit is in the model already, so that its own tensors are found too. */
static void tie(fsdp_unit *unit, const fsdp_tensor *tensors)
{
    for (size_t i = 0; i < unit->n_tensors; i++) {
        if (tensors[i].tied_to != NULL) {
            fsdpi_tensor *owner = fsdpi_find_tensor(unit->model, tensors[i].tied_to)->owner;

            tie_to(&unit->tensors[i], owner);
            owner->shared = owner->shared || owner->unit != unit;
        }
        unit->elements += unit->tensors[i].count;
    }
}

static void fill_unit(fsdp_model *model, fsdp_unit *unit, const char *name, const fsdp_tensor *tensors, size_t n)
{
    unit->model       = model;
    unit->tensors     = (fsdpi_tensor *)(void *)(unit + 1);
    char *names       = (char *)(unit->tensors + n);
    unit->name        = copy_name(&names, name);
    unit->fingerprint = fsdpi_hash_text(FSDPI_HASH_START, name);
    for (size_t i = 0; i < n; i++) {
        const fsdp_tensor tensor = with_dtype(&tensors[i]);

        describe_tensor(unit, &tensor, &names);
    }
}

static void append(fsdp_model *model, fsdp_unit *unit)
{
    if (model->last != NULL) {
        model->last->next = unit;
    } else {
        model->first = unit;
    }
    model->last = unit;
    model->n_units++;
    fsdpi_names_add(&model->unit_names, &unit->entry, unit->name);
    for (size_t i = 0; i < unit->n_tensors; i++) {
        fsdpi_names_add(&model->tensor_names, &unit->tensors[i].entry, unit->tensors[i].name);
        unit->tensors[i].group = fsdpi_group_of_name(model, unit->tensors[i].name);
    }
}

fsdp_status fsdp_unit_add(fsdp_model *model, const char *name, const fsdp_tensor *tensors, size_t n_tensors,
                          fsdp_unit **unit)
{
    unit_extent extent = {0};

    if (model == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "fsdp_unit_add: the model is NULL; pass one from fsdp_model_create");
    }
    const fsdp_status status = check_unit(model, name, tensors, n_tensors, unit, &extent);
    if (status != FSDP_OK) {
        return model->committed ? status : fsdpi_remember_failed_add(model, status);
    }
    fsdp_unit *made = fsdpi_alloc(model->ctx, FSDP_MEMORY_BOOKKEEPING, extent.bytes);
    if (made == NULL) {
        return fsdpi_remember_failed_add(model, FSDP_ERR_MEMORY);
    }
    made->bytes = extent.bytes;
    fill_unit(model, made, name, tensors, n_tensors);
    append(model, made);
    tie(made, tensors);
    *unit = made;
    return FSDP_OK;
}

/* ---- a place among those of all stages ---------------------------------------------------------------------------- */

fsdp_status fsdp_unit_set_place(fsdp_unit *unit, size_t place)
{
    static const char function[] = "fsdp_unit_set_place";

    if (unit == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "%s: the unit is NULL; pass one from fsdp_unit_add", function);
    }
    if (unit->model->committed) {
        return fsdpi_fail(unit->model->ctx, FSDP_ERR_STATE,
                          "%s: unit '%s' is committed; set it before fsdp_model_commit", function, unit->name);
    }
    unit->place = place;
    return FSDP_OK;
}

/* ---- a strategy of its own --------------------------------------------------------------------------------------- */

/* Ranks that share a copy are the model's: all of them, or those of a group. */
static bool goes_with(fsdp_strategy own, fsdp_strategy strategy)
{
    return own == FSDP_NO_SHARD || fsdpi_is_hybrid(own) == fsdpi_is_hybrid(strategy);
}

fsdp_strategy fsdpi_unit_strategy(const fsdp_unit *unit, fsdp_strategy strategy)
{
    return unit->has_strategy && goes_with(unit->strategy, strategy) ? unit->strategy : strategy;
}

static fsdp_status check_strategy(const fsdp_unit *unit, fsdp_strategy strategy)
{
    static const char         function[] = "fsdp_unit_set_strategy";
    const fsdp_model         *model      = unit->model;
    const fsdp_model_options *options    = &model->options;

    if (model->committed) {
        return fsdpi_fail(model->ctx, FSDP_ERR_STATE, "%s: unit '%s' is committed; set it before fsdp_model_commit",
                          function, unit->name);
    }
    if ((int)strategy < 0 || (int)strategy >= FSDP_N_STRATEGIES) {
        return fsdpi_fail(model->ctx, FSDP_ERR_ARG, "%s: unit '%s': %d is no strategy; use one of fsdp_strategy",
                          function, unit->name, (int)strategy);
    }
    if (!goes_with(strategy, options->strategy)) {
        return fsdpi_fail(model->ctx, FSDP_ERR_UNSUPPORTED,
                          "%s: unit '%s' with %s in a model with %s; use NO_SHARD, or %s", function, unit->name,
                          fsdp_strategy_name(strategy), fsdp_strategy_name(options->strategy),
                          fsdpi_is_hybrid(options->strategy) ? "one of the hybrid strategies"
                                                             : "another strategy that is not hybrid");
    }
    if (options->quantized_params && strategy != FSDP_FULL_SHARD) {
        return fsdpi_fail(model->ctx, FSDP_ERR_UNSUPPORTED,
                          "%s: unit '%s' with %s in a model with quantized_params; only FULL_SHARD gathers quantised "
                          "parameters",
                          function, unit->name, fsdp_strategy_name(strategy));
    }
    if (options->fixed_addresses && fsdpi_is_on_device(model) && fsdpi_takes_slot(strategy)) {
        return fsdpi_fail(
            model->ctx, FSDP_ERR_UNSUPPORTED,
            "%s: unit '%s' with %s and fixed_addresses on a GPU; use a strategy that keeps what is gathered", function,
            unit->name, fsdp_strategy_name(strategy));
    }
    return FSDP_OK;
}

fsdp_status fsdp_unit_set_strategy(fsdp_unit *unit, fsdp_strategy strategy)
{
    if (unit == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "fsdp_unit_set_strategy: the unit is NULL; pass one from fsdp_unit_add");
    }
    const fsdp_status status = check_strategy(unit, strategy);
    if (status != FSDP_OK) {
        return unit->model->committed ? status : fsdpi_remember_failed_add(unit->model, status);
    }
    unit->has_strategy = true;
    unit->strategy     = strategy;
    return FSDP_OK;
}

const char *fsdp_unit_name(const fsdp_unit *unit)
{
    return unit != NULL ? unit->name : "";
}
