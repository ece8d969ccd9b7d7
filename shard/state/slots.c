#include "shard/state/slots.h"

#include "shard/state/flat.h"

size_t fsdpi_slot_bytes(const fsdp_model *model, size_t view_bytes)
{
    return model->options.fixed_addresses && !fsdpi_is_on_device(model) ? fsdpi_window_bytes(view_bytes) : view_bytes;
}

static size_t size_of(const fsdpi_slot_sizes *sizes, const fsdp_unit *unit)
{
    fsdpi_unit_extent extent;

    if (fsdpi_unit_measure(unit, sizes->plan, &extent) != FSDP_OK) {
        return 0; /* which the plan has found already */
    }
    switch (sizes->use) {
    case FSDPI_SLOTS_OF_VIEWS:
        return fsdpi_slot_bytes(sizes->model, extent.view_bytes);
    case FSDPI_SLOTS_OF_GRADIENTS:
        return extent.gradients;
    case FSDPI_SLOTS_OF_WHOLE_GRADIENTS:
        return extent.whole_gradients;
    }
    return 0;
}

/* The largest size below the current one, and how many units have it. */
static void find_next_size(fsdpi_slot_sizes *sizes)
{
    size_t next = 0;

    for (const fsdp_unit *unit = sizes->model->first; unit != NULL; unit = unit->next) {
        const size_t size = size_of(sizes, unit);

        if (size > next && (sizes->i == 0 || size < sizes->size)) {
            next        = size;
            sizes->left = 0;
        }
        sizes->left += size > 0 && size == next;
    }
    sizes->size    = next;
    sizes->largest = sizes->i == 0 ? next : sizes->largest;
}

fsdpi_slot_sizes fsdpi_slot_sizes_begin(const fsdp_model *model, const fsdpi_plan *plan, fsdpi_slot_use use)
{
    const size_t open     = (size_t)model->ctx->config.views_in_flight;
    const size_t prefetch = (size_t)model->ctx->config.prefetch;
    const size_t kept     = (size_t)model->options.kept_units;
    const size_t more     = use == FSDPI_SLOTS_OF_VIEWS ? prefetch + kept : prefetch > 0;

    return (fsdpi_slot_sizes){.model = model, .plan = plan, .use = use, .open = open, .all = open + more};
}

bool fsdpi_slot_sizes_next(fsdpi_slot_sizes *sizes, size_t *size)
{
    if (sizes->i == sizes->all) {
        return false;
    }
    if (sizes->left == 0) {
        find_next_size(sizes);
    }
    if (sizes->size == 0) {
        return false;
    }
    *size = sizes->i++ < sizes->open ? sizes->largest : sizes->size;
    sizes->left--;
    return true;
}
