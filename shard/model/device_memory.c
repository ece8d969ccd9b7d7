#include "shard/model/device_memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/yielding.h"
#include "lib/device/gpu.h"
#include "shard/model/budget.h"
#include "shard/state/plan.h"
#include "shard/state/plane.h"

/* What a rank tells the others of its node. */
typedef struct card {
    char     address[32]; /* of its GPU */
    uint64_t need;        /* BYTES */
} card;

static fsdp_status fill_card(const fsdp_model *model, card *mine)
{
    const fsdp_model_options *o = &model->options;
    fsdp_budget               budget;

    FSDP_TRY(fsdpi_budget_of_rank(model, &budget));
    (void)fsdpi_gpu_address(model->ctx->gpu.device->number, mine->address, sizeof mine->address);
    mine->need = budget.device - fsdpi_contexts_device_bytes(model, o->strategy, model->ctx->size);
    return FSDP_OK;
}

/* Of the ranks of this node, as they are in memory of their number that the caller frees. */
static fsdp_status exchange_cards(fsdp_context *ctx, const card *mine, card **cards, int *n)
{
    MPI_Comm node;

    FSDPI_TRY_MPI(ctx, MPI_Comm_split_type(ctx->comm, MPI_COMM_TYPE_SHARED, ctx->rank, MPI_INFO_NULL, &node));
    (void)MPI_Comm_set_errhandler(node, MPI_ERRORS_RETURN);
    (void)MPI_Comm_size(node, n);
    *cards         = calloc((size_t)*n, sizeof **cards);
    int       some = *cards != NULL;
    const int here = fsdpi_mpi_allreduce(&some, 1, MPI_INT, MPI_MIN, node, ctx->config.timeout_s);
    const int code = here == MPI_SUCCESS && some
                         ? fsdpi_mpi_allgather(mine, *cards, (int)sizeof *mine, MPI_BYTE, node, ctx->config.timeout_s)
                         : here;
    (void)MPI_Comm_free(&node);
    FSDPI_TRY_MPI(ctx, code);
    return some ? FSDP_OK : fsdpi_fail(ctx, FSDP_ERR_MEMORY, "fsdp_model_commit: no memory to ask the ranks of a node");
}

static fsdp_status compare(const fsdp_model *model, const card *mine, const card *cards, int n)
{
    fsdp_context     *ctx = model->ctx;
    fsdpi_gpu_device *gpu = ctx->gpu.device;
    uint64_t          sum = 0;
    char              dealt[FSDPI_NAME_BYTES + 64];
    fsdpi_plan        plan;
    size_t            available, total;
    int               sharers = 0;

    for (int i = 0; i < n; i++) {
        if (strcmp(cards[i].address, mine->address) == 0) {
            sum += cards[i].need;
            sharers++;
        }
    }
    FSDP_TRY(gpu->ops->free_bytes(gpu, &available, &total));
    if (sum <= available) {
        return FSDP_OK;
    }
    FSDP_TRY(fsdpi_plan_make(model, model->options.strategy, ctx->size, model->shards->rank, &plan));
    fsdpi_describe_dealt(model, &plan, model->shards->rank, dealt, sizeof dealt);
    return fsdpi_fail(ctx, FSDP_ERR_MEMORY,
                      "fsdp_model_commit: the model needs %llu bytes on GPU %d, for %d ranks, and %zu of its %zu are "
                      "free; use more GPUs, FULL_SHARD or FSDP_ON_DEVICE_OFFLOADED%s",
                      (unsigned long long)sum, gpu->number, sharers, available, total, dealt);
}

fsdp_status fsdpi_device_memory_check(fsdp_model *model)
{
    card  mine  = {{0}, 0};
    card *cards = NULL;
    int   n     = 0;

    if (!fsdpi_is_on_device(model)) {
        return FSDP_OK;
    }
    fsdp_status       status    = fill_card(model, &mine);
    const fsdp_status exchanged = exchange_cards(model->plane.ctx, &mine, &cards, &n);

    status = status != FSDP_OK ? status : exchanged;
    if (status == FSDP_OK && cards != NULL) {
        status = compare(model, &mine, cards, n);
    }
    free(cards);
    return fsdpi_plane_agree(model, "fsdp_model_commit", "device memory", 0, status);
}
