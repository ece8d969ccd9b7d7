/*
 * Allreduce on one node, any memory: each rank reduces its own part of the vector into its own result, reading its peers'
 * inputs through process_vm_readv; and when all have done so, reads their parts from their results.
 *
 * Cost on L ranks for S bytes: three synchronisations and (3 S - S/L) of memory traffic per rank.
 */
#include "collectives/allreduce/allreduce.h"
#include "collectives/arguments/slices.h"
#include "collectives/reach/pieces.h"
#include "collectives/reach/reach.h"
#include "lib/context/context.h"

enum { REDUCE, MEET, GATHER };
static fsdp_status reduce(fsdp_request *request)
{
    bool done;

    FSDP_TRY(fsdpi_reduce_own_part(request, &done));
    if (done) {
        fsdpi_milestone_set(&request->lane->box, FSDPI_MILESTONE(request->number, FSDPI_HALFWAY));
        request->stage = MEET;
    }
    return FSDP_OK;
}

static void meet(fsdp_request *request, fsdpi_progress *progress)
{
    if (fsdpi_milestone_reached(&request->lane->box, FSDPI_MILESTONE(request->number, FSDPI_HALFWAY))) {
        request->stage = GATHER;
        request->step  = 1;
        request->at    = 0;
    } else {
        *progress = FSDPI_WAITING;
    }
}

/* `step` counts peers, `at` the BYTES that have come of the present one's part. */
static fsdp_status gather(fsdp_request *request, fsdpi_progress *progress)
{
    const fsdpi_nodes *nodes    = &request->ctx->nodes;
    const int          position = (nodes->position + request->step) % nodes->size;
    const fsdpi_slice  part     = fsdpi_slice_of(request, fsdpi_rank_at(nodes, nodes->mine, position));
    const size_t       width    = request->call.width;
    const size_t       begin = part.begin * width + request->at, left = part.count * width - request->at;
    const size_t       bytes = left < FSDPI_STEP_BYTES ? left : FSDPI_STEP_BYTES;

    if (request->step == nodes->size) {
        *progress = FSDPI_FINISHED;
        return FSDP_OK;
    }
    if (bytes > 0) {
        FSDP_TRY(
            fsdpi_fetch(request, position, FSDPI_OUTPUT, begin, (unsigned char *)request->call.out + begin, bytes));
    }
    request->at += bytes;
    if (bytes == left) {
        request->step++;
        request->at = 0;
    }
    return FSDP_OK;
}

static fsdp_status advance(fsdp_request *request, fsdpi_progress *progress)
{
    *progress = FSDPI_MOVED;
    switch (request->stage) {
    case REDUCE:
        return reduce(request);
    case MEET:
        meet(request, progress);
        return FSDP_OK;
    default:
        return gather(request, progress);
    }
}

const fsdpi_algorithm fsdpi_allreduce_cma = {.name = "cma", .advance = advance, .leaves_together = true};
