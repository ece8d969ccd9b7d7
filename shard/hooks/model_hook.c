/*
 * What a model and its hook have to do with each other: whether they fit, what the hook sees of a gradient, and what it will
 * hold. Hooks compute on the host: gradients of a model on a GPU pass through host memory, out before a hook and in behind it.
 */
#include "shard/hooks/model_hook.h"

#include <string.h>

#include "lib/device/memory.h"
#include "shard/state/slices.h"
#include "shard/state/strategy.h"
#include "shard/storage/compute.h"

/* ---- what a hook sees -------------------------------------------------------------------------------------------- */

/* So many rows of a tensor, or, where these are 0, so many elements. */
static void add_part(fsdp_gradient_tensor **end, const fsdpi_tensor *tensor, size_t offset, size_t rows, size_t count)
{
    fsdp_gradient_tensor *part = (*end)++;

    *part = (fsdp_gradient_tensor){.name = tensor->name, .offset = offset, .n_dims = 1, .shape = {count}};
    if (rows > 0) {
        part->n_dims = tensor->n_dims;
        memcpy(part->shape, tensor->shape, sizeof part->shape);
        part->shape[0] = rows;
    }
}

/* Elements `from` up to `to` of a tensor, the first of them at `offset`: whole rows as such, the ends of others beside them. */
static void add_parts(fsdp_gradient_tensor **end, const fsdpi_tensor *tensor, size_t offset, size_t from, size_t to)
{
    const size_t row   = tensor->n_dims > 1 ? tensor->count / tensor->shape[0] : 1;
    const size_t first = (from + row - 1) / row, last = to / row;

    if (first >= last) {
        add_part(end, tensor, offset, 0, to - from);
        return;
    }
    if (first * row > from) {
        add_part(end, tensor, offset, 0, first * row - from);
    }
    add_part(end, tensor, offset + first * row - from, last - first, 0);
    if (to > last * row) {
        add_part(end, tensor, offset + last * row - from, 0, to - last * row);
    }
}

/* What a hook sees of elements `begin` up to `end` of a flat parameter. Only the first and the last tensor can be cut. */
static size_t list_parts(fsdpi_flat *flat, size_t begin, size_t end)
{
    fsdp_gradient_tensor *last = flat->parts;

    for (size_t i = 0; i < flat->n_tensors; i++) {
        const fsdpi_tensor *tensor = flat->tensors[i];
        const size_t        from   = tensor->offset > begin ? tensor->offset : begin;
        const size_t        to     = tensor->offset + tensor->count < end ? tensor->offset + tensor->count : end;

        if (from < to) {
            add_parts(&last, tensor, from - begin, from - tensor->offset, to - tensor->offset);
        }
    }
    return (size_t)(last - flat->parts);
}

fsdp_gradient fsdpi_gradient_for_hook(fsdpi_flat *flat)
{
    const fsdp_model *model  = flat->model;
    const size_t      begin  = fsdpi_held_begin(flat);
    const size_t      count  = fsdpi_held_elements(flat);
    const int         groups = model->ctx->size / model->shards->size;

    return (fsdp_gradient){.unit      = flat->name,
                           .count     = count,
                           .n_tensors = list_parts(flat, begin, begin + count),
                           .tensors   = flat->parts,
                           .ranks     = fsdpi_is_hybrid(model->options.strategy) ? groups : model->ctx->size};
}

/* ---- averaging --------------------------------------------------------------------------------------------------- */

/* BYTES of host memory for the longest gradient on a GPU; 0 where there is none, or no hook will be called. */
static size_t room_bytes(const fsdp_model *model)
{
    const bool called = fsdpi_is_hybrid(model->options.strategy) ? model->replicas != NULL : !model->divides;

    return fsdpi_is_on_device(model) && called ? model->plan.longest * sizeof(float) : 0;
}

fsdp_status fsdpi_hook_room_open(fsdp_model *model)
{
    const size_t bytes = room_bytes(model);

    if (bytes > 0 && model->hook_room == NULL) {
        model->hook_room = fsdpi_alloc(model->ctx, FSDP_MEMORY_STAGING, bytes);
    }
    return bytes == 0 || model->hook_room != NULL ? FSDP_OK : FSDP_ERR_MEMORY;
}

void fsdpi_hook_room_close(fsdp_model *model)
{
    fsdpi_free(model->ctx, FSDP_MEMORY_STAGING, model->hook_room, room_bytes(model));
    model->hook_room = NULL;
}

fsdp_status fsdpi_hook_average_part(fsdpi_flat *flat, fsdp_context *ctx, const char *function, float *part)
{
    fsdp_model   *model    = flat->model;
    fsdpi_purpose purpose  = {.name = function, .label = flat->name};
    fsdp_gradient gradient = fsdpi_gradient_for_hook(flat);

    gradient.values = part;
    if (!fsdpi_is_on_device(model)) {
        return fsdpi_hook_allreduce(model->hook, ctx, &purpose, &gradient);
    }
    gradient.values = model->hook_room;
    fsdpi_compute_read(model, gradient.values, FSDP_F32, part, FSDP_F32, gradient.count);
    purpose.status = fsdpi_compute_status(model);
    fsdpi_error_hand_on(model->ctx, ctx, purpose.status);
    FSDP_TRY(fsdpi_hook_allreduce(model->hook, ctx, &purpose, &gradient));
    fsdpi_compute_write(model, part, FSDP_F32, gradient.values, FSDP_F32, gradient.count);
    return FSDP_OK;
}

/* ---- whether they fit -------------------------------------------------------------------------------------------- */

fsdp_status fsdpi_hook_fits(const fsdp_model *model, const fsdp_hook *hook, const char *function)
{
    const fsdp_model_options *o = &model->options;

    if (hook->ctx != model->ctx) {
        return fsdpi_fail(model->ctx, FSDP_ERR_ARG, "%s: the hook was made in another context; make it in the model's",
                          function);
    }
    if (model->master_dtype != FSDP_F32) {
        return fsdpi_fail(model->ctx, FSDP_ERR_UNSUPPORTED,
                          "%s: a hook serves gradients in f32, and those of this model are in %s; leave it out, or set "
                          "param_dtype to FSDP_F32",
                          function, fsdp_dtype_name(model->master_dtype));
    }
    if ((o->strategy != FSDP_NO_SHARD && !fsdpi_is_hybrid(o->strategy)) || o->reduce_dtype != FSDP_F32) {
        return fsdpi_fail(
            model->ctx, FSDP_ERR_UNSUPPORTED,
            "%s: a hook serves NO_SHARD and HYBRID_SHARD with gradients in f32, and this model is %s in %s", function,
            fsdp_strategy_name(o->strategy), fsdp_dtype_name(o->reduce_dtype));
    }
    for (const fsdpi_flat *flat = model->flats; flat != NULL && !fsdpi_is_hybrid(o->strategy); flat = flat->next) {
        if (!fsdpi_is_whole(flat)) {
            return fsdpi_fail(model->ctx, FSDP_ERR_UNSUPPORTED,
                              "%s: a hook serves NO_SHARD and HYBRID_SHARD, and unit '%s' of this model is %s",
                              function, flat->name, fsdp_strategy_name(flat->strategy));
        }
    }
    return FSDP_OK;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static fsdp_status check_budget(const fsdp_hook *hook, const fsdp_model *model, const fsdp_budget *budget)
{
    if (hook == NULL || model == NULL || budget == NULL) {
        return fsdpi_fail(model != NULL ? model->ctx : NULL, FSDP_ERR_ARG, "fsdp_hook_budget: the %s is NULL",
                          hook == NULL    ? "hook"
                          : model == NULL ? "model"
                                          : "budget");
    }
    if (!model->committed) {
        return fsdpi_fail(model->ctx, FSDP_ERR_STATE, "fsdp_hook_budget: call fsdp_model_commit first");
    }
    return fsdpi_hook_fits(model, hook, "fsdp_hook_budget");
}

/* Flat parameters have their state each, and work in the same memory one after the other. */
fsdp_status fsdp_hook_budget(const fsdp_hook *hook, const fsdp_model *model, fsdp_budget *budget)
{
    fsdpi_hook_need sum = {.bookkeeping = fsdpi_hook_bookkeeping()};

    FSDP_TRY(check_budget(hook, model, budget));
    for (fsdpi_flat *flat = model->flats; flat != NULL; flat = flat->next) {
        const fsdp_gradient   gradient = fsdpi_gradient_for_hook(flat);
        const fsdpi_hook_need need     = flat->frozen ? (fsdpi_hook_need){0} : fsdpi_hook_needs(hook, &gradient);

        sum.bookkeeping += need.bookkeeping;
        sum.state += need.state;
        sum.scratch = need.scratch > sum.scratch ? need.scratch : sum.scratch;
    }
    sum.scratch += fsdpi_alloc_size(room_bytes(model));
    budget->bytes[FSDP_MEMORY_BOOKKEEPING] += sum.bookkeeping;
    budget->bytes[FSDP_MEMORY_GRADIENTS] += sum.state;
    budget->bytes[FSDP_MEMORY_STAGING] += sum.scratch;
    budget->total += sum.bookkeeping + sum.state + sum.scratch;
    budget->mean_total += sum.bookkeeping + sum.state + sum.scratch;
    return FSDP_OK;
}
