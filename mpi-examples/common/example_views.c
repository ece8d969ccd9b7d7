#include "example_views.h"

#include <stdlib.h>
#include <string.h>

#include "example_error.h"

static size_t elements_of(const fsdp_tensor *tensor)
{
    size_t count = 1, d;

    for (d = 0; d < tensor->n_dims; d++) {
        count *= tensor->shape[d];
    }
    return count;
}

void example_views_describe(example_views *views, fsdp_context *ctx, const fsdp_model_options *model,
                            const fsdp_tensor *tensors, size_t n_tensors)
{
    size_t i;

    *views = (example_views){
        .ctx = ctx, .param_dtype = model->param_dtype, .reduce_dtype = model->reduce_dtype, .n_tensors = n_tensors};
    for (i = 0; i < n_tensors; i++) {
        views->elements[i] = elements_of(&tensors[i]);
    }
}

static size_t unit_bytes(const example_views *views)
{
    size_t count = 0, i;

    for (i = 0; i < views->n_tensors; i++) {
        count += views->elements[i];
    }
    return count * sizeof(float);
}

size_t example_views_bytes(const example_views *views)
{
    const size_t copies = (size_t)(views->param_dtype != FSDP_F32) + (size_t)(views->reduce_dtype != FSDP_F32);

    return copies * unit_bytes(views);
}

/* Whether there is memory, or none is needed. */
static int allocate_copy(fsdp_dtype dtype, size_t bytes, float **copy)
{
    *copy = dtype != FSDP_F32 ? malloc(bytes) : NULL;
    return *copy || dtype == FSDP_F32;
}

int example_views_allocate(example_views *views)
{
    return allocate_copy(views->param_dtype, unit_bytes(views), &views->param_copy) &&
           allocate_copy(views->reduce_dtype, unit_bytes(views), &views->grad_copy);
}

void example_views_release(example_views *views)
{
    free(views->param_copy);
    free(views->grad_copy);
}

static fsdp_status find_params(example_views *views, fsdp_unit *unit)
{
    float *copy = views->param_copy;
    size_t i;

    for (i = 0; i < views->n_tensors; i++) {
        const void *view = fsdp_unit_param(unit, i);

        views->params[i] = view;
        if (copy) {
            EXAMPLE_TRY(fsdp_cast(views->ctx, copy, FSDP_F32, view, views->param_dtype, views->elements[i]));
            views->params[i] = copy;
            copy += views->elements[i];
        }
    }
    return FSDP_OK;
}

static void find_grads(example_views *views, fsdp_unit *unit)
{
    float *copy = views->grad_copy;
    size_t i;

    if (copy) {
        memset(copy, 0, unit_bytes(views));
    }
    for (i = 0; i < views->n_tensors; i++) {
        views->grads[i] = copy ? copy : fsdp_unit_grad(unit, i);
        copy            = copy ? copy + views->elements[i] : NULL;
    }
}

fsdp_status example_views_begin_forward(example_views *views, fsdp_unit *unit)
{
    EXAMPLE_TRY(fsdp_unit_begin_forward(unit));
    return find_params(views, unit);
}

fsdp_status example_views_begin_backward(example_views *views, fsdp_unit *unit)
{
    EXAMPLE_TRY(fsdp_unit_begin_backward(unit));
    find_grads(views, unit);
    return find_params(views, unit);
}

fsdp_status example_views_end_backward(example_views *views, fsdp_unit *unit)
{
    size_t i;

    for (i = 0; i < views->n_tensors && views->grad_copy; i++) {
        EXAMPLE_TRY(fsdp_cast(views->ctx, fsdp_unit_grad(unit, i), views->reduce_dtype, views->grads[i], FSDP_F32,
                              views->elements[i]));
    }
    return fsdp_unit_end_backward(unit);
}
