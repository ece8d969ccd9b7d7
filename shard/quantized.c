/*
 * Quantised gathers: ranks pack their slices into blocks of 8 bit integers, gather these behind the view, and unpack them
 * into it. On the host the view is the node's, and each of its ranks unpacks every L-th slice; so this is an operation of the
 * queue like any other, behind the gather, which ends when all have finished. It goes on behind the caller's back with the
 * gather. On a GPU the view is the rank's, and kernels in the model's stream unpack all slices, behind the gather.
 *
 * Cost on N ranks for n parameters: 65/64 n bytes gathered, which are read and 4 n written per node, or per GPU.
 */
#include "lib/memory.h"
#include "lib/table.h"
#include "shard/compute.h"
#include "shard/int8_blocks.h"
#include "shard/model.h"

enum {
    UNPACK_ID = FSDPI_N_COLLECTIVES,  /* which no collective has */
    PIECE     = 8 * FSDPI_INT8_BLOCK, /* ELEMENTS unpacked at a time, */
    STEP      = 512 * PIECE           /* and in one step of the operation */
};

size_t fsdpi_packed_slice_bytes(const fsdp_layout *layout)
{
    return fsdpi_alloc_size(fsdpi_int8_packed_bytes(layout->shard));
}

void fsdpi_quantize(fsdpi_flat *flat)
{
    if (fsdpi_is_on_device(flat->model)) {
        fsdpi_quantize_run(flat, flat->master, 0, flat->layout.shard);
    } else {
        fsdpi_int8_pack(flat->master, flat->layout.shard, flat->low);
    }
}

/* ---- on a GPU ------------------------------------------------------------------------------------------------------ */

_Static_assert(FSDPI_ALIGNMENT % FSDPI_INT8_BLOCK == 0, "pieces of an optimizer begin where blocks do");

void fsdpi_quantize_run(fsdpi_flat *flat, const float *x, size_t begin, size_t count)
{
    fsdp_model       *model = flat->model;
    fsdpi_gpu_device *gpu   = fsdpi_gpu_of(model);

    fsdpi_compute_keep(model, gpu->ops->compute->int8_pack(gpu, x, begin, count, flat->layout.shard, FSDPI_INT8_BLOCK,
                                                           flat->low, fsdpi_stream_of(model)));
}

static unsigned char *packed_slices(const fsdpi_flat *flat, const fsdpi_view *view)
{
    return view->memory + flat->layout.padded * fsdp_dtype_size(flat->dtype);
}

void fsdpi_dequantize(fsdpi_view *view)
{
    const fsdpi_flat *flat  = view->packed;
    fsdp_model       *model = flat->model;
    fsdpi_gpu_device *gpu   = fsdpi_gpu_of(model);
    const size_t      n     = flat->layout.shard;

    for (size_t slice = 0; slice < (size_t)flat->layout.size; slice++) {
        fsdpi_compute_keep(model, gpu->ops->compute->int8_unpack(
                                      gpu, packed_slices(flat, view) + slice * fsdpi_packed_slice_bytes(&flat->layout),
                                      n, FSDPI_INT8_BLOCK, fsdpi_element_of(view->memory, slice * n, flat->dtype),
                                      flat->dtype, fsdpi_stream_of(model)));
    }
}

/* ---- unpacking on the host ----------------------------------------------------------------------------------------------------- */

/* `count` values of a packed slice, from number `begin` on. */
static void unpack_some(const fsdp_request *request, const unsigned char *packed, size_t begin, size_t count,
                        unsigned char *view)
{
    const fsdpi_call    *call    = &request->call;
    const fsdpi_kernels *kernels = request->ctx->kernels;
    float                piece[PIECE];

    for (size_t i = 0; i < count; i += PIECE) {
        const size_t n = count - i < PIECE ? count - i : PIECE;

        fsdpi_int8_blocks_unpack_run(packed, call->count, FSDPI_INT8_BLOCK, begin + i, n, piece);
        kernels->cast(fsdpi_element_of(view, begin + i, call->dtype), call->dtype, piece, FSDP_F32, n);
    }
}

/* request->at: values done in the slice; request->stage: slices done by this rank. */
static fsdp_status advance(fsdp_request *request, fsdpi_progress *progress)
{
    const fsdpi_call   *call  = &request->call;
    const fsdp_context *ctx   = request->ctx;
    const int           slice = ctx->nodes.position + request->stage * ctx->nodes.size;
    const size_t        left  = call->count - request->at;
    const size_t        n     = left < STEP ? left : STEP;

    if (slice >= ctx->size) {
        *progress = FSDPI_FINISHED;
        return FSDP_OK;
    }
    unpack_some(request, (const unsigned char *)call->in + (size_t)slice * call->in_bytes, request->at, n,
                fsdpi_element_of(call->out, (size_t)slice * call->count, call->dtype));
    request->at += n;
    if (request->at == call->count) {
        request->at = 0;
        request->stage++;
    }
    *progress = FSDPI_MOVED;
    return FSDP_OK;
}

static const fsdpi_algorithm unpack = {.name = "unpack", .advance = advance, .leaves_together = true};

static const fsdpi_algorithm *choose(fsdp_request *request)
{
    (void)request;
    return &unpack;
}

static const fsdpi_collective UNPACK = {.name = "unpack", .id = UNPACK_ID, .choose = choose};

/* ---- gathering ------------------------------------------------------------------------------------------------------ */

fsdp_status fsdpi_gather_quantized(fsdpi_flat *flat, const fsdpi_purpose *purpose, fsdpi_view *view)
{
    fsdp_context    *ctx    = flat->model->shards;
    const size_t     bytes  = fsdpi_packed_slice_bytes(&flat->layout);
    unsigned char   *packed = packed_slices(flat, view);
    const fsdpi_call call   = {.collective = &UNPACK,
                               .name       = purpose->name,
                               .label      = purpose->label,
                               .in         = packed,
                               .in_bytes   = bytes, /* of one slice */
                               .out        = view->memory,
                               .count      = flat->layout.shard,
                               .dtype      = flat->dtype,
                               .is_step    = true};

    FSDP_TRY(fsdpi_iallgather(ctx, purpose, flat->low, packed, bytes, FSDP_U8, &view->gathering));
    if (fsdpi_is_on_device(flat->model)) {
        view->packed = flat;
        return FSDP_OK;
    }
    return fsdpi_issue(ctx, &call, FSDP_OK, &view->unpacking);
}
