#include "shard/model.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lib/hash.h"
#include "lib/log.h"
#include "lib/memory.h"

const char *fsdp_strategy_name(fsdp_strategy strategy)
{
    switch (strategy) {
#define STRATEGY_CASE(name, value, text)                                                                               \
    case name:                                                                                                         \
        return text;
        FSDP_STRATEGY_LIST(STRATEGY_CASE)
#undef STRATEGY_CASE
    }
    return "unknown";
}

fsdp_status fsdp_strategy_parse(const char *name, fsdp_strategy *strategy)
{
    if (name == NULL || strategy == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "fsdp_strategy_parse: a pointer is NULL");
    }
    for (int i = 0; i < FSDP_N_STRATEGIES; i++) {
        if (strcmp(name, fsdp_strategy_name((fsdp_strategy)i)) == 0) {
            *strategy = (fsdp_strategy)i;
            return FSDP_OK;
        }
    }
    return fsdpi_fail(NULL, FSDP_ERR_ARG, "'%s' is no strategy; use FULL_SHARD or NO_SHARD", name);
}

/* ---- creation ---------------------------------------------------------------------------------------------------- */

static fsdp_status check_options(fsdp_context *ctx, const fsdp_model_options *options)
{
    if ((int)options->strategy < 0 || (int)options->strategy >= FSDP_N_STRATEGIES) {
        return fsdpi_fail(ctx, FSDP_ERR_ARG, "fsdp_model_create: %d is no strategy; use one of fsdp_strategy",
                          (int)options->strategy);
    }
    if ((int)options->optimizer < 0 || options->optimizer > FSDP_ADAMW) {
        return fsdpi_fail(ctx, FSDP_ERR_ARG, "fsdp_model_create: %d is no optimizer; use one of fsdp_optimizer_kind",
                          (int)options->optimizer);
    }
    return FSDP_OK;
}

static void destroy_model(void *object)
{
    fsdp_model_destroy(object);
}

fsdp_status fsdp_model_create(fsdp_context *ctx, const fsdp_model_options *options, fsdp_model **model)
{
    const fsdp_model_options defaults = FSDP_MODEL_OPTIONS_DEFAULT;
    const fsdp_model_options chosen   = options != NULL ? *options : defaults;
    char                     label[FSDPI_DETAIL_BYTES / 2];
    fsdp_model              *made = NULL;

    if (ctx == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "fsdp_model_create: the context is NULL; pass one from fsdp_init");
    }
    fsdp_status status = check_options(ctx, &chosen);
    if (model == NULL) {
        status = fsdpi_fail(ctx, FSDP_ERR_ARG, "fsdp_model_create: the place for the model is NULL");
    } else if (status == FSDP_OK) {
        *model = NULL;
        made   = fsdpi_alloc(ctx, FSDP_MEMORY_BOOKKEEPING, sizeof *made);
        status = made != NULL ? FSDP_OK : FSDP_ERR_MEMORY;
    }
    (void)snprintf(label, sizeof label, "%s, seed %" PRIu64 ", memory limit %zu, optimizer %d",
                   fsdp_strategy_name(chosen.strategy), chosen.seed, chosen.memory_limit, (int)chosen.optimizer);
    status = fsdpi_agree(ctx, "fsdp_model_create", label, 0, status, false);
    if (status != FSDP_OK || made == NULL || model == NULL) {
        fsdpi_free(ctx, FSDP_MEMORY_BOOKKEEPING, made, sizeof *made);
        return status;
    }
    made->ctx     = ctx;
    made->options = chosen;
    fsdpi_own(ctx, &made->owned, "model", made, destroy_model);
    *model = made;
    return FSDP_OK;
}

/* ---- adding units ------------------------------------------------------------------------------------------------ */

/* Remembered until commit, where the other ranks learn of it. */
static fsdp_status remember(fsdp_model *model, fsdp_status status)
{
    if (model->add_status == FSDP_OK) {
        model->add_status = status;
        (void)snprintf(model->add_error, sizeof model->add_error, "%.*s", FSDPI_DETAIL_BYTES - 1, model->ctx->error);
    }
    return status;
}

static bool name_is_good(const char *name)
{
    return name != NULL && name[0] != '\0' && strnlen(name, FSDPI_NAME_BYTES) < FSDPI_NAME_BYTES;
}

static bool tensor_name_is_taken(const fsdp_model *model, const char *name)
{
    for (const fsdp_unit *unit = model->first; unit != NULL; unit = unit->next) {
        for (size_t i = 0; i < unit->n_tensors; i++) {
            if (strcmp(unit->tensors[i].name, name) == 0) {
                return true;
            }
        }
    }
    return false;
}

static fsdp_status check_fill(fsdp_context *ctx, const char *unit, const fsdp_tensor *tensor)
{
    if ((int)tensor->fill < 0 || tensor->fill > FSDP_FILL_UNIFORM || !isfinite(tensor->a) || !isfinite(tensor->b)) {
        return fsdpi_fail(ctx, FSDP_ERR_ARG,
                          "unit '%s', tensor '%s': fill %d with %g and %g; use one of fsdp_fill with "
                          "finite numbers",
                          unit, tensor->name, (int)tensor->fill, tensor->a, tensor->b);
    }
    if ((tensor->flags & ~FSDP_TENSOR_NO_WEIGHT_DECAY) != 0) {
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
static fsdp_status check_tensor(fsdp_context *ctx, const char *unit, size_t i, const fsdp_tensor *tensor, size_t *count)
{
    if (!name_is_good(tensor->name)) {
        return fsdpi_fail(ctx, FSDP_ERR_ARG, "unit '%s', tensor %zu: the name must have 1 to %d bytes", unit, i,
                          FSDPI_NAME_BYTES - 1);
    }
    if (fsdp_dtype_size(tensor->dtype) == 0) {
        return fsdpi_fail(ctx, FSDP_ERR_ARG, "unit '%s', tensor '%s': %d is no element type", unit, tensor->name,
                          (int)tensor->dtype);
    }
    if (tensor->dtype != FSDP_F32) {
        return fsdpi_fail(ctx, FSDP_ERR_UNSUPPORTED, "unit '%s', tensor '%s': element type %s; parameters are f32",
                          unit, tensor->name, fsdp_dtype_name(tensor->dtype));
    }
    FSDP_TRY(check_fill(ctx, unit, tensor));
    return count_elements(ctx, unit, tensor, count);
}

static fsdp_status check_name_is_new(const fsdp_model *model, const char *unit, const fsdp_tensor *tensors, size_t i)
{
    bool taken = tensor_name_is_taken(model, tensors[i].name);

    for (size_t j = 0; j < i && !taken; j++) {
        taken = strcmp(tensors[j].name, tensors[i].name) == 0;
    }
    return taken ? fsdpi_fail(model->ctx, FSDP_ERR_ARG,
                              "unit '%s', tensor '%s': the name is taken; names are unique in "
                              "a model",
                              unit, tensors[i].name)
                 : FSDP_OK;
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

        FSDP_TRY(check_tensor(model->ctx, name, i, &tensors[i], &count));
        FSDP_TRY(check_name_is_new(model, name, tensors, i));
        extent->elements += count; /* each below 2^60: the sum is checked before it can overflow */
        if (extent->elements > PTRDIFF_MAX / sizeof(double)) {
            return fsdpi_fail(model->ctx, FSDP_ERR_ARG,
                              "unit '%s': the size in bytes overflows at tensor '%s'; divide "
                              "the unit",
                              name, tensors[i].name);
        }
        extent->name_bytes += strlen(tensors[i].name) + 1;
    }
    extent->bytes =
        sizeof(fsdp_unit) + n * (sizeof(fsdpi_tensor) + sizeof(size_t) + sizeof(fsdp_interval)) + extent->name_bytes;
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
    for (const fsdp_unit *other = model->first; other != NULL; other = other->next) {
        if (strcmp(other->name, name) == 0) {
            return fsdpi_fail(ctx, FSDP_ERR_ARG, "fsdp_unit_add: the name '%s' is taken; names are unique in a model",
                              name);
        }
    }
    return check_tensors(model, name, tensors, n, extent);
}

static const char *copy_name(char **room, const char *name)
{
    char *copy = *room;

    *room = stpcpy(copy, name) + 1;
    return copy;
}

static uint64_t hash_tensor(uint64_t hash, const fsdp_tensor *tensor)
{
    hash = fsdpi_hash_text(hash, tensor->name);
    hash = fsdpi_hash_bytes(hash, tensor->shape, tensor->n_dims * sizeof tensor->shape[0]);
    hash = fsdpi_hash_u64(hash, tensor->n_dims);
    hash = fsdpi_hash_u64(hash, (uint64_t)tensor->dtype);
    hash = fsdpi_hash_u64(hash, (uint64_t)tensor->fill);
    hash = fsdpi_hash_bytes(hash, &tensor->a, sizeof tensor->a);
    hash = fsdpi_hash_bytes(hash, &tensor->b, sizeof tensor->b);
    return fsdpi_hash_u64(hash, tensor->flags);
}

static void fill_unit(fsdp_unit *unit, const char *name, const fsdp_tensor *tensors, size_t n)
{
    unit->tensors     = (fsdpi_tensor *)(void *)(unit + 1);
    unit->intervals   = (fsdp_interval *)(void *)(unit->tensors + n);
    unit->counts      = (size_t *)(void *)(unit->intervals + n);
    char *names       = (char *)(unit->counts + n);
    unit->name        = copy_name(&names, name);
    unit->n_tensors   = n;
    unit->fingerprint = fsdpi_hash_text(FSDPI_HASH_START, name);
    for (size_t i = 0; i < n; i++) {
        unit->counts[i] = 1;
        for (size_t d = 0; d < tensors[i].n_dims; d++) {
            unit->counts[i] *= tensors[i].shape[d];
        }
        unit->tensors[i] = (fsdpi_tensor){.name   = copy_name(&names, tensors[i].name),
                                          .fill   = tensors[i].fill,
                                          .a      = tensors[i].a,
                                          .b      = tensors[i].b,
                                          .flags  = tensors[i].flags,
                                          .offset = unit->elements};
        unit->elements += unit->counts[i];
        unit->fingerprint = hash_tensor(unit->fingerprint, &tensors[i]);
    }
}

static void append(fsdp_model *model, fsdp_unit *unit)
{
    unit->model = model;
    if (model->last != NULL) {
        model->last->next = unit;
    } else {
        model->first = unit;
    }
    model->last = unit;
    model->n_units++;
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
        return model->committed ? status : remember(model, status);
    }
    fsdp_unit *made = fsdpi_alloc(model->ctx, FSDP_MEMORY_BOOKKEEPING, extent.bytes);
    if (made == NULL) {
        return remember(model, FSDP_ERR_MEMORY);
    }
    made->bytes = extent.bytes;
    fill_unit(made, name, tensors, n_tensors);
    append(model, made);
    *unit = made;
    return FSDP_OK;
}

/* ---- commit ------------------------------------------------------------------------------------------------------ */

static fsdp_status check_limit(const fsdp_model *model)
{
    fsdp_budget budget;

    FSDP_TRY(fsdp_model_budget(model, model->options.strategy, 0, model->options.optimizer, &budget));
    if (model->options.memory_limit != 0 && budget.total > model->options.memory_limit) {
        return fsdpi_fail(model->ctx, FSDP_ERR_ARG,
                          "fsdp_model_commit: the model needs %zu bytes per rank, and the limit "
                          "is %zu; use more ranks, FULL_SHARD or a higher memory_limit",
                          budget.total, model->options.memory_limit);
    }
    return FSDP_OK;
}

static fsdp_status check_commit(fsdp_model *model)
{
    if (model->committed) {
        return fsdpi_fail(model->ctx, FSDP_ERR_STATE, "fsdp_model_commit: the model is committed; call it once");
    }
    if (model->add_status != FSDP_OK) {
        return fsdpi_record(model->ctx, model->add_status, "%s", model->add_error);
    }
    if (model->n_units == 0) {
        return fsdpi_fail(model->ctx, FSDP_ERR_ARG,
                          "fsdp_model_commit: the model has 0 units; call fsdp_unit_add first");
    }
    return check_limit(model);
}

/* One agreement per unit, so that the error names the unit in which ranks differ. */
static fsdp_status agree_on_units(const fsdp_model *model, fsdp_status status)
{
    char label[FSDPI_DETAIL_BYTES];

    (void)snprintf(label, sizeof label, "%zu units", model->n_units);
    FSDP_TRY(fsdpi_agree(model->ctx, "fsdp_model_commit", label, 0, status, false));
    for (const fsdp_unit *unit = model->first; unit != NULL; unit = unit->next) {
        (void)snprintf(label, sizeof label, "unit '%.100s' with %zu tensors of %zu elements", unit->name,
                       unit->n_tensors, unit->elements);
        FSDP_TRY(fsdpi_agree(model->ctx, "fsdp_model_commit", label, unit->fingerprint, FSDP_OK, false));
    }
    return FSDP_OK;
}

static size_t held_bytes(const fsdp_unit *unit)
{
    return fsdpi_held_elements(&unit->layout, unit->model->options.strategy) * sizeof(float);
}

static fsdp_status allocate_unit(fsdp_unit *unit)
{
    fsdp_context *ctx = unit->model->ctx;

    FSDP_TRY(fsdp_layout_init(unit->elements, ctx->size, &unit->layout));
    unit->master   = fsdpi_alloc(ctx, FSDP_MEMORY_PARAMETERS, held_bytes(unit));
    unit->gradient = unit->master != NULL ? fsdpi_alloc(ctx, FSDP_MEMORY_GRADIENTS, held_bytes(unit)) : NULL;
    return unit->gradient != NULL ? FSDP_OK : FSDP_ERR_MEMORY;
}

static fsdp_status allocate_model(fsdp_model *model)
{
    const size_t n       = fsdpi_views_needed(model);
    size_t       largest = 0;

    for (fsdp_unit *unit = model->first; unit != NULL; unit = unit->next) {
        FSDP_TRY(allocate_unit(unit));
        largest = unit->layout.padded > largest ? unit->layout.padded : largest;
    }
    FSDP_TRY(fsdpi_pool_open(model->ctx, &model->gathered, FSDP_MEMORY_GATHERED,
                             model->options.strategy == FSDP_NO_SHARD ? 0 : n, largest));
    return fsdpi_pool_open(model->ctx, &model->gradients, FSDP_MEMORY_GRADIENT_VIEWS, n, largest);
}

static void release_state(fsdp_model *model)
{
    fsdpi_pool_close(model->ctx, &model->gathered);
    fsdpi_pool_close(model->ctx, &model->gradients);
    for (fsdp_unit *unit = model->first; unit != NULL; unit = unit->next) {
        fsdpi_free(model->ctx, FSDP_MEMORY_PARAMETERS, unit->master, held_bytes(unit));
        fsdpi_free(model->ctx, FSDP_MEMORY_GRADIENTS, unit->gradient, held_bytes(unit));
        unit->master   = NULL;
        unit->gradient = NULL;
    }
}

fsdp_status fsdp_model_commit(fsdp_model *model)
{
    if (model == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "fsdp_model_commit: the model is NULL; pass one from fsdp_model_create");
    }
    FSDP_TRY(agree_on_units(model, check_commit(model)));
    const fsdp_status status =
        fsdpi_agree(model->ctx, "fsdp_model_commit", "allocation", 0, allocate_model(model), true);
    if (status != FSDP_OK) {
        release_state(model);
        return status;
    }
    for (fsdp_unit *unit = model->first; unit != NULL; unit = unit->next) {
        fsdpi_draw_initial_values(unit);
    }
    model->committed = true;
    fsdpi_log(model->ctx, FSDP_LOG_INFO, "model committed: %zu units, %s", model->n_units,
              fsdp_strategy_name(model->options.strategy));
    return FSDP_OK;
}

void fsdp_model_destroy(fsdp_model *model)
{
    if (model == NULL) {
        return;
    }
    fsdp_context *ctx = model->ctx;
    fsdpi_disown(ctx, &model->owned);
    fsdpi_optimizers_release(model);
    release_state(model);
    while (model->first != NULL) {
        fsdp_unit *unit = model->first;

        model->first = unit->next;
        fsdpi_free(ctx, FSDP_MEMORY_BOOKKEEPING, unit, unit->bytes);
    }
    fsdpi_free(ctx, FSDP_MEMORY_BOOKKEEPING, model, sizeof *model);
}

/* ---- shared by the other files ----------------------------------------------------------------------------------- */

size_t fsdpi_held_intervals(fsdp_unit *unit, int i)
{
    const fsdpi_held held = fsdpi_held_slices(unit->model);
    size_t           n    = 0;

    (void)fsdp_layout_intervals(&unit->layout, held.first + i, unit->n_tensors, unit->counts, unit->intervals, &n);
    return n;
}

fsdp_status fsdpi_between_passes(fsdp_model *model, const char *function)
{
    if (!model->committed) {
        return fsdpi_fail(model->ctx, FSDP_ERR_STATE, "%s: the model is not committed; call fsdp_model_commit first",
                          function);
    }
    for (const fsdp_unit *unit = model->first; unit != NULL; unit = unit->next) {
        if (unit->pass != FSDPI_CLOSED) {
            return fsdpi_fail(model->ctx, FSDP_ERR_STATE, "%s: a %s pass of unit '%s' is open; end it first", function,
                              unit->pass == FSDPI_FORWARD ? "forward" : "backward", unit->name);
        }
    }
    return FSDP_OK;
}
