#include <math.h>
#include <stdio.h>

#include "collectives/collectives.h"
#include "lib/base/error.h"
#include "lib/context/context.h"
#include "lib/device/memory.h"
#include "shard/tensor_parallel/entropy.h"

static const char FUNCTION[] = "fsdp_tp_cross_entropy";

/* ---- checks ------------------------------------------------------------------------------------------------------ */

static fsdp_status check_sizes(fsdp_context *tp, size_t rows, size_t vocabulary, fsdp_dtype dtype)
{
    size_t bytes;

    if (dtype != FSDP_F32 && dtype != FSDP_F64) {
        return fsdpi_fail_together(tp, FSDP_ERR_UNSUPPORTED, "%s: logits in %s; compute them in f32 or f64", FUNCTION,
                                   fsdp_dtype_name(dtype));
    }
    if (!fsdpi_multiply(rows, vocabulary, &bytes) || !fsdpi_multiply(bytes, fsdp_dtype_size(dtype), &bytes) ||
        !fsdpi_multiply(rows, 3 * sizeof(double), &bytes) || bytes > PTRDIFF_MAX) {
        return fsdpi_fail_together(tp, FSDP_ERR_ARG,
                                   "%s: %zu rows of %zu logits are more bytes than memory can address", FUNCTION, rows,
                                   vocabulary);
    }
    return FSDP_OK;
}

static fsdp_status check(fsdpi_entropy *e, bool *on_device)
{
    FSDP_TRY(check_sizes(e->tp, e->rows, e->vocabulary, e->dtype));
    const size_t      bytes  = e->rows * e->mine.count * fsdp_dtype_size(e->dtype);
    const fsdpi_array logits = {"array of logits", e->logits, bytes},
                      losses = {"array of losses", e->losses, e->rows * sizeof(double)};

    if (!isfinite(e->scale)) {
        return fsdpi_fail_together(e->tp, FSDP_ERR_ARG, "%s: the scale is %g; it must be finite", FUNCTION, e->scale);
    }
    if (e->rows > 0 && (e->losses == NULL || (e->logits == NULL && e->mine.count > 0))) {
        return fsdpi_fail_together(e->tp, FSDP_ERR_ARG, "%s: the %s are NULL; pass memory for them", FUNCTION,
                                   e->losses == NULL ? "losses" : "logits");
    }
    FSDP_TRY(fsdpi_place_check(e->tp, FUNCTION, &logits, &losses, on_device));
    FSDP_TRY(fsdpi_words_place_check(e->tp, FUNCTION, e->targets, e->rows, *on_device, &e->targets_there));
    return fsdpi_words_check(e->tp, FUNCTION, e->targets, e->rows, e->vocabulary, true, e->targets_there);
}

/* ---- call -------------------------------------------------------------------------------------------------------- */

/* What has failed on one rank is told to all where they meet. */
static fsdp_status join(const fsdpi_entropy *e, const char *label, fsdp_status status, double *values, size_t count,
                        fsdp_redop op)
{
    const fsdpi_purpose purpose = {.name = FUNCTION, .label = status == FSDP_OK ? label : NULL, .status = status};

    return fsdpi_allreduce(e->tp, &purpose, FSDP_IN_PLACE, values, count, FSDP_F64, op);
}

static fsdp_status exchange(fsdpi_entropy *e, const fsdpi_entropy_ops *ops, const char *label)
{
    FSDP_TRY(join(e, label, ops->find_largest(e), e->largest, e->rows, FSDP_MAX));
    FSDP_TRY(join(e, label, ops->exponentiate(e), e->sums, 2 * e->rows, FSDP_SUM));
    return ops->finish(e);
}

fsdp_status fsdp_tp_cross_entropy(fsdp_context *tp, size_t rows, size_t vocabulary, fsdp_dtype dtype,
                                  const int32_t *targets, double scale, void *logits, double *losses)
{
    char label[128];
    bool on_device = false;

    if (tp == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "%s: the context is NULL; pass one from fsdp_mesh_context", FUNCTION);
    }
    fsdpi_entropy e = {.tp         = tp,
                       .rows       = rows,
                       .vocabulary = vocabulary,
                       .mine       = fsdpi_words_of(tp, vocabulary),
                       .dtype      = dtype,
                       .targets    = targets,
                       .scale      = scale,
                       .logits     = logits};
    e.losses        = losses;

    fsdp_status              status = check(&e, &on_device);
    const fsdpi_entropy_ops *ops    = on_device ? &fsdpi_entropy_on_device : &fsdpi_entropy_on_host;

    (void)snprintf(label, sizeof label, "%zu rows, vocabulary %zu, %s, scale %.17g%s", rows, vocabulary,
                   fsdp_dtype_name(dtype), scale, on_device ? ", on GPUs" : "");
    status = status == FSDP_OK && rows > 0 ? ops->open(&e) : status;
    if (status != FSDP_OK || rows == 0) { /* the other ranks are told where they wait */
        return join(&e, label, status, NULL, 0, FSDP_MAX);
    }
    status                   = exchange(&e, ops, label);
    const fsdp_status closed = ops->close(&e);
    return status != FSDP_OK ? status : closed;
}
