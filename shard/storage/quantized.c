/*
 * Quantised gathers: ranks pack their slices into blocks of 8 bit integers, gather these behind the view, and unpack them
 * into it. On the host the view is the node's, and each of its ranks unpacks every L-th slice; so this is an operation of the
 * queue like any other, behind the gather, which ends when all have finished. It goes on behind the caller's back with the
 * gather. On a GPU the view is the rank's, and kernels in the model's stream unpack all slices, behind the gather.
 *
 * Cost on N ranks for n parameters: 65/64 n bytes gathered, which are read and 4 n written per node, or per GPU.
 */
#include "shard/storage/quantized.h"

#include "shard/state/flat.h"
#include "shard/storage/compute.h"

fsdp_status fsdpi_gather_quantized(fsdpi_flat *flat, const fsdpi_purpose *purpose, fsdpi_view *view)
{
    FSDP_TRY(fsdpi_iallgather(flat->model->shards, purpose, flat->low, fsdpi_packed_slices(flat, view),
                              fsdpi_packed_slice_bytes(&flat->layout), FSDP_U8, &view->gathering));
    return flat->model->compute->unpack(flat, purpose, view);
}
