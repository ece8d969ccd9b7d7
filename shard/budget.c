#include "lib/memory.h"
#include "shard/model.h"

static fsdp_status check_budget(const fsdp_model *model, fsdp_strategy strategy, int size,
                                fsdp_optimizer_kind optimizer, const fsdp_budget *budget)
{
    if (budget == NULL) {
        return fsdpi_fail(model->ctx, FSDP_ERR_ARG, "fsdp_model_budget: the place for the budget is NULL");
    }
    if ((int)strategy < 0 || (int)strategy >= FSDP_N_STRATEGIES || !fsdpi_is_optimizer_kind(optimizer)) {
        return fsdpi_fail(model->ctx, FSDP_ERR_ARG,
                          "fsdp_model_budget: strategy %d with optimizer %d; use one of "
                          "fsdp_strategy and one of fsdp_optimizer_kind",
                          (int)strategy, (int)optimizer);
    }
    if (size < 0) {
        return fsdpi_fail(model->ctx, FSDP_ERR_ARG,
                          "fsdp_model_budget: %d ranks; pass at least 1, or 0 for the context's", size);
    }
    return FSDP_OK;
}

/* What contexts hold: that of all ranks, and those of the group and of the replicas where there are several. */
static void add_contexts(const fsdp_model *model, const fsdpi_plan *plan, fsdp_budget *budget)
{
    const size_t staging = fsdpi_alloc_size((size_t)model->ctx->config.staging_bytes);
    const bool   groups  = fsdpi_is_hybrid(plan->strategy);

    const bool replicas = groups && plan->group < plan->size;

    budget->bytes[FSDP_MEMORY_STAGING] = staging + groups * staging + replicas * staging;
    budget->bytes[FSDP_MEMORY_BOOKKEEPING] += fsdpi_context_bookkeeping(plan->size) +
                                              fsdpi_alloc_size(fsdpi_model_bytes(plan->size)) +
                                              fsdpi_optimizer_bookkeeping(plan);
    if (groups) {
        budget->bytes[FSDP_MEMORY_BOOKKEEPING] += fsdpi_context_bookkeeping(plan->group);
    }
    if (replicas) {
        budget->bytes[FSDP_MEMORY_BOOKKEEPING] += fsdpi_context_bookkeeping(plan->size / plan->group);
    }
}

fsdp_status fsdp_model_budget(const fsdp_model *model, fsdp_strategy strategy, int size, fsdp_optimizer_kind optimizer,
                              fsdp_budget *budget)
{
    fsdp_budget sum = {0};
    fsdpi_plan  plan;

    if (model == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "fsdp_model_budget: the model is NULL; pass one from fsdp_model_create");
    }
    FSDP_TRY(check_budget(model, strategy, size, optimizer, budget));
    FSDP_TRY(fsdpi_plan_make(model, strategy, size > 0 ? size : model->ctx->size, &plan));
    const size_t moments = fsdpi_moment_bytes(model->options.moment_dtype) * fsdpi_optimizer_states(optimizer);
    sum.parameters       = plan.parameters;
    sum.bytes[FSDP_MEMORY_PARAMETERS]     = plan.held * sizeof(float) + plan.low_bytes + plan.ignored_bytes;
    sum.bytes[FSDP_MEMORY_GRADIENTS]      = (plan.held_trainable + plan.local) * sizeof(float);
    sum.bytes[FSDP_MEMORY_OPTIMIZER]      = plan.held_trainable * moments;
    sum.bytes[FSDP_MEMORY_GATHERED]       = plan.views_bytes;
    sum.bytes[FSDP_MEMORY_GRADIENT_VIEWS] = plan.buckets * fsdp_dtype_size(model->options.reduce_dtype);
    sum.bytes[FSDP_MEMORY_BOOKKEEPING]    = plan.bookkeeping_bytes;
    add_contexts(model, &plan, &sum);
    for (int kind = 0; kind < FSDP_N_MEMORY_KINDS; kind++) {
        sum.total += sum.bytes[kind];
    }
    sum.shared    = plan.views_bytes;
    sum.unsharded = plan.parameters * sizeof(float) + plan.trainable * (sizeof(float) + moments) + plan.ignored_bytes;
    *budget       = sum;
    return FSDP_OK;
}
