#include "shard/compute.h"

#include <stdio.h>

enum { PIECE = 4096 }; /* ELEMENTS, of 4 bytes at most, that pass through the stack at a time */

/* ---- failures ---------------------------------------------------------------------------------------------------- */

void fsdpi_compute_keep(fsdp_model *model, fsdp_status status)
{
    if (status != FSDP_OK && model->compute_status == FSDP_OK) {
        model->compute_status = status;
        (void)snprintf(model->compute_error, sizeof model->compute_error, "%.*s", (int)sizeof model->compute_error - 1,
                       fsdpi_error_recorded(model->ctx));
    }
}

fsdp_status fsdpi_compute_status(fsdp_model *model)
{
    const fsdp_status status = model->compute_status;

    model->compute_status = FSDP_OK;
    return status != FSDP_OK ? fsdpi_record(model->ctx, status, "%s", model->compute_error) : FSDP_OK;
}

/* ---- element by element ------------------------------------------------------------------------------------------ */

void fsdpi_compute_clear(fsdp_model *model, void *memory, size_t bytes)
{
    fsdpi_gpu_device *gpu = fsdpi_gpu_of(model);

    if (gpu == NULL) {
        model->ctx->device->clear(memory, bytes);
    } else {
        fsdpi_compute_keep(model, gpu->ops->clear(gpu, memory, bytes, fsdpi_stream_of(model)));
    }
}

void fsdpi_compute_copy(fsdp_model *model, void *to, const void *from, size_t bytes)
{
    fsdpi_gpu_device *gpu = fsdpi_gpu_of(model);

    if (gpu == NULL) {
        model->ctx->device->copy(to, from, bytes);
    } else {
        fsdpi_compute_keep(model, gpu->ops->copy(gpu, to, from, bytes, fsdpi_stream_of(model)));
    }
}

void fsdpi_compute_cast(fsdp_model *model, void *out, fsdp_dtype out_dtype, const void *in, fsdp_dtype in_dtype,
                        size_t count)
{
    fsdpi_gpu_device *gpu = fsdpi_gpu_of(model);

    if (gpu == NULL) {
        model->ctx->kernels->cast(out, out_dtype, in, in_dtype, count);
    } else {
        fsdpi_compute_keep(model,
                           gpu->ops->compute->cast(gpu, out, out_dtype, in, in_dtype, count, fsdpi_stream_of(model)));
    }
}

void fsdpi_compute_accumulate(fsdp_model *model, float *sum, bool fresh, const void *x, fsdp_dtype dtype, double factor,
                              size_t count)
{
    fsdpi_gpu_device *gpu = fsdpi_gpu_of(model);

    if (gpu == NULL) {
        model->ctx->kernels->accumulate(sum, fresh, x, dtype, factor, count);
    } else {
        fsdpi_compute_keep(
            model, gpu->ops->compute->accumulate(gpu, sum, fresh, x, dtype, factor, count, fsdpi_stream_of(model)));
    }
}

void fsdpi_compute_scale(fsdp_model *model, float *x, double factor, size_t count)
{
    fsdpi_gpu_device *gpu = fsdpi_gpu_of(model);

    if (gpu == NULL) {
        model->ctx->kernels->scale(x, factor, count, FSDP_F32);
    } else {
        fsdpi_compute_keep(model, gpu->ops->compute->scale(gpu, x, factor, count, fsdpi_stream_of(model)));
    }
}

void fsdpi_compute_clamp(fsdp_model *model, float *x, double limit, size_t count)
{
    fsdpi_gpu_device *gpu = fsdpi_gpu_of(model);

    if (gpu == NULL) {
        model->ctx->kernels->clamp(x, limit, count, FSDP_F32);
    } else {
        fsdpi_compute_keep(model, gpu->ops->compute->clamp(gpu, x, limit, count, fsdpi_stream_of(model)));
    }
}

void fsdpi_compute_divide(fsdp_model *model, void *x, fsdp_dtype dtype, size_t divisor, size_t count)
{
    fsdpi_gpu_device *gpu    = fsdpi_gpu_of(model);
    const void *const term[] = {x};

    if (gpu == NULL) {
        model->ctx->kernels->reduce(x, term, 1, count, dtype, FSDP_AVG, divisor);
    } else {
        fsdpi_compute_keep(
            model, gpu->ops->reduce(gpu, &x, 1, term, 1, count, dtype, FSDP_AVG, divisor, fsdpi_stream_of(model)));
    }
}

/* ---- to and from the host ---------------------------------------------------------------------------------------- */

void fsdpi_compute_finish(fsdp_model *model)
{
    fsdpi_gpu_device *gpu = fsdpi_gpu_of(model);

    if (gpu == NULL) {
        return;
    }
    fsdpi_compute_keep(model, gpu->ops->stream_finish(gpu, fsdpi_stream_of(model)));
    if (model->offload.out != NULL) {
        fsdpi_compute_keep(model, gpu->ops->stream_finish(gpu, model->offload.out));
    }
}

/* One that returns when it is done. */
static void copy_and_wait(fsdp_model *model, void *to, const void *from, size_t bytes)
{
    if (model->offload.out != NULL) {
        fsdpi_compute_finish(model);
    }
    fsdpi_compute_copy(model, to, from, bytes);
    fsdpi_compute_finish(model);
}

void fsdpi_compute_read(fsdp_model *model, void *out, fsdp_dtype out_dtype, const void *from, fsdp_dtype dtype,
                        size_t count)
{
    const size_t  width = fsdp_dtype_size(dtype), out_width = fsdp_dtype_size(out_dtype);
    unsigned char piece[PIECE * sizeof(float)];

    if (!fsdpi_is_on_device(model)) {
        model->ctx->kernels->cast(out, out_dtype, from, dtype, count);
        return;
    }
    if (dtype == out_dtype) {
        copy_and_wait(model, out, from, count * width);
        return;
    }
    for (size_t i = 0; i < count; i += PIECE) {
        const size_t n = count - i < PIECE ? count - i : PIECE;

        copy_and_wait(model, piece, (const unsigned char *)from + i * width, n * width);
        model->ctx->kernels->cast((unsigned char *)out + i * out_width, out_dtype, piece, dtype, n);
    }
}

void fsdpi_compute_write(fsdp_model *model, void *to, fsdp_dtype dtype, const void *in, fsdp_dtype in_dtype,
                         size_t count)
{
    const size_t  width = fsdp_dtype_size(dtype), in_width = fsdp_dtype_size(in_dtype);
    unsigned char piece[PIECE * sizeof(float)];

    if (!fsdpi_is_on_device(model)) {
        model->ctx->kernels->cast(to, dtype, in, in_dtype, count);
        return;
    }
    if (dtype == in_dtype) {
        copy_and_wait(model, to, in, count * width);
        return;
    }
    for (size_t i = 0; i < count; i += PIECE) {
        const size_t n = count - i < PIECE ? count - i : PIECE;

        model->ctx->kernels->cast(piece, dtype, (const unsigned char *)in + i * in_width, in_dtype, n);
        copy_and_wait(model, (unsigned char *)to + i * width, piece, n * width);
    }
}

/* ---- norms ------------------------------------------------------------------------------------------------------- */

static void measure(fsdpi_flat *flat, fsdpi_norm norm, int i)
{
    fsdp_model              *model = flat->model;
    fsdpi_gpu_device        *gpu   = fsdpi_gpu_of(model);
    const fsdpi_gpu_compute *by    = gpu->ops->compute;

    fsdpi_compute_keep(model, (norm == FSDPI_SQUARED_NORM ? by->squared_norm : by->absolute_maximum)(
                                  gpu, flat->norms + i, fsdpi_slice_in(flat, flat->gradient, i), flat->layout.shard,
                                  model->norm_scratch, fsdpi_stream_of(model)));
}

fsdp_status fsdpi_norms_measure(fsdp_model *model, fsdpi_norm norm)
{
    if (!fsdpi_is_on_device(model)) {
        return FSDP_OK;
    }
    for (fsdpi_flat *flat = model->flats; flat != NULL; flat = flat->next) {
        for (int i = 0; i < fsdpi_held_slices(model).n && flat->has_gradient; i++) {
            measure(flat, norm, i);
        }
    }
    fsdpi_compute_finish(model);
    return fsdpi_compute_status(model);
}

double fsdpi_norm_of_slice(fsdpi_flat *flat, fsdpi_norm norm, int i)
{
    const fsdpi_kernels *kernels = flat->model->ctx->kernels;
    const float         *slice   = fsdpi_slice_in(flat, flat->gradient, i);

    if (fsdpi_is_on_device(flat->model)) {
        return flat->norms[i];
    }
    return norm == FSDPI_SQUARED_NORM ? kernels->squared_norm(slice, flat->layout.shard, FSDP_F32)
                                      : kernels->absolute_maximum(slice, flat->layout.shard, FSDP_F32);
}
