#include "collectives/rails/places.h"

#include "collectives/rails/ops.h"
#include "collectives/rails/route.h"
#include "collectives/rails/schedule.h"
#include "lib/context/context.h"

/* Behind those of all streams: see fsdpi_rails_spare_places(). */
enum { OWN, SUM, WIDE = 3 };

size_t fsdpi_rails_bytes(const fsdp_request *request, const fsdpi_parcel *parcel)
{
    return parcel->count * request->call.width;
}

fsdpi_parcel *fsdpi_rails_parcel(fsdp_request *request, fsdpi_stream_kind kind, size_t n)
{
    const fsdpi_stream *stream = &request->ctx->rails.streams[kind];

    return &stream->parcels[n % stream->window];
}

/* BYTES of staging memory before a place. */
static size_t before(const fsdp_request *request, size_t index)
{
    return index * request->ctx->rails.chunk * request->call.width;
}

static size_t index_of(const fsdp_request *request, fsdpi_stream_kind kind, size_t n)
{
    const fsdpi_stream *stream = &request->ctx->rails.streams[kind];

    return stream->places + n % stream->window;
}

unsigned char *fsdpi_rails_place(const fsdp_request *request, fsdpi_stream_kind kind, size_t n)
{
    return fsdpi_rails_ops_of(request)->staging(request) + before(request, index_of(request, kind, n));
}

unsigned char *fsdpi_rails_staged(const fsdp_request *request, fsdpi_stream_kind kind, size_t n)
{
    const fsdp_context *ctx = request->ctx;

    return fsdpi_rest_of(&request->lane->box, ctx->nodes.position) + before(request, index_of(request, kind, n));
}

static unsigned char *spare_place(const fsdp_request *request, size_t index)
{
    return fsdpi_rails_ops_of(request)->staging(request) + before(request, request->ctx->rails.places + index);
}

unsigned char *fsdpi_rails_own_place(const fsdp_request *request)
{
    return spare_place(request, OWN);
}

unsigned char *fsdpi_rails_sum_place(const fsdp_request *request)
{
    return spare_place(request, SUM);
}

unsigned char *fsdpi_rails_wide_place(const fsdp_request *request)
{
    return spare_place(request, WIDE);
}

unsigned char *fsdpi_rails_collected(const fsdp_request *request)
{
    const int rank = request->ctx->rank;

    return rank == request->call.root
               ? (unsigned char *)request->call.out + fsdpi_rails_part(request, rank).begin * request->call.width
               : request->scratch;
}

/* Where a part, or its input, lies on this rank. */
static const unsigned char *own_data(const fsdp_request *request, const fsdpi_parcel *parcel)
{
    const fsdpi_call *call  = &request->call;
    const unsigned    route = request->ctx->rails.route;
    const size_t      at    = parcel->begin * call->width;

    if ((route & FSDPI_EXCHANGES) != 0) { /* in place the input has been copied */
        return (request->scratch != NULL ? request->scratch : (const unsigned char *)call->in) + at;
    }
    if ((route & FSDPI_COLLECTS) != 0) {
        return fsdpi_rails_collected(request) + at - fsdpi_rails_part(request, parcel->part).begin * call->width;
    }
    if (parcel->part == request->ctx->rank && (route & FSDPI_REDUCES) == 0) { /* the input is the part alone */
        return (const unsigned char *)call->in + at - fsdpi_rails_part(request, parcel->part).begin * call->width;
    }
    return (const unsigned char *)call->out + at;
}

const unsigned char *fsdpi_rails_partial(const fsdp_request *request, fsdpi_slice c, const unsigned char *in_place)
{
    return request->ctx->nodes.size > 1 ? in_place
                                        : (const unsigned char *)request->call.in + c.begin * request->call.width;
}

const unsigned char *fsdpi_rails_sent(const fsdp_request *request, fsdpi_stream_kind kind, size_t n)
{
    const fsdpi_stream *stream = &request->ctx->rails.streams[kind];
    const fsdpi_parcel *parcel = &stream->parcels[n % stream->window];

    return kind == FSDPI_PARTIALS_OUT ? fsdpi_rails_partial(request, (fsdpi_slice){parcel->begin, parcel->count},
                                                            fsdpi_rails_place(request, kind, n))
                                      : own_data(request, parcel);
}

unsigned char *fsdpi_rails_received(const fsdp_request *request, fsdpi_stream_kind kind, size_t n)
{
    const fsdpi_stream *stream = &request->ctx->rails.streams[kind];

    return kind == FSDPI_PARTIALS_IN
               ? fsdpi_rails_place(request, kind, n)
               : (unsigned char *)request->call.out + stream->parcels[n % stream->window].begin * request->call.width;
}
