#include "collectives/rails/places.h"

#include "collectives/rails/chunks.h"
#include "collectives/rails/ops.h"
#include "collectives/rails/route.h"
#include "lib/context/context.h"

fsdpi_slice fsdpi_rails_chunk(const fsdp_request *request, const fsdpi_transfer *t, size_t number)
{
    return fsdpi_rails_chunk_of(request, t->begin, t->count, number);
}

size_t fsdpi_rails_chunk_bytes(const fsdp_request *request, const fsdpi_transfer *t, size_t number)
{
    return fsdpi_rails_chunk(request, t, number).count * request->call.width;
}

/* BYTES of staging memory before a place. */
static size_t before(const fsdp_request *request, size_t index)
{
    return index * request->ctx->rails.chunk * request->call.width;
}

static size_t index_of(const fsdp_request *request, const fsdpi_transfer *t, size_t number)
{
    return t->places + number % request->ctx->rails.depth;
}

unsigned char *fsdpi_rails_place(const fsdp_request *request, const fsdpi_transfer *t, size_t number)
{
    return fsdpi_rails_ops_of(request)->staging(request) + before(request, index_of(request, t, number));
}

unsigned char *fsdpi_rails_staged(const fsdp_request *request, const fsdpi_transfer *t, size_t number)
{
    const fsdp_context *ctx = request->ctx;

    return fsdpi_rest_of(&ctx->box, ctx->nodes.position) + before(request, index_of(request, t, number));
}

unsigned char *fsdpi_rails_own_place(const fsdp_request *request)
{
    return fsdpi_rails_ops_of(request)->staging(request) + before(request, request->ctx->rails.n_places);
}

/* Where a part, or its input, lies on this rank from an element of the whole on. */
static const unsigned char *own_data(const fsdp_request *request, unsigned route, const fsdpi_transfer *t, size_t begin)
{
    const fsdpi_call *call  = &request->call;
    const size_t      width = request->call.width;

    if ((route & FSDPI_EXCHANGES) != 0) { /* in place the input has been copied */
        return (request->scratch != NULL ? request->scratch : (const unsigned char *)call->in) + begin * width;
    }
    if (t->part == request->ctx->rank && (route & FSDPI_REDUCES) == 0) {
        return (const unsigned char *)call->in + (begin - t->begin) * width; /* the input is the part alone */
    }
    return (const unsigned char *)call->out + begin * width;
}

const unsigned char *fsdpi_rails_partial(const fsdp_request *request, fsdpi_slice c, const unsigned char *in_place)
{
    return request->ctx->nodes.size > 1 ? in_place
                                        : (const unsigned char *)request->call.in + c.begin * request->call.width;
}

const unsigned char *fsdpi_rails_sent(const fsdp_request *request, unsigned route, const fsdpi_transfer *t,
                                      size_t number)
{
    const fsdpi_slice c = fsdpi_rails_chunk(request, t, number);

    return t->partial ? fsdpi_rails_partial(request, c, fsdpi_rails_place(request, t, number))
                      : own_data(request, route, t, c.begin);
}

unsigned char *fsdpi_rails_received(const fsdp_request *request, const fsdpi_transfer *t, size_t number)
{
    const fsdpi_slice c = fsdpi_rails_chunk(request, t, number);

    return t->partial ? fsdpi_rails_place(request, t, number)
                      : (unsigned char *)request->call.out + c.begin * request->call.width;
}
