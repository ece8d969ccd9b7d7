#include <stdint.h>
#include <string.h>

#include "lib/memory.h"
#include "shard/model.h"

/* ---- counting ---------------------------------------------------------------------------------------------------- */

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
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

/*
 * As many slots as units may be open, and as may be gathered ahead. One of the latter is as small as the smallest unit: for
 * one that stays open beside a chain of layers, which have the others then.
 */
static void plan_views(const fsdp_model *model, fsdpi_plan *plan)
{
    const fsdp_config *config = &model->ctx->config;
    const size_t       open   = (size_t)config->views_in_flight;

    if (plan->strategy == FSDP_NO_SHARD) {
        plan->views_bytes = 0;
    } else if (!fsdpi_keeps_views(plan->strategy)) {
        plan->n_views          = least(model->n_units, open + (size_t)config->prefetch);
        plan->small_view_bytes = plan->n_views > open ? plan->small_view_bytes : plan->view_bytes;
        plan->views_bytes      = (plan->n_views - 1) * plan->view_bytes + plan->small_view_bytes;
    }
}

/* One more than units may be open, so that one can be reduced meanwhile; small, as above. */
static void plan_buckets(const fsdp_model *model, fsdpi_plan *plan)
{
    const fsdp_config *config = &model->ctx->config;
    const size_t       limit  = (size_t)config->bucket_bytes / fsdp_dtype_size(model->options.reduce_dtype);
    const size_t       open   = (size_t)config->views_in_flight;

    plan->n_buckets = least(model->n_units, open + (config->prefetch > 0));
    if (plan->strategy == FSDP_NO_SHARD && config->prefetch > 0) {
        plan->bucket = least(plan->padded_trainable, limit > plan->bucket ? limit : plan->bucket);
    }
    if (plan->strategy == FSDP_NO_SHARD || plan->n_buckets <= open) {
        plan->small_bucket = plan->bucket;
    }
    plan->buckets = (plan->n_buckets - 1) * plan->bucket + plan->small_bucket;
}

static void plan_bookkeeping(const fsdp_model *model, fsdpi_plan *plan)
{
    const int n_buffers = (plan->held > 0) + (plan->low_bytes > 0) + (plan->views_bytes > 0) +
                          2 * (plan->held_trainable > 0); /* those of list_shared() */

    for (const fsdp_unit *unit = model->first; unit != NULL; unit = unit->next) {
        plan->bookkeeping_bytes += fsdpi_alloc_size(unit->bytes);
    }
    plan->bookkeeping_bytes += (size_t)n_buffers * fsdpi_buffer_bookkeeping(plan->group) +
                               fsdpi_alloc_size(fsdpi_flats_bytes(plan)) +
                               fsdpi_alloc_size(plan->n_views * sizeof(fsdp_unit *)) +
                               fsdpi_alloc_size(plan->n_buckets * sizeof(fsdpi_bucket)) +
                               fsdpi_alloc_size(FSDPI_EVENTS_PER_UNIT * model->n_units * sizeof(size_t));
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

fsdp_status fsdpi_plan_make(const fsdp_model *model, fsdp_strategy strategy, int size, fsdpi_plan *plan)
{
    const int group = model->options.group_size > 0 ? model->options.group_size : model->ctx->nodes.largest;

    *plan = (fsdpi_plan){.strategy = strategy, .size = size, .group = fsdpi_is_hybrid(strategy) ? group : size};
    FSDP_TRY(check_group(model, plan));
    for (const fsdp_unit *unit = model->first; unit != NULL; unit = unit->next) {
        FSDP_TRY(fsdpi_plan_unit(unit, plan));
        FSDP_TRY(check_extent(unit, plan));
    }
    const size_t share   = strategy == FSDP_NO_SHARD ? 1 : (size_t)plan->group;
    plan->held           = plan->padded / share;
    plan->held_trainable = plan->padded_trainable / share;
    plan->low_bytes      = plan->low_bytes / share;
    plan->local          = model->options.local_gradients ? plan->padded_trainable : 0;
    plan_views(model, plan);
    plan_buckets(model, plan);
    plan_bookkeeping(model, plan);
    return FSDP_OK;
}

/* ---- allocating -------------------------------------------------------------------------------------------------- */

/* Memory of the model that peers reach; on groups it counts in the context of all ranks as well. What the ranks of a node
 * have between them counts whole on each of them. */
static fsdp_status open_shared(fsdp_model *model, fsdp_buffer_kind kind, fsdp_memory_kind purpose, size_t bytes,
                               void **memory)
{
    FSDP_TRY(fsdpi_buffer_alloc(model->shards, kind, purpose, bytes, memory));
    if (kind == FSDP_BUFFER_PER_NODE || model->shards != model->ctx) {
        fsdpi_count_memory(model->ctx, purpose, bytes);
    }
    if (kind == FSDP_BUFFER_PER_NODE && model->shards == model->ctx) {
        fsdpi_uncount_memory(model->ctx, purpose, bytes / (size_t)model->ctx->nodes.size);
    }
    if (model->shards != model->ctx && bytes > 0) {
        fsdpi_count_memory(model->ctx, FSDP_MEMORY_BOOKKEEPING, fsdpi_buffer_bookkeeping(model->shards->size));
    }
    return FSDP_OK;
}

static void close_shared(fsdp_model *model, fsdp_buffer_kind kind, fsdp_memory_kind purpose, size_t bytes,
                         const void *memory)
{
    if (memory == NULL) {
        return;
    }
    if (kind == FSDP_BUFFER_PER_NODE && model->shards == model->ctx) {
        fsdpi_count_memory(model->ctx, purpose, bytes / (size_t)model->ctx->nodes.size);
    }
    if (kind == FSDP_BUFFER_PER_NODE || model->shards != model->ctx) {
        fsdpi_uncount_memory(model->ctx, purpose, bytes);
    }
    if (model->shards != model->ctx) {
        fsdpi_uncount_memory(model->ctx, FSDP_MEMORY_BOOKKEEPING, fsdpi_buffer_bookkeeping(model->shards->size));
    }
    fsdpi_buffer_drop(model->shards, memory);
}

/* The five kinds of memory that peers reach. */
typedef struct shared_memory {
    fsdp_buffer_kind kind;
    fsdp_memory_kind purpose;
    size_t           bytes;
    void           **place;
} shared_memory;

enum { N_SHARED = 5 };

static void list_shared(fsdp_model *model, shared_memory list[N_SHARED])
{
    const fsdpi_plan   *plan          = &model->plan;
    const size_t        reduce_width  = fsdp_dtype_size(model->options.reduce_dtype);
    const shared_memory all[N_SHARED] = {
        {FSDP_BUFFER_PER_RANK, FSDP_MEMORY_PARAMETERS, plan->held * sizeof(float), (void **)(void *)&model->masters},
        {FSDP_BUFFER_PER_RANK, FSDP_MEMORY_GRADIENTS, plan->held_trainable * sizeof(float),
         (void **)(void *)&model->reduced},
        {FSDP_BUFFER_PER_RANK, FSDP_MEMORY_PARAMETERS, plan->low_bytes, (void **)(void *)&model->lows},
        {FSDP_BUFFER_PER_NODE, FSDP_MEMORY_GATHERED, plan->views_bytes, (void **)(void *)&model->views},
        {FSDP_BUFFER_PER_RANK, FSDP_MEMORY_GRADIENT_VIEWS, plan->buckets * reduce_width,
         (void **)(void *)&model->gradient_views}};

    memcpy(list, all, sizeof all);
}

/* Memory of this rank alone. */
typedef struct private_memory {
    fsdp_memory_kind purpose;
    size_t           bytes;
    void           **place;
} private_memory;

enum { N_PRIVATE = 6 };

static void list_private(fsdp_model *model, private_memory list[N_PRIVATE])
{
    const fsdpi_plan    *plan           = &model->plan;
    const private_memory all[N_PRIVATE] = {
        {FSDP_MEMORY_BOOKKEEPING, fsdpi_flats_bytes(plan), &model->flats_memory},
        {FSDP_MEMORY_BOOKKEEPING, plan->n_views * sizeof(fsdp_unit *), (void **)(void *)&model->slots},
        {FSDP_MEMORY_BOOKKEEPING, plan->n_buckets * sizeof(fsdpi_bucket), (void **)(void *)&model->buckets},
        {FSDP_MEMORY_BOOKKEEPING, FSDPI_EVENTS_PER_UNIT * model->n_units * sizeof(size_t),
         (void **)(void *)&model->events},
        {FSDP_MEMORY_GRADIENTS, plan->local * sizeof(float), (void **)(void *)&model->locals},
        {FSDP_MEMORY_PARAMETERS, plan->ignored_bytes, (void **)(void *)&model->ignored}};

    memcpy(list, all, sizeof all);
}

static fsdp_status open_private(fsdp_model *model)
{
    private_memory list[N_PRIVATE];

    list_private(model, list);
    for (int i = 0; i < N_PRIVATE; i++) {
        *list[i].place = fsdpi_alloc(model->ctx, list[i].purpose, list[i].bytes);
        if (*list[i].place == NULL && list[i].bytes > 0) {
            return FSDP_ERR_MEMORY;
        }
    }
    return FSDP_OK;
}

static void close_private(fsdp_model *model)
{
    private_memory list[N_PRIVATE];

    list_private(model, list);
    for (int i = 0; i < N_PRIVATE; i++) {
        fsdpi_free(model->ctx, list[i].purpose, *list[i].place, list[i].bytes);
        *list[i].place = NULL;
    }
}

/* Every flat parameter's place in each array. */
static void lay_out(fsdp_model *model)
{
    float         *master = model->masters, *gradient = model->reduced, *local = model->locals;
    unsigned char *low = model->lows, *view = model->views;

    for (fsdpi_flat *flat = model->flats; flat != NULL; flat = flat->next) {
        const size_t held = fsdpi_held_elements(flat), width = fsdp_dtype_size(flat->dtype);
        const size_t low_bytes = flat->quantized           ? fsdpi_packed_slice_bytes(&flat->layout)
                                 : flat->dtype != FSDP_F32 ? held * width
                                                           : 0;

        flat->master = master;
        master += held;
        if (low_bytes > 0) {
            flat->low = low;
            low += low_bytes;
        }
        if (!flat->frozen) {
            flat->gradient = gradient;
            flat->local    = local;
            gradient += held;
            local += local != NULL ? flat->layout.padded : 0;
        }
        if (fsdpi_keeps_views(model->options.strategy)) {
            flat->view.memory = view;
            view += flat->layout.padded * width;
        }
    }
    for (size_t i = 0; i < model->plan.n_buckets; i++) {
        model->buckets[i] = (fsdpi_bucket){
            .memory = fsdpi_element_of(model->gradient_views, i * model->plan.bucket, model->options.reduce_dtype),
            .room   = i + 1 < model->plan.n_buckets ? model->plan.bucket : model->plan.small_bucket};
    }
}

fsdp_status fsdpi_storage_open(fsdp_model *model)
{
    shared_memory list[N_SHARED];
    fsdp_status   status = fsdpi_plan_make(model, model->options.strategy, model->ctx->size, &model->plan);

    status = status == FSDP_OK ? open_private(model) : status;
    FSDP_TRY(fsdpi_agree(model->ctx, "fsdp_model_commit", "allocation", 0, status, true));
    list_shared(model, list);
    for (int i = 0; i < N_SHARED; i++) {
        status = open_shared(model, list[i].kind, list[i].purpose, list[i].bytes, list[i].place);
        if (model->shards != model->ctx) { /* other groups may have had no room */
            status = status != FSDP_OK ? fsdpi_record(model->ctx, status, "%s", fsdpi_error_recorded(model->shards))
                                       : status;
            status = fsdpi_agree(model->ctx, "fsdp_model_commit", "memory", 0, status, true);
        }
        FSDP_TRY(status);
    }
    fsdpi_flats_build(model);
    lay_out(model);
    return FSDP_OK;
}

void fsdpi_storage_close(fsdp_model *model)
{
    shared_memory list[N_SHARED];

    list_shared(model, list);
    for (int i = N_SHARED; i-- > 0;) {
        close_shared(model, list[i].kind, list[i].purpose, list[i].bytes, *list[i].place);
        *list[i].place = NULL;
    }
    close_private(model);
    model->flats = NULL;
}
