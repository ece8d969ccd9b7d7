#include "shard/state/optimizer_kind.h"

#include "lib/base/error.h"
#include "lib/base/options.h"

size_t fsdpi_optimizer_states(fsdp_optimizer_kind kind, size_t n_states)
{
    switch (kind) {
    case FSDP_SGD:
        return 0;
    case FSDP_SGD_MOMENTUM:
    case FSDP_LION:
    case FSDP_MUON:
        return 1;
    case FSDP_ADAM:
    case FSDP_ADAMW:
        return 2;
    case FSDP_CUSTOM:
        return n_states;
    }
    return 0;
}

static bool takes_moments(fsdp_optimizer_kind kind, fsdp_dtype moment_dtype, fsdp_dtype masters)
{
    if (kind == FSDP_CUSTOM || kind == FSDP_MUON) {
        return moment_dtype == FSDP_F32 || moment_dtype == FSDP_F64;
    }
    return moment_dtype == FSDP_F32 || moment_dtype == FSDP_BF16 ||
           moment_dtype == (masters == FSDP_F64 ? FSDP_F64 : FSDP_U8);
}

/* What to use instead. */
static const char *remedy(fsdp_optimizer_kind kind, fsdp_dtype masters)
{
    return kind == FSDP_CUSTOM || kind == FSDP_MUON ? "FSDP_F32, or FSDP_F64 with masters in f64"
           : masters == FSDP_F64                    ? "FSDP_F64, FSDP_F32 or FSDP_BF16"
                                                    : "FSDP_F32 or FSDP_BF16, or FSDP_U8";
}

fsdp_status fsdpi_check_states(fsdp_context *ctx, const char *of, const char *defaults, fsdp_optimizer_kind kind,
                               size_t n_states, fsdp_dtype moment_dtype, fsdp_dtype masters)
{
    if (!fsdpi_is_optimizer_kind(kind)) {
        return fsdpi_fail_together(ctx, FSDP_ERR_ARG, "%s %d is no optimizer; use one of fsdp_optimizer_kind", of,
                                   (int)kind);
    }
    if (moment_dtype == FSDP_U8 && masters == FSDP_F64) {
        return fsdpi_fail_together(ctx, FSDP_ERR_UNSUPPORTED, "%s moments in 8 bits with masters in f64; use %s", of,
                                   remedy(kind, masters));
    }
    if (!takes_moments(kind, moment_dtype, masters)) {
        return fsdpi_fail_together(ctx, FSDP_ERR_ARG, "%s moment_dtype is %s; use %s, and start from %s", of,
                                   fsdp_dtype_name(moment_dtype), remedy(kind, masters), defaults);
    }
    if (n_states > FSDP_MAX_STATES || (n_states > 0 && kind != FSDP_CUSTOM)) {
        return fsdpi_fail_together(
            ctx, FSDP_ERR_ARG, "%s n_states is %zu; it must be at most %d, and 0 unless the optimizer is FSDP_CUSTOM",
            of, n_states, FSDP_MAX_STATES);
    }
    return FSDP_OK;
}

fsdp_status fsdp_optimizer_options_init_size(fsdp_optimizer_kind kind, fsdp_optimizer_options *options, size_t size)
{
    static const fsdp_optimizer_options defaults[FSDP_N_OPTIMIZER_KINDS] = {
        [FSDP_SGD]          = {.lr = 1e-2},
        [FSDP_SGD_MOMENTUM] = {.lr = 1e-2, .momentum = 0.9},
        [FSDP_ADAMW]        = {.lr = 1e-3, .weight_decay = 0.01, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8},
        [FSDP_ADAM]         = {.lr = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8},
        [FSDP_CUSTOM]       = {.lr = 1e-3},
        [FSDP_MUON]         = {.lr = 0.02, .momentum = 0.95, .nesterov = 1, .eps = 1e-7},
        [FSDP_LION]         = {.lr = 1e-4, .weight_decay = 0.1, .beta1 = 0.9, .beta2 = 0.99},
    };

    if (options == NULL || size <= sizeof(size_t) || !fsdpi_is_optimizer_kind(kind)) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG,
                          "fsdp_optimizer_options_init: kind %d; use one of fsdp_optimizer_kind, and "
                          "a place for the options",
                          (int)kind);
    }
    fsdp_optimizer_options own = defaults[kind];
    own.kind                   = kind;
    own.moment_dtype           = FSDP_F32;
    fsdpi_options_give(&own, sizeof own, options, size);
    return FSDP_OK;
}

/* Twice: what the defaults are depends on the kind, which is among the options. */
fsdp_status fsdpi_optimizer_options_take(fsdp_context *ctx, const fsdp_optimizer_options *given,
                                         fsdp_optimizer_options *own)
{
    static const char type[] = "fsdp_optimizer_options";

    *own = (fsdp_optimizer_options){.size = sizeof *own};
    FSDP_TRY(fsdpi_options_take(ctx, type, given, own, sizeof *own));
    if (fsdpi_is_optimizer_kind(own->kind)) {
        FSDP_TRY(fsdp_optimizer_options_init(own->kind, own));
        FSDP_TRY(fsdpi_options_take(ctx, type, given, own, sizeof *own));
    }
    return FSDP_OK;
}
