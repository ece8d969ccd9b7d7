#include "shard/state/node_part.h"

#include <stdbool.h>

#include "lib/device/memory.h"

/* Whether the ranks that share a copy are as many as there are: then their nodes are known. */
static bool is_as_made(const fsdp_model *model, const fsdpi_plan *plan)
{
    return plan->group == model->shards->size;
}

static size_t count_nodes(const fsdp_model *model, const fsdpi_plan *plan)
{
    const fsdpi_nodes *nodes = &model->shards->nodes;

    return is_as_made(model, plan) ? (size_t)nodes->count
                                   : ((size_t)plan->group + (size_t)nodes->largest - 1) / (size_t)nodes->largest;
}

static size_t ranks_of_smallest(const fsdp_model *model, const fsdpi_plan *plan)
{
    const fsdpi_nodes *nodes = &model->shards->nodes;
    const int          rest  = plan->group % nodes->largest;

    return (size_t)(is_as_made(model, plan) ? nodes->smallest : rest > 0 ? rest : nodes->largest);
}

/* Ranks between which the plan's rank keeps views: the one that holds most is on the smallest node. */
static size_t ranks_of_node(const fsdp_model *model, const fsdpi_plan *plan)
{
    const fsdpi_nodes *nodes = &model->shards->nodes;

    return plan->rank < 0 || !is_as_made(model, plan)
               ? ranks_of_smallest(model, plan)
               : (size_t)fsdpi_node_size(nodes, fsdpi_node_of(nodes, plan->rank));
}

/* Of the mean rank: each node keeps the view once. */
static size_t mean_part(size_t view_bytes, size_t nodes, size_t ranks)
{
    return view_bytes / ranks * nodes + (view_bytes % ranks * nodes + ranks - 1) / ranks;
}

size_t fsdpi_node_part(const fsdp_model *model, const fsdpi_plan *plan, size_t view_bytes)
{
    const size_t nodes = count_nodes(model, plan), ranks = ranks_of_node(model, plan);

    if (model->options.keep_on_node == 0 || plan->strategy != model->options.strategy || nodes < 2) {
        return 0;
    }
    return fsdpi_alloc_size(plan->rank == FSDPI_MEAN_RANK ? mean_part(view_bytes, nodes, (size_t)plan->group)
                                                          : (view_bytes + ranks - 1) / ranks);
}
