#include "collectives/alltoallv/notices.h"

#include <string.h>

#include "lib/base/error.h"
#include "lib/context/context.h"
#include "lib/device/memory.h"

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static size_t notices_bytes(const fsdp_request *request)
{
    return 2 * (size_t)request->ctx->size * sizeof(fsdpi_alltoallv_notice);
}

fsdpi_alltoallv_notice *fsdpi_notice_to(const fsdp_request *request, int peer)
{
    return (fsdpi_alltoallv_notice *)(void *)request->scratch + peer;
}

fsdpi_alltoallv_notice *fsdpi_notice_from(const fsdp_request *request, int peer)
{
    return (fsdpi_alltoallv_notice *)(void *)request->scratch + request->ctx->size + peer;
}

fsdp_status fsdpi_alltoallv_prepare(fsdp_request *request)
{
    fsdpi_call  *call     = &request->call;
    const bool   in_place = call->in == call->out && call->in_bytes > 0;
    const size_t bytes    = notices_bytes(request) + (in_place ? call->in_bytes : 0);

    request->scratch = fsdpi_alloc(request->ctx, FSDP_MEMORY_STAGING, bytes);
    if (request->scratch == NULL) {
        return FSDP_ERR_MEMORY;
    }
    request->scratch_bytes = bytes;
    if (in_place) {
        call->in = memcpy(request->scratch + notices_bytes(request), call->out, call->in_bytes);
    }
    for (int r = 0; r < request->ctx->size; r++) {
        *fsdpi_notice_to(request, r) =
            (fsdpi_alltoallv_notice){.sends   = call->blocks[FSDPI_SEND_COUNTS][r],
                                     .expects = call->blocks[FSDPI_RECEIVE_COUNTS][r],
                                     .place   = call->blocks[FSDPI_SEND_PLACES][r] * call->width};
    }
    *fsdpi_notice_from(request, request->ctx->rank) = *fsdpi_notice_to(request, request->ctx->rank);
    return FSDP_OK;
}

/* ---- counts ------------------------------------------------------------------------------------------------------ */

static void say_mismatch(fsdp_request *request, int from, uint64_t sends, int to, uint64_t expects)
{
    fsdpi_take_local_verdict(
        request, fsdpi_record(request->ctx, FSDP_ERR_MISMATCH,
                              "fsdp_alltoallv: rank %d sends %llu elements to rank %d, which expects %llu; give both "
                              "the same count",
                              from, (unsigned long long)sends, to, (unsigned long long)expects));
}

void fsdpi_compare_counts(fsdp_request *request)
{
    const int me = request->ctx->rank;

    for (int r = 0; r < request->ctx->size; r++) {
        const fsdpi_alltoallv_notice *in = fsdpi_notice_from(request, r), *out = fsdpi_notice_to(request, r);

        if (in->sends != out->expects) {
            say_mismatch(request, r, in->sends, me, out->expects);
            return;
        }
        if (out->sends != in->expects) {
            say_mismatch(request, me, out->sends, r, in->expects);
            return;
        }
    }
}
