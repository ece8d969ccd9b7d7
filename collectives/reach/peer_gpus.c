#include "collectives/reach/peer_gpus.h"

#include "collectives/reach/reach.h"
#include "lib/progress/gpu_request.h"

void fsdpi_fetch_on_device(fsdp_request *request, int position, size_t offset, void *to, size_t bytes)
{
    const unsigned char *peer = fsdpi_peer(request, position, FSDPI_INPUT);

    if (bytes > 0) {
        fsdpi_gpu_move(request, to, peer + offset, bytes);
    }
}

void fsdpi_leave_on_device(fsdp_request *request)
{
    fsdpi_gpu_hear_done(request, request->number - 1); /* the letter that said where the buffers are */
}
