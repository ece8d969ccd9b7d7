#include "collectives/arguments/slices.h"

#include <stdint.h>

#include "lib/context/context.h"

/* Parts of an even split begin at multiples of this, so that no two ranks write to one cache line. */
enum { SPLIT_MULTIPLE = 64 };

fsdpi_slice fsdpi_even_slice(size_t count, int size, int rank)
{
    const size_t even  = count / (size_t)size + (count % (size_t)size != 0);
    const size_t part  = (even + SPLIT_MULTIPLE - 1) / SPLIT_MULTIPLE * SPLIT_MULTIPLE;
    const size_t begin = part > 0 && (size_t)rank > count / part ? count : part * (size_t)rank;
    const size_t left  = count - (begin < count ? begin : count);

    return (fsdpi_slice){.begin = count - left, .count = left < part ? left : part};
}

static fsdpi_slice given_part(const fsdpi_call *call, int rank)
{
    fsdpi_slice part = {.count = fsdpi_given_count(call, rank)};

    if (call->begins != NULL) {
        part.begin = call->begins(call->divided, rank);
    }
    for (int r = 0; r < rank && call->counts != NULL; r++) {
        part.begin += call->counts[r];
    }
    return part;
}

fsdpi_slice fsdpi_uneven_slice_of(const fsdp_request *request, int rank)
{
    const fsdpi_call *call = &request->call;
    fsdpi_slice       part = {0, 0};

    switch (call->division) {
    case FSDPI_DIVISION_EQUAL:
        break;
    case FSDPI_DIVISION_COUNTS:
        return given_part(call, rank);
    case FSDPI_DIVISION_SPLIT:
        return fsdpi_even_slice(call->count, request->ctx->size, rank);
    case FSDPI_DIVISION_ROOT:
        part.count = rank == call->root ? call->count : 0;
        return part;
    }
    return part;
}

size_t fsdpi_count_of(const fsdp_request *request, int rank)
{
    const fsdpi_call *call = &request->call;

    return call->division == FSDPI_DIVISION_COUNTS ? fsdpi_given_count(call, rank)
                                                   : fsdpi_slice_of(request, rank).count;
}

fsdpi_slice fsdpi_next_slice(const fsdp_request *request, fsdpi_slice before, int rank)
{
    const fsdpi_call *call = &request->call;

    if (call->division == FSDPI_DIVISION_COUNTS) {
        return (fsdpi_slice){.begin = before.begin + before.count, .count = fsdpi_given_count(call, rank)};
    }
    return fsdpi_slice_of(request, rank);
}

size_t fsdpi_largest_uneven_slice(const fsdp_request *request)
{
    const fsdpi_call *call    = &request->call;
    size_t            largest = 0;

    if (call->division == FSDPI_DIVISION_ROOT) {
        return call->count;
    }
    if (call->division == FSDPI_DIVISION_SPLIT) {
        return fsdpi_slice_of(request, 0).count;
    }
    for (int r = 0; r < request->ctx->size; r++) {
        const size_t count = fsdpi_given_count(call, r);

        largest = count > largest ? count : largest;
    }
    return largest;
}

bool fsdpi_overlap(const void *a, size_t a_bytes, const void *b, size_t b_bytes)
{
    const uintptr_t a_begin = (uintptr_t)a, b_begin = (uintptr_t)b;

    return a_begin < b_begin + b_bytes && b_begin < a_begin + a_bytes;
}

/* The output is the part itself, unless it holds the whole; then this rank's part of that. */
unsigned char *fsdpi_own_result(const fsdp_request *request)
{
    const fsdpi_call *call  = &request->call;
    const size_t      begin = fsdpi_slice_of(request, request->ctx->rank).begin * call->width;
    unsigned char    *out   = call->out;

    if (call->division == FSDPI_DIVISION_SPLIT) {
        return out != NULL ? out + begin : NULL;
    }
    if (call->division != FSDPI_DIVISION_ROOT && fsdpi_overlap(call->in, call->in_bytes, out, call->out_bytes)) {
        return (unsigned char *)(uintptr_t)call->in + begin; /* in place: the caller has given it to be written to */
    }
    return out;
}
