#include "shard/state/plan.h"

#include <stdint.h>

#include "lib/context/buffer_alloc.h"
#include "lib/device/memory.h"
#include "shard/state/flat.h"
#include "shard/state/slots.h"
#include "shard/state/strategy.h"
#include "shard/state/tensor_groups.h"

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

static fsdp_status check_group(const fsdp_model *model, const fsdpi_plan *plan)
{
    if (plan->size % plan->group != 0) {
        return fsdpi_fail(model->ctx, FSDP_ERR_ARG,
                          "fsdp_model_budget: groups of %d ranks do not divide %d ranks; set a group_size that does",
                          plan->group, plan->size);
    }
    return FSDP_OK;
}

static void plan_views(const fsdp_model *model, fsdpi_plan *plan)
{
    fsdpi_slot_sizes sizes = fsdpi_slot_sizes_begin(model, plan, FSDPI_SLOTS_OF_VIEWS);

    plan->views_bytes = plan->kept;
    for (size_t bytes; fsdpi_slot_sizes_next(&sizes, &bytes);) {
        plan->views_bytes += bytes;
        plan->n_views++;
    }
}

/* Those of what every rank holds whole are alike, and as large as FSDP_BUCKET_BYTES asks for. */
static void plan_whole_buckets(const fsdp_model *model, fsdpi_plan *plan)
{
    const fsdp_config *config = &model->ctx->config;
    const size_t       limit  = (size_t)config->bucket_bytes / fsdp_dtype_size(model->options.reduce_dtype);
    fsdpi_slot_sizes   sizes  = fsdpi_slot_sizes_begin(model, plan, FSDPI_SLOTS_OF_WHOLE_GRADIENTS);

    for (size_t room; fsdpi_slot_sizes_next(&sizes, &room);) {
        plan->n_whole++;
    }
    plan->bucket = sizes.largest;
    if (config->prefetch > 0) {
        plan->bucket = least(plan->whole_trainable, larger(limit, plan->bucket));
    }
}

static void plan_buckets(const fsdp_model *model, fsdpi_plan *plan)
{
    fsdpi_slot_sizes sizes = fsdpi_slot_sizes_begin(model, plan, FSDPI_SLOTS_OF_GRADIENTS);

    for (size_t room; fsdpi_slot_sizes_next(&sizes, &room);) {
        plan->buckets += room;
        plan->n_buckets++;
    }
    plan_whole_buckets(model, plan);
    plan->n_buckets += plan->n_whole;
    plan->buckets += plan->n_whole * plan->bucket;
}

static size_t most_under_way(size_t slots, size_t most, size_t all)
{
    return least(slots * most, all);
}

/* What a step can have issued at a time. A view that stays where it is is gathered once; SHARD_OPTIM gathers all at a time. */
static void plan_requests(const fsdp_model *model, fsdpi_plan *plan)
{
    fsdpi_unit_extent most = {0}, all = {0};

    for (const fsdp_unit *unit = model->first; unit != NULL; unit = unit->next) {
        fsdpi_unit_extent one;

        (void)fsdpi_unit_measure(unit, plan, &one); /* which has been done for the slots */
        most.gathers    = larger(most.gathers, one.gathers);
        most.reductions = larger(most.reductions, one.reductions);
        all.gathers += one.gathers;
        all.reductions += one.reductions;
    }
    plan->gathers    = plan->n_kept + most_under_way(plan->n_views, most.gathers, all.gathers);
    plan->reductions = most_under_way(plan->n_buckets - plan->n_whole, most.reductions, all.reductions) + plan->n_whole;
}

static void plan_bookkeeping(const fsdp_model *model, fsdpi_plan *plan)
{
    const fsdp_buffer_kind kind      = fsdpi_is_on_device(model) ? FSDP_BUFFER_DEVICE : FSDP_BUFFER_PER_RANK;
    const int              n_buffers = (plan->held > 0 && !fsdpi_is_offloaded(model)) + (plan->low_bytes > 0) +
                          (plan->views_bytes > 0) +
                          2 * (plan->held_trainable > 0); /* those of list_shared() in storage.c */

    for (const fsdp_unit *unit = model->first; unit != NULL; unit = unit->next) {
        plan->bookkeeping_bytes += fsdpi_alloc_size(unit->bytes);
    }
    plan->bookkeeping_bytes +=
        fsdpi_tensor_groups_bytes(model) + (size_t)n_buffers * fsdpi_buffer_bookkeeping(kind, plan->group) +
        fsdpi_alloc_size(fsdpi_flats_bytes(plan)) + fsdpi_alloc_size(plan->n_views * sizeof(fsdpi_slot)) +
        fsdpi_alloc_size(plan->n_buckets * sizeof(fsdpi_bucket)) +
        fsdpi_alloc_size(FSDPI_EVENTS_PER_UNIT * model->n_units * sizeof(size_t)) +
        fsdpi_alloc_size(fsdpi_replay_bytes(model)) + fsdpi_queue_reserve_bookkeeping(plan->gathers + plan->reductions);
    if (fsdpi_is_hybrid(plan->strategy) && plan->group < plan->size) {
        plan->bookkeeping_bytes += fsdpi_queue_reserve_bookkeeping(plan->reductions);
    }
}

static void plan_device(const fsdp_model *model, fsdpi_plan *plan)
{
    const fsdpi_gpu_device *gpu = model->ctx->gpu.device;

    if (fsdpi_is_on_device(model)) {
        plan->norm_bytes         = sizeof(fsdpi_norm);
        plan->norm_scratch_bytes = gpu->ops->compute->norm_scratch(plan->longest);
    }
}

/* Each unit can be counted, and so can, times all that is held of an element and many views, what this leaves. */
static fsdp_status check_extent(const fsdp_unit *unit, const fsdpi_plan *plan)
{
    const size_t most = PTRDIFF_MAX / 1024;

    if (plan->padded > most || plan->ignored_bytes > most) {
        (void)fsdpi_fail(unit->model->ctx, FSDP_ERR_ARG,
                         "the model's size in bytes overflows at unit '%s'; check the shapes of its tensors",
                         unit->name);
        return FSDP_ERR_ARG;
    }
    return FSDP_OK;
}

/* To what allocations are multiples of, in every type. */
static void round_up(fsdpi_plan *plan)
{
    plan->held           = fsdpi_alloc_size(plan->held);
    plan->held_trainable = fsdpi_alloc_size(plan->held_trainable);
    plan->low_bytes      = fsdpi_alloc_size(plan->low_bytes);
    plan->local          = fsdpi_alloc_size(plan->local);
    plan->longest        = fsdpi_alloc_size(plan->longest);
    plan->views_bytes    = fsdpi_alloc_size(plan->views_bytes);
    plan->buckets        = fsdpi_alloc_size(plan->buckets);
}

fsdp_status fsdpi_plan_make(const fsdp_model *model, fsdp_strategy strategy, int size, int rank, fsdpi_plan *plan)
{
    const int group = model->options.group_size > 0 ? model->options.group_size : model->ctx->nodes.largest;

    *plan = (fsdpi_plan){
        .strategy = strategy, .size = size, .group = fsdpi_is_hybrid(strategy) ? group : size, .rank = rank};
    FSDP_TRY(check_group(model, plan));
    for (const fsdp_unit *unit = model->first; unit != NULL; unit = unit->next) {
        FSDP_TRY(fsdpi_plan_unit(unit, plan));
        FSDP_TRY(check_extent(unit, plan));
    }
    FSDP_TRY(fsdpi_plan_dealt(model, rank, plan));
    plan->local = model->options.local_gradients ? plan->padded_trainable : 0;
    plan_views(model, plan);
    plan_buckets(model, plan);
    round_up(plan);
    plan_requests(model, plan);
    plan_bookkeeping(model, plan);
    plan_device(model, plan);
    return FSDP_OK;
}
