#include "shard/optimizer/optimizer_custom.h"

#include <string.h>

#include "shard/optimizer/muon.h"
#include "shard/optimizer/optimizer_groups.h"
#include "shard/state/slices.h"
#include "shard/state/tensor.h"
#include "shard/storage/compute.h"
#include "shard/storage/model_gpu.h"

/* ---- how much at a time ------------------------------------------------------------------------------------------ */

enum { MOST_ELEMENTS = 65536 };

/* ELEMENTS of a call: whole blocks, or whole tensors, of which none is longer than `longest`. */
static size_t most_elements(size_t granularity, size_t longest)
{
    const size_t n    = granularity == FSDP_GRANULARITY_FLAT ? 1 : granularity;
    const size_t most = n >= MOST_ELEMENTS ? n : MOST_ELEMENTS / n * n;

    return longest < most ? longest : most;
}

size_t fsdpi_optimizer_scratch(const fsdp_model *model, const fsdpi_plan *plan, const fsdpi_tensor_group *group,
                               const fsdp_model_group *assumed)
{
    if (assumed->optimizer == FSDP_MUON) {
        return group != NULL ? fsdpi_muon_scratch(model, group) : 0;
    }
    return assumed->optimizer == FSDP_CUSTOM
               ? most_elements(assumed->granularity, plan->longest) * fsdpi_master_width(model)
               : 0;
}

/* ---- runs of one tensor ------------------------------------------------------------------------------------------ */

typedef struct tensor_run {
    size_t at;     /* of what is held of the flat parameter */
    size_t tensor; /* of its tensors */
    size_t begin;  /* of the tensor's elements */
    size_t count;
} tensor_run;

typedef fsdp_status run_visit(const fsdpi_custom_stretch *stretch, const tensor_run *run);

/* What is held of tensor `t`: one interval, whatever slices it comes from. */
static tensor_run held_of(const fsdpi_flat *flat, size_t t)
{
    const fsdpi_tensor *tensor     = flat->tensors[t];
    const size_t        held_begin = fsdpi_held_begin(flat), held_end = held_begin + fsdpi_held_elements(flat);
    const size_t        end   = tensor->offset + tensor->count;
    const size_t        first = tensor->offset > held_begin ? tensor->offset : held_begin;
    const size_t        last  = end < held_end ? end : held_end;

    return first < last ? (tensor_run){first - held_begin, t, first - tensor->offset, last - first} : (tensor_run){0};
}

/* What of a run lies in the stretch, a call's worth at a time. */
static fsdp_status visit_parts(const fsdpi_custom_stretch *s, const tensor_run *whole, run_visit *visit)
{
    const size_t most  = most_elements(s->flat->granularity, s->flat->model->plan.longest);
    const size_t begin = whole->at > s->begin ? whole->at : s->begin;
    const size_t end   = whole->at + whole->count < s->end ? whole->at + whole->count : s->end;

    for (size_t at = begin, n; at < end; at += n) {
        n                    = end - at < most ? end - at : most;
        const tensor_run run = {at, whole->tensor, whole->begin + (at - whole->at), n};

        FSDP_TRY(visit(s, &run));
    }
    return FSDP_OK;
}

static fsdp_status visit_runs(const fsdpi_custom_stretch *stretch, run_visit *visit)
{
    for (size_t t = 0; t < stretch->flat->n_tensors; t++) {
        const tensor_run run = held_of(stretch->flat, t);

        FSDP_TRY(visit_parts(stretch, &run, visit));
    }
    return FSDP_OK;
}

/* ---- updating ---------------------------------------------------------------------------------------------------- */

static size_t bytes_of(const fsdpi_custom_stretch *s, const tensor_run *run)
{
    return run->count * fsdpi_master_width(s->flat->model);
}

static void *weights_of(const fsdpi_custom_stretch *s, const tensor_run *run)
{
    return fsdpi_at(s->flat->model, s->weights, run->at - s->begin);
}

static fsdp_status call(const fsdpi_custom_stretch *s, const tensor_run *run)
{
    const fsdp_optimizer         *optimizer               = s->optimizer;
    const fsdp_optimizer_options *o                       = &optimizer->options;
    const fsdpi_tensor           *tensor                  = s->flat->tensors[run->tensor];
    fsdp_model                   *model                   = s->flat->model;
    const size_t                  group                   = optimizer->flats[s->flat_index].group[run->tensor];
    const bool                    decays                  = (tensor->flags & FSDP_TENSOR_NO_WEIGHT_DECAY) == 0;
    void                         *states[FSDP_MAX_STATES] = {0};

    for (size_t k = 0; k < o->n_states; k++) {
        states[k] = fsdpi_element_of(s->states[k], run->at - s->begin, o->moment_dtype);
    }
    const fsdp_update update = {.unit         = tensor->unit->name,
                                .tensor       = tensor->name,
                                .index        = (size_t)(tensor - tensor->unit->tensors),
                                .n_dims       = tensor->n_dims,
                                .shape        = tensor->shape,
                                .begin        = run->begin,
                                .count        = run->count,
                                .dtype        = model->master_dtype,
                                .state_dtype  = o->moment_dtype,
                                .master       = weights_of(s, run),
                                .gradient     = fsdpi_gradient_at(s->flat, run->at),
                                .n_states     = o->n_states,
                                .states       = states,
                                .lr           = fsdpi_group_lr(optimizer, group),
                                .weight_decay = decays ? fsdpi_group_weight_decay(optimizer, group) : 0.0,
                                .step         = optimizer->steps + 1,
                                .stream       = fsdpi_is_on_device(model) ? fsdpi_stream_of(model) : NULL};
    return o->update(o->update_state, &update);
}

static fsdp_status fail(const fsdpi_custom_stretch *s, const tensor_run *run, fsdp_status status)
{
    const bool    is_code = strcmp(fsdp_status_name(status), "FSDP_UNKNOWN") != 0;
    fsdp_context *ctx     = s->flat->model->ctx;

    return fsdpi_fail_together(
        ctx, is_code ? status : FSDP_ERR_ARG,
        "fsdp_optimizer_step: the update of tensor '%s' has failed on rank %d: it returned %d for "
        "%zu elements from %zu on; parameters are as before on all ranks, and states undefined",
        s->flat->tensors[run->tensor]->name, ctx->rank, (int)status, run->count, run->begin);
}

static fsdp_status update_run(const fsdpi_custom_stretch *s, const tensor_run *run)
{
    fsdp_model  *model = s->flat->model;
    void        *old   = s->optimizer->scratch;
    const size_t bytes = bytes_of(s, run);

    fsdpi_compute_copy(model, old, weights_of(s, run), bytes);
    const fsdp_status status = call(s, run);
    if (status != FSDP_OK) {
        if (!s->apart) {
            fsdpi_compute_copy(model, weights_of(s, run), old, bytes);
        }
        return fail(s, run, status);
    }
    fsdpi_compute_copy(model, fsdpi_gradient_at(s->flat, run->at), old, bytes);
    s->optimizer->updated += run->count;
    return FSDP_OK;
}

fsdp_status fsdpi_custom_update(const fsdpi_custom_stretch *stretch)
{
    return visit_runs(stretch, update_run);
}

/* All that is held of a flat parameter, where it is. */
static fsdpi_custom_stretch stretch_of(fsdp_optimizer *optimizer, fsdpi_flat *flat, size_t flat_index)
{
    fsdpi_custom_stretch s = {.optimizer  = optimizer,
                              .flat       = flat,
                              .flat_index = flat_index,
                              .end        = fsdpi_held_elements(flat),
                              .weights    = flat->master};

    memcpy(s.states, optimizer->flats[flat_index].moments, sizeof s.states);
    return s;
}

static fsdp_status visit_all(fsdp_optimizer *optimizer, run_visit *visit)
{
    size_t u = 0;

    for (fsdpi_flat *flat = optimizer->model->flats; flat != NULL; flat = flat->next, u++) {
        const fsdpi_custom_stretch s = stretch_of(optimizer, flat, u);

        FSDP_TRY(flat->has_gradient && fsdpi_updates(optimizer, flat) ? visit_runs(&s, visit) : FSDP_OK);
    }
    return FSDP_OK;
}

fsdp_status fsdpi_custom_update_all(fsdp_optimizer *optimizer)
{
    return visit_all(optimizer, update_run);
}

/* ---- taking back ------------------------------------------------------------------------------------------------- */

/* In the order of the updates, as many elements as have been updated. */
static fsdp_status take_run_back(const fsdpi_custom_stretch *s, const tensor_run *run)
{
    const size_t     left = s->optimizer->updated;
    const tensor_run done = {run->at, run->tensor, run->begin, run->count < left ? run->count : left};

    s->optimizer->updated -= done.count;
    if (done.count > 0) {
        fsdpi_compute_copy(s->flat->model, weights_of(s, run), fsdpi_gradient_at(s->flat, run->at), bytes_of(s, &done));
    }
    return FSDP_OK;
}

void fsdpi_custom_take_back(fsdp_optimizer *optimizer)
{
    fsdpi_compute_finish(optimizer->model); /* what is offloaded may still be on its way */
    (void)visit_all(optimizer, take_run_back);
}
