/* The program's own functions around an average in f32. */
#include <stdio.h>

#include "lib/base/options.h"
#include "shard/hooks/hook.h"

static bool applies(const fsdp_hook *hook, const fsdp_gradient *gradient)
{
    (void)hook;
    (void)gradient;
    return true;
}

/* Codes that are none would be lost among the ranks. */
static fsdp_status call(const fsdpi_reduction *reduction, fsdp_status (*callback)(void *, const fsdp_gradient *),
                        const char            *which)
{
    const fsdp_status status =
        callback != NULL ? callback(reduction->hook->options.custom.state, reduction->gradient) : FSDP_OK;

    if (status == FSDP_OK) {
        return FSDP_OK;
    }
    return fsdpi_fail(reduction->ctx, (int)status < 0 || status > FSDP_ERR_DEVICE ? FSDP_ERR_ARG : status,
                      "the gradient hook's %s() returned %d, %s, for unit '%s'", which, (int)status,
                      fsdp_status_name(status), reduction->gradient->unit);
}

static fsdp_status reduce(const fsdpi_reduction *reduction)
{
    const fsdp_hook_callbacks *callbacks = &reduction->hook->options.custom;
    const fsdpi_purpose       *purpose   = reduction->purpose;
    const fsdp_gradient       *gradient  = reduction->gradient;

    const fsdp_status status = call(reduction, callbacks->before, "before");
    if (status != FSDP_OK) {
        return fsdpi_agree(reduction->ctx, purpose->name, purpose->label, 0, status, true);
    }
    FSDP_TRY(fsdpi_hook_average(reduction, FSDP_IN_PLACE, gradient->values, gradient->count, FSDP_F32));
    if (callbacks->after == NULL) {
        return FSDP_OK;
    }
    return fsdpi_agree(reduction->ctx, purpose->name, purpose->label, 0, call(reduction, callbacks->after, "after"),
                       true);
}

const fsdpi_hook_method fsdpi_custom_method = {.applies = applies, .reduce = reduce};

void fsdp_hook_callbacks_init_size(fsdp_hook_callbacks *callbacks, size_t size)
{
    static const fsdp_hook_callbacks defaults = {.size = sizeof defaults};

    fsdpi_options_give(&defaults, sizeof defaults, callbacks, size);
}

fsdp_status fsdp_hook_custom(fsdp_context *ctx, const fsdp_hook_callbacks *callbacks, fsdp_hook **hook)
{
    static const char function[] = "fsdp_hook_custom";
    fsdp_hook         plan       = {.method = &fsdpi_custom_method};
    char              label[32]  = "";

    if (ctx == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "%s: the context is NULL; pass one from fsdp_init", function);
    }
    fsdp_hook_callbacks *own    = &plan.options.custom;
    fsdp_status          status = fsdpi_options_take(ctx, "fsdp_hook_callbacks", callbacks, own, sizeof *own);
    if (status == FSDP_OK && own->before == NULL && own->after == NULL) {
        status = fsdpi_fail(ctx, FSDP_ERR_ARG, "%s: there is no callback; set `before`, `after` or both", function);
    }
    (void)snprintf(label, sizeof label, "%s%s", own->before != NULL ? "before " : "",
                   own->after != NULL ? "after" : "");
    return fsdpi_hook_make(ctx, function, &plan, label, status, hook);
}
