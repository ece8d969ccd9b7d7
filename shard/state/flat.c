/*
 * How the tensors of a unit become flat parameters. Tensors follow each other in the order in which they were given, each at
 * 64 bytes of the narrowest type of a view, so a unit whose tensors are all alike is one flat parameter.
 */
#include "shard/state/flat.h"

#include <stdint.h>
#include <string.h>

#include "lib/device/memory.h"
#include "shard/state/int8_blocks.h"
#include "shard/state/layout.h"
#include "shard/state/node_part.h"
#include "shard/state/optimizer_kind.h"
#include "shard/state/slices.h"
#include "shard/state/strategy.h"
#include "shard/state/tensor.h"
#include "shard/state/tensor_groups.h"
#include "shard/state/unit.h"

/* ---- which tensors go together ----------------------------------------------------------------------------------- */

static bool is_frozen(const fsdpi_tensor *tensor)
{
    return (tensor->flags & FSDP_TENSOR_FROZEN) != 0;
}

static bool is_quantized(const fsdpi_tensor *tensor)
{
    return tensor->unit->model->options.quantized_params && tensor->dtype == FSDP_F32 &&
           (tensor->flags & FSDP_TENSOR_KEEP_DTYPE) == 0;
}

static bool is_quantized_under(const fsdpi_tensor *first, const fsdpi_plan *plan)
{
    return plan->strategy == FSDP_FULL_SHARD && is_quantized(first);
}

/* Whose optimizer updates it; NULL: that of no group, or none. */
static fsdpi_tensor_group *group_of(const fsdpi_tensor *tensor)
{
    return is_frozen(tensor) ? NULL : tensor->group;
}

bool fsdpi_go_together(const fsdpi_tensor *a, const fsdpi_tensor *b)
{
    const fsdp_model *model = a->unit->model;

    return a == b || (fsdpi_is_divided(a) && fsdpi_is_divided(b) && !a->shared && !b->shared &&
                      fsdpi_gathered_dtype(model, a) == fsdpi_gathered_dtype(model, b) &&
                      is_quantized(a) == is_quantized(b) && is_frozen(a) == is_frozen(b) && group_of(a) == group_of(b));
}

/* The owner of the unit's tensor `i` where that is the first of a flat parameter the unit uses; else NULL. */
static const fsdpi_tensor *first_of_flat(const fsdp_unit *unit, size_t i)
{
    const fsdpi_tensor *owner = unit->tensors[i].owner;

    if (!fsdpi_is_divided(owner) || (owner != &unit->tensors[i] && owner->unit == unit)) {
        return NULL;
    }
    for (size_t j = 0; j < i; j++) {
        const fsdpi_tensor *before = unit->tensors[j].owner;

        if (before == owner || (before->unit == unit && owner->unit == unit && fsdpi_go_together(before, owner))) {
            return NULL;
        }
    }
    return owner;
}

static size_t gathered_width(const fsdpi_tensor *first)
{
    return fsdp_dtype_size(fsdpi_gathered_dtype(first->unit->model, first));
}

/* Below a threshold every rank holds it whole. */
static bool is_small(const fsdpi_tensor *first)
{
    const fsdp_unit *unit     = first->unit;
    const size_t     least    = (size_t)unit->model->ctx->config.small_bytes;
    size_t           elements = 0;

    for (size_t i = 0; i < unit->n_tensors; i++) {
        elements += fsdpi_go_together(first, &unit->tensors[i]) ? unit->tensors[i].count : 0;
    }
    return least > 0 && elements <= (least - 1) / gathered_width(first);
}

/* Of the flat parameter of that tensor and others, under the strategy that the plan is for. */
static fsdp_strategy strategy_of(const fsdpi_tensor *first, const fsdpi_plan *plan)
{
    return is_small(first) ? FSDP_NO_SHARD : fsdpi_unit_strategy(first->unit, plan->strategy);
}

fsdp_strategy fsdpi_tensor_strategy(const fsdpi_tensor *tensor, const fsdpi_plan *plan)
{
    return strategy_of(tensor, plan); /* that of any other one in it */
}

/* How many slices it has: one where it is small, so that it is not padded for many ranks. Whole tensors are not anyway. */
static int slices_of(const fsdpi_tensor *first, const fsdpi_plan *plan)
{
    return is_small(first) && !fsdpi_is_dealt(first) ? 1 : plan->size;
}

/* ---- counting ---------------------------------------------------------------------------------------------------- */

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/*
 * ELEMENTS at a multiple of which tensors begin: the same in every view, so that nothing is moved between them. Where slices may
 * end between any blocks of elements, those that share a scale must not be divided: values would depend on the number of slices.
 */
static size_t alignment_of(const fsdpi_tensor *first, bool quantized)
{
    if (quantized && fsdpi_granularity(first->unit->model, group_of(first)) != FSDP_GRANULARITY_FLAT) {
        return FSDPI_INT8_BLOCK;
    }
    const size_t gathered = quantized ? sizeof(int8_t) : gathered_width(first);
    const size_t reduced  = fsdp_dtype_size(first->unit->model->options.reduce_dtype);

    return FSDP_TENSOR_ALIGNMENT / (is_frozen(first) ? gathered : smaller(gathered, reduced));
}

/* What a flat parameter will be, on so many ranks. */
typedef struct extent {
    fsdp_layout   layout;
    size_t        n_tensors;
    bool          quantized;
    fsdp_strategy strategy;
} extent;

size_t fsdpi_padded_tensor(const fsdpi_tensor *tensor)
{
    const size_t multiple = alignment_of(tensor, false);

    return (tensor->count + multiple - 1) / multiple * multiple;
}

static fsdp_status add_tensors(const fsdpi_tensor *first, extent *e)
{
    const fsdp_unit *unit = first->unit;

    for (size_t i = 0; i < unit->n_tensors; i++) {
        if (fsdpi_go_together(first, &unit->tensors[i])) {
            (void)fsdpi_layout_add(&e->layout, unit->tensors[i].count);
            e->n_tensors++;
        }
    }
    return fsdpi_layout_end(&e->layout);
}

static fsdp_status measure(const fsdpi_tensor *first, const fsdpi_plan *plan, extent *e)
{
    *e = (extent){.quantized = is_quantized_under(first, plan), .strategy = strategy_of(first, plan)};
    const fsdp_status status = fsdpi_layout_begin(slices_of(first, plan), alignment_of(first, e->quantized),
                                                  fsdpi_granularity(first->unit->model, group_of(first)), &e->layout);

    if (status != FSDP_OK || add_tensors(first, e) != FSDP_OK) {
        return fsdpi_record(first->unit->model->ctx, FSDP_ERR_ARG, "unit '%s': %s", first->unit->name,
                            fsdp_last_error(NULL));
    }
    return FSDP_OK;
}

/* BYTES of the name of a flat parameter; 0 where it has its unit's. */
static size_t name_bytes(const fsdpi_tensor *first, bool is_first)
{
    return is_first ? 0 : strlen(first->unit->name) + 1 + strlen(first->name) + 1;
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

size_t fsdpi_packed_slice_bytes(const fsdp_layout *layout)
{
    return fsdpi_alloc_size(fsdpi_int8_packed_bytes(layout->shard));
}

/* BYTES that all slices take as they are gathered, where that is not straight into the view: see shard/storage/quantized.c. */
static size_t packed_bytes(const fsdp_layout *layout, bool quantized)
{
    return quantized ? (size_t)layout->size * fsdpi_packed_slice_bytes(layout) : 0;
}

/* BYTES of a view, with what it is unpacked from. */
static size_t view_bytes(const fsdp_layout *layout, size_t width, bool quantized)
{
    return layout->padded * width + packed_bytes(layout, quantized);
}

size_t fsdpi_low_bytes(const fsdp_model *model, size_t held, size_t width, bool quantized, bool whole)
{
    const size_t view = held * width;

    if (quantized) {
        return fsdpi_alloc_size(fsdpi_int8_packed_bytes(held)) + (whole ? view : 0);
    }
    return fsdpi_has_low(model, width) ? view : 0;
}

static void plan_optimizer(const fsdpi_tensor *first, const fsdp_layout *layout, size_t held, fsdpi_plan *plan)
{
    const fsdpi_tensor_group *group = group_of(first);

    if (is_frozen(first)) {
        return;
    }
    if (group == NULL) {
        plan->plain += held;
        plan->plain_moment += fsdpi_moment_bytes(first->unit->model->options.moment_dtype, held);
        plan->plain_elements += layout->elements;
    } else {
        plan->state_bytes += fsdpi_states_held(&group->own, held);
        plan->whole_state_bytes += fsdpi_states_bytes(&group->own, layout->elements);
    }
}

static void plan_own(const fsdpi_tensor *first, const extent *e, fsdpi_plan *plan)
{
    const fsdp_layout *layout    = &e->layout;
    const size_t       width     = gathered_width(first);
    const bool         whole     = e->strategy == FSDP_NO_SHARD;
    const bool         dealt     = !whole && fsdpi_is_dealt(first); /* then ranks differ: see shard/state/dealt.c */
    const size_t       share     = whole ? 1 : dealt ? SIZE_MAX : (size_t)plan->group;
    const size_t       trainable = is_frozen(first) ? 0 : layout->padded;
    const size_t       held      = layout->padded / share;

    plan->parameters += layout->elements;
    plan->trainable += is_frozen(first) ? 0 : layout->elements;
    plan_optimizer(first, layout, held, plan);
    plan->padded += layout->padded;
    plan->padded_trainable += trainable;
    plan->whole_trainable += whole ? trainable : 0;
    plan->held += held;
    plan->held_trainable += trainable / share;
    plan->low_bytes += dealt ? 0 : fsdpi_low_bytes(first->unit->model, held, width, e->quantized, whole);
    plan->longest = larger(plan->longest, trainable / share);
    plan->kept += fsdpi_keeps_views(e->strategy) ? layout->padded * width : 0;
    plan->n_kept += fsdpi_keeps_views(e->strategy);
    if (fsdpi_takes_slot(e->strategy)) {
        plan->kept_on_node += fsdpi_node_part(first->unit->model, plan, layout->padded * width);
    }
    plan->n_tensors += e->n_tensors;
    plan->n_flats++;
}

static void plan_ignored(const fsdp_unit *unit, fsdpi_plan *plan)
{
    for (size_t i = 0; i < unit->n_tensors; i++) {
        const fsdpi_tensor *tensor = &unit->tensors[i];

        if (tensor->owner == tensor && !fsdpi_is_divided(tensor)) {
            plan->ignored_bytes +=
                fsdpi_alloc_size(tensor->count * fsdp_dtype_size(fsdpi_gathered_dtype(unit->model, tensor)));
        }
    }
}

fsdp_status fsdpi_plan_unit(const fsdp_unit *unit, fsdpi_plan *plan)
{
    size_t n_own = 0;

    for (size_t i = 0; i < unit->n_tensors; i++) {
        const fsdpi_tensor *first = first_of_flat(unit, i);
        extent              e;

        if (first == NULL) {
            continue;
        }
        FSDP_TRY(measure(first, plan, &e));
        if (first->unit == unit) {
            plan->name_bytes += name_bytes(first, n_own++ == 0);
            plan_own(first, &e, plan);
        }
        plan->n_members++;
    }
    plan_ignored(unit, plan);
    return FSDP_OK;
}

fsdp_status fsdpi_unit_measure(const fsdp_unit *unit, const fsdpi_plan *plan, fsdpi_unit_extent *sum)
{
    *sum = (fsdpi_unit_extent){0};
    for (size_t i = 0; i < unit->n_tensors; i++) {
        const fsdpi_tensor *first = first_of_flat(unit, i);
        extent              e;

        if (first == NULL) {
            continue;
        }
        FSDP_TRY(measure(first, plan, &e));
        if (fsdpi_takes_slot(e.strategy)) {
            sum->view_bytes += view_bytes(&e.layout, gathered_width(first), e.quantized);
            sum->gathers += e.quantized && !fsdpi_is_on_device(unit->model) ? 2 : 1; /* and it is unpacked */
        }
        if (is_frozen(first)) {
            continue;
        }
        *(e.strategy == FSDP_NO_SHARD ? &sum->whole_gradients : &sum->gradients) += e.layout.padded;
        sum->reductions += e.strategy != FSDP_NO_SHARD;
    }
    return FSDP_OK;
}

/* That hooks may see: the first and the last tensor of a slice can fall into three each. */
static size_t parts_of(size_t n_flats, size_t n_tensors)
{
    return n_tensors + 4 * n_flats;
}

size_t fsdpi_flats_bytes(const fsdpi_plan *plan)
{
    return plan->n_flats * sizeof(fsdpi_flat) + plan->n_members * sizeof(fsdpi_member) +
           parts_of(plan->n_flats, plan->n_tensors) * sizeof(fsdp_gradient_tensor) +
           plan->n_tensors * (sizeof(fsdp_interval) + sizeof(fsdpi_tensor *) + sizeof(size_t) + sizeof(int)) +
           plan->name_bytes;
}

/* ---- building ---------------------------------------------------------------------------------------------------- */

/* What is left of each array in the memory of all flat parameters. */
typedef struct room {
    fsdpi_flat           *flats;
    fsdpi_member         *members;
    fsdp_gradient_tensor *parts;
    fsdp_interval        *intervals;
    fsdpi_tensor        **tensors;
    size_t               *counts;
    int                  *owners;
    char                 *names;
} room;

static room divide_memory(const fsdp_model *model)
{
    const fsdpi_plan *plan = &model->plan;
    room              r    = {.flats = model->flats_memory};

    r.members   = (fsdpi_member *)(void *)(r.flats + plan->n_flats);
    r.parts     = (fsdp_gradient_tensor *)(void *)(r.members + plan->n_members);
    r.intervals = (fsdp_interval *)(void *)(r.parts + parts_of(plan->n_flats, plan->n_tensors));
    r.tensors   = (fsdpi_tensor **)(void *)(r.intervals + plan->n_tensors);
    r.counts    = (size_t *)(void *)(r.tensors + plan->n_tensors);
    r.owners    = (int *)(void *)(r.counts + plan->n_tensors);
    r.names     = (char *)(r.owners + plan->n_tensors);
    return r;
}

static const char *make_name(const fsdpi_tensor *first, bool is_first, room *r)
{
    char *name = r->names;

    if (is_first) {
        return first->unit->name;
    }
    r->names = stpcpy(stpcpy(stpcpy(name, first->unit->name), "/"), first->name) + 1;
    return name;
}

/* Tensors that are dealt, in order of their slices, else in that of the unit. */
static void order_dealt(fsdpi_flat *flat)
{
    for (size_t k = 1; k < flat->n_tensors; k++) {
        fsdpi_tensor *tensor = flat->tensors[k];
        size_t        at     = k;

        for (; at > 0 && flat->tensors[at - 1]->dealt > tensor->dealt; at--) {
            flat->tensors[at] = flat->tensors[at - 1];
        }
        flat->tensors[at] = tensor;
    }
    for (size_t k = 0; k < flat->n_tensors; k++) {
        flat->owners[k] = flat->tensors[k]->dealt;
        flat->counts[k] = flat->tensors[k]->count;
    }
}

/* As has been done for the plan, but that its tensors learn where they begin. */
static void lay_out_flat(fsdpi_flat *flat)
{
    fsdp_layout *layout = &flat->layout;

    (void)fsdpi_layout_begin(slices_of(flat->tensors[0], &flat->model->plan),
                             alignment_of(flat->tensors[0], flat->quantized), flat->granularity, layout);
    for (size_t k = 0; k < flat->n_tensors; k++) {
        flat->tensors[k]->offset = fsdpi_layout_add(layout, flat->counts[k]);
    }
    (void)fsdpi_layout_end(layout);
}

static fsdpi_flat *build_flat(const fsdpi_tensor *first, bool is_first, room *r)
{
    const fsdp_unit *unit = first->unit;
    fsdpi_flat      *flat = r->flats++;

    *flat = (fsdpi_flat){.model       = unit->model,
                         .strategy    = strategy_of(first, &unit->model->plan),
                         .name        = make_name(first, is_first, r),
                         .dtype       = fsdpi_gathered_dtype(unit->model, first),
                         .frozen      = is_frozen(first),
                         .quantized   = is_quantized(first),
                         .group       = group_of(first),
                         .granularity = fsdpi_granularity(unit->model, group_of(first)),
                         .tensors     = r->tensors,
                         .counts      = r->counts,
                         .intervals   = r->intervals,
                         .parts       = r->parts};
    for (size_t i = 0; i < unit->n_tensors; i++) {
        fsdpi_tensor *tensor = &unit->tensors[i];

        if (fsdpi_go_together(first, tensor)) {
            flat->tensors[flat->n_tensors]  = tensor;
            flat->counts[flat->n_tensors++] = tensor->count;
        }
    }
    if (fsdpi_is_dealt(first)) {
        flat->owners = r->owners;
        order_dealt(flat);
    }
    lay_out_flat(flat);
    r->tensors += flat->n_tensors;
    r->counts += flat->n_tensors;
    r->owners += flat->n_tensors;
    r->intervals += flat->n_tensors;
    r->parts += parts_of(1, flat->n_tensors);
    return flat;
}

static void add_member(fsdp_unit *unit, fsdpi_flat *flat, room *r)
{
    fsdpi_member *member = r->members++;

    *member             = (fsdpi_member){.flat = flat};
    member->view        = fsdpi_takes_slot(flat->strategy) ? &member->in_slot : &flat->view;
    member->slot_offset = unit->view_bytes;
    if (fsdpi_takes_slot(flat->strategy)) {
        unit->view_bytes += view_bytes(&flat->layout, fsdp_dtype_size(flat->dtype), flat->quantized);
    }
    if (!flat->frozen) {
        *(fsdpi_is_whole(flat) ? &unit->whole_gradients : &unit->gradients) += flat->layout.padded;
    }
    unit->n_members++;
}

/* Which of the unit's members each of its tensors is in, and where. */
static void find_members(fsdp_unit *unit)
{
    for (size_t i = 0; i < unit->n_tensors; i++) {
        fsdpi_tensor *tensor = &unit->tensors[i];

        tensor->offset = tensor->owner->offset;
        for (size_t m = 0; m < unit->n_members; m++) {
            const fsdpi_flat *flat = unit->members[m].flat;

            for (size_t k = 0; k < flat->n_tensors; k++) {
                tensor->member = flat->tensors[k] == tensor->owner ? &unit->members[m] : tensor->member;
            }
        }
    }
}

static void build_unit(fsdp_unit *unit, fsdpi_flat ***end, room *r)
{
    bool is_first = true;

    unit->members         = r->members;
    unit->n_members       = 0; /* again, behind a commit that has failed */
    unit->view_bytes      = 0;
    unit->gradients       = 0;
    unit->whole_gradients = 0;
    for (size_t i = 0; i < unit->n_tensors; i++) {
        const fsdpi_tensor *first = first_of_flat(unit, i);

        if (first != NULL && first->unit == unit) {
            fsdpi_flat *flat = build_flat(first, is_first, r);

            is_first                                                                    = false;
            **end                                                                       = flat;
            *end                                                                        = &flat->next;
            *(fsdpi_is_whole(flat) ? &unit->model->holds_whole : &unit->model->divides) = true;
            add_member(unit, flat, r);
        } else if (first != NULL) {
            add_member(unit, first->member->flat, r);
        }
    }
    find_members(unit);
}

static void place_ignored(fsdp_model *model)
{
    unsigned char *memory = model->ignored;

    for (fsdp_unit *unit = model->first; unit != NULL; unit = unit->next) {
        for (size_t i = 0; i < unit->n_tensors; i++) {
            fsdpi_tensor *tensor = &unit->tensors[i];

            if (tensor->owner == tensor && !fsdpi_is_divided(tensor)) {
                tensor->whole = memory;
                memory += fsdpi_alloc_size(tensor->count * fsdp_dtype_size(fsdpi_gathered_dtype(model, tensor)));
            }
            tensor->whole = tensor->owner->whole;
        }
    }
}

void fsdpi_flats_build(fsdp_model *model)
{
    room         r     = divide_memory(model);
    fsdpi_flat **end   = &model->flats;
    size_t       index = 0;

    model->divides     = false;
    model->holds_whole = false;
    for (fsdp_unit *unit = model->first; unit != NULL; unit = unit->next) {
        unit->index = index++;
        build_unit(unit, &end, &r);
    }
    place_ignored(model);
}
