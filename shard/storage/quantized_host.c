/*
 * Packed slices on the host: an operation of the queue unpacks them.
 */
#include "lib/context/table.h"
#include "shard/state/flat.h"
#include "shard/state/int8_blocks.h"
#include "shard/state/slices.h"
#include "shard/state/tensor.h"
#include "shard/storage/quantized.h"

enum {
    UNPACK_ID = FSDPI_N_COLLECTIVES,  /* which no collective has */
    PIECE     = 8 * FSDPI_INT8_BLOCK, /* ELEMENTS unpacked at a time, */
    STEP      = 512 * PIECE           /* and in one step of the operation */
};

/* `count` of the `all` values of a packed slice, from number `begin` on. */
static void unpack_some(const fsdpi_kernels *kernels, const unsigned char *packed, size_t all, size_t begin,
                        size_t count, unsigned char *view, fsdp_dtype dtype)
{
    float piece[PIECE];

    for (size_t i = 0; i < count; i += PIECE) {
        const size_t n = count - i < PIECE ? count - i : PIECE;

        fsdpi_int8_blocks_unpack_run(packed, all, FSDPI_INT8_BLOCK, begin + i, n, piece);
        kernels->cast(fsdpi_element_of(view, begin + i, dtype), dtype, piece, FSDP_F32, n);
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
    unpack_some(ctx->kernels, (const unsigned char *)call->in + (size_t)slice * call->in_bytes, call->count,
                request->at, n, fsdpi_element_of(call->out, (size_t)slice * call->count, call->dtype), call->dtype);
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

void fsdpi_read_back_on_host(fsdpi_flat *flat)
{
    const size_t n = fsdpi_held_elements(flat);

    unpack_some(flat->model->ctx->kernels, flat->low, n, 0, n, flat->view.memory, flat->dtype);
}

fsdp_status fsdpi_unpack_on_host(fsdpi_flat *flat, const fsdpi_purpose *purpose, fsdpi_view *view)
{
    const fsdpi_call call = {.collective  = &UNPACK,
                             .name        = purpose->name,
                             .label       = purpose->label,
                             .in          = fsdpi_packed_slices(flat, view),
                             .in_bytes    = fsdpi_packed_slice_bytes(&flat->layout), /* of one slice */
                             .out         = view->memory,
                             .count       = flat->layout.shard,
                             .dtype       = flat->dtype,
                             .is_step     = true,
                             .is_reserved = purpose->reserved};

    return fsdpi_issue(flat->model->shards, &call, FSDP_OK, &view->unpacking);
}
