#include "lib/sync/gpu_streams.h"

unsigned char *fsdpi_gpu_view(const fsdpi_gpu *gpu, const void *in_mailbox)
{
    return gpu->view + ((const unsigned char *)in_mailbox - gpu->box->segment.base);
}

unsigned char *fsdpi_gpu_rest(const fsdpi_gpu *gpu)
{
    return gpu->peers[gpu->nodes->position].slots + 2 * gpu->box->slot_bytes;
}

unsigned char *fsdpi_gpu_slot(const fsdpi_gpu *gpu, int position, uint64_t number)
{
    if (gpu->shares) {
        return gpu->peers[position].slots + (number & 1) * gpu->box->slot_bytes;
    }
    return fsdpi_gpu_view(gpu, fsdpi_slot_of(gpu->box, position, number));
}

bool fsdpi_gpu_through_host(const fsdpi_gpu *gpu)
{
    return !gpu->shares || gpu->nodes->count > 1;
}
