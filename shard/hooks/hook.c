#include "shard/hooks/hook.h"

#include <string.h>

#include "lib/base/hash.h"
#include "lib/device/memory.h"

/* What is kept for one unit between reductions. */
typedef struct fsdpi_hook_unit {
    struct fsdpi_hook_unit *next;
    uint64_t                fingerprint; /* of the layout that the state belongs to */
    float                  *state;
    size_t                  state_bytes;
    char                    name[];
} fsdpi_hook_unit;

/* ---- making and releasing ---------------------------------------------------------------------------------------- */

static void release_scratch(fsdp_hook *hook)
{
    fsdpi_free(hook->ctx, FSDP_MEMORY_STAGING, hook->scratch, hook->scratch_bytes);
    hook->scratch       = NULL;
    hook->scratch_bytes = 0;
}

static size_t unit_bytes(const char *name)
{
    return sizeof(fsdpi_hook_unit) + strlen(name) + 1;
}

static void release_unit(const fsdp_hook *hook, fsdpi_hook_unit *unit)
{
    fsdpi_free(hook->ctx, FSDP_MEMORY_GRADIENTS, unit->state, unit->state_bytes);
    fsdpi_free(hook->ctx, FSDP_MEMORY_BOOKKEEPING, unit, unit_bytes(unit->name));
}

static void release_units(fsdp_hook *hook)
{
    while (hook->units != NULL) {
        fsdpi_hook_unit *unit = hook->units;

        hook->units = unit->next;
        release_unit(hook, unit);
    }
}

bool fsdpi_hook_is_saved(const fsdp_hook *hook)
{
    return hook != NULL && hook->method->name_saved != NULL;
}

/* What begins with zeros may as well stay; the rest begins anew with the next gradient, whose layout it needs. */
void fsdpi_hook_forget(fsdp_hook *hook)
{
    if (hook == NULL) {
        return;
    }
    if (!fsdpi_hook_is_saved(hook)) {
        release_units(hook);
    }
    for (fsdpi_hook_unit *unit = hook->units; unit != NULL; unit = unit->next) {
        memset(unit->state, 0, unit->state_bytes);
    }
}

/* Right factors of PowerSGD too, of which only the directions count. */
void fsdpi_hook_rescale(fsdp_hook *hook, double factor)
{
    for (fsdpi_hook_unit *unit = hook != NULL ? hook->units : NULL; unit != NULL; unit = unit->next) {
        hook->ctx->kernels->scale(unit->state, factor, unit->state_bytes / sizeof(float), FSDP_F32);
    }
}

void fsdp_hook_destroy(fsdp_hook *hook)
{
    if (hook == NULL) {
        return;
    }
    fsdpi_disown(hook->ctx, &hook->owned);
    release_scratch(hook);
    release_units(hook);
    fsdpi_free(hook->ctx, FSDP_MEMORY_BOOKKEEPING, hook, sizeof *hook);
}

static void destroy_hook(void *object)
{
    fsdp_hook_destroy(object);
}

size_t fsdpi_hook_bookkeeping(void)
{
    return fsdpi_alloc_size(sizeof(fsdp_hook));
}

fsdp_status fsdpi_hook_make(fsdp_context *ctx, const char *function, const fsdp_hook *plan, const char *label,
                            fsdp_status status, fsdp_hook **hook)
{
    fsdp_hook *made = NULL;

    if (hook == NULL) {
        status = fsdpi_fail_together(ctx, FSDP_ERR_ARG, "%s: the place for the hook is NULL", function);
    } else if (status == FSDP_OK) {
        made   = fsdpi_alloc(ctx, FSDP_MEMORY_BOOKKEEPING, sizeof *made);
        status = made != NULL ? FSDP_OK : FSDP_ERR_MEMORY;
    }
    status = fsdpi_agree(ctx, function, label, 0, status, true);
    if (hook != NULL) {
        *hook = NULL;
    }
    if (status != FSDP_OK || made == NULL || hook == NULL) {
        fsdpi_free(ctx, FSDP_MEMORY_BOOKKEEPING, made, sizeof *made);
        return status;
    }
    *made             = *plan;
    made->ctx         = ctx;
    made->fingerprint = fsdpi_hash_text(fsdpi_hash_text(FSDPI_HASH_START, function), label);
    fsdpi_own(ctx, &made->owned, "gradient hook", made, destroy_hook);
    *hook = made;
    return FSDP_OK;
}

fsdp_status fsdp_hook_bytes(const fsdp_hook *hook, uint64_t *sent, uint64_t *uncompressed)
{
    if (hook == NULL || sent == NULL || uncompressed == NULL) {
        return fsdpi_fail(hook != NULL ? hook->ctx : NULL, FSDP_ERR_ARG, "fsdp_hook_bytes: %s is NULL",
                          hook == NULL ? "the hook" : "a place for the result");
    }
    *sent         = hook->sent;
    *uncompressed = hook->uncompressed;
    return FSDP_OK;
}

/* ---- memory of a unit -------------------------------------------------------------------------------------------- */

static size_t state_bytes(const fsdp_hook *hook, const fsdp_gradient *gradient)
{
    const fsdpi_hook_method *method = hook->method;

    if (method->state_elements == NULL || !method->applies(hook, gradient)) {
        return 0;
    }
    return method->state_elements(hook, gradient) * sizeof(float);
}

static size_t scratch_bytes(const fsdp_hook *hook, const fsdp_gradient *gradient)
{
    const fsdpi_hook_method *method = hook->method;

    return method->scratch_bytes != NULL && method->applies(hook, gradient) ? method->scratch_bytes(hook, gradient) : 0;
}

fsdpi_hook_need fsdpi_hook_needs(const fsdp_hook *hook, const fsdp_gradient *gradient)
{
    const size_t state = hook != NULL ? state_bytes(hook, gradient) : 0;

    return (fsdpi_hook_need){.bookkeeping = state > 0 ? fsdpi_alloc_size(unit_bytes(gradient->unit)) : 0,
                             .state       = fsdpi_alloc_size(state),
                             .scratch     = hook != NULL ? fsdpi_alloc_size(scratch_bytes(hook, gradient)) : 0};
}

static uint64_t fingerprint(const fsdp_gradient *gradient)
{
    uint64_t hash = fsdpi_hash_u64(fsdpi_hash_u64(FSDPI_HASH_START, gradient->count), (uint64_t)gradient->ranks);

    for (size_t i = 0; i < gradient->n_tensors; i++) {
        const fsdp_gradient_tensor *tensor = &gradient->tensors[i];

        hash = fsdpi_hash_u64(hash, tensor->offset);
        hash = fsdpi_hash_u64(hash, tensor->n_dims);
        hash = fsdpi_hash_bytes(hash, tensor->shape, tensor->n_dims * sizeof tensor->shape[0]);
    }
    return hash;
}

static fsdpi_hook_unit *find_unit(const fsdp_hook *hook, const char *name)
{
    for (fsdpi_hook_unit *unit = hook->units; unit != NULL; unit = unit->next) {
        if (strcmp(unit->name, name) == 0) {
            return unit;
        }
    }
    return NULL;
}

static fsdp_status add_unit(fsdp_hook *hook, const fsdp_gradient *gradient, size_t bytes)
{
    fsdpi_hook_unit *unit = fsdpi_alloc(hook->ctx, FSDP_MEMORY_BOOKKEEPING, unit_bytes(gradient->unit));

    if (unit == NULL) {
        return FSDP_ERR_MEMORY;
    }
    unit->fingerprint = fingerprint(gradient);
    unit->state_bytes = bytes;
    unit->state       = fsdpi_alloc(hook->ctx, FSDP_MEMORY_GRADIENTS, bytes);
    memcpy(unit->name, gradient->unit, strlen(gradient->unit) + 1);
    if (unit->state == NULL) {
        release_unit(hook, unit);
        return FSDP_ERR_MEMORY;
    }
    if (hook->method->start != NULL) {
        hook->method->start(hook, gradient, unit->state);
    }
    unit->next  = hook->units;
    hook->units = unit;
    return FSDP_OK;
}

static fsdp_status prepare_state(fsdp_hook *hook, fsdp_context *ctx, const fsdp_gradient *gradient)
{
    const size_t           bytes = state_bytes(hook, gradient);
    const fsdpi_hook_unit *unit  = bytes > 0 ? find_unit(hook, gradient->unit) : NULL;

    if (bytes == 0) {
        return FSDP_OK;
    }
    if (unit == NULL) {
        return add_unit(hook, gradient, bytes);
    }
    return unit->fingerprint == fingerprint(gradient)
               ? FSDP_OK
               : fsdpi_fail(ctx, FSDP_ERR_STATE,
                            "gradient hook: unit '%s' is known with other tensors or another number of ranks; make a "
                            "hook for each model",
                            gradient->unit);
}

static fsdp_status prepare_scratch(fsdp_hook *hook, const fsdp_gradient *gradient)
{
    const size_t bytes = scratch_bytes(hook, gradient);

    if (bytes <= hook->scratch_bytes) {
        return FSDP_OK;
    }
    release_scratch(hook);
    hook->scratch = fsdpi_alloc(hook->ctx, FSDP_MEMORY_STAGING, bytes);
    if (hook->scratch == NULL) {
        return FSDP_ERR_MEMORY;
    }
    hook->scratch_bytes = bytes;
    return FSDP_OK;
}

const char *fsdpi_hook_saved_name(const fsdp_hook *hook, const fsdp_gradient *gradient, char *text, size_t size)
{
    hook->method->name_saved(hook, gradient, text, size);
    return text;
}

size_t fsdpi_hook_saved_elements(const fsdp_hook *hook, const fsdp_gradient *gradient)
{
    return state_bytes(hook, gradient) / sizeof(float);
}

float *fsdpi_hook_saved_state(const fsdp_hook *hook, const char *unit)
{
    const fsdpi_hook_unit *found = find_unit(hook, unit);

    return found != NULL ? found->state : NULL;
}

fsdp_status fsdpi_hook_prepare(fsdp_hook *hook, fsdp_context *ctx, const fsdp_gradient *gradient)
{
    if (hook == NULL) {
        return FSDP_OK;
    }
    fsdp_status status = prepare_state(hook, ctx, gradient);
    if (status == FSDP_OK) {
        status = prepare_scratch(hook, gradient);
    }
    if (status == FSDP_ERR_MEMORY && ctx != hook->ctx) { /* the other ranks read it from there */
        return fsdpi_record(ctx, status, "%s", fsdpi_error_recorded(hook->ctx));
    }
    return status;
}

/* ---- reduction --------------------------------------------------------------------------------------------------- */

/* BYTES that each of `ranks` sends so that all have the average of `bytes`. */
static uint64_t average_bytes(size_t bytes, int ranks)
{
    const uint64_t n = (uint64_t)ranks, times = 2 * (n - 1);

    return bytes / n * times + (bytes % n * times + n - 1) / n;
}

fsdp_status fsdpi_hook_average(const fsdpi_reduction *reduction, const void *in, void *out, size_t count,
                               fsdp_dtype dtype)
{
    FSDP_TRY(fsdpi_allreduce(reduction->ctx, reduction->purpose, in, out, count, dtype, FSDP_AVG));
    reduction->hook->sent += average_bytes(count * fsdp_dtype_size(dtype), reduction->ctx->size);
    return FSDP_OK;
}

void fsdpi_hook_count_blocks(const fsdpi_reduction *reduction, size_t bytes)
{
    reduction->hook->sent += (uint64_t)bytes * (uint64_t)(reduction->ctx->size - 1);
}

static fsdp_status reduce(const fsdpi_reduction *reduction)
{
    const fsdp_gradient *gradient = reduction->gradient;

    if (reduction->hook->method->applies(reduction->hook, gradient)) {
        return reduction->hook->method->reduce(reduction);
    }
    return fsdpi_hook_average(reduction, FSDP_IN_PLACE, gradient->values, gradient->count, FSDP_F32);
}

fsdp_status fsdpi_hook_allreduce(fsdp_hook *hook, fsdp_context *ctx, const fsdpi_purpose *purpose,
                                 const fsdp_gradient *gradient)
{
    const fsdp_status status = purpose->status == FSDP_OK ? fsdpi_hook_prepare(hook, ctx, gradient) : purpose->status;

    if (status != FSDP_OK) { /* ends the first step of the other ranks, whichever that is */
        return fsdpi_agree(ctx, purpose->name, purpose->label, 0, status, true);
    }
    if (hook == NULL) {
        return fsdpi_allreduce(ctx, purpose, FSDP_IN_PLACE, gradient->values, gradient->count, FSDP_F32, FSDP_AVG);
    }
    const fsdpi_hook_unit *unit      = find_unit(hook, gradient->unit);
    const fsdpi_reduction  reduction = {.hook     = hook,
                                        .ctx      = ctx,
                                        .purpose  = purpose,
                                        .gradient = gradient,
                                        .state    = unit != NULL ? unit->state : NULL,
                                        .scratch  = hook->scratch};
    FSDP_TRY(reduce(&reduction));
    hook->uncompressed += average_bytes(gradient->count * sizeof(float), ctx->size);
    return FSDP_OK;
}
