#include <math.h>
#include <stdio.h>
#include <string.h>

#include "collectives/collectives.h"
#include "kernels/kernels.h"
#include "lib/base/error.h"
#include "lib/context/context.h"
#include "lib/device/memory.h"
#include "shard/tensor_parallel/arguments.h"

static const char FUNCTION[] = "fsdp_tp_cross_entropy";

/* What one call is about. */
typedef struct entropy {
    fsdp_context  *tp;
    size_t         rows;
    fsdpi_words    mine;
    bool           wide; /* f64 */
    const int32_t *targets;
    double         scale;
    void          *logits;
} entropy;

static void *row_of(const entropy *e, size_t i)
{
    const size_t element = e->wide ? sizeof(double) : sizeof(float);

    return (char *)e->logits + i * e->mine.count * element;
}

static double logit(const entropy *e, const void *row, size_t k)
{
    return e->wide ? ((const double *)row)[k] : (double)((const float *)row)[k];
}

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

static fsdp_status check(const entropy *e, size_t vocabulary, fsdp_dtype dtype, const double *losses)
{
    FSDP_TRY(check_sizes(e->tp, e->rows, vocabulary, dtype));
    if (!isfinite(e->scale)) {
        return fsdpi_fail_together(e->tp, FSDP_ERR_ARG, "%s: the scale is %g; it must be finite", FUNCTION, e->scale);
    }
    FSDP_TRY(fsdpi_words_check(e->tp, FUNCTION, e->targets, e->rows, vocabulary, true));
    if (e->rows > 0 && (losses == NULL || (e->logits == NULL && e->mine.count > 0))) {
        return fsdpi_fail_together(e->tp, FSDP_ERR_ARG, "%s: the %s are NULL; pass memory for them", FUNCTION,
                                   losses == NULL ? "losses" : "logits");
    }
    return FSDP_OK;
}

/* ---- compute ----------------------------------------------------------------------------------------------------- */

static void find_largest(const entropy *e, double *largest)
{
    for (size_t i = 0; i < e->rows; i++) {
        const void *row  = row_of(e, i);
        double      most = -INFINITY;

        for (size_t k = 0; k < e->mine.count; k++) {
            const double value = logit(e, row, k);

            most = value > most || isnan(value) ? value : most;
        }
        largest[i] = most;
    }
}

/* The logits become exponentials. `sums` has of each row what is under way to their sum, and the logit of the target, if it is here. */
static void exponentiate(const entropy *e, const double *largest, double *sums)
{
    for (size_t i = 0; i < e->rows; i++) {
        void        *row    = row_of(e, i);
        const size_t target = (size_t)e->targets[i] - e->mine.begin;
        const bool   here   = e->targets[i] != FSDP_TP_NO_TARGET && target < e->mine.count;

        sums[2 * i + 1] = here ? logit(e, row, target) - largest[i] : 0.0;
        sums[2 * i]     = e->wide ? fsdpi_exponentials_f64(row, e->mine.count, largest[i])
                                  : fsdpi_exponentials_f32(row, e->mine.count, (float)largest[i]);
    }
}

static void take_target(const entropy *e, void *row, size_t target)
{
    if (target < e->mine.count && e->wide) {
        ((double *)row)[target] -= e->scale;
    } else if (target < e->mine.count) {
        ((float *)row)[target] -= (float)e->scale;
    }
}

/* The exponentials become gradients: scale (exponential / sum - 1 at the target). */
static void finish(const entropy *e, const double *sums, double *losses)
{
    for (size_t i = 0; i < e->rows; i++) {
        void *row = row_of(e, i);

        if (e->targets[i] == FSDP_TP_NO_TARGET) {
            losses[i] = 0.0;
            memset(row, 0, e->mine.count * (e->wide ? sizeof(double) : sizeof(float)));
            continue;
        }
        losses[i] = log(sums[2 * i]) - sums[2 * i + 1];
        e->tp->kernels->scale(row, e->scale / sums[2 * i], e->mine.count, e->wide ? FSDP_F64 : FSDP_F32);
        take_target(e, row, (size_t)e->targets[i] - e->mine.begin);
    }
}

/* ---- call -------------------------------------------------------------------------------------------------------- */

static fsdp_status exchange(const entropy *e, const char *label, double *work, double *losses)
{
    const fsdpi_purpose purpose = {.name = FUNCTION, .label = label, .status = FSDP_OK};
    double *const largest = work, *const sums = work + e->rows;

    find_largest(e, largest);
    FSDP_TRY(fsdpi_allreduce(e->tp, &purpose, FSDP_IN_PLACE, largest, e->rows, FSDP_F64, FSDP_MAX));
    exponentiate(e, largest, sums);
    FSDP_TRY(fsdpi_allreduce(e->tp, &purpose, FSDP_IN_PLACE, sums, 2 * e->rows, FSDP_F64, FSDP_SUM));
    finish(e, sums, losses);
    return FSDP_OK;
}

fsdp_status fsdp_tp_cross_entropy(fsdp_context *tp, size_t rows, size_t vocabulary, fsdp_dtype dtype,
                                  const int32_t *targets, double scale, void *logits, double *losses)
{
    char label[128];

    if (tp == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "%s: the context is NULL; pass one from fsdp_mesh_context", FUNCTION);
    }
    const entropy e      = {.tp      = tp,
                            .rows    = rows,
                            .mine    = fsdpi_words_of(tp, vocabulary),
                            .wide    = dtype == FSDP_F64,
                            .targets = targets,
                            .scale   = scale,
                            .logits  = logits};
    fsdp_status   status = check(&e, vocabulary, dtype, losses);
    const size_t  bytes  = status == FSDP_OK ? 3 * rows * sizeof(double) : 0;
    double       *work   = bytes > 0 ? fsdpi_alloc(tp, FSDP_MEMORY_BOOKKEEPING, bytes) : NULL;

    (void)snprintf(label, sizeof label, "%zu rows, vocabulary %zu, %s, scale %.17g", rows, vocabulary,
                   fsdp_dtype_name(dtype), scale);
    status = status == FSDP_OK && bytes > 0 && work == NULL ? FSDP_ERR_MEMORY : status;
    if (status != FSDP_OK || bytes == 0) { /* the other ranks are told where they wait */
        const fsdpi_purpose purpose = {.name = FUNCTION, .label = status == FSDP_OK ? label : NULL, .status = status};

        return fsdpi_allreduce(tp, &purpose, FSDP_IN_PLACE, NULL, 0, FSDP_F64, FSDP_MAX);
    }
    status = exchange(&e, label, work, losses);
    fsdpi_free(tp, FSDP_MEMORY_BOOKKEEPING, work, bytes);
    return status;
}
