#include "shard/state/groups.h"

#include "lib/context/part.h"
#include "shard/state/strategy.h"

static bool nodes_are_equal(const fsdp_context *ctx)
{
    for (int m = 0; m < ctx->nodes.count; m++) {
        if (fsdpi_node_size(&ctx->nodes, m) != ctx->nodes.largest) {
            return false;
        }
    }
    return true;
}

/* Whether each node has that many ranks, and these follow each other. */
static bool nodes_are_blocks(const fsdp_context *ctx, int size)
{
    const fsdpi_nodes *nodes = &ctx->nodes;

    for (int m = 0; m < nodes->count; m++) {
        if (fsdpi_node_size(nodes, m) != size || fsdpi_rank_at(nodes, m, 0) != m * size ||
            fsdpi_rank_at(nodes, m, size - 1) != (m + 1) * size - 1) {
            return false;
        }
    }
    return true;
}

/* Groups by their size alone become nodes where they are as large. Those along axes of a mesh are what they are. */
static bool groups_are_nodes(const fsdp_model *model)
{
    const fsdp_context *ctx  = model->ctx;
    const int           size = model->options.group_size;

    if (!fsdpi_is_hybrid(model->options.strategy)) {
        return false;
    }
    return model->options.axis_strategies != NULL ? nodes_are_blocks(ctx, size)
                                                  : size == 0 || (size == ctx->nodes.largest && nodes_are_equal(ctx));
}

fsdp_status fsdpi_groups_check(fsdp_context *ctx, const fsdp_model_options *options)
{
    const bool divides = options->group_size == 0 || (options->group_size > 0 && ctx->size % options->group_size == 0);

    if (options->group_size < 0 || (fsdpi_is_hybrid(options->strategy) && !divides)) {
        return fsdpi_fail_together(
            ctx, FSDP_ERR_ARG,
            "fsdp_model_create: group_size is %d, which does not divide the %d ranks; use a divisor, or 0 "
            "for the nodes",
            options->group_size, ctx->size);
    }
    if (fsdpi_is_hybrid(options->strategy) && options->group_size == 0 && !nodes_are_equal(ctx)) {
        return fsdpi_fail_together(
            ctx, FSDP_ERR_ARG,
            "fsdp_model_create: %s with group_size 0 needs nodes of equal size, and these have up to %d "
            "ranks; set a group_size",
            fsdp_strategy_name(options->strategy), ctx->nodes.largest);
    }
    return FSDP_OK;
}

static fsdp_status open_part(fsdp_model *model, int size, int color, int key, const fsdp_config *config,
                             fsdpi_trace_row row, fsdp_context **part)
{
    FSDP_TRY(fsdpi_part_open(model->ctx, size == model->ctx->size, color, key, config, part));
    fsdpi_trace_share(&model->ctx->trace, &(*part)->trace, row);
    return FSDP_OK;
}

fsdpi_held fsdpi_slices_of_rank(const fsdp_model *model, int rank)
{
    const fsdp_context *ctx = model->ctx;
    const int           n   = ctx->size / model->shards->size;
    const int position = model->groups_are_nodes ? fsdpi_position_of(&ctx->nodes, rank) : rank % model->shards->size;

    return (fsdpi_held){.first = position * n, .n = n};
}

int fsdpi_holder_of_slice(const fsdp_model *model, int slice)
{
    const fsdp_context *ctx      = model->ctx;
    const int           position = slice / (ctx->size / model->shards->size);

    return model->replicas != NULL && model->groups_are_nodes ? fsdpi_rank_at(&ctx->nodes, 0, position) : position;
}

/*
 * One group of all ranks has no replicas, and is then no different from the strategy without groups.
 * Groups that are nodes reduce over the nodes in the same order as FULL_SHARD does, one partial sum after the other: so the
 * replicas must not be taken for nodes of several ranks where FSDP_NODE_SIZE pretends so.
 */
fsdp_status fsdpi_groups_open(fsdp_model *model)
{
    fsdp_context *ctx    = model->ctx;
    fsdp_config   config = ctx->config;
    const int     size   = model->options.group_size > 0 ? model->options.group_size : ctx->nodes.largest;
    int           group = ctx->rank / size, position = ctx->rank % size;

    config.trace            = ""; /* theirs go into the file of `ctx` */
    model->shards           = ctx;
    model->groups_are_nodes = groups_are_nodes(model);
    if (!fsdpi_is_hybrid(model->options.strategy)) {
        return FSDP_OK;
    }
    if (model->groups_are_nodes) {
        group    = ctx->nodes.mine;
        position = ctx->nodes.position;
    }
    fsdp_context *shards = NULL, *replicas = NULL;
    fsdp_status   status = open_part(model, size, group, position, &config, FSDPI_ROW_SHARDS, &shards);
    if (model->groups_are_nodes) {
        config.node_size = 1;
    }
    if (size < ctx->size) {
        const fsdp_status other =
            open_part(model, ctx->size / size, position, group, &config, FSDPI_ROW_REPLICAS, &replicas);
        status = status != FSDP_OK ? status : other;
    }
    model->shards   = shards != NULL ? shards : ctx;
    model->replicas = replicas;
    return fsdpi_agree(ctx, "fsdp_model_create", "groups", 0, status, true);
}

void fsdpi_groups_close(fsdp_model *model)
{
    fsdpi_part_close(model->ctx, model->shards);
    fsdpi_part_close(model->ctx, model->replicas);
    model->shards   = model->ctx;
    model->replicas = NULL;
}
