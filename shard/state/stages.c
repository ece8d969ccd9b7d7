#include "shard/state/stages.h"

#include <string.h>

#include "collectives/collectives.h"
#include "fsdp/collectives.h"
#include "lib/device/memory.h"
#include "shard/state/plane.h"

static size_t ends_bytes(const fsdpi_stage_bytes *all)
{
    return (size_t)all->n_stages * sizeof *all->ends;
}

static bool speaks(const fsdp_model *model)
{
    return model->plane.ctx->rank == fsdpi_plane_speaker(model, model->plane.stage);
}

static fsdp_status share_lengths(const fsdp_model *model, size_t n, fsdpi_stage_bytes *all)
{
    all->ends[model->plane.stage] = speaks(model) ? n : 0;
    FSDP_TRY(fsdp_allreduce(model->plane.ctx, FSDP_IN_PLACE, all->ends, (size_t)all->n_stages, FSDP_I64, FSDP_SUM));
    for (int s = 1; s < all->n_stages; s++) {
        all->ends[s] += all->ends[s - 1];
    }
    all->total = (size_t)all->ends[all->n_stages - 1];
    return FSDP_OK;
}

static fsdp_status share_bytes(const fsdp_model *model, const void *mine, fsdpi_stage_bytes *all)
{
    for (int s = 0; s < all->n_stages; s++) {
        char        *at = all->bytes + (s > 0 ? all->ends[s - 1] : 0);
        const size_t n  = (size_t)(all->bytes + all->ends[s] - at);

        if (n > 0 && s == model->plane.stage && speaks(model)) {
            memcpy(at, mine, n);
        }
        FSDP_TRY(fsdp_broadcast(model->plane.ctx, at, n, FSDP_U8, fsdpi_plane_speaker(model, s)));
    }
    return FSDP_OK;
}

fsdp_status fsdpi_stages_gather(const fsdp_model *model, const char *function, const void *mine, size_t n,
                                fsdp_status status, fsdpi_stage_bytes *all)
{
    *all = (fsdpi_stage_bytes){.n_stages = model->plane.n_stages};
    if (status == FSDP_OK) {
        all->ends = fsdpi_alloc(model->ctx, FSDP_MEMORY_BOOKKEEPING, ends_bytes(all));
        status    = all->ends != NULL ? FSDP_OK : FSDP_ERR_MEMORY;
    }
    status = fsdpi_plane_agree(model, function, "stages", 0, status);
    if (status != FSDP_OK || all->ends == NULL) {
        return status;
    }
    FSDP_TRY(share_lengths(model, n, all));
    all->bytes = fsdpi_alloc(model->ctx, FSDP_MEMORY_BOOKKEEPING, all->total);
    status     = all->bytes != NULL || all->total == 0 ? FSDP_OK : FSDP_ERR_MEMORY;
    status     = fsdpi_plane_agree(model, function, "tensors of stages", 0, status);
    return status == FSDP_OK && all->bytes != NULL ? share_bytes(model, mine, all) : status;
}

void fsdpi_stages_free(const fsdp_model *model, fsdpi_stage_bytes *all)
{
    fsdpi_free(model->ctx, FSDP_MEMORY_BOOKKEEPING, all->bytes, all->total);
    fsdpi_free(model->ctx, FSDP_MEMORY_BOOKKEEPING, all->ends, ends_bytes(all));
    *all = (fsdpi_stage_bytes){0};
}
