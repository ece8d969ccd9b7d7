#include <string.h>

#include "collectives/collectives.h"
#include "fsdp/random.h"
#include "lib/hash.h"
#include "lib/memory.h"
#include "shard/model.h"

static const char *pass_name(fsdpi_pass pass)
{
    return pass == FSDPI_FORWARD ? "forward" : "backward";
}

const char *fsdp_unit_name(const fsdp_unit *unit)
{
    return unit != NULL ? unit->name : "";
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
    return FSDP_OK;
}

/* NO_SHARD computes on the master parameters themselves, padding and all. */
static fsdp_status gather(fsdp_unit *unit, const char *function, fsdp_status status)
{
    fsdp_model         *model   = unit->model;
    const fsdpi_purpose purpose = {.name = function, .label = unit->name, .status = status};
    fsdp_request       *request;

    if (model->options.strategy == FSDP_NO_SHARD) {
        FSDP_TRY(fsdpi_agree(model->ctx, function, unit->name, 0, status, false));
        unit->view = unit->master;
        return FSDP_OK;
    }
    float      *view = status == FSDP_OK ? fsdpi_pool_take(&model->gathered) : NULL;
    fsdp_status result =
        fsdpi_iallgather(model->ctx, &purpose, unit->master, view, unit->layout.shard, FSDP_F32, &request);
    if (result == FSDP_OK) {
        result = fsdp_wait(request);
    }
    if (result != FSDP_OK) {
        fsdpi_pool_give_back(&model->gathered, view);
        return result;
    }
    unit->view = view;
    return FSDP_OK;
}

static bool checks_views(const fsdp_unit *unit)
{
    return unit->model->ctx->config.verify == FSDP_VERIFY_FULL;
}

static uint64_t hash_of_view(const fsdp_unit *unit)
{
    return fsdpi_hash_elements(0, 0, unit->view, unit->layout.padded);
}

static void close_pass(fsdp_unit *unit)
{
    fsdp_model *model = unit->model;

    if (unit->view != unit->master) {
        fsdpi_pool_give_back(&model->gathered, unit->view);
    }
    fsdpi_pool_give_back(&model->gradients, unit->gradient_view);
    unit->view          = NULL;
    unit->gradient_view = NULL;
    unit->pass          = FSDPI_CLOSED;
    model->open--;
}

static void provide_gradient_view(fsdp_unit *unit)
{
    fsdp_model *model = unit->model;

    unit->gradient_view = fsdpi_pool_take(&model->gradients);
    model->ctx->device->clear(unit->gradient_view, unit->layout.padded * sizeof(float));
}

static fsdp_status begin_pass(fsdp_unit *unit, fsdpi_pass pass, const char *function)
{
    if (unit == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "%s: the unit is NULL; pass one from fsdp_unit_add", function);
    }
    FSDP_TRY(gather(unit, function, check_begin(unit, function)));
    unit->pass = pass;
    unit->model->open++;
    if (pass == FSDPI_BACKWARD) {
        provide_gradient_view(unit);
    }
    if (checks_views(unit)) {
        unit->view_hash = hash_of_view(unit);
        const fsdp_status status =
            fsdpi_agree(unit->model->ctx, "gathered view", unit->name, unit->view_hash, FSDP_OK, true);
        if (status != FSDP_OK) {
            close_pass(unit);
            return status;
        }
    }
    return FSDP_OK;
}

fsdp_status fsdp_unit_begin_forward(fsdp_unit *unit)
{
    return begin_pass(unit, FSDPI_FORWARD, "fsdp_unit_begin_forward");
}

fsdp_status fsdp_unit_begin_backward(fsdp_unit *unit)
{
    return begin_pass(unit, FSDPI_BACKWARD, "fsdp_unit_begin_backward");
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
    if (checks_views(unit) && hash_of_view(unit) != unit->view_hash) {
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
        status = fsdpi_agree(unit->model->ctx, function, unit->name, 0, status, true);
    }
    if (unit->pass == FSDPI_FORWARD) {
        close_pass(unit);
    }
    return status;
}

/* The mean over ranks, in the slices of the gradient view that this rank holds. */
static fsdp_status reduce_gradient(fsdp_unit *unit, const char *function, fsdp_status status)
{
    fsdp_context       *ctx     = unit->model->ctx;
    const fsdpi_purpose purpose = {.name = function, .label = unit->name, .status = status};
    float              *view    = unit->gradient_view;
    fsdp_request       *request;

    if (unit->model->options.strategy == FSDP_NO_SHARD) {
        FSDP_TRY(
            fsdpi_iallreduce(ctx, &purpose, FSDP_IN_PLACE, view, unit->layout.padded, FSDP_F32, FSDP_AVG, &request));
    } else {
        float *own = view != NULL ? view + (size_t)ctx->rank * unit->layout.shard : NULL;
        FSDP_TRY(fsdpi_ireduce_scatter(ctx, &purpose, view, own, unit->layout.shard, FSDP_F32, FSDP_AVG, &request));
    }
    return fsdp_wait(request);
}

static void accumulate_gradient(fsdp_unit *unit)
{
    const fsdp_context *ctx = unit->model->ctx;
    const size_t        n   = fsdpi_held_elements(&unit->layout, unit->model->options.strategy);
    const float *reduced    = unit->gradient_view + (size_t)fsdpi_held_slices(unit->model).first * unit->layout.shard;

    if (unit->has_gradient) {
        const void *const terms[] = {unit->gradient, reduced};
        ctx->kernels->reduce(unit->gradient, terms, 2, n, FSDP_F32, FSDP_SUM);
    } else {
        ctx->device->copy(unit->gradient, reduced, n * sizeof(float));
    }
    unit->has_gradient = true;
}

fsdp_status fsdp_unit_end_backward(fsdp_unit *unit)
{
    static const char function[] = "fsdp_unit_end_backward";

    if (unit == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "%s: the unit is NULL; pass one from fsdp_unit_add", function);
    }
    const fsdp_status status = reduce_gradient(unit, function, check_end(unit, FSDPI_BACKWARD, function));
    if (status == FSDP_OK) {
        accumulate_gradient(unit);
    }
    if (unit->pass == FSDPI_BACKWARD) {
        close_pass(unit);
    }
    return status;
}

/* ---- views ------------------------------------------------------------------------------------------------------- */

/* Whether tensor `i` of the unit can be seen now; says what is wrong if not. */
static bool view_is_open(const fsdp_unit *unit, size_t i, const float *view, const char *function, const char *pass)
{
    if (unit == NULL) {
        (void)fsdpi_fail(NULL, FSDP_ERR_ARG, "%s: the unit is NULL; pass one from fsdp_unit_add", function);
        return false;
    }
    if (i >= unit->n_tensors) {
        (void)fsdpi_fail(unit->model->ctx, FSDP_ERR_ARG, "%s: unit '%s' has no tensor %zu; it has 0 to %zu", function,
                         unit->name, i, unit->n_tensors - 1);
        return false;
    }
    if (view == NULL) {
        (void)fsdpi_fail(unit->model->ctx, FSDP_ERR_STATE,
                         "%s: no %s of unit '%s' is open; ask between its begin and its "
                         "end",
                         function, pass, unit->name);
    }
    return view != NULL;
}

const void *fsdp_unit_param(fsdp_unit *unit, size_t i)
{
    const float *view = unit != NULL ? unit->view : NULL;

    return view_is_open(unit, i, view, "fsdp_unit_param", "pass") ? view + unit->tensors[i].offset : NULL;
}

void *fsdp_unit_grad(fsdp_unit *unit, size_t i)
{
    float *view = unit != NULL ? unit->gradient_view : NULL;

    return view_is_open(unit, i, view, "fsdp_unit_grad", "backward pass") ? view + unit->tensors[i].offset : NULL;
}
