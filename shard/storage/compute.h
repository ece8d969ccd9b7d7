/**
 * @file
 * Element-wise work on what a model holds, wherever that is: by the processor, at once; or by the model's GPU, in the stream
 * that fsdp_stream_set() has named, where all that uses the model's memory comes in order. Collectives begin behind what is in
 * this stream when they are issued, and end before what comes into it when they have been waited for.
 *
 * On a GPU none of these waits unless it says so. What fails there is kept until fsdpi_compute_status() asks. Counts are
 * ELEMENTS; arguments and results are those of fsdpi_kernels.
 */
#ifndef FSDPI_COMPUTE_H
#define FSDPI_COMPUTE_H

#include <stdbool.h>
#include <stddef.h>

#include "shard/state/model.h"

/** The functions below, by one of those who do the work. */
typedef struct fsdpi_compute {
    fsdp_status (*status)(fsdp_model *model);
    void (*finish)(fsdp_model *model);
    void (*clear)(fsdp_model *model, void *memory, size_t bytes);
    void (*copy)(fsdp_model *model, void *to, const void *from, size_t bytes);
    void (*cast)(fsdp_model *model, void *out, fsdp_dtype out_dtype, const void *in, fsdp_dtype in_dtype, size_t count);
    void (*accumulate)(fsdp_model *model, void *sum, bool fresh, const void *x, fsdp_dtype dtype, double factor,
                       size_t count);
    void (*scale)(fsdp_model *model, void *x, double factor, size_t count);
    void (*clamp)(fsdp_model *model, void *x, double limit, size_t count);
    void (*divide)(fsdp_model *model, void *x, fsdp_dtype dtype, size_t divisor, size_t count);
    void (*read)(fsdp_model *model, void *out, fsdp_dtype out_dtype, const void *from, fsdp_dtype dtype, size_t count);
    void (*write)(fsdp_model *model, void *to, fsdp_dtype dtype, const void *in, fsdp_dtype in_dtype, size_t count);
    fsdp_status (*sum_squares)(fsdp_model *model, fsdpi_exact_sum *sum);
    fsdp_status (*add_squares)(fsdp_model *model, const void *x, size_t count, fsdpi_exact_sum *sum);
    fsdp_status (*absolute_maximum)(fsdp_model *model, double *most);
    void (*dot)(fsdp_model *model, fsdpi_exact_dot *dot, const void *a, const void *b, size_t count);
    void (*quantize)(fsdpi_flat *flat);
    void (*read_back)(fsdpi_flat *flat);
    fsdp_status (*unpack)(fsdpi_flat *flat, const fsdpi_purpose *purpose, fsdpi_view *view);
} fsdpi_compute;

extern const fsdpi_compute fsdpi_compute_host, fsdpi_compute_device;

/** FSDP_OK; or the first failure since the last call, recorded. */
static inline fsdp_status fsdpi_compute_status(fsdp_model *model)
{
    return model->compute->status(model);
}

/** Waits on the host for all that the model has in streams. */
static inline void fsdpi_compute_finish(fsdp_model *model)
{
    model->compute->finish(model);
}

static inline void fsdpi_compute_clear(fsdp_model *model, void *memory, size_t bytes)
{
    model->compute->clear(model, memory, bytes);
}

static inline void fsdpi_compute_copy(fsdp_model *model, void *to, const void *from, size_t bytes)
{
    model->compute->copy(model, to, from, bytes);
}

static inline void fsdpi_compute_cast(fsdp_model *model, void *out, fsdp_dtype out_dtype, const void *in,
                                      fsdp_dtype in_dtype, size_t count)
{
    model->compute->cast(model, out, out_dtype, in, in_dtype, count);
}

static inline void fsdpi_compute_accumulate(fsdp_model *model, void *sum, bool fresh, const void *x, fsdp_dtype dtype,
                                            double factor, size_t count)
{
    model->compute->accumulate(model, sum, fresh, x, dtype, factor, count);
}

static inline void fsdpi_compute_scale(fsdp_model *model, void *x, double factor, size_t count)
{
    model->compute->scale(model, x, factor, count);
}

static inline void fsdpi_compute_clamp(fsdp_model *model, void *x, double limit, size_t count)
{
    model->compute->clamp(model, x, limit, count);
}

/** x[i] = x[i] / divisor, rounded once. */
static inline void fsdpi_compute_divide(fsdp_model *model, void *x, fsdp_dtype dtype, size_t divisor, size_t count)
{
    model->compute->divide(model, x, dtype, divisor, count);
}

/**
 * From the model's memory to memory of the host, rounded to another type where it has one, and back. The model's type is
 * not wider than f32. On a GPU they wait until that is done; what is offloaded has come back before.
 */
static inline void fsdpi_compute_read(fsdp_model *model, void *out, fsdp_dtype out_dtype, const void *from,
                                      fsdp_dtype dtype, size_t count)
{
    model->compute->read(model, out, out_dtype, from, dtype, count);
}

static inline void fsdpi_compute_write(fsdp_model *model, void *to, fsdp_dtype dtype, const void *in,
                                       fsdp_dtype in_dtype, size_t count)
{
    model->compute->write(model, to, dtype, in, in_dtype, count);
}

/** Of all gradients that this rank holds. On a GPU they wait. */
static inline fsdp_status fsdpi_sum_squares(fsdp_model *model, fsdpi_exact_sum *sum)
{
    return model->compute->sum_squares(model, sum);
}

/** Adds those of some gradients. On a GPU it waits. */
static inline fsdp_status fsdpi_add_squares(fsdp_model *model, const void *x, size_t count, fsdpi_exact_sum *sum)
{
    return model->compute->add_squares(model, x, count, sum);
}

static inline fsdp_status fsdpi_absolute_maximum(fsdp_model *model, double *most)
{
    return model->compute->absolute_maximum(model, most);
}

/** Adds a[i] b[i] of two arrays in the masters' type, where masters are, to `dot`. On a GPU it waits. */
static inline void fsdpi_compute_dot(fsdp_model *model, fsdpi_exact_dot *dot, const void *a, const void *b,
                                     size_t count)
{
    model->compute->dot(model, dot, a, b, count);
}

/** Unpacks, of a flat parameter that every rank holds whole, what fsdpi_quantize() has packed, into its view. */
static inline void fsdpi_read_back(fsdpi_flat *flat)
{
    flat->model->compute->read_back(flat);
}

/** Packs what this rank holds (shard/storage/quantized.h). */
static inline void fsdpi_quantize(fsdpi_flat *flat)
{
    flat->model->compute->quantize(flat);
}

#endif
