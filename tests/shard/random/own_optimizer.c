#include "tests/shard/random/own_optimizer.h"

#include <math.h>

#include "lib/context/context.h"
#include "lib/device/gpu_device.h"
#include "tests/shard/random/serial.h"

size_t own_states(fsdp_optimizer_kind kind)
{
    switch (kind) {
    case FSDP_SGD:
    case FSDP_CUSTOM:
        return 0;
    case FSDP_SGD_MOMENTUM:
    case FSDP_LION:
    case FSDP_MUON:
        return 1;
    case FSDP_ADAM:
    case FSDP_ADAMW:
        return 2;
    }
    return 0;
}

#ifdef FSDP_TESTS_MODEL_ON_DEVICE_H
static fsdp_status update_elements(const own_optimizer *own, const fsdp_update *u)
{
    const fsdp_optimizer_options *o   = &own->coefficients;
    fsdpi_gpu_device             *gpu = own->ctx->gpu.device;
    const fsdpi_sgd               sgd = {.lr           = (float)u->lr,
                                         .momentum     = o->kind == FSDP_SGD_MOMENTUM ? (float)o->momentum : 0.0F,
                                         .weight_decay = (float)u->weight_decay,
                                         .nesterov     = o->nesterov != 0,
                                         .first_step   = u->step == 1};
    const fsdpi_adam              c   = {.lr           = (float)u->lr,
                                         .beta1        = (float)o->beta1,
                                         .beta2        = (float)o->beta2,
                                         .rest1        = (float)(1.0 - o->beta1),
                                         .rest2        = (float)(1.0 - o->beta2),
                                         .eps          = (float)o->eps,
                                         .weight_decay = (float)u->weight_decay,
                                         .correction1  = (float)(1.0 - pow(o->beta1, (double)u->step)),
                                         .correction2  = (float)(1.0 - pow(o->beta2, (double)u->step))};

    if (o->kind == FSDP_ADAMW) {
        return gpu->ops->compute->adamw(gpu, u->master, u->gradient, u->states[0], u->states[1], u->count, &c,
                                        u->stream);
    }
    return gpu->ops->compute->sgd(gpu, u->master, u->gradient, u->n_states > 0 ? u->states[0] : NULL, u->count, &sgd,
                                  u->stream);
}
#else
static fsdp_status update_elements(const own_optimizer *own, const fsdp_update *u)
{
    float       *w = u->master, *m = u->n_states > 0 ? u->states[0] : NULL, *v = u->n_states > 1 ? u->states[1] : NULL;
    const float *g = u->gradient;

    for (size_t i = 0; i < u->count; i++) {
        const serial_element e = {.w     = &w[i],
                                  .m     = m != NULL ? &m[i] : NULL,
                                  .v     = v != NULL ? &v[i] : NULL,
                                  .g     = g[i],
                                  .lr    = (float)u->lr,
                                  .decay = (float)u->weight_decay};

        serial_update_element(&own->coefficients, &e, u->step);
    }
    return FSDP_OK;
}
#endif

static fsdp_status update(void *state, const fsdp_update *u)
{
    const own_optimizer *own = state;

    if (u->dtype != FSDP_F32 || u->state_dtype != FSDP_F32 || u->n_states != own_states(own->coefficients.kind)) {
        return FSDP_ERR_ARG;
    }
    return update_elements(own, u);
}

void own_optimizer_init(own_optimizer *own, fsdp_context *ctx, const fsdp_optimizer_options *like,
                        fsdp_optimizer_options *options)
{
    static const char *const names[] = {OWN_FIRST, OWN_SECOND};

    *own = (own_optimizer){ctx, *like};
    (void)fsdp_optimizer_options_init(FSDP_CUSTOM, options);
    options->lr           = like->lr;
    options->weight_decay = like->weight_decay;
    options->n_states     = own_states(like->kind);
    options->state_names  = options->n_states > 0 ? names : NULL;
    options->update       = update;
    options->update_state = own;
}
