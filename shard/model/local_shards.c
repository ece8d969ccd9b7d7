#include "fsdp/shard.h"

#include "shard/optimizer/optimizer_state.h"
#include "shard/schedule/between_passes.h"
#include "shard/schedule/divisor.h"
#include "shard/schedule/failed_step.h"
#include "shard/schedule/gather.h"
#include "shard/state/optimizer_kind.h"
#include "shard/state/slices.h"
#include "shard/state/tensor.h"
#include "shard/storage/compute.h"

static const char shard_name[] = "fsdp_unit_shard", state_name[] = "fsdp_optimizer_state";

/* ---- which elements ---------------------------------------------------------------------------------------------- */

/* What this rank holds of a tensor. */
typedef struct held_part {
    fsdpi_flat *flat;
    size_t      at;    /* of what is held of the flat parameter */
    size_t      begin; /* of the tensor */
    size_t      count;
} held_part;

static held_part part_of(const fsdpi_tensor *tensor)
{
    fsdpi_flat  *flat       = tensor->member->flat;
    const size_t held_begin = fsdpi_held_begin(flat), held_end = held_begin + fsdpi_held_elements(flat);
    const size_t end   = tensor->offset + tensor->count;
    const size_t first = tensor->offset > held_begin ? tensor->offset : held_begin;
    const size_t last  = end < held_end ? end : held_end;

    return first < last ? (held_part){flat, first - held_begin, first - tensor->offset, last - first}
                        : (held_part){.flat = flat};
}

static fsdp_status find_part(fsdp_unit *unit, size_t i, const char *function, held_part *part)
{
    if (unit == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "%s: the unit is NULL; pass one from fsdp_unit_add", function);
    }
    fsdp_model *model = unit->model;
    FSDP_TRY(fsdpi_between_passes(model, function));
    FSDP_TRY(fsdpi_has_undivided(model) ? fsdpi_gradients_divide(model, function, FSDP_OK) : FSDP_OK);
    if (i >= unit->n_tensors) {
        return fsdpi_fail(model->ctx, FSDP_ERR_ARG, "%s: unit '%s' has no tensor %zu; it has 0 to %zu", function,
                          unit->name, i, unit->n_tensors - 1);
    }
    if (unit->tensors[i].member == NULL) {
        return fsdpi_fail(model->ctx, FSDP_ERR_UNSUPPORTED,
                          "%s: tensor '%s' is ignored, and no part of it is this rank's alone; use fsdp_unit_buffer",
                          function, unit->tensors[i].name);
    }
    if (fsdpi_is_offloaded(model)) {
        fsdpi_compute_finish(model); /* the last step may still be copying masters and states out */
    }
    *part = part_of(&unit->tensors[i]);
    return fsdpi_compute_status(model);
}

/* ---- pointers ---------------------------------------------------------------------------------------------------- */

fsdp_status fsdp_unit_shard(fsdp_unit *unit, size_t i, fsdp_shard *shard)
{
    held_part part = {.flat = NULL};

    if (shard == NULL) {
        return fsdpi_fail(unit != NULL ? unit->model->ctx : NULL, FSDP_ERR_ARG, "%s: the place for the shard is NULL",
                          shard_name);
    }
    const fsdp_status status = find_part(unit, i, shard_name, &part);
    if (status != FSDP_OK || unit == NULL || part.flat == NULL) {
        return status;
    }
    *shard = (fsdp_shard){.master   = fsdpi_master_at(part.flat, part.at),
                          .gradient = part.flat->has_gradient ? fsdpi_gradient_at(part.flat, part.at) : NULL,
                          .begin    = part.begin,
                          .count    = part.count,
                          .dtype    = unit->model->master_dtype};
    return FSDP_OK;
}

/* The place of a flat parameter among the model's. */
static size_t index_of(const fsdpi_flat *flat)
{
    size_t u = 0;

    for (const fsdpi_flat *other = flat->model->flats; other != flat; other = other->next) {
        u++;
    }
    return u;
}

static fsdp_status check_state(const fsdp_optimizer *optimizer, const fsdp_unit *unit, size_t i, size_t k,
                               const held_part *part)
{
    fsdp_context *ctx      = unit->model->ctx;
    const size_t  n_states = fsdpi_states_of(&optimizer->options);

    if (!fsdpi_updates(optimizer, part->flat)) {
        return fsdpi_fail(ctx, FSDP_ERR_ARG,
                          "%s: the optimizer does not update tensor '%s', which %s; pass the optimizer that does",
                          state_name, unit->tensors[i].name,
                          part->flat->frozen          ? "is frozen"
                          : part->flat->group != NULL ? "belongs to another group"
                                                      : "belongs to no group");
    }
    if (optimizer->options.moment_dtype == FSDP_U8) {
        return fsdpi_fail(
            ctx, FSDP_ERR_UNSUPPORTED,
            "%s: moments in 8 bits are codes and scales, not values; see fsdp_checkpoint_save, which writes "
            "values",
            state_name);
    }
    if (k >= n_states) {
        return fsdpi_fail(ctx, FSDP_ERR_ARG, "%s: state %zu of tensor '%s'; the optimizer has %zu, counted from 0",
                          state_name, k, unit->tensors[i].name, n_states);
    }
    return FSDP_OK;
}

void *fsdp_optimizer_state(fsdp_optimizer *optimizer, fsdp_unit *unit, size_t i, size_t k)
{
    static const double nothing = 0.0; /* what a rank without elements points to */
    held_part           part    = {.flat = NULL};

    if (optimizer == NULL || (unit != NULL && optimizer->model != unit->model)) {
        (void)fsdpi_fail(unit != NULL ? unit->model->ctx : NULL, FSDP_ERR_ARG,
                         "%s: the optimizer is %s; pass one of the unit's model", state_name,
                         optimizer == NULL ? "NULL" : "another model's");
        return NULL;
    }
    if (find_part(unit, i, state_name, &part) != FSDP_OK || unit == NULL || part.flat == NULL ||
        check_state(optimizer, unit, i, k, &part) != FSDP_OK) {
        return NULL;
    }
    unsigned char *states = optimizer->flats[index_of(part.flat)].moments[k];
    return part.count > 0 ? fsdpi_element_of(states, part.at, optimizer->options.moment_dtype)
                          : (void *)(uintptr_t)&nothing;
}

/* ---- changes ----------------------------------------------------------------------------------------------------- */

/* Ranks that hold the same elements, of all of which the hash tells them. */
static fsdp_status compare_copies(fsdp_model *model)
{
    uint64_t hash;

    return model->ctx->config.verify == FSDP_VERIFY_FULL ? fsdp_model_hash(model, &hash) : FSDP_OK;
}

fsdp_status fsdp_model_shards_changed(fsdp_model *model)
{
    static const char function[] = "fsdp_model_shards_changed";

    if (model == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "%s: the model is NULL; pass one from fsdp_model_create", function);
    }
    FSDP_TRY(fsdpi_step_agree(model, function, NULL, 0, fsdpi_between_passes(model, function), true));
    FSDP_TRY(compare_copies(model));
    fsdpi_gather_drop(model);
    return fsdpi_gather_refresh(model, true);
}
