#include "shard/schedule/pass.h"

#include "lib/base/hash.h"
#include "shard/schedule/failed_step.h"
#include "shard/schedule/gather.h"
#include "shard/schedule/masters.h"
#include "shard/schedule/reduction.h"
#include "shard/schedule/replay.h"
#include "shard/state/tensor.h"
#include "shard/storage/compute.h"
#include "shard/storage/fixed_addresses.h"

static const char *pass_name(fsdpi_pass pass)
{
    return pass == FSDPI_FORWARD ? "forward" : "backward";
}

/* ---- beginning a pass -------------------------------------------------------------------------------------------- */

static fsdp_status check_begin(const fsdp_unit *unit, const char *function)
{
    const fsdp_model *model = unit->model;

    if (!model->committed) {
        return fsdpi_fail(model->ctx, FSDP_ERR_STATE,
                          "%s: unit '%s' belongs to a model that is not committed; call "
                          "fsdp_model_commit first",
                          function, unit->name);
    }
    if (unit->pass != FSDPI_CLOSED) {
        return fsdpi_fail(model->ctx, FSDP_ERR_STATE,
                          "%s: unit '%s' is in its %s pass already; call fsdp_unit_end_%s "
                          "first",
                          function, unit->name, pass_name(unit->pass), pass_name(unit->pass));
    }
    if (model->open >= (size_t)model->ctx->config.views_in_flight) {
        return fsdpi_fail(model->ctx, FSDP_ERR_STATE,
                          "%s: unit '%s' would be open beside %zu others, and "
                          "FSDP_VIEWS_IN_FLIGHT is %d; end a pass first or set it higher",
                          function, unit->name, model->open, model->ctx->config.views_in_flight);
    }
    for (size_t m = 0; m < unit->n_members; m++) {
        FSDP_TRY(fsdpi_masters_check(unit->members[m].flat, function));
    }
    return FSDP_OK;
}

static bool checks_views(const fsdp_unit *unit)
{
    return unit->model->ctx->config.verify == FSDP_VERIFY_FULL;
}

/* Of a view that is a GPU's, piece by piece. */
static uint64_t hash_bytes(fsdp_model *model, uint64_t hash, const unsigned char *view, size_t bytes)
{
    unsigned char piece[16384];

    if (!fsdpi_is_on_device(model)) {
        return fsdpi_hash_bytes(hash, view, bytes);
    }
    for (size_t at = 0; at < bytes; at += sizeof piece) {
        const size_t n = bytes - at < sizeof piece ? bytes - at : sizeof piece;

        fsdpi_compute_read(model, piece, FSDP_U8, view + at, FSDP_U8, n);
        hash = fsdpi_hash_bytes(hash, piece, n);
    }
    return hash;
}

static uint64_t hash_of_views(const fsdp_unit *unit)
{
    uint64_t hash = FSDPI_HASH_START;

    for (size_t m = 0; m < unit->n_members; m++) {
        const fsdpi_member *member = &unit->members[m];

        hash = hash_bytes(unit->model, hash, member->view->memory,
                          member->flat->layout.padded * fsdp_dtype_size(member->flat->dtype));
    }
    return hash;
}

static void close_pass(fsdp_unit *unit)
{
    fsdpi_replay_end(unit);
    for (size_t m = 0; m < unit->n_members; m++) {
        unit->members[m].gradient_view = NULL;
    }
    fsdpi_address_hide(unit);
    fsdpi_trace_span(&unit->model->ctx->trace, pass_name(unit->pass), unit->name, unit->begun);
    unit->pass = FSDPI_CLOSED;
    unit->model->open--;
    fsdpi_gather_release(unit);
}

void fsdpi_passes_abandon(fsdp_model *model)
{
    for (fsdp_unit *unit = model->first; unit != NULL; unit = unit->next) {
        if (unit->pass != FSDPI_CLOSED) {
            close_pass(unit);
        }
    }
}

static fsdp_status begin_pass(fsdp_unit *unit, fsdpi_pass pass)
{
    const char *function = fsdpi_begin_name(pass);

    if (unit == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "%s: the unit is NULL; pass one from fsdp_unit_add", function);
    }
    const double begun = fsdpi_trace_now(&unit->model->ctx->trace);
    FSDP_TRY(fsdpi_step_check(unit->model, function));
    FSDP_TRY(fsdpi_step_fail(unit->model, fsdpi_gather(unit, pass, check_begin(unit, function))));
    unit->pass  = pass;
    unit->begun = begun;
    fsdpi_trace_span(&unit->model->ctx->trace, "gather", unit->name, begun);
    unit->model->open++;
    fsdp_status status = fsdpi_address_show(unit);
    if (status == FSDP_OK && pass == FSDPI_BACKWARD) {
        status = fsdpi_gradient_open(unit);
    }
    if (status == FSDP_OK && checks_views(unit)) {
        unit->view_hash = hash_of_views(unit);
        status          = fsdpi_step_agree(unit->model, "gathered view", unit->name, unit->view_hash, FSDP_OK, true);
    }
    if (status != FSDP_OK) {
        close_pass(unit);
    } else {
        fsdpi_replay_begin(unit);
    }
    return fsdpi_step_fail(unit->model, status);
}

fsdp_status fsdp_unit_begin_forward(fsdp_unit *unit)
{
    return begin_pass(unit, FSDPI_FORWARD);
}

fsdp_status fsdp_unit_begin_backward(fsdp_unit *unit)
{
    return begin_pass(unit, FSDPI_BACKWARD);
}

/* ---- ending a pass ----------------------------------------------------------------------------------------------- */

static fsdp_status check_end(const fsdp_unit *unit, fsdpi_pass pass, const char *function)
{
    if (unit->pass != pass) {
        return fsdpi_fail(unit->model->ctx, FSDP_ERR_STATE,
                          "%s: no %s pass of unit '%s' is open; call "
                          "fsdp_unit_begin_%s first",
                          function, pass_name(pass), unit->name, pass_name(pass));
    }
    if (checks_views(unit) && hash_of_views(unit) != unit->view_hash) {
        return fsdpi_fail(unit->model->ctx, FSDP_ERR_STATE,
                          "%s: the gathered view of unit '%s' was written to during "
                          "its %s pass; parameters change in fsdp_optimizer_step only",
                          function, unit->name, pass_name(pass));
    }
    return FSDP_OK;
}

fsdp_status fsdp_unit_end_forward(fsdp_unit *unit)
{
    static const char function[] = "fsdp_unit_end_forward";

    if (unit == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "%s: the unit is NULL; pass one from fsdp_unit_add", function);
    }
    fsdp_status status = check_end(unit, FSDPI_FORWARD, function);
    if (checks_views(unit)) {
        status = fsdpi_step_fail(unit->model, fsdpi_step_agree(unit->model, function, unit->name, 0, status, true));
    }
    if (unit->pass == FSDPI_FORWARD) {
        close_pass(unit);
    }
    return status;
}

fsdp_status fsdp_unit_end_backward(fsdp_unit *unit)
{
    static const char function[] = "fsdp_unit_end_backward";

    if (unit == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "%s: the unit is NULL; pass one from fsdp_unit_add", function);
    }
    fsdp_status status = fsdpi_step_check(unit->model, function);
    if (status == FSDP_OK) {
        status = check_end(unit, FSDPI_BACKWARD, function);
        if (checks_views(unit)) {
            status = fsdpi_step_agree(unit->model, function, unit->name, 0, status, true);
        }
        status = fsdpi_step_fail(unit->model, fsdpi_gradient_close(unit, status));
    }
    if (unit->pass == FSDPI_BACKWARD) {
        close_pass(unit);
    }
    return status;
}

/* ---- views ------------------------------------------------------------------------------------------------------- */

/* Tensor `i` of the unit; NULL, and says what is wrong, if there is none. */
static const fsdpi_tensor *find_tensor(const fsdp_unit *unit, size_t i, const char *function)
{
    if (unit == NULL) {
        (void)fsdpi_fail(NULL, FSDP_ERR_ARG, "%s: the unit is NULL; pass one from fsdp_unit_add", function);
        return NULL;
    }
    if (i >= unit->n_tensors) {
        (void)fsdpi_fail(unit->model->ctx, FSDP_ERR_ARG, "%s: unit '%s' has no tensor %zu; it has 0 to %zu", function,
                         unit->name, i, unit->n_tensors - 1);
        return NULL;
    }
    return &unit->tensors[i];
}

static void *no_view(const fsdp_unit *unit, const char *function, const char *pass)
{
    (void)fsdpi_fail(unit->model->ctx, FSDP_ERR_STATE,
                     "%s: no %s of unit '%s' is open; ask between its begin and its end", function, pass, unit->name);
    return NULL;
}

const void *fsdp_unit_param(fsdp_unit *unit, size_t i)
{
    static const char   function[] = "fsdp_unit_param";
    const fsdpi_tensor *tensor     = find_tensor(unit, i, function);

    if (tensor == NULL) {
        return NULL;
    }
    if (unit->pass == FSDPI_CLOSED) {
        return no_view(unit, function, "pass");
    }
    return tensor->member != NULL
               ? fsdpi_element_of(fsdpi_address_of(unit, tensor->member), tensor->offset, tensor->member->flat->dtype)
               : tensor->whole;
}

void *fsdp_unit_grad(fsdp_unit *unit, size_t i)
{
    static const char   function[] = "fsdp_unit_grad";
    const fsdpi_tensor *tensor     = find_tensor(unit, i, function);

    if (tensor == NULL) {
        return NULL;
    }
    if (tensor->member == NULL || tensor->member->flat->frozen) {
        (void)fsdpi_fail(unit->model->ctx, FSDP_ERR_STATE, "%s: tensor '%s' is %s and has no gradient; leave it out",
                         function, tensor->name, tensor->member == NULL ? "ignored, or not committed yet," : "frozen");
        return NULL;
    }
    if (tensor->member->gradient_view == NULL) {
        return no_view(unit, function, "backward pass");
    }
    return fsdpi_element_of(tensor->member->gradient_view, tensor->offset, unit->model->options.reduce_dtype);
}

void *fsdp_unit_buffer(fsdp_unit *unit, size_t i)
{
    static const char   function[] = "fsdp_unit_buffer";
    const fsdpi_tensor *tensor     = find_tensor(unit, i, function);

    if (tensor == NULL) {
        return NULL;
    }
    if (tensor->whole == NULL) {
        (void)fsdpi_fail(unit->model->ctx, FSDP_ERR_STATE,
                         "%s: tensor '%s' is %s; only tensors with FSDP_TENSOR_IGNORED have a buffer, from "
                         "fsdp_model_commit on",
                         function, tensor->name, unit->model->committed ? "divided over the ranks" : "not committed");
        return NULL;
    }
    return tensor->whole;
}
