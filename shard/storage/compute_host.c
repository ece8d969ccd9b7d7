/*
 * The processor does it at once, with the kernels of the context. Nothing fails.
 */
#include <math.h>

#include "shard/state/int8_blocks.h"
#include "shard/state/slices.h"
#include "shard/storage/compute.h"
#include "shard/storage/quantized.h"

static fsdp_status never_fails(fsdp_model *model)
{
    (void)model;
    return FSDP_OK;
}

static void is_finished(fsdp_model *model)
{
    (void)model;
}

static void clear(fsdp_model *model, void *memory, size_t bytes)
{
    model->ctx->device->clear(memory, bytes);
}

static void copy(fsdp_model *model, void *to, const void *from, size_t bytes)
{
    model->ctx->device->copy(to, from, bytes);
}

static void cast(fsdp_model *model, void *out, fsdp_dtype out_dtype, const void *in, fsdp_dtype in_dtype, size_t count)
{
    model->ctx->kernels->cast(out, out_dtype, in, in_dtype, count);
}

enum { PIECE = 512 }; /* ELEMENTS that are widened at a time */

/* Into sums in f64: each element is widened, which is exact. */
static void accumulate_widened(fsdp_model *model, double *sum, bool fresh, const void *x, fsdp_dtype dtype,
                               double factor, size_t count)
{
    double piece[PIECE];

    for (size_t i = 0; i < count; i += PIECE) {
        const size_t n = count - i < PIECE ? count - i : PIECE;

        model->ctx->kernels->cast(piece, FSDP_F64, (const unsigned char *)x + i * fsdp_dtype_size(dtype), dtype, n);
        fsdpi_accumulate_f64(sum + i, fresh, piece, factor, n);
    }
}

static void accumulate(fsdp_model *model, void *sum, bool fresh, const void *x, fsdp_dtype dtype, double factor,
                       size_t count)
{
    if (model->master_dtype != FSDP_F64) {
        model->ctx->kernels->accumulate(sum, fresh, x, dtype, factor, count);
    } else if (dtype == FSDP_F64) {
        fsdpi_accumulate_f64(sum, fresh, x, factor, count);
    } else {
        accumulate_widened(model, sum, fresh, x, dtype, factor, count);
    }
}

static void scale(fsdp_model *model, void *x, double factor, size_t count)
{
    model->ctx->kernels->scale(x, factor, count, model->master_dtype);
}

static void clamp(fsdp_model *model, void *x, double limit, size_t count)
{
    model->ctx->kernels->clamp(x, limit, count, model->master_dtype);
}

static void divide(fsdp_model *model, void *x, fsdp_dtype dtype, size_t divisor, size_t count)
{
    const void *const term[] = {x};

    model->ctx->kernels->reduce(x, term, 1, count, dtype, FSDP_AVG, divisor);
}

static fsdp_status sum_squares(fsdp_model *model, fsdpi_exact_sum *sum)
{
    *sum = (fsdpi_exact_sum){0};
    for (const fsdpi_flat *flat = model->flats; flat != NULL; flat = flat->next) {
        if (flat->has_gradient && fsdpi_counts(flat)) {
            model->ctx->kernels->sum_squares(sum, flat->gradient, fsdpi_held_elements(flat), model->master_dtype);
        }
    }
    return FSDP_OK;
}

static fsdp_status add_squares(fsdp_model *model, const void *x, size_t count, fsdpi_exact_sum *sum)
{
    model->ctx->kernels->sum_squares(sum, x, count, model->master_dtype);
    return FSDP_OK;
}

/* NaN wins over everything, infinity too. */
static fsdp_status absolute_maximum(fsdp_model *model, double *most)
{
    *most = 0.0;
    for (const fsdpi_flat *flat = model->flats; flat != NULL; flat = flat->next) {
        if (flat->has_gradient) {
            const double one =
                model->ctx->kernels->absolute_maximum(flat->gradient, fsdpi_held_elements(flat), model->master_dtype);

            *most = one > *most || isnan(one) ? one : *most;
        }
    }
    return FSDP_OK;
}

static void dot(fsdp_model *model, fsdpi_exact_dot *sum, const void *a, const void *b, size_t count)
{
    fsdpi_exact_dot_add(sum, a, b, count, model->master_dtype);
}

static void quantize(fsdpi_flat *flat)
{
    fsdpi_int8_pack(flat->master, fsdpi_held_elements(flat), flat->low);
}

const fsdpi_compute fsdpi_compute_host = {.status           = never_fails,
                                          .finish           = is_finished,
                                          .clear            = clear,
                                          .copy             = copy,
                                          .cast             = cast,
                                          .accumulate       = accumulate,
                                          .scale            = scale,
                                          .clamp            = clamp,
                                          .divide           = divide,
                                          .read             = cast,
                                          .write            = cast,
                                          .sum_squares      = sum_squares,
                                          .add_squares      = add_squares,
                                          .absolute_maximum = absolute_maximum,
                                          .dot              = dot,
                                          .quantize         = quantize,
                                          .read_back        = fsdpi_read_back_on_host,
                                          .unpack           = fsdpi_unpack_on_host};
