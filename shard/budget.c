#include "lib/memory.h"
#include "shard/model.h"

static fsdp_status check_budget(const fsdp_model *model, fsdp_strategy strategy, int size,
                                fsdp_optimizer_kind optimizer, const fsdp_budget *budget)
{
    if (budget == NULL) {
        return fsdpi_fail(model->ctx, FSDP_ERR_ARG, "fsdp_model_budget: the place for the budget is NULL");
    }
    if ((int)strategy < 0 || (int)strategy >= FSDP_N_STRATEGIES || (int)optimizer < 0 || optimizer > FSDP_ADAMW) {
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

static void add_unit(const fsdp_unit *unit, const fsdp_layout *layout, fsdp_strategy strategy,
                     fsdp_optimizer_kind optimizer, fsdp_budget *budget)
{
    const size_t held = fsdpi_alloc_size(fsdpi_held_elements(layout, strategy) * sizeof(float));

    budget->parameters += unit->elements;
    budget->bytes[FSDP_MEMORY_PARAMETERS] += held;
    budget->bytes[FSDP_MEMORY_GRADIENTS] += held;
    budget->bytes[FSDP_MEMORY_OPTIMIZER] += held * fsdpi_optimizer_states(optimizer);
    budget->bytes[FSDP_MEMORY_BOOKKEEPING] += fsdpi_alloc_size(unit->bytes);
}

static void add_views(const fsdp_model *model, size_t largest, fsdp_strategy strategy, fsdp_budget *budget)
{
    const size_t n    = fsdpi_views_needed(model);
    const size_t view = fsdpi_alloc_size(n * largest * sizeof(float));
    const size_t list = fsdpi_alloc_size(n * sizeof(bool));

    budget->bytes[FSDP_MEMORY_GRADIENT_VIEWS] = view;
    budget->bytes[FSDP_MEMORY_GATHERED]       = strategy == FSDP_NO_SHARD ? 0 : view;
    budget->bytes[FSDP_MEMORY_BOOKKEEPING] += strategy == FSDP_NO_SHARD ? list : 2 * list;
}

static void add_context(const fsdp_model *model, int size, fsdp_budget *budget)
{
    budget->bytes[FSDP_MEMORY_STAGING] = fsdpi_alloc_size((size_t)model->ctx->config.staging_bytes);
    budget->bytes[FSDP_MEMORY_BOOKKEEPING] +=
        fsdpi_context_bookkeeping(size) + fsdpi_alloc_size(sizeof(fsdp_model)) + fsdpi_optimizer_bookkeeping(model);
}

fsdp_status fsdp_model_budget(const fsdp_model *model, fsdp_strategy strategy, int size, fsdp_optimizer_kind optimizer,
                              fsdp_budget *budget)
{
    fsdp_budget sum     = {0};
    size_t      largest = 0;

    if (model == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "fsdp_model_budget: the model is NULL; pass one from fsdp_model_create");
    }
    FSDP_TRY(check_budget(model, strategy, size, optimizer, budget));
    const int ranks = size > 0 ? size : model->ctx->size;
    for (const fsdp_unit *unit = model->first; unit != NULL; unit = unit->next) {
        fsdp_layout layout;

        if (fsdp_layout_init(unit->elements, ranks, &layout) != FSDP_OK) {
            return fsdpi_record(model->ctx, FSDP_ERR_ARG, "unit '%s': %s", unit->name, fsdp_last_error(NULL));
        }
        add_unit(unit, &layout, strategy, optimizer, &sum);
        largest = layout.padded > largest ? layout.padded : largest;
    }
    add_views(model, largest, strategy, &sum);
    add_context(model, ranks, &sum);
    for (int kind = 0; kind < FSDP_N_MEMORY_KINDS; kind++) {
        sum.total += sum.bytes[kind];
    }
    sum.unsharded = sum.parameters * sizeof(float) * (2 + fsdpi_optimizer_states(optimizer));
    *budget       = sum;
    return FSDP_OK;
}
