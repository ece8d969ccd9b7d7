/*
 * Allgather on one node: each rank copies its peers' parts from where they lie into its own result, its own first. Where
 * the node has one result for all, each only adds its own part.
 *
 * Cost on L ranks for S bytes: two synchronisations and 2 S of memory traffic per rank; with one result for all 2 S / L,
 * or nothing where the parts are already there.
 */
#include "collectives/allgather/allgather.h"
#include "collectives/arguments/slices.h"
#include "collectives/reach/reach.h"
#include "lib/context/context.h"

static size_t parts_to_copy(const fsdp_request *request)
{
    return (request->flags & FSDPI_FLAG_SHARED) != 0 ? 1 : (size_t)request->ctx->nodes.size;
}

/* Copies from where the last step ended in the part of a peer. Returns BYTES left of it. */
static fsdp_status copy_some(fsdp_request *request, int position, size_t *left)
{
    const fsdpi_call *call  = &request->call;
    const size_t      width = call->width;
    const fsdpi_slice part =
        fsdpi_slice_of(request, fsdpi_rank_at(&request->ctx->nodes, request->ctx->nodes.mine, position));
    const size_t rest  = part.count * width - request->at;
    const size_t bytes = rest < FSDPI_STEP_BYTES ? rest : FSDPI_STEP_BYTES;

    if (bytes > 0) {
        FSDP_TRY(fsdpi_fetch(request, position, FSDPI_INPUT, request->at,
                             (unsigned char *)call->out + part.begin * width + request->at, bytes));
    }
    request->at += bytes;
    *left = rest - bytes;
    return FSDP_OK;
}

static fsdp_status advance(fsdp_request *request, fsdpi_progress *progress)
{
    const fsdpi_nodes *nodes = &request->ctx->nodes;
    size_t             moved = 0;

    for (; (size_t)request->stage < parts_to_copy(request); request->stage++) {
        const size_t before = request->at;
        size_t       left;

        FSDP_TRY(copy_some(request, (nodes->position + request->stage) % nodes->size, &left));
        moved += request->at - before;
        if (left > 0 || moved >= FSDPI_STEP_BYTES) {
            request->stage += left == 0;
            request->at = left == 0 ? 0 : request->at;
            *progress   = FSDPI_MOVED;
            return FSDP_OK;
        }
        request->at = 0;
    }
    *progress = FSDPI_FINISHED;
    return FSDP_OK;
}

const fsdpi_algorithm fsdpi_allgather_direct = {.name = "direct", .advance = advance, .leaves_together = true};
const fsdpi_algorithm fsdpi_allgather_cma    = {.name = "cma", .advance = advance, .leaves_together = true};
