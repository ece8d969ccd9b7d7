#include "shard/tensor_parallel/words_device.h"

#include "lib/base/error.h"
#include "lib/context/gpu_scratch.h"

size_t fsdpi_words_room(size_t rows, bool there)
{
    return there ? 0 : (rows * sizeof(int32_t) + 7) / 8 * 8;
}

fsdp_status fsdpi_words_bring(fsdp_context *tp, const int32_t *words, size_t rows, bool there, void *room,
                              const int32_t **found)
{
    fsdpi_gpu_device *gpu = tp->gpu.device;

    *found = there ? words : room;
    return there ? FSDP_OK : gpu->ops->compute->store_words(gpu, room, words, rows, fsdpi_gpu_caller(&tp->gpu));
}

/* The first failure of two. */
static fsdp_status first_of(fsdp_status a, fsdp_status b)
{
    return a != FSDP_OK ? a : b;
}

fsdp_status fsdpi_embed_on_device(fsdp_context *tp, const fsdpi_gpu_lookup *lookup, bool there, const void *table,
                                  void *out)
{
    fsdpi_gpu_device *gpu   = tp->gpu.device;
    fsdpi_gpu_lookup  found = *lookup;
    void             *room;

    FSDP_TRY(fsdpi_gpu_scratch_take(tp, fsdpi_words_room(lookup->rows, there), &room));
    fsdp_status status = fsdpi_words_bring(tp, lookup->words, lookup->rows, there, room, &found.words);
    if (status == FSDP_OK) {
        status = gpu->ops->compute->embed(gpu, &found, table, out, fsdpi_gpu_caller(&tp->gpu));
    }
    return first_of(status, fsdpi_gpu_scratch_leave(tp));
}

fsdp_status fsdpi_embed_backward_on_device(fsdp_context *tp, const fsdpi_gpu_lookup *lookup, bool there,
                                           const void *d_out, void *d_table)
{
    fsdpi_gpu_device *gpu   = tp->gpu.device;
    fsdpi_gpu_lookup  found = *lookup;
    const size_t      links = gpu->ops->compute->embed_scratch(lookup->rows);
    void             *scratch;

    FSDP_TRY(fsdpi_gpu_scratch_take(tp, links + fsdpi_words_room(lookup->rows, there), &scratch));
    fsdp_status status =
        fsdpi_words_bring(tp, lookup->words, lookup->rows, there, (char *)scratch + links, &found.words);
    if (status == FSDP_OK) {
        status = gpu->ops->compute->embed_backward(gpu, &found, d_out, d_table, scratch, fsdpi_gpu_caller(&tp->gpu));
    }
    return first_of(status, fsdpi_gpu_scratch_leave(tp));
}
