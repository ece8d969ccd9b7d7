#include "collectives/alltoallv/alltoallv.h"

#include <stdint.h>

#include "collectives/alltoallv/notices.h"
#include "collectives/arguments/memory.h"
#include "collectives/arguments/slices.h"
#include "collectives/collectives.h"
#include "collectives/reach/reach.h"
#include "lib/context/context.h"

#define NAME "fsdp_alltoallv"

/* ---- what this rank says of its buffers -------------------------------------------------------------------------- */

/*
 * Short blocks are copied to where peers find them. Longer ones are read where they lie, if that can be done on every rank; else they
 * are sent. A rank does not know how long the others' blocks are, and so prepares for both.
 */
static unsigned offer(fsdp_request *request, fsdpi_letter *letter)
{
    unsigned flags = fsdpi_offer_places(request, letter);

    if ((flags & FSDPI_FLAG_SYMMETRIC) == 0 && !fsdpi_places_are_open(request, letter)) {
        flags &= ~(unsigned)FSDPI_FLAG_PLACES;
    }
    if (fsdpi_alltoallv_may_ride(request)) {
        fsdpi_alltoallv_publish(request, letter);
        flags |= FSDPI_FLAG_OFFERED;
    }
    return flags;
}

/* What comes from a node is for all ranks of this one, and how much it is only its sender knows. */
static void *place(fsdp_request *request, int node)
{
    (void)request;
    (void)node;
    return NULL;
}

static size_t expected(fsdp_request *request, int node)
{
    (void)request;
    (void)node;
    return 0;
}

static const fsdpi_algorithm *choose(fsdp_request *request)
{
    return (request->flags & FSDPI_FLAG_OFFERED) != 0 ? fsdpi_alltoallv_inline(request) : &fsdpi_alltoallv_pairwise;
}

static const fsdpi_collective ALLTOALLV = {.name     = "alltoallv",
                                           .id       = FSDPI_ALLTOALLV,
                                           .prepare  = fsdpi_alltoallv_prepare,
                                           .offer    = offer,
                                           .record   = fsdpi_alltoallv_record,
                                           .portion  = fsdpi_alltoallv_portion,
                                           .place    = place,
                                           .expected = expected,
                                           .choose   = choose};

/* ---- what can be wrong ------------------------------------------------------------------------------------------- */

/* BYTES from the buffer's beginning to the end of the last block; false where they do not fit. */
static bool reach_of(const fsdp_context *ctx, const size_t *counts, const size_t *displacements, size_t width,
                     size_t *bytes)
{
    size_t most = 0, end;

    for (int r = 0; r < ctx->size; r++) {
        if (__builtin_add_overflow(counts[r], displacements[r], &end)) {
            return false;
        }
        most = counts[r] > 0 && end > most ? end : most;
    }
    return !__builtin_mul_overflow(most, width, bytes) && *bytes <= PTRDIFF_MAX;
}

static fsdp_status check_lists(fsdp_context *ctx, const fsdpi_call *call, bool in_place)
{
    static const char *const names[] = {"send counts", "send displacements", "receive counts", "receive displacements"};

    for (int i = in_place ? FSDPI_RECEIVE_COUNTS : FSDPI_SEND_COUNTS; i < FSDPI_N_BLOCK_LISTS; i++) {
        if (call->blocks[i] == NULL) {
            return fsdpi_fail_together(ctx, FSDP_ERR_ARG, NAME ": the %s are NULL; pass %d of them", names[i],
                                       ctx->size);
        }
    }
    return FSDP_OK;
}

static fsdp_status measure(fsdp_context *ctx, fsdpi_call *call)
{
    const size_t *const *b = call->blocks;

    call->width = fsdp_dtype_size(call->dtype);
    if (!reach_of(ctx, b[FSDPI_SEND_COUNTS], b[FSDPI_SEND_PLACES], call->width, &call->in_bytes) ||
        !reach_of(ctx, b[FSDPI_RECEIVE_COUNTS], b[FSDPI_RECEIVE_PLACES], call->width, &call->out_bytes)) {
        return fsdpi_fail_together(ctx, FSDP_ERR_ARG,
                                   NAME ": a count and its displacement overflow in bytes of %s; both are elements",
                                   fsdp_dtype_name(call->dtype));
    }
    return FSDP_OK;
}

static fsdp_status check_buffers(fsdp_context *ctx, fsdpi_call *call)
{
    if ((call->in_bytes > 0 && call->in == NULL) || (call->out_bytes > 0 && call->out == NULL)) {
        return fsdpi_fail_together(ctx, FSDP_ERR_ARG, NAME ": the %s buffer is NULL; it must hold %zu bytes",
                                   call->in_bytes > 0 && call->in == NULL ? "input" : "output",
                                   call->in_bytes > 0 && call->in == NULL ? call->in_bytes : call->out_bytes);
    }
    if (call->out_bytes > 0 && call->out == FSDP_IN_PLACE) {
        return fsdpi_fail_together(ctx, FSDP_ERR_ARG,
                                   NAME ": FSDP_IN_PLACE stands for an input; the output must be a buffer");
    }
    if (call->in != FSDP_IN_PLACE && call->in_bytes > 0 && call->out_bytes > 0 &&
        fsdpi_overlap(call->in, call->in_bytes, call->out, call->out_bytes)) {
        return fsdpi_fail_together(ctx, FSDP_ERR_ARG,
                                   NAME
                                   ": input (%p, %zu bytes) and output (%p, %zu bytes) overlap, from the first byte "
                                   "to the end of the last block; use separate buffers or FSDP_IN_PLACE",
                                   call->in, call->in_bytes, call->out, call->out_bytes);
    }
    FSDP_TRY(fsdpi_check_memory(ctx, call));
    return call->on_device ? fsdpi_fail_together(ctx, FSDP_ERR_UNSUPPORTED,
                                                 NAME ": the buffers are GPU memory; copy them to the host, or use "
                                                      "fsdp_alltoall() with blocks of one size")
                           : FSDP_OK;
}

/* The status to issue it with. */
static fsdp_status settle(fsdp_context *ctx, fsdpi_call *call)
{
    const bool in_place = call->in == FSDP_IN_PLACE;

    if (fsdp_dtype_size(call->dtype) == 0) {
        return fsdpi_fail_together(ctx, FSDP_ERR_ARG, NAME ": %d is no element type; use one of fsdp_dtype",
                                   (int)call->dtype);
    }
    FSDP_TRY(check_lists(ctx, call, in_place));
    if (in_place) {
        call->blocks[FSDPI_SEND_COUNTS] = call->blocks[FSDPI_RECEIVE_COUNTS];
        call->blocks[FSDPI_SEND_PLACES] = call->blocks[FSDPI_RECEIVE_PLACES];
    }
    FSDP_TRY(measure(ctx, call));
    FSDP_TRY(check_buffers(ctx, call));
    call->in = in_place ? call->out : call->in;
    return FSDP_OK;
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

static fsdpi_call call_of(const void *in, const size_t *in_counts, const size_t *in_places, void *out,
                          const size_t *out_counts, const size_t *out_places, fsdp_dtype dtype)
{
    return (fsdpi_call){.collective = &ALLTOALLV,
                        .name       = NAME,
                        .label      = fsdp_dtype_name(dtype),
                        .in         = in,
                        .out        = out,
                        .blocks     = {in_counts, in_places, out_counts, out_places},
                        .dtype      = dtype};
}

static fsdp_status no_context(void)
{
    return fsdpi_fail_together(NULL, FSDP_ERR_ARG, NAME ": the context is NULL; pass one from fsdp_init");
}

fsdp_status fsdp_ialltoallv(fsdp_context *ctx, const void *in, const size_t *in_counts, const size_t *in_displacements,
                            void *out, const size_t *out_counts, const size_t *out_displacements, fsdp_dtype dtype,
                            fsdp_request **request)
{
    fsdpi_call call = call_of(in, in_counts, in_displacements, out, out_counts, out_displacements, dtype);

    if (ctx == NULL) {
        return no_context();
    }
    if (request == NULL) {
        return fsdpi_fail_together(ctx, FSDP_ERR_ARG, NAME ": the place for the request is NULL");
    }
    *request                 = NULL;
    const fsdp_status status = settle(ctx, &call);
    return fsdpi_issue(ctx, &call, status, request);
}

fsdp_status fsdp_alltoallv(fsdp_context *ctx, const void *in, const size_t *in_counts, const size_t *in_displacements,
                           void *out, const size_t *out_counts, const size_t *out_displacements, fsdp_dtype dtype)
{
    fsdpi_call call = call_of(in, in_counts, in_displacements, out, out_counts, out_displacements, dtype);

    if (ctx == NULL) {
        return no_context();
    }
    const fsdp_status status = settle(ctx, &call);
    return fsdpi_run(ctx, &call, status);
}
