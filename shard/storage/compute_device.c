/*
 * The model's GPU does it, in the stream of fsdpi_stream_of().
 */
#include "shard/state/slices.h"
#include "shard/storage/compute.h"
#include "shard/storage/model_gpu.h"
#include "shard/storage/quantized.h"

enum { PIECE = 4096 }; /* ELEMENTS, of 8 bytes at most, that pass through the stack at a time */

/* ---- element by element ------------------------------------------------------------------------------------------ */

static void clear(fsdp_model *model, void *memory, size_t bytes)
{
    fsdpi_gpu_device *gpu = fsdpi_gpu_of(model);

    fsdpi_compute_keep(model, gpu->ops->clear(gpu, memory, bytes, fsdpi_stream_of(model)));
}

static void copy(fsdp_model *model, void *to, const void *from, size_t bytes)
{
    fsdpi_gpu_device *gpu = fsdpi_gpu_of(model);

    fsdpi_compute_keep(model, gpu->ops->copy(gpu, to, from, bytes, fsdpi_stream_of(model)));
}

static void cast(fsdp_model *model, void *out, fsdp_dtype out_dtype, const void *in, fsdp_dtype in_dtype, size_t count)
{
    fsdpi_gpu_device *gpu = fsdpi_gpu_of(model);

    fsdpi_compute_keep(model,
                       gpu->ops->compute->cast(gpu, out, out_dtype, in, in_dtype, count, fsdpi_stream_of(model)));
}

static void accumulate(fsdp_model *model, void *sum, bool fresh, const void *x, fsdp_dtype dtype, double factor,
                       size_t count)
{
    fsdpi_gpu_device *gpu = fsdpi_gpu_of(model);

    fsdpi_compute_keep(model,
                       gpu->ops->compute->accumulate(gpu, sum, fresh, x, dtype, factor, count, fsdpi_stream_of(model)));
}

static void scale(fsdp_model *model, void *x, double factor, size_t count)
{
    fsdpi_gpu_device *gpu = fsdpi_gpu_of(model);

    fsdpi_compute_keep(model, gpu->ops->compute->scale(gpu, x, factor, count, fsdpi_stream_of(model)));
}

static void clamp(fsdp_model *model, void *x, double limit, size_t count)
{
    fsdpi_gpu_device *gpu = fsdpi_gpu_of(model);

    fsdpi_compute_keep(model, gpu->ops->compute->clamp(gpu, x, limit, count, fsdpi_stream_of(model)));
}

static void divide(fsdp_model *model, void *x, fsdp_dtype dtype, size_t divisor, size_t count)
{
    fsdpi_gpu_device *gpu    = fsdpi_gpu_of(model);
    const void *const term[] = {x};

    fsdpi_compute_keep(model,
                       gpu->ops->reduce(gpu, &x, 1, term, 1, count, dtype, FSDP_AVG, divisor, fsdpi_stream_of(model)));
}

/* ---- to and from the host ---------------------------------------------------------------------------------------- */

static void finish(fsdp_model *model)
{
    fsdpi_gpu_device *gpu = fsdpi_gpu_of(model);

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

static void read_to_host(fsdp_model *model, void *out, fsdp_dtype out_dtype, const void *from, fsdp_dtype dtype,
                         size_t count)
{
    const size_t  width = fsdp_dtype_size(dtype), out_width = fsdp_dtype_size(out_dtype);
    unsigned char piece[PIECE * sizeof(double)];

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

static void write_from_host(fsdp_model *model, void *to, fsdp_dtype dtype, const void *in, fsdp_dtype in_dtype,
                            size_t count)
{
    const size_t  width = fsdp_dtype_size(dtype), in_width = fsdp_dtype_size(in_dtype);
    unsigned char piece[PIECE * sizeof(double)];

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

static fsdp_status sum_squares(fsdp_model *model, fsdpi_exact_sum *sum)
{
    fsdpi_gpu_device *gpu = fsdpi_gpu_of(model);

    model->norm->squares = (fsdpi_exact_sum){0};
    for (const fsdpi_flat *flat = model->flats; flat != NULL; flat = flat->next) {
        if (flat->has_gradient && fsdpi_counts(flat)) {
            fsdpi_compute_keep(model, gpu->ops->compute->sum_squares(gpu, &model->norm->squares, flat->gradient,
                                                                     fsdpi_held_elements(flat), model->norm_scratch,
                                                                     fsdpi_stream_of(model)));
        }
    }
    fsdpi_compute_finish(model);
    *sum = model->norm->squares;
    return fsdpi_compute_status(model);
}

static fsdp_status add_squares(fsdp_model *model, const void *x, size_t count, fsdpi_exact_sum *sum)
{
    fsdpi_gpu_device *gpu = fsdpi_gpu_of(model);

    model->norm->squares = *sum;
    fsdpi_compute_keep(model, gpu->ops->compute->sum_squares(gpu, &model->norm->squares, x, count, model->norm_scratch,
                                                             fsdpi_stream_of(model)));
    fsdpi_compute_finish(model);
    *sum = model->norm->squares;
    return fsdpi_compute_status(model);
}

static fsdp_status absolute_maximum(fsdp_model *model, double *most)
{
    fsdpi_gpu_device *gpu = fsdpi_gpu_of(model);

    model->norm->largest = 0.0;
    for (const fsdpi_flat *flat = model->flats; flat != NULL; flat = flat->next) {
        if (flat->has_gradient) {
            fsdpi_compute_keep(model, gpu->ops->compute->absolute_maximum(gpu, &model->norm->largest, flat->gradient,
                                                                          fsdpi_held_elements(flat),
                                                                          model->norm_scratch, fsdpi_stream_of(model)));
        }
    }
    fsdpi_compute_finish(model);
    *most = model->norm->largest;
    return fsdpi_compute_status(model);
}

/* Piece by piece on the host, where offloaded arrays are. */
static void dot(fsdp_model *model, fsdpi_exact_dot *sum, const void *a, const void *b, size_t count)
{
    const size_t     width = fsdpi_master_width(model);
    const fsdp_dtype dtype = model->master_dtype;
    double           first[PIECE], second[PIECE]; /* of the masters' type */

    for (size_t i = 0; i < count; i += PIECE) {
        const size_t n = count - i < PIECE ? count - i : PIECE;

        read_to_host(model, first, dtype, (const unsigned char *)a + i * width, dtype, n);
        read_to_host(model, second, dtype, (const unsigned char *)b + i * width, dtype, n);
        fsdpi_exact_dot_add(sum, first, second, n, dtype);
    }
}

static void quantize(fsdpi_flat *flat)
{
    fsdpi_quantize_run(flat, flat->master, 0, fsdpi_held_elements(flat));
}

const fsdpi_compute fsdpi_compute_device = {.status           = fsdpi_compute_kept,
                                            .finish           = finish,
                                            .clear            = clear,
                                            .copy             = copy,
                                            .cast             = cast,
                                            .accumulate       = accumulate,
                                            .scale            = scale,
                                            .clamp            = clamp,
                                            .divide           = divide,
                                            .read             = read_to_host,
                                            .write            = write_from_host,
                                            .sum_squares      = sum_squares,
                                            .add_squares      = add_squares,
                                            .absolute_maximum = absolute_maximum,
                                            .dot              = dot,
                                            .quantize         = quantize,
                                            .read_back        = fsdpi_read_back_on_device,
                                            .unpack           = fsdpi_unpack_on_device};
