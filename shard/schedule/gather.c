/*
 * Gathered views. A view has a place: a region of its own under the strategies that keep views, else one of a few slots.
 * The place is the node's: each rank adds its part to it, once all ranks have called for it, which says that none of them
 * reads what was there before. So all that is done with places here follows from the calls alone, never from what has
 * arrived when: it is the same on all ranks. So is what nodes keep of views (shard/storage/kept.h), from the begin of a pass on
 * until the masters change.
 *
 * An event is the beginning of a pass of a unit, or a change of the masters. The last events are kept; of the places where they
 * went as they do now, the one that agrees for longest, and of several the latest, says what is expected next, and gathered
 * ahead. So a unit may come several times in a step, for a recomputation or because it is used twice, and what comes behind it
 * is still known. Where something else comes, the time is lost and nothing more: PyTorch's order of execution. Nothing is
 * gathered beyond a change that is expected: it would have to be gathered again.
 */
#include "shard/schedule/gather.h"

#include <string.h>

#include "lib/base/hash.h"
#include "shard/schedule/failed_step.h"
#include "shard/schedule/masters.h"
#include "shard/state/slices.h"
#include "shard/state/strategy.h"
#include "shard/storage/compute.h"
#include "shard/storage/kept.h"
#include "shard/storage/quantized.h"

/* Event number 2 i is the forward pass of unit i, and 2 i + 1 its backward pass; behind those of all units comes the change. */
static size_t change_event(const fsdp_model *model)
{
    return 2 * model->n_units;
}

static fsdp_unit *unit_of_event(const fsdp_model *model, size_t event)
{
    fsdp_unit *unit = model->first;

    for (size_t i = 0; i < event / 2; i++) {
        unit = unit->next;
    }
    return unit;
}

const char *fsdpi_begin_name(fsdpi_pass pass)
{
    return pass == FSDPI_FORWARD ? "fsdp_unit_begin_forward" : "fsdp_unit_begin_backward";
}

/* ---- places ------------------------------------------------------------------------------------------------------ */

static fsdp_status complete(fsdpi_view *view)
{
    if (view->gathering == NULL) {
        return FSDP_OK;
    }
    const fsdp_status gathered = fsdp_wait(view->gathering), unpacked = fsdp_wait(view->unpacking);
    const fsdp_status status = gathered != FSDP_OK ? gathered : unpacked;

    view->gathering = NULL;
    view->unpacking = NULL;
    if (gathered == FSDP_OK && view->packed != NULL) {
        fsdpi_dequantize(view);
    }
    view->packed   = NULL;
    view->gathered = status == FSDP_OK;
    return status;
}

/* The first error counts. */
static fsdp_status complete_all(fsdp_unit *unit)
{
    fsdp_status status = FSDP_OK;

    for (size_t m = 0; m < unit->n_members; m++) {
        fsdpi_view       *view = unit->members[m].view;
        const fsdp_status one  = complete(view);

        status = status != FSDP_OK ? status : one;
    }
    return status;
}

static void drop_view(fsdpi_view *view)
{
    view->packed = NULL; /* nobody reads it any more */
    (void)complete(view);
    view->gathered = false;
}

/* What lies in the unit's slot. */
static void drop(fsdp_unit *unit)
{
    for (size_t m = 0; m < unit->n_members; m++) {
        drop_view(&unit->members[m].in_slot);
    }
    if (unit->slot != NULL) {
        unit->slot->unit = NULL;
        unit->slot       = NULL;
    }
}

static void drop_all(fsdp_model *model)
{
    for (fsdp_unit *unit = model->first; unit != NULL; unit = unit->next) {
        drop(unit);
    }
    for (fsdpi_flat *flat = model->flats; flat != NULL; flat = flat->next) {
        if (fsdpi_keeps_views(flat->strategy)) {
            drop_view(&flat->view);
        }
        flat->is_kept = false;
    }
}

static bool is_gathered(const fsdp_unit *unit)
{
    for (size_t m = 0; m < unit->n_members; m++) {
        const fsdpi_view *view = unit->members[m].view;

        if (!view->gathered && view->gathering == NULL) {
            return false;
        }
    }
    return true;
}

static bool is_free(const fsdpi_slot *slot)
{
    return slot->unit == NULL;
}

static bool is_only_ahead(const fsdpi_slot *slot)
{
    return slot->unit->pass == FSDPI_CLOSED;
}

/* The smallest that the unit fits in, of those that `may` be taken; NULL. */
static fsdpi_slot *find_slot(const fsdp_unit *unit, bool (*may)(const fsdpi_slot *slot))
{
    const fsdp_model *model = unit->model;

    for (size_t i = model->plan.n_views; i-- > 0;) {
        fsdpi_slot *slot = &model->slots[i];

        if (slot->bytes >= unit->view_bytes && may(slot)) {
            return slot;
        }
    }
    return NULL;
}

/* A free slot; if there is none and it is wanted now, that of a unit which nobody has begun. */
static fsdpi_slot *take_slot(fsdp_unit *unit, bool now)
{
    fsdpi_slot *slot = find_slot(unit, is_free);

    if (slot == NULL && now) {
        slot = find_slot(unit, is_only_ahead);
        if (slot != NULL) {
            drop(slot->unit);
        }
    }
    if (slot != NULL) {
        slot->unit = unit;
    }
    return slot;
}

/* Whether the unit's views have a place to be gathered in, of which there is always one for what is wanted now. */
static bool find_place(fsdp_unit *unit, bool now)
{
    if (unit->view_bytes == 0) {
        return true;
    }
    if (unit->slot == NULL) {
        unit->slot = take_slot(unit, now);
    }
    for (size_t m = 0; m < unit->n_members && unit->slot != NULL; m++) {
        unit->members[m].in_slot.memory = unit->slot->memory + unit->members[m].slot_offset;
    }
    return unit->slot != NULL;
}

/* ---- gathering --------------------------------------------------------------------------------------------------- */

/* Sets `gathering` where it has to be gathered. */
static fsdp_status issue_member(const fsdp_unit *unit, fsdpi_member *member, fsdpi_pass pass)
{
    const fsdpi_purpose purpose = {.name = fsdpi_begin_name(pass), .label = unit->name, .reserved = true};
    fsdpi_flat         *flat    = member->flat;
    fsdpi_view         *view    = member->view;
    const void         *part    = flat->low != NULL ? (const void *)flat->low : flat->master;

    if (view->gathered || view->gathering != NULL) {
        return FSDP_OK;
    }
    if (flat->is_kept) {
        return fsdpi_gather_kept(flat, &purpose, view);
    }
    if (flat->quantized) {
        return fsdpi_gather_quantized(flat, &purpose, view);
    }
    if (flat->owners != NULL) {
        return fsdpi_iallgatherv(unit->model->shards, &purpose, part, view->memory, fsdpi_begin_of_rank, flat,
                                 flat->dtype, &view->gathering);
    }
    return fsdpi_iallgather(unit->model->shards, &purpose, part, view->memory, fsdpi_held_elements(flat), flat->dtype,
                            &view->gathering);
}

/* Does nothing if there is no place, which only happens ahead of time. */
static fsdp_status issue(fsdp_unit *unit, fsdpi_pass pass, bool now)
{
    if (is_gathered(unit) || !find_place(unit, now)) {
        return FSDP_OK;
    }
    for (size_t m = 0; m < unit->n_members; m++) {
        FSDP_TRY(issue_member(unit, &unit->members[m], pass));
    }
    return FSDP_OK;
}

/*
 * Behind the last event that is expected soon enough to be gathered ahead. What is gathered already does not count: so the last
 * units of the forward pass stay, which the backward pass begins with, as far as there are places. Where the program has asked for
 * units that stay, may_stay() decides that.
 */
static size_t end_of_expected(const fsdp_model *model)
{
    const size_t depth = (size_t)model->ctx->config.prefetch;
    const size_t more  = depth > 0 && model->options.kept_units == 0 ? model->plan.n_views : 0;
    size_t       end = model->expected, missing = 0;

    while (end < model->n_events && end < model->expected + depth + more && model->events[end] != change_event(model)) {
        missing += !is_gathered(unit_of_event(model, model->events[end]));
        if (missing > depth) {
            break;
        }
        end++;
    }
    return end;
}

static fsdp_status gather_ahead(fsdp_model *model)
{
    const size_t end = end_of_expected(model);

    for (size_t i = model->expected; i < end; i++) {
        const size_t event = model->events[i];
        fsdp_unit   *next  = unit_of_event(model, event);

        if (next->pass == FSDPI_CLOSED) {
            FSDP_TRY(issue(next, event % 2 == 0 ? FSDPI_FORWARD : FSDPI_BACKWARD, false));
        }
    }
    return FSDP_OK;
}

/* The first of the unit's flat parameters that is gathered; NULL. */
static const fsdpi_flat *first_divided(const fsdp_unit *unit)
{
    for (size_t m = 0; m < unit->n_members; m++) {
        if (!fsdpi_is_whole(unit->members[m].flat)) {
            return unit->members[m].flat;
        }
    }
    return NULL;
}

/* Blocking: this rank's bad call, of which the others learn. */
static fsdp_status refuse(fsdp_unit *unit, fsdpi_pass pass, fsdp_status status)
{
    fsdp_model         *model   = unit->model;
    const fsdpi_flat   *flat    = first_divided(unit);
    const fsdpi_purpose purpose = {.name = fsdpi_begin_name(pass), .label = unit->name, .status = status};

    fsdpi_error_hand_on(model->ctx, model->shards, status);
    return fsdpi_allgather(model->shards, &purpose, NULL, NULL, flat != NULL ? fsdpi_common_count(flat) : 0,
                           flat != NULL ? flat->dtype : FSDP_F32);
}

/*
 * Where nothing has to move, ranks only compare what they call if passes wait anyway: else it would wait for reductions that
 * are under way.
 */
static fsdp_status compare(const fsdp_unit *unit, fsdpi_pass pass, fsdp_status status)
{
    fsdp_context *shards = unit->model->shards;

    if (status == FSDP_OK && shards->config.prefetch > 0) {
        return FSDP_OK;
    }
    return fsdpi_agree_ahead(shards, fsdpi_begin_name(pass), unit->name, 0, status, status != FSDP_OK);
}

/* How many events up to number `i` are those up to the last one. */
static size_t agreement(const fsdp_model *model, size_t i)
{
    size_t n = 0;

    while (n <= i && model->events[i - n] == model->events[model->n_events - 1 - n]) {
        n++;
    }
    return n;
}

static size_t find_expected(const fsdp_model *model)
{
    size_t most = 0, expected = model->n_events;

    for (size_t i = model->n_events - 1; i > most; i--) { /* number i - 1 and those before it are i */
        const size_t n = agreement(model, i - 1);

        if (n > most) {
            most     = n;
            expected = i;
        }
    }
    return expected;
}

static void note_event(fsdp_model *model, size_t event)
{
    if (model->n_events == FSDPI_EVENTS_PER_UNIT * model->n_units) { /* the oldest are forgotten */
        model->n_events -= model->n_units;
        memmove(model->events, model->events + model->n_units, model->n_events * sizeof *model->events);
    }
    model->events[model->n_events++] = event;
    model->expected                  = find_expected(model);
}

static void note_pass(const fsdp_unit *unit, fsdpi_pass pass)
{
    fsdp_model  *model = unit->model;
    const size_t event = 2 * unit->index + (pass == FSDPI_BACKWARD);

    model->order = fsdpi_hash_word(model->order, event);
    if (unit->n_members == 0 || first_divided(unit) != NULL) {
        note_event(model, event);
    }
}

/* Once, where nothing comes between several changes: they must not take the place of passes. */
static void note_change(fsdp_model *model)
{
    if (model->n_events > 0 && model->events[model->n_events - 1] != change_event(model)) {
        note_event(model, change_event(model));
    }
}

/* From here on the ranks of the node gather it without the others: with a pass that all ranks begin, however it ends. */
static void keep_on_node(fsdp_unit *unit)
{
    for (size_t m = 0; m < unit->n_members; m++) {
        fsdpi_flat *flat = unit->members[m].flat;

        if (flat->kept != NULL && !flat->is_kept) {
            fsdpi_keep_part(flat, unit->members[m].view);
            flat->is_kept = true;
        }
    }
}

static fsdp_status fetch(fsdp_unit *unit, fsdpi_pass pass)
{
    note_pass(unit, pass);
    if (is_gathered(unit)) {
        FSDP_TRY(compare(unit, pass, FSDP_OK));
    } else {
        FSDP_TRY(issue(unit, pass, true));
    }
    FSDP_TRY(gather_ahead(unit->model));
    FSDP_TRY(complete_all(unit));
    keep_on_node(unit);
    return FSDP_OK;
}

fsdp_status fsdpi_gather(fsdp_unit *unit, fsdpi_pass pass, fsdp_status status)
{
    fsdp_model *model = unit->model;

    if (!model->divides) { /* passes compute on what is held */
        return compare(unit, pass, status);
    }
    if (status != FSDP_OK) {
        status = refuse(unit, pass, status);
    } else {
        status = fetch(unit, pass);
    }
    fsdpi_error_hand_on(model->shards, model->ctx, status);
    return status;
}

/* `end`: end_of_expected(), which looks at the units. */
static bool is_expected(const fsdp_unit *unit, size_t end)
{
    const fsdp_model *model = unit->model;

    for (size_t i = model->expected; i < end; i++) {
        if (model->events[i] / 2 == unit->index) {
            return true;
        }
    }
    return false;
}

/* Whether there is room to leave the unit gathered beside what is open and expected. */
static bool may_stay(const fsdp_unit *unit, size_t end)
{
    const fsdp_model *model = unit->model;
    size_t            kept  = 0;

    for (size_t i = 0; i < model->plan.n_views && model->keeps; i++) {
        const fsdp_unit *other = model->slots[i].unit;

        kept += other != NULL && other != unit && other->pass == FSDPI_CLOSED && !is_expected(other, end);
    }
    return model->keeps && kept < (size_t)model->options.kept_units;
}

void fsdpi_gather_release(fsdp_unit *unit)
{
    if (unit->slot != NULL) {
        const size_t end = end_of_expected(unit->model);

        if (!is_expected(unit, end) && !may_stay(unit, end)) {
            drop(unit);
        }
    }
}

void fsdpi_gather_reshard(fsdp_unit *unit)
{
    if (unit->slot != NULL && unit->pass == FSDPI_CLOSED) {
        drop(unit);
    }
}

/* ---- after a step ------------------------------------------------------------------------------------------------ */

fsdp_status fsdpi_gather_settle(fsdp_model *model)
{
    fsdp_status status = FSDP_OK;

    for (fsdp_unit *unit = model->first; unit != NULL; unit = unit->next) {
        const fsdp_status one = complete_all(unit);

        status = status != FSDP_OK ? status : one;
    }
    return status;
}

void fsdpi_gather_forget(fsdp_model *model)
{
    model->n_events = 0;
    model->expected = 0;
    drop_all(model);
}

void fsdpi_gather_drop(fsdp_model *model)
{
    note_change(model);
    drop_all(model);
}

static void refresh_low(fsdpi_flat *flat)
{
    if (flat->quantized) {
        fsdpi_quantize(flat);
    } else if (flat->low != NULL) {
        fsdpi_compute_cast(flat->model, flat->low, flat->dtype, flat->master, flat->model->master_dtype,
                           fsdpi_held_elements(flat));
    }
}

fsdp_status fsdpi_gather_refresh(fsdp_model *model, bool lows)
{
    if (lows && fsdpi_is_offloaded(model)) {
        fsdpi_compute_finish(model); /* the last step may still be copying masters out */
    }
    for (fsdpi_flat *flat = model->flats; flat != NULL && lows; flat = flat->next) {
        refresh_low(flat);
    }
    for (fsdpi_flat *flat = model->flats; flat != NULL; flat = flat->next) {
        if (flat->quantized && fsdpi_is_whole(flat)) { /* passes see what those of other ranks would */
            fsdpi_read_back(flat);
        }
    }
    for (fsdp_unit *unit = model->first; unit != NULL; unit = unit->next) {
        for (size_t m = 0; m < unit->n_members; m++) {
            if (unit->members[m].flat->strategy == FSDP_SHARD_OPTIM) {
                FSDP_TRY(issue_member(unit, &unit->members[m], FSDPI_FORWARD));
            }
        }
    }
    fsdpi_masters_note(model);
    return fsdpi_step_fail(model, fsdpi_compute_status(model));
}
