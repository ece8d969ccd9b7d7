#include "shard/storage/storage.h"

#include <string.h>

#include "lib/context/buffer_alloc.h"
#include "lib/device/memory.h"
#include "shard/state/flat.h"
#include "shard/state/node_part.h"
#include "shard/state/plan.h"
#include "shard/state/slices.h"
#include "shard/state/slots.h"
#include "shard/state/strategy.h"
#include "shard/state/tensor.h"
#include "shard/storage/fixed_addresses.h"
#include "shard/storage/model_gpu.h"
#include "shard/storage/model_memory.h"
#include "shard/storage/model_requests.h"

/* ---- allocating -------------------------------------------------------------------------------------------------- */

/* Memory of the model that peers reach; on groups it counts in the context of all ranks as well. What the ranks of a node
 * have between them counts whole on each of them. */
static fsdp_status open_shared(fsdp_model *model, fsdp_buffer_kind kind, fsdp_memory_kind purpose, size_t bytes,
                               void **memory)
{
    const bool mappable = purpose == FSDP_MEMORY_GATHERED && fsdpi_has_windows(model);

    FSDP_TRY(fsdpi_buffer_alloc(model->shards, kind, purpose, bytes, mappable, memory));
    if (kind == FSDP_BUFFER_PER_NODE && model->shards == model->ctx) { /* first, so that no peak has it twice */
        fsdpi_uncount_memory(model->ctx, purpose, bytes / (size_t)model->ctx->nodes.size);
    }
    if (kind == FSDP_BUFFER_DEVICE && model->shards != model->ctx) {
        fsdpi_count_device_memory(model->ctx, purpose, bytes);
    } else if (kind == FSDP_BUFFER_PER_NODE || model->shards != model->ctx) {
        fsdpi_count_memory(model->ctx, purpose, bytes);
    }
    if (model->shards != model->ctx && bytes > 0) {
        fsdpi_count_memory(model->ctx, FSDP_MEMORY_BOOKKEEPING, fsdpi_buffer_bookkeeping(kind, model->shards->size));
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
    if (kind == FSDP_BUFFER_DEVICE && model->shards != model->ctx) {
        fsdpi_uncount_device_memory(model->ctx, purpose, bytes);
    } else if (kind == FSDP_BUFFER_PER_NODE || model->shards != model->ctx) {
        fsdpi_uncount_memory(model->ctx, purpose, bytes);
    }
    if (model->shards != model->ctx) {
        fsdpi_uncount_memory(model->ctx, FSDP_MEMORY_BOOKKEEPING, fsdpi_buffer_bookkeeping(kind, model->shards->size));
    }
    (kind == FSDP_BUFFER_DEVICE ? fsdpi_buffer_free_device : fsdpi_buffer_drop)(model->shards, memory);
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
    const fsdpi_plan      *plan          = &model->plan;
    const size_t           reduce_width  = fsdp_dtype_size(model->options.reduce_dtype);
    const bool             on_device     = fsdpi_is_on_device(model);
    const fsdp_buffer_kind own           = on_device ? FSDP_BUFFER_DEVICE : FSDP_BUFFER_PER_RANK;
    const size_t           masters       = fsdpi_is_offloaded(model) ? 0 : plan->held * fsdpi_master_width(model);
    const shared_memory    all[N_SHARED] = {
           {own, FSDP_MEMORY_PARAMETERS, masters, &model->masters},
           {own, FSDP_MEMORY_GRADIENTS, plan->held_trainable * fsdpi_master_width(model), &model->reduced},
           {own, FSDP_MEMORY_PARAMETERS, plan->low_bytes, (void **)(void *)&model->lows},
           {on_device ? FSDP_BUFFER_DEVICE : FSDP_BUFFER_PER_NODE, FSDP_MEMORY_GATHERED, plan->views_bytes,
            (void **)(void *)&model->views},
           {own, FSDP_MEMORY_GRADIENT_VIEWS, plan->buckets * reduce_width, (void **)(void *)&model->gradient_views}};

    memcpy(list, all, sizeof all);
}

/* Memory of this rank alone. */
typedef struct private_memory {
    fsdpi_home       home;
    fsdp_memory_kind purpose;
    size_t           bytes;
    void           **place;
} private_memory;

enum { N_PRIVATE = 11 };

static void list_private(fsdp_model *model, private_memory list[N_PRIVATE])
{
    const fsdpi_plan    *plan           = &model->plan;
    const fsdpi_home     home           = fsdpi_home_of_elements(model);
    const size_t         masters        = fsdpi_is_offloaded(model) ? plan->held * fsdpi_master_width(model) : 0;
    const private_memory all[N_PRIVATE] = {
        {FSDPI_AT_HOST, FSDP_MEMORY_BOOKKEEPING, fsdpi_flats_bytes(plan), &model->flats_memory},
        {FSDPI_AT_HOST, FSDP_MEMORY_BOOKKEEPING, plan->n_views * sizeof(fsdpi_slot), (void **)(void *)&model->slots},
        {FSDPI_AT_HOST, FSDP_MEMORY_BOOKKEEPING, plan->n_buckets * sizeof(fsdpi_bucket),
         (void **)(void *)&model->buckets},
        {FSDPI_AT_HOST, FSDP_MEMORY_BOOKKEEPING, FSDPI_EVENTS_PER_UNIT * model->n_units * sizeof(size_t),
         (void **)(void *)&model->events},
        {FSDPI_AT_HOST, FSDP_MEMORY_BOOKKEEPING, fsdpi_replay_bytes(model), &model->replay_memory},
        {home, FSDP_MEMORY_GRADIENTS, plan->local * fsdpi_master_width(model), &model->locals},
        {home, FSDP_MEMORY_PARAMETERS, plan->ignored_bytes, (void **)(void *)&model->ignored},
        {home, FSDP_MEMORY_GATHERED, plan->kept_on_node, (void **)(void *)&model->kept},
        {FSDPI_AT_PINNED, FSDP_MEMORY_PARAMETERS, masters, &model->offloaded_masters},
        {FSDPI_AT_PINNED, FSDP_MEMORY_BOOKKEEPING, plan->norm_bytes, (void **)(void *)&model->norm},
        {FSDPI_AT_DEVICE, FSDP_MEMORY_BOOKKEEPING, plan->norm_scratch_bytes, &model->norm_scratch}};

    memcpy(list, all, sizeof all);
}

static fsdp_status open_private(fsdp_model *model)
{
    private_memory list[N_PRIVATE];

    list_private(model, list);
    for (int i = 0; i < N_PRIVATE; i++) {
        if (list[i].bytes == 0) {
            continue;
        }
        *list[i].place = fsdpi_home_alloc(model, list[i].home, list[i].purpose, list[i].bytes);
        if (*list[i].place == NULL) {
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
        fsdpi_home_free(model, list[i].home, list[i].purpose, *list[i].place, list[i].bytes);
        *list[i].place = NULL;
    }
}

/* ---- streams ----------------------------------------------------------------------------------------------------- */

static fsdp_status open_offload(fsdp_model *model)
{
    fsdpi_gpu_device *gpu = fsdpi_gpu_of(model);

    if (!fsdpi_is_offloaded(model)) {
        return FSDP_OK;
    }
    FSDP_TRY(gpu->ops->stream_open(gpu, false, &model->offload.in));
    return gpu->ops->stream_open(gpu, false, &model->offload.out);
}

static void close_offload(fsdp_model *model)
{
    fsdpi_gpu_device *gpu = fsdpi_gpu_of(model);

    if (fsdpi_is_offloaded(model) && model->ctx->broken == FSDP_OK) {
        (void)gpu->ops->stream_close(gpu, model->offload.in);
        (void)gpu->ops->stream_close(gpu, model->offload.out);
    }
    model->offload = (fsdpi_offload){0};
}

/* ---- laying out -------------------------------------------------------------------------------------------------- */

/* Passes compute on what is held, padding and all; of what is quantised, on what it is read back as. `low_end`: of its `low`. */
static fsdpi_view view_of_whole(const fsdpi_flat *flat, unsigned char *low_end)
{
    unsigned char *held = flat->low != NULL ? flat->low : flat->master;

    if (flat->quantized) {
        held = low_end - fsdpi_held_elements(flat) * fsdp_dtype_size(flat->dtype);
    }
    return (fsdpi_view){.memory = held, .gathered = true};
}

/* Every flat parameter's place in each array. */
static void lay_out(fsdp_model *model)
{
    void          *master   = fsdpi_is_offloaded(model) ? model->offloaded_masters : model->masters;
    void          *gradient = model->reduced, *local = model->locals;
    unsigned char *low = model->lows, *view = model->views, *kept = model->kept;

    view = view != NULL ? view + model->plan.views_bytes - model->plan.kept
                        : NULL; /* behind the slots, which may be pages */
    for (fsdpi_flat *flat = model->flats; flat != NULL; flat = flat->next) {
        const size_t held = fsdpi_held_elements(flat), width = fsdp_dtype_size(flat->dtype);
        const size_t low_bytes = fsdpi_low_bytes(model, held, width, flat->quantized, fsdpi_is_whole(flat));

        flat->master = master;
        master       = fsdpi_at(model, master, held);
        if (low_bytes > 0) {
            flat->low = low;
            low += low_bytes;
        }
        if (!flat->frozen) {
            flat->gradient = gradient;
            flat->local    = local;
            gradient       = fsdpi_at(model, gradient, held);
            local          = local != NULL ? fsdpi_at(model, local, flat->layout.padded) : NULL;
        }
        if (fsdpi_is_whole(flat)) {
            flat->view = view_of_whole(flat, low);
        } else if (fsdpi_keeps_views(flat->strategy)) {
            flat->view.memory = view;
            view += flat->layout.padded * width;
        } else if (kept != NULL) {
            flat->kept = kept;
            kept += fsdpi_node_part(model, &model->plan, flat->layout.padded * width);
        }
    }
}

static void lay_out_record(fsdp_model *model)
{
    uint32_t *events = model->replay_memory;

    if (events != NULL) {
        model->replay = (fsdpi_replay){.last = events, .now = events + 2 * model->options.recorded_passes};
    }
}

static void lay_out_slots(fsdp_model *model)
{
    fsdpi_slot_sizes sizes = fsdpi_slot_sizes_begin(model, &model->plan, FSDPI_SLOTS_OF_VIEWS);
    unsigned char   *view  = model->views;

    for (size_t i = 0, bytes; i < model->plan.n_views && fsdpi_slot_sizes_next(&sizes, &bytes); i++) {
        model->slots[i] = (fsdpi_slot){.memory = view, .bytes = bytes};
        view += bytes;
    }
}

static void lay_out_buckets(fsdp_model *model)
{
    const fsdpi_plan *plan   = &model->plan;
    fsdpi_slot_sizes  sizes  = fsdpi_slot_sizes_begin(model, plan, FSDPI_SLOTS_OF_GRADIENTS);
    unsigned char    *memory = model->gradient_views;

    for (size_t i = 0; i < plan->n_buckets; i++) {
        const bool whole = i >= plan->n_buckets - plan->n_whole;
        size_t     room  = plan->bucket;

        if (!whole) {
            (void)fsdpi_slot_sizes_next(&sizes, &room);
        }
        model->buckets[i] = (fsdpi_bucket){.memory = memory, .room = room, .whole = whole};
        memory += room * fsdp_dtype_size(model->options.reduce_dtype);
    }
}

fsdp_status fsdpi_storage_open(fsdp_model *model)
{
    shared_memory list[N_SHARED];
    fsdp_status   status =
        fsdpi_plan_make(model, model->options.strategy, model->ctx->size, model->shards->rank, &model->plan);

    status = status == FSDP_OK ? fsdpi_deal_model(model) : status;
    status = status == FSDP_OK ? open_private(model) : status;
    status = status == FSDP_OK ? fsdpi_model_requests_open(model) : status;
    status = status == FSDP_OK ? open_offload(model) : status;
    status = status == FSDP_OK ? fsdpi_windows_reserve(model) : status;
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
    lay_out_slots(model);
    lay_out_buckets(model);
    lay_out_record(model);
    fsdpi_windows_lay_out(model);
    return FSDP_OK;
}

void fsdpi_storage_close(fsdp_model *model)
{
    shared_memory list[N_SHARED];

    close_offload(model);
    fsdpi_window_release(&model->window);
    list_shared(model, list);
    for (int i = N_SHARED; i-- > 0;) {
        close_shared(model, list[i].kind, list[i].purpose, list[i].bytes, *list[i].place);
        *list[i].place = NULL;
    }
    fsdpi_model_requests_close(model);
    close_private(model);
    model->flats = NULL;
}
