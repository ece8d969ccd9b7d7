/* In scratch memory: first what is found of rows, then the words of the host. */
#include "lib/base/error.h"
#include "lib/context/context.h"
#include "lib/context/gpu_scratch.h"
#include "shard/tensor_parallel/entropy.h"
#include "shard/tensor_parallel/words_device.h"

/* f64 of a row: the largest logit, two sums, and what threads have found of the columns that they have. */
enum { OF_A_ROW = 3 + FSDPI_GPU_LANES };

static fsdp_status open_work(fsdpi_entropy *e)
{
    const size_t found = OF_A_ROW * e->rows * sizeof(double);

    FSDP_TRY(fsdpi_gpu_scratch_take(e->tp, found + fsdpi_words_room(e->rows, e->targets_there), &e->work));
    e->largest = e->work;
    e->sums    = e->largest + e->rows;
    const fsdp_status status =
        fsdpi_words_bring(e->tp, e->targets, e->rows, e->targets_there, (char *)e->work + found, &e->targets);
    if (status != FSDP_OK) {
        (void)fsdpi_gpu_scratch_leave(e->tp);
    }
    return status;
}

static fsdp_status close_work(fsdpi_entropy *e)
{
    return fsdpi_gpu_scratch_leave(e->tp);
}

static fsdpi_gpu_entropy on_device(const fsdpi_entropy *e)
{
    return (fsdpi_gpu_entropy){.targets    = e->targets,
                               .rows       = e->rows,
                               .begin      = e->mine.begin,
                               .count      = e->mine.count,
                               .vocabulary = e->vocabulary,
                               .dtype      = e->dtype,
                               .scale      = e->scale,
                               .logits     = e->logits,
                               .lanes      = e->sums + 2 * e->rows,
                               .largest    = e->largest,
                               .sums       = e->sums,
                               .losses     = e->losses};
}

static fsdp_status find_largest(fsdpi_entropy *e)
{
    const fsdpi_gpu_entropy there = on_device(e);
    fsdpi_gpu_device       *gpu   = e->tp->gpu.device;

    return gpu->ops->compute->entropy_largest(gpu, &there, fsdpi_gpu_caller(&e->tp->gpu));
}

static fsdp_status exponentiate(fsdpi_entropy *e)
{
    const fsdpi_gpu_entropy there = on_device(e);
    fsdpi_gpu_device       *gpu   = e->tp->gpu.device;

    return gpu->ops->compute->entropy_exponentials(gpu, &there, fsdpi_gpu_caller(&e->tp->gpu));
}

static fsdp_status finish(fsdpi_entropy *e)
{
    const fsdpi_gpu_entropy there = on_device(e);
    fsdpi_gpu_device       *gpu   = e->tp->gpu.device;

    return gpu->ops->compute->entropy_gradients(gpu, &there, fsdpi_gpu_caller(&e->tp->gpu));
}

const fsdpi_entropy_ops fsdpi_entropy_on_device = {.open         = open_work,
                                                   .close        = close_work,
                                                   .find_largest = find_largest,
                                                   .exponentiate = exponentiate,
                                                   .finish       = finish};
