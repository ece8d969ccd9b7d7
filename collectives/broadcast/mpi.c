/* Broadcast across nodes: MPI's own, cut into messages of FSDP_MESSAGE_BYTES. */
#include "collectives/broadcast/broadcast.h"
#include "lib/context/context.h"

static fsdp_status advance(fsdp_request *request, fsdpi_progress *progress)
{
    const fsdpi_call *call = &request->call;
    bool              complete;

    if (request->stage == 0) {
        request->stage = 1;
        FSDP_TRY(fsdpi_post_broadcast(&request->lane->messages, call->out, call->count * call->width, call->root));
    }
    FSDP_TRY(fsdpi_messages_complete(&request->lane->messages, &complete));
    *progress = complete ? FSDPI_FINISHED : FSDPI_WAITING;
    return FSDP_OK;
}

const fsdpi_algorithm fsdpi_broadcast_mpi = {.name = "mpi", .advance = advance, .leaves_together = true};
