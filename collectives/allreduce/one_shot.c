#include "collectives/allreduce/one_shot.h"

#include "collectives/arguments.h"
#include "lib/context.h"
#include "lib/memory.h"

bool fsdpi_allreduce_one_shot_fits(const fsdp_context *ctx, size_t count, fsdp_dtype dtype)
{
    size_t elements, bytes;

    return fsdpi_multiply(count, (size_t)ctx->size - 1, &elements) &&
           fsdpi_multiply(elements, fsdp_dtype_size(dtype), &bytes) && bytes <= (size_t)ctx->config.staging_bytes;
}

/* Where the vector of the n-th other rank is received. */
static unsigned char *staged(const fsdp_request *request, size_t n)
{
    return request->ctx->staging + n * request->call.count * fsdp_dtype_size(request->call.dtype);
}

static fsdp_status prepare(fsdp_request *request)
{
    request->rounds = 1;
    return FSDP_OK;
}

static fsdp_status post(fsdp_request *request, size_t round)
{
    const size_t bytes = request->call.count * fsdp_dtype_size(request->call.dtype);
    const int    me    = request->ctx->rank;
    size_t       n     = 0;

    (void)round;
    for (int peer = 0; peer < request->ctx->size; peer++) {
        if (peer != me) {
            FSDP_TRY(fsdpi_post_receive(request, staged(request, n++), bytes, peer));
        }
    }
    for (int peer = 0; peer < request->ctx->size; peer++) {
        if (peer != me) {
            FSDP_TRY(fsdpi_post_send(request, fsdpi_input_of(&request->call), bytes, peer));
        }
    }
    return FSDP_OK;
}

static void finish(fsdp_request *request, size_t round)
{
    const fsdp_context *ctx  = request->ctx;
    const fsdpi_call   *call = &request->call;
    size_t              n    = 0;

    (void)round;
    if (call->count == 0) {
        return;
    }
    for (int r = 0; r < ctx->size; r++) {
        ctx->operands[r] = r == ctx->rank ? fsdpi_input_of(call) : staged(request, n++);
    }
    ctx->kernels->reduce(call->out, ctx->operands, (size_t)ctx->size, call->count, call->dtype, call->op);
}

const fsdpi_algorithm fsdpi_allreduce_one_shot = {
    .name = "one_shot", .prepare = prepare, .post = post, .finish = finish};
