#include "shard/storage/fixed_addresses.h"

#include <errno.h>
#include <string.h>

#include "lib/base/log.h"
#include "lib/context/buffers.h"
#include "shard/state/flat.h"
#include "shard/state/slots.h"

bool fsdpi_has_windows(const fsdp_model *model)
{
    return model->options.fixed_addresses && !fsdpi_is_on_device(model) && model->plan.n_views > 0;
}

/* ---- ranges ------------------------------------------------------------------------------------------------------ */

fsdp_status fsdpi_windows_reserve(fsdp_model *model)
{
    size_t bytes = 0;

    for (const fsdp_unit *unit = model->first; unit != NULL && fsdpi_has_windows(model); unit = unit->next) {
        fsdpi_unit_extent extent;

        FSDP_TRY(fsdpi_unit_measure(unit, &model->plan, &extent));
        bytes += fsdpi_slot_bytes(model, extent.view_bytes);
    }
    if (!fsdpi_window_reserve(bytes, &model->window)) {
        return fsdpi_fail_together(model->ctx, FSDP_ERR_MEMORY,
                                   "fsdp_model_commit: cannot reserve %zu bytes of addresses for fixed_addresses: "
                                   "%s; raise the limit on address space (ulimit -v), or make the model without",
                                   bytes, strerror(errno));
    }
    return FSDP_OK;
}

void fsdpi_windows_lay_out(fsdp_model *model)
{
    unsigned char *address = model->window.base;

    for (fsdp_unit *unit = model->first; unit != NULL && address != NULL; unit = unit->next) {
        unit->address = address;
        address += fsdpi_slot_bytes(model, unit->view_bytes);
    }
}

/* ---- passes ------------------------------------------------------------------------------------------------------ */

fsdp_status fsdpi_address_show(fsdp_unit *unit)
{
    fsdp_model        *model = unit->model;
    const fsdpi_trace *trace = &model->ctx->trace;
    const double       begun = fsdpi_trace_now(trace);

    if (unit->address == NULL || unit->slot == NULL) {
        return FSDP_OK;
    }
    const fsdpi_buffer *views = fsdpi_buffer_beginning_at(&model->shards->buffers, model->views);
    if (!fsdpi_window_open(&views->segment, unit->slot->memory, unit->address,
                           fsdpi_slot_bytes(model, unit->view_bytes))) {
        return fsdpi_fail(
            model->ctx, FSDP_ERR_MEMORY,
            "unit '%s': its gathered view cannot be mapped to its fixed addresses: %s; raise vm.max_map_count "
            "or the limit on address space (ulimit -v), or make the model without fixed_addresses",
            unit->name, strerror(errno));
    }
    fsdpi_trace_span(trace, "map", unit->name, begun);
    return FSDP_OK;
}

void fsdpi_address_hide(fsdp_unit *unit)
{
    fsdp_model        *model = unit->model;
    const fsdpi_trace *trace = &model->ctx->trace;
    const double       begun = fsdpi_trace_now(trace);

    if (unit->address == NULL || unit->slot == NULL) {
        return;
    }
    if (!fsdpi_window_shut(unit->address, fsdpi_slot_bytes(model, unit->view_bytes))) {
        fsdpi_log(model->ctx, FSDP_LOG_WARN,
                  "unit '%s': its gathered view stays readable behind its pass, as it cannot be unmapped: %s",
                  unit->name, strerror(errno));
    }
    fsdpi_trace_span(trace, "unmap", unit->name, begun);
}

/* What does not lie in the unit's slot has one address anyway. */
unsigned char *fsdpi_address_of(const fsdp_unit *unit, const fsdpi_member *member)
{
    unsigned char *memory = member->view->memory;

    return unit->address != NULL && member->view == &member->in_slot ? unit->address + member->slot_offset : memory;
}
