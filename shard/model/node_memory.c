/*
 * Whether a node has the memory that its ranks will take between them, asked before any of it is taken. A node is what
 * really shares memory here, also where FSDP_NODE_SIZE pretends that it is several.
 */
#include "shard/model/node_memory.h"

#include <stdint.h>

#include "lib/base/available_memory.h"
#include "lib/base/yielding.h"
#include "shard/model/budget.h"
#include "shard/state/plan.h"
#include "shard/state/plane.h"

/* BYTES, but for `ranks`. */
typedef struct node_need {
    uint64_t ranks;
    uint64_t all;
    uint64_t shared; /* of that, what lies in the file system of shared memory */
} node_need;

typedef struct node_room {
    uint64_t all;
    uint64_t shared;
} node_room;

/* All of the host that commit and an optimizer take: of what ranks have once between them, this rank's part. Staging buffers
 * are there. */
static fsdp_status need_of_rank(const fsdp_model *model, node_need *need)
{
    const fsdp_model_options *options = &model->options;
    const size_t              sharers = (size_t)model->shards->nodes.size;
    fsdp_budget               budget;
    fsdpi_plan                plan;

    FSDP_TRY(fsdpi_budget_of_rank(model, &budget));
    FSDP_TRY(fsdpi_plan_make(model, options->strategy, model->ctx->size, model->shards->rank, &plan));
    const size_t views = (budget.shared + sharers - 1) / sharers;
    const size_t there = fsdpi_contexts_device_bytes(model, options->strategy, model->ctx->size);
    need->all = budget.total - budget.bytes[FSDP_MEMORY_STAGING] - budget.shared + views - (budget.device - there);
    if (sharers > 1 && !fsdpi_is_on_device(model)) {
        need->shared = budget.bytes[FSDP_MEMORY_PARAMETERS] - plan.ignored_bytes + budget.bytes[FSDP_MEMORY_GRADIENTS] -
                       plan.local * fsdpi_master_width(model) + budget.bytes[FSDP_MEMORY_GRADIENT_VIEWS] + views;
    }
    return FSDP_OK;
}

static node_room room_of_rank(const fsdp_context *ctx)
{
    const uint64_t given  = (uint64_t)ctx->config.node_memory;
    uintmax_t      shared = UINT64_MAX;

    (void)fsdpi_segment_room(ctx->config.shm_dir,
                             &shared); /* a folder that is none is an error where memory is taken */
    return (node_room){.all = given > 0 ? given : fsdpi_available_memory(""), .shared = shared};
}

/* From what each rank needs to the sum over the ranks of its node, and to the least that any of them finds there. */
static fsdp_status add_up_node(fsdp_context *ctx, node_need *need, node_room *room, int *position)
{
    enum { NEEDS = sizeof *need / sizeof(uint64_t), ROOMS = sizeof *room / sizeof(uint64_t) };
    MPI_Comm node;

    FSDPI_TRY_MPI(ctx, MPI_Comm_split_type(ctx->comm, MPI_COMM_TYPE_SHARED, ctx->rank, MPI_INFO_NULL, &node));
    (void)MPI_Comm_set_errhandler(node, MPI_ERRORS_RETURN);
    (void)MPI_Comm_rank(node, position);
    const int needs = fsdpi_mpi_allreduce(need, NEEDS, MPI_UINT64_T, MPI_SUM, node, ctx->config.timeout_s);
    const int rooms = fsdpi_mpi_allreduce(room, ROOMS, MPI_UINT64_T, MPI_MIN, node, ctx->config.timeout_s);
    (void)MPI_Comm_free(&node);
    FSDPI_TRY_MPI(ctx, needs);
    FSDPI_TRY_MPI(ctx, rooms);
    return FSDP_OK;
}

static double gigabytes(uint64_t bytes)
{
    return 1e-9 * (double)bytes;
}

static fsdp_status compare(const fsdp_model *model, const node_need *need, const node_room *room)
{
    fsdp_context *ctx = model->ctx;
    char          dealt[FSDPI_NAME_BYTES + 64];
    fsdpi_plan    plan;

    if (need->all <= room->all && need->shared <= room->shared) {
        return FSDP_OK;
    }
    FSDP_TRY(fsdpi_plan_make(model, model->options.strategy, ctx->size, model->shards->rank, &plan));
    fsdpi_describe_dealt(model, &plan, FSDPI_RANKS_OF_NODE, dealt, sizeof dealt);
    if (need->all > room->all) {
        return fsdpi_fail_together(
            ctx, FSDP_ERR_MEMORY,
            "fsdp_model_commit: the %llu ranks of this node need %llu bytes (%.1f GB), and %llu (%.1f GB) "
            "are available; use more nodes, FULL_SHARD or a higher FSDP_NODE_MEMORY%s",
            (unsigned long long)need->ranks, (unsigned long long)need->all, gigabytes(need->all),
            (unsigned long long)room->all, gigabytes(room->all), dealt);
    }
    if (need->shared > room->shared) {
        return fsdpi_fail_together(
            ctx, FSDP_ERR_MEMORY,
            "fsdp_model_commit: the %llu ranks of this node need %llu bytes (%.1f GB) of shared memory, and "
            "%llu (%.1f GB) are free in %s; enlarge it, or set FSDP_SHM_DIR%s",
            (unsigned long long)need->ranks, (unsigned long long)need->shared, gigabytes(need->shared),
            (unsigned long long)room->shared, gigabytes(room->shared), ctx->config.shm_dir, dealt);
    }
    return FSDP_OK;
}

fsdp_status fsdpi_node_memory_check(fsdp_model *model)
{
    fsdp_context *ctx      = model->ctx;
    node_need     need     = {.ranks = 1};
    node_room     room     = room_of_rank(ctx);
    int           position = 0;
    fsdp_status   status   = need_of_rank(model, &need);

    FSDP_TRY(add_up_node(model->plane.ctx, &need, &room, &position));
    if (status == FSDP_OK && position == 0) { /* one rank speaks for its node */
        status = compare(model, &need, &room);
    }
    return fsdpi_plane_agree(model, "fsdp_model_commit", "node memory", 0, status);
}
