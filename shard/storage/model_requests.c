#include "shard/storage/model_requests.h"

#include "lib/device/memory.h"

/* What groups of ranks hold counts in the context of all ranks as well. */
static fsdp_status reserve(const fsdp_model *model, fsdp_context *part, size_t n)
{
    const fsdp_status status = fsdpi_queue_reserve(&part->queue, n);

    fsdpi_error_hand_on(part, model->ctx, status);
    if (part != model->ctx && status == FSDP_OK) {
        fsdpi_count_memory(model->ctx, FSDP_MEMORY_BOOKKEEPING, fsdpi_queue_reserve_bookkeeping(n));
    }
    return status;
}

static void unreserve(const fsdp_model *model, fsdp_context *part, size_t n)
{
    fsdpi_queue_unreserve(&part->queue, n);
    if (part != model->ctx) {
        fsdpi_uncount_memory(model->ctx, FSDP_MEMORY_BOOKKEEPING, fsdpi_queue_reserve_bookkeeping(n));
    }
}

static size_t requests_of_shards(const fsdp_model *model)
{
    return model->plan.gathers + model->plan.reductions;
}

fsdp_status fsdpi_model_requests_open(fsdp_model *model)
{
    FSDP_TRY(reserve(model, model->shards, requests_of_shards(model)));
    const fsdp_status status =
        model->replicas != NULL ? reserve(model, model->replicas, model->plan.reductions) : FSDP_OK;

    if (status != FSDP_OK) {
        unreserve(model, model->shards, requests_of_shards(model));
    }
    model->has_requests = status == FSDP_OK;
    return status;
}

void fsdpi_model_requests_close(fsdp_model *model)
{
    if (model->has_requests) {
        unreserve(model, model->shards, requests_of_shards(model));
    }
    if (model->has_requests && model->replicas != NULL) {
        unreserve(model, model->replicas, model->plan.reductions);
    }
    model->has_requests = false;
}
