#include "shard/schedule/shard_dot.h"

#include "collectives/collectives.h"
#include "shard/schedule/failed_step.h"
#include "shard/state/slices.h"
#include "shard/storage/compute.h"

void fsdpi_shard_dot_add(fsdpi_flat *flat, const void *a, const void *b, fsdpi_exact_dot *dot)
{
    if (fsdpi_counts(flat)) {
        fsdpi_compute_dot(flat->model, dot, a, b, fsdpi_held_elements(flat));
    }
}

fsdp_status fsdpi_shard_dots_join(fsdp_model *model, const char *function, fsdp_status status, size_t n,
                                  fsdpi_exact_dot *dots)
{
    const fsdpi_purpose purpose = {.name = function, .label = "dot products over shards", .status = status};
    const bool          joins   = model->divides && model->shards->size > 1;

    if (model->failed) {
        return status;
    }
    if (!joins || model->shards != model->ctx) {
        FSDP_TRY(fsdpi_step_agree(model, function, purpose.label, 0, status, true));
    }
    return joins ? fsdpi_step_tell(model, fsdpi_allreduce(model->shards, &purpose, FSDP_IN_PLACE, dots,
                                                          n * FSDPI_DOT_WORDS, FSDP_I64, FSDP_SUM))
                 : FSDP_OK;
}
