#include "shard/schedule/replay.h"

#include <string.h>

#include "shard/schedule/failed_step.h"
#include "shard/schedule/gather.h"

static const char replay_name[] = "fsdp_model_replay";

/* ---- events ------------------------------------------------------------------------------------------------------ */

enum { IS_BACKWARD = 1, IS_END = 2, SYNCS = 4, GROUP_ONLY = 8, KEEPS = 16, FLAG_BITS = 5 };

static uint32_t event_of(const fsdp_unit *unit, bool end)
{
    const fsdp_model *model = unit->model;
    uint32_t          event = (uint32_t)unit->index << FLAG_BITS;

    event |= unit->pass == FSDPI_BACKWARD ? IS_BACKWARD : 0;
    if (end) {
        return event | IS_END;
    }
    event |= model->syncs ? SYNCS : 0;
    event |= model->group_only ? GROUP_ONLY : 0;
    return event | (model->keeps ? KEEPS : 0);
}

/* ---- recording --------------------------------------------------------------------------------------------------- */

static size_t room_for_events(const fsdp_model *model)
{
    return 2 * model->options.recorded_passes;
}

static void note(const fsdp_unit *unit, bool end)
{
    fsdpi_replay *record = &unit->model->replay;

    if (record->n_now < room_for_events(unit->model)) {
        record->now[record->n_now] = event_of(unit, end);
    }
    record->n_now++;
}

void fsdpi_replay_begin(const fsdp_unit *unit)
{
    note(unit, false);
}

void fsdpi_replay_end(const fsdp_unit *unit)
{
    note(unit, true);
}

void fsdpi_replay_step(fsdp_model *model)
{
    fsdpi_replay *record = &model->replay;

    if (record->n_now > 0) {
        *record = (fsdpi_replay){.last = record->now, .now = record->last, .n_last = record->n_now};
    }
}

void fsdpi_replay_forget(fsdp_model *model)
{
    model->replay.n_now = 0;
}

/* ---- repeating --------------------------------------------------------------------------------------------------- */

static fsdp_status check_record(const fsdp_model *model)
{
    const fsdpi_replay *record = &model->replay;

    if (model->options.recorded_passes == 0 || record->n_last == 0) {
        return fsdpi_fail(model->ctx, FSDP_ERR_STATE, "%s: %s", replay_name,
                          model->options.recorded_passes == 0
                              ? "the model was made without `recorded_passes`; set it"
                              : "no step has been recorded yet; begin and end the passes of this one yourself");
    }
    if (record->n_last > room_for_events(model)) {
        return fsdpi_fail(model->ctx, FSDP_ERR_STATE,
                          "%s: the last step had %zu passes, and `recorded_passes` is %zu; set it higher", replay_name,
                          record->n_last / 2, model->options.recorded_passes);
    }
    return FSDP_OK;
}

static fsdp_status check_replay(const fsdp_model *model)
{
    const fsdpi_replay *record = &model->replay;

    if (model->open > 0) {
        return fsdpi_fail(model->ctx, FSDP_ERR_STATE, "%s: a pass is open; end it first", replay_name);
    }
    FSDP_TRY(check_record(model));
    if (record->n_now > record->n_last || memcmp(record->now, record->last, record->n_now * sizeof *record->now) != 0) {
        return fsdpi_fail(
            model->ctx, FSDP_ERR_STATE,
            "%s: this rank's %zu passes since the last step are not the first ones of that step; begin and "
            "end the others yourself",
            replay_name, record->n_now / 2);
    }
    return FSDP_OK;
}

static fsdp_unit *unit_number(const fsdp_model *model, size_t index)
{
    fsdp_unit *unit = model->first;

    while (unit->index != index) {
        unit = unit->next;
    }
    return unit;
}

static fsdp_status repeat(fsdp_model *model, uint32_t event)
{
    fsdp_unit *unit = unit_number(model, event >> FLAG_BITS);

    if ((event & IS_END) != 0) {
        return (event & IS_BACKWARD) != 0 ? fsdp_unit_end_backward(unit) : fsdp_unit_end_forward(unit);
    }
    model->syncs      = (event & SYNCS) != 0;
    model->group_only = (event & GROUP_ONLY) != 0;
    model->keeps      = (event & KEEPS) != 0;
    return (event & IS_BACKWARD) != 0 ? fsdp_unit_begin_backward(unit) : fsdp_unit_begin_forward(unit);
}

fsdp_status fsdp_model_replay(fsdp_model *model)
{
    if (model == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "%s: the model is NULL; pass one from fsdp_model_create", replay_name);
    }
    if (!model->committed) {
        return fsdpi_fail(model->ctx, FSDP_ERR_STATE, "%s: the model is not committed; call fsdp_model_commit first",
                          replay_name);
    }
    FSDP_TRY(fsdpi_step_check(model, replay_name));
    const fsdp_status status = check_replay(model);
    if (status != FSDP_OK) { /* where the others begin a pass, they learn of it */
        return fsdpi_step_fail(model, fsdpi_gather(model->first, FSDPI_FORWARD, status));
    }
    while (model->replay.n_now < model->replay.n_last) {
        FSDP_TRY(repeat(model, model->replay.last[model->replay.n_now]));
    }
    return FSDP_OK;
}
